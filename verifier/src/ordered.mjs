// E of a float32 network with a grid, whose sums have a fixed order. docs/last-bit.md, "In float32".
//
// Every rounding is charged by itself: with half the distance of the numbers around the largest that can
// occur there, or with nothing where a whole number of 2^v is at most 2^24 of it. Intervals say how large
// numbers can be. Inputs of a dense step are added in parts, one after the other, and then the parts;
// products may be rounded or fused. Errors are followed unit by unit and in both norms.

import { reaches } from "./copies.mjs";
import { ARITHMETIC } from "./errors.mjs";
import { Norms } from "./norms.mjs";
import { ONE, Rational, ZERO, larger, largest, smaller, sum } from "./rational.mjs";
import { CannotJudge } from "./refusal.mjs";
import { constantOf } from "./slopes.mjs";
import { ACTIVATIONS } from "./steps.mjs";

const { bits: BITS, most: MOST } = ARITHMETIC.float32;
const LEAST = -149; // exponent of the smallest float32
const DOUBLE = Rational.power(-53);
const MOST_PRODUCTS = 2 ** 22;

class Overflow extends Error {}

/** Whether sums of a model have the fixed order that this is about. */
export function isOrdered({ precision, grid }) {
  return precision === "float32" && grid !== null;
}

/**
 * For every output E with the last rounding and without it; null where a number might overflow.
 *
 * The last rounding is monotone, so that the second is what the directions of a single output need.
 */
export function orderedErrors(model) {
  try {
    return new Ordered(model).outputs();
  } catch (error) {
    if (error instanceof Overflow) return null;
    throw error;
  }
}

/** A computed number: its interval, what it is a whole number of, and how far off it is. */
const number = (low, high, grain, error) => ({ low, high, grain, error });
const NOTHING = number(ZERO, ZERO, Infinity, ZERO);
const sizeOf = ({ low, high }) => larger(low.abs(), high.abs());
const constant = (x) => number(x, x, x.granularity, ZERO);

const isZero = (x) => sizeOf(x).sign === 0;

/** Numbers of a layer, with bounds of the norms of their errors. */
class Layer {
  constructor(units, errorOne) {
    this.units = units;
    this.errorOne = smaller(errorOne, sum(units.map((u) => u.error)));
    this.errorInf = largest(units.map((u) => u.error));
  }
}

class Ordered {
  constructor(model) {
    this.model = model;
    this.products = 0;
    const grain = Rational.of(model.grid).granularity;
    const units = reaches(model).map((reach) => number(reach.negated(), reach, grain, ZERO));
    this.inputs = new Layer(units, ZERO);
  }

  outputs() {
    const { nOutputs, n, residual, hasCopies } = this.model;
    const g = this.run(this.model.steps, this.inputs, hasCopies);
    return Array.from({ length: nOutputs }, (_, j) => {
      const row = Array.from(residual.subarray(j * n, (j + 1) * n), Rational.of);
      if (hasCopies) {
        const all = this.lookUp(g.units[j], row);
        return { all: all.error.plus(g.units[j].error), before: all.error.plus(g.units[j].error) };
      }
      const line = this.accumulate(NOTHING, row, this.inputs.units);
      const before = line.error.plus(g.units[j].error);
      return { all: before.plus(this.add(g.units[j], line).error), before };
    });
  }

  /** A number rounded to float32; its error is that of this rounding alone. */
  rounded(low, high, grain) {
    const size = larger(low.abs(), high.abs());
    if (size.compare(MOST) > 0) throw new Overflow();
    const held = grain >= LEAST && (size.sign === 0 || size.compare(Rational.power(grain + BITS)) <= 0);
    if (held) return number(low, high, grain, ZERO);
    return number(nearest(low), nearest(high), Math.max(grain, LEAST), halfStep(size));
  }

  /** The rounded sum of two computed numbers. */
  add(a, b) {
    return this.rounded(a.low.plus(b.low), a.high.plus(b.high), Math.min(a.grain, b.grain));
  }

  /** The product of a stored number and a computed one, rounded or not: what holds for both. */
  product(w, h) {
    this.products += 1;
    if (this.products > MOST_PRODUCTS) throw new CannotJudge("it is too large for float32 in a fixed order");
    if (w.sign === 0) return NOTHING;
    const [a, b] = [h.low.times(w), h.high.times(w)];
    const low = smaller(a, b), high = larger(a, b), grain = w.granularity + h.grain;
    const after = this.rounded(low, high, grain);
    return number(smaller(low, after.low), larger(high, after.high), grain, after.error);
  }

