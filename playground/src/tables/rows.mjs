// Rows: a table as the model takes it, and what the rows truly are. docs/inputs.md.

import { Problem, listed, quoted } from "../problem.mjs";
import { label, numberOf } from "./table.mjs";

const MAX_COLUMNS = 60; // that rates are shown against
const MAX_GROUPS = 12; // values of a column of text

/**
 * The rows of a table that the model can score.
 *
 * `X` are arrays by feature, `numbers` the places of the rows in the table, `y` classes or observed
 * values or null, `columns` what rates are shown against: arrays of numbers, or of texts.
 */
export class Rows {
  constructor(model, table, outcomes, { target = null, unseen = "error" }) {
    table.require(model.inputs.columns.map((column) => column.name));
    const encoded = encode(model, table, unseen);
    this.numbers = Array.from({ length: table.n }, (_, row) => row).filter((row) => encoded.known[row]);
    if (this.numbers.length === 0) {
      throw new Problem(
        `no row of ${quoted(table.name)} has values that the model knows`, "some row must have",
        "give the table that the model is for",
      );
    }
    const chosen = (values) => Float64Array.from(this.numbers, (row) => values[row]);
    this.X = encoded.features.map(chosen);
    Object.assign(this, { name: table.name, target, n: this.numbers.length, nLeftOut: table.n - this.numbers.length });
    this.y = target === null ? null : chosen(truth(table, target, outcomes));
    this.columns = shownColumns(table, target, this.numbers);
  }

  /** The features of one row. */
  row(k) {
    return this.X.map((values) => values[k]);
  }

  describe() {
    return { name: this.name, n: this.n, target: this.target, weights: null, trained: false, n_left_out: this.nLeftOut };
  }
}

/** Features of all rows, and which rows have some; a policy tells what becomes of the others. */
function encode(model, table, unseen) {
  const { columns } = model.inputs;
  const codes = columns.map((column) => codesOf(column, table.column(column.name)));
  const features = [], indicators = [];
  columns.forEach((column, c) => {
    const own = expand(column, unseen === "missing" ? asMissing(column, codes[c]) : codes[c]);
    if (column.fill !== null) {
      indicators.push(own[0].map((x) => (Number.isNaN(x) ? 1 : 0)));
      own[0] = own[0].map((x) => (Number.isNaN(x) ? column.fill : x));
    }
    features.push(...own);
  });
  features.push(...indicators);
  const known = Array.from({ length: table.n }, (_, row) => features.every((values) => Number.isFinite(values[row])));
  if (unseen === "error" && !known.every(Boolean)) refuse(model, table, codes, known);
  return { features, known };
}

/** One number per row: NaN where missing, infinite where training never saw it. */
function codesOf(column, cells) {
  if (column.kind === "number") return Float64Array.from(cells, numberOf);
  const places = new Map([[null, NaN], ...column.categories.map((text, k) => [text, k])]);
  const other = column.pooled > 0 ? column.categories.length : Infinity;
  return Float64Array.from(cells, (cell) => places.get(label(cell)) ?? other);
}

/** A number or a rank as it is, a category as one feature for every place. */
function expand(column, codes) {
  if (column.kind !== "category") return [codes];
  return column.features.map((_, k) => codes.map((code) => (Number.isFinite(code) ? Number(code === k) : code)));
}

const NONE = -1; // a category that is none of those known

/** What was never seen as if it were missing. */
function asMissing(column, codes) {
  if (column.kind !== "category") return codes.map((code) => (code === Infinity ? NaN : code));
  const place = column.categories.indexOf(null);
  return codes.map((code) => (Number.isFinite(code) ? code : place >= 0 ? place : NONE));
}

/** Say what is wrong with the first row that is not known, and with how many. */
function refuse({ inputs }, table, codes, known) {
  const row = known.indexOf(false);
  const c = codes.findIndex((each, k) => each[row] === Infinity || (Number.isNaN(each[row]) && inputs.columns[k].fill === null));
  const column = inputs.columns[c], cell = label(table.column(column.name)[row]);
  const missing = Number.isNaN(codes[c][row]);
  const given = `column ${quoted(column.name)} ${missing ? "is missing" : `holds ${quoted(cell ?? "")}`} in row ${row} of `
    + `${quoted(table.name)} (data rows, counted from 0), and ${count(known)}`;
  const advice = "correct such rows, or choose below what becomes of them";
  throw new Problem(given, expected(column, missing), advice, { unseen: true });
}

function count(known) {
  const n = known.filter((is) => !is).length;
  return n === 1 ? "that is the only such row" : `${n.toLocaleString("en-US")} rows hold what training never saw`;
}

function expected(column, missing) {
  if (missing) return "the model has not learned what a missing value means there, so every row needs one";
  if (column.kind === "number") return `every row needs a finite number${column.fill === null ? "" : ", or none"}`;
  return `its categories are ${listed(column.categories.filter((text) => text !== null))}`;
}

/** Numbers of the classes of all rows, or observed values. */
function truth(table, name, outcomes) {
  const cells = table.column(name);
  const found = outcomes.kind === "values" ? Float64Array.from(cells, numberOf) : classNumbers(cells, outcomes.classes);
  const row = found.findIndex((y) => !Number.isFinite(y));
  if (row < 0) return found;
  const cell = cells[row] === null ? "empty" : quoted(cells[row]);
  throw new Problem(
    `the target ${quoted(name)} is ${cell} in row ${row} (data rows, counted from 0)`,
    outcomes.kind === "values" ? "every row needs a finite number" : `the model knows the classes ${listed(outcomes.classes)}`,
    "choose another target column, or none",
  );
}

/** Matched as text, and where that fails as numbers: 1.0, and true, is the class 1. */
function classNumbers(cells, classes) {
  const places = new Map(classes.map((text, k) => [text, k]));
  const values = classes.map(numberOf);
  return Float64Array.from(cells, (cell) => {
    const place = places.get(label(cell));
    if (place !== undefined) return place;
    const value = numberOf(cell), found = Number.isFinite(value) ? values.indexOf(value) : -1;
    return found < 0 ? NaN : found;
  });
}

/** Whether a column could be the target: its cells are classes, or numbers. */
export function couldBeTarget(table, name, outcomes) {
  if (!table.has(name) || (outcomes.kind === "values" && outcomes.outputs.length > 1)) return false;
  const cells = table.column(name);
  const found = outcomes.kind === "values" ? Float64Array.from(cells, numberOf) : classNumbers(cells, outcomes.classes);
  return found.every(Number.isFinite);
}

/** Columns to show rates against: numbers, or texts of a few kinds. */
function shownColumns(table, target, numbers) {
  const names = table.names.filter((name) => name !== target && table.has(name)).slice(0, MAX_COLUMNS);
  const found = names.map((name) => [name, shownColumn(numbers.map((row) => table.column(name)[row]))]);
  return new Map(found.filter(([, column]) => column !== null));
}

function shownColumn(cells) {
  const values = Float64Array.from(cells, numberOf);
  const head = values.slice(0, 1000);
  if (!head.some(Number.isFinite) && !head.every(Number.isNaN)) {
    const texts = cells.map((cell) => label(cell) ?? "(none)");
    return new Set(texts).size <= MAX_GROUPS ? texts : null;
  }
  return values.some(Number.isFinite) ? values.map((x) => (Number.isFinite(x) ? x : NaN)) : null;
}

