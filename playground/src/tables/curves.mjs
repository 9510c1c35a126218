// Curves: histograms, means in bins, ranking by a score, calibration.

import { below, counts, mean, quantile, quantileEdges, sorted } from "./quantiles.mjs";
import { short } from "../rounding.mjs";

const N_HISTOGRAM = 40;
const N_CALIBRATION = 10;
const N_POINTS = 240;

/** Shares of every part of the rows in bins; each part sums to 1, with what lies outside. */
export function histogram(values, parts, whole = null) {
  const finite = sorted(values).filter(Number.isFinite);
  const around = whole ?? (finite.length ? [0.001, 0.999].map((level) => quantile(finite, level)) : [0, 1]);
  const [low, high] = around[1] > around[0] ? around : [around[0] - 0.5, around[0] + 0.5];
  const entries = parts.map(([name, has]) => {
    const own = values.filter((_, k) => has(k));
    const share = own.length ? counts(own, N_HISTOGRAM, low, high).map((n) => short(n / own.length)) : [];
    return [name, { share, n: own.length }];
  });
  return { low, high, parts: Object.fromEntries(entries) };
}

/** Means in bins with their errors; NaN where a bin is empty. `index` is negative for no bin. */
export function binned(index, values, n, has = () => true) {
  const groups = Array.from({ length: n }, () => []);
  index.forEach((bin, k) => { if (bin >= 0 && has(k)) groups[bin].push(values[k]); });
  const shares = groups.every((group) => group.every((x) => x === 0 || x === 1));
  const value = groups.map(mean);
  const error = groups.map((group, k) => (shares ? shareError(value[k], group.length) : meanError(value[k], group)));
  return { value: value.map((x) => short(x)), error: error.map((x) => short(x)), n: groups.map((group) => group.length) };
}

/** With the variance of one more row of each kind, so that it is never 0. */
function shareError(value, n) {
  const p = (value * n + 1) / (n + 2);
  return Math.sqrt((p * (1 - p)) / (n + 3));
}

function meanError(value, group) {
  return Math.sqrt(mean(group.map((x) => (x - value) ** 2)) / group.length);
}

/** Mean predicted probability and observed share in bins with about equally many rows, and their gap. */
export function calibration(probability, positive) {
  const edges = quantileEdges(probability, N_CALIBRATION), n = edges.length - 1;
  const index = probability.map((p) => Math.min(Math.max(below(edges, p, true) - 1, 0), n - 1));
  const observed = binned(index, positive.map(Number), n);
  const sums = Array(n).fill(0), hits = Array(n).fill(0);
  index.forEach((bin, k) => {
    sums[bin] += probability[k];
    hits[bin] += Number(positive[k]);
  });
  const gaps = observed.n.map((rows, k) => (rows > 0 ? Math.abs(sums[k] - hits[k]) : 0));
  const gap = gaps.reduce((sum, x) => sum + x, 0) / probability.length;
  return { gap, described: { predicted: sums.map((sum, k) => short(sum / observed.n[k])), ...observed } };
}

/** True and false positive rates for thresholds from above all scores to below them. */
export function ranking(score, positive) {
  const order = Array.from(score, (_, k) => k).sort((a, b) => score[b] - score[a]);
  let hit = 0, wrong = 0;
  const hits = [], wrongs = [];
  order.forEach((k, place) => {
    if (positive[k]) hit += 1;
    else wrong += 1;
    if (place + 1 < order.length && score[order[place + 1]] === score[k]) return;
    hits.push(hit);
    wrongs.push(wrong);
  });
  const tpr = [0, ...hits.map((n) => n / hit)], fpr = [0, ...wrongs.map((n) => n / wrong)];
  const precision = hits.map((n, k) => n / (n + wrongs[k]));
  const few = spaced(tpr, fpr), step = (values, k) => values[k + 1] - values[k];
  const sum = (of) => precision.reduce((total, _, k) => total + of(k), 0);
  return {
    tpr: few.map((k) => short(tpr[k])),
    fpr: few.map((k) => short(fpr[k])),
    precision: few.map((k) => short([1, ...precision][k])),
    base: hit / (hit + wrong),
    area: sum((k) => (step(fpr, k) * (tpr[k + 1] + tpr[k])) / 2),
    average_precision: sum((k) => step(tpr, k) * precision[k]),
  };
}

/** Some of the points of a curve, evenly spaced along it, with both ends. */
function spaced(tpr, fpr) {
  if (tpr.length <= N_POINTS) return tpr.map((_, k) => k);
  const along = tpr.map((x, k) => x + fpr[k]), last = tpr.length - 1;
  const places = Array.from({ length: N_POINTS }, (_, k) => below(along, (k / (N_POINTS - 1)) * along[last]));
  return [...new Set([...places, last].map((k) => Math.min(k, last)))].sort((a, b) => a - b);
}
