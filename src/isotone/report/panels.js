"use strict";
/* Panels about the rows of a table: distributions, ranking, calibration, efficiencies. */
isotone.panels = (() => {
  const { node, format, percent } = isotone.charts;

  function section(id, title, lead) {
    const made = node("section", { id, "aria-labelledby": `${id}-title` }, [
      node("h2", { id: `${id}-title`, text: title }),
      node("p", { class: "lead", text: lead }),
    ]);
    document.getElementById("panels").append(made);
    document.getElementById("contents").append(node("a", { href: `#${id}`, text: title }));
    return made;
  }

  /* A figure that is drawn anew into the same place. */
  function panel(place, title, draw, explain = "") {
    const picture = node("div", {});
    const made = node("figure", {}, [node("h3", { text: title }), node("p", { class: "hint", text: explain }), picture]);
    place.append(made);
    return () => {
      const drawn = draw(Math.min(Math.max(picture.clientWidth, 270), 620));
      made.hidden = drawn === null;
      if (drawn) picture.replaceChildren(...drawn);
    };
  }

  function choice(id, label, names, change) {
    const made = node("select", { id }, names.map((text, value) => node("option", { value, text })));
    made.addEventListener("change", () => change(Number(made.value)));
    return node("p", { class: "field" }, [node("label", { for: id, text: label }), made]);
  }

  function metrics(data) {
    const found = data.statistics.metrics;
    if (!found.length) return null;
    return node("div", { class: "scroll" }, [node("table", {}, [
      node("tbody", {}, found.map(([name, value]) => node("tr", {}, [
        node("th", { scope: "row", text: name }), node("td", { class: "number", text: format(value, 4) }),
      ]))),
    ])]);
  }

  /* Shares in bins for several parts of the rows, over one another. */
  function histogram(width, found, label, mark = null) {
    const parts = Object.entries(found.parts).filter(([, part]) => part.share.length);
    const top = Math.max(...parts.flatMap(([, part]) => part.share), 1e-9);
    const chart = isotone.charts.frame({
      width, height: 250, x: { low: found.low, high: found.high, label },
      y: { low: 0, high: 1.12 * top, format: (v) => percent(v) }, title: `distribution of ${label}`, left: 58,
    });
    parts.forEach(([, part], k) => isotone.charts.steps(chart, found.low, found.high, part.share, `c${k % 6}`));
    if (mark) isotone.charts.rule(chart, { x: mark.at, text: mark.text });
    const names = parts.map(([name, part], k) => ({ name: `${name}: ${part.n.toLocaleString("en-US")} rows`, kind: `c${k % 6}` }));
    return [chart.svg, isotone.charts.legend(names)];
  }

  function rates(width, x, y, title, point, extra) {
    const chart = isotone.charts.frame({
      width, height: 290, left: 58, title,
      x: { low: 0, high: 1, label: x.label, format: (v) => percent(v) },
      y: { low: 0, high: 1.0001, label: y.label, format: (v) => percent(v) },
    });
    extra(chart);
    isotone.charts.line(chart, x.values.map((v, k) => [v, y.values[k]]), "main");
    if (point) isotone.charts.marks(chart, [point], "current", 0, 5.5);
    return chart;
  }

  function roc(width, { ranking, point }, name) {
    if (!ranking) return null;
    const chart = rates(
      width, { values: ranking.fpr, label: `others decided as ${name}` }, { values: ranking.tpr, label: `${name} decided so` },
      "receiver operating characteristic", [point.fpr, point.tpr],
      (made) => isotone.charts.line(made, [[0, 0], [1, 1]], "c5 thin"),
    );
    const says = `Area under the curve: ${format(ranking.area)} (1 is perfect, 0.5 is chance). Working point: ${percent(point.tpr)} of the rows with ${name} and ${percent(point.fpr)} of the others are decided as ${name}.`;
    return [chart.svg, node("p", { class: "hint", text: says })];
  }

  function precision(width, { ranking, point }, name) {
    if (!ranking) return null;
    const chart = rates(
      width, { values: ranking.tpr, label: `recall: ${name} decided so` }, { values: ranking.precision, label: "precision: decided so and true" },
      "precision against recall", [point.tpr, point.precision],
      (made) => isotone.charts.line(made, [[0, ranking.base], [1, ranking.base]], "c5 thin"),
    );
    const says = `Average precision: ${format(ranking.average_precision)}; the thin line is the share of ${name} among all rows. Working point: precision ${percent(point.precision)} at recall ${percent(point.tpr)}.`;
    return [chart.svg, node("p", { class: "hint", text: says })];
  }

  function calibration(width, { calibration: found }) {
    if (!found) return null;
    const chart = isotone.charts.frame({
      width, height: 290, left: 58, title: "calibration",
      x: { low: 0, high: 1, label: "predicted probability", format: (v) => percent(v) },
      y: { low: 0, high: 1.0001, label: "share that truly is so", format: (v) => percent(v) },
    });
    isotone.charts.line(chart, [[0, 0], [1, 1]], "c5 thin");
    const points = found.predicted.map((p, k) => [p, found.value[k], found.error[k]]).filter(([, v]) => v !== null);
    isotone.charts.errorBars(chart, points, "c0");
    isotone.charts.marks(chart, points, "c0", 0, 4);
    return [chart.svg, node("p", { class: "hint", text: "On the thin line, a predicted 30 % comes true in 30 % of the rows. Bars are one standard error." })];
  }

  /* Share accepted, or mean prediction, in bins of a column. */
  function against(width, found, label, isShare) {
    const values = found.curves.flatMap((curve) => curve.value.map((v, k) => [v - curve.error[k], v + curve.error[k]])).flat().filter(Number.isFinite);
    const [least, most] = isShare ? [0, 1.0001] : [Math.min(...values), Math.max(...values)];
    const n = found.at.length;
    const { edges } = found;
    const x = edges
      ? { low: edges[0], high: edges[n], label: found.column }
      : { low: -0.5, high: n - 0.5, label: found.column, ticks: found.at.map((_, k) => k), format: (k) => isotone.charts.shorten(found.at[k], Math.max(3, Math.floor((width - 72) / n / 7))) };
    const pad = 0.05 * (most - least) || 0.5;
    const chart = isotone.charts.frame({
      width, height: 300, left: 62, title: `${label} against ${found.column}`,
      x: edges && wide(edges) ? { ...x, ...logarithmic(edges) } : x,
      y: { low: isShare ? 0 : least - pad, high: isShare ? most : most + pad, label, format: isShare ? (v) => percent(v) : format },
    });
    found.curves.forEach((curve, c) => {
      const apart = found.curves.length > 1 ? (c - (found.curves.length - 1) / 2) * 3 : 0;
      const points = found.at.map((at, k) => [edges ? middle(edges, k) : k, curve.value[k], curve.error[k]]).filter(([, v]) => v !== null);
      const shifted = { ...chart, xs: { ...chart.xs, of: (v) => chart.xs.of(v) + apart } };
      if (edges) isotone.charts.line(shifted, points, `thin c${c % 6}`);
      isotone.charts.errorBars(shifted, points, `c${c % 6}`);
      isotone.charts.marks(shifted, points, `c${c % 6}`, c, 4);
    });
    const names = found.curves.map((curve, c) => ({ name: curve.name, kind: `c${c % 6}`, shape: c }));
    return [chart.svg, isotone.charts.legend(names)];

    function wide(cuts) {
      return cuts[0] > 0 && cuts[n] / cuts[0] > 50;
    }

    function logarithmic(cuts) {
      return { low: Math.log(cuts[0]), high: Math.log(cuts[n]), map: { forth: Math.log, back: Math.exp, log: true } };
    }

    function middle(cuts, k) {
      return wide(cuts) ? Math.sqrt(cuts[k] * cuts[k + 1]) : (cuts[k] + cuts[k + 1]) / 2;
    }
  }

  /* Predicted against observed, for the rows that the file holds. */
  function scatter(width, app) {
    const { rows } = app.data;
    if (!rows.truth || !rows.number.length) return null;
    const predicted = rows.number.map((_, k) => app.network.score(rows.columns.map((column) => column[k]))[0]);
    const all = [...predicted, ...rows.truth];
    const [low, high] = [Math.min(...all), Math.max(...all)];
    const chart = isotone.charts.frame({
      width, height: Math.min(width, 420), left: 62, title: "predicted against observed",
      x: { low, high, label: `observed ${app.data.sample.target}` }, y: { low, high, label: "predicted" },
    });
    isotone.charts.line(chart, [[low, low], [high, high]], "c5 thin");
    isotone.charts.marks(chart, predicted.map((p, k) => [rows.truth[k], p]), "c0 faint", 0, 2.6);
    return [chart.svg, node("p", { class: "hint", text: "Rows on the thin line are predicted perfectly." })];
  }

  return { section, panel, choice, metrics, histogram, roc, precision, calibration, against, scatter };
})();
