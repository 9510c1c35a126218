// The file: a header of JSON, arrays of numbers, and a SHA-256 over both. docs/model-file.md.

import { parseJson } from "./json.mjs";
import { LIMITS, within } from "./limits.mjs";
import { demand, shown } from "./refusal.mjs";
import { sha256 } from "./sha256.mjs";
import { byCodePoint, quoted } from "./text.mjs";

const SIZES = { F64: 8, F32: 4 };
const encoder = new TextEncoder();

/** An array of the file; `values` are its numbers as float64, which holds float32 exactly. */
class Stored {
  constructor(name, kind, shape, bytes) {
    Object.assign(this, { name, kind, shape, bytes });
  }

  /** The same numbers in float64. */
  get wide() {
    const bytes = new Uint8Array(this.values.length * 8), view = new DataView(bytes.buffer);
    this.values.forEach((x, k) => view.setFloat64(8 * k, x, true));
    return new Stored(this.name, "F64", this.shape, bytes);
  }

  get values() {
    const read = this.kind === "F64" ? "getFloat64" : "getFloat32";
    const size = SIZES[this.kind];
    const view = new DataView(this.bytes.buffer, this.bytes.byteOffset, this.bytes.byteLength);
    const found = new Float64Array(this.bytes.length / size);
    for (let k = 0; k < found.length; k += 1) found[k] = view[read](k * size, true);
    return found;
  }
}

/** Content and arrays of a model file, given its bytes. */
export function readModelFile(bytes) {
  demand(bytes.length >= 8, "the file is too short for a header; it was cut off");
  const length = new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true);
  demand(length <= LIMITS.header[0], "the file is not a model: its first bytes are no length");
  const start = 8 + Number(length);
  demand(start <= bytes.length, "the file is too short for its header; it was cut off");
  const header = parseJson(decode(bytes.subarray(8, start)));
  demand(header instanceof Map, "the header is not an object");
  const meta = metadata(header.get("__metadata__"));
  header.delete("__metadata__");
  const arrays = cut(header, bytes.subarray(start));
  return { content: content(meta, arrays), arrays };
}

function decode(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return demand(false, "the header is not UTF-8");
  }
}

function metadata(value) {
  const text = value instanceof Map ? value.get("isotone") : undefined;
  demand(typeof text === "string", "the file has no isotone metadata; it is of another kind");
  const meta = parseJson(text);
  demand(meta instanceof Map, "the metadata is not an object");
  const format = meta.get("format");
  demand(typeof format === "bigint", "the file has no format version");
  demand(format === 1n || format === 2n, `the format version ${shown(format)} is unknown`);
  return meta;
}

function content(meta, arrays) {
  const text = meta.get("content");
  demand(typeof text === "string" && !/\p{Surrogate}/u.test(text), "the file has no content");
  const matches = meta.get("checksum") === checksum(text, arrays);
  demand(matches, "the file does not match its checksum; it was altered or damaged");
  const found = parseJson(text);
  demand(found instanceof Map, "the content is not an object");
  return found;
}

function cut(header, data) {
  within("tensors", header.size);
  const places = [...header].map(([name, entry]) => place(name, entry));
  const total = places.reduce((n, p) => n + p.size, 0);
  within("bytes", total);
  demand(total === data.length, `${total} bytes of numbers are declared, ${data.length} are there`);
  places.sort((a, b) => a.start - b.start);
  let end = 0;
  for (const p of places) {
    demand(p.start === end && p.end === end + p.size, `the array ${shown(p.name)} is misplaced`);
    end = p.end;
  }
  return new Map(places.map((p) => [p.name, p.stored(data)]));
}

function place(name, entry) {
  const malformed = `the header entry of ${shown(name)} is malformed`;
  demand(entry instanceof Map, malformed);
  const [kind, shape, offsets] = ["dtype", "shape", "data_offsets"].map((key) => entry.get(key));
  demand(typeof kind === "string" && Object.hasOwn(SIZES, kind), malformed);
  demand(Array.isArray(shape) && shape.length <= 2, malformed);
  demand(Array.isArray(offsets) && offsets.length === 2, malformed);
  demand([...shape, ...offsets].every((n) => typeof n === "bigint" && n >= 0n), malformed);
  demand(shape.every((n) => n > 0n && n <= LIMITS.matrix[0]), malformed);
  demand(offsets.every((n) => n <= 2n ** 52n), malformed);
  const [start, end] = offsets.map(Number), sizes = shape.map(Number);
  const size = SIZES[kind] * sizes.reduce((a, b) => a * b, 1);
  const stored = (data) => new Stored(name, kind, sizes, data.subarray(start, end));
  return { name, start, end, size, stored };
}

/** SHA-256 over a text and every array: names, types, shapes and numbers. */
export function checksum(text, arrays) {
  const pieces = [encoder.encode(text)];
  for (const name of [...arrays.keys()].sort(byCodePoint)) {
    const { kind, shape, bytes } = arrays.get(name);
    const type = `<f${SIZES[kind]}`;
    pieces.push(encoder.encode(`[${quoted(name)}, "${type}", [${shape.join(", ")}]]`), bytes);
  }
  return sha256(pieces);
}
