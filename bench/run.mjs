// The bench: ours beside Playwright and Puppeteer on the same Chromium, block by block in turn, with the pixels compared.
//
//   node run.mjs [--tools playwright,puppeteer,puppeteer-fast,bare,ours] [--rounds 3] [--n 6] [--seconds 6]
//                [--rows WORD] [--patience 10] [--program PATH] [--chromium PATH] [--out RESULTS.md]
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { findChromium, softwareRung, startXvfb } from "./chromium.mjs";
import { decode, difference, isBlank } from "./png.mjs";
import { markdown, stats } from "./report.mjs";
import { COMPARED, MANY, TIMED } from "./rows.mjs";

const here = import.meta.dirname;
const { values: options } = parseArgs({
  options: {
    tools: { type: "string", default: "playwright,puppeteer,puppeteer-fast,bare,ours" },
    rounds: { type: "string", default: "3" },
    n: { type: "string", default: "6" },
    seconds: { type: "string", default: "6" },
    rows: { type: "string", default: "" },
    patience: { type: "string", default: "10" },
    program: { type: "string", default: join(here, "../target/release/gpu-browser") },
    chromium: { type: "string" },
    out: { type: "string", default: join(here, "RESULTS.md") },
  },
});
const [rounds, n, seconds] = [options.rounds, options.n, options.seconds].map(Number);
const tools = options.tools.split(",");
const wanted = (row) => row.name.includes(options.rows);
const troubles = [];
const note = (text) => process.stderr.write(`${text}\n`);

/** A driver in a process of its own, asked one thing at a time. */
class Driver {
  #child;
  #lines;

  constructor(tool, settings) {
    const file = tool.startsWith("puppeteer") ? "puppeteer" : tool;
    this.tool = tool;
    const config = JSON.stringify({ ...settings, fast: tool === "puppeteer-fast" });
    this.#child = spawn(process.execPath, [join(here, `drivers/${file}.mjs`), config], {
      stdio: ["pipe", "pipe", "inherit"],
      env: { ...process.env, BENCH_CHROMIUM: settings.chromium, ...(settings.display && { DISPLAY: settings.display }) },
    });
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  /** The answer, or null where the tool failed; the failure goes into the report. */
  async ask(what, command) {
    this.#child.stdin.write(`${JSON.stringify(command)}\n`);
    const { value, done } = await this.#lines.next();
    const { ok, error } = done ? { error: "the driver ended" } : JSON.parse(value);
    if (error) {
      troubles.push(`${this.tool}, ${what}: ${error}`);
      note(`  ! ${troubles.at(-1)}`);
    }
    return ok ?? null;
  }

  quit() {
    const gone = new Promise((resolve) => this.#child.on("exit", resolve));
    this.#child.stdin.end('{"do":"quit"}\n');
    return gone;
  }
}

