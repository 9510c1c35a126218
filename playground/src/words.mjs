// Words: what is proved and what is not, as HTML.

import { chain } from "./chain.mjs";
import { keeps } from "./examination.mjs";
import { bold, escape, listed } from "./markup.mjs";
import { digits, power } from "./rounding.mjs";

const WORDS = { 1: "only rises", "-1": "only falls", 0: "free" };
const ARROWS = { 1: "↗", "-1": "↘", 0: "↕" };
const MOST_MARKS = 6;
const MANY = 15; // rows of a table that is taller than its window
const HEADS = [
  "feature", "declared, when the feature rises", "change of the score for one more unit", "proved for exact arithmetic",
  "proved for computed numbers",
];

const either = (names) => (names.length === 1 ? bold(names[0]) : `one of ${listed(names.map(bold))}`);

/** One sentence about what the model does. */
export function lead(model, outcomes) {
  const n = model.inputs.columns.length, features = `from ${n} feature${n > 1 ? "s" : ""}`;
  if (outcomes.kind === "classes") {
    const names = outcomes.classes.map((_, k) => bold(outcomes.name(k)));
    return `Tells ${listed(names)} apart ${features}; the largest probability decides.`;
  }
  if (outcomes.kind === "values") {
    const target = outcomes.target === null ? "" : `${bold(outcomes.target)}, `;
    return `Predicts ${target}${outcomes.outputs.length === 1 ? "a number" : `${outcomes.outputs.length} numbers`}, ${features}.`;
  }
  const p = 100 / (1 + isotone.elementary.monotoneExp(-outcomes.threshold));
  const chance = outcomes.probability ? `, that is a probability of ${Number(p.toPrecision(4))}\u00a0%` : "";
  return `Decides for ${bold(outcomes.name(1))} or against it ${features}: for it if the score is at least `
    + `${power(String(Number(outcomes.threshold.toPrecision(5))))}${chance}.`;
}

/** The verdict in a word, and what was declared of every feature. */
export function badge(found, outcomes) {
  const { encoded } = found.model.inputs, [mark, kind] = found.holds ? ["✓", "good"] : ["✗", "bad"];
  const told = encoded.flatMap((_, i) => [1, -1].map((sign) => markOf(found, outcomes, i, sign))).filter((text) => text);
  const more = told.length > MOST_MARKS ? `<li>and ${told.length - MOST_MARKS} more</li>` : "";
  return `<p class="badge ${kind}"><strong>${mark} ${head(found)}</strong></p>`
    + `<ul class="directions" aria-label="Declared directions">${told.slice(0, MOST_MARKS).join("")}${more}</ul>`;
}

/** A feature with its arrow, and the outputs that it is declared for unless that is all. */
function markOf(found, outcomes, i, sign) {
  const outputs = found.outputs.filter((k) => found.direction(k, i)?.direction === sign);
  if (outputs.length === 0) return "";
  const names = outcomes.kind === "classes" ? outcomes.classes.map((_, k) => outcomes.name(k)) : outcomes.outputs;
  const some = outputs.length < names.length ? ` (${outputs.map((k) => short(names[k])).join(", ")})` : "";
  const feature = short(found.model.inputs.encoded[i]), arrow = `${ARROWS[sign]}${some}`;
  if (!outputs.every((k) => keeps(found.direction(k, i)))) return `<li class="bad">✗ ${feature} ${arrow} not proved</li>`;
  return `<li>${feature} ${arrow}</li>`;
}

const short = (name) => escape(name.length > 28 ? `${name.slice(0, 27)}…` : name);

function head(found) {
  if (found.verdict === "CANNOT JUDGE") return "No verdict: this model is beyond the verifier";
  return found.holds ? "Every declared constraint holds" : "A declared constraint does NOT hold";
}

