// Missing values: a row without a value against the same row with any value. docs/last-bit.md.
//
// Only inputs of one column differ, by d = u(missing) - u(value), and the score with the value missing,
// times the direction, is higher by at least Σ (s r d - L |d|). Above the fill every d lies between that
// of the largest number and 0, below it between 0 and that of the smallest: each term is smallest at an end.

import { snap } from "./copies.mjs";
import { log } from "./elementary.mjs";
import { Rational, ZERO, smaller, sum } from "./rational.mjs";

/** What enters the network for the value x of the feature that input j is, or is a copy of. */
export function scaled(model, j, x) {
  const { scaling, inputs, grid, clip, precision } = model;
  const limit = inputs.counts[inputs.sources[j]] > 1 ? 1 : clip;
  const v = scaling.log[j] ? log(Math.max(x + scaling.offset[j], scaling.floor[j])) : x;
  const clamped = Math.min(Math.max((v - scaling.center[j]) * scaling.factor[j], -limit), limit);
  const snapped = grid === null ? clamped : snap(clamped, grid);
  return Rational.of(precision === "float32" ? Math.fround(snapped) : snapped);
}

/** The columns whose missing values may have a direction, with the inputs that flag them. */
export function missingColumns(model) {
  const { inputs } = model;
  return inputs.columns.flatMap((column) => {
    const feature = inputs.indicator(column);
    return feature < 0 ? [] : [{ column, feature, flags: copiesOf(inputs, feature) }];
  });
}

function copiesOf(inputs, feature) {
  return Array.from({ length: inputs.counts[feature] }, (_, k) => inputs.firsts[feature] + k);
}

/** The moves of inputs, each [input, d, whether d may also be anything between it and 0]. */
export function comparisons(model, { column, feature }) {
  const flag = moves(model, feature, 1, 0, false), { inputs } = model, place = inputs.place(column);
  if (column.kind === "category") {
    const others = column.features.map((_, k) => place + k).filter((k) => k !== feature);
    return others.map((k) => [...flag, ...moves(model, k, 0, 1, false)]);
  }
  const ends = column.kind === "ordered" ? [0, column.categories.length - 1] : [-Number.MAX_VALUE, Number.MAX_VALUE];
  return ends.map((end) => [...flag, ...moves(model, place, column.fill, end, true)]);
}

function moves(model, feature, from, to, partly) {
  return copiesOf(model.inputs, feature).map((j) => {
    return [j, scaled(model, j, from).minus(scaled(model, j, to)), partly];
  });
}

/** The least of Σ (s r d - L |d|) over all comparisons. */
export function leastChange(comparison, sign, residual, slopes) {
  return sum(comparison.map(([j, d, partly]) => {
    const term = residual(j).times(d).times(Rational.of(sign)).minus(slopes[j].times(d.abs()));
    return partly ? smaller(term, ZERO) : term;
  }));
}
