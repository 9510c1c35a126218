// Stops: thresholds that the page can move to, and what all rows of the table do at each; and rows to begin with.

import { below, linspace, quantile, sorted } from "./quantiles.mjs";

const N_STOPS = 100;
const FINE = 2000; // stops are rounded to about this fraction of the range of the scores
const MIN_GROUP = 20; // rows behind a median
const MOST_GROUPS = 32;
const MOST_ROWS = 2000; // of a table that the page shows one by one

/** Round numbers among the scores, ascending, with the declared threshold; null without one. */
export function stopsOf({ threshold }, scores) {
  if (threshold === null) return null;
  const ascending = sorted(scores), [low, high] = [ascending[0], ascending.at(-1)];
  const levels = linspace(0, 1, N_STOPS / 2);
  const spread = [...levels.map((level) => quantile(ascending, level)), ...levels.map((level) => low + level * (high - low))];
  const unit = high > low ? 10 ** Math.floor(Math.log10((high - low) / FINE)) : null;
  const rounded = spread.map((stop) => (unit === null ? stop : isotone.elementary.rint(stop / unit) * unit));
  return [...new Set([...rounded.map((stop) => Number(stop.toPrecision(12)) + 0), threshold])].sort((a, b) => a - b);
}

/** At every stop the number of rows that are accepted, by class if that is known. */
export function describeStops(outcomes, { y }, scores, stops) {
  if (stops === null) return null;
  const every = Array.from(scores, (_, row) => row);
  const parts = y === null ? { all: every } : {
    positive: every.filter((row) => y[row] === 1), negative: every.filter((row) => y[row] === 0),
  };
  const over = (of) => Object.fromEntries(Object.entries(parts).map(([name, rows]) => [name, of(rows)]));
  return {
    at: stops,
    start: stops.indexOf(outcomes.threshold),
    total: over((rows) => rows.length),
    accepted: over((rows) => {
      const ascending = sorted(rows.map((row) => scores[row]));
      return stops.map((stop) => ascending.length - below(ascending, stop));
    }),
  };
}

/** Numbers of rows in every bin of a column, by how many stops their scores reach; {} without stops. */
export function byStop(index, scores, stops, n, has) {
  if (stops === null) return {};
  const between = Array.from({ length: n }, () => Array(stops.length + 1).fill(0));
  index.forEach((bin, row) => { if (bin >= 0 && has(row)) between[bin][below(stops, scores[row], true)] += 1; });
  return { effective: between.map((rows) => rows.reduce((sum, m) => sum + m, 0)), between };
}

/** Rows to begin with, by name: medians of classes and of the lowest and highest scores, and single rows. */
export function presetsOf(controls, outcomes, rows, scored) {
  const { scores } = scored;
  const { y } = rows, groups = [];
  const classes = y === null ? [] : outcomes.classes.slice(0, 8);
  classes.forEach((_, k) => groups.push([`median of ${outcomes.name(k)}`, (row) => y[row] === k]));
  if (scores.length === 1) {
    const [low, high] = [0.1, 0.9].map((level) => quantile(sorted(scores[0]), level));
    groups.push(["median of the lowest tenth of scores", (row) => scores[0][row] <= low]);
    groups.push(["median of the highest tenth of scores", (row) => scores[0][row] >= high]);
  }
  const typical = groups.map(([name, has]) => [name, part(rows, has)]).filter(([, some]) => some.n >= MIN_GROUP);
  const medians = typical.map(([name, some]) => ({ name, number: null, row: controls.start(some) }));
  const single = extremes(outcomes, rows, scored).map(([name, k]) => ({ name, number: rows.numbers[k], row: rows.row(k) }));
  return [...medians, ...single];
}

/** Medians of groups of about equally many rows with similar scores, to compare a row with. */
export function backgroundOf(controls, rows, { scores }) {
  const n = Math.min(Math.floor(rows.n / MIN_GROUP), MOST_GROUPS);
  if (n < 2) return [];
  const order = Array.from({ length: rows.n }, (_, row) => row).sort((a, b) => scores[0][a] - scores[0][b] || a - b);
  const group = new Map(order.map((row, k) => [row, groupOf(k, rows.n, n)]));
  return Array.from({ length: n }, (_, g) => controls.start(part(rows, (row) => group.get(row) === g)));
}

/** Of n groups among all rows the first ones have one row more. */
function groupOf(k, all, n) {
  const [size, more] = [Math.floor(all / n), all % n];
  return k < more * (size + 1) ? Math.floor(k / (size + 1)) : more + Math.floor((k - more * (size + 1)) / size);
}

/** Some of the rows. */
function part(rows, has) {
  const X = rows.X.map((values) => values.filter((_, row) => has(row)));
  return { X, n: X[0].length };
}

function extremes(outcomes, { y }, { scores, probability }) {
  const best = (values, of) => values.reduce((found, x, k) => (of(x) > of(values[found]) ? k : found), 0);
  if (outcomes.kind === "classes") {
    const surest = probability.slice(0, 8).map((values, k) => [`surest of ${outcomes.name(k)}`, best(values, (p) => p)]);
    const leads = scores[0].map((_, row) => {
      const [first, second] = scores.map((values) => values[row]).sort((a, b) => b - a);
      return first - second;
    });
    return [...surest, ["closest decision", best(leads, (lead) => -lead)]];
  }
  if (scores.length > 1) {
    return outcomes.outputs.slice(0, 8).flatMap((name, k) => [
      [`lowest ${name}`, best(scores[k], (x) => -x)], [`highest ${name}`, best(scores[k], (x) => x)],
    ]);
  }
  const found = [["lowest score", best(scores[0], (x) => -x)], ["highest score", best(scores[0], (x) => x)]];
  if (outcomes.threshold === null) {
    return y === null ? found : [...found, ["worst prediction", best(scores[0].map((x, row) => Math.abs(x - y[row])), (x) => x)]];
  }
  return [...found, ["closest decision", best(scores[0], (x) => -Math.abs(x - outcomes.threshold))]];
}

/** Rows that the page shows one by one: all, or as many, evenly spaced. */
export function shownRows(rows) {
  const n = Math.min(rows.n, MOST_ROWS);
  const places = Array.from({ length: n }, (_, k) => Math.floor((k * rows.n) / n));
  return {
    number: places.map((place) => rows.numbers[place]),
    columns: rows.X.map((values) => places.map((place) => values[place])),
    truth: rows.y === null ? null : places.map((place) => rows.y[place]),
  };
}
