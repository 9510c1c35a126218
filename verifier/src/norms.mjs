// Norms of the matrix of a dense step, exact, each computed once.

import { Rational, Tally, ZERO, larger, largest } from "./rational.mjs";

const tally = new Tally();
const known = new WeakMap();

/** Sums and maxima of the absolute weights of a step, by columns, by rows and of all. */
export class Norms {
  static of(step) {
    if (!known.has(step)) known.set(step, new Norms(step));
    return known.get(step);
  }

  constructor({ weight, bias, nIn, nOut }) {
    const columns = Array.from({ length: nIn }, (_, k) => k), rows = Array.from({ length: nOut }, (_, j) => j);
    this.columnSums = columns.map((k) => tally.absolute(weight, k, nIn, nOut));
    this.rowSums = rows.map((j) => tally.absolute(weight, j * nIn, 1, nIn));
    this.columnMaxima = columns.map((k) => maximum(weight, k, nIn, nOut));
    this.rowMaxima = rows.map((j) => maximum(weight, j * nIn, 1, nIn));
    this.total = this.rowSums.reduce((a, b) => a.plus(b), ZERO);
    this.one = largest(this.columnSums);
    this.inf = largest(this.rowSums);
    this.most = this.rowMaxima.reduce(larger);
    this.biasSum = tally.absolute(bias);
    this.biases = Array.from(bias, (b) => Rational.of(Math.abs(b)));
    this.biasMost = largest(this.biases);
  }
}

function maximum(a, start, stride, count) {
  let found = 0;
  for (let k = 0, place = start; k < count; k += 1, place += stride) {
    found = Math.max(found, Math.abs(a[place]));
  }
  return Rational.of(found);
}
