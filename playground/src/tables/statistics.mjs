// Statistics of a table: distributions of scores, how good they are, and against what columns.

import { binned, calibration, histogram, ranking } from "./curves.mjs";
import { below, lowerQuantile, mean, quantile, quantileEdges, sorted } from "./quantiles.mjs";
import { byStop } from "./stops.mjs";
import { short } from "../rounding.mjs";

const N_BINS = 10;
const N_CELLS = 36; // of the picture of predicted against observed, along each axis
const MAX_TRUE_CLASSES = 6; // more of them are not told apart in a histogram
const EVERY = [["all rows", () => true]];

/** Panels for every output, metrics, and rates against every column. */
export function describeStatistics(outcomes, rows, scored, stops = null) {
  return {
    metrics: metricsOf(outcomes, rows, scored),
    outputs: outputsOf(outcomes, rows, scored),
    against: against(outcomes, rows, scored, stops),
    confusion: confusion(outcomes, rows, scored),
    residuals: rows.y !== null && outcomes.kind === "values" ? residualsOf(rows.y, scored.scores[0]) : null,
  };
}

/** Distribution, ranking and calibration of every output. */
function outputsOf(outcomes, rows, scored) {
  if (scored.decided === null) return scored.scores.map((values) => ({ histogram: histogram(values, EVERY) }));
  if (outcomes.kind === "two classes") return [ofClass(outcomes, rows, scored, 1, scored.scores[0], scored.probability?.[0])];
  return scored.probability.map((values, k) => ofClass(outcomes, rows, scored, k, values, values));
}

/** What there is to say about one class against all others. */
function ofClass(outcomes, rows, { decided }, k, score, probability) {
  const { y } = rows, whole = outcomes.kind === "classes" ? [0, 1] : null;
  const data = { histogram: histogram(score, partsOf(outcomes, y, k), whole) };
  if (y === null) return data;
  const positive = Array.from(y, (truth) => truth === k), n = positive.filter(Boolean).length;
  if (n > 0 && n < y.length) {
    data.ranking = ranking(score, positive);
    data.point = pointOf(decided, positive, k);
  }
  if (probability) data.calibration = calibration(Array.from(probability), positive).described;
  return data;
}

/** Rows by what they truly are. */
function partsOf(outcomes, y, k) {
  if (y === null) return EVERY;
  if (outcomes.classes.length > MAX_TRUE_CLASSES) {
    return [[outcomes.name(k), (row) => y[row] === k], ["all others", (row) => y[row] !== k]];
  }
  return outcomes.classes.map((_, c) => [outcomes.name(c), (row) => y[row] === c]);
}

/** Rates of a decision: true and false positives, and the precision. */
function pointOf(decided, positive, k) {
  let hit = 0, wrong = 0;
  const all = positive.filter(Boolean).length;
  decided.forEach((decision, row) => {
    if (decision === k && positive[row]) hit += 1;
    else if (decision === k) wrong += 1;
  });
  const precision = hit + wrong > 0 ? hit / (hit + wrong) : 1;
  return { tpr: hit / all, fpr: wrong / (positive.length - all), precision };
}

/** Names and numbers, best known first. */
function metricsOf(outcomes, { y }, { scores, probability, decided }) {
  if (y === null) return [];
  if (outcomes.kind === "values") return ofValues(y, scores[0]);
  const right = decided.filter((decision, row) => decision === y[row]).length;
  const found = [["accuracy", right / y.length]];
  if (probability === null) return found;
  const two = probability.length === 1, classes = two ? [[1, probability[0]]] : probability.map((values, k) => [k, values]);
  const gaps = classes.map(([k, values]) => calibration(Array.from(values), Array.from(y, (truth) => truth === k)).gap);
  const own = (row) => (two ? (y[row] === 1 ? probability[0][row] : 1 - probability[0][row]) : probability[y[row]][row]);
  const loss = mean(Array.from(y, (_, row) => -Math.log(Math.max(own(row), 1e-300))));
  return [...found, ["calibration error", mean(gaps)], ["mean logarithmic loss", loss]];
}

function ofValues(y, score) {
  const errors = Array.from(y, (truth, row) => truth - score[row]), middle = mean(y);
  const squared = mean(errors.map((e) => e ** 2)), spread = mean(y.map((truth) => (truth - middle) ** 2));
  return [
    ["share of variance explained (R²)", spread > 0 ? 1 - squared / spread : null],
    ["root mean squared error", Math.sqrt(squared)],
    ["mean absolute error", mean(errors.map(Math.abs))],
  ];
}

