"use strict";
/* Numbers for people, and elements of a page. */
isotone.numbers = (() => {
  const MINUS = "\u2212";
  const SUPERSCRIPT = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079";
  const SVG = "http://www.w3.org/2000/svg";
  const DRAWN = ["svg", "g", "path", "line", "rect", "circle", "text", "image", "title", "desc"];

  function node(name, attributes = {}, children = []) {
    const made = DRAWN.includes(name)
      ? document.createElementNS(SVG, name)
      : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key === "text") made.textContent = value;
      else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else if (value !== null && value !== undefined) made.setAttribute(key, value);
    }
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  }

  /* Give an element these children, by changing those that it has where they differ: the browser styles and lays
     out only that. Children must not have listeners. */
  function become(place, children) {
    children.forEach((child, k) => {
      const old = place.childNodes[k];
      if (!old) place.append(child);
      else if (old.nodeName !== child.nodeName) old.replaceWith(child);
      else if (old.nodeType === Node.TEXT_NODE) {
        if (old.data !== child.data) old.data = child.data;
      } else {
        resemble(old, child);
        become(old, [...child.childNodes]);
      }
    });
    while (place.childNodes.length > children.length) place.lastChild.remove();
  }

  /* Give an element the attributes of another; its style as the policy of the page allows. */
  function resemble(old, { attributes, style }) {
    const names = [...attributes].map(({ name }) => name);
    [...old.attributes].forEach(({ name }) => { if (!names.includes(name)) old.removeAttribute(name); });
    for (const { name, value } of attributes) {
      if (name !== "style" && old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    if (old.style.cssText !== style.cssText) old.style.cssText = style.cssText;
  }

  /* A number for people: a few digits, thousands apart, powers of ten where it is long. */
  function format(x, digits = 4) {
    if (x === null || Number.isNaN(x)) return "–";
    if (!Number.isFinite(x)) return x > 0 ? "∞" : `${MINUS}∞`;
    if (x === 0) return "0";
    const size = Math.abs(x);
    const sign = x < 0 ? MINUS : "";
    if (size >= 1e7 || size < 1e-4) {
      const [mantissa, exponent] = size.toExponential(Math.max(digits - 1, 0)).split("e");
      const power = Math.abs(exponent).toString().split("").map((d) => SUPERSCRIPT[d]).join("");
      const short = mantissa.includes(".") ? mantissa.replace(/\.?0+$/, "") : mantissa;
      return `${sign}${short}·10${exponent < 0 ? "\u207b" : ""}${power}`;
    }
    return sign + written({ maximumSignificantDigits: digits, useGrouping: size >= 1e4 }).format(size);
  }

  const writers = {};

  /* Making such a writer takes longer than using it, and a slider that moves uses many. */
  function written(look) {
    const key = `${look.maximumSignificantDigits} ${look.useGrouping}`;
    writers[key] ||= new Intl.NumberFormat("en-US", look);
    return writers[key];
  }

  function percent(share, digits = 3) {
    return `${format(100 * share, digits)}\u00a0%`; // both on one line
  }

  function count(n) {
    return n.toLocaleString("en-US", { maximumFractionDigits: 2 });
  }

  /* A certified share, never shown larger than it is. */
  function atLeast(share) {
    return `${(Math.floor(share * 1000 + 1e-9) / 10).toFixed(1)}\u00a0%`;
  }

  /* A raw number with the digits it has, up to twelve: the same text wherever it is shown. */
  function plain(x) {
    return format(x, Math.abs(x) < 1e7 ? 12 : 6);
  }

  /* The smallest and the largest of any number of values. */
  function extent(values) {
    return values.reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)], [Infinity, -Infinity]);
  }

  function shorten(text, most) {
    return text.length <= most ? text : `${text.slice(0, Math.max(most - 1, 3))}…`;
  }

  return { node, become, format, percent, count, atLeast, plain, extent, shorten };
})();

/* A number with four digits or more, rounded toward side (-1 down, 1 up), so that what is printed
   is still on the safe side; `apart` is a distance that the digits must be able to tell. */
isotone.inward = (x, side, apart = Infinity) => {
  const { format } = isotone.numbers;
  if (!Number.isFinite(x) || x === 0) return format(x);
  const needed = apart > 0 ? Math.ceil(Math.log10(Math.abs(x) / apart)) + 2 : 15;
  const digits = Math.min(Math.max(needed, 4), 15);
  let short = Number(x.toPrecision(digits));
  if (side * (short - x) < 0) {
    const unit = 10 ** (Math.floor(Math.log10(Math.abs(x))) - digits + 1);
    short = Number((short + side * unit).toPrecision(digits));
  }
  return format(short, digits);
};
