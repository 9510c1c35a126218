// Exact numbers: m · 2^e with whole m of any length. Nothing here rounds unless its name says up or down.
//
// Everything that a model file stores is such a number, and sums and products of them are.

const LONGEST = 4096;
const view = new DataView(new ArrayBuffer(8));

/** The whole number m and the exponent e with x = m · 2^e, for a finite float64. */
export function parts(x) {
  view.setFloat64(0, x);
  const high = view.getUint32(0), low = view.getUint32(4);
  const exponent = (high >>> 20) & 0x7ff;
  const hidden = exponent === 0 ? 0 : 0x100000;
  const size = ((high & 0xfffff) | hidden) * 2 ** 32 + low;
  return [high >>> 31 === 1 ? -size : size, (exponent || 1) - 1075];
}

export class Rational {
  /** m · 2^e, m a BigInt and e a Number. */
  constructor(m, e = 0) {
    this.m = m;
    this.e = e;
  }

  static of(x) {
    if (x === 0) return ZERO;
    let [m, e] = parts(x);
    while (m % 2 === 0) {
      m /= 2;
      e += 1;
    }
    return new Rational(BigInt(m), e);
  }

  static power(e) {
    return new Rational(1n, e);
  }

  plus(other) {
    if (this.m === 0n) return other;
    if (other.m === 0n) return this;
    const e = Math.min(this.e, other.e);
    return new Rational(this.at(e) + other.at(e), e);
  }

  /** The whole number of 2^e that this is; e is at most the own exponent. */
  at(e) {
    return this.e === e ? this.m : this.m << BigInt(this.e - e);
  }

  negated() {
    return new Rational(-this.m, this.e);
  }

  minus(other) {
    return this.plus(other.negated());
  }

  times(other) {
    if (this.m === 0n || other.m === 0n) return ZERO;
    return new Rational(this.m * other.m, this.e + other.e);
  }

  abs() {
    return this.m < 0n ? this.negated() : this;
  }

  get sign() {
    return this.m > 0n ? 1 : this.m < 0n ? -1 : 0;
  }

  compare(other) {
    return this.minus(other).sign;
  }

  isAtLeast(other) {
    return this.compare(other) >= 0;
  }

  /** The largest k with 2^k at most the absolute value; of zero -Infinity. */
  get magnitude() {
    return this.m === 0n ? -Infinity : bits(this.m < 0n ? -this.m : this.m) - 1 + this.e;
  }

  /** The largest k such that this is a whole number of 2^k; of zero Infinity. */
  get granularity() {
    return this.m === 0n ? Infinity : bits(this.m & -this.m) - 1 + this.e;
  }

  /** No less, and no longer than LONGEST bits: so that bounds of long products stay short. */
  trimmedUp() {
    if (BigInt.asIntN(LONGEST, this.m) === this.m) return this;
    const surplus = bits(this.m < 0n ? -this.m : this.m) - LONGEST / 2;
    return new Rational((this.m >> BigInt(surplus)) + 1n, this.e + surplus);
  }

  /** The smallest float64 that is no smaller: for people to read. */
  up() {
    if (this.m === 0n) return 0;
    const unit = Math.max(this.magnitude - 52, -1074);
    let whole = this.e >= unit ? this.m << BigInt(this.e - unit) : this.m >> BigInt(unit - this.e);
    if (this.e < unit && whole << BigInt(unit - this.e) !== this.m) whole += 1n;
    return Number(whole) * 2 ** Math.max(unit, -1022) * 2 ** Math.min(0, unit + 1022);
  }

  down() {
    return -this.negated().up();
  }
}

export const ZERO = new Rational(0n);
export const ONE = new Rational(1n);
export const TWO = new Rational(2n);

export const sum = (numbers) => numbers.reduce((a, b) => a.plus(b), ZERO);
export const larger = (a, b) => (a.compare(b) >= 0 ? a : b);
export const smaller = (a, b) => (a.compare(b) <= 0 ? a : b);
export const largest = (numbers) => numbers.reduce(larger);

/** a / b of whole positive BigInts, rounded up to a whole number of 2^-512. */
export function quotientUp(a, b) {
  return new Rational(((a << 512n) + b - 1n) / b, -512);
}

/** a / b of positive numbers, rounded up by less than 2^-500 of it; exact where it is a power of two. */
export function ratioUp(a, b) {
  const shift = Math.max(0, b.magnitude - a.magnitude) + 512 + bits(b.m);
  const top = a.m << BigInt(shift);
  return new Rational((top + b.m - 1n) / b.m, a.e - b.e - shift);
}

/** The square root of a number, rounded up by less than 2^-250 of it; exact if it has one. */
export function rootUp(a) {
  if (a.m === 0n) return ZERO;
  const shift = 1024 + (a.e % 2 === 0 ? 0 : 1);
  const root = wholeRoot(a.m << BigInt(shift));
  return new Rational(root, (a.e - shift) / 2);
}

/** The smallest whole number whose square is at least this, by Newton's method. */
function wholeRoot(n) {
  let x = 1n << BigInt((bits(n) + 1) >> 1);
  for (;;) {
    const next = (x + n / x) >> 1n;
    if (next >= x) return x * x === n ? x : x + 1n;
    x = next;
  }
}

function bits(m) {
  const text = m.toString(16);
  return 4 * (text.length - 1) + (32 - Math.clz32(parseInt(text[0], 16)));
}

const LOW = 2 ** 27;
const one = new Float64Array(1);
const words = new Uint32Array(one.buffer); // little-endian, as all that browsers run on

/** Sums of absolute float64, exactly: whole numbers of every exponent are added by themselves. */
export class Tally {
  constructor() {
    this.high = new Float64Array(2048);
    this.low = new Float64Array(2048);
  }

  /** Σ |a[start + k · stride]| over k < count, which is at most 2^24. */
  absolute(a, start = 0, stride = 1, count = a.length) {
    let least = 2047, most = 0;
    for (let k = 0, place = start; k < count; k += 1, place += stride) {
      one[0] = a[place];
      const exponent = (words[1] >>> 20) & 0x7ff;
      const head = (words[1] & 0xfffff) | (exponent === 0 ? 0 : 0x100000);
      this.high[exponent] += head * 32 + (words[0] >>> 27);
      this.low[exponent] += words[0] & (LOW - 1);
      if (exponent < least) least = exponent;
      if (exponent > most) most = exponent;
    }
    return this.total(least, most);
  }

  /** What was added with these exponents, which are then empty again. */
  total(least, most) {
    let result = ZERO;
    for (let k = least; k <= most; k += 1) {
      const m = BigInt(this.high[k]) * BigInt(LOW) + BigInt(this.low[k]);
      if (m > 0n) result = result.plus(new Rational(m, (k || 1) - 1075));
      this.high[k] = 0;
      this.low[k] = 0;
    }
    return result;
  }
}