function servePages() {
  const server = createServer((asked, reply) => {
    try {
      const body = readFileSync(join(here, "pages", asked.url.replace(/[^a-z.]/g, "")));
      reply.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(body);
    } catch {
      reply.writeHead(404).end();
    }
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}

/** Waits until the other tools' browsers have come to rest: below a tenth of the processors, for as long as patience lasts. */
async function quiet() {
  const read = () => readFileSync("/proc/stat", "utf8").split("\n", 1)[0].split(/ +/).slice(1).map(Number);
  for (let turn = 0; turn < Number(options.patience) * 4; turn++) {
    const before = read();
    await new Promise((done) => setTimeout(done, 250));
    const spent = read().map((value, at) => value - before[at]);
    const all = spent.reduce((sum, value) => sum + value, 0);
    if (all === 0 || (spent[3] + spent[4]) / all > 0.9) return;
  }
}

/** The drivers from another one on each time, so that none is always first. */
const turned = (drivers, by) => drivers.map((_, at) => drivers[(at + by) % drivers.length]);

async function timeRows(drivers, rows, urls) {
  const times = new Map(rows.map((row) => [row.name, {}]));
  for (let round = 0; round < rounds; round++) {
    for (const [at, row] of rows.entries()) {
      for (const driver of turned(drivers, round + at)) {
        await quiet();
        const command = { do: "block", ...row, url: urls(row.page), n: n * (row.scale ?? 1) };
        const found = await driver.ask(row.name, command);
        if (found) (times.get(row.name)[driver.tool] ??= []).push(...found.times);
      }
      note(`round ${round + 1}/${rounds}  ${row.name}  ${medians(times.get(row.name))}`);
    }
  }
  const entries = [...times].map(([name, of]) => [name, mapped(of, stats)]);
  return new Map(entries);
}

const mapped = (object, make) => Object.fromEntries(Object.entries(object).map(([key, value]) => [key, make(value)]));
const medians = (of) => Object.entries(of).map(([tool, times]) => `${tool} ${stats(times).median.toFixed(1)}`).join("  ");

async function manyRows(drivers, rows, urls) {
  const found = new Map();
  for (const [at, row] of rows.entries()) {
    const of = {};
    for (const driver of turned(drivers, at)) {
      await quiet();
      of[driver.tool] = await driver.ask(row.name, { do: "many", ...row, url: urls(row.page), pages: 8, seconds });
    }
    found.set(row.name, of);
    note(`${row.name}  ${JSON.stringify(of)}`);
  }
  return found;
}

async function compareRows(drivers, rows, urls, folder) {
  const found = new Map();
  for (const row of rows) {
    const pictures = {};
    for (const driver of drivers) {
      const path = join(folder, `${driver.tool}.png`);
      const saved = await driver.ask(row.name, { do: "save", ...row, url: urls(row.page), path });
      if (saved) pictures[driver.tool] = decode(readFileSync(path));
    }
    const { playwright, ...others } = pictures;
    const against = (picture) => (isBlank(picture) ? "**blank**" : playwright ? difference(playwright, picture) : undefined);
    found.set(row.name, mapped(others, against));
    if (playwright && isBlank(playwright)) troubles.push(`playwright, ${row.name}: the picture is blank`);
    note(`pixels  ${row.name}  ${JSON.stringify(found.get(row.name))}`);
  }
  return found;
}

async function memoryOf(drivers, at, into) {
  for (const driver of drivers) {
    const found = await driver.ask("memory", { do: "rss" });
    (into[driver.tool] ??= {})[at] = found?.bytes;
  }
}

function versions(chromium) {
  const of = (name) => JSON.parse(readFileSync(join(here, `node_modules/${name}/package.json`), "utf8")).version;
  const browser = execFileSync(chromium, ["--version"], { encoding: "utf8" }).trim().split(" ").slice(0, 2).join(" ");
  return `${browser}, Playwright ${of("playwright-core")}, Puppeteer ${of("puppeteer-core")}, Node ${process.versions.node}`;
}

const chromium = findChromium(options.chromium);
if (tools.includes("ours") && !statSync(options.program, { throwIfNoEntry: false })) {
  throw new Error(`${options.program} is missing; build it with \`cargo build --release\``);
}
const xvfb = await startXvfb();
const server = await servePages();
const folder = mkdtempSync(join(tmpdir(), "bench-"));
const { switches, features } = softwareRung(xvfb?.display);
const pages = ["dom", "webgl", "webgpu", "tall"].map((name) => join(here, `pages/${name}.html`));
const settings = {
  chromium,
  executablePath: join(here, "as-nobody.sh"),
  display: xvfb?.display,
  switches,
  features,
  program: options.program,
  pages,
};
const urls = (page) => `http://127.0.0.1:${server.address().port}/${page}.html`;
const drivers = tools.map((tool) => new Driver(tool, settings));
const found = { memory: {} };
try {
  for (const driver of drivers) {
    if (!(await driver.ask("launch", { do: "launch" }))) throw new Error(`${driver.tool} does not start`);
  }
  await memoryOf(drivers, "before", found.memory);
  const [timed, many, compared] = [TIMED, MANY, COMPARED].map((rows) => rows.filter(wanted));
  found.timed = await timeRows(drivers, timed, urls);
  found.many = await manyRows(drivers, many, urls);
  found.pixels = await compareRows(drivers, compared, urls, folder);
  await memoryOf(drivers, "after", found.memory);
  const gpu = xvfb ? "SwiftShader on a private X display" : "SwiftShader, headless";
  const about = { versions: versions(chromium), gpu, n, rounds, troubles };
  const text = markdown({ about, tools, timedRows: timed, manyRows: many, comparedRows: compared, found });
  writeFileSync(options.out, text);
  process.stdout.write(text);
} finally {
  await Promise.all(drivers.map((driver) => driver.quit()));
  rmSync(folder, { recursive: true, force: true });
  server.close();
  xvfb?.stop();
}
