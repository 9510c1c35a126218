// The model: what a file says, checked, with its fingerprint. Nothing is believed about its slopes.

import { choice, distinct, field, list, number, numbers, text, texts } from "./fields.mjs";
import { checkCopies } from "./copies.mjs";
import { Inputs, readColumn } from "./inputs.mjs";
import { within } from "./limits.mjs";
import { checksum, readModelFile } from "./modelfile.mjs";
import { Rational } from "./rational.mjs";
import { demand, shown } from "./refusal.mjs";
import { Scaling } from "./scaling.mjs";
import * as Steps from "./steps.mjs";
import { canonical } from "./text.mjs";

const KEYS = [
  "inputs", "features", "scaling", "steps", "lipschitz", "monotonic_cst", "outputs", "classes",
  "metric", "precision", "clip", "grid", "joint_cst", "provenance", "certificate",
];

/** The model in these bytes; anything that is none throws `BadFile`. */
export function readModel(bytes) {
  const { content, arrays } = readModelFile(bytes);
  for (const key of content.keys()) {
    demand(KEYS.includes(key), `the content has the unknown key ${shown(key)}`);
  }
  return new Model(content, arrays);
}

class Model {
  constructor(content, arrays) {
    this.readClaims(content);
    this.steps = Steps.readSteps(field(content, "steps"), arrays);
    const residual = Steps.take(arrays, "residual");
    demand(arrays.size === 0, `no step uses the array ${shown([...arrays.keys()][0] ?? "")}`);
    Steps.checkNesting(this.steps);
    this.checkShapes(residual);
    this.residual = residual.values;
    this.arrays = new Map([...Steps.storedArrays(this.steps), ["residual", residual.wide]]);
    this.checkLimits();
    this.checkNumbers();
    this.joint = readJoint(content.get("joint_cst") ?? [], this);
  }

  readClaims(content) {
    const get = (name, otherwise) => (content.has(name) ? content.get(name) : otherwise);
    this.features = texts(field(content, "features"));
    this.inputs = readInputs(content, this.features);
    this.scaling = new Scaling(field(content, "scaling"));
    this.lipschitz = numbers(field(content, "lipschitz"));
    this.directions = list(field(content, "monotonic_cst")).map(numbers);
    this.outputs = choice("outputs", get("outputs", "values"), ["values", "logits"]);
    const classes = field(content, "classes");
    this.classes = classes === null ? null : texts(classes);
    this.metric = choice("metric", get("metric", "1"), ["1", "2", "inf"]);
    this.precision = choice("precision", get("precision", "float64"), ["float64", "float32"]);
    this.clip = number(field(content, "clip"));
    const grid = field(content, "grid");
    this.grid = grid === null ? null : number(grid);
    this.provenance = get("provenance", new Map()); // decides nothing
    demand(this.provenance instanceof Map, "provenance is not an object");
    const certificate = get("certificate", null);
    demand(certificate === null || certificate instanceof Map, "certificate is not an object");
    distinct(this.features, "features");
    distinct(this.classes ?? [], "classes");
  }

  get n() {
    return this.features.length;
  }

  get nOutputs() {
    return this.directions.length;
  }

  /** Whether directions are about probabilities after softmax. */
  get ofClasses() {
    return this.outputs === "logits" && this.nOutputs > 1;
  }

  get hasCopies() {
    return this.inputs.copies.length > 0;
  }

  checkShapes(residual) {
    const { n, steps, inputs } = this;
    demand(n > 0, "the model has no features");
    demand(this.scaling.n === n && this.lipschitz.length === n, "scaling, λ and features differ in number");
    const agree = inputs.features.length === n && inputs.features.every((f, i) => f === this.features[i]);
    demand(agree, "the inputs do not give the features of the network");
    demand(steps.length > 0, "the network has no steps");
    demand(!this.hasCopies || Steps.startsDense(steps), "a network of copies must begin with dense steps");
    const m = Steps.widthAfter(steps, n), shape = residual.shape;
    demand(shape.length === 2 && shape[0] === m && shape[1] === n, "the residual has another shape");
    const rows = this.directions.length === m && this.directions.every((row) => row.length === n);
    demand(rows, "the directions have another shape");
    demand(this.directions.flat().every((s) => s === -1 || s === 0 || s === 1), "a direction is not -1, 0 or 1");
    demand(this.classes === null || this.outputs === "logits", "values have no classes");
    const named = this.classes === null || this.classes.length === Math.max(m, 2);
    demand(named, "the number of classes is not that of the logits");
  }

