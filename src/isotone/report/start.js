"use strict";
/* The start of the page: which sections there are, and when they are drawn. */
isotone.start = () => {
  const { node, format, percent } = isotone.charts;
  const { panels } = isotone;
  const data = JSON.parse(document.getElementById("data").textContent);
  const app = new isotone.Explorer(data);
  const still = []; // drawn when the view or the width changes, not with every row
  isotone.app = app;
  app.build(document.getElementById("explorer"));
  const heat = new isotone.HeatMap(app, document.getElementById("heat"));
  const curves = document.getElementById("curves");
  explain();
  if (data.sample) {
    quality();
    if (data.robustness) robustness();
  }
  if (data.history) training();
  let drawn = "";
  app.onChange(() => {
    const responses = isotone.responses(app, 96);
    isotone.flipTable(app, responses);
    isotone.curves(app, curves, responses);
    heat.draw();
    const state = `${app.view.name} ${document.body.clientWidth}`;
    if (state !== drawn) still.forEach((draw) => draw());
    drawn = state;
  });
  app.changed();
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    app.changed();
  });

  function explain() {
    const rows = data.sample ? " Gray bars below show where the rows of the table lie." : "";
    const flip = data.decision && data.decision.kind === "threshold" ? " The dashed line is the decision threshold." : "";
    document.getElementById("responses-lead").textContent = `How the answer changes when one feature moves and all others stay at the current row. The shaded area is what the certified slopes allow from there: the curve cannot leave it.${flip}${rows} Click a curve to move there.`;
    document.getElementById("map-lead").textContent = "Two features move, the others stay at the current row. Click to move there.";
    if (!data.sample) return;
    const { n, name } = data.sample;
    const held = data.rows.number.length;
    const part = held < n ? `${held.toLocaleString("en-US")} of the ${n.toLocaleString("en-US")} rows of ${name}, drawn at random with a fixed seed` : `all ${n.toLocaleString("en-US")} rows of ${name}`;
    document.getElementById("footnote").textContent = `It holds ${part}; statistics are of all rows.`;
  }

  function output() {
    return data.statistics.outputs[data.outcomes.kind === "two classes" ? 0 : app.view.output];
  }

  /* The class that an output is about. */
  function positive() {
    const { kind, classes } = data.outcomes;
    return classes[kind === "two classes" ? 1 : app.view.output];
  }

  function quality() {
    const { sample, outcomes, statistics } = data;
    const counted = sample.weights ? `, counted by their weights in ${sample.weights}` : "";
    const unlabeled = sample.target || outcomes.outputs.length > 1 && outcomes.kind === "values" ? "" : " No target column was given, so nothing is said about how right the model is: name one with --target.";
    const place = panels.section("quality", "On the table", `From all ${sample.n.toLocaleString("en-US")} rows of ${sample.name}${counted}.${unlabeled}${sample.trained ? " The model was trained on a table of this name: on new rows it may do worse." : ""}`);
    const found = panels.metrics(data);
    if (found) place.append(found);
    const grid = node("div", { class: "grid-panels" });
    place.append(grid);
    const label = () => (outcomes.kind === "classes" ? `probability of ${outcomes.classes[app.view.output]}` : outcomes.kind === "two classes" ? "score" : app.view.name);
    const mark = outcomes.threshold === null ? null : { at: outcomes.threshold, text: "threshold" };
    still.push(panels.panel(grid, sample.target && outcomes.classes.length ? "Scores by class" : "Scores", (wide) => panels.histogram(wide, output().histogram, label(), mark)));
    if (outcomes.kind === "values") still.push(panels.panel(grid, "Predicted against observed", (wide) => panels.scatter(wide, app)));
    still.push(
      panels.panel(grid, "Receiver operating characteristic (ROC)", (wide) => panels.roc(wide, output(), positive())),
      panels.panel(grid, "Precision and recall", (wide) => panels.precision(wide, output(), positive())),
      panels.panel(grid, "Calibration", (wide) => panels.calibration(wide, output())),
    );
    if (statistics.against.length) efficiency(place);
  }

  function efficiency(place) {
    const { against } = data.statistics;
    const { kind, classes } = data.outcomes;
    const isShare = kind !== "values";
    const label = isShare ? (kind === "classes" && data.sample.target ? "share that is recognized" : kind === "classes" ? "share decided so" : `share decided as ${classes[1]}`) : "mean";
    let k = 0;
    const draw = panels.panel(place, isShare ? "Efficiency against a column" : "Means against a column", (wide) => panels.against(wide, against[k], label, isShare), "Ten bins with about as many rows in each. Bars are one standard error.");
    place.append(panels.choice("against", "column ", against.map((each) => each.column), (chosen) => {
      k = chosen;
      draw();
    }));
    still.push(draw);
  }

  function robustness() {
    const { radii, shifts } = data.robustness;
    const place = panels.section("robustness", "Robustness", "How far the rows of the table are from a different decision, as certified, and what shifts of one feature really do.");
    const grid = node("div", { class: "grid-panels" });
    place.append(grid);
    still.push(panels.panel(grid, "Certified radius", (wide) => [
      ...panels.histogram(wide, radii, "total change of all features, in scaled units"),
      node("p", { class: "hint", text: `Half of all rows keep their decision for every change of less than ${format(radii.median, 3)} in total, nine in ten for less than ${format(radii.tenth, 3)}.` }),
    ], "The decision on a row cannot change as long as its features move by less than this in total."));
    if (shifts.curves.length) shifted(grid, shifts);
  }

  function shifted(grid, shifts) {
    let k = 0;
    const says = node("p", { "aria-live": "polite" });
    const slider = node("input", { type: "range", id: "shift", min: 0, max: shifts.curves[0].delta.length - 1, step: 1, value: 5 });
    const draw = panels.panel(grid, "What if one feature is shifted?", (wide) => {
      const found = shifts.curves[k];
      const at = Number(slider.value);
      tell(found, at);
      return drawShifts(wide, found, at);
    }, shifts.n < data.sample.n ? `Of ${shifts.n.toLocaleString("en-US")} rows, evenly spaced in the table.` : "Of all rows.");
    slider.addEventListener("input", draw);
    grid.lastChild.append(
      panels.choice("shift-feature", "feature ", shifts.curves.map((each) => each.feature), (chosen) => {
        k = chosen;
        draw();
      }),
      node("p", { class: "field" }, [node("label", { for: "shift", text: "shift δ " }), slider]),
      says,
    );
    still.push(draw);

    function tell(found, at) {
      const delta = format(found.delta[at], 3);
      slider.setAttribute("aria-valuetext", delta);
      says.textContent = `If ${found.feature} is off by up to ${delta} in all rows, at most ${percent(found.bound[at])} of the decisions can change. Shifting it up by that much changes ${percent(found.up[at])}, down ${percent(found.down[at])}. The bound allows for the steepest slope in every row, so it is far from what usually happens.`;
    }
  }

  function drawShifts(wide, found, at) {
    const top = Math.max(...found.bound, 1e-9);
    const chart = isotone.charts.frame({
      width: wide, height: 270, left: 58, title: "flips against the shift",
      x: { low: 0, high: found.delta[found.delta.length - 1], label: `shift δ of ${found.feature}` },
      y: { low: 0, high: 1.08 * top, label: "decisions that change", format: (v) => percent(v) },
    });
    const points = (values) => found.delta.map((delta, j) => [delta, values[j]]);
    isotone.charts.line(chart, points(found.bound), "c0");
    isotone.charts.line(chart, points(found.up), "c1");
    isotone.charts.line(chart, points(found.down), "c2");
    isotone.charts.rule(chart, { x: found.delta[at] });
    const names = [["certified bound, ± δ", "c0"], ["measured, + δ", "c1"], ["measured, − δ", "c2"]];
    return [chart.svg, isotone.charts.legend(names.map(([name, kind]) => ({ name, kind })))];
  }

  function training() {
    const found = data.history;
    const of = found.members > 1 ? `, averaged over ${found.members} networks that were trained together` : "";
    const place = panels.section("training", "Training", `Mean loss in every epoch, a pass over the training rows${of}.`);
    still.push(panels.panel(place, "Loss by epoch", (wide) => {
      const all = [...found.training, ...found.validation].filter(Number.isFinite);
      const [low, high] = [Math.min(...all), Math.max(...all)];
      const chart = isotone.charts.frame({
        width: wide, height: 260, left: 62, title: "loss by epoch",
        x: { low: 1, high: Math.max(found.training.length, 2), label: "epoch" },
        y: { low: low - 0.05 * (high - low || 1), high: high + 0.05 * (high - low || 1), label: "loss" },
      });
      const curve = (losses, kind) => isotone.charts.line(chart, losses.map((loss, k) => [k + 1, loss]), kind);
      curve(found.training, "c0");
      curve(found.validation, "c1");
      const names = [{ name: "training rows", kind: "c0" }];
      if (found.validation.length) names.push({ name: "other rows", kind: "c1" });
      return [chart.svg, isotone.charts.legend(names), node("p", { class: "hint", text: `Training took ${format(found.seconds, 3)} seconds.` })];
    }));
  }
};
isotone.start();
