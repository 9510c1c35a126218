// Controls: the sliders and choices of the page, one for every column of a table.

import { counts, lowerQuantile, mean, quantile, sorted } from "./tables/quantiles.mjs";
import { short } from "./rounding.mjs";

const N_BINS = 40;
const REACH = 3; // scaled units on both sides of the center of a feature without knots
const BEYOND = 0.2; // how far sliders go beyond most rows, of the width of those
const FAR = 2; // knots or rows that would make a slider wider than this are left out of it
const TINY = 2 ** -1022;

/** The standard deviation. */
function spreadOf(values) {
  const middle = mean(values);
  return Math.sqrt(mean(values.map((x) => (x - middle) ** 2)));
}

/** What sliders are made of: the model, the network that runs in the page, and rows or null. */
export class Controls {
  constructor(model, network, rows) {
    Object.assign(this, { model, network, rows });
    this.usual = model.inputs.encoded.map((_, i) => this.usualValues(i));
  }

  /** A description of every control, in the order of the columns. */
  all() {
    return this.model.inputs.columns.map((column) => this.control(column));
  }

  /** Low, middle and high value of a feature by the scaling or the knots. */
  usualValues(i) {
    const { network, model } = this, { factor } = network.scaling, copies = network.copies(i);
    const reach = (copy) => (factor[copy] <= TINY ? 0 : copies.length > 1 ? 1 : Math.min(REACH, model.clip));
    const [first, middle, last] = [copies[0], copies[copies.length >> 1], copies.at(-1)];
    return [network.unscale(i, -reach(first), first), network.unscale(i, 0, middle), network.unscale(i, reach(last), last)];
  }

  control(column) {
    const { inputs } = this.model, place = inputs.place(column);
    if (column.kind === "category") return this.category(column, place);
    const control = column.kind === "ordered"
      ? { kind: "ordered", name: column.name, feature: place, labels: column.categories }
      : this.number(column, place, this.present(column, place));
    return column.fill === null ? control : { ...control, indicator: inputs.indicator(column), fill: column.fill };
  }

  category(column, place) {
    const features = column.features.map((_, k) => place + k);
    const labels = column.categories.map((text) => text ?? "(missing)");
    if (column.pooled > 0) labels.push(`(other: ${column.pooled} pooled)`);
    const share = this.rows === null ? null : features.map((i) => this.rows.X[i].reduce((sum, x) => sum + x, 0) / this.rows.n);
    return { kind: "category", name: column.name, features, labels, share };
  }

  /** The values of a column in the rows that have one; null without any. */
  present(column, place) {
    if (this.rows === null) return null;
    const flag = column.fill === null ? null : this.rows.X[this.model.inputs.indicator(column)];
    const values = this.rows.X[place].filter((_, row) => flag === null || flag[row] === 0);
    return values.length > 0 ? sorted(values) : null;
  }

  number(column, i, present) {
    const usual = [this.usual[i][0], this.usual[i][2]], values = present ?? sorted(usual);
    const whole = present !== null && values.every(Number.isInteger);
    const around = this.axis(i, values, usual);
    const axis = present === null ? around : this.bounded(i, around, values, whole);
    const density = present === null ? null : this.density(i, values, axis);
    return { kind: "number", name: column.name, feature: i, low: values[0], high: values.at(-1), axis, whole, spread: present && spreadOf(values), density };
  }

  /** The ends of a slider: nearly all values, the knots unless they are far off, and beyond. */
  axis(i, values, usual) {
    const { network } = this, along = (x) => network.along(i, x);
    let [low, high] = [0.005, 0.995].map((level) => along(quantile(values, level)));
    const width = high - low, ends = [along(values[0]), along(values.at(-1))], knots = usual.map(along);
    const beyond = BEYOND * width || BEYOND * (knots[1] - knots[0]) || 1;
    [low, high] = [low - beyond, high + beyond];
    const covered = network.copies(i).length > 1 ? [ends, knots] : [ends];
    for (const [least, most] of covered) {
      const margin = least === ends[0] && most === ends[1] ? 0 : beyond;
      if (width > 0 && most - least <= FAR * (width + 2 * beyond)) {
        [low, high] = [Math.min(low, least - margin), Math.max(high, most + margin)];
      }
    }
    const first = network.firsts[i];
    return [network.isLog(i) ? Math.max(low, Math.log(network.scaling.floor[first])) : low, high];
  }

  /** An axis on the side of zero where all values are, and between whole numbers. */
  bounded(i, [low, high], values, whole) {
    const { network } = this, [least, most] = [values[0], values.at(-1)];
    if (network.isLog(i)) return [least >= 0 ? Math.max(low, network.along(i, 0)) : low, high];
    const [from, to] = [least >= 0 ? Math.max(low, 0) : low, most <= 0 && least < 0 ? Math.min(high, 0) : high];
    return whole ? [Math.floor(from), Math.ceil(to)] : [from, to];
  }

  density(i, values, [low, high]) {
    const where = Array.from(values, (x) => this.network.along(i, x));
    return counts(where, N_BINS, low, high).map((n) => short(n / values.length, 4));
  }

  /** The median of present values, the most frequent category; without rows the center. */
  start(rows = this.rows) {
    const some = new Controls(this.model, this.network, rows);
    const row = Array(this.model.inputs.encoded.length).fill(0); // nothing is missing
    for (const column of this.model.inputs.columns) {
      const place = this.model.inputs.place(column);
      some.startOf(column, place).forEach((value, k) => { row[place + k] = value; });
    }
    return row;
  }

  startOf(column, place) {
    if (column.kind === "category") {
      const share = column.features.map((_, k) => this.rows?.X[place + k].reduce((sum, x) => sum + x, 0) ?? 0);
      const most = share.indexOf(Math.max(...share));
      return column.features.map((_, k) => Number(k === most));
    }
    const present = this.present(column, place);
    const middle = present === null ? this.usual[place][1] : lowerQuantile(present, 0.5);
    if (column.kind === "number") return [short(middle, 5)];
    return [Math.min(Math.max(isotone.elementary.rint(middle), 0), column.categories.length - 1)];
  }
}
