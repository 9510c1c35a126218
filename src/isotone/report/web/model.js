"use strict";
/* The frozen network, computed as isotone.reference does: the same operations on doubles, one
   after the other, in the same order. For float64 networks the scores have the bits of the
   engine; for float32 networks every operation is rounded with Math.fround. */
const isotone = {};

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

/* How many weights steps have. */
isotone.parameters = (steps) => steps.reduce((sum, step) => {
  if (step.kind === "dense") return sum + step.weight.length * step.weight[0].length;
  const inside = step.kind === "blend" ? [step.steps] : step.members || [];
  return sum + inside.reduce((inner, steps) => inner + isotone.parameters(steps), 0);
}, 0);

isotone.Network = class {
  /* `data` is the description that isotone.report writes. */
  constructor(data) {
    this.data = data;
    this.scaling = data.scaling;
    this.nFeatures = data.features.length;
    this.nOutputs = data.residual.length;
    this.round = data.precision === "float32" ? Math.fround : null;
    this.steps = data.steps.map((step) => this.compile(step));
    this.residual = data.residual.map((row) => Float64Array.from(row));
  }

  compile(step) {
    switch (step.kind) {
      case "dense":
        return this.dense(step.weight.map((row) => Float64Array.from(row)), step.bias);
      case "sort":
        return (h) => this.sort(h, step.group_size);
      case "pointwise":
        return this.pointwise(step.name, step.slope);
      case "blend":
        return this.blend(step.keep, step.add, step.steps.map((inner) => this.compile(inner)));
      case "members":
        return this.members(
          step.weights, step.members.map((steps) => steps.map((inner) => this.compile(inner))),
        );
      default:
        throw new Error(`a step of kind ${step.kind} is unknown`);
    }
  }

  dense(weight, bias) {
    return (h) => {
      const result = Float64Array.from(bias);
      for (let j = 0; j < result.length; j += 1) result[j] = this.accumulate(result[j], weight[j], h);
      return result;
    };
  }

  /* start + w . h, input after input. */
  accumulate(start, w, h) {
    let sum = start;
    const { round } = this;
    if (round) {
      for (let k = 0; k < w.length; k += 1) sum = round(sum + round(w[k] * h[k]));
    } else {
      for (let k = 0; k < w.length; k += 1) sum += w[k] * h[k];
    }
    return sum;
  }

  sort(h, size) {
    for (let start = 0; start < h.length; start += size) h.subarray(start, start + size).sort();
    return h;
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
    const round = this.round || ((x) => x);
    return (h) => h.map((x) => round(activation(x)));
  }

  blend(keep, add, steps) {
    const round = this.round || ((x) => x);
    return (h) => {
      let branch = h.slice();
      for (const step of steps) branch = step(branch);
      return h.map((x, i) => round(round(keep * x) + round(add * branch[i])));
    };
  }

  /* w0 m0(h) + w1 m1(h) + ..., products rounded before they are added. */
  members(weights, members) {
    const round = this.round || ((x) => x);
    const part = (h, k) => {
      let units = h.slice();
      for (const step of members[k]) units = step(units);
      return units.map((x) => round(weights[k] * x));
    };
    return (h) => {
      const sum = part(h, 0);
      for (let k = 1; k < members.length; k += 1) {
        part(h, k).forEach((x, i) => { sum[i] = round(sum[i] + x); });
      }
      return sum;
    };
  }

  /* A raw number on the axis of feature i: itself, or its logarithm. */
  along(i, raw) {
    const { log, offset, floor } = this.scaling;
    return log[i] ? isotone.elementary.log(Math.max(raw + offset[i], floor[i])) : raw;
  }

  scale(i, raw) {
    return (this.along(i, raw) - this.scaling.center[i]) * this.scaling.factor[i];
  }

  /* Back to raw units. */
  unscale(i, x) {
    return this.back(i, x / this.scaling.factor[i] + this.scaling.center[i]);
  }

  back(i, t) {
    const { log, offset } = this.scaling;
    return log[i] ? isotone.elementary.exp(t) - offset[i] : t;
  }

  snap(row) {
    const { snapGrid, clip } = isotone.elementary;
    const u = new Float64Array(this.nFeatures);
    for (let i = 0; i < u.length; i += 1) {
      const x = clip(this.scale(i, row[i]), this.data.clip);
      const snapped = this.data.grid === null ? x : snapGrid(x, this.data.grid);
      u[i] = this.round ? this.round(snapped) : snapped;
    }
    return u;
  }

  /* Scores of one raw row, an array with one entry per output. */
  score(row) {
    const u = this.snap(row);
    let h = u.slice();
    for (const step of this.steps) h = step(h);
    return Array.from(h, (x, j) => this.accumulate(x, this.residual[j], u) + 0);
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
