// The numbers of a network and of its certificate, as the scripts of the report take them.

import { topOf } from "../../verifier/src/copies.mjs";
import { Rational, TWO, ZERO, larger, sum } from "../../verifier/src/rational.mjs";
import { describe } from "../../verifier/src/steps.mjs";
import { keeps } from "./examination.mjs";
import { nearest } from "./rounding.mjs";

const FIRST = /^(0\.\d+\.)*0\.weight$/; // arrays of the steps that take the inputs of the network

/** Every number that decides a score, and the slopes and errors that are certified. */
export function describeNetwork(model, found) {
  const { precision, clip, grid, fingerprint, inputs, scaling, nOutputs } = model;
  const every = (of) => found.outputs.map((k) => inputs.encoded.map((_, i) => of(k, i)));
  return {
    precision, clip, grid, fingerprint,
    features: inputs.encoded,
    scaling: scaling.definition,
    counts: inputs.counts,
    ends: model.hasCopies ? endsOf(model) : null,
    steps: plainSteps(model),
    arrays: arraysOf(model),
    directions: every((k, i) => {
      const judged = found.direction(k, i);
      return judged !== null && keeps(judged) ? judged.direction : 0;
    }),
    declared: every((k, i) => found.declared(k, i)),
    slopes: every((k, i) => both(found.slope(k, i))),
    errors: found.errors === null ? Array(nOutputs).fill(null) : found.errors.map((error) => error.up()),
  };
}

function both(interval) {
  return interval === null ? [null, null] : [interval.low.down(), interval.high.up()];
}

/** Of every feature the smallest numbers at which its copies but the last are +1. */
function endsOf(model) {
  const { counts, firsts } = model.inputs;
  return counts.map((count, i) => Array.from({ length: count - 1 }, (_, k) => topOf(model, firsts[i] + k)));
}

/** Steps without their numbers; whole numbers as such. */
function plainSteps(model) {
  const text = JSON.stringify(describe(model.steps), (_, value) => (typeof value === "bigint" ? Number(value) : value));
  return JSON.parse(text);
}

/** All arrays by name, in base64; those of copies as they are looked up. */
function arraysOf(model) {
  const entries = [...model.arrays].map(([name, stored]) => {
    const looked = model.hasCopies && (name === "residual" || FIRST.test(name));
    return [name, base64(looked ? interleaved(model, stored) : stored.values, model.precision)];
  });
  return Object.fromEntries(entries);
}

/** What the engine looks up: C and W of copy after copy, (2 n, n_out). */
function interleaved(model, stored) {
  const [nOut, n] = stored.shape, weight = stored.values;
  const table = new Float64Array(2 * n * nOut);
  const cast = model.precision === "float32" ? Math.fround : (x) => x;
  for (let j = 0; j < nOut; j += 1) {
    model.inputs.counts.forEach((count, i) => {
      const first = model.inputs.firsts[i], row = weight.subarray(j * n + first, j * n + first + count);
      const still = count > 1 ? standing(row) : [0];
      row.forEach((w, k) => {
        table[2 * (first + k) * nOut + j] = cast(still[k]);
        table[(2 * (first + k) + 1) * nOut + j] = w;
      });
    });
  }
  return table;
}

/** For every number the sum of those before it less that of those after it, rounded once. */
function standing(row) {
  const exact = Array.from(row, (w) => Rational.of(w)), total = sum(exact);
  let before = ZERO;
  return exact.map((own) => {
    const result = nearest(before.times(TWO).plus(own).minus(total));
    before = before.plus(own);
    return result;
  });
}

/** All bits of numbers of a precision, little-endian. */
function base64(values, precision) {
  const bytes = new Uint8Array(new (precision === "float32" ? Float32Array : Float64Array)(values).buffer);
  let text = "";
  for (let k = 0; k < bytes.length; k += 8192) text += String.fromCharCode(...bytes.subarray(k, k + 8192));
  return btoa(text);
}

/** What the radius of a decision needs: one threshold, or every pair of classes; null without decisions. */
export function describeDecision(model, found, threshold) {
  if (model.ofClasses) {
    const rivals = found.outputs.map((k) => Object.fromEntries(
      found.outputs.filter((other) => other !== k).map((other) => [other, contest(found, k, other)]),
    ));
    return { kind: "classes", rivals };
  }
  if (threshold === null) return null;
  const [error, order] = [found.errors, found.orders].map((each) => each?.[0] ?? null);
  const ranges = model.features.map((_, j) => found.range(0, j));
  return { kind: "threshold", threshold, decisions: decisions(model, ranges, error, order) };
}

/** The decision between two classes. */
function contest(found, one, other) {
  const error = found.errors === null ? null : found.errors[one].plus(found.errors[other]);
  const ranges = found.model.features.map((_, j) => found.difference(one, other, j));
  return decisions(found.model, ranges, error, error);
}

/** Slopes along inputs, and along which of them computed scores are monotone: |slope| q ≥ 2E. */
function decisions({ grid }, ranges, error, order) {
  const steep = (exact) => larger(exact, ZERO).up();
  return {
    fall: ranges.map((range) => (range === null ? null : steep(range.low.negated()))),
    rise: ranges.map((range) => (range === null ? null : steep(range.high))),
    exact: ranges.map((range) => {
      if (range === null || grid === null || order === null) return false;
      const least = larger(range.low, range.high.negated());
      return least.times(Rational.of(grid)).isAtLeast(order.times(TWO));
    }),
    error: error === null ? null : error.up(),
  };
}
