// The bare CDP call over the debugging pipe, in JSON, with nothing around it: what our own chain is measured against.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { serve } from "../driver.mjs";

const { executablePath, switches, features } = JSON.parse(process.argv[2]);

class Pipe {
  #child;
  #next = 1;
  #waiting = new Map();
  #loads = new Map();
  #profile = mkdtempSync(join(tmpdir(), "bench-bare-"));

  constructor() {
    const args = [
      "--headless=new",
      "--no-startup-window",
      "--remote-debugging-pipe",
      `--user-data-dir=${this.#profile}`,
      "--no-first-run",
      "--hide-scrollbars",
      "--force-color-profile=srgb",
      "--disable-background-timer-throttling",
      "--disable-backgrounding-occluded-windows",
      "--disable-renderer-backgrounding",
      `--enable-features=${["CDPScreenshotNewSurface", ...features].join(",")}`,
      "--disable-features=WebUIReloadButton,WebUIOmniboxPopup,WebUIOmniboxAimPopup,PaintHolding",
      ...switches,
    ];
    this.#child = spawn(executablePath, args, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    let parts = [];
    this.#child.stdio[4].on("data", (chunk) => {
      for (let start = 0; ; ) {
        const end = chunk.indexOf(0, start);
        parts.push(chunk.subarray(start, end < 0 ? undefined : end));
        if (end < 0) break;
        this.#hear(JSON.parse(Buffer.concat(parts).toString()));
        parts = [];
        start = end + 1;
      }
    });
  }

  #hear({ id, result, error, method, params, sessionId }) {
    if (id === undefined) {
      if (method === "Page.lifecycleEvent" && params.name === "load") this.#loads.get(sessionId)?.(params.loaderId);
      return;
    }
    const { resolve, reject } = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error) reject(new Error(error.message));
    else resolve(result);
  }

  call(method, params = {}, sessionId = undefined) {
    const id = this.#next++;
    this.#child.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }

  /** Navigates, and waits until that very document, and not the blank one before it, has loaded. */
  async load(sessionId, url) {
    const loaded = new Set();
    let wake = () => {};
    this.#loads.set(sessionId, (loader) => wake(loaded.add(loader)));
    const { loaderId } = await this.call("Page.navigate", { url }, sessionId);
    while (!loaded.has(loaderId)) await new Promise((resolve) => (wake = resolve));
    this.#loads.delete(sessionId);
  }

  async end() {
    const gone = new Promise((resolve) => this.#child.on("exit", resolve));
    this.#child.stdio[3].end();
    await gone;
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

let pipe;

/** "Unable to capture screenshot" right after a new or resized window means: not yet. */
async function capture(sessionId, params) {
  for (let wait = 4; ; wait *= 2) {
    try {
      return await pipe.call("Page.captureScreenshot", params, sessionId);
    } catch (error) {
      if (wait > 1000 || !error.message.includes("Unable to capture")) throw error;
      await new Promise((done) => setTimeout(done, wait));
    }
  }
}

serve({
  async launch() {
    pipe = new Pipe();
    await pipe.call("Browser.getVersion");
  },
  async open(url, width, height) {
    const { browserContextId } = await pipe.call("Target.createBrowserContext");
    const { targetId } = await pipe.call("Target.createTarget", { url: "about:blank", browserContextId, newWindow: true });
    const { sessionId } = await pipe.call("Target.attachToTarget", { targetId, flatten: true });
    const metrics = { width, height, deviceScaleFactor: 1, mobile: false };
    await Promise.all([
      pipe.call("Page.enable", {}, sessionId),
      pipe.call("Page.setLifecycleEventsEnabled", { enabled: true }, sessionId),
      pipe.call("Emulation.setDeviceMetricsOverride", metrics, sessionId),
      pipe.load(sessionId, url),
    ]);
    return { browserContextId, sessionId };
  },
  async evaluate({ sessionId }, expression) {
    const params = { expression, returnByValue: true, awaitPromise: true };
    return (await pipe.call("Runtime.evaluate", params, sessionId)).result.value;
  },
  async shot({ sessionId }, { fullPage }) {
    const params = { format: "png", optimizeForSpeed: true };
    if (fullPage) {
      const { cssContentSize } = await pipe.call("Page.getLayoutMetrics", {}, sessionId);
      Object.assign(params, { captureBeyondViewport: true, clip: { ...cssContentSize, scale: 1 } });
    }
    return Buffer.from((await capture(sessionId, params)).data, "base64");
  },
  close: ({ browserContextId }) => pipe.call("Target.disposeBrowserContext", { browserContextId }),
  rss: () => process.memoryUsage.rss(),
  quit: () => pipe?.end(),
});
