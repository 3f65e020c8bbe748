// The Chromium that every tool drives, and the flags and the display of the software rung that all of them get.
import { spawn } from "node:child_process";
import { accessSync, constants, openSync, readSync, closeSync } from "node:fs";

// Binaries before wrapper scripts; a snap's stub is a script and is passed over.
const PLACES = [
  "/usr/lib/chromium/chromium",
  "/usr/lib64/chromium-browser/chromium-browser",
  "/usr/lib64/chromium/chromium",
  "/usr/lib/chromium-browser/chromium-browser",
  "/opt/google/chrome/chrome",
  "/usr/bin/chromium",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
];

function isBinary(path) {
  try {
    accessSync(path, constants.X_OK);
    const file = openSync(path, "r");
    const head = Buffer.alloc(2);
    readSync(file, head, 0, 2, 0);
    closeSync(file);
    return head.toString("latin1") !== "#!";
  } catch {
    return false;
  }
}

/** The path of a Chromium, or of the one that was named. */
export function findChromium(named) {
  const found = named ?? PLACES.find(isBinary);
  if (!found) throw new Error("no Chromium found; name one with --chromium PATH");
  return found;
}

/** Switches of the software rung: on an X display where there is one, else headless alone. */
export function softwareRung(display) {
  const shared = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--enable-unsafe-webgpu"];
  return display
    ? { switches: [...shared, "--ozone-platform=x11", "--use-vulkan=swiftshader", "--use-webgpu-adapter=swiftshader"], features: ["Vulkan"] }
    : { switches: [...shared, "--use-webgpu-adapter=opengles"], features: [] };
}

/** Starts an Xvfb for the drivers; resolves to null where none is installed. */
export function startXvfb() {
  const child = spawn("Xvfb", ["-displayfd", "3", "-nolisten", "tcp", "-ac", "-screen", "0", "3840x2160x24"], {
    stdio: ["ignore", "ignore", "ignore", "pipe"],
  });
  return new Promise((resolve) => {
    child.on("error", () => resolve(null));
    child.on("exit", () => resolve(null));
    let number = "";
    child.stdio[3].on("data", (chunk) => {
      number += chunk;
      if (number.endsWith("\n")) resolve({ display: `:${number.trim()}`, stop: () => child.kill() });
    });
  });
}