  checkLimits() {
    within("features", this.n);
    within("outputs", this.nOutputs);
    within("slopes", this.n * this.nOutputs);
    within("tensors", this.arrays.size);
    within("bytes", [...this.arrays.values()].reduce((n, array) => n + array.bytes.length, 0));
    within("work", Steps.workOf(this.steps, this.n));
  }

  checkNumbers() {
    const single = this.precision === "float32";
    const held = (x) => Number.isFinite(x) && (!single || Math.fround(x) === x);
    demand(this.lipschitz.every((x) => x > 0), "λ must be positive");
    for (const [name, { kind }] of this.arrays) {
      const fits = name === "residual" || kind === (single ? "F32" : "F64");
      demand(fits, `the array ${shown(name)} is not of the precision ${this.precision}`);
    }
    const weights = Steps.memberWeights(this.steps);
    const all = this.residual.every(held) && held(this.clip) && weights.every(held);
    demand(all, `${this.precision} cannot hold a number of residual, clip or weights`);
    demand(this.clip >= 2 ** -64 && this.clip <= 2 ** 64, `the clip ${this.clip} is out of range`);
    const ends = this.hasCopies ? [this.clip, 1] : [this.clip];
    const fits = this.grid === null || ends.every((end) => divides(this.grid, end));
    demand(fits, `the grid ${this.grid} does not divide the clip ${this.clip}`);
    if (this.hasCopies) checkCopies(this);
  }

  /** SHA-256 of everything that decides the score of a raw row and what is claimed of it. */
  get fingerprint() {
    const definition = {
      inputs: this.inputs.definition,
      features: this.features,
      scaling: this.scaling.definition,
      steps: Steps.describe(this.steps),
      lipschitz: this.lipschitz,
      monotonic_cst: this.directions.map((row) => row.map(BigInt)),
      outputs: this.outputs,
      classes: this.classes,
      metric: this.metric,
      precision: this.precision,
      clip: this.clip,
      grid: this.grid,
    };
    if (this.joint.length > 0) definition.joint_cst = this.joint.map(Object.fromEntries);
    return checksum(canonical(definition), this.arrays);
  }
}

/** Whether a grid is a power of two, and `end` so many of it that float64 counts them. */
function divides(grid, end) {
  if (!(grid > 0) || Rational.of(grid).m !== 1n) return false;
  const cells = end / grid;
  return cells <= 2 ** 51 && Number.isInteger(cells);
}

/** The inputs; in format version 1 they are columns of numbers, or in the provenance. */
function readInputs(content, features) {
  if (!content.has("inputs")) return readEncoding(content, features);
  const inputs = Inputs.read(content.get("inputs"));
  const names = inputs.columns.map((column) => column.name);
  const renamed = inputs.isPlain && !inputs.copies.length && [0, features.length].includes(names.length);
  const same = [...names].sort().join("\0") === [...features].sort().join("\0");
  return renamed && !same ? Inputs.numbers(features) : inputs;
}

function readEncoding(content, features) {
  const provenance = field(content, "provenance");
  demand(provenance instanceof Map, "provenance is not an object");
  const stored = provenance.get("encoding") ?? null;
  if (stored === null) return Inputs.numbers(features);
  const [fills, categories] = ["fills", "categories"].map((name) => field(stored, name));
  demand(fills instanceof Map && categories instanceof Map, "the encoding is malformed");
  const columns = texts(field(stored, "columns")).map((name) => {
    const entries = categories.has(name)
      ? [["kind", "category"], ["name", name], ["categories", categories.get(name)]]
      : [["kind", "number"], ["name", name], ["fill", fills.get(name) ?? null]];
    return readColumn(new Map(entries));
  });
  return new Inputs(columns, []);
}

/** Joint directions as maps from columns to rates that are not zero. */
function readJoint(value, model) {
  within("joint", list(value).length);
  within("jointVerdicts", value.length * model.nOutputs);
  demand(value.length === 0 || !model.ofClasses, "joint directions are not about classes");
  return value.map((entry) => {
    demand(entry instanceof Map, "a joint direction is not an object");
    const rates = new Map([...entry].map(([name, rate]) => [name, number(rate)]));
    for (const [name, rate] of rates) if (rate === 0) rates.delete(name);
    demand(rates.size > 0, "a joint direction has no rates");
    within("jointColumns", rates.size);
    for (const name of rates.keys()) checkJointColumn(name, model);
    return rates;
  });
}

function checkJointColumn(name, { inputs, scaling }) {
  const column = inputs.columns.find((other) => other.name === name);
  demand(column !== undefined, `a joint direction names ${shown(name)}, which is no column`);
  const place = inputs.place(column);
  const straight = column.kind !== "category" && inputs.counts[place] === 1;
  demand(straight && !scaling.log[inputs.firsts[place]], `${shown(text(name))} is not on a straight line`);
}
