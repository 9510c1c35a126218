// Scaling: the increasing map of every input. x = (v - center) · factor, v the number or its logarithm.

import { field, list, numbers } from "./fields.mjs";
import { demand } from "./refusal.mjs";

const NAMES = ["offset", "floor", "center", "factor"];

export class Scaling {
  constructor(value) {
    this.log = list(field(value, "log"));
    demand(this.log.every((flag) => typeof flag === "boolean"), "log must hold true or false");
    for (const name of NAMES) this[name] = numbers(field(value, name));
    const equal = NAMES.every((name) => this[name].length === this.log.length);
    demand(equal, "the lists of the scaling differ in length");
    demand(this.factor.every((a) => a > 0), "a factor of the scaling is not positive");
    const floors = this.floor.every((floor, i) => !this.log[i] || floor > 0);
    demand(floors, "the floor of a logarithm is not positive");
  }

  get n() {
    return this.log.length;
  }

  get definition() {
    return Object.fromEntries(["log", ...NAMES].map((name) => [name, this[name]]));
  }
}
