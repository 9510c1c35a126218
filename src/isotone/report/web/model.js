"use strict";
/* The frozen network, computed as isotone.frozen.reference does: the same operations on doubles,
   one after the other, in the same order. For float64 networks the scores have the bits of the
   engine; for float32 networks every operation is rounded with Math.fround. */
globalThis.isotone = {}; // a property of the window, for those who look at the page from outside

isotone.elementary = (() => {
  const view = new DataView(new ArrayBuffer(8));
  const LN2 = 0.6931471805599453;
  const LN2_HIGH = 0.6931471803691238; // 33 bits
  const LN2_LOW = 1.9082149292705877e-10;
  const LOG_SERIES = Array.from({ length: 12 }, (_, k) => 2 / (2 * k + 1));
  const LOG1P_SERIES = Array.from({ length: 17 }, (_, k) => 2 / (2 * k + 1));
  const EXP_SERIES = [1];
  for (let k = 1, product = 1; k < 14; k += 1) {
    product *= k;
    EXP_SERIES.push(1 / product);
  }
  const WHOLE = 2 ** 52; // doubles from here on are whole numbers

  /* The nearest whole number, ties to even. */
  function rint(x) {
    if (!(Math.abs(x) < WHOLE)) return x;
    return x < 0 ? -((-x + WHOLE) - WHOLE) : (x + WHOLE) - WHOLE;
  }

  /* 2 to the power k, for normal results. */
  function power(k) {
    view.setUint32(0, (k + 1023) << 20);
    view.setUint32(4, 0);
    return view.getFloat64(0);
  }

  /* [m, e] with x = m 2^e and m in [0.5, 1), for positive finite x. */
  function frexp(x) {
    if (x === 0) return [0, 0];
    const lift = x < 2 ** -1022 ? 54 : 0;
    view.setFloat64(0, x * 2 ** lift);
    const high = view.getUint32(0);
    const exponent = ((high >>> 20) & 0x7ff) - 1022;
    view.setUint32(0, (high & 0x800fffff) | (1022 << 20));
    return [view.getFloat64(0), exponent - lift];
  }

  /* m 2^e in two exact steps, so that neither leaves the range of normal numbers too early. */
  function ldexp(m, e) {
    const half = Math.trunc(e / 2);
    return m * power(half) * power(e - half);
  }

  function horner(series, x) {
    let result = series[series.length - 1];
    for (let k = series.length - 2; k >= 0; k -= 1) result = result * x + series[k];
    return result;
  }

  function snapGrid(x, grid) {
    return rint(x / grid) * grid + 0;
  }

  function snapMantissa(x) {
    const [m, e] = frexp(x);
    return ldexp(rint(m * 2 ** 24) * 2 ** -24, e);
  }

  function log(x) {
    const [mantissa, exponent] = frexp(snapMantissa(Math.min(x, 2 ** 1023)));
    const small = mantissa < Math.sqrt(0.5);
    const m = small ? 2 * mantissa : mantissa;
    const k = exponent - (small ? 1 : 0);
    const s = (m - 1) / (m + 1);
    return k * LN2_HIGH + (s * horner(LOG_SERIES, s * s) + k * LN2_LOW);
  }

  function clip(x, reach) {
    return Math.min(Math.max(x, -reach), reach);
  }

  function exp(x) {
    const y = clip(x, 700);
    const k = rint(y / LN2);
    const r = (y - k * LN2_HIGH) - k * LN2_LOW;
    return horner(EXP_SERIES, r) * power(k);
  }

  function monotoneExp(x) {
    return exp(snapGrid(clip(x, 700), 2 ** -30));
  }

  function softplus(h) {
    const t = exp(-Math.abs(h));
    const s = t / (2 + t);
    return Math.max(h, 0) + s * horner(LOG1P_SERIES, s * s);
  }

  return { rint, log, exp, monotoneExp, softplus, snapGrid, clip };
})();

