// The model's logarithm, operation by operation: the same bits as wherever arithmetic is IEEE.

import { parts } from "./rational.mjs";

const HIGH = 0x162e42fee * 2 ** -33; // 33 bits of log 2
const LOW = 0x1a39ef35793c76 * 2 ** -85; // and what they lack
const SERIES = Array.from({ length: 12 }, (_, k) => 2 / (2 * k + 1));
const BIG = 1.5 * 2 ** 52;

/** Mantissa in [1/2, 1) and exponent of a positive number. */
function split(x) {
  const [m, e] = parts(x);
  const bits = m.toString(2).length;
  return [m * 2 ** -bits, e + bits];
}

/** Natural logarithm of a positive number, which is rounded to 24 bits first. */
export function log(x) {
  let [mantissa, exponent] = split(Math.min(x, 2 ** 1023));
  mantissa = (mantissa * 2 ** 24 + BIG - BIG) * 2 ** -24;
  if (mantissa === 1) [mantissa, exponent] = [0.5, exponent + 1];
  const small = mantissa < Math.sqrt(0.5);
  const m = small ? 2 * mantissa : mantissa, k = exponent - (small ? 1 : 0);
  const s = (m - 1) / (m + 1);
  return k * HIGH + (s * horner(s * s) + k * LOW);
}

function horner(x) {
  return SERIES.slice(0, -1).reduceRight((result, c) => result * x + c, SERIES.at(-1));
}
