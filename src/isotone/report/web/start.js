"use strict";
/* The start of the page: which sections there are, and when they are drawn. */
isotone.start = () => {
  const { node, format, percent, count } = isotone.charts;
  const { panels } = isotone;
  const data = JSON.parse(document.getElementById("data").textContent);
  const app = new isotone.Explorer(data);
  const still = []; // drawn when the view or the width changes, not with every row
  let drawn = "";
  isotone.app = app;
  app.build(document.getElementById("explorer"));
  const heat = new isotone.HeatMap(app, document.getElementById("heat"));
  const curves = document.getElementById("curves");
  explain();
  if (data.sample) quality();
  if (data.robustness) robustness();
  if (data.history) training();
  app.onChange(draw);
  app.changed();
  followWindow();

  function draw() {
    const responses = isotone.responses(app, app.curved, app.nPoints);
    isotone.flipTable(app, responses);
    isotone.drawResponses(app, curves, responses);
    heat.draw();
    app.drawnAt = document.body.clientWidth;
    const state = `${app.drawnAt} ${app.view.name}`;
    if (state !== drawn) still.forEach((redraw) => redraw());
    drawn = state;
  }

  function followWindow() {
    let width = window.innerWidth;
    window.addEventListener("resize", () => {
      if (window.innerWidth === width) return;
      width = window.innerWidth;
      app.changed();
    });
    window.addEventListener("beforeprint", () => {
      document.querySelectorAll("details").forEach((each) => { each.open = true; });
    });
  }

  function explain() {
    const lines = [
      "How the answer changes when one feature moves and all others stay at the current row. The "
        + "shaded area is what the certified slopes allow from there: the curve cannot leave it.",
    ];
    const threshold = data.decision && data.decision.kind === "threshold";
    if (threshold) lines.push("The dashed line is the decision threshold.");
    if (data.sample) lines.push("Gray bars below show where the rows of the table lie.");
    lines.push("Click a curve to move there.");
    const [n, some] = [data.controls.length, app.curved.length];
    if (some < n) lines.push(`Shown are the ${some} of ${n} features that can matter most.`);
    say("responses-lead", lines.join(" "));
    say("map-lead", "Two features move, the others stay at the current row. Click to move there.");
    if (data.sample) say("footnote", `It holds ${held()}; statistics are of all rows.`);
  }

  function say(id, text) {
    document.getElementById(id).textContent = text;
  }

  /* Which rows of the table the file holds. */
  function held() {
    const { n, name } = data.sample;
    const some = data.rows.number.length;
    if (some === n) return `all ${count(n)} rows of ${name}`;
    return `${count(some)} of the ${count(n)} rows of ${name}, drawn at random with a fixed seed`;
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
    const place = panels.section("quality", "On the table", aboutRows());
    if (statistics.metrics.length) place.append(panels.metrics(statistics.metrics));
    const grid = node("div", { class: "grid-panels" });
    place.append(grid);
    const add = (title, picture) => still.push(panels.panel(grid, title, picture));
    const what = sample.target && outcomes.classes.length ? "Scores by class" : "Scores";
    add(what, (wide) => panels.histogram(wide, output().histogram, scoreName(), outcomes.threshold));
    if (outcomes.kind === "values") {
      add("Predicted against observed", (wide) => panels.scatter(wide, app));
    } else {
      add("Receiver operating characteristic (ROC)", (wide) => panels.roc(wide, output(), positive()));
      add("Precision and recall", (wide) => panels.precision(wide, output(), positive()));
      add("Calibration", (wide) => panels.calibration(wide, output()));
    }
    if (statistics.against.length) efficiency(place);
  }

  function aboutRows() {
    const { sample, outcomes } = data;
    const weighted = sample.weights ? `, counted by their weights in ${sample.weights}` : "";
    const left = sample.n_left_out;
    const rows = left ? `${count(sample.n)} of ${count(sample.n + left)}` : `all ${count(sample.n)}`;
    const lines = [`From ${rows} rows of ${sample.name}${weighted}.`];
    if (left) lines.push("The other rows hold values that training never saw, and are left out.");
    const several = outcomes.kind === "values" && outcomes.outputs.length > 1;
    if (!sample.target && !several) {
      lines.push("No target column is known, so nothing is said about how accurate the model is: "
        + "name one with --target.");
    }
    if (sample.trained) {
      lines.push("The model was trained on a table of this name: on new rows it may do worse.");
    }
    return lines.join(" ");
  }

  function scoreName() {
    const { kind, classes } = data.outcomes;
    if (kind === "classes") return `probability of ${classes[app.view.output]}`;
    return kind === "two classes" ? "score" : app.view.name;
  }

  function efficiency(place) {
    const { against } = data.statistics;
    const isShare = data.outcomes.kind !== "values";
    let k = 0;
    const redraw = panels.panel(
      place,
      isShare ? "Efficiency against a column" : "Means against a column",
      (wide) => panels.against(wide, against[k], efficiencyName(), isShare),
      "Up to ten bins with about equally many rows. Bars are one standard error.",
    );
    place.append(panels.choice("against", "column ", against.map((each) => each.column), (chosen) => {
      k = chosen;
      redraw();
    }));
    still.push(redraw);
  }

  function efficiencyName() {
    const { kind, classes } = data.outcomes;
    if (kind === "values") return "mean";
    if (kind === "two classes") return `share decided as ${classes[1]}`;
    return data.sample.target ? "share recognized" : "share so decided";
  }

  function robustness() {
    const { radii, shifts } = data.robustness;
    const lead = "How far the rows of the table are from a different decision, as certified, and "
      + "what shifts of one feature really do.";
    const grid = node("div", { class: "grid-panels" });
    panels.section("robustness", "Robustness", lead).append(grid);
    const says = "Half of all rows keep their decision for every change of less than "
      + `${isotone.inward(radii.median, -1)} in total, nine in ten for less than `
      + `${isotone.inward(radii.tenth, -1)}.`;
    still.push(panels.panel(grid, "Certified radius", (wide) => [
      ...panels.histogram(wide, radii, "total change of all features, in scaled units"), panels.hint(says),
    ], "The decision on a row cannot change as long as its features move by less than this in total."));
    if (shifts.curves.length) shifted(grid, shifts);
  }

  function shifted(grid, { n, curves: found }) {
    let k = 0;
    const says = node("p", { "aria-live": "polite" });
    const last = found[0].delta.length - 1;
    const slider = node("input", { type: "range", id: "shift", min: 0, max: last, step: 1, value: 3 });
    const redraw = panels.panel(grid, "What if one feature is shifted?", (wide) => {
      const at = Number(slider.value);
      says.textContent = tell(found[k], at);
      slider.setAttribute("aria-valuetext", format(found[k].delta[at], 3));
      return panels.shifts(wide, found[k], at);
    }, n < data.sample.n ? `Of ${count(n)} rows, evenly spaced in the table.` : "Of all rows.");
    slider.addEventListener("input", redraw);
    grid.lastChild.append(
      panels.choice("shift-feature", "feature ", found.map((each) => each.feature), (chosen) => {
        k = chosen;
        redraw();
      }),
      node("p", { class: "field" }, [node("label", { for: "shift", text: "shift δ " }), slider]),
      says,
    );
    still.push(redraw);
  }

  function tell({ feature, delta, bound, up, down }, at) {
    return `If ${feature} is off by up to ${format(delta[at], 3)} in every row, at most `
      + `${percent(bound[at])} of the decisions can change. Raising it by that much in all rows `
      + `changes ${percent(up[at])}, lowering it ${percent(down[at])}. The bound allows for the `
      + "steepest slope in every row, so it is usually far above what happens.";
  }

  function training() {
    const { members } = data.history;
    const of = members > 1 ? `, averaged over ${members} networks that were trained together` : "";
    const lead = `Mean loss in every epoch, a pass over the training rows${of}.`;
    const place = panels.section("training", "Training", lead);
    still.push(panels.panel(place, "Loss by epoch", (wide) => panels.losses(wide, data.history)));
  }
};
isotone.start();
