"use strict";
/* What the certificate says about one row: the formulas of isotone.certificate.coordinates ... */
isotone.Coordinates = class {
  /* `slopes` are the largest changes of a score per unit of every copy. */
  constructor(network, slopes) {
    this.network = network;
    this.slopes = slopes;
    this.starts = []; // where every copy begins, counted from the lowest number of its feature
    this.totals = network.data.counts.map((_, i) => network.copies(i).reduce((sum, t) => {
      this.starts.push(sum);
      return sum + 2 * network.reach(i) * slopes[t];
    }, 0));
  }

  transform(i, raw) {
    const t = this.network.copy(i, raw);
    return this.starts[t] + (this.network.snap(i, raw, t) + this.network.reach(i)) * this.slopes[t];
  }

  /* How far feature i may move alone, down (-1) or up (1), while a score changes by at most `room`. */
  distance(i, raw, room, side) {
    const far = Number.MAX_VALUE;
    const rounding = (this.network.data.counts[i] + 8) * 2 ** -51 * this.totals[i];
    const left = room * isotone.SHORTEN - rounding;
    const start = this.transform(i, raw);
    if (side * (this.transform(i, side * far) - start) <= left) return Infinity;
    const there = this.inverse(i, start + side * Math.max(left, 0), side);
    const distance = Math.min(side * (there - raw), far) * isotone.SHORTEN;
    return side * (this.transform(i, there) - start) <= left && distance > 0 ? distance : 0;
  }

  /* A number whose coordinate lies a little before `w`, seen from the other side. */
  inverse(i, w, side) {
    const { network } = this;
    const after = network.copies(i).slice(1).map((t) => this.starts[t]);
    const t = network.firsts[i] + after.filter((x) => (side > 0 ? x <= w : x < w)).length;
    const [slope, reach] = [this.slopes[t], network.reach(i)];
    const phi = (w - this.starts[t]) / slope - reach - side * network.slack(i, t);
    const inside = slope > 0 ? isotone.elementary.clip(phi, reach) : side * reach;
    return isotone.elementary.clip(network.unscale(i, inside, t), Number.MAX_VALUE);
  }
};

/* ... and of isotone.certificate.robustness. */
isotone.Decisions = class {
  constructor(network, threshold, described) {
    this.network = network;
    this.threshold = threshold;
    const bound = (x) => (x === null ? Infinity : x);
    const [fall, rise] = [described.fall, described.rise].map((slopes) => slopes.map(bound));
    const worst = (values, i) => Math.max(...network.copies(i).map((t) => values[t]));
    const features = network.data.counts.map((_, i) => i);
    [this.fall, this.rise] = [fall, rise].map((slopes) => features.map((i) => worst(slopes, i)));
    this.exact = features.map((i) => network.copies(i).every((t) => described.exact[t]));
    this.coordinates = [fall, rise].map((slopes) => new isotone.Coordinates(network, slopes));
    this.error = bound(described.error);
    const slack = fall.map((_, t) => network.slack(network.owner(t), t));
    const steep = features.map((i) => Math.max(this.fall[i], this.rise[i]));
    this.steepest = Math.max(...steep);
    this.lost = features.reduce((sum, i) => sum + steep[i] * worst(slack, i), 0);
  }

  /* { scaled, down, up }: distances within which the decision on this row cannot change. */
  radius(row, score) {
    const off = Math.abs(score - this.threshold) * isotone.SHORTEN - 2 * this.error;
    const gap = Math.max(off, 0);
    const [fall, rise] = this.coordinates;
    const [below, above] = score >= this.threshold ? [rise, fall] : [fall, rise];
    const one = (along, i, side) => {
      const helps = this.exact[i] && along.totals[i] === 0;
      return helps || gap > 0 ? along.distance(i, row[i], gap, side) : 0;
    };
    const room = Math.max(gap * isotone.SHORTEN - this.lost / isotone.SHORTEN, 0);
    return {
      scaled: room > 0 ? (room / this.steepest) * isotone.SHORTEN : 0,
      down: row.map((_, i) => one(below, i, -1)),
      up: row.map((_, i) => one(above, i, 1)),
    };
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

  /* Decide by another threshold; slopes and errors stay. */
  moveTo(threshold) {
    this.threshold = threshold;
    this.decisions.threshold = threshold;
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
  const { output, probability, points } = shown;
  const [low, high] = reach(slope(network.data.slopes[output][i]));
  const near = [scores[output] + low, scores[output] + high];
  if (points) return near.map((z) => isotone.app.inPoints(z));
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
