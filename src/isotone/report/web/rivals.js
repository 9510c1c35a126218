"use strict";
/* Another model beside ours: on the same sliders, and on the same rows. */
isotone.Rival = class {
  constructor(app, { name, network, places }) {
    this.app = app;
    this.name = name;
    this.places = places;
    this.network = new isotone.Network(network);
  }

  /* What the view shows, from our row. */
  show(row) {
    return this.app.show(this.network.score(this.places.map((i) => row[i])));
  }

  /* Values of a control and what the other says there. */
  along(control, row, n) {
    const { app } = this;
    const moved = [...row];
    if (control.kind !== "number") {
      return control.labels.map((_, value) => {
        app.choose(control, value, moved);
        return [value, this.show(moved)];
      });
    }
    const [low, high] = control.axis;
    const steps = Array.from({ length: n + 1 }, (_, k) => app.network.back(control.feature, low + (k / n) * (high - low)));
    const rounded = (x) => Math.min(Math.max(Math.round(x), Math.ceil(steps[0])), Math.floor(steps[n]));
    const values = control.whole ? [...new Set(steps.map(rounded))] : steps;
    return values.map((value) => {
      moved[control.feature] = value;
      return [value, this.show(moved)];
    });
  }
};

/* The declared direction of the view along a control; 0 if it is free. */
isotone.declaredSign = (app, control) => (
  control.feature === undefined ? 0 : app.sense * app.data.network.declared[app.view.output][control.feature]
);

/* Steps of a curve against a direction: [from, to] points. */
isotone.against = (points, sign) => points.slice(1).flatMap((point, k) => (
  sign * (point[1] - points[k][1]) < -1e-9 ? [[points[k], point]] : []
));

/* The largest drop against a direction: from the best point so far to the worst after it. */
isotone.largestDrop = (points, sign) => {
  let [best, worst] = [points[0], { drop: 0 }];
  for (const point of points) {
    if (sign * (point[1] - best[1]) > 0) best = point;
    const drop = sign * (best[1] - point[1]);
    if (drop > worst.drop) worst = { drop, from: best, to: point };
  }
  return worst;
};

/* The other model's curve in a card; red where it moves against the declared direction. */
isotone.drawRival = (app, chart, control, nPoints = 32) => {
  if (!app.rival) return;
  const { charts } = isotone;
  const row = [...app.row];
  if (app.lacks(control)) row[control.indicator] = 0;
  const points = app.rival.along(control, row, nPoints);
  const sign = isotone.declaredSign(app, control);
  if (control.kind !== "number") {
    charts.marks(chart, points, "rival", 3, 4, app.rival.name);
    return;
  }
  charts.line(chart, points, "rival", app.rival.name);
  if (!sign) return;
  isotone.against(points, sign).forEach((step) => charts.line(chart, step, "worse"));
};

