// The examination: what the exact certificate says of a model, by the columns that people know.

import { Rational, ZERO, larger, ratioUp, smaller } from "../../verifier/src/rational.mjs";
import { refused } from "../../verifier/src/report.mjs";
import { slopesOf } from "../../verifier/src/slopes.mjs";
import { judge } from "../../verifier/src/verdict.mjs";

/** What was judged of a model; `verdict` is HOLDS, FAILS or CANNOT JUDGE, `reason` says why. */
export class Examination {
  constructor(model) {
    this.model = model;
    this.outputs = [...model.directions.keys()];
    Object.assign(this, { errors: null, orders: null, verdicts: [], missing: [], joint: [], constants: null });
    try {
      Object.assign(this, judge(model));
      this.change = slopesOf(model.steps, model.n);
    } catch (error) {
      Object.assign(this, refused(error), { change: null });
    }
  }

  get holds() {
    return this.verdict === "HOLDS";
  }

  /** Lowest and highest slope of an output along an input of the network; null if there is no bound. */
  range(output, j) {
    if (this.change === null) return null;
    const { residual, n } = this.model;
    const r = Rational.of(residual[output * n + j]), bound = this.change.unit(output)[j];
    return { low: r.minus(bound), high: r.plus(bound) };
  }

  /** The same of the difference of two outputs. */
  difference(one, other, j) {
    if (this.change === null) return null;
    const { residual, n } = this.model;
    const r = Rational.of(residual[one * n + j]).minus(Rational.of(residual[other * n + j]));
    const bound = this.change.difference(one, other)[j];
    return { low: r.minus(bound), high: r.plus(bound) };
  }

  /** The inputs that a feature enters as. */
  inputsOf(feature) {
    const { counts, firsts } = this.model.inputs;
    return Array.from({ length: counts[feature] }, (_, k) => firsts[feature] + k);
  }

  /** The slopes of an output along a feature, all inputs that it is together. */
  slope(output, feature) {
    return this.hull(feature, (j) => this.range(output, j));
  }

  /** The same per unit of the raw feature. */
  rawSlope(output, feature) {
    const { scaling } = this.model;
    return this.hull(feature, (j) => {
      const found = this.range(output, j);
      if (found === null) return null;
      const factor = Rational.of(scaling.factor[j]);
      const steep = scaling.log[j] ? ratioUp(factor, Rational.of(scaling.floor[j])) : factor;
      const flat = scaling.log[j] ? ZERO : factor;
      const [low, high] = [found.low.sign < 0 ? steep : flat, found.high.sign > 0 ? steep : flat];
      return { low: found.low.times(low), high: found.high.times(high) };
    });
  }

  /** Beyond its knots a score is constant along a feature of several inputs. */
  hull(feature, of) {
    const found = this.inputsOf(feature).map(of);
    if (found.some((each) => each === null)) return null;
    const still = found.length > 1 ? [ZERO] : [];
    return {
      low: [...found.map(({ low }) => low), ...still].reduce(smaller),
      high: [...found.map(({ high }) => high), ...still].reduce(larger),
    };
  }

  /** The declared direction of an output along a feature; 0 where its inputs differ. */
  declared(output, feature) {
    const signs = this.inputsOf(feature).map((j) => this.model.directions[output][j]);
    return signs.every((sign) => sign === signs[0]) ? signs[0] : 0;
  }

  /** What was judged of a declared direction: { direction, real, computed }, or null for none. */
  direction(output, feature) {
    const names = new Set(this.inputsOf(feature).map((j) => this.model.features[j]));
    const found = this.verdicts.filter((v) => v.output === output && names.has(v.feature));
    const direction = this.declared(output, feature);
    if (direction === 0) return null;
    if (found.length === 0) return { direction, real: false, computed: false };
    return {
      direction,
      real: found.every((v) => v.real),
      computed: found[0].computed === null ? null : found.every((v) => v.computed),
    };
  }
}

/** Whether a direction is proved, for computed numbers at least up to rounding. */
export function keeps({ real, computed }) {
  return real && computed !== false;
}
