// Pixels of a PNG as the tools here make them: 8 bits, RGB or RGBA, not interlaced.
import { inflateSync } from "node:zlib";

/** Decodes to `{width, height, pixels}`, with RGBA pixels. */
export function decode(file) {
  if (file.toString("latin1", 1, 4) !== "PNG") throw new Error("not a PNG");
  const width = file.readUInt32BE(16);
  const height = file.readUInt32BE(20);
  const [depth, color, , , interlaced] = file.subarray(24, 29);
  const samples = { 2: 3, 6: 4 }[color];
  if (depth !== 8 || !samples || interlaced) throw new Error(`PNG of depth ${depth}, colour ${color}`);
  const data = [];
  for (let at = 8; at < file.length; ) {
    const length = file.readUInt32BE(at);
    if (file.toString("latin1", at + 4, at + 8) === "IDAT") data.push(file.subarray(at + 8, at + 8 + length));
    at += length + 12;
  }
  return { width, height, pixels: unfilter(inflateSync(Buffer.concat(data)), width, height, samples) };
}

function unfilter(raw, width, height, samples) {
  const stride = width * samples;
  const pixels = Buffer.alloc(width * height * 4, 255);
  let above = Buffer.alloc(stride);
  for (let y = 0; y < height; y++) {
    const filter = raw[y * (stride + 1)];
    const row = raw.subarray(y * (stride + 1) + 1, (y + 1) * (stride + 1));
    if (filter > 0) {
      const predict = PREDICTORS[filter];
      for (let x = 0; x < stride; x++) {
        const inside = x >= samples;
        row[x] += predict(inside ? row[x - samples] : 0, above[x], inside ? above[x - samples] : 0);
      }
    }
    for (let from = 0, to = y * width * 4; from < stride; from += samples, to += 4) {
      for (let sample = 0; sample < samples; sample++) pixels[to + sample] = row[from + sample];
    }
    above = row;
  }
  return pixels;
}

const PREDICTORS = [null, (left) => left, (_, up) => up, (left, up) => (left + up) >> 1, paeth];

function paeth(left, up, corner) {
  const [a, b, c] = [Math.abs(up - corner), Math.abs(left - corner), Math.abs(left + up - 2 * corner)];
  return a <= b && a <= c ? left : b <= c ? up : corner;
}

/** How two pictures differ: null where they are of different sizes. */
export function difference(one, other) {
  if (one.width !== other.width || one.height !== other.height) return null;
  if (one.pixels.equals(other.pixels)) return { pixels: 0, most: 0 };
  let pixels = 0;
  let most = 0;
  for (let at = 0; at < one.pixels.length; at += 4) {
    let worst = 0;
    for (let sample = 0; sample < 4; sample++) {
      worst = Math.max(worst, Math.abs(one.pixels[at + sample] - other.pixels[at + sample]));
    }
    if (worst > 0) pixels++;
    most = Math.max(most, worst);
  }
  return { pixels, most };
}

/** Whether all pixels have one colour. */
export function isBlank({ pixels }) {
  return pixels.subarray(4).equals(pixels.subarray(0, -4));
}
