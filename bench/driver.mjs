// What every driver does: it reads commands as JSON lines, works a block of a row, and answers with the times it took.
//
// A tool is an object with launch(), open(url, width, height), evaluate(page, script), shot(page, {fullPage}), close(page),
// rss() and quit(). All timing is done here, the same for each tool.
import { writeFileSync } from "node:fs";
import { performance } from "node:perf_hooks";
import { createInterface } from "node:readline";

const SHOT_TIMEOUT = 5_000; // with several pages at once, after which a picture counts as failed
const CALL_TIMEOUT = 60_000; // what hangs longer ends its block, and not the bench

async function timed(work) {
  const start = performance.now();
  const value = await within(CALL_TIMEOUT, work());
  return { ms: performance.now() - start, value };
}

function within(ms, work) {
  let timer;
  const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error("timed out")), ms)));
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

const EVALS = { eval: ["1+1", 2], evalbig: ["'x'.repeat(2500000)", null] };

async function block(tool, { kind, url, width, height, n }) {
  const times = [];
  let bytes = 0;
  if (kind === "loop") {
    for (let turn = 0; turn < n; turn++) {
      const { ms, value } = await timed(async () => {
        const page = await tool.open(url, width, height);
        const picture = await tool.shot(page, {});
        await tool.close(page);
        return picture;
      });
      times.push(ms);
      bytes = value.length;
    }
    return { times, bytes };
  }
  const page = await within(CALL_TIMEOUT, tool.open(url, width, height));
  const once = {
    png: () => tool.shot(page, {}),
    full: () => tool.shot(page, { fullPage: true }),
    eval: () => tool.evaluate(page, EVALS.eval[0]),
    evalbig: () => tool.evaluate(page, EVALS.evalbig[0]),
  }[kind];
  try {
    for (let turn = -2; turn < n; turn++) {
      const { ms, value } = await timed(once);
      if (turn >= 0) times.push(ms); // two to warm up
      if (kind === "eval" && value !== 2) throw new Error(`1+1 gave ${value}`);
      if (kind === "evalbig" && value.length !== 2_500_000) throw new Error(`evalbig gave ${value.length}`);
      bytes = value.length ?? 0;
    }
  } finally {
    await within(CALL_TIMEOUT, tool.close(page));
  }
  return { times, bytes };
}

/** Pictures a second of several pages at once, each in a context of its own and shot in a loop. */
async function many(tool, { url, width, height, pages, seconds }) {
  const opening = Promise.all(Array.from({ length: pages }, () => tool.open(url, width, height)));
  const opened = await within(CALL_TIMEOUT, opening);
  const end = performance.now() + seconds * 1000;
  let shots = 0;
  let failures = 0;
  await Promise.all(
    opened.map(async (page) => {
      while (performance.now() < end) {
        try {
          await within(SHOT_TIMEOUT, tool.shot(page, {}));
          if (performance.now() < end) shots++;
        } catch {
          failures++;
        }
      }
    }),
  );
  await Promise.allSettled(opened.map((page) => within(SHOT_TIMEOUT, tool.close(page))));
  return { perSecond: shots / seconds, failures };
}

/** One picture of a page that stands still, for comparing pixels. */
async function save(tool, { url, width, height, fullPage, path }) {
  const picture = await within(CALL_TIMEOUT, (async () => {
    const page = await tool.open(url, width, height);
    await tool.evaluate(page, "window.freeze ? window.freeze() : true");
    const picture = await tool.shot(page, { fullPage });
    await tool.close(page);
    return picture;
  })());
  writeFileSync(path, picture);
  return { path };
}

const WORK = {
  launch: (tool) => timed(() => tool.launch()).then(({ ms }) => ({ ms })),
  block,
  many,
  save,
  rss: async (tool) => ({ bytes: await tool.rss() }),
};

/** Serves commands until standard input ends or says quit. */
export async function serve(tool) {
  const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
  for await (const line of createInterface({ input: process.stdin })) {
    const command = JSON.parse(line);
    if (command.do === "quit") break;
    try {
      say({ ok: await WORK[command.do](tool, command) });
    } catch (error) {
      say({ error: String(error?.message ?? error).slice(0, 300) });
    }
  }
  await tool.quit();
  process.exit(0);
}