/** Numbers of rows of every true class (first index) and decision, of several classes. */
function confusion(outcomes, { y }, { decided }) {
  if (outcomes.kind !== "classes" || y === null) return null;
  const table = outcomes.classes.map(() => outcomes.classes.map(() => 0));
  decided.forEach((decision, row) => { table[y[row]][decision] += 1; });
  return table;
}

/** For every column, curves over its bins or groups; of decisions also at every stop. */
function against(outcomes, rows, scored, stops) {
  const curves = curvesOf(outcomes, rows, scored);
  return [...rows.columns].map(([column, values]) => {
    const { index, ...bins } = binsOf(values);
    const drawn = curves.map(([name, each, has]) => ({
      name, ...binned(index, each, bins.at.length, has), ...byStop(index, scored.scores[0], stops, bins.at.length, has),
    }));
    return { column, ...bins, curves: drawn };
  });
}

/** Number of the bin of every row, -1 for none, and what the bins are. */
function binsOf(column) {
  if (Array.isArray(column)) {
    const at = [...new Set(column)].sort((a, b) => (a < b ? -1 : 1));
    return { index: column.map((text) => at.indexOf(text)), at, edges: null };
  }
  const edges = quantileEdges(column, N_BINS), n = edges.length - 1;
  const bin = (x) => {
    const k = Number.isFinite(x) ? below(edges, x, true) - 1 : -1;
    return k >= n ? -1 : k;
  };
  const at = edges.slice(0, -1).map((edge, k) => short(0.5 * (edge + edges[k + 1]), 5));
  return { index: Array.from(column, bin), at, edges: edges.map((edge) => short(edge, 5)) };
}

/** Title, numbers to average, and which rows count, of the curves against a column. */
function curvesOf(outcomes, { y }, { scores, decided }) {
  const all = () => true, truly = (c) => (row) => y[row] === c;
  if (decided === null) {
    const names = scores.length === 1 ? ["predicted"] : outcomes.outputs;
    const curves = names.map((name, k) => [name, scores[k], all]);
    return y === null ? curves : [...curves, ["observed", y, all]];
  }
  const names = outcomes.classes.map((_, c) => [outcomes.name(c), c]);
  if (outcomes.kind === "classes") {
    return names.map(([name, c]) => [name, decided.map((k) => Number(k === c)), y === null ? all : truly(c)]);
  }
  return y === null ? [["all rows", decided, all]] : names.map(([name, c]) => [name, decided, truly(c)]);
}

/** Observed minus predicted: its distribution, its spread by prediction, and all pairs. */
function residualsOf(y, predicted) {
  const residual = y.map((truth, row) => truth - predicted[row]);
  return { histogram: histogram(residual, EVERY), by_prediction: byPrediction(residual, predicted), pairs: pairs(y, predicted) };
}

function byPrediction(residual, predicted) {
  const edges = quantileEdges(predicted, N_BINS), n = edges.length - 1;
  const groups = Array.from({ length: n }, () => []);
  predicted.forEach((p, row) => groups[Math.min(Math.max(below(edges, p, true) - 1, 0), n - 1)].push(row));
  const filled = groups.filter((group) => group.length > 0);
  const levels = filled.map((group) => sorted(group.map((row) => residual[row])));
  const at = filled.map((group) => mean(group.map((row) => predicted[row])));
  const [low, middle, high] = [0.1, 0.5, 0.9].map((level) => levels.map((each) => lowerQuantile(each, level)));
  return { at, low, middle, high };
}

/** How many rows have which observed and predicted number, in square cells. */
function pairs(y, predicted) {
  const both = sorted([...y, ...predicted]);
  let [low, high] = [0.001, 0.999].map((level) => quantile(both, level));
  if (high <= low) [low, high] = [low - 0.5, low + 0.5];
  const found = new Map(), place = (x) => Math.min(Math.floor(((x - low) / (high - low)) * N_CELLS), N_CELLS - 1);
  y.forEach((truth, row) => {
    if ([truth, predicted[row]].some((x) => x < low || x > high)) return;
    const key = place(truth) * N_CELLS + place(predicted[row]);
    found.set(key, (found.get(key) ?? 0) + 1);
  });
  const cells = [...found].sort(([a], [b]) => a - b).map(([key, n]) => [Math.floor(key / N_CELLS), key % N_CELLS, n]);
  return { low, high, n: N_CELLS, cells };
}
