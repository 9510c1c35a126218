// Markup: texts from files as HTML.

const MOST_NAMES = 8;

/** Text from a file as HTML that shows it, whatever it holds. */
export function escape(text) {
  const marks = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;" };
  return visible(text).replace(/[&<>"']/g, (c) => marks[c]);
}

/** Text without characters that could break a line or reorder a page. */
export function visible(text) {
  return text.replace(/[\p{C}\p{Z}]/gu, (c) => (c === " " ? c : "\ufffd"));
}

/** A name that stands out. */
export const bold = (text) => `<b>${escape(text)}</b>`;

/** Names one after the other, not too many. */
export const listed = (names) => names.slice(0, MOST_NAMES).join(", ")
  + (names.length > MOST_NAMES ? ` and ${names.length - MOST_NAMES} others` : "");