  /** start + Σ w h, one after the other; the error is that of these roundings. */
  accumulate(start, weights, units) {
    let result = start, error = ZERO;
    weights.forEach((w, k) => {
      if (w.sign === 0) return; // adding zero changes nothing
      const product = this.product(w, units[k]), first = isZero(result);
      result = this.add(result, product);
      // added to zero, a product is rounded once, with it or before
      error = error.plus(product.error).plus(first ? ZERO : result.error);
    });
    return { ...result, error };
  }

  run(steps, start, copies = false) {
    return steps.reduce((h, step, k) => this[step.kind](step, h, copies && k === 0), start);
  }

  dense(step, h, copies) {
    const { weight, bias, nIn, nOut } = step, norms = Norms.of(step);
    const fresh = [];
    const units = Array.from({ length: nOut }, (_, j) => {
      const row = Array.from(weight.subarray(j * nIn, (j + 1) * nIn), Rational.of);
      const start = constant(Rational.of(bias[j]));
      const found = copies ? this.lookUp(start, row) : this.inParts(start, row, h.units, nOut);
      fresh.push(found.error);
      return { ...found, error: this.carried(row, h).plus(found.error) };
    });
    const carried = smaller(h.errorOne.times(norms.one), h.errorInf.times(norms.total));
    return new Layer(units, carried.plus(sum(fresh)));
  }

  /** The most that errors before make of a row: none exceeds its own bound, nor do all the 1-norm. */
  carried(row, h) {
    const order = row.map((w, k) => [w.abs(), h.units[k].error]).sort(([a], [b]) => b.compare(a));
    let left = h.errorOne, found = ZERO;
    for (const [w, most] of order) {
      const error = smaller(most, left);
      found = found.plus(w.times(error));
      left = left.minus(error);
    }
    return found;
  }

  /** The first part begins with the bias, the others with zero; then they are added in order. */
  inParts(start, row, units, nOut) {
    const size = partSize(row.length, nOut);
    let result = start, error = ZERO;
    for (let k = 0; k < row.length; k += size) {
      const part = this.accumulate(k === 0 ? start : NOTHING, row.slice(k, k + size), units.slice(k, k + size));
      result = k === 0 ? part : this.add(result, part);
      error = error.plus(part.error).plus(k === 0 ? ZERO : result.error);
    }
    return { ...result, error };
  }

  /** Column after column: the sum of the copies that stand still, and the one that moves. */
  lookUp(start, row) {
    const { inputs } = this.model;
    let result = start, error = ZERO;
    inputs.counts.forEach((count, s) => {
      const own = row.slice(inputs.firsts[s], inputs.firsts[s] + count);
      const terms = count > 1 ? [this.still(own), this.moving(own)] : [this.product(own[0], this.inputs.units[inputs.firsts[s]])];
      for (const term of terms) {
        result = this.add(result, term);
        error = error.plus(term.error).plus(result.error);
      }
    });
    return { ...result, error };
  }

  /** Σ before - Σ after, of the copies around any that moves: rounded to float64, then to float32. */
  still(own) {
    const total = sum(own);
    let before = ZERO;
    const sums = own.map((w) => {
      const found = before.plus(before).plus(w).minus(total);
      before = before.plus(w);
      return found;
    });
    const [low, high] = [sums.reduce(smaller), sums.reduce(larger)];
    const grain = Math.min(...own.map((w) => w.granularity));
    const found = this.rounded(low, high, grain);
    const twice = found.error.sign === 0 ? ZERO : sizeOf(found).times(DOUBLE);
    return { ...found, error: found.error.plus(twice) };
  }

  /** The product of any of these weights and an input between -1 and 1. */
  moving(own) {
    const most = own.map((w) => w.abs()).reduce(larger), [{ grain }] = this.inputs.units;
    const fine = Math.min(...own.map((w) => w.granularity)) + grain;
    const after = this.rounded(most.negated(), most, fine);
    return number(smaller(most.negated(), after.low), larger(most, after.high), fine, after.error);
  }