/** The section about proofs, the way from a row to a score, and the fingerprint. */
export function proof(model, found, outcomes) {
  const items = (lines) => `<ul>${lines.map((line) => `<li>${line}</li>`).join("")}</ul>`;
  const how = "Recomputed in a browser from the numbers of the file, in exact rational arithmetic.";
  const judged = found.verdict === "CANNOT JUDGE" ? "" : ` ${how}`;
  return `<p class="${found.holds ? "good" : "bad"}"><strong>${head(found)}.</strong>${judged}</p>${items(sentences(model, found, outcomes))}`
    + found.outputs.map((k) => table(found, outcomes, k)).join("")
    + `<h3>How a row becomes a score</h3>${items(chain(model))}`
    + `<h3>What is not guaranteed</h3>${items(limits(model, found))}${identity(model)}`;
}

function sentences(model, found, outcomes) {
  if (found.verdict === "CANNOT JUDGE") return [`There is no proof here, as ${escape(found.reason)}: use isotone certify.`];
  const all = found.outputs.flatMap((k) => [1, -1].flatMap((sign) => directionOf(found, subject(outcomes, k), k, sign)));
  if (found.verdicts.length === 0 && found.joint.length === 0) {
    all.push("No direction is declared: every feature may push the score up or down.");
  }
  all.push(guarantee(model, found));
  for (const v of found.joint) {
    const along = v.direction.map(([name, rate]) => `${escape(name)} ${power(String(rate))}`).join(", ");
    const says = v.real ? "the exact score never falls" : "the score may fall: NOT proved";
    all.push(`When columns move together at the rates ${along}, ${says}.`);
  }
  for (const v of found.missing) {
    const word = v.direction < 0 ? "higher" : "lower";
    const says = keeps(v) ? "never gives" : "is not proved never to give";
    all.push(`A missing ${bold(v.column)} ${says} a ${word} score than any present value.`);
  }
  const most = Math.max(...found.constants.map((bound) => bound.up()));
  all.push(found.lipschitzHolds
    ? `The slope limit λ is respected: at most ${digits(most, 1)} × λ. No feature can move the score faster than the table `
      + "below allows."
    : `The slope limit λ is EXCEEDED: ${digits(most, 1)} × λ. The table below shows the bounds found.`);
  return all;
}

/** What verdicts of one direction say: those that hold, and those that do not. */
function directionOf(found, about, k, sign) {
  const { encoded } = found.model.inputs;
  const judged = encoded.map((name, i) => [name, found.direction(k, i)]).filter(([, v]) => v !== null && v.direction === sign);
  const [kept, lost] = [true, false].map((good) => judged.filter(([, v]) => keeps(v) === good).map(([name]) => name));
  const [word, other] = sign > 0 ? ["rises", "falls"] : ["falls", "rises"];
  const exact = judged.some(([, v]) => v.computed === null) ? "In exact arithmetic: " : "";
  const lines = [];
  if (kept.length) {
    lines.push(`${exact}${about} never ${other} when ${either(kept)} rises and everything else stays the same: it ${word} `
      + "or does not change.");
  }
  if (lost.length) {
    lines.push(`<strong class="bad">Not proved:</strong> ${about} should never ${other.slice(0, -1)} when ${either(lost)} `
      + "rises, but it may.");
  }
  return lines;
}

function subject(outcomes, k) {
  if (outcomes.kind === "classes") return `The probability of ${bold(outcomes.name(k))}`;
  if (outcomes.kind === "two classes") {
    return `The score${outcomes.probability ? `, and with it the probability of ${bold(outcomes.name(1))},` : ""}`;
  }
  if (outcomes.outputs.length > 1) return `The output ${bold(outcomes.outputs[k])}`;
  return `The prediction${outcomes.target === null ? "" : ` of ${bold(outcomes.target)}`}`;
}

/** What is promised about computed scores. */
function guarantee({ ofClasses, outputs, grid }, found) {
  if (!found.holds) return "Guaranteed: nothing, as a declared constraint does not hold.";
  const error = Math.max(...found.errors.map((each) => each.up()));
  const told = "As computed by the machine: ";
  if (found.verdicts.length === 0) return `${told}scores err by at most ${digits(error, 1)}.`;
  const what = ofClasses ? "differences of the scores of classes" : "scores";
  if (grid === null) return `${told}${what} are monotone up to ${digits((ofClasses ? 4 : 2) * error, 1)}.`;
  return `${told}${what} are monotone to the last bit${outputs === "logits" ? ", and so are probabilities" : ""}.`;
}

