// The report: a judgement as plain JSON and as text.

import { BadFile, CannotJudge } from "./refusal.mjs";
import { Rational } from "./rational.mjs";
import { readModel } from "./model.mjs";
import { slopesOf } from "./slopes.mjs";
import { judge } from "./verdict.mjs";

/** What can be said of the bytes of a file, as plain JSON. It never throws because of the file. */
export function verify(bytes) {
  let model = null;
  try {
    model = readModel(bytes);
    return { ...facts(model), ...plain(judge(model)), slopes: slopesFor(model) };
  } catch (error) {
    const about = model === null ? {} : facts(model);
    if (error instanceof BadFile) return { verdict: "BAD FILE", reason: error.message };
    return { ...about, ...refused(error) };
  }
}

/** No verdict, and why: there is no proof for what the model contains. Other errors are thrown on. */
export function refused(error) {
  if (error instanceof CannotJudge) return { verdict: "CANNOT JUDGE", reason: error.message };
  if (error instanceof RangeError) return { verdict: "CANNOT JUDGE", reason: `it is too large (${error.message})` };
  throw error;
}

/** 0 if every declared constraint holds, 1 if one does not, 2 if there is no verdict. */
export function exitCode({ verdict }) {
  return { HOLDS: 0, FAILS: 1 }[verdict] ?? 2;
}

function facts(model) {
  const { fingerprint, precision, metric, outputs, classes, clip, grid } = model;
  return { fingerprint, precision, metric, outputs, classes, clip, grid };
}

function plain({ verdict, reason, lipschitzHolds, constants, errors, verdicts, missing, joint }) {
  return {
    verdict,
    reason,
    lipschitz_holds: lipschitzHolds,
    constants: constants.map((bound) => bound.up()),
    rounding_errors: errors === null ? null : errors.map((error) => error.up()),
    verdicts: verdicts.map((v) => ({ ...v, slope: v.slope.down() })),
    missing: missing.map((v) => ({ ...v, least: v.least.down() })),
    joint: joint.map((v) => ({ ...v, slope: v.slope.down() })),
  };
}

/** Slopes of every output along every scaled input of the network. */
function slopesFor(model) {
  const change = slopesOf(model.steps, model.n);
  return Array.from({ length: model.nOutputs }, (_, output) => {
    return change.unit(output).map((bound, i) => {
      const r = Rational.of(model.residual[output * model.n + i]);
      return { output, feature: model.features[i], low: r.minus(bound).down(), high: r.plus(bound).up() };
    });
  }).flat();
}

/** The report in words. */
export function describe(name, found) {
  const head = found.reason === null ? `${found.verdict}  ${name}` : `${found.verdict}  ${name}: ${found.reason}`;
  if (found.verdict === "BAD FILE" || found.verdicts === undefined) return head.replace("CANNOT JUDGE", "cannot judge");
  const E = found.rounding_errors === null ? "unbounded: a number may overflow" : digits(Math.max(...found.rounding_errors));
  const grid = found.grid === null ? "not rounded" : `rounded to 2^${Math.log2(found.grid)}`;
  return [
    head.replace("CANNOT JUDGE", "cannot judge"),
    "",
    `slope limit  ${found.lipschitz_holds ? "respected" : "EXCEEDED"}: at most ${digits(Math.max(...found.constants))} × λ`,
    `rounding     E = ${E}`,
    `arithmetic   ${found.precision}; scaled inputs are clamped to ±${found.clip} and ${grid}`,
    `fingerprint  ${found.fingerprint}`,
    ...table(found),
    ...found.missing.map((v) => `missing ${printable(v.column)} against any value: ${word(v).replace("FAILS", "not proved")}`),
    ...found.joint.map((v) => `along ${v.direction.map(([n, r]) => `${printable(n)} ${r}`).join(", ")}: ${word(v)}`),
  ].join("\n");
}

function table({ slopes, verdicts }) {
  const declared = new Map(verdicts.map((v) => [`${v.output} ${v.feature}`, v]));
  const several = slopes.some((slope) => slope.output > 0);
  const rows = slopes.map((slope) => {
    const verdict = declared.get(`${slope.output} ${slope.feature}`);
    const claim = verdict === undefined ? "free" : verdict.direction > 0 ? "rises" : "falls";
    const name = `${several ? `${slope.output} ` : ""}${printable(slope.feature)}`;
    return [name, claim, `[${digits(slope.low)}, ${digits(slope.high)}]`, verdict === undefined ? "" : word(verdict)];
  });
  const all = [["feature", "declared", "slope, scaled", ""], ...rows];
  const widths = [0, 1, 2].map((c) => Math.max(...all.map((row) => row[c].length)));
  return ["", ...all.map((row) => row.map((cell, c) => cell.padEnd(widths[c] ?? 0)).join("  ").trimEnd())];
}

function word({ real, computed }) {
  if (!real || computed === false) return "FAILS";
  return computed === null ? "holds up to rounding" : "holds";
}

const digits = (x) => (Number.isFinite(x) ? Number(x.toPrecision(4)).toString() : String(x));

/** A name without what could control a terminal. */
const printable = (text) => text.replace(/[\p{C}\p{Z}]/gu, (c) => (c === " " ? c : "�"));
