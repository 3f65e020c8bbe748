// The rows of the bench, and what is wanted of ours against Playwright in each.

const SIZES = [
  [1280, 720],
  [1920, 1080],
  [3840, 2160],
];

const sized = (kind, page, name, wanted) =>
  SIZES.map(([width, height]) => ({
    kind,
    page,
    width,
    height,
    name: `${name}, ${width}x${height}`,
    wanted: wanted?.[width],
  }));

/** Rows that are timed in blocks, ours and theirs in turn. */
export const TIMED = [
  ...sized("png", "dom", "PNG of a DOM page", { 1280: 2, 3840: 3 }),
  ...sized("png", "webgl", "PNG of an animated WebGL page", { 1280: 2.5, 3840: 2.5 }),
  { kind: "png", page: "webgpu", width: 1280, height: 720, name: "PNG of an animated WebGPU page, 1280x720" },
  ...sized("loop", "dom", "open, load, PNG, close: DOM", { 1280: 4, 1920: 4, 3840: 4 }),
  ...sized("loop", "webgl", "open, load, PNG, close: WebGL", { 1280: 4, 1920: 4, 3840: 4 }),
  ...sized("full", "tall", "full page of 9,000 px"),
  { kind: "eval", page: "dom", width: 1280, height: 720, name: "eval of 1+1", scale: 20 },
  { kind: "evalbig", page: "dom", width: 1280, height: 720, name: "eval that returns 2.5 MB" },
];

/** Rows of several pages at once, in pictures a second. */
export const MANY = [
  { page: "dom", width: 1280, height: 720, name: "8 pages at once, DOM", wanted: 4.5 },
  { page: "webgl", width: 1280, height: 720, name: "8 pages at once, WebGL", wanted: 2.5 },
];

/** Pages whose pictures are compared, standing still. */
export const COMPARED = [
  ...sized("save", "dom", "DOM"),
  ...sized("save", "webgl", "WebGL"),
  { page: "webgpu", width: 1280, height: 720, name: "WebGPU, 1280x720" },
  { page: "tall", width: 1280, height: 720, fullPage: true, name: "full page of 9,000 px, 1280x720" },
];

/** How many times the driver's memory Playwright's Node process is wanted to have. */
export const MEMORY_WANTED = 6;

/** What our chain may add to the bare call: the larger of a share and a time. */
export const CHAIN_ADDS = { share: 0.15, ms: 3 };
