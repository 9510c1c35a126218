// Slopes of g along every input: Eq. 6, a change followed in the 1-norm and in the ∞-norm at once.
//
// ‖W h‖₁ ≤ min(‖h‖₁ max_k Σ_j |W_jk|, ‖h‖_∞ Σ_jk |W_jk|)
// ‖W h‖_∞ ≤ min(‖h‖_∞ max_j Σ_k |W_jk|, ‖h‖₁ max_jk |W_jk|)

import { Norms } from "./norms.mjs";
import { ONE, Rational, ZERO, larger, largest, smaller, sum } from "./rational.mjs";
import { CannotJudge } from "./refusal.mjs";
import { ACTIVATIONS } from "./steps.mjs";

/**
 * What one input at a time can change.
 *
 * `one` and `inf` are bounds of the change of all units in both norms, one per input, for a change of
 * that input by 1. `unit(j)` and `difference(j, k)` bound the change of one unit and of the difference
 * of two. `enter` is there before any step: the change that a dense step on the inputs makes.
 */
class Change {
  constructor(one, inf, unit, difference, enter = null) {
    this.unit = remembered(unit);
    this.difference = (j, k) => least(difference(j, k), added(this.unit(j), this.unit(k)));
    Object.assign(this, { one, inf, enter });
  }
}

const MOST_BOUNDS = 2 ** 24;
let computed = 0;

/** The same function, which computes what it is asked for once. Nobody can ask for too much. */
function remembered(unit) {
  const known = new Map();
  return (j) => {
    if (!known.has(j)) {
      known.set(j, unit(j));
      computed += known.get(j).length;
      if (computed > MOST_BOUNDS) throw new CannotJudge("it has too many slopes");
    }
    return known.get(j);
  };
}

const pairwise = (f, a, b) => a.map((x, i) => f(x, b[i]));
const scaled = (a, factor) => a.map((x) => x.times(factor).trimmedUp());
const added = (a, b) => pairwise((x, y) => x.plus(y), a, b);
const least = (a, b) => pairwise(smaller, a, b);

const found = new WeakMap();

/** Bounds of the slopes of the outputs of g along n inputs. */
export function slopesOf(steps, n) {
  if (!found.has(steps)) found.set(steps, alone(steps, n));
  return found.get(steps);
}

function alone(steps, n) {
  computed = 0;
  const ones = Array.from({ length: n }, () => ONE);
  return run(steps, alike(ones, ones, first));
}

/** The same along directions of several inputs, each given by the rates of all of them. */
export function slopesAlong(steps, directions) {
  const sizes = directions.map((rates) => rates.map((rate) => rate.abs()));
  return run(steps, alike(sizes.map(sum), sizes.map(largest), (step) => firstAlong(step, directions)));
}

/** The bounds in another metric: the change of all inputs at once, by at most 1 in it. */
export function slopesIn(steps, one, inf, enter) {
  const start = alike([one], [inf], (step) => {
    const rows = Array.from({ length: step.nOut }, (_, j) => enter(step, j));
    const row = (j) => [rows[j]];
    return new Change([sum(rows)], [largest(rows)], row, (j, k) => added(row(j), row(k)));
  });
  return run(steps, start);
}

function run(steps, start) {
  return steps.reduce((change, step) => STEPS[step.kind](step, change), start);
}

/** Nothing is known of single units, but that none changes by more than all of them. */
function alike(one, inf, enter = null) {
  const unit = least(one, inf);
  return new Change(one, inf, () => unit, () => added(unit, unit), enter);
}

const STEPS = {
  dense: (step, h) => (h.enter === null ? dense(step, h) : h.enter(step)),
  sort: (_, h) => alike(h.one, h.inf),
  pointwise: (step, h) => {
    const constant = constantOf(step), [one, inf] = [h.one, h.inf].map((a) => scaled(a, constant));
    return alike(one, inf);
  },
  members: ({ weights, members }, h) => {
    const parts = members.map((steps) => run(steps, h));
    const mixed = (of) => {
      const all = parts.map((part, k) => scaled(of(part), Rational.of(Math.abs(weights[k]))));
      return all.reduce(added);
    };
    return new Change(
      mixed((p) => p.one), mixed((p) => p.inf), (j) => mixed((p) => p.unit(j)),
      (j, k) => mixed((p) => p.difference(j, k)),
    );
  },
};

/** The Lipschitz constant of a pointwise step. */
export function constantOf({ name, slope }) {
  return larger(Rational.of(ACTIVATIONS[name][0]), Rational.of(Math.abs(slope)));
}

/** A dense step on the inputs: each enters through its own column. */
function first(step) {
  const { columnSums, columnMaxima } = Norms.of(step), { nIn, weight } = step;
  const row = (j) => Array.from({ length: nIn }, (_, i) => Rational.of(weight[j * nIn + i]));
  const unit = (j) => row(j).map((w) => w.abs());
  const difference = (j, k) => pairwise((a, b) => a.minus(b).abs(), row(j), row(k));
  return new Change(columnSums, columnMaxima, unit, difference);
}

/** A dense step on inputs that move together: as for one input whose weights are W d. */
function firstAlong(step, directions) {
  const { nIn, nOut, weight } = step;
  const moved = directions.map((rates) => Array.from({ length: nOut }, (_, j) => sum(
    rates.map((rate, i) => (rate.sign === 0 ? ZERO : rate.times(Rational.of(weight[j * nIn + i])))),
  )));
  const sizes = moved.map((units) => units.map((u) => u.abs()));
  return new Change(
    sizes.map(sum), sizes.map(largest), (j) => sizes.map((units) => units[j]),
    (j, k) => moved.map((units) => units[j].minus(units[k]).abs()),
  );
}

function dense(step, { one, inf }) {
  const norms = Norms.of(step), { nIn, weight } = step;
  const bound = (most, total) => least(scaled(one, most), scaled(inf, total));
  const difference = (j, k) => {
    const gaps = Array.from({ length: nIn }, (_, i) =>
      Rational.of(weight[j * nIn + i]).minus(Rational.of(weight[k * nIn + i])).abs());
    return bound(gaps.reduce(larger), sum(gaps));
  };
  return new Change(
    least(scaled(one, norms.one), scaled(inf, norms.total)),
    least(scaled(inf, norms.inf), scaled(one, norms.most)),
    (j) => bound(norms.rowMaxima[j], norms.rowSums[j]),
    difference,
  );
}
