// Steps: dense, sort, pointwise, members, with their numbers. docs/model-file.md.

import { choice, count, field, list, number, numbers, text } from "./fields.mjs";
import { within } from "./limits.mjs";
import { demand, shown } from "./refusal.mjs";

/** What is known of an activation: its constant, a bound of its value at 0, and of its error. */
export const ACTIVATIONS = {
  relu: [1, 0, 0],
  leaky_relu: [1, 0, 0],
  abs: [1, 0, 0],
  hardtanh: [1, 0, 0],
  tanh: [1, 0, 2 ** -44],
  sigmoid: [0.25, 0.5, 2 ** -44],
  softplus: [1, 0.7, 2 ** -44],
};

/** The steps of a content; every array that they use is taken out of `arrays`. */
export function readSteps(value, arrays, prefix = "", depth = 0) {
  within("steps", list(value).length);
  within("depth", depth);
  return value.map((entry, i) => readStep(entry, arrays, `${prefix}${i}.`, depth));
}

function readStep(entry, arrays, prefix, depth) {
  const kind = field(entry, "kind");
  if (kind === "dense") return readDense(arrays, prefix);
  if (kind === "sort") return { kind, groupSize: count(field(entry, "group_size")) };
  if (kind === "pointwise") return readPointwise(entry);
  if (kind === "members") return readMembers(entry, arrays, prefix, depth);
  demand(kind === "blend", `a step of kind ${shown(kind)} is unknown`);
  const branch = readSteps(field(entry, "steps"), arrays, prefix, depth + 1);
  const weights = ["keep", "add"].map((name) => number(field(entry, name)));
  return { kind: "members", weights, members: [[], branch] };
}

function readPointwise(entry) {
  const name = choice("an activation", text(field(entry, "name")), Object.keys(ACTIVATIONS));
  const slope = number(field(entry, entry.has("slope") ? "slope" : "negative_slope"));
  return { kind: "pointwise", name, slope };
}

function readMembers(entry, arrays, prefix, depth) {
  const weights = numbers(field(entry, "weights")), inner = list(field(entry, "members"));
  within("steps", inner.length);
  demand(inner.length > 0 && weights.length === inner.length, "members need one weight each");
  const members = inner.map((steps, k) => readSteps(steps, arrays, `${prefix}${k}.`, depth + 1));
  return { kind: "members", weights, members };
}

function readDense(arrays, prefix) {
  const [weight, bias] = ["weight", "bias"].map((name) => take(arrays, prefix + name));
  const [nOut, nIn] = weight.shape;
  const fits = weight.shape.length === 2 && bias.shape.length === 1 && bias.shape[0] === nOut;
  demand(fits, `the arrays of step ${shown(prefix)} do not fit`);
  within("width", Math.max(nOut, nIn));
  within("matrix", nOut * nIn);
  const numbers = { weight: weight.values, bias: bias.values, stored: { weight, bias } };
  const found = { kind: "dense", nIn, nOut, ...numbers };
  const finite = found.weight.every(Number.isFinite) && found.bias.every(Number.isFinite);
  demand(finite, `step ${shown(prefix)} has a NaN or infinite number`);
  return found;
}

/** An array that must be there and is used once. */
export function take(arrays, name) {
  const found = arrays.get(name);
  demand(found !== undefined, `the array ${shown(name)} is missing`);
  arrays.delete(name);
  return found;
}

/** Number of units after the steps. */
export function widthAfter(steps, n) {
  return steps.reduce((width, step) => widthOf(step, width), n);
}

function widthOf(step, n) {
  if (step.kind === "pointwise") return n;
  if (step.kind === "dense") {
    demand(step.nIn === n, `a dense step takes ${step.nIn} units but gets ${n}`);
    return step.nOut;
  }
  if (step.kind === "sort") {
    within("group", step.groupSize);
    demand(n % step.groupSize === 0, `groups of ${step.groupSize} do not divide ${n} units`);
    return n;
  }
  const widths = step.members.map((steps) => widthAfter(steps, n));
  demand(widths.every((width) => width === widths[0]), "members differ in their number of outputs");
  return widths[0];
}

/** Operations for one row. */
export function workOf(steps, n) {
  let total = 0, width = n;
  for (const step of steps) {
    total += work(step, width);
    width = widthOf(step, width);
  }
  return total;
}

function work(step, n) {
  if (step.kind === "dense") return step.nIn * step.nOut;
  if (step.kind === "pointwise") return n;
  if (step.kind === "sort") return Math.floor((n * (32 - Math.clz32(step.groupSize)) ** 2) / 4);
  const each = step.members.reduce((all, steps) => all + workOf(steps, n), 0);
  return n + each + step.members.length * widthOf(step, n);
}

/** Refuse too many steps; members and sequences within members count as well. */
export function checkNesting(steps) {
  let layer = steps, total = 0;
  while (layer.length > 0) {
    const inside = layer.flatMap((step) => step.members ?? []);
    total += layer.length + inside.length;
    within("steps", total);
    layer = inside.flat();
  }
}

/** The weights of all members. */
export function memberWeights(steps) {
  const inside = steps.filter((step) => step.kind === "members");
  return inside.flatMap((step) => [...step.weights, ...step.members.flatMap(memberWeights)]);
}

/** Whether the features enter dense steps only. */
export function startsDense(steps) {
  const first = steps[0];
  if (first?.kind === "members") return first.members.every(startsDense);
  return first?.kind === "dense";
}

/** What the fingerprint says of steps. */
export function describe(steps) {
  return steps.map((step) => {
    const { kind } = step;
    if (kind === "dense") return { kind };
    if (kind === "sort") return { kind, group_size: BigInt(step.groupSize) };
    if (kind === "pointwise") return { kind, name: step.name, negative_slope: step.slope };
    return { kind, weights: step.weights, members: step.members.map(describe) };
  });
}


/** The stored arrays of steps by the names that files of the current version give them. */
export function storedArrays(steps, prefix = "") {
  return steps.flatMap((step, i) => {
    const names = Object.entries(step.stored ?? {});
    const own = names.map(([name, array]) => [`${prefix}${i}.${name}`, array]);
    const inner = step.members ?? [];
    return [...own, ...inner.flatMap((within, k) => storedArrays(within, `${prefix}${i}.${k}.`))];
  });
}