isotone.Network = class {
  /* `data` is the description that isotone.report writes. A feature enters the steps as one input,
     or as several copies that run from -1 to 1 over one tile of its values after the other. */
  constructor(data) {
    this.data = data;
    this.scaling = data.scaling;
    this.nFeatures = data.features.length;
    this.round = data.precision === "float32" ? Math.fround : (x) => x;
    this.firsts = data.counts.map((_, i) => data.counts.slice(0, i).reduce((sum, n) => sum + n, 0));
    // where copies but the last of a feature reach 1; null if no feature enters as copies
    this.ends = (data.ends || data.counts.map(() => [])).map(
      (ends) => ends.map((x) => (x === null ? Infinity : x)),
    );
    this.sumsInParts = data.precision === "float32" && data.grid !== null;
    this.index = new Int32Array(this.nFeatures);
    this.phi = new Float64Array(this.nFeatures);
    this.before = new Array(this.nFeatures); // the row that they are of
    this.size = 0; // multiplications for a row
    this.steps = this.chain(data.steps, "", true);
    this.residual = this.product("residual", data.slopes.length, true, this.sumsInParts ? 0 : undefined);
  }

  /* The numbers of an array that isotone.report wrote. */
  array(name) {
    const bytes = Uint8Array.from(atob(this.data.arrays[name]), (c) => c.charCodeAt(0));
    const kind = this.data.precision === "float32" ? Float32Array : Float64Array;
    return Float64Array.from(new kind(bytes.buffer));
  }

  /* Steps one after the other; `first` if they take the inputs of the network. */
  chain(steps, prefix, first) {
    const made = steps.map((step, i) => this.compile(step, `${prefix}${i}.`, first && i === 0));
    return (h) => made.reduce((units, step) => step(units), h);
  }

  compile(step, prefix, first) {
    switch (step.kind) {
      case "dense":
        return this.dense(prefix, first);
      case "sort":
        return this.sort(step.group_size);
      case "pointwise":
        return this.pointwise(step.name, step.negative_slope);
      case "members":
        return this.members(
          step.weights, step.members.map((steps, k) => this.chain(steps, `${prefix}${k}.`, first)),
        );
      default:
        throw new Error(`a step of kind ${step.kind} is unknown`);
    }
  }

  /* Steps write into arrays of their own, row after row: making arrays takes longer than filling them. */
  dense(prefix, first) {
    const bias = this.array(`${prefix}bias`);
    const sums = bias.slice();
    const add = this.product(`${prefix}weight`, bias.length, first);
    return (h) => {
      sums.set(bias);
      return add(sums, h);
    };
  }

  /* Adds W h to a result in place. */
  product(name, nOut, first, part) {
    const table = this.array(name);
    return first && this.data.ends ? this.lookUp(table, nOut) : this.multiply(table, nOut, part);
  }

  /* Input after input; in parts where the engine does, all but the first of them from zero on. With
     parts of 0 the whole sum is formed first. */
  multiply(table, nOut, part = this.partOf(table.length / nOut, nOut)) {
    const nIn = table.length / nOut;
    this.size += table.length;
    if (this.data.precision === "float64" && part === nIn) return this.multiplyDoubles(table, nOut);
    const { round } = this;
    return (result, h) => {
      for (let j = 0; j < nOut; j += 1) {
        let before = null;
        let sum = part === 0 ? 0 : result[j];
        for (let k = 0; k < nIn; k += 1) {
          if (k > 0 && k % part === 0) {
            before = before === null ? sum : round(before + sum);
            sum = 0;
          }
          sum = round(sum + round(table[j * nIn + k] * h[k]));
        }
        if (part === 0) before = result[j];
        result[j] = before === null ? sum : round(before + sum);
      }
      return result;
    };
  }

  /* The same without parts and with nothing to round; four sums at once, each in its own order. The weights
     that four sums need lie side by side. */
  multiplyDoubles(table, nOut) {
    const nIn = table.length / nOut;
    const beside = table.map((_, at) => {
      const [j, part] = [4 * Math.floor(at / (4 * nIn)), at % (4 * nIn)];
      return j + 3 < nOut ? table[(j + (part % 4)) * nIn + Math.floor(part / 4)] : table[at];
    });
    const one = (result, h, j) => {
      let sum = result[j];
      for (let k = 0, at = j * nIn; k < nIn; k += 1, at += 1) sum += beside[at] * h[k];
      result[j] = sum;
    };
    return (result, h) => {
      let j = 0;
      for (; j + 3 < nOut; j += 4) {
        let s0 = result[j];
        let s1 = result[j + 1];
        let s2 = result[j + 2];
        let s3 = result[j + 3];
        for (let k = 0, at = j * nIn; k < nIn; k += 1, at += 4) {
          const x = h[k];
          s0 += beside[at] * x;
          s1 += beside[at + 1] * x;
          s2 += beside[at + 2] * x;
          s3 += beside[at + 3] * x;
        }
        result[j] = s0;
        result[j + 1] = s1;
        result[j + 2] = s2;
        result[j + 3] = s3;
      }
      for (; j < nOut; j += 1) one(result, h, j);
      return result;
    };
  }

  /* How many inputs are summed one after the other: see `parts_of` in frozen/reference.py. */
  partOf(nIn, nOut) {
    if (!this.sumsInParts || nIn <= 8) return nIn;
    return Math.ceil(nIn / Math.max(2, Math.ceil(nIn / (nOut === 1 ? 8 : 32))));
  }

  /* Feature after feature: the sum of its copies at -1 and 1, if it has several, then the copy that
     moves. The table holds both for one copy after the other. */
  lookUp(table, nOut) {
    const { round, data } = this;
    this.size += 2 * this.nFeatures * nOut;
    const several = data.counts.map((n) => n > 1);
    return (result, { index, phi }) => {
      for (let i = 0; i < phi.length; i += 1) {
        const still = 2 * index[i] * nOut;
        const moves = still + nOut;
        const x = phi[i];
        for (let j = 0; several[i] && j < nOut; j += 1) result[j] = round(result[j] + table[still + j]);
        for (let j = 0; j < nOut; j += 1) result[j] = round(result[j] + round(table[moves + j] * x));
      }
      return result;
    };
  }

  /* Groups in ascending order; small ones by insertion. */
  sort(size) {
    const own = this.own();
    return (h) => {
      const sorted = own(h);
      for (let start = 0; start < h.length; start += size) {
        if (size > 16) sorted.subarray(start, start + size).sort();
        else this.insert(sorted, start, start + size);
      }
      return sorted;
    };
  }

  insert(sorted, start, end) {
    for (let k = start + 1; k < end; k += 1) {
      const x = sorted[k];
      let at = k - 1;
      for (; at >= start && sorted[at] > x; at -= 1) sorted[at + 1] = sorted[at];
      sorted[at + 1] = x;
    }
  }

  /* Copies into one array, made when its length is known. */
  own() {
    let copy = new Float64Array(0);
    return (h) => {
      if (copy.length !== h.length) copy = new Float64Array(h.length);
      copy.set(h);
      return copy;
    };
  }

  pointwise(name, slope) {
    const { exp, softplus, clip } = isotone.elementary;
    const activation = {
      relu: (h) => Math.max(h, 0),
      leaky_relu: (h) => (h < 0 ? slope * h : h),
      abs: Math.abs,
      hardtanh: (h) => clip(h, 1),
      tanh: (h) => 1 - 2 / (1 + exp(2 * h)),
      sigmoid: (h) => 1 / (1 + exp(-h)),
      softplus,
    }[name];
    const [own, { round }] = [this.own(), this];
    return (h) => {
      const units = own(h);
      for (let k = 0; k < units.length; k += 1) units[k] = round(activation(units[k]));
      return units;
    };
  }

  /* w0 m0(h) + w1 m1(h) + ..., products rounded before they are added. */
  members(weights, members) {
    const { round } = this;
    const own = this.own();
    return (h) => {
      const sum = own(members[0](h));
      for (let i = 0; i < sum.length; i += 1) sum[i] = round(weights[0] * sum[i]);
      for (let k = 1; k < members.length; k += 1) {
        const part = members[k](h);
        for (let i = 0; i < sum.length; i += 1) sum[i] = round(sum[i] + round(weights[k] * part[i]));
      }
      return sum;
    };
  }

  /* Whether feature i is scaled by its logarithm, which a feature with several copies is not. */
  isLog(i) {
    return this.scaling.log[this.firsts[i]];
  }

  /* A raw number on the axis of feature i: itself, or its logarithm. */
  along(i, raw) {
    if (!this.isLog(i)) return raw;
    const { offset, floor } = this.scaling;
    const t = this.firsts[i];
    return isotone.elementary.log(Math.max(raw + offset[t], floor[t]));
  }

  /* Back to raw units. */
  back(i, t) {
    return this.isLog(i) ? isotone.elementary.exp(t) - this.scaling.offset[this.firsts[i]] : t;
  }

  /* The inputs that feature i enters as, and the feature of an input. */
  copies(i) {
    return Array.from({ length: this.data.counts[i] }, (_, k) => this.firsts[i] + k);
  }

  owner(copy) {
    return this.firsts.findLastIndex((first) => first <= copy);
  }

  /* The copy of feature i that moves at a raw number, counted among all inputs. */
  copy(i, raw) {
    const ends = this.ends[i];
    let k = 0;
    while (k < ends.length && ends[k] <= raw) k += 1;
    return this.firsts[i] + k;
  }

  scale(i, raw, copy) {
    return (this.along(i, raw) - this.scaling.center[copy]) * this.scaling.factor[copy];
  }

  /* Back to raw units. */
  unscale(i, x, copy) {
    return this.back(i, x / this.scaling.factor[copy] + this.scaling.center[copy]);
  }

  /* The largest absolute value of the copies of feature i. */
  reach(i) {
    return this.data.counts[i] > 1 ? 1 : this.data.clip;
  }

  /* Where a copy of feature i is, not rounded. */
  clamp(i, raw, copy) {
    return isotone.elementary.clip(this.scale(i, raw, copy), this.reach(i));
  }

  /* What enters the steps. */
  snap(i, raw, copy) {
    const { grid } = this.data;
    const x = this.clamp(i, raw, copy);
    return this.round(grid === null ? x : isotone.elementary.snapGrid(x, grid));
  }

  /* How much farther than an exact copy the computed one can move. */
  slack(i, copy) {
    const { grid, precision } = this.data;
    const { center, factor } = this.scaling;
    const cast = precision === "float32" ? this.reach(i) * 2 ** -23 : 0;
    const linear = 2 ** -48 * (this.reach(i) + Math.abs(center[copy] * factor[copy]));
    return cast + (grid || 0) + (this.isLog(i) ? 2 ** -22 * factor[copy] + linear : linear);
  }

  /* Scaled units of feature i from its center: the sum of its copies. */
  position(i, raw) {
    const copy = this.copy(i, raw);
    return 2 * (copy - this.firsts[i]) + 1 - this.data.counts[i] + this.clamp(i, raw, copy);
  }

  /* The ends of the tiles of feature i, none if it has one copy. */
  knots(i) {
    const { center, factor } = this.scaling;
    const tiles = this.copies(i);
    return tiles.length === 1 ? [] : [center[tiles[0]] - 1 / factor[tiles[0]], ...tiles.map((t) => center[t] + 1 / factor[t])];
  }

  /* The copies that move, and where they are: those are the inputs of a network without others. */
  cells(row) {
    const { index, phi, before } = this;
    for (let i = 0; i < phi.length; i += 1) {
      if (Object.is(before[i], row[i])) continue; // of row after row, few numbers change
      index[i] = this.copy(i, row[i]);
      phi[i] = this.snap(i, row[i], index[i]);
      before[i] = row[i];
    }
    return this.data.ends ? this : phi;
  }

  /* Scores of one raw row, an array with one entry per output. */
  score(row) {
    const u = this.cells(row);
    const z = this.residual(this.steps(u), u);
    const scores = [];
    for (let j = 0; j < z.length; j += 1) scores.push(z[j] + 0);
    return scores;
  }

  /* Probabilities of the classes, from logits. */
  probability(z) {
    const { monotoneExp } = isotone.elementary;
    if (z.length === 1) {
      const p = 1 / (1 + monotoneExp(-z[0]));
      return [1 - p, p];
    }
    return z.map((own) => 1 / z.reduce((sum, other) => sum + monotoneExp(other - own), 0));
  }
};
