// The error bound E: how far a computed score can be from the exact one, for any order of sums.
//
// A sum of m terms, of which products are rounded as well, errs by at most γ Σ|terms| with
// γ = n u / (1 - n u), n = m + 1 counting the bias or what is added to, and u half the distance
// of 1 to its neighbor; where numbers are too small for that, by at most `tiny` for every term.

import { reaches } from "./copies.mjs";
import { Norms } from "./norms.mjs";
import { Rational, Tally, ZERO, largest, quotientUp, smaller, sum } from "./rational.mjs";
import { constantOf } from "./slopes.mjs";
import { ACTIVATIONS } from "./steps.mjs";

export const ARITHMETIC = {
  float64: { bits: 53, tiny: Rational.power(-1022), most: Rational.of(Number.MAX_VALUE) },
  float32: { bits: 24, tiny: Rational.power(-126), most: Rational.of((2 - 2 ** -23) * 2 ** 127) },
};

/** A number may overflow, so that nothing is known of the score. */
class Overflow extends Error {}

/** E of every output; null where an intermediate number might overflow. */
export function errorsOf(model) {
  try {
    return new Bounds(model).outputs();
  } catch (error) {
    if (error instanceof Overflow) return null;
    throw error;
  }
}

/** Computed units: how large they are and how far off, in both norms, and one by one. */
class Units {
  constructor(n, one, inf, errorOne, errorInf, unit) {
    const bounds = { one, inf, errorOne, errorInf }, known = new Map();
    for (const name of Object.keys(bounds)) this[name] = bounds[name].trimmedUp();
    this.n = n;
    this.unit = (j) => {
      if (!known.has(j)) known.set(j, unit(j));
      return known.get(j);
    };
  }
}

const tally = new Tally();

/** Where equal neighbors begin and end. */
function runsOf(numbers) {
  const starts = numbers.map((_, i) => i).filter((i) => i === 0 || numbers[i] !== numbers[i - 1]);
  return starts.map((start, k) => [start, starts[k + 1] ?? numbers.length]);
}

class Bounds {
  constructor(model) {
    Object.assign(this, ARITHMETIC[model.precision]);
    this.model = model;
    this.reaches = reaches(model);
    this.runs = runsOf(this.reaches);
  }

  /** n u / (1 - n u) */
  gamma(n) {
    return quotientUp(BigInt(n), (1n << BigInt(this.bits)) - BigInt(n));
  }

  /** The rounding error of a number of at most `size`, made of n roundings per term. */
  fresh(size, n, count = 1) {
    return size.times(this.gamma(n)).plus(this.tiny.times(Rational.of(n * count)));
  }

  checked(size) {
    if (size.compare(this.most) > 0) throw new Overflow();
    return size;
  }

  /** How many terms inputs of the network bring into a sum: a column with copies looks up two. */
  get inputTerms() {
    const { inputs, hasCopies, n } = this.model;
    return hasCopies ? inputs.counts.reduce((all, count) => all + (count > 1 ? 2 : 1), 0) : n;
  }

  outputs() {
    const { model } = this, start = this.start(), g = this.run(model.steps, start);
    return Array.from({ length: model.nOutputs }, (_, j) => {
      const { size, error } = g.unit(j);
      const bulk = size.plus(this.weighted(model.residual, j * model.n));
      const fresh = this.fresh(bulk, this.inputTerms + 1);
      this.checked(bulk.plus(fresh));
      return error.plus(fresh);
    });
  }

  start() {
    const unit = (j) => ({ size: this.reaches[j], error: ZERO });
    const found = new Units(this.model.n, sum(this.reaches), largest(this.reaches), ZERO, ZERO, unit);
    found.features = true;
    return found;
  }

  run(steps, start) {
    return steps.reduce((h, step) => this[step.kind](step, h), start);
  }