isotone.rivals = (app, still) => {
  const { node, format, percent, count, plain } = isotone.charts;
  const { panels } = isotone;
  const { data } = app;
  const found = data.rivals || [];
  const shown = found.find(({ network }) => network);
  if (shown) app.rival = new isotone.Rival(app, shown);
  for (const rival of found) {
    const breaking = rival.role === "against";
    const title = breaking ? "Try to break it" : "Champion and challenger";
    const place = panels.section(breaking ? "break" : "challenger", title, lead(rival), breaking ? title : "Challenger");
    if (shown === rival) duel(place);
    const grid = node("div", { class: "grid-panels" });
    place.append(grid);
    if (rival.metrics && rival.metrics.length) still.push(panels.panel(grid, "Metrics", () => [metrics(rival)]));
    if (rival.swaps) still.push(panels.panel(grid, "Decisions of both", () => swaps(rival)));
    if (rival.swaps) chosen(grid, rival.swaps.where, "Where decisions differ", "share of rows", true, rival.role);
    if (breaking && rival.means && rival.means.length) {
      chosen(grid, rival.means, "Mean scores", "mean score", false, `means-${rival.role}`);
    }
  }

  function lead({ name, network, role }) {
    const capital = name.slice(0, 1).toUpperCase() + name.slice(1);
    const called = network ? capital : `“${name}”`;
    const what = role === "against" ? `${called} is shown beside this model` : `${called} challenges this model`;
    if (network) return `${what}: a dashed violet curve on every slider, red where it moves against a declared direction.`;
    return `${what} by its scores on the rows of the table: it has no curves, because only its scores are known.`;
  }

  /* Drops of the other along declared directions, at the current row and at a row that was looked for. */
  function duel(place) {
    const signs = data.controls.filter((control) => isotone.declaredSign(app, control));
    if (!signs.length) return;
    const table = node("div", {});
    const says = node("p", { "aria-live": "polite" });
    const button = node("button", { type: "button", id: "break-it", text: "Search for the worst row" });
    button.addEventListener("click", () => {
      const { row, tries, theirs, ours, worst } = search(signs);
      if (row) app.setRow(row);
      says.textContent = `${count(tries)} random rows and directions: ${app.rival.name} moves against a declared `
        + `direction in ${count(theirs)} of them, this model in ${count(ours)}.`
        + (worst > 0 ? ` The sliders now stand where it drops most, by ${amount(worst)}.` : "");
    });
    place.append(node("p", { class: "field" }, [button]), says, table);
    const draw = () => table.replaceChildren(drops(signs));
    app.onChange(draw);
  }

  function amount(drop) {
    return app.view.probability ? `${format(100 * drop, 3)} points` : format(drop, 3);
  }

  function drops(signs) {
    const rows = signs.filter((control) => isotone.declaredSign(app, control)).map((control) => {
      const sign = isotone.declaredSign(app, control);
      const { drop, from, to } = isotone.largestDrop(app.rival.along(control, app.row, 60), sign);
      const where = drop > 0 ? `${amount(drop)} from ${format(from[0])} to ${format(to[0])}` : "none here";
      return node("tr", {}, [
        node("th", { scope: "row", text: control.name }),
        node("td", { text: sign > 0 ? "↗ must not fall" : "↘ must not rise" }),
        node("td", { class: drop > 0 ? "bad" : "", text: where }),
        node("td", { class: "good", text: proved(control) ? "impossible, proved" : "not proved" }),
      ]);
    });
    const heads = ["feature", `${app.view.name}, as the feature rises`, `${app.rival.name} moves against it by`, "this model"];
    const box = node("div", { ...isotone.charts.scrolling, "aria-label": "Moves against declared directions" }, [
      node("table", {}, [node("thead", {}, [node("tr", {}, heads.map((text) => node("th", { text })))]), node("tbody", {}, rows)]),
    ]);
    return node("div", {}, [box, ...isotone.more(box, rows.length, "features")]);
  }

  function proved(control) {
    return data.network.directions[app.view.output][control.feature] !== 0;
  }

  /* Random rows within the sliders, with a fixed seed, so that the same search finds the same. */
  function search(signs) {
    const random = isotone.random(1);
    const best = { row: null, tries: 0, theirs: 0, ours: 0, worst: 0 };
    const rounds = Math.min(Math.max(Math.floor(1.5e8 / (app.network.size + app.rival.network.size) / 40 / signs.length), 20), 400);
    for (let k = 0; k < rounds; k += 1) {
      const row = randomRow(random);
      for (const control of signs) {
        const sign = isotone.declaredSign(app, control);
        const { drop } = isotone.largestDrop(app.rival.along(control, row, 20), sign);
        best.tries += 1;
        best.theirs += drop > 1e-9;
        best.ours += isotone.largestDrop(own(control, row), sign).drop > 1e-9;
        if (drop > best.worst) Object.assign(best, { worst: drop, row: [...row] });
      }
    }
    return best;
  }

  function own(control, row) {
    const moved = [...row];
    return app.rival.along(control, row, 20).map(([value]) => {
      if (control.kind === "number") moved[control.feature] = value;
      else app.choose(control, value, moved);
      return [value, app.show(app.network.score(moved))];
    });
  }

  function randomRow(random) {
    const row = [...data.start];
    for (const control of data.controls) {
      if (control.kind === "number") {
        row[control.feature] = Math.min(Math.max(app.atShare(control, random()), control.low), control.high);
      } else app.choose(control, Math.floor(random() * control.labels.length), row);
    }
    return row;
  }

  function metrics({ name, metrics: rows }) {
    const cells = rows.map(([what, ours, theirs]) => node("tr", {}, [
      node("th", { scope: "row", text: what }),
      node("td", { class: "number", text: format(ours, 4) }), node("td", { class: "number", text: format(theirs, 4) }),
    ]));
    const heads = ["", "this model", name].map((text) => node("th", { text }));
    return node("div", { class: "scroll" }, [node("table", {}, [
      node("thead", {}, [node("tr", {}, heads)]), node("tbody", {}, cells),
    ])]);
  }

  /* Decisions of one against those of the other, and the rows that swap. */
  function swaps({ name, swaps: { table, right, n, rows } }) {
    const { classes } = data.outcomes;
    const head = node("tr", {}, [node("th", { text: "this model" }), ...classes.map((each) => node("th", { text: `${name}: ${each}` }))]);
    const body = table.map((row, k) => node("tr", {}, [
      node("th", { scope: "row", text: classes[k] }), ...row.map((m) => node("td", { class: "number", text: count(m) })),
    ]));
    const lines = [`Decisions differ in ${count(n)} of ${count(data.sample.n)} rows (${percent(n / data.sample.n)}), at the declared threshold.`];
    if (right) lines.push(`Of these, this model is right in ${count(right[0])} and ${name} in ${count(right[1])}.`);
    const some = rows.map(([number, ours, theirs]) => `row ${plain(number)}: ${classes[ours]} → ${classes[theirs]}`);
    const list = rows.length
      ? node("details", { class: "fold" }, [
        node("summary", { text: `The first ${rows.length} rows that swap, counted from 0` }),
        node("ul", { class: "scroll tall" }, some.map((text) => node("li", { text }))),
      ])
      : panels.hint("Which rows swap is not in this file; write it with --embed-rows N to have their numbers.");
    return [node("div", { class: "scroll" }, [node("table", {}, [node("thead", {}, [head]), node("tbody", {}, body)])]),
      panels.hint(lines.join(" ")), list];
  }

  /* Curves in bins of a column that can be chosen. */
  function chosen(grid, curves, title, label, isShare, id) {
    if (!curves.length) return;
    let k = strongest(curves);
    const redraw = panels.panel(grid, title, (wide) => panels.against(wide, curves[k], label, isShare));
    const choice = panels.choice(`rival-${id}`, "column ", curves.map(({ column }) => column), (c) => {
      k = c;
      redraw();
    });
    choice.querySelector("select").value = k;
    grid.lastChild.append(choice);
    still.push(redraw);
  }

  function strongest(curves) {
    const effect = new Map(data.controls.map((control) => [control.name, control.effect]));
    const rank = curves.map(({ column }) => effect.get(column) ?? -1);
    return rank.indexOf(Math.max(...rank));
  }
};
