"use strict";
/* What the certificate says about one row: the formulas of isotone.robustness. */
isotone.Decisions = class {
  constructor(network, threshold, described) {
    this.network = network;
    this.threshold = threshold;
    const bound = (x) => (x === null ? Infinity : x);
    this.fall = described.fall.map(bound);
    this.rise = described.rise.map(bound);
    this.exact = described.exact;
    this.error = bound(described.error);
  }

  /* { scaled, down, up }: distances within which the decision on this row cannot change. */
  radius(row, score) {
    const accepted = score >= this.threshold;
    const off = Math.abs(score - this.threshold) * isotone.SHORTEN - 2 * this.error;
    const gap = Math.max(off, 0);
    const down = accepted ? this.rise : this.fall;
    const up = accepted ? this.fall : this.rise;
    const cells = row.map((_, i) => this.cell(i));
    let steepest = 0;
    let lost = 0;
    for (let i = 0; i < row.length; i += 1) {
      const both = Math.max(down[i], up[i]);
      steepest = Math.max(steepest, both);
      lost += both * cells[i];
    }
    const one = (slope, i) => {
      if (slope > 0) return this.reach(gap, slope, slope * cells[i]);
      return this.exact[i] || gap > 0 ? Infinity : 0;
    };
    return {
      scaled: this.reach(gap, steepest, lost),
      down: row.map((raw, i) => this.rawDistance(i, raw, one(down[i], i), -1)),
      up: row.map((raw, i) => this.rawDistance(i, raw, one(up[i], i), 1)),
    };
  }

  reach(gap, slope, lost) {
    if (!(slope > 0)) return Infinity;
    const room = Math.max(gap * isotone.SHORTEN - lost / isotone.SHORTEN, 0);
    const far = (room / slope) * isotone.SHORTEN;
    return Number.isNaN(far) ? 0 : Math.min(far, Number.MAX_VALUE);
  }

  /* How much farther than a scaled feature what enters the network can move. */
  cell(i) {
    const { clip, grid, precision } = this.network.data;
    const { log, center, factor } = this.network.scaling;
    const cast = precision === "float32" ? clip * 2 ** -23 : 0;
    const linear = 2 ** -48 * (clip + Math.abs(center[i] * factor[i]));
    return cast + (grid || 0) + (log[i] ? 2 ** -22 * factor[i] + linear : linear);
  }

  rawDistance(i, raw, reach, side) {
    if (reach === Infinity) return Infinity;
    const { network } = this;
    const x = network.scale(i, raw);
    const moved = x + side * reach;
    const there = network.unscale(i, moved);
    const distance = side * (there - raw) * isotone.SHORTEN - this.slip(i, raw) - this.slip(i, there);
    return this.invertible(i, x) && this.invertible(i, moved) && distance > 0 ? distance : 0;
  }

  slip(i, raw) {
    const { log, offset, center } = this.network.scaling;
    if (log[i]) return 2 ** -23 * (Math.abs(raw) + Math.abs(offset[i]));
    return 2 ** -48 * (Math.abs(raw) + Math.abs(center[i]));
  }

  invertible(i, x) {
    const { log, center, factor } = this.network.scaling;
    const v = x / factor[i] + center[i];
    return Number.isFinite(v) && (!log[i] || Math.abs(v) < 690);
  }
};

isotone.SHORTEN = 1 - 2 ** -30;

/* The decision of the whole model: a threshold, or the largest of several logits. */
isotone.Judge = class {
  constructor(network, described) {
    this.kind = described.kind;
    if (this.kind === "threshold") {
      this.threshold = described.threshold;
      this.decisions = new isotone.Decisions(network, described.threshold, described.decisions);
    } else {
      this.rivals = described.rivals.map((others) => Object.entries(others).map(
        ([other, each]) => [Number(other), new isotone.Decisions(network, 0, each)],
      ));
    }
  }

  /* The number of the class that is decided. */
  decide(scores) {
    if (this.kind === "threshold") return scores[0] >= this.threshold ? 1 : 0;
    return scores.indexOf(Math.max(...scores));
  }

  /* How far the score is above the threshold, or the winner above the next. */
  lead(scores) {
    if (this.kind === "threshold") return scores[0] - this.threshold;
    const sorted = [...scores].sort((a, b) => b - a);
    return sorted[0] - sorted[1];
  }

  radius(row, scores) {
    if (this.kind === "threshold") return this.decisions.radius(row, scores[0]);
    const winner = this.decide(scores);
    const all = this.rivals[winner].map(
      ([other, each]) => each.radius(row, scores[winner] - scores[other]),
    );
    return {
      scaled: Math.min(...all.map((each) => each.scaled)),
      down: row.map((_, i) => Math.min(...all.map((each) => each.down[i]))),
      up: row.map((_, i) => Math.min(...all.map((each) => each.up[i]))),
    };
  }
};

/* Bounds of what is shown when feature i moves alone, from the slopes that are certified.
   `shown` is { output, probability }; the result [low, high] holds the true value. */
isotone.envelope = (network, judge, scores, shown, i, step) => {
  const slope = (pair) => [pair[0] === null ? -Infinity : pair[0], pair[1] === null ? Infinity : pair[1]];
  const reach = ([low, high]) => {
    if (step === 0) return [0, 0];
    return step > 0 ? [low * step, high * step] : [high * step, low * step];
  };
  const { output, probability } = shown;
  const [low, high] = reach(slope(network.data.slopes[output][i]));
  const near = [scores[output] + low, scores[output] + high];
  if (!probability) return near;
  if (scores.length === 1) return near.map((z) => network.probability([z])[1]);
  const { monotoneExp } = isotone.elementary;
  const total = [1, 1];
  for (const [other, each] of judge.rivals[output]) {
    const [less, more] = reach([-each.fall[i], each.rise[i]]);
    const lead = scores[output] - scores[other];
    total[0] += monotoneExp(-(lead + less));
    total[1] += monotoneExp(-(lead + more));
  }
  return [1 / total[0], 1 / total[1]];
};