  dense(step, h) {
    const norms = Norms.of(step), n = (h.features ? this.inputTerms : step.nIn) + 1;
    const units = Array.from({ length: step.nOut }, (_, j) => this.denseUnit(step, h, n, j));
    const all = (name) => sum(units.map((u) => u[name]));
    const together = smaller(h.one.times(norms.one), h.inf.times(norms.total)).plus(norms.biasSum);
    const exact = smaller(together, all("exact")), fresh = this.fresh(exact, n, step.nOut);
    const carried = smaller(h.errorOne.times(norms.one), h.errorInf.times(norms.total));
    const inf = largest(units.map((u) => u.size));
    this.checked(inf);
    return new Units(
      step.nOut, exact.plus(fresh), inf, smaller(carried, all("carried")).plus(fresh),
      largest(units.map((u) => u.error)), (j) => units[j],
    );
  }

  denseUnit(step, h, n, j) {
    const { rowMaxima, rowSums, biases } = Norms.of(step);
    const bound = (one, inf) => smaller(one.times(rowMaxima[j]), inf.times(rowSums[j]));
    const bulk = h.features ? this.weighted(step.weight, j * step.nIn) : bound(h.one, h.inf);
    const exact = bulk.plus(biases[j]), fresh = this.fresh(exact, n);
    const carried = bound(h.errorOne, h.errorInf);
    return { exact, carried, size: exact.plus(fresh), error: carried.plus(fresh) };
  }

  /** Σ |w_i| times the largest input i, of the weights from `start` on. */
  weighted(weights, start) {
    const runs = this.runs.map(([from, to]) => {
      const size = tally.absolute(weights, start + from, 1, to - from);
      return size.times(this.reaches[from]);
    });
    return sum(runs);
  }

  sort(_, h) {
    const unit = { size: smaller(h.one, h.inf), error: smaller(h.errorOne, h.errorInf) };
    return new Units(h.n, h.one, h.inf, h.errorOne, h.errorInf, () => unit);
  }

  /** |a(h)| ≤ |a(0)| + c |h|; activations that are formulas err, and so do products. */
  pointwise(step, h) {
    const constant = constantOf(step);
    const [, atZero, formula] = ACTIVATIONS[step.name].map(Rational.of);
    const rounds = formula.sign > 0 || step.name === "leaky_relu";
    const grown = (size, n) => {
      const count = Rational.of(n), bulk = size.times(constant).plus(atZero.times(count));
      const fresh = rounds ? this.fresh(bulk, 1, n).plus(formula.times(count)) : ZERO;
      return [bulk.plus(fresh), fresh];
    };
    const [one, freshOne] = grown(h.one, h.n), [inf, freshInf] = grown(h.inf, 1);
    this.checked(inf);
    const unit = (j) => {
      const { size, error } = h.unit(j), [after, fresh] = grown(size, 1);
      return { size: after, error: error.times(constant).plus(fresh) };
    };
    return new Units(
      h.n, one, inf, h.errorOne.times(constant).plus(freshOne),
      h.errorInf.times(constant).plus(freshInf), unit,
    );
  }

  /** A weighted sum; every term is rounded once as a product and once per addition. */
  members({ weights, members }, h) {
    const parts = members.map((steps) => this.run(steps, h)), count = parts.length;
    const mixed = (of) => sum(parts.map((part, k) => of(part).times(Rational.of(Math.abs(weights[k])))));
    const after = (size, error, n) => {
      const bulk = mixed(size), fresh = this.fresh(bulk, count, n);
      return [bulk.plus(fresh), mixed(error).plus(fresh)];
    };
    const [one, errorOne] = after((p) => p.one, (p) => p.errorOne, parts[0].n);
    const [inf, errorInf] = after((p) => p.inf, (p) => p.errorInf, 1);
    this.checked(inf);
    const unit = (j) => {
      const [size, error] = after((p) => p.unit(j).size, (p) => p.unit(j).error, 1);
      return { size, error };
    };
    return new Units(parts[0].n, one, inf, errorOne, errorInf, unit);
  }
}

