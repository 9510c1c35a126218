// Problems: what is wrong with a file, what must hold, and what to do.

/** An error that people are shown in three parts. */
export class Problem extends Error {
  constructor(given, must, advice, more = {}) {
    super(`${given}; ${must}: ${advice}`);
    this.told = { given, must, advice, ...more };
  }
}

/** A text from a file in quotes, not too long. */
export function quoted(text, most = 40) {
  return `“${text.length > most ? `${text.slice(0, most)}…` : text}”`;
}

/** Names one after the other, not too many. */
export function listed(names, most = 10) {
  const more = names.length - most;
  return names.slice(0, most).join(", ") + (more > 0 ? ` and ${more} others` : "");
}
