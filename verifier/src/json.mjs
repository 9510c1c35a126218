// JSON from strangers: what a text says, if it can mean only one thing.
//
// Whole numbers become BigInt and others Number, so that 1 and 1.0 stay apart; objects become Map,
// so that no name has a meaning of its own. Names that occur twice, numbers that float64 cannot hold,
// NaN, half surrogate pairs left open and deep nesting are refused.

import { LIMITS, within } from "./limits.mjs";
import { BadFile, demand, shown } from "./refusal.mjs";

const NUMBER = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?/y;
const PLAIN = /[^"\\\u0000-\u001f]*/y;
const BLANK = /[ \t\n\r]*/y;
const HEX = /[0-9a-fA-F]{4}/y;
const ESCAPES = { '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };
const WORDS = [["true", true], ["false", false], ["null", null]];

/** The value of a JSON text. */
export function parseJson(text) {
  const reader = new Reader(text);
  const value = reader.value(0);
  reader.blank();
  demand(reader.place === text.length, "its text goes on after the end of its JSON");
  return value;
}

class Reader {
  constructor(text) {
    this.text = text;
    this.place = 0;
  }

  match(pattern) {
    pattern.lastIndex = this.place;
    const found = pattern.exec(this.text);
    if (found !== null) this.place = pattern.lastIndex;
    return found;
  }

  blank() {
    this.match(BLANK);
  }

  /** Whether the next character is this one, which is then behind us. */
  skip(character) {
    this.blank();
    const found = this.text[this.place] === character;
    if (found) this.place += 1;
    return found;
  }

  expect(character) {
    if (!this.skip(character)) this.fail(`${character} was expected`);
  }

  fail(what) {
    throw new BadFile(`its text is not JSON: ${what} at character ${this.place}`);
  }

  value(depth) {
    within("nesting", depth > LIMITS.nesting[0] + 1 ? depth : 0);
    this.blank();
    if (this.skip("{")) return this.object(depth + 1);
    if (this.skip("[")) return this.list(depth + 1);
    if (this.text[this.place] === '"') return this.string();
    const word = WORDS.find(([name]) => this.text.startsWith(name, this.place));
    if (word === undefined) return this.number();
    this.place += word[0].length;
    return word[1];
  }

  object(depth) {
    const found = new Map();
    if (this.skip("}")) return found;
    do {
      this.blank();
      if (this.text[this.place] !== '"') this.fail("a name was expected");
      const name = this.string();
      demand(!found.has(name), `an object has the name ${shown(name)} twice`);
      this.expect(":");
      found.set(name, this.value(depth));
    } while (this.skip(","));
    this.expect("}");
    return found;
  }

  list(depth) {
    const found = [];
    if (this.skip("]")) return found;
    do found.push(this.value(depth));
    while (this.skip(","));
    this.expect("]");
    return found;
  }

  string() {
    const parts = [];
    this.place += 1;
    for (;;) {
      parts.push(this.match(PLAIN)[0]);
      const character = this.text[this.place];
      if (character !== '"' && character !== "\\") this.fail("a text does not end");
      this.place += 1;
      if (character === '"') return parts.join("");
      parts.push(this.escape());
    }
  }

  escape() {
    const letter = this.text[this.place];
    this.place += 1;
    if (letter !== "u") {
      if (!Object.hasOwn(ESCAPES, letter ?? "")) this.fail("an unknown escape");
      return ESCAPES[letter];
    }
    const code = this.match(HEX);
    if (code === null) this.fail("an unknown escape");
    return String.fromCharCode(parseInt(code[0], 16));
  }

  number() {
    const found = this.match(NUMBER);
    if (found === null) this.fail("a value was expected");
    const [text, fraction, exponent] = found;
    if (fraction === undefined && exponent === undefined) {
      within("digits", text.length);
      return BigInt(text);
    }
    const value = Number(text);
    demand(Number.isFinite(value), `the number ${shown(text, 20)} is too large for float64`);
    return value;
  }
}
