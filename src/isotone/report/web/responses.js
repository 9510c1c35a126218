"use strict";
/* How the answer changes when one feature moves from the current row. */

/* Scores along some controls, others as they are: { control, samples: { value, scores } }. */
isotone.responses = (app, controls, nPoints) => controls.map((control) => {
  const row = [...app.row];
  if (control.kind !== "number") return { control, samples: control.labels.map(chosen) };
  const i = control.feature;
  const [low, high] = control.axis;
  const knots = app.network.knots(i).filter((v) => v > low && v < high);
  const few = Math.ceil(knots.length / nPoints);
  const values = [app.row[i], ...knots.filter((_, k) => k % few === 0)];
  for (let k = 0; k <= nPoints; k += 1) {
    values.push(app.network.back(i, low + (k / nPoints) * (high - low)));
  }
  const samples = values.sort((a, b) => a - b).map((value) => {
    row[i] = value;
    return { value, scores: app.network.score(row) };
  });
  return { control, samples };

  function chosen(_, value) {
    app.choose(control, value, row);
    return { value, scores: app.network.score(row) };
  }
});

/* The maps of a chart's axis along a feature: logarithmic where the scaling is. */
isotone.alongFeature = (network, control) => {
  const i = control.feature;
  const map = {
    forth: (v) => network.along(i, v),
    back: (t) => network.back(i, t),
    log: network.isLog(i),
    zero: control.low <= 0,
  };
  return { low: control.axis[0], high: control.axis[1], map };
};

/* One small chart for every response. */
isotone.drawResponses = (app, place, responses) => {
  const { node, format, percent, shorten } = isotone.charts;
  const { network, judge, view } = app;
  const wide = Math.max(place.clientWidth, 280);
  const fit = wide > 1000 ? 4 : wide > 700 ? 3 : wide > 480 ? 2 : 1;
  const columns = Math.ceil(responses.length / Math.ceil(responses.length / fit));
  const width = Math.min(Math.floor((wide - 18 * (columns - 1)) / columns), 520);
  const vertical = span();
  place.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
  place.replaceChildren(...responses.map(({ control, samples }) => {
    const chart = control.kind === "number" ? curve(control, samples) : bars(control, samples);
    return isotone.charts.figure(control.name, chart.svg);
  }));

  /* One vertical axis for all curves, so that they can be compared. */
  function span() {
    if (view.probability) return { low: 0, high: 1, format: (p) => percent(p) };
    const all = responses.flatMap(({ samples }) => samples.map(({ scores }) => app.show(scores)));
    if (app.boundary() !== null) all.push(app.boundary());
    const [least, most] = isotone.charts.extent(all);
    const beyond = 0.08 * (most - least) || 1;
    return { low: least - beyond, high: most + beyond, format };
  }

  function empty(control, x) {
    const title = `${view.name} against ${control.name}`;
    return isotone.charts.frame({ width, height: 210, bottom: 58, x, y: vertical, title });
  }

  function curve(control, samples) {
    const i = control.feature;
    const chart = empty(control, isotone.alongFeature(network, control));
    if (control.density) density(chart, control.density);
    const here = network.position(i, app.row[i]);
    isotone.charts.band(chart, samples.map(({ value }) => {
      const step = network.position(i, value) - here;
      return [value, ...isotone.envelope(network, judge, app.scores, view, i, step)];
    }), "envelope");
    threshold(chart);
    isotone.charts.line(chart, samples.map(({ value, scores }) => [value, app.show(scores)]), "main");
    const [low, high] = control.axis.map((t) => network.back(i, t));
    const now = Math.min(Math.max(app.row[i], low), high);
    isotone.charts.marks(chart, [[now, app.show(app.scores)]], "current", 0, 5);
    chart.svg.addEventListener("click", (event) => follow(event, chart, control));
    return chart;
  }

  function threshold(chart) {
    if (app.boundary() !== null) isotone.charts.rule(chart, { y: app.boundary() });
  }

  /* A click moves the row there; sliders do the same for the keyboard. */
  function follow(event, chart, control) {
    const [share] = isotone.charts.place(event, chart);
    if (share < 0 || share > 1) return;
    app.row[control.feature] = app.atShare(control, share);
    app.setRow(app.row);
  }

  /* Where the rows of the table lie, below the axis. */
  function density(chart, shares) {
    const { xs, height } = chart;
    const most = Math.max(...shares, 1e-9);
    const bin = (xs.to - xs.from) / shares.length;
    const base = height - 4;
    shares.forEach((share, k) => {
      const tall = share > 0 ? Math.max(26 * (share / most), 1) : 0;
      const size = { width: Math.max(bin - 0.6, 0.5), height: tall };
      chart.grid.append(node("rect", { class: "density", x: xs.from + k * bin, y: base - tall, ...size }));
    });
    chart.grid.append(node("line", { x1: xs.from, x2: xs.to, y1: base, y2: base }));
  }

  function bars(control, samples) {
    const n = samples.length;
    const letters = Math.max(3, Math.floor((width - 70) / n / 7));
    const chart = empty(control, {
      low: -0.5,
      high: n - 0.5,
      ticks: samples.map(({ value }) => value),
      format: (c) => shorten(control.labels[c], letters),
    });
    threshold(chart);
    samples.forEach(({ value, scores }) => {
      const is = app.chosen(control) === value;
      const look = is ? ["current", 0, 5] : ["c0", 2, 4];
      isotone.charts.marks(chart, [[value, app.show(scores)]], ...look);
    });
    return chart;
  }
};
