"use strict";
/* Pictures of the model around the current row: response curves and the heat map. */
isotone.curves = (app, place, responses) => {
  const { node, format, percent } = isotone.charts;
  const { data, network, judge, view } = app;
  const [low, high] = span();
  const wide = Math.max(place.clientWidth, 280);
  const fit = wide > 1000 ? 4 : wide > 700 ? 3 : wide > 480 ? 2 : 1;
  const n = data.controls.length;
  const columns = Math.ceil(n / Math.ceil(n / fit)); // as few rows, filled as evenly as can be
  const width = Math.floor((wide - 18 * (columns - 1)) / columns);
  const charts = data.controls.map((control, k) => (control.kind === "category"
    ? bars(control, responses[k])
    : curve(control, responses[k])));
  place.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
  place.replaceChildren(...charts);

  /* One vertical axis for all curves, so that they can be compared. */
  function span() {
    if (view.probability) return [0, 1];
    const all = responses.flatMap((samples) => samples.map(({ scores }) => app.show(scores)));
    const boundary = app.boundary();
    if (boundary !== null) all.push(boundary);
    const [least, most] = [Math.min(...all), Math.max(...all)];
    const beyond = 0.08 * (most - least) || 1;
    return [least - beyond, most + beyond];
  }

  function vertical() {
    return { low, high, format: view.probability ? (p) => percent(p) : format };
  }

  function curve(control, samples) {
    const i = control.feature;
    const map = { forth: (v) => network.along(i, v), back: (t) => network.back(i, t), log: network.scaling.log[i] };
    const chart = isotone.charts.frame({
      width, height: 210, left: 56, bottom: 58,
      x: { low: control.axis[0], high: control.axis[1], map }, y: vertical(),
      title: `${view.name} against ${control.name}`,
    });
    density(chart, control);
    const here = network.scale(i, app.row[i]);
    isotone.charts.band(chart, samples.map(({ value }) => [
      value, ...isotone.envelope(network, judge, app.scores, view, i, network.scale(i, value) - here),
    ]), "envelope");
    const boundary = app.boundary();
    if (boundary !== null) isotone.charts.rule(chart, { y: boundary, kind: "threshold" });
    isotone.charts.line(chart, samples.map(({ value, scores }) => [value, app.show(scores)]), "main");
    const now = Math.min(Math.max(app.row[i], network.back(i, control.axis[0])), network.back(i, control.axis[1]));
    isotone.charts.marks(chart, [[now, app.show(app.scores)]], "current", 0, 5);
    chart.svg.addEventListener("click", (event) => follow(event, chart, control));
    return isotone.charts.figure(control.name, chart.svg);
  }

  /* A click moves the row there; sliders do the same for the keyboard. */
  function follow(event, chart, control) {
    const box = chart.svg.getBoundingClientRect();
    const pixel = ((event.clientX - box.left) / box.width) * chart.width;
    const share = (pixel - chart.xs.from) / (chart.xs.to - chart.xs.from);
    if (share < 0 || share > 1) return;
    app.row[control.feature] = app.atShare(control, share);
    app.setRow(app.row);
  }

  /* Where the rows of the table lie, below the axis. */
  function density(chart, control) {
    if (!control.density) return;
    const { xs, ys, height } = chart;
    const most = Math.max(...control.density, 1e-9);
    const wide = (xs.to - xs.from) / control.density.length;
    const base = height - 4;
    control.density.forEach((share, k) => {
      const tall = share > 0 ? Math.max(26 * (share / most), 1) : 0;
      chart.grid.append(node("rect", { class: "density", x: xs.from + k * wide, y: base - tall, width: Math.max(wide - 0.6, 0.5), height: tall }));
    });
    chart.grid.append(node("line", { x1: xs.from, x2: xs.to, y1: base, y2: base }));
    return ys;
  }

  function bars(control, samples) {
    const many = samples.length;
    const chart = isotone.charts.frame({
      width, height: 210, left: 56, bottom: 58,
      x: { low: -0.5, high: many - 0.5, ticks: samples.map((_, c) => c), format: (c) => isotone.charts.shorten(control.labels[c], Math.max(3, Math.floor((width - 70) / many / 7))) },
      y: vertical(), title: `${view.name} by ${control.name}`,
    });
    const boundary = app.boundary();
    if (boundary !== null) isotone.charts.rule(chart, { y: boundary, kind: "threshold" });
    samples.forEach(({ value, scores }) => {
      const is = app.row[control.features[value]] === 1;
      isotone.charts.marks(chart, [[value, app.show(scores)]], is ? "current" : "c0", is ? 0 : 2, is ? 5 : 4);
    });
    return isotone.charts.figure(control.name, chart.svg);
  }
};

