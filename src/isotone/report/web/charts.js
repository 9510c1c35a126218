"use strict";
/* Small charts in SVG: axes, lines, bands, bars, points. Colors are classes of style.css. */
isotone.charts = (() => {
  const { node, format, percent, count, plain, extent, shorten } = isotone.numbers;

  // tables that may be taller than a screen, scrolled by keys too
  const scrolling = { class: "scroll tall", tabindex: 0, role: "region" };

  /* Round numbers from low to high, at most n. */
  function ticks(low, high, n) {
    if (!(high - low > 1e-9 * Math.max(Math.abs(low), Math.abs(high)))) return [low]; // else k + 1 may be k
    const rough = (high - low) / Math.max(n, 1);
    const unit = 10 ** Math.floor(Math.log10(rough));
    const step = unit * [1, 2, 5, 10].find((factor) => factor * unit >= rough * 0.999);
    const found = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) {
      found.push(Number((k * step).toPrecision(12)));
    }
    return found;
  }

  /* An axis: from a value to a pixel and back. `forth` and `back` make it logarithmic. */
  function axis(low, high, from, to, map = {}) {
    const forth = map.forth || ((v) => v);
    const back = map.back || ((t) => t);
    const wide = high < low || high > low ? high - low : 1; // downward axes too
    return {
      low,
      high,
      from,
      to,
      log: Boolean(map.log),
      of: (v) => from + ((forth(v) - low) / wide) * (to - from),
      at: (pixel) => back(low + ((pixel - from) / (to - from)) * wide),
      value: (share) => back(low + share * wide),
      ticks: (n) => (map.log
        ? decades(back(low), back(high), n, (v) => (forth(v) - low) / wide, map.zero)
        : ticks(low, high, n)).filter((v) => !map.whole || Number.isInteger(v)),
    };
  }

  /* Ticks of a logarithmic axis: powers of ten, with 2 and 5 between if there is room, and 0 if it is
     among the values, which an offset or a floor puts somewhere. `place` tells where on the axis, from 0 to 1, a value is:
     values near 0 lie close together then. */
  function decades(low, high, n, place, zero) {
    const inside = (v) => (v === 0 ? place(v) > -1e-6 && place(v) < 1 + 1e-6 : v >= low && v <= high);
    const apart = 0.6 / Math.max(n, 1);
    const size = Math.max(Math.abs(low), Math.abs(high), 1e-300);
    const least = low > 0 ? Math.max(low, 1e-300) : 1e-18 * size;
    const powers = [];
    for (let k = Math.ceil(Math.log10(size)); k >= Math.floor(Math.log10(least)); k -= 1) powers.push(k);
    for (const steps of [[1, 2, 5], [1, 3], [1]]) {
      const found = thin(values(steps), 0);
      if (found.length >= 2 && found.length <= n && found.length === thin(found, apart).length) return found;
    }
    let found = thin(values([1]), apart);
    if (found.length < 3) found = thin([...found, ...values([1, 2, 5])], apart);
    return found.length < 2 ? ticks(low, high, n) : found;

    /* What there may be, the most wanted first: 0, then large ones. */
    function values(steps) {
      const made = zero ? [0] : [];
      for (const k of powers) {
        for (const step of [...steps].reverse()) {
          const v = Number((step * 10 ** k).toPrecision(6));
          made.push(v, -v);
        }
      }
      return made.filter(inside);
    }

    /* Those that keep a distance from the more wanted ones, in order. */
    function thin(wanted, distance) {
      const kept = [];
      for (const v of wanted) {
        if (kept.every((other) => Math.abs(place(v) - place(other)) > distance)) kept.push(v);
      }
      return kept.sort((a, b) => a - b);
    }
  }

  /* An empty chart with axes and labels; returns the parts to draw into. */
  function frame(options) {
    const { width, height, x, y, title } = options;
    const bottom = options.bottom ?? 40;
    const top = options.top ?? 10;
    const right = options.right ?? 14;
    const ys = axis(y.low, y.high, height - bottom, top, y.map);
    const rows = y.ticks || ys.ticks(Math.max(2, Math.floor((ys.from - ys.to) / 34)));
    const texts = rows.map((v) => (y.format || format)(v));
    const letters = Math.max(...texts.map((text) => text.length), 4);
    const left = 8 + 6.8 * letters + (y.label ? 16 : 0);
    const xs = axis(x.low, x.high, left, width - right, x.map);
    const svg = node("svg", {
      viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title, class: "chart",
    });
    svg.style.maxWidth = `${width}px`; // letters keep their size where there is more room
    const grid = node("g", { class: "grid" });
    const plot = node("g", {});
    const labels = node("g", { class: "labels" });
    svg.append(grid, plot, labels);
    drawColumns(xs, ys, { grid, labels, x, width });
    drawRows(xs, ys, { grid, labels, rows, texts });
    grid.append(node("path", { class: "border", d: `M${xs.from} ${ys.to}V${ys.from}H${xs.to}` }));
    nameAxes(xs, ys, { labels, x, y });
    const chart = { svg, plot, grid, labels, xs, ys, width, height, series: [], title, x, y };
    if (!options.quiet) isotone.hover(chart);
    return chart;
  }

  /* Remember what a chart shows, for values under the pointer and for CSV. */
  function tell(chart, name, kind, points, join = true) {
    if (name) chart.series.push({ name, kind, join, points: points.filter(([, y]) => Number.isFinite(y)) });
  }

  /* Ticks of the horizontal axis; texts that would touch are left out. */
  function drawColumns(xs, ys, { grid, labels, x, width }) {
    let last = -Infinity;
    for (const v of x.ticks || xs.ticks(Math.max(2, Math.floor((xs.to - xs.from) / 44)))) {
      const px = xs.of(v);
      if (px < xs.from - 0.5 || px > xs.to + 0.5) continue;
      grid.append(node("line", { x1: px, x2: px, y1: ys.from, y2: ys.to }));
      const text = (x.format || format)(v);
      const half = 3.4 * text.length;
      const at = Math.min(Math.max(px, half + 1), width - half - 1);
      if (at - half < last + 4) continue;
      last = at + half;
      labels.append(node("text", { x: at, y: ys.from + 16, "text-anchor": "middle", text }));
    }
  }

  function drawRows(xs, ys, { grid, labels, rows, texts }) {
    rows.forEach((v, k) => {
      const py = ys.of(v);
      if (py > ys.from + 0.5 || py < ys.to - 0.5) return;
      grid.append(node("line", { x1: xs.from, x2: xs.to, y1: py, y2: py }));
      const place = { x: xs.from - 6, y: py + 4, "text-anchor": "end" };
      labels.append(node("text", { ...place, text: texts[k] }));
    });
  }

  function nameAxes(xs, ys, { labels, x, y }) {
    if (x.label) {
      const text = shorten(x.label, Math.floor((xs.to - xs.from) / 7));
      const place = { x: (xs.from + xs.to) / 2, y: ys.from + 33, "text-anchor": "middle" };
      labels.append(node("text", { class: "axis", ...place, text }));
    }
    if (y.label) {
      const text = shorten(y.label, Math.floor((ys.from - ys.to) / 6.6));
      const turn = `translate(11 ${(ys.from + ys.to) / 2}) rotate(-90)`;
      labels.append(node("text", { class: "axis", transform: turn, "text-anchor": "middle", text }));
    }
  }

  /* Draw the plot of a chart anew: parts that look as before stay as they are, so that the browser has less to do. */
  function again(chart, draw) {
    chart.series = [];
    chart.plot.used = 0;
    draw(chart);
    while (chart.plot.childNodes.length > chart.plot.used) chart.plot.lastChild.remove();
  }

  /* The next part of a plot: the one that was drawn there before, with what has changed, or a new one. */
  function put({ plot }, name, attributes) {
    const old = plot.childNodes[plot.used]; // none in a plot that is never drawn again
    plot.used += 1;
    if (old && old.tagName === name) {
      for (const [key, value] of Object.entries(attributes)) {
        if (old.getAttribute(key) !== String(value)) old.setAttribute(key, value);
      }
    } else if (old) old.replaceWith(node(name, attributes));
    else plot.append(node(name, attributes));
  }

  /* A pixel that a browser can read, also of what lies far outside the chart. */
  function near(pixel) {
    return Math.min(Math.max(pixel, -1e6), 1e6);
  }

  function path(points) {
    let d = "";
    let pen = false;
    for (const [px, py] of points) {
      if (!Number.isFinite(px) || !Number.isFinite(py)) {
        pen = false;
        continue;
      }
      d += `${pen ? "L" : "M"}${near(px).toFixed(2)} ${near(py).toFixed(2)}`;
      pen = true;
    }
    return d;
  }

  /* Points [x, y] in values as a line. */
  function line(chart, points, kind, name) {
    tell(chart, name, kind, points);
    const drawn = points.map(([x, y]) => [chart.xs.of(x), y === null ? NaN : chart.ys.of(y)]);
    put(chart, "path", { class: `line ${kind}`, d: path(drawn) });
  }

  /* The area between two lines of points [x, low, high], kept inside the chart. */
  function band(chart, points, kind) {
    const { xs, ys } = chart;
    const inside = (v) => Math.min(Math.max(ys.of(v), ys.to), ys.from);
    const upper = points.map(([x, , high]) => [xs.of(x), inside(high)]);
    const lower = points.map(([x, low]) => [xs.of(x), inside(low)]).reverse();
    put(chart, "path", { class: `band ${kind}`, d: `${path([...upper, ...lower])}Z` });
  }

  /* Outlines of a histogram with the given shares in equal bins from low to high. */
  function steps(chart, low, high, shares, kind, name) {
    const wide = (high - low) / shares.length;
    tell(chart, name, kind, shares.map((share, k) => [low + (k + 0.5) * wide, share]), false);
    const points = [[low, 0]];
    shares.forEach((share, k) => {
      points.push([low + k * wide, share], [low + (k + 1) * wide, share]);
    });
    points.push([high, 0]);
    const drawn = points.map(([x, y]) => [chart.xs.of(x), chart.ys.of(y)]);
    put(chart, "path", { class: `fill ${kind}`, d: `${path(drawn)}Z` });
    put(chart, "path", { class: `line ${kind}`, d: path(drawn) });
  }

  function rule(chart, { x, y, kind, text }) {
    const { xs, ys } = chart;
    const vertical = x !== undefined;
    const p = vertical ? xs.of(x) : ys.of(y);
    const inside = vertical ? p >= xs.from && p <= xs.to : p <= ys.from && p >= ys.to;
    if (!inside) return;
    const ends = vertical
      ? { x1: p, x2: p, y1: ys.from, y2: ys.to }
      : { x1: xs.from, x2: xs.to, y1: p, y2: p };
    put(chart, "line", { class: `rule ${kind || ""}`, ...ends });
    if (text) {
      const late = vertical && p > (xs.from + xs.to) / 2;
      const place = vertical
        ? { x: p + (late ? -5 : 5), y: ys.to + 11, "text-anchor": late ? "end" : "start" }
        : { x: xs.to - 4, y: p - 5, "text-anchor": "end" };
      chart.labels.append(node("text", { class: "note", ...place, text }));
    }
  }

  const SHAPES = [
    (x, y, r) => `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`,
    (x, y, r) => `M${x} ${y - 1.2 * r}L${x + 1.1 * r} ${y + 0.8 * r}H${x - 1.1 * r}Z`,
    (x, y, r) => `M${x - r} ${y - r}h${2 * r}v${2 * r}h${-2 * r}Z`,
    (x, y, r) => `M${x} ${y - 1.3 * r}L${x + 1.3 * r} ${y}L${x} ${y + 1.3 * r}L${x - 1.3 * r} ${y}Z`,
  ];

  /* Marks of one kind, in pixels; the shape tells classes apart where the color cannot. */
  function marks(chart, points, kind, shape = 0, r = 3, name = null) {
    tell(chart, name, kind, points, false);
    const draw = SHAPES[shape % SHAPES.length];
    const d = points.map(([x, y]) => draw(near(chart.xs.of(x)), near(chart.ys.of(y)), r)).join("");
    put(chart, "path", { class: `marks ${kind}`, d });
  }

  function errorBars(chart, points, kind) {
    const { xs, ys } = chart;
    const inside = (v) => Math.min(Math.max(ys.of(v), ys.to), ys.from);
    const d = points.map(([x, y, e]) => `M${xs.of(x)} ${inside(y - e)}V${inside(y + e)}`).join("");
    put(chart, "path", { class: `line thin ${kind}`, d });
  }

  /* Names with the look of their lines, below a chart. */
  function legend(entries) {
    const items = entries.map(({ name, kind, shape }) => {
      const draw = (look, d) => node("path", { class: look, d });
      if (kind === null) return node("li", {}, [node("span", { text: name })]);
      const parts = kind === "boundary"
        ? [draw("halo", "M1 6H25"), draw("boundary", "M1 6H25")]
        : [draw(`line ${kind}`, "M1 6H25")];
      if (shape !== undefined) parts.push(draw(`marks ${kind}`, SHAPES[shape % SHAPES.length](13, 6, 4)));
      const sample = node("svg", { viewBox: "0 0 26 12", class: "sample", "aria-hidden": "true" }, parts);
      return node("li", {}, [sample, node("span", { text: name })]);
    });
    return node("ul", { class: "legend" }, items);
  }

  /* Call with every event of a click or a drag that begins in a chart, drawn anew meanwhile or not. */
  function drag(svg, follow) {
    svg.classList.add("drag");
    svg.addEventListener("pointerdown", (event) => {
      svg.box = svg.getBoundingClientRect(); // where it was: it may be replaced by then
      follow(event);
      const end = () => {
        window.removeEventListener("pointermove", follow);
        svg.box = null;
      };
      window.addEventListener("pointermove", follow);
      window.addEventListener("pointerup", end, { once: true });
      window.addEventListener("pointercancel", end, { once: true });
    });
  }

  /* Where an event lies in a chart, as shares of its width and height. */
  function place(event, { svg, xs, ys, width, height }) {
    const box = svg.box || svg.getBoundingClientRect();
    const px = ((event.clientX - box.left) / box.width) * width;
    const py = ((event.clientY - box.top) / box.height) * height;
    return [(px - xs.from) / (xs.to - xs.from), (py - ys.from) / (ys.to - ys.from)];
  }

  function inside({ xs, ys }, [x, y]) {
    const [px, py] = [xs.of(x), ys.of(y)];
    return px >= xs.from && px <= xs.to && py <= ys.from && py >= ys.to;
  }

  return {
    node, format, percent, count, extent, frame, again, line, band, steps, rule, marks, errorBars, legend,
    shorten, place, inside, scrolling, plain, tell, drag,
  };
})();

/* The color of a class, the same in all charts: of two classes the second, which scores are about, has the first one. Other
   series have their own; the rival has that of its curves. */
isotone.hue = (name, k) => {
  const { kind, classes } = isotone.app.data.outcomes;
  const place = classes.indexOf(name);
  if (name === "the other") return "c3";
  if (place < 0) return `c${k % 6}`;
  return `c${(kind === "classes" ? place : 1 - place) % 6}`;
};

/* The color of the class that the view is about. */
isotone.viewHue = ({ data, view }) => (data.outcomes.kind === "classes" ? `c${view.output % 6}` : "c0");
