// SHA-256 (FIPS 180-4), so that files can be checked where there is no library for it.

const primes = firstPrimes(64);
const ROUNDS = Int32Array.from(primes, (p) => fractionBits(p, 3n));
const START = Int32Array.from(primes.slice(0, 8), (p) => fractionBits(p, 2n));

/** The digest of several pieces of bytes, one after the other, in hexadecimal. */
export function sha256(pieces) {
  const digest = new Digest();
  for (const piece of pieces) digest.update(piece);
  return digest.end();
}

class Digest {
  constructor() {
    this.state = START.slice();
    this.words = new Int32Array(64);
    this.block = new Uint8Array(64);
    this.filled = 0;
    this.length = 0;
  }

  update(bytes) {
    this.length += bytes.length;
    let place = 0;
    if (this.filled > 0) {
      place = Math.min(64 - this.filled, bytes.length);
      this.block.set(bytes.subarray(0, place), this.filled);
      this.filled += place;
      if (this.filled < 64) return;
      this.compress(this.block, 0);
      this.filled = 0;
    }
    for (; place + 64 <= bytes.length; place += 64) this.compress(bytes, place);
    this.block.set(bytes.subarray(place), 0);
    this.filled = bytes.length - place;
  }

  end() {
    const bits = BigInt(this.length) * 8n;
    const padding = new Uint8Array(((119 - (this.length % 64)) % 64) + 9);
    padding[0] = 0x80;
    new DataView(padding.buffer).setBigUint64(padding.length - 8, bits);
    this.update(padding);
    return Array.from(this.state, (word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
  }

  compress(bytes, start) {
    const w = this.words;
    for (let t = 0; t < 16; t += 1) {
      const k = start + 4 * t;
      w[t] = (bytes[k] << 24) | (bytes[k + 1] << 16) | (bytes[k + 2] << 8) | bytes[k + 3];
    }
    for (let t = 16; t < 64; t += 1) {
      const x = w[t - 15], y = w[t - 2];
      const small = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
      const large = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
      w[t] = (w[t - 16] + small + w[t - 7] + large) | 0;
    }
    this.mix(w);
  }

  mix(w) {
    const state = this.state;
    let a = state[0], b = state[1], c = state[2], d = state[3];
    let e = state[4], f = state[5], g = state[6], h = state[7];
    for (let t = 0; t < 64; t += 1) {
      const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
      const first = (h + s1 + ((e & f) ^ (~e & g)) + ROUNDS[t] + w[t]) | 0;
      const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
      const second = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + first) | 0;
      d = c;
      c = b;
      b = a;
      a = (first + second) | 0;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
    state[5] += f;
    state[6] += g;
    state[7] += h;
  }
}

function firstPrimes(count) {
  const found = [];
  for (let n = 2; found.length < count; n += 1) {
    if (found.every((p) => n % p !== 0)) found.push(n);
  }
  return found;
}

/** The first 32 bits of the fraction of the square or cube root of a prime. */
function fractionBits(prime, power) {
  const target = BigInt(prime) << (32n * power);
  let low = 0n, high = 1n << 40n;
  while (high - low > 1n) {
    const middle = (low + high) >> 1n;
    if (middle ** power <= target) low = middle;
    else high = middle;
  }
  return Number(low & 0xffffffffn);
}