  sort({ groupSize }, h) {
    const units = h.units.flatMap((_, start) => {
      if (start % groupSize !== 0) return [];
      const group = h.units.slice(start, start + groupSize);
      const grain = Math.min(...group.map((u) => u.grain)), error = largest(group.map((u) => u.error));
      const [lows, highs] = ["low", "high"].map((end) => group.map((u) => u[end]).sort((a, b) => a.compare(b)));
      return lows.map((low, k) => number(low, highs[k], grain, error));
    });
    return new Layer(units, h.errorOne);
  }

  /** In float64, then rounded to float32. */
  pointwise(step, h) {
    const factor = constantOf(step), fresh = [];
    const units = h.units.map((u) => {
      const found = this.activated(step, u);
      fresh.push(found.error);
      return { ...found, error: u.error.times(factor).plus(found.error) };
    });
    return new Layer(units, h.errorOne.times(factor).plus(sum(fresh)));
  }

  activated({ name, slope }, { low, high, grain }) {
    const ends = [larger(low, ZERO), larger(high, ZERO)];
    if (name === "relu") return number(...ends, grain, ZERO);
    if (name === "abs") return number(ZERO, larger(low.abs(), high.abs()), grain, ZERO);
    if (name === "hardtanh") return number(bounded(low), bounded(high), Math.min(grain, 0), ZERO);
    if (name === "leaky_relu") return this.leaky(Rational.of(slope), low, high, grain, ends);
    const [bound, atZero, formula] = ACTIVATIONS[name].map(Rational.of);
    const most = larger(low.abs(), high.abs()).times(bound).plus(atZero).plus(formula);
    const found = this.rounded(most.negated(), most, -Infinity);
    return { ...found, error: found.error.plus(formula) };
  }

  leaky(slope, low, high, grain, ends) {
    const below = [smaller(low, ZERO), smaller(high, ZERO)].map((x) => x.times(slope));
    const all = [...below, ...ends], fine = Math.min(grain, slope.granularity + grain);
    const found = this.rounded(all.reduce(smaller), all.reduce(larger), slope.sign === 0 ? grain : fine);
    const twice = found.error.sign === 0 ? ZERO : sizeOf(found).times(DOUBLE);
    return { ...found, error: found.error.plus(twice) };
  }

  /** Products are rounded, then added in the order of the members. */
  members({ weights, members }, h, copies) {
    const parts = members.map((steps) => this.run(steps, h, copies)), factors = weights.map(Rational.of);
    const mixed = (of) => sum(parts.map((part, k) => of(part).times(factors[k].abs())));
    const fresh = [];
    const units = parts[0].units.map((_, j) => {
      const found = this.weighted(factors, parts.map((part) => part.units[j]));
      fresh.push(found.error);
      return { ...found, error: mixed((part) => part.units[j].error).plus(found.error) };
    });
    return new Layer(units, mixed((part) => part.errorOne).plus(sum(fresh)));
  }

  weighted(factors, units) {
    const products = units.map((u, k) => this.product(factors[k], u));
    let result = products[0], error = products[0].error;
    for (const product of products.slice(1)) {
      result = this.add(result, product);
      error = error.plus(product.error).plus(result.error);
    }
    return { ...result, error };
  }
}

const bounded = (x) => larger(smaller(x, ONE), ONE.negated());

/** How many inputs of a dense step are added before the next part begins. */
export function partSize(nIn, nOut) {
  const most = nOut === 1 ? 8 : 32;
  const count = nIn > 8 ? Math.max(2, Math.ceil(nIn / most)) : 1;
  return Math.ceil(nIn / count);
}

/** Half the distance of float32 around numbers of at most this size, at which none is rounded by more. */
function halfStep(size) {
  const power = size.magnitude + (size.compare(Rational.power(size.magnitude)) === 0 ? 0 : 1);
  return Rational.power(Math.max(power - BITS - 1, LEAST - 1));
}

/** The nearest float32, ties to even. */
function nearest(x) {
  const unit = Math.max(x.magnitude - BITS + 1, LEAST);
  if (x.sign === 0 || x.e >= unit) return x;
  const shift = BigInt(unit - x.e), half = 1n << (shift - 1n);
  let whole = (x.m + half) >> shift;
  if (((x.m + half) & ((1n << shift) - 1n)) === 0n && (whole & 1n) === 1n) whole -= 1n;
  return new Rational(whole, unit);
}