isotone.HeatMap = class {
  constructor(app, place) {
    const { node } = isotone.charts;
    this.app = app;
    this.numbers = app.data.controls.filter((control) => control.kind === "number");
    if (this.numbers.length < 2) {
      place.append(node("p", { text: "A heat map needs two features that are numbers." }));
      return;
    }
    const [first, second] = this.strongest();
    this.x = this.choice("map-x", first);
    this.y = this.choice("map-y", second);
    this.points = node("input", { type: "checkbox", id: "map-points", checked: "", onchange: () => this.draw() });
    const fields = [node("label", { for: "map-x", text: "across " }), this.x, node("label", { for: "map-y", text: " up " }), this.y];
    if (app.data.rows && app.data.rows.number.length) fields.push(this.points, node("label", { for: "map-points", text: " rows of the table on top" }));
    this.picture = node("div", {});
    place.append(node("p", { class: "field" }, fields), this.picture);
  }

  /* The two features that move the score most from the start. */
  strongest() {
    const { app } = this;
    const strength = isotone.responses(app, 24).filter((_, k) => app.data.controls[k].kind === "number").map((samples) => {
      const scores = samples.map((each) => each.scores[app.view.output]);
      return Math.max(...scores) - Math.min(...scores);
    });
    const order = strength.map((_, k) => k).sort((a, b) => strength[b] - strength[a]);
    return order.slice(0, 2).sort((a, b) => a - b);
  }

  choice(id, chosen) {
    const { node } = isotone.charts;
    const options = this.numbers.map((control, k) => node("option", { value: k, text: control.name, selected: k === chosen ? "" : null }));
    return node("select", { id, onchange: () => this.draw() }, options);
  }

  draw() {
    if (!this.picture) return;
    const { app } = this;
    const [across, up] = [this.x, this.y].map((choice) => this.numbers[Number(choice.value)]);
    const width = Math.min(Math.max(this.picture.clientWidth, 280), 760);
    const chart = isotone.charts.frame({
      width, height: Math.min(Math.round(width * 0.72), 520), left: 64, bottom: 44,
      x: { ...this.side(across), label: across.name }, y: { ...this.side(up), label: up.name },
      title: `${app.view.name} against ${across.name} and ${up.name}`,
    });
    const field = this.sample(across, up);
    this.paint(chart, field);
    this.border(chart, field);
    if (this.points.checked && app.data.rows) this.scatter(chart, across, up);
    const now = [app.row[across.feature], app.row[up.feature]];
    const inside = chart.xs.of(now[0]) >= chart.xs.from && chart.xs.of(now[0]) <= chart.xs.to && chart.ys.of(now[1]) <= chart.ys.from && chart.ys.of(now[1]) >= chart.ys.to;
    if (inside) isotone.charts.marks(chart, [now], "current", 0, 6);
    chart.svg.addEventListener("click", (event) => this.follow(event, chart, across, up));
    this.picture.replaceChildren(chart.svg, this.bar(field), isotone.charts.legend(this.entries()));
  }

  side(control) {
    const { network } = this.app;
    const i = control.feature;
    const map = { forth: (v) => network.along(i, v), back: (t) => network.back(i, t), log: network.scaling.log[i] };
    return { low: control.axis[0], high: control.axis[1], map };
  }

  /* The view at the middles of n times n cells, and the decision there. */
  sample(across, up) {
    const { app } = this;
    const size = app.data.network.steps.reduce((sum, step) => sum + (step.weight ? step.weight.length * step.weight[0].length : 0), 0);
    const n = size < 1500 ? 90 : size < 8000 ? 60 : 36;
    const row = [...app.row];
    const at = (control, k) => app.network.back(control.feature, control.axis[0] + ((k + 0.5) / n) * (control.axis[1] - control.axis[0]));
    const xs = Array.from({ length: n }, (_, k) => at(across, k));
    const ys = Array.from({ length: n }, (_, k) => at(up, k));
    const values = [];
    const leads = [];
    for (let j = 0; j < n; j += 1) {
      for (let i = 0; i < n; i += 1) {
        row[up.feature] = ys[j];
        row[across.feature] = xs[i];
        const scores = app.network.score(row);
        values.push(app.show(scores));
        leads.push(this.lead(scores));
      }
    }
    const range = app.view.probability ? [0, 1] : [Math.min(...values), Math.max(...values)];
    return { n, xs, ys, values, leads, range };
  }

  /* Positive on one side of the boundary of the view: the threshold, or this class winning. */
  lead(scores) {
    const { judge, view } = this.app;
    if (!judge) return 1;
    if (judge.kind === "threshold") return scores[0] - judge.threshold;
    const others = scores.filter((_, k) => k !== view.output);
    return scores[view.output] - Math.max(...others);
  }

  paint(chart, { n, values, range }) {
    const { node } = isotone.charts;
    const canvas = node("canvas", { width: n, height: n });
    const context = canvas.getContext("2d");
    const image = context.createImageData(n, n);
    values.forEach((value, k) => {
      const [i, j] = [k % n, n - 1 - Math.floor(k / n)];
      const color = isotone.viridis((value - range[0]) / (range[1] - range[0] || 1));
      image.data.set([...color, 255], 4 * (j * n + i));
    });
    context.putImageData(image, 0, 0);
    const { xs, ys } = chart;
    chart.plot.append(node("image", {
      href: canvas.toDataURL(), x: xs.from, y: ys.to, width: xs.to - xs.from, height: ys.from - ys.to, preserveAspectRatio: "none", class: "heat",
    }));
  }

  /* The decision boundary, by marching squares between the middles of the cells. */
  border(chart, { n, xs, ys, leads }) {
    if (!this.app.judge) return;
    const { node } = isotone.charts;
    const cut = (a, b, p, q) => p + (a / (a - b)) * (q - p);
    let d = "";
    for (let j = 0; j + 1 < n; j += 1) {
      for (let i = 0; i + 1 < n; i += 1) {
        const [a, b, c, e] = [leads[j * n + i], leads[j * n + i + 1], leads[(j + 1) * n + i + 1], leads[(j + 1) * n + i]];
        const [left, right] = [chart.xs.of(xs[i]), chart.xs.of(xs[i + 1])];
        const [low, high] = [chart.ys.of(ys[j]), chart.ys.of(ys[j + 1])];
        const ends = [];
        if (a < 0 !== b < 0) ends.push([cut(a, b, left, right), low]);
        if (b < 0 !== c < 0) ends.push([right, cut(b, c, low, high)]);
        if (c < 0 !== e < 0) ends.push([cut(c, e, right, left), high]);
        if (e < 0 !== a < 0) ends.push([left, cut(e, a, high, low)]);
        for (let k = 0; k + 1 < ends.length; k += 2) d += `M${ends[k].map((p) => p.toFixed(1)).join(" ")}L${ends[k + 1].map((p) => p.toFixed(1)).join(" ")}`;
      }
    }
    chart.plot.append(node("path", { class: "halo", d }), node("path", { class: "boundary", d }));
  }

  scatter(chart, across, up) {
    const { columns, truth } = this.app.data.rows;
    const { classes } = this.app.data.outcomes;
    const shown = columns[0].map((_, k) => k).filter((k) => {
      const [px, py] = [chart.xs.of(columns[across.feature][k]), chart.ys.of(columns[up.feature][k])];
      return px >= chart.xs.from && px <= chart.xs.to && py <= chart.ys.from && py >= chart.ys.to;
    }).slice(0, 1500);
    const kinds = truth && classes.length ? classes.map((_, c) => c) : [0];
    for (const c of kinds) {
      const mine = shown.filter((k) => !(truth && classes.length) || truth[k] === c);
      isotone.charts.marks(chart, mine.map((k) => [columns[across.feature][k], columns[up.feature][k]]), `dot dot${c % 4}`, c, 2.2);
    }
  }

  follow(event, chart, across, up) {
    const { app } = this;
    const box = chart.svg.getBoundingClientRect();
    const px = ((event.clientX - box.left) / box.width) * chart.width;
    const py = ((event.clientY - box.top) / box.height) * chart.height;
    const [sx, sy] = [(px - chart.xs.from) / (chart.xs.to - chart.xs.from), (py - chart.ys.from) / (chart.ys.to - chart.ys.from)];
    if (Math.min(sx, sy) < 0 || Math.max(sx, sy) > 1) return;
    app.row[across.feature] = app.atShare(across, sx);
    app.row[up.feature] = app.atShare(up, sy);
    app.setRow(app.row);
  }

  /* The color scale with its ends. */
  bar({ range }) {
    const { node, format, percent } = isotone.charts;
    const text = this.app.view.probability ? (v) => percent(v) : (v) => format(v, 3);
    const canvas = node("canvas", { width: 64, height: 1 });
    const context = canvas.getContext("2d");
    const image = context.createImageData(64, 1);
    for (let k = 0; k < 64; k += 1) image.data.set([...isotone.viridis(k / 63), 255], 4 * k);
    context.putImageData(image, 0, 0);
    return node("p", { class: "scale" }, [
      node("span", { text: `${this.app.view.name}: ${text(range[0])} ` }),
      node("img", { src: canvas.toDataURL(), alt: "from dark to bright" }),
      node("span", { text: ` ${text(range[1])}` }),
    ]);
  }

  entries() {
    const { data, judge, view } = this.app;
    const { classes } = data.outcomes;
    const found = [];
    if (judge) found.push({ name: judge.kind === "threshold" ? "decision boundary" : `boundary of ${classes[view.output]}`, kind: "boundary" });
    found.push({ name: "current row", kind: "current", shape: 0 });
    if (this.points.checked && data.rows && data.rows.number.length) {
      const known = data.rows.truth && classes.length;
      (known ? classes : ["rows of the table"]).forEach((name, c) => found.push({ name, kind: `dot dot${c % 4}`, shape: c }));
    }
    return found;
  }
};

/* Dark blue to yellow, readable without color vision and in gray. */
isotone.viridis = (share) => {
  const stops = [[68, 1, 84], [72, 40, 120], [62, 73, 137], [49, 104, 142], [38, 130, 142], [31, 158, 137], [53, 183, 121], [110, 206, 88], [181, 222, 43], [253, 231, 37]];
  const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const k = Math.min(Math.floor(at), stops.length - 2);
  return stops[k].map((from, c) => Math.round(from + (at - k) * (stops[k + 1][c] - from)));
};
