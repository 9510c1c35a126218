// Robustness of a table: what is certified about its rows when columns are shifted, and measured.

import { histogram } from "./curves.mjs";
import { below, linspace, lowerQuantile, mean, nextUp, quantile, sorted } from "./quantiles.mjs";
import { short } from "../rounding.mjs";

const N_SHIFTS = 11;
const MAX_SHIFTED = 20; // columns whose shifts are shown, those with the largest effects
const MAX_WORK = 5e7; // multiplications for the shifts of all columns, about a second
const OVERHEAD = 500; // of a score, in multiplications
const FEWEST_ROWS = 200;
const USUAL = 0.01; // of the standard deviation of a column: its shift
const EVERY = [["all rows", () => true]];

/** Panels about shifts and radii; null for several numbers. `described` is the decision, for values at 0. */
export function describeRobustness(content, described, effects, stops) {
  const { outcomes, scored } = content;
  if (described === null || (outcomes.kind === "values" && scored.scores.length > 1)) return null;
  return new Robustness(content, described, effects, stops).describe();
}

class Robustness {
  constructor({ model, network, outcomes, rows, scored }, described, effects, stops) {
    Object.assign(this, { model, network, outcomes, rows, scored, effects });
    this.judge = new isotone.Judge(network, described);
    this.isValue = outcomes.kind === "values";
    this.stops = stops ?? [outcomes.threshold ?? 0];
    this.columns = model.inputs.columns.filter((column) => column.kind === "number").map((column) => ({
      name: column.name, place: model.inputs.place(column),
      flag: column.fill === null ? null : rows.X[model.inputs.indicator(column)],
    }));
  }

  describe() {
    const shifts = this.columns.map((column) => [column, this.spread(column, USUAL)]).filter(([, shift]) => shift > 0);
    const user = Object.fromEntries(shifts.map(([{ name }, shift]) => [name, shift]));
    const all = { user, usual: true, shifts: this.curves() };
    if (this.isValue) return { ...all, moves: this.moves(shifts) };
    return { ...all, certified: this.certified(shifts), radii: this.radii() };
  }

  /** A round number near a share of the standard deviation of most rows. */
  spread({ place }, share) {
    const values = this.rows.X[place], ascending = sorted(values);
    const [low, high] = [0.005, 0.995].map((level) => quantile(ascending, level));
    const most = values.map((x) => Math.min(Math.max(x, low), high)), middle = mean(most);
    return short(share * Math.sqrt(mean(most.map((x) => (x - middle) ** 2))), 1);
  }

  /** Whether the value of a column moves in a row: it does not where it is missing. */
  moved({ flag }, row) {
    return flag === null || flag[row] === 0;
  }

  scoresOf(row) {
    return this.scored.scores.map((values) => values[row]);
  }

  /** Largest fall and rise of a score as one column moves by up to ±shift. */
  change({ coordinates: [fall, rise] }, column, row, shift) {
    if (!this.moved(column, row)) return [0, 0];
    const i = column.place, x = this.rows.X[i][row], [low, high] = [x - shift, x + shift];
    if (low === x && high === x) return [0, 0];
    return [
      Math.max(along(rise, i, low, x), along(fall, i, x, high)),
      Math.max(along(fall, i, low, x), along(rise, i, x, high)),
    ];
  }

  /** The same for all columns at once. */
  together(decisions, row, shifts) {
    return shifts.reduce(([down, up], [column, shift]) => {
      const [fall, rise] = this.change(decisions, column, row, shift);
      return [down + fall, up + rise];
    }, [0, 0]);
  }

  /** Share of rows, at every stop, whose decision stands under all shifts at once. */
  certified(shifts) {
    const lost = new Lost(this.stops), { n } = this.rows;
    for (let row = 0; row < n; row += 1) {
      if (this.judge.kind === "classes") lost.add(0, this.mayFlip(row, shifts) ? 1 : 0);
      else this.lose(lost, row, this.together(this.judge.decisions, row, shifts));
    }
    return lost.counts().map((count) => 1 - count / n);
  }

  /** Count a row at the thresholds where its decision may change, given how far its score can move. */
  lose(lost, row, [fall, rise]) {
    if (fall === 0 && rise === 0) return;
    const { SHORTEN } = isotone, { error } = this.judge.decisions, score = this.scored.scores[0][row];
    const [down, up] = [fall, rise].map((change) => (change / SHORTEN + 2 * error) / SHORTEN / SHORTEN);
    const [low, high] = [-nextUp(down - score), nextUp(score + up)];
    const last = Number.isNaN(high) ? this.stops.length : below(this.stops, high, true); // NaN is not safe
    lost.add(below(this.stops, low), last);
  }

  /** Whether another class can win when columns move. */
  mayFlip(row, shifts) {
    const scores = this.scoresOf(row), winner = this.judge.decide(scores);
    return this.judge.rivals[winner].some(([other, decisions]) => {
      const [fall] = this.together(decisions, row, shifts);
      const gap = gapOf(decisions, scores[winner] - scores[other]);
      return shifts.some(([column]) => this.moved(column, row)) && !(fall / isotone.SHORTEN < gap);
    });
  }

  /** How far the prediction of every row can move under all shifts at once. */
  moves(shifts) {
    const { decisions } = this.judge;
    const most = this.rows.numbers.map((_, row) => Math.max(...this.together(decisions, row, shifts)) + 2 * decisions.error);
    const ascending = sorted(most), [median, large] = [0.5, 0.95].map((level) => lowerQuantile(ascending, level));
    return { ...histogram(most, EVERY, [0, quantile(ascending, 0.995)]), median, most: large };
  }

