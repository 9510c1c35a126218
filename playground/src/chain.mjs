// The chain: how a row becomes a score, in words, as HTML.

import { bold, listed } from "./markup.mjs";
import { power } from "./rounding.mjs";

/** The way from a raw row to the score, step by step. */
export function chain(model) {
  const { inputs, scaling, clip, grid, precision, n, nOutputs, steps } = model;
  const kinds = inputs.columns.map(columnWords);
  const logs = inputs.encoded.filter((_, i) => scaling.log[inputs.firsts[i]]);
  const knots = inputs.encoded.filter((_, i) => inputs.counts[i] > 1);
  const lines = [`${inputs.columns.length} column${inputs.columns.length > 1 ? "s" : ""} of a table: ${listed(kinds)}.`];
  const logged = logs.length ? `, ${listed(logs.map(bold))} after taking the logarithm` : "";
  lines.push(`Every feature is shifted and scaled by stored numbers${logged}.`);
  if (knots.length) {
    const enter = knots.length === 1 ? "enters" : "enter";
    lines.push(`${listed(knots.map(bold))} ${enter} as several copies, each of which moves between two knots.`);
  }
  const rounded = grid === null ? "not rounded" : `rounded to multiples of 2<sup>${power(String(Math.log2(grid)))}</sup>`;
  lines.push(`${n} input${n > 1 ? "s" : ""} of the network: clamped to ±${clip}${knots.length ? ", copies to ±1," : ""} and `
    + `${rounded}, in ${precision}.`);
  lines.push(`The network g: ${stepWords(steps)}.`);
  const tail = model.outputs === "logits" ? "; probabilities are a fixed function of that" : "";
  const scores = nOutputs === 1 ? "The score is" : `Each of ${nOutputs} scores is`;
  lines.push(`${scores} g plus a stored multiple of every input${tail}.`);
  return lines;
}

function columnWords({ name, kind, categories, pooled, fill }) {
  const missing = fill === null && !categories.includes(null) ? "" : ", may be missing";
  if (kind === "number") return `${bold(name)} (number${missing})`;
  const n = categories.filter((text) => text !== null).length + pooled;
  return `${bold(name)} (${n} ${kind === "ordered" ? "ordered " : ""}categories${missing})`;
}

function stepWords(steps) {
  if (steps.length === 0) return "nothing";
  return steps.map((step) => {
    if (step.kind === "dense") return `${step.nIn} → ${step.nOut} units`;
    if (step.kind === "sort") return step.groupSize === 1 ? "as they are" : `sorted in groups of ${step.groupSize}`;
    if (step.kind === "pointwise") return step.name;
    const inner = step.members.map(stepWords), same = inner.every((text) => text === inner[0]);
    const each = same ? `${inner.length} networks, each ${inner[0]}` : `(${inner.join("), (")})`;
    return `the weighted sum of ${each}`;
  }).join(", ");
}