function table(found, outcomes, k) {
  const { encoded } = found.model.inputs;
  const rows = encoded.map((name, i) => rowOf(found, name, k, i)).join("");
  const body = `<thead><tr>${HEADS.map((text) => `<th>${text}</th>`).join("")}</tr></thead><tbody>${rows}</tbody>`;
  const many = encoded.length > MANY, box = 'tabindex="0" role="region" aria-label="Table of features"';
  const cue = many ? `<p class="hint more">All ${encoded.length} features are in this table: scroll.</p>` : "";
  const made = `<div class="scroll${many ? " tall many" : ""}" ${box}><table class="verdicts">${body}</table></div>${cue}`;
  if (found.outputs.length === 1) return made;
  const name = outcomes.classes.length ? outcomes.name(k) : outcomes.outputs[k];
  return `<details${k === 0 ? " open" : ""}><summary>${escape(name)}</summary>${made}</details>`;
}

function rowOf(found, name, k, i) {
  const judged = found.direction(k, i), sign = judged?.direction ?? 0, slope = found.rawSlope(k, i);
  const mark = (good) => (good ? "✓ yes" : '<strong class="bad">✗ NO</strong>');
  const computed = judged === null ? "–" : judged.computed === null ? "up to rounding" : mark(judged.computed);
  const within = slope === null ? "unknown" : `${digits(slope.low.down(), -1, 3)} to ${digits(slope.high.up(), 1, 3)}`;
  return `<tr${judged === null ? " class=free" : ""}><th scope="row">${escape(name)}</th><td>${ARROWS[sign]} ${WORDS[sign]}</td><td class="number">${within}</td>`
    + `<td>${judged === null ? "–" : mark(judged.real)}</td><td>${computed}</td></tr>`;
}

function limits(model, found) {
  const lines = [
    "That the model is accurate, fair or useful, on these or on other rows.",
    "What happens when several features change at once, in opposite directions: a declared direction is about one feature that "
      + "changes while all others stay the same.",
  ];
  if (model.directions.flat().includes(0)) lines.push("The direction of features marked free; only their slope is bounded.");
  lines.push("That a feature still counts far away: beyond the clamp, or its outermost knots, the score is constant.");
  if (model.grid !== null) {
    lines.push("That computed scores change smoothly: features are rounded, so scores change in tiny steps.");
  }
  if (found.errors !== null) {
    const error = Math.max(...found.errors.map((each) => each.up()));
    lines.push(`That the computed score is the exact one; it is off by at most ${digits(error, 1)}, which every statement `
      + "here allows for.");
  }
  return lines;
}

function identity(model) {
  const rows = [
    ["fingerprint", `<code>${model.fingerprint}</code> (SHA-256 of every number of the model; isotone certify prints it)`],
    ["parameters", parametersOf(model).toLocaleString("en-US")],
    ["made from", escape(origin(model.provenance))],
  ];
  const list = rows.filter(([, text]) => text).map(([name, text]) => `<dt>${name}</dt><dd>${text}</dd>`);
  return `<dl class="identity">${list.join("")}</dl>`;
}

/** What the model file says about its making, in short texts; of paths the last part. */
function origin(provenance) {
  const texts = [...provenance].filter(([, value]) => ["string", "number", "bigint", "boolean"].includes(typeof value));
  const last = (text) => (/^([A-Za-z]:|~\w*|\.\.?|\w+:\/)?[/\\]/.test(text) ? text.split(/[/\\]/).at(-1) : text);
  return texts.map(([name, value]) => `${name} ${last(String(value))}`).filter((text) => text.length <= 200).join("; ");
}

/** How many numbers the steps have. */
export function parametersOf({ arrays }) {
  return [...arrays].filter(([name]) => name !== "residual")
    .reduce((total, [, { shape }]) => total + shape.reduce((a, b) => a * b, 1), 0);
}
