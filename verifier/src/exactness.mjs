// Exactness: networks in which no operation rounds, so that E is zero. docs/fpga.md.
//
// Every unit is a whole number of a power of two. Where the terms of a sum are whole numbers of 2^v and
// their absolute values add up to at most 2^53 (float32: 2^24) of it, every product and every partial
// sum is a number of that arithmetic, in any order.

import { reaches } from "./copies.mjs";
import { ARITHMETIC } from "./errors.mjs";
import { ONE, Rational, ZERO, larger, largest, smaller } from "./rational.mjs";
import { CannotJudge } from "./refusal.mjs";

const MOST_PRODUCTS = 2 ** 22;

class Rounds extends Error {}

/** Whether nothing is rounded, for any row. */
export function isExact(model) {
  if (model.grid === null) return false;
  try {
    new Grain(model).check();
    return true;
  } catch (error) {
    if (error instanceof Rounds) return false;
    throw error;
  }
}

/** A unit: the interval that it lies in, and the exponent of what it is a whole number of. */
const unit = (low, high, grain) => ({ low, high, grain });
const sizeOf = ({ low, high }) => larger(low.abs(), high.abs());
const ascending = (a, b) => a.compare(b);

class Grain {
  constructor(model) {
    this.model = model;
    this.products = 0;
    Object.assign(this, ARITHMETIC[model.precision]);
    this.least = model.precision === "float64" ? -1074 : -149;
    const grain = Rational.of(model.grid).granularity;
    this.inputs = reaches(model).map((reach) => unit(reach.negated(), reach, grain));
  }

  check() {
    const { steps, nOutputs, n, residual } = this.model;
    this.inputs.forEach((input) => this.held(sizeOf(input), input.grain));
    const g = this.run(steps, this.inputs);
    for (let j = 0; j < nOutputs; j += 1) {
      const row = Array.from(residual.subarray(j * n, (j + 1) * n), Rational.of);
      this.sum([ONE, ...row], [g[j], ...this.inputs], ZERO);
    }
  }

  /** Refuse numbers up to `size` that are whole numbers of 2^grain but too long. */
  held(size, grain) {
    if (size.sign === 0) return;
    const fits = grain >= this.least && size.compare(Rational.power(grain + this.bits)) <= 0;
    if (!fits || size.compare(this.most) > 0) throw new Rounds();
  }

  /** Σ w h + b, if no part of it rounds. */
  sum(weights, units, bias) {
    this.products += weights.length;
    if (this.products > MOST_PRODUCTS) throw new CannotJudge("it is too large for exact fixed point");
    let grain = bias.granularity, size = bias.abs(), low = bias, high = bias;
    weights.forEach((w, k) => {
      if (w.sign === 0 || sizeOf(units[k]).sign === 0) return;
      const [a, b] = [units[k].low.times(w), units[k].high.times(w)];
      grain = Math.min(grain, w.granularity + units[k].grain);
      size = size.plus(larger(a.abs(), b.abs()));
      low = low.plus(smaller(a, b));
      high = high.plus(larger(a, b));
    });
    this.held(size, grain);
    return unit(low, high, grain);
  }

  run(steps, units) {
    return steps.reduce((h, step) => this[step.kind](step, h), units);
  }

  dense({ weight, bias, nIn, nOut }, h) {
    return Array.from({ length: nOut }, (_, j) => {
      const row = Array.from(weight.subarray(j * nIn, (j + 1) * nIn), Rational.of);
      return this.sum(row, h, Rational.of(bias[j]));
    });
  }

  /** The k-th smallest unit lies between the k-th smallest ends of the intervals. */
  sort({ groupSize }, h) {
    return h.flatMap((_, start) => {
      if (start % groupSize !== 0) return [];
      const group = h.slice(start, start + groupSize);
      const grain = Math.min(...group.map((u) => u.grain));
      const lows = group.map((u) => u.low).sort(ascending), highs = group.map((u) => u.high).sort(ascending);
      return lows.map((low, k) => unit(low, highs[k], grain));
    });
  }

  pointwise({ name, slope }, h) {
    return h.map((u) => {
      if (name === "relu") return unit(larger(u.low, ZERO), larger(u.high, ZERO), u.grain);
      if (name === "abs") return this.absolute(u);
      if (name === "hardtanh") return unit(bounded(u.low), bounded(u.high), Math.min(u.grain, 0));
      if (name === "leaky_relu") return this.leaky(u, Rational.of(slope));
      throw new Rounds();
    });
  }

  absolute({ low, high, grain }) {
    const inside = low.sign <= 0 && high.sign >= 0;
    return unit(inside ? ZERO : smaller(low.abs(), high.abs()), larger(low.abs(), high.abs()), grain);
  }

  leaky(u, slope) {
    const negative = this.sum([slope], [unit(smaller(u.low, ZERO), smaller(u.high, ZERO), u.grain)], ZERO);
    const positive = [larger(u.low, ZERO), larger(u.high, ZERO)];
    const ends = [negative.low, negative.high, ...positive];
    return unit(ends.reduce(smaller), largest(ends), Math.min(u.grain, negative.grain));
  }

  members({ weights, members }, h) {
    const parts = members.map((steps) => this.run(steps, h)), factors = weights.map(Rational.of);
    return parts[0].map((_, j) => this.sum(factors, parts.map((part) => part[j]), ZERO));
  }
}

const bounded = (x) => larger(smaller(x, ONE), ONE.negated());

