// Rounding: exact numbers to float64 and back to a few digits, toward a stated side.

import { Rational, parts } from "../../verifier/src/rational.mjs";

const OVERFLOW = Rational.of(Number.MAX_VALUE).plus(Rational.power(970)); // from here on infinite

/** The float64 nearest to an exact number, ties to even. */
export function nearest(exact) {
  if (exact.abs().isAtLeast(OVERFLOW)) return exact.sign * Infinity;
  const [low, high] = [exact.down(), exact.up()].map((x) => Math.min(Math.max(x, -Number.MAX_VALUE), Number.MAX_VALUE));
  if (low === high) return low;
  const side = exact.plus(exact).compare(Rational.of(low).plus(Rational.of(high)));
  if (side !== 0) return side < 0 ? low : high;
  return parts(low)[0] % 2 === 0 ? low : high;
}

/** A number of a few digits, for pictures; ties to even, as Python has it. */
export function short(x, digits = 6) {
  if (!Number.isFinite(x)) return x;
  const rounded = Number(x.toPrecision(digits));
  const isTie = new RegExp(`\\.\\d{${digits - 1}}50*e`).test(x.toExponential(digits + 60)); // all digits of such an x
  return isTie && /[13579]e/.test(rounded.toExponential(digits - 1)) ? Number((2 * x - rounded).toPrecision(digits)) : rounded;
}

/** A number as HTML with a few digits, not below (side 1) or not above (side -1) the number. */
export function digits(x, side, most = 4) {
  return power(decimal(x, side, most));
}

/** The same as text. */
export function decimal(x, side, most = 4) {
  if (!Number.isFinite(x) || x === 0) return String(x);
  let rounded = Number(x.toPrecision(most));
  if (side * (rounded - x) < 0) {
    const unit = 10 ** (Math.floor(Math.log10(Math.abs(x))) - most + 1);
    rounded = Number((rounded + side * unit).toPrecision(most));
  }
  return String(rounded);
}

/** 1.2e-8 as people write it, in HTML. */
export function power(text) {
  const [mantissa, exponent] = text.replaceAll("-", "−").split("e");
  return exponent === undefined ? mantissa : `${mantissa}·10<sup>${exponent.replace("+", "")}</sup>`;
}
