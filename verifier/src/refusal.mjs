// Refusals: the two ways of giving no verdict.

/** The file is damaged, hostile or no model: nothing in it can be believed. */
export class BadFile extends Error {}

/** The file is a model, but this program has no proof for what it contains. */
export class CannotJudge extends Error {}

/** Throw `BadFile` unless the condition holds. */
export function demand(condition, message) {
  if (!condition) throw new BadFile(message);
}

/** A value as it appears in messages: short, and in one line. */
export function shown(value, most = 50) {
  const text = typeof value === "string" ? JSON.stringify(value) : describe(value);
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

function describe(value) {
  if (value instanceof Map) return "an object";
  if (Array.isArray(value)) return `a list of ${value.length}`;
  return String(value);
}
