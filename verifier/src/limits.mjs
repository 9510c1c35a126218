// Limits: the largest models that are read. docs/model-file.md has the same table.

import { demand } from "./refusal.mjs";

export const LIMITS = {
  header: [2 ** 22, "bytes of text are in the header"],
  bytes: [2 ** 28, "bytes of numbers are in the file"],
  tensors: [1024, "arrays are in the file"],
  nesting: [64, "lists and objects are nested in JSON"],
  digits: [300, "digits are in a whole number"],
  group: [1024, "units are sorted together"],
  width: [65536, "units are computed by one step"],
  matrix: [2 ** 24, "weights are in one step"],
  steps: [1024, "steps are in the network"],
  depth: [16, "members are nested in one another"],
  features: [16384, "features are read"],
  outputs: [4096, "outputs are computed"],
  slopes: [2 ** 19, "slopes, outputs times features, are judged"],
  work: [2 ** 27, "operations are needed for a row"],
  joint: [16, "joint directions are declared"],
  jointVerdicts: [1024, "joint directions times outputs are judged"],
  jointColumns: [64, "columns move in one joint direction"],
};

/** Refuse a count beyond its limit. */
export function within(name, count) {
  const [largest, what] = LIMITS[name];
  demand(count <= largest, `${count} ${what}; the limit is ${largest}`);
}
