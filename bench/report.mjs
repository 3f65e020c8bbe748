// Medians, ratios and the Markdown of the results.
import { readFileSync } from "node:fs";
import { arch, cpus, platform, totalmem } from "node:os";
import { CHAIN_ADDS, MEMORY_WANTED } from "./rows.mjs";

/** The median with the 10th and 90th percentile. */
export function stats(times) {
  if (!times || times.length === 0) return null;
  const sorted = [...times].sort((a, b) => a - b);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
  return { median: at(0.5), p10: at(0.1), p90: at(0.9), n: sorted.length };
}

const number = (value) => (value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2));
const cell = (found) => (found ? `${number(found.median)} (${number(found.p10)}–${number(found.p90)})` : "–");
const ratio = (theirs, ours) => (theirs && ours ? `${number(theirs / ours)}x` : "–");

function verdict(wanted, found) {
  if (wanted === undefined || !Number.isFinite(found)) return "";
  return found >= wanted ? `${wanted}x: met` : `${wanted}x: **missed**`;
}

function table(head, rows) {
  const line = (cells) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

function timed(tools, rows, found) {
  const has = tools.includes("ours");
  const head = ["ms, median (p10–p90)", ...tools, ...(has ? ["Playwright / ours", "wanted"] : [])];
  const lines = rows.map((row) => {
    const of = (tool) => found.get(row.name)?.[tool];
    const times = ratio(of("playwright")?.median, of("ours")?.median);
    const share = of("playwright")?.median / of("ours")?.median;
    return [row.name, ...tools.map((tool) => cell(of(tool))), ...(has ? [times, verdict(row.wanted, share)] : [])];
  });
  return table(head, lines);
}

function many(tools, rows, found) {
  const has = tools.includes("ours");
  const head = ["pictures a second (calls failed)", ...tools, ...(has ? ["ours / Playwright", "wanted"] : [])];
  const lines = rows.map((row) => {
    const of = (tool) => found.get(row.name)?.[tool];
    const shown = (of) => (of ? `${number(of.perSecond)}${of.failures ? ` (${of.failures})` : ""}` : "–");
    const share = of("ours")?.perSecond / of("playwright")?.perSecond;
    const more = has ? [Number.isFinite(share) ? `${number(share)}x` : "–", verdict(row.wanted, share)] : [];
    return [row.name, ...tools.map((tool) => shown(of(tool))), ...more];
  });
  return table(head, lines);
}

function pixels(tools, rows, found) {
  const shown = (difference) => {
    if (difference === undefined) return "–";
    if (typeof difference === "string") return difference;
    if (difference === null) return "**another size**";
    if (difference.pixels === 0) return "same";
    return `${difference.pixels} pixels differ, by at most ${difference.most}`;
  };
  const others = tools.filter((tool) => tool !== "playwright");
  const lines = rows.map((row) => [row.name, ...others.map((tool) => shown(found.get(row.name)?.[tool]))]);
  return table(["against Playwright's pixels", ...others], lines);
}

function memory(tools, found) {
  const megabytes = (bytes) => (bytes ? (bytes / 2 ** 20).toFixed(1) : "–");
  const head = ["MB of the driving process", ...tools];
  const lines = [
    ["before the first row", ...tools.map((tool) => megabytes(found[tool]?.before))],
    ["after the last row", ...tools.map((tool) => megabytes(found[tool]?.after))],
  ];
  const share = found.playwright?.after / found.ours?.after;
  const said = Number.isFinite(share) ? `\n\nPlaywright / ours: ${number(share)}x (wanted ${verdict(MEMORY_WANTED, share)}).` : "";
  return table(head, lines) + said;
}

function chain(rows, found) {
  const lines = rows
    .filter((row) => row.kind === "png" && found.get(row.name)?.ours && found.get(row.name)?.bare)
    .map((row) => {
      const { ours, bare } = found.get(row.name);
      const adds = ours.median - bare.median;
      const most = Math.max(CHAIN_ADDS.ms, CHAIN_ADDS.share * bare.median);
      return [row.name, number(bare.median), number(ours.median), adds.toFixed(1), adds <= most ? "met" : "**missed**"];
    });
  const head = ["ms", "bare CDP", "ours", "added", `at most ${CHAIN_ADDS.share * 100} % or ${CHAIN_ADDS.ms} ms`];
  return lines.length > 0 ? `\n## What the chain adds\n\n${table(head, lines)}\n` : "";
}

/** The machine in words that say what matters for speed, and nothing that names it. */
function machine(about) {
  const [cpu] = cpus();
  let system = platform();
  try {
    system = /PRETTY_NAME="(.*)"/.exec(readFileSync("/etc/os-release", "utf8"))[1];
  } catch {
    // Not every system has the file.
  }
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`;
  return `${cpus().length} cores (${cpu.model.trim()}, ${arch()}), ${memory}, ${system}; ${about.versions}; ${about.gpu}.`;
}

/** The whole of `RESULTS.md`. */
export function markdown({ about, tools, timedRows, manyRows, comparedRows, found }) {
  return `# Results of \`make bench\`

${new Date().toISOString().slice(0, 10)}. ${machine(about)}

Blocks of ${about.n} alternate between the tools in ${about.rounds} rounds, on one Chromium binary with the same GPU switches and the same pages.
"ours" is timed from an HTTP client through the embedded relay, the WebSocket, the router and CDP, until the picture is
decoded from its parts. "puppeteer-fast" is Puppeteer told \`optimizeForSpeed\`; Playwright has no such option. "bare" is
\`Page.captureScreenshot\` with \`optimizeForSpeed\` over the debugging pipe and nothing around it.

${timed(tools, timedRows, found.timed)}

${many(tools, manyRows, found.many)}

${memory(tools, found.memory)}
${chain(timedRows, found.timed)}
## Pixels

${pixels(tools, comparedRows, found.pixels)}
${about.troubles.length > 0 ? `\n## What failed\n\n${about.troubles.map((trouble) => `- ${trouble}`).join("\n")}\n` : ""}`;
}