  /** Distribution of the distance that all features may move together. */
  radii() {
    const { y } = this.rows, { outcomes } = this;
    const scaled = this.rows.numbers.map((_, row) => this.radius(row)), ascending = sorted(scaled);
    const finite = ascending.filter(Number.isFinite), top = finite.length ? quantile(finite, 0.995) : 1;
    const parts = y === null ? EVERY : outcomes.classes.map((_, c) => [outcomes.name(c), (row) => y[row] === c]);
    const [tenth, median] = [0.1, 0.5].map((level) => lowerQuantile(ascending, level));
    return { ...histogram(scaled, parts, [0, top || 1]), tenth, median };
  }

  radius(row) {
    const scores = this.scoresOf(row), { judge } = this;
    if (judge.kind === "threshold") return scaledRadius(judge.decisions, scores[0]);
    const winner = judge.decide(scores);
    return Math.min(...judge.rivals[winner].map(([other, each]) => scaledRadius(each, scores[winner] - scores[other])));
  }

  /** For columns of numbers: the bound, and what shifts of that column alone really do. */
  curves() {
    const effect = new Map(this.model.inputs.columns.map((column, k) => [column.name, this.effects[k]]));
    const order = [...this.columns].sort((a, b) => effect.get(b.name) - effect.get(a.name)).slice(0, MAX_SHIFTED);
    const chosen = this.columns.filter((column) => order.includes(column));
    const work = 2 * N_SHIFTS * Math.max(chosen.length, 1) * (this.network.size + OVERHEAD);
    const some = spaced(this.rows.n, Math.max(Math.floor(MAX_WORK / work), FEWEST_ROWS));
    const spreads = chosen.map((column) => [column, this.spread(column, 0.25)]).filter(([, spread]) => spread > 0);
    return { n: some.length, curves: spreads.map(([column, spread]) => this.curve(column, spread, some)) };
  }

  curve(column, spread, some) {
    const delta = linspace(0, spread, N_SHIFTS).slice(1);
    const steps = delta.map((_, k) => (spread * (k + 1)) / (N_SHIFTS - 1));
    return {
      feature: column.name, delta,
      bound: steps.map((shift) => this.bound(column, shift, some)),
      up: delta.map((by) => this.measured(column, by, some)),
      down: delta.map((by) => this.measured(column, -by, some)),
    };
  }

  bound(column, shift, some) {
    if (this.judge.kind === "classes") {
      const near = some.filter((row) => {
        const { down, up } = this.distances(row);
        return Math.min(down[column.place], up[column.place]) <= shift;
      });
      return [near.length / some.length];
    }
    const { decisions } = this.judge;
    const changes = () => some.map((row) => Math.max(...this.change(decisions, column, row, shift)));
    if (this.isValue) return [Math.max(...changes()) + 2 * decisions.error];
    const lost = new Lost(this.stops);
    for (const row of some) this.lose(lost, row, this.change(decisions, column, row, shift));
    return lost.counts().map((count) => upward(count / some.length));
  }

  /** How far every feature of a row may move alone, computed once. */
  distances(row) {
    this.known ??= new Map();
    if (!this.known.has(row)) this.known.set(row, this.judge.radius(this.rows.row(row), this.scoresOf(row)));
    return this.known.get(row);
  }

  /** Flips at every stop when all rows move by as much, or the largest change of a value. */
  measured(column, by, some) {
    const { outcomes } = this, lost = new Lost(this.stops);
    let most = 0;
    for (const row of some) {
      const x = this.rows.row(row), before = this.scoresOf(row);
      if (this.moved(column, row)) x[column.place] += by;
      const after = this.network.score(x);
      if (this.isValue) most = Math.max(most, Math.abs(after[0] - before[0]));
      else if (outcomes.kind === "classes") lost.add(0, outcomes.decide(after) === outcomes.decide(before) ? 0 : 1);
      else lost.add(...[Math.min(before[0], after[0]), Math.max(before[0], after[0])].map((z) => below(this.stops, z, true)));
    }
    if (this.isValue) return [most];
    const shares = lost.counts().map((count) => count / some.length);
    return outcomes.kind === "classes" ? shares : shares.map((share) => short(share));
  }
}

/** Rows counted at stops, each from one stop to before another. */
class Lost {
  constructor(stops) {
    this.steps = Array(stops.length + 1).fill(0);
  }

  add(first, last) {
    this.steps[first] += 1;
    this.steps[last] -= 1;
  }

  counts() {
    let sum = 0;
    return this.steps.slice(0, -1).map((step) => Math.max((sum += step), 0));
  }
}

/** How much a score can change at most as feature i goes from low to high. */
function along(coordinates, i, low, high) {
  const rounding = (coordinates.network.data.counts[i] + 8) * 2 ** -51 * coordinates.totals[i];
  return Math.max(coordinates.transform(i, high) - coordinates.transform(i, low), 0) + rounding;
}

/** How far an exact score surely lies off the threshold. */
function gapOf({ threshold, error }, score) {
  return Math.max(Math.abs(score - threshold) * isotone.SHORTEN - 2 * error, 0);
}

/** Distance over which no moves of the features can cross the gap. */
function scaledRadius(decisions, score) {
  const { SHORTEN } = isotone;
  const room = Math.max(gapOf(decisions, score) * SHORTEN - decisions.lost / SHORTEN, 0);
  return room > 0 ? (room / decisions.steepest) * SHORTEN : 0;
}

/** Numbers of all rows, or of as many as are wanted, evenly spaced. */
function spaced(n, most) {
  const wanted = Math.min(n, most);
  return wanted === 1 ? [0] : [...new Set(linspace(0, n - 1, wanted).map(Math.floor))];
}

/** Six digits, not less than the share itself. */
function upward(share) {
  const rounded = short(share);
  return rounded >= share ? rounded : short(rounded + 10 ** (Math.floor(Math.log10(share)) - 5));
}
