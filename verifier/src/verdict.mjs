// The verdict: every constraint that a model declares, judged from its stored numbers.

import { errorsOf } from "./errors.mjs";
import { isExact } from "./exactness.mjs";
import { constants } from "./lipschitz.mjs";
import { comparisons, leastChange, missingColumns } from "./missing.mjs";
import { isOrdered, orderedErrors } from "./ordered.mjs";
import { Rational, TWO, ZERO, smaller, sum } from "./rational.mjs";
import { CannotJudge } from "./refusal.mjs";
import { slopesAlong, slopesOf } from "./slopes.mjs";

const MOST_DIFFERENCES = 2 ** 22;

/** What the numbers of a model prove. */
export function judge(model) {
  return new Judgement(model).result();
}

class Judgement {
  constructor(model) {
    this.model = model;
    this.change = slopesOf(model.steps, model.n);
    this.errors = this.findErrors();
    this.slopes = new Map();
  }

  /** E of every output, and what directions need of it; null where there is none. */
  findErrors() {
    const { model } = this;
    if (isExact(model)) return Array.from({ length: model.nOutputs }, () => ({ all: ZERO, before: ZERO }));
    if (isOrdered(model)) return orderedErrors(model);
    return errorsOf(model)?.map((error) => ({ all: error, before: error })) ?? null;
  }

  result() {
    const { model, errors } = this;
    const verdicts = this.directions(), missing = this.missing(), joint = this.joint();
    const found = constants(model), within = found.every((bound) => bound.holds);
    const all = [...verdicts, ...joint]; // directions along indicators are among them
    const fails = all.some((v) => v.real === false || v.computed === false) || !within || errors === null;
    return {
      verdict: fails ? "FAILS" : "HOLDS",
      reason: null,
      lipschitzHolds: within,
      constants: found.map((bound) => bound.ratio),
      errors: errors?.map((error) => error.all) ?? null,
      orders: errors?.map((error) => error.before) ?? null, // what decides directions
      verdicts, missing, joint,
    };
  }

  residual(output, j) {
    return Rational.of(this.model.residual[output * this.model.n + j]);
  }

  slopesOf(output) {
    if (!this.slopes.has(output)) this.slopes.set(output, this.change.unit(output));
    return this.slopes.get(output);
  }

  /** What a direction of an output is about: itself, or for classes its differences to the others. */
  differences(output) {
    const { model, errors } = this;
    if (!model.ofClasses) {
      return [{ slopes: this.slopesOf(output), residual: (j) => this.residual(output, j), error: errors?.[output].before }];
    }
    return Array.from({ length: model.nOutputs }, (_, k) => k).filter((k) => k !== output).map((k) => ({
      slopes: this.change.difference(output, k),
      residual: (j) => this.residual(output, j).minus(this.residual(k, j)),
      error: errors?.[output].all.plus(errors[k].all),
    }));
  }

  /** Every declared direction along an input: (s r - L) q ≥ 2E. */
  directions() {
    const { model } = this, rows = [...model.directions.keys()];
    const declared = rows.filter((k) => model.directions[k].some((s) => s !== 0));
    const work = declared.length * (model.ofClasses ? model.nOutputs * model.n : 0);
    if (work > MOST_DIFFERENCES) throw new CannotJudge("there are too many differences of classes");
    return declared.flatMap((output) => {
      const differences = this.differences(output);
      return model.directions[output].flatMap((sign, j) => {
        return sign === 0 ? [] : [this.direction(output, j, sign, differences)];
      });
    });
  }

  direction(output, j, sign, differences) {
    const factor = Rational.of(sign), { grid, features } = this.model;
    const each = differences.map(({ slopes, residual, error }) => {
      const slope = residual(j).times(factor).minus(slopes[j]);
      const gap = grid === null ? null : slope.times(Rational.of(grid));
      return { slope, ...this.decision(slope, gap, error) };
    });
    return { output, feature: features[j], direction: sign, slope: leastOf(each, "slope"), ...worst(each) };
  }

  /** Whether a difference holds in real numbers and as computed: null where there is no grid. */
  decision(real, gap, error) {
    if (gap === null) return { real: real.sign >= 0, computed: null };
    if (error === undefined) return { real: real.sign >= 0, computed: false };
    return { real: real.sign >= 0, computed: real.sign >= 0 && gap.isAtLeast(error.times(TWO)) };
  }

  /**
   * A missing value against any value, where its indicator has a direction. It says how far that
   * direction reaches; what is declared is the direction along the indicator, the value being the fill.
   */
  missing() {
    const { model } = this;
    return missingColumns(model).flatMap((about) => {
      const rows = [...model.directions.keys()];
      const signs = (output) => new Set(about.flags.map((j) => model.directions[output][j]));
      const declared = rows.filter((k) => signs(k).size === 1 && !signs(k).has(0));
      const cases = declared.length > 0 ? comparisons(model, about) : [];
      return declared.map((output) => this.missingVerdict(about, output, cases));
    });
  }

  missingVerdict({ column, flags }, output, cases) {
    const sign = this.model.directions[output][flags[0]];
    const each = this.differences(output).flatMap(({ slopes, residual, error }) => cases.map((one) => {
      const least = leastChange(one, sign, residual, slopes);
      return { least, ...this.decision(least, this.model.grid === null ? null : least, error) };
    }));
    return { output, column: column.name, direction: sign, least: leastOf(each, "least"), ...worst(each) };
  }

  /** Joint directions, in real numbers: r · D ≥ L along D, the scaled inputs' rates. */
  joint() {
    const { model } = this;
    if (model.joint.length === 0) return [];
    const rates = model.joint.map((direction) => ratesOf(model, direction));
    const change = slopesAlong(model.steps, rates);
    return [...model.directions.keys()].flatMap((output) => {
      const bounds = change.unit(output);
      return rates.map((D, k) => {
        const slope = sum(D.map((d, j) => d.times(this.residual(output, j)))).minus(bounds[k]);
        return { output, direction: [...model.joint[k]], slope, real: slope.sign >= 0, computed: null };
      });
    });
  }
}

function ratesOf({ inputs, scaling, n }, direction) {
  const rates = Array.from({ length: n }, () => ZERO);
  for (const [name, rate] of direction) {
    const j = inputs.firsts[inputs.place(inputs.columns.find((column) => column.name === name))];
    rates[j] = Rational.of(rate).times(Rational.of(scaling.factor[j]));
  }
  return rates;
}

const leastOf = (each, name) => each.map((one) => one[name]).reduce(smaller);

/** Of several decisions about one claim: it holds if all do. */
function worst(each) {
  const computed = each.some((one) => one.computed === false) ? false : each[0].computed;
  return { real: each.every((one) => one.real), computed };
}
