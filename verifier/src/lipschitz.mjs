// The claimed slope limit: |g(x) - g(y)| ≤ ‖λ (x - y)‖ in the norm of the model.

import { Rational, ZERO, largest, larger, ratioUp, rootUp, sum } from "./rational.mjs";
import { slopesIn, slopesOf } from "./slopes.mjs";

/** For every output whether the claim holds, and a bound of g in units of it. */
export function constants(model) {
  const outputs = Array.from({ length: model.nOutputs }, (_, j) => j);
  const limits = model.lipschitz.map(Rational.of);
  if (model.metric === "1") return alone(model, outputs, limits);
  const limit = largest(limits);
  const bound = together(model, limits.map((other) => ratioUp(limit, other)));
  return outputs.map((j) => ({ holds: limit.isAtLeast(bound.unit(j)[0]), ratio: ratio(bound.unit(j)[0], limit) }));
}

/** In the 1-norm every feature counts by itself: L ≤ λ. */
function alone({ steps, n }, outputs, limits) {
  const bound = slopesOf(steps, n);
  return outputs.map((j) => {
    const slopes = bound.unit(j);
    const ratios = slopes.map((slope, i) => ratio(slope, limits[i]));
    return { holds: slopes.every((slope, i) => limits[i].isAtLeast(slope)), ratio: largest(ratios) };
  });
}

/** In the others all move at once, the i-th by at most its factor, so that a row counts by the dual norm. */
function together({ metric, steps }, factors) {
  const norms = {
    inf: [sum(factors), (weights) => sum(weights)],
    2: [rootUp(sum(factors.map(square))), (weights) => rootUp(sum(weights.map(square)))],
  };
  const [one, dual] = norms[metric];
  const row = ({ weight, nIn }, j) => dual(factors.map((f, i) => f.times(Rational.of(Math.abs(weight[j * nIn + i])))));
  return slopesIn(steps, one, factors.reduce(larger), row);
}

const square = (x) => x.times(x);
const ratio = (a, b) => (a.sign === 0 ? ZERO : ratioUp(a, b));
