// The table: a CSV file as columns of texts. Commas, quotes that are doubled, a first line of names.

import { Problem, listed, quoted } from "../problem.mjs";

const SPACES = "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
const OUTER = new RegExp(`^${SPACES}+|${SPACES}+$`, "gu");

export class Table {
  /** `cells` are texts by column, null where a cell is empty. */
  constructor(name, names, cells) {
    Object.assign(this, { name, names, cells, n: cells[0].length });
  }

  has(name) {
    return this.names.filter((other) => other === name).length === 1;
  }

  column(name) {
    return this.cells[this.names.indexOf(name)];
  }

  /** Refuse a table that lacks a column, or has two of the same name. */
  require(needed) {
    for (const name of needed) {
      const n = this.names.filter((other) => other === name).length;
      if (n === 1) continue;
      if (n > 1) {
        const given = `${quoted(this.name)} has ${n} columns ${quoted(name)}`;
        throw new Problem(given, "the model needs one of each", "rename all but one");
      }
      const single = this.names.length === 1 && /[;\t|]/.test(this.names[0]);
      const advice = single
        ? "separate the columns of the file with commas"
        : `add it, or rename one of its columns, which are ${listed(this.names, 12)}`;
      throw new Problem(
        `${quoted(this.name)} has no column ${quoted(name)}`,
        `the model needs the columns ${listed(needed, 12)}`, advice,
      );
    }
  }
}

/** The table in the bytes of a CSV file. */
export function readTable(name, bytes) {
  const lines = split(decode(name, bytes), name);
  if (lines.length === 0) {
    throw new Problem(`${quoted(name)} is empty`, "a table has a line of names and lines of values", "choose another file");
  }
  const names = lines[0].map((text) => text ?? "");
  lines.forEach((line, k) => {
    if (line.length !== names.length) {
      throw new Problem(
        `row ${k - 1} of ${quoted(name)} (data rows, counted from 0) has ${line.length} cells`,
        `the first line names ${names.length} columns, and every row needs as many`,
        "put texts that hold commas between quotes, or correct the row",
      );
    }
  });
  if (lines.length === 1) {
    throw new Problem(`${quoted(name)} has names but no rows`, "there must be rows to score", "choose another file");
  }
  const cells = names.map((_, c) => lines.slice(1).map((line) => line[c]));
  return new Table(name, names, cells);
}

function decode(name, bytes) {
  const must = "a table is a CSV file, text in UTF-8 with commas";
  if (bytes[0] === 0x50 && bytes[1] === 0x41 && bytes[2] === 0x52) {
    throw new Problem(`${quoted(name)} is a Parquet file`, must, "convert it, or use isotone report, which reads Parquet");
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new Problem(`${quoted(name)} is not text in UTF-8`, must, "save it as CSV in UTF-8");
  }
}

/** Lines of cells; empty lines do not count. */
function split(text, name) {
  const lines = [];
  let line = [], at = 0;
  while (at < text.length) {
    const [cell, end] = text[at] === '"' ? inQuotes(text, at, name) : plain(text, at);
    line.push(cell === "" ? null : cell);
    const mark = text[end];
    at = end + (mark === "\r" && text[end + 1] === "\n" ? 2 : 1);
    if (mark === "," && at < text.length) continue;
    if (mark === ",") line.push(null);
    if (line.length > 1 || line[0] !== null) lines.push(line);
    line = [];
  }
  return lines;
}

/** A cell from its first character on, and where it ends. */
function plain(text, start) {
  let end = start;
  while (end < text.length && text[end] !== "," && text[end] !== "\n" && text[end] !== "\r") end += 1;
  return [text.slice(start, end), end];
}

function inQuotes(text, start, name) {
  let end = start + 1;
  for (;;) {
    end = text.indexOf('"', end);
    if (end < 0) {
      const must = "texts end with the quote that they begin with";
      throw new Problem(`a quote in ${quoted(name)} is never closed`, must, "correct the file");
    }
    if (text[end + 1] !== '"') break;
    end += 2;
  }
  const [rest, after] = plain(text, end + 1);
  return [text.slice(start + 1, end).replaceAll('""', '"') + rest, after];
}

const BLANK = new Set(["", "-", "?", "na", "n/a", "#n/a", "nan", "null", "none"]);
const DECIMAL = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;

/** A text without spaces around it; null for an empty one. */
export function label(cell) {
  const text = cell === null ? "" : cell.replace(OUTER, "");
  return text === "" ? null : text;
}

/** The number in a cell: NaN if it says nothing, infinite if it says something else. */
export function numberOf(cell) {
  const text = label(cell) ?? "";
  if (DECIMAL.test(text)) return Number(text);
  const word = text.toLowerCase();
  if (word === "true") return 1;
  if (word === "false") return 0;
  return BLANK.has(word) ? NaN : Infinity;
}
