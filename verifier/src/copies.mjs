// Copies: columns with knots enter as several copies, each of which runs from -1 to 1 over one tile.
//
// This checks that tiles are disjoint, exactly, and that the computed copies meet: that each is at +1
// before the next leaves -1. Arithmetic of this language is IEEE float64, so that it is the model's.

import { Rational } from "./rational.mjs";
import { demand } from "./refusal.mjs";

const BIG = 1.5 * 2 ** 52;

/** The nearest multiple of a power of two, ties to even; at most 2^51 of them. */
export function snap(x, grid) {
  return (x / grid + BIG - BIG) * grid + 0;
}

/** Copy j of several, as computed from a number x. */
function copyOf({ scaling, grid, precision }, j, x) {
  const clamped = Math.min(Math.max((x - scaling.center[j]) * scaling.factor[j], -1), 1);
  const snapped = grid === null ? clamped : snap(clamped, grid);
  return precision === "float32" ? Math.fround(snapped) : snapped;
}

/** The smallest number at which copy j of several is +1. */
export function topOf(model, j) {
  return smallest((x) => copyOf(model, j, x) === 1);
}

/** Check the copies of a model. */
export function checkCopies(model) {
  const { inputs, scaling } = model;
  for (let j = 0; j < scaling.n; j += 1) {
    const several = inputs.counts[inputs.sources[j]] > 1;
    demand(!several || !scaling.log[j], "a column with knots has a logarithm");
    if (j === 0 || inputs.sources[j] !== inputs.sources[j - 1]) continue;
    demand(apart(scaling, j - 1), `the tiles of copies ${j - 1} and ${j} overlap`);
    demand(copyOf(model, j, topOf(model, j - 1)) === -1, `copy ${j} leaves -1 before copy ${j - 1} reaches +1`);
  }
}

/** c + 1/a ≤ d - 1/b of neighbors, times the positive a b. */
function apart(scaling, j) {
  const [c, d] = [scaling.center[j], scaling.center[j + 1]].map(Rational.of);
  const [a, b] = [scaling.factor[j], scaling.factor[j + 1]].map(Rational.of);
  return d.minus(c).times(a).times(b).isAtLeast(a.plus(b));
}

const view = new DataView(new ArrayBuffer(8));
const LARGEST = 0x7fefffffffffffffn;

/** The smallest float64 with a property that all larger ones have; infinite if none has. */
function smallest(holds) {
  let low = -LARGEST - 1n, high = LARGEST + 1n;
  while (low + 1n < high) {
    const middle = (low + high) >> 1n;
    if (holds(numberOf(middle))) high = middle;
    else low = middle;
  }
  return numberOf(high);
}

/** The float64 of a key; larger keys are larger numbers. */
function numberOf(key) {
  view.setBigInt64(0, key < 0n ? -key : key);
  return key < 0n ? -view.getFloat64(0) : view.getFloat64(0);
}

/** Largest absolute values of the inputs of the network: 1 for several copies, or else the clip. */
export function reaches({ inputs, clip }) {
  const limit = Rational.of(clip), one = Rational.of(1);
  return inputs.sources.map((source) => (inputs.counts[source] > 1 ? one : limit));
}

