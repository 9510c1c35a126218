// Key figures: numbers that the report opens with, as HTML.

import { escape } from "./markup.mjs";
import { decimal } from "./rounding.mjs";
import { parametersOf } from "./words.mjs";

/** The row of figures; without a table those that the model alone gives. */
export function figures(model, outcomes, data) {
  const found = [...measured(outcomes, data), rowsOf(data), identity(model)];
  return `<dl class="figures">${found.map(toHtml).join("")}</dl>`;
}

function toHtml([name, text, about, id]) {
  return `<div class="figure"${id ? ` id="${id}"` : ""}><dt>${escape(name)}</dt>`
    + `<dd><strong>${joined(text)}</strong><span>${joined(about)}</span></dd></div>`;
}

/** Text as HTML that no line ends before a percent sign. */
const joined = (text) => escape(text).replaceAll(" %", "&nbsp;%");

function measured(outcomes, data) {
  if (data.sample === null) return [directions(data)];
  const metrics = new Map(data.statistics.metrics);
  return [quality(outcomes, data, metrics), calibration(metrics), certified(data)].filter((figure) => figure !== null);
}

/** How well the model ranks, recognizes or predicts. */
function quality(outcomes, data, metrics) {
  const share = metrics.get("share of variance explained (R²)") ?? null, right = metrics.get("accuracy") ?? null;
  if (outcomes.kind === "values") return share === null ? null : ["R²", share.toFixed(3), "of the variance explained"];
  if (outcomes.kind === "classes") {
    return right === null ? null : ["Accuracy", `${(100 * right).toFixed(1)} %`, "of rows recognized"];
  }
  const { ranking } = data.statistics.outputs[0];
  return ranking === undefined ? null : ["AUC", ranking.area.toFixed(3), "area under the ROC curve; 0.5 is chance"];
}

function calibration(metrics) {
  const error = metrics.get("mean absolute error"), off = metrics.get("calibration error");
  if (error !== undefined) return ["Mean error", String(Number(error.toPrecision(4))), "absolute, per row"];
  return off === undefined ? null : ["Calibration", `± ${(100 * off).toFixed(1)} %`, "mean gap between predicted and observed"];
}

function certified({ robustness, stops }) {
  if (robustness === null) return null;
  const about = "if every number is off by up to 1 % of its spread", { moves } = robustness;
  if (moves) return ["Certified move", `≤ ${decimal(moves.most, 1, 3)}`, `in 95 % of rows ${about}`, "figure-certified"];
  const share = robustness.certified[stops === null ? 0 : stops.start];
  return ["Certified decisions", `${(Math.floor(share * 1000 + 1e-9) / 10).toFixed(1)} %`, about, "figure-certified"];
}

function directions({ network }) {
  const n = network.features.filter((_, i) => network.directions.some((row) => row[i] !== 0)).length;
  return ["Proved directions", String(n), `of ${network.features.length} features`];
}

function rowsOf({ sample }) {
  return sample === null
    ? ["Table", "none", "drop one to measure the model"]
    : ["Rows", sample.n.toLocaleString("en-US"), `of ${sample.name}`];
}

function identity(model) {
  return ["Fingerprint", model.fingerprint.slice(0, 12), `${parametersOf(model).toLocaleString("en-US")} parameters`];
}
