// gpu-browser through its whole chain: HTTP to the embedded relay, WebSocket, router, CDP, and the picture in parts.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { createInterface } from "node:readline";
import { basename } from "node:path";
import { serve } from "../driver.mjs";

const { program, chromium, pages } = JSON.parse(process.argv[2]);
const agent = new Agent({ keepAlive: true });
let daemon;
let base;

function call(method, path, body) {
  const payload = body === undefined ? "" : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(payload) };
    const asked = request(`${base}${path}`, { method, agent, headers }, (reply) => {
      const chunks = [];
      reply.on("data", (chunk) => chunks.push(chunk));
      reply.on("error", reject);
      reply.on("end", () => {
        const text = Buffer.concat(chunks).toString("latin1");
        if (reply.statusCode !== 200) reject(new Error(`${path}: ${reply.statusCode} ${text.slice(0, 200)}`));
        else resolve(text);
      });
    });
    asked.on("error", reject);
    asked.end(payload);
  });
}

const post = async (path, body) => JSON.parse(await call("POST", path, body));

serve({
  async launch() {
    const args = ["start", "--dev", "--relay", "local", "--json", "--gpu", "software", "--chromium", chromium];
    daemon = spawn(program, args, { stdio: ["pipe", "pipe", "ignore"] });
    base = await new Promise((resolve, reject) => {
      daemon.on("exit", (code) => reject(new Error(`gpu-browser ended with exit code ${code}`)));
      createInterface({ input: daemon.stdout }).on("line", (line) => {
        const { event, link } = JSON.parse(line);
        if (event === "ready") resolve(link.replace(/\/agents\.md$/, ""));
      });
    });
    const files = pages.map((path) => ({ path: basename(path), text: readFileSync(path, "utf8") }));
    await post("/files", { files });
  },
  async open(url, width, height) {
    const verdict = await post("/page", { path: basename(new URL(url).pathname), width, height });
    if (verdict.status !== 200) throw new Error(`the page gave ${JSON.stringify(verdict)}`);
    return verdict.page;
  },
  evaluate: async (page, js) => (await post("/eval", { page, js, max_bytes: 3_000_000 })).value,
  async shot(page, { fullPage }) {
    const { image, parts } = await post("/screenshot", { page, format: "png", full_page: fullPage });
    const pieces = [];
    for (let part = 1; part <= parts; part++) {
      pieces.push(Buffer.from(await call("POST", "/image", { image, part }), "base64"));
    }
    return Buffer.concat(pieces);
  },
  close: (page) => post("/close", { page }),
  rss() {
    const status = readFileSync(`/proc/${daemon.pid}/status`, "utf8");
    return Number(/VmRSS:\s+(\d+)/.exec(status)[1]) * 1024;
  },
  async quit() {
    if (!daemon || daemon.exitCode !== null) return;
    const gone = new Promise((resolve) => daemon.on("exit", resolve));
    daemon.stdin.write("stop\n");
    await gone;
  },
});
