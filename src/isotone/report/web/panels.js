"use strict";
/* Panels about the rows of a table: distributions, ranking, calibration, efficiencies. Each gives
   the elements to show at a width, or null if there is nothing to show. */
isotone.panels = (() => {
  const { node, format, percent } = isotone.charts;
  const shares = { low: 0, high: 1, format: (v) => percent(v) };

  function section(id, title, lead, short = title) {
    const made = node("section", { id, "aria-labelledby": `${id}-title` }, [
      node("div", { class: "section-head" }, [
        node("h2", { id: `${id}-title`, text: title }), node("p", { class: "lead", text: lead }),
      ]),
    ]);
    document.getElementById("panels").append(made);
    const link = node("a", { href: `#${id}`, text: short });
    document.getElementById("to-map").before(link);
    return made;
  }

  /* A figure that is drawn anew into the same place: the function that does it. Its charts can be
     enlarged to the width of the page. */
  function panel(place, title, draw, explain = "") {
    const picture = node("div", {});
    const about = explain ? hint(explain) : null;
    const made = node("figure", {}, [node("h3", { text: title }), about, picture]);
    const enlarge = node("button", { type: "button", class: "save", onclick: () => resize() });
    let [near, width, measuredAt] = [false, 0, null];
    new IntersectionObserver((found) => {
      near = found.at(-1).isIntersecting;
    }, { rootMargin: "100px" }).observe(made);
    name();
    place.append(made);
    return Object.assign(redraw, { seen: () => near });

    /* Measured once for every width of the window: reading it makes the browser lay out the page. */
    function widthNow() {
      if (measuredAt !== window.innerWidth && picture.clientWidth > 0) {
        width = picture.clientWidth;
        measuredAt = window.innerWidth;
      }
      return Math.min(Math.max(width, 270), made.classList.contains("wide") ? 1300 : 620);
    }

    function redraw() {
      made.hidden = false;
      const drawn = draw(widthNow());
      made.hidden = drawn === null;
      if (!drawn) return;
      const parts = drawn.flatMap((each) => (each.svg ? [each.svg, isotone.downloads(() => each)] : [each]));
      picture.replaceChildren(...parts);
      const tools = picture.querySelector(".downloads");
      if (tools) tools.prepend(enlarge);
    }

    function resize() {
      made.classList.toggle("wide");
      picture.replaceChildren(); // a wide chart would keep its column wide
      measuredAt = null;
      name();
      redraw();
      enlarge.focus();
    }

    function name() {
      const word = made.classList.contains("wide") ? "Reduce" : "Enlarge";
      enlarge.textContent = word;
      enlarge.setAttribute("aria-label", `${title}: ${word.toLowerCase()}`);
    }
  }

  function hint(text) {
    return node("p", { class: "hint", text });
  }

  function choice(id, label, names, change) {
    const options = names.map((text, value) => node("option", { value, text }));
    const made = node("select", { id }, options);
    made.addEventListener("change", () => change(Number(made.value)));
    return node("p", { class: "field" }, [node("label", { for: id, text: label }), made]);
  }

  function metrics(found) {
    const rows = found.map(([name, value]) => node("tr", {}, [
      node("th", { scope: "row", text: name }),
      node("td", { class: "number", text: format(value, 4) }),
    ]));
    return node("div", { class: "scroll" }, [node("table", {}, [node("tbody", {}, rows)])]);
  }

  /* Shares in bins for several parts of the rows, over one another. */
  function histogram(width, found, label, mark = null, marked = "threshold") {
    const parts = Object.entries(found.parts).filter(([, part]) => part.share.length);
    const top = Math.max(...parts.flatMap(([, part]) => part.share), 1e-9);
    const chart = isotone.charts.frame({
      width,
      height: 250,
      x: { low: found.low, high: found.high, label },
      y: { ...shares, high: 1.12 * top, label: "share of rows per bin" },
      title: `distribution of ${label}`,
    });
    parts.forEach(([name, part], k) => {
      isotone.charts.steps(chart, found.low, found.high, part.share, isotone.hue(name, k), name);
    });
    if (mark !== null) isotone.charts.rule(chart, { x: mark, text: marked });
    const names = parts.map(([name, part], k) => ({
      name: `${name}: ${isotone.charts.count(part.n)} rows`, kind: isotone.hue(name, k),
    }));
    return [chart, isotone.charts.legend(names)];
  }

  /* A curve of two shares with a working point and a thin line to compare with. */
  function rates(width, title, x, y, point, thin) {
    const chart = isotone.charts.frame({
      width, height: 290, title, x: { ...shares, label: x.label }, y: { ...shares, label: y.label },
    });
    isotone.charts.line(chart, thin, "c5 thin");
    isotone.charts.line(chart, x.values.map((v, k) => [v, y.values[k]]), `main ${isotone.viewHue(isotone.app)}`, y.label);
    if (point.every((v) => v !== null)) isotone.charts.marks(chart, [point], "current", 0, 5.5);
    return chart;
  }

  function roc(width, { ranking, point }, name) {
    if (!ranking) return null;
    const x = { values: ranking.fpr, label: "false-positive rate" };
    const y = { values: ranking.tpr, label: "true-positive rate" };
    const title = "receiver operating characteristic";
    return [
      rates(width, title, x, y, [point.fpr, point.tpr], [[0, 0], [1, 1]]),
      hint(`Area under the curve (AUC): ${format(ranking.area)}; 1 is perfect, 0.5 is chance. At the dot: `
        + `true-positive rate ${percent(point.tpr)}, false-positive rate ${percent(point.fpr)}, for ${name}.`),
    ];
  }

  function precision(width, { ranking, point }, name) {
    if (!ranking) return null;
    const x = { values: ranking.tpr, label: "recall" };
    const y = { values: ranking.precision, label: "precision" };
    const thin = [[0, ranking.base], [1, ranking.base]];
    return [
      rates(width, "precision against recall", x, y, [point.tpr, point.precision], thin),
      hint(`Average precision: ${format(ranking.average_precision)}; the thin line is the share `
        + `of ${name} among all rows. At the dot: precision `
        + `${point.precision === null ? "–" : percent(point.precision)}, recall ${percent(point.tpr)}.`),
    ];
  }

  function calibration(width, { calibration: found }) {
    if (!found) return null;
    const x = { ...shares, label: "predicted probability" };
    const y = { ...shares, label: "observed share" };
    const chart = isotone.charts.frame({ width, height: 290, title: "calibration", x, y });
    isotone.charts.line(chart, [[0, 0], [1, 1]], "c5 thin");
    const points = found.predicted.map((p, k) => [p, found.value[k], found.error[k]]);
    const known = points.filter(([, value]) => value !== null);
    isotone.charts.errorBars(chart, known, isotone.viewHue(isotone.app));
    isotone.charts.marks(chart, known, isotone.viewHue(isotone.app), 0, 4, "observed share");
    const says = "On the thin line, a predicted 30\u00a0% comes true in 30\u00a0% of the rows.";
    return [chart, hint(`${says} Bars are one standard error.`)];
  }

  /* Means of several curves in bins or groups of a column. */
  function against(width, found, label, isShare) {
    const { edges, curves } = found;
    const scale = edges && edges[0] > 0 && edges[edges.length - 1] / edges[0] > 50
      ? { forth: Math.log, back: Math.exp, log: true }
      : { forth: (v) => v, back: (t) => t };
    const chart = isotone.charts.frame({
      width, height: 300, title: `${label} against ${found.column}`, x: across(), y: up(),
    });
    curves.forEach((curve, c) => {
      const hue = isotone.hue(curve.name, c);
      const apart = 3 * (c - (curves.length - 1) / 2); // pixels, so that bars can be told apart
      const moved = { ...chart, xs: { ...chart.xs, of: (v) => chart.xs.of(v) + apart } };
      const points = found.at.map((_, k) => [middle(k), curve.value[k], curve.error[k]]);
      const known = points.filter(([, value]) => value !== null);
      if (edges) isotone.charts.line(moved, known, `thin ${hue}`);
      isotone.charts.errorBars(moved, known, hue);
      isotone.charts.marks(moved, known, hue, c, 4, curve.name);
    });
    const names = curves.map(({ name }, c) => ({ name, kind: isotone.hue(name, c), shape: c }));
    return [chart, isotone.charts.legend(names)];

    function across() {
      const n = found.at.length;
      if (edges) {
        const [low, high] = [edges[0], edges[n]].map(scale.forth);
        const apart = high - low > 1e-9 * Math.max(Math.abs(low), Math.abs(high));
        const beyond = apart ? 0 : 0.1 * Math.abs(low) || 0.5; // one value: in the middle
        return { low: low - beyond, high: high + beyond, map: scale, label: found.column };
      }
      const letters = Math.max(3, Math.floor((width - 72) / n / 7));
      const name = (k) => isotone.charts.shorten(found.at[k], letters);
      const ticks = found.at.map((_, k) => k);
      return { low: -0.5, high: n - 0.5, label: found.column, ticks, format: name };
    }

    function up() {
      if (isShare) return { ...shares, high: topShare(), label };
      const ends = curves.flatMap(({ value, error }) => (
        value.flatMap((v, k) => (v === null ? [] : [v - error[k], v + error[k]]))
      ));
      const [low, high] = isotone.charts.extent(ends);
      const beyond = 0.05 * (high - low) || 0.5;
      return { low: low - beyond, high: high + beyond, label };
    }

    /* All of it, unless shares are small; a round number, so that the axis stays while a threshold moves. */
    function topShare() {
      const top = 1.3 * Math.max(...curves.flatMap(({ value, error }) => value.map((v, k) => v + error[k])), 1e-3);
      const unit = 10 ** Math.floor(Math.log10(top));
      return Math.min(unit * [1, 2, 5, 10].find((factor) => factor * unit >= top * 0.999), 1);
    }

    function middle(k) {
      return edges ? scale.back((scale.forth(edges[k]) + scale.forth(edges[k + 1])) / 2) : k;
    }
  }

  /* Certified and measured flips, or changes of a number, against a shift of one feature. */
  function shifts(width, found, at, stop, isShare) {
    const delta = [0, ...found.delta];
    const of = (values) => [0, ...values.map((each) => each[stop])];
    const bound = of(found.bound);
    const y = isShare ? { ...shares, label: "decisions that change" } : { low: 0, label: "change of the prediction" };
    const chart = isotone.charts.frame({
      width,
      height: 270,
      title: `effect of a shift of ${found.feature}`,
      x: { low: 0, high: delta[delta.length - 1], label: `shift δ of ${found.feature}` },
      y: { ...y, high: 1.08 * Math.max(...bound, 1e-9) },
    });
    const curves = [
      ["certified bound, ± δ", bound],
      ["measured, + δ", of(found.up)],
      ["measured, − δ", of(found.down)],
    ];
    curves.forEach(([name, values], c) => {
      isotone.charts.line(chart, delta.map((d, k) => [d, values[k]]), `c${c}`, name);
    });
    isotone.charts.rule(chart, { x: delta[at] });
    return [chart, isotone.charts.legend(curves.map(([name], c) => ({ name, kind: `c${c}` })))];
  }

  /* Losses by epoch. */
  function losses(width, { training, validation, seconds }) {
    const all = [...training, ...validation].filter(Number.isFinite);
    const [low, high] = isotone.charts.extent(all);
    const beyond = 0.05 * (high - low) || 0.05;
    const chart = isotone.charts.frame({
      width,
      height: 260,
      title: "loss by epoch",
      x: { low: 1, high: Math.max(training.length, 2), label: "epoch", map: { whole: true } },
      y: { low: low - beyond, high: high + beyond, label: "loss" },
    });
    const curves = [["training rows", training], ["validation rows", validation]].filter(([, v]) => v.length);
    curves.forEach(([name, values], c) => {
      isotone.charts.line(chart, values.map((loss, k) => [k + 1, loss]), `c${c}`, name);
    });
    const names = curves.map(([name], c) => ({ name, kind: `c${c}` }));
    const none = validation.length ? "" : " No validation loss was recorded; pass early_stopping=True, or eval_set to fit, to record it.";
    return [chart, isotone.charts.legend(names), hint(`Training took ${format(seconds, 3)} seconds.${none}`)];
  }

  return {
    section, panel, hint, choice, metrics, histogram, roc, precision, calibration, against,
    shifts, losses,
  };
})();
