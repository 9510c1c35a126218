// Text: JSON exactly as the fingerprint needs it, sorted, in ASCII, with numbers as Python writes them.

const SHORT = { '"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f", "\b": "\\b" };

/** A text in quotes and ASCII. */
export function quoted(text) {
  const escape = (c) => SHORT[c] ?? `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return `"${text.replace(/["\\]|[^ -~]/g, escape)}"`;
}

/** The shortest decimal of a float64: 1.0, 0.25, 1e-05, 1e+16. */
export function decimal(x) {
  if (x === 0) return Object.is(x, -0) ? "-0.0" : "0.0";
  const [digits, power] = x.toExponential().split("e");
  const exponent = Number(power);
  if (exponent < -4 || exponent >= 16) {
    return `${digits}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
  }
  if (exponent < 0) return `${x < 0 ? "-" : ""}0.${"0".repeat(-1 - exponent)}${digits.replace(/[-.]/g, "")}`;
  return Number.isInteger(x) ? `${x}.0` : String(x);
}

/** JSON with sorted names. BigInt are whole numbers, Number always have a point or an exponent. */
export function canonical(value) {
  if (value === null || typeof value === "boolean" || typeof value === "bigint") return String(value);
  if (typeof value === "number") return decimal(value);
  if (typeof value === "string") return quoted(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(", ")}]`;
  const names = Object.keys(value).sort(byCodePoint);
  return `{${names.map((name) => `${quoted(name)}: ${canonical(value[name])}`).join(", ")}}`;
}

/** The order of texts by Unicode code points; JavaScript's own is by halves of them. */
export function byCodePoint(a, b) {
  const left = Array.from(a, (c) => c.codePointAt(0));
  const right = Array.from(b, (c) => c.codePointAt(0));
  const k = left.findIndex((code, i) => code !== right[i]);
  return k < 0 ? left.length - right.length : left[k] - (right[k] ?? -1);
}
