"use strict";
/* The answer against two features, with the decision boundary and the rows of the table. */
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
    this.points = node("input", { type: "checkbox", id: "map-points", checked: "" });
    this.points.addEventListener("change", () => this.draw());
    const fields = [
      node("label", { for: "map-x", text: "across " }), this.x,
      node("label", { for: "map-y", text: " up " }), this.y,
    ];
    this.rows = app.data.rows && app.data.rows.number.length ? app.data.rows : null;
    if (this.rows) {
      fields.push(node("span", {}, [
        this.points, node("label", { for: "map-points", text: " rows of the table on top" }),
      ]));
    }
    this.picture = node("div", {});
    place.append(node("p", { class: "field" }, fields), this.picture);
  }

  /* The two features with the largest effects, preferably such that the boundary is in the picture. */
  strongest() {
    const { app, numbers } = this;
    const order = numbers.map((_, k) => k).sort((a, b) => numbers[b].effect - numbers[a].effect).slice(0, 6);
    const pairs = order.flatMap((a, i) => order.slice(i + 1).map((b) => [a, b].sort((x, y) => x - y)));
    const shown = pairs.find(([a, b]) => !app.judge || this.hasBorder(this.sample(numbers[a], numbers[b], 12)));
    return shown || pairs[0];
  }

  /* Whether both decisions are in the picture. */
  hasBorder({ leads }) {
    return leads.some((lead) => lead >= 0) && leads.some((lead) => lead < 0);
  }

  choice(id, chosen) {
    const { node } = isotone.charts;
    const made = node("select", { id, onchange: () => this.draw() }, this.numbers.map(
      (control, value) => node("option", { value, text: control.name }),
    ));
    made.value = chosen;
    return made;
  }

  draw() {
    if (!this.picture) return;
    const { app } = this;
    const [across, up] = [this.x, this.y].map((choice) => this.numbers[Number(choice.value)]);
    const width = Math.min(Math.max(this.picture.clientWidth, 280), 760);
    const chart = isotone.charts.frame({
      width,
      height: Math.min(Math.round(width * 0.72), 520),
      bottom: 44,
      x: { ...isotone.alongFeature(app.network, across), label: across.name },
      y: { ...isotone.alongFeature(app.network, up), label: up.name },
      title: `${app.view.name} against ${across.name} and ${up.name}`,
    });
    const field = this.sample(across, up);
    this.paint(chart, field);
    if (app.judge) this.border(chart, field);
    if (this.rows && this.points.checked) this.scatter(chart, across, up);
    const now = [app.row[across.feature], app.row[up.feature]];
    if (isotone.charts.inside(chart, now)) isotone.charts.marks(chart, [now], "current", 0, 6);
    isotone.charts.drag(chart.svg, (event) => this.follow(event, chart, across, up));
    this.explain(chart, field, across, up);
    this.picture.replaceChildren(
      chart.svg, isotone.downloads(() => chart), this.scale(field), isotone.charts.legend(this.entries(field)),
    );
  }

  /* The view at the middles of n times n cells, and the decision there. */
  sample(across, up, fewer = null) {
    const { app } = this;
    const { size } = app.network;
    const n = fewer || (size < 1500 ? 90 : size < 8000 ? 60 : 36);
    const middles = (control) => Array.from({ length: n }, (_, k) => {
      const [low, high] = control.axis;
      return app.network.back(control.feature, low + ((k + 0.5) / n) * (high - low));
    });
    const [xs, ys] = [middles(across), middles(up)];
    const row = [...app.row];
    const [values, leads] = [[], []];
    for (const y of ys) {
      for (const x of xs) {
        row[up.feature] = y;
        row[across.feature] = x;
        const scores = app.network.score(row);
        values.push(app.show(scores));
        leads.push(this.lead(scores));
      }
    }
    const range = app.view.probability ? [0, 1] : isotone.charts.extent(values);
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

  /* Values under the pointer, and all cells for CSV. */
  explain(chart, { n, xs, ys, values }, across, up) {
    const { format, percent, place } = isotone.charts;
    const { view } = this.app;
    const text = view.probability ? (v) => percent(v) : (v) => format(v, 4);
    chart.series = ys.map((y, j) => (
      { name: `${up.name} = ${format(y, 5)}`, points: xs.map((x, i) => [x, values[j * n + i]]) }
    ));
    chart.y = { ...chart.y, label: view.name };
    chart.where = (event) => {
      const [i, j] = place(event, chart).map((share) => Math.min(Math.max(Math.floor(share * n), 0), n - 1));
      return [[across.name, format(xs[i], 4)], [up.name, format(ys[j], 4)], [view.name, text(values[j * n + i])]];
    };
  }

  paint(chart, { n, values, range }) {
    const { xs, ys } = chart;
    const [low, high] = range;
    const upright = [];
    for (let j = n - 1; j >= 0; j -= 1) upright.push(...values.slice(j * n, (j + 1) * n));
    chart.plot.append(isotone.charts.node("image", {
      class: "heat",
      href: this.image(n, n, upright.map((value) => (value - low) / (high - low || 1))),
      x: xs.from,
      y: ys.to,
      width: xs.to - xs.from,
      height: ys.from - ys.to,
      preserveAspectRatio: "none",
    }));
  }

  /* Shares from 0 to 1 as colored pixels. */
  image(width, height, shares) {
    const canvas = isotone.charts.node("canvas", { width, height });
    const context = canvas.getContext("2d");
    const pixels = context.createImageData(width, height);
    shares.forEach((share, k) => pixels.data.set([...isotone.viridis(share), 255], 4 * k));
    context.putImageData(pixels, 0, 0);
    return canvas.toDataURL();
  }

  /* The decision boundary, by marching squares between the middles of the cells. */
  border(chart, { n, xs, ys, leads }) {
    const { node } = isotone.charts;
    const cut = (a, b, p, q) => p + (a / (a - b)) * (q - p);
    const point = (p) => p.map((x) => x.toFixed(1)).join(" ");
    let d = "";
    for (let j = 0; j + 1 < n; j += 1) {
      for (let i = 0; i + 1 < n; i += 1) {
        const at = j * n + i;
        const [a, b, c, e] = [leads[at], leads[at + 1], leads[at + n + 1], leads[at + n]];
        const [left, right] = [chart.xs.of(xs[i]), chart.xs.of(xs[i + 1])];
        const [low, high] = [chart.ys.of(ys[j]), chart.ys.of(ys[j + 1])];
        const ends = [];
        if (a < 0 !== b < 0) ends.push([cut(a, b, left, right), low]);
        if (b < 0 !== c < 0) ends.push([right, cut(b, c, low, high)]);
        if (c < 0 !== e < 0) ends.push([cut(c, e, right, left), high]);
        if (e < 0 !== a < 0) ends.push([left, cut(e, a, high, low)]);
        for (let k = 0; k + 1 < ends.length; k += 2) d += `M${point(ends[k])}L${point(ends[k + 1])}`;
      }
    }
    chart.plot.append(node("path", { class: "halo", d }), node("path", { class: "boundary", d }));
  }

  /* Rows of the table, by class where it is known. */
  scatter(chart, across, up) {
    const { columns, truth } = this.rows;
    const groups = this.classes().map(() => []);
    columns[0].forEach((_, k) => {
      const point = [columns[across.feature][k], columns[up.feature][k]];
      if (isotone.charts.inside(chart, point)) groups[groups.length > 1 ? truth[k] : 0].push(point);
    });
    groups.forEach((points, c) => isotone.charts.marks(chart, points, `dot ${isotone.hue(this.classes()[c], c)}`, c, 2.2));
  }

  classes() {
    const { classes } = this.app.data.outcomes;
    return this.rows.truth && classes.length ? classes : ["rows of the table"];
  }

  follow(event, chart, across, up) {
    const { app } = this;
    const [right, high] = isotone.charts.place(event, chart);
    if (Math.min(right, high) < 0 || Math.max(right, high) > 1) return;
    app.row[across.feature] = app.atShare(across, right);
    app.row[up.feature] = app.atShare(up, high);
    app.setRow(app.row);
  }

  /* The color scale with its ends. */
  scale({ range }) {
    const { node, format, percent } = isotone.charts;
    const text = this.app.view.probability ? (v) => percent(v) : (v) => format(v, 3);
    const shades = Array.from({ length: 64 }, (_, k) => k / 63);
    return node("p", { class: "scale" }, [
      node("span", { text: `${this.app.view.name}: ${text(range[0])} ` }),
      node("img", { src: this.image(64, 1, shades), alt: "from dark to bright" }),
      node("span", { text: ` ${text(range[1])}` }),
    ]);
  }

  entries(field) {
    const { data, judge, view } = this.app;
    const found = [];
    if (judge) {
      const of = judge.kind === "threshold" ? "the decision" : data.outcomes.classes[view.output];
      if (this.hasBorder(field)) found.push({ name: `boundary of ${of}`, kind: "boundary" });
      else found.push({ name: `The boundary of ${of} is not in this picture: move other features.`, kind: null });
    }
    found.push({ name: "current row", kind: "current", shape: 0 });
    if (this.rows && this.points.checked) {
      this.classes().forEach((name, c) => found.push({ name, kind: `dot ${isotone.hue(name, c)}`, shape: c }));
    }
    return found;
  }
};

/* Dark blue to yellow, readable without color vision and in gray. */
isotone.viridis = (share) => {
  const stops = [
    [68, 1, 84], [72, 40, 120], [62, 73, 137], [49, 104, 142], [38, 130, 142],
    [31, 158, 137], [53, 183, 121], [110, 206, 88], [181, 222, 43], [253, 231, 37],
  ];
  const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const k = Math.min(Math.floor(at), stops.length - 2);
  return stops[k].map((from, c) => Math.round(from + (at - k) * (stops[k + 1][c] - from)));
};
