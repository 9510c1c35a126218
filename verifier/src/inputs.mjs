// Inputs: columns of a raw table and the features that they become. docs/inputs.md.

import { count, distinct, field, list, number, text } from "./fields.mjs";
import { within } from "./limits.mjs";
import { demand, shown } from "./refusal.mjs";

const SPACES = "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
const OUTER = new RegExp(`^${SPACES}|${SPACES}$`, "u");

/** The inputs of a content; without any, as in format version 1, columns are the features. */
export class Inputs {
  constructor(columns, copies) {
    this.columns = columns;
    this.copies = copies;
    const filled = columns.filter((column) => column.fill !== null);
    const own = columns.flatMap((column) => column.features);
    this.encoded = [...own, ...filled.map((column) => `missing(${column.name})`)];
    this.checkCopies();
    this.sources = copies.length > 0 ? copies : this.encoded.map((_, i) => i);
    this.counts = this.encoded.map(() => 0);
    for (const source of this.sources) this.counts[source] += 1;
    let end = 0;
    this.firsts = this.counts.map((n) => (end += n) - n);
    this.features = this.sources.map((source, j) => this.copyName(source, j));
    distinct(columns.map((column) => column.name), "columns");
    const several = this.features.filter((_, j) => this.counts[this.sources[j]] > 1);
    distinct([...this.encoded, ...several], "features");
  }

  copyName(source, j) {
    const name = this.encoded[source];
    return this.counts[source] > 1 ? `${name}[${j - this.firsts[source]}]` : name;
  }

  checkCopies() {
    const { copies } = this;
    if (copies.length === 0) return;
    const begins = copies[0] === 0 && copies.at(-1) === this.encoded.length - 1;
    const ascends = copies.every((source, j) => j === 0 || source - copies[j - 1] <= 1);
    const sorted = copies.every((source, j) => j === 0 || source >= copies[j - 1]);
    demand(begins && ascends && sorted, "copies must name every feature by its number, ascending");
  }

  get isPlain() {
    return this.columns.every((column) => column.kind === "number" && column.fill === null);
  }

  /** The number of the first feature of a column. */
  place(column) {
    let place = 0;
    for (const other of this.columns) {
      if (other === column) return place;
      place += other.features.length;
    }
    return place;
  }

  /** The number of the feature that flags missing values of a column, or -1. */
  indicator(column) {
    return column.kind === "category"
      ? column.categories.includes(null) ? this.place(column) + column.categories.indexOf(null) : -1
      : column.fill === null ? -1 : this.encoded.lastIndexOf(`missing(${column.name})`);
  }

  /** What the fingerprint says of them. */
  get definition() {
    return { columns: this.columns.map(describe), copies: this.copies.map(BigInt) };
  }

  static numbers(names) {
    return new Inputs(names.map((name) => make("number", { name, fill: null })), []);
  }

  static read(value) {
    const copies = list(field(value, "copies")).map((k) => count(k, 0));
    return new Inputs(list(field(value, "columns")).map(readColumn), copies);
  }
}

function describe({ kind, name, fill, categories, pooled }) {
  if (kind === "number") return { kind, name, fill };
  if (kind === "ordered") return { kind, name, categories, fill };
  return { kind, name, categories, ...(pooled > 0 ? { pooled: BigInt(pooled) } : {}) };
}

function make(kind, { name, fill = null, categories = [], pooled = 0 }) {
  wellFormed(name);
  const own = categories.map((c) => (c === null ? `missing(${name})` : `${name}=${c}`));
  const features = kind === "category" ? [...own, ...(pooled > 0 ? [`other(${name})`] : [])] : [name];
  return { kind, name, fill, categories, pooled, features };
}

const KEYS = {
  number: ["name", "fill"],
  category: ["name", "categories", "pooled"],
  ordered: ["name", "categories", "fill"],
};

/** A column of format version 2. */
export function readColumn(value) {
  const kind = field(value, "kind");
  demand(typeof kind === "string" && Object.hasOwn(KEYS, kind), `a column has the kind ${shown(kind)}`);
  for (const key of value.keys()) {
    demand(key === "kind" || KEYS[kind].includes(key), `a column has the key ${shown(key)}`);
  }
  const name = text(field(value, "name"));
  if (kind === "number") return make(kind, { name, fill: readFill(value) });
  const categories = list(field(value, "categories"));
  const pooled = kind === "category" && value.has("pooled") ? count(value.get("pooled"), 0) : 0;
  checkCategories(name, kind === "ordered" ? categories : categories.filter((c) => c !== null), pooled);
  const column = make(kind, { name, categories, pooled, fill: kind === "ordered" ? readFill(value) : null });
  const fits = column.fill === null || (column.fill >= 0 && column.fill <= categories.length - 1);
  demand(fits, `the fill of ${shown(name)} is not a rank`);
  return column;
}

function readFill(value) {
  const fill = value.get("fill") ?? null;
  return fill === null ? null : number(fill) + 0;
}

function wellFormed(value) {
  demand(!/\p{Surrogate}/u.test(text(value)), "a name is not Unicode");
  return value;
}

function checkCategories(name, categories, pooled) {
  within("features", categories.length);
  demand(categories.length > 0 || pooled > 0, `the column ${shown(name)} has no categories`);
  for (const category of categories) {
    const fits = wellFormed(category) !== "" && !OUTER.test(category);
    demand(fits, `the category ${shown(category)} is empty or has spaces around it`);
  }
  distinct(categories, `categories of ${shown(name)}`);
}
