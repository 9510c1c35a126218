// Fields: values of the content, of the type that they must have.

import { BadFile, demand, shown } from "./refusal.mjs";

/** The value of a name that must be there. */
export function field(object, name) {
  demand(object instanceof Map, `an object with ${shown(name)} was expected; got ${shown(object)}`);
  demand(object.has(name), `the content lacks ${shown(name)}`);
  return object.get(name);
}

/** A JSON number as float64. */
export function number(value) {
  demand(typeof value === "number" || typeof value === "bigint", `${shown(value)} is not a number`);
  const found = Number(value);
  demand(Number.isFinite(found), "a whole number is too large for float64");
  return found;
}

export function list(value) {
  demand(Array.isArray(value), `a list was expected; got ${shown(value)}`);
  return value;
}

export const numbers = (value) => list(value).map(number);

export function count(value, least = 1) {
  const fits = typeof value === "bigint" && value >= BigInt(least) && value <= 2n ** 53n;
  demand(fits, `${shown(value)} is not a whole number of at least ${least}`);
  return Number(value);
}

export function text(value) {
  demand(typeof value === "string", `a text was expected; got ${shown(value)}`);
  return value;
}

export const texts = (value) => list(value).map(text);

export function choice(name, value, choices) {
  if (!choices.includes(value)) throw new BadFile(`${name} is ${shown(value)}, which is unknown`);
  return value;
}

/** Refuse a name that occurs twice. */
export function distinct(names, what) {
  const seen = new Set();
  for (const name of names) {
    demand(!seen.has(name), `two ${what} are called ${shown(name)}`);
    seen.add(name);
  }
}
