"use strict";
/* How good the model is on the table: decisions at the threshold, ranking, calibration, residuals,
   and curves against every column. */
isotone.quality = (app, still) => {
  const { node, format, percent, count, shorten } = isotone.charts;
  const { panels } = isotone;
  const { data } = app;
  const { sample, outcomes, statistics } = data;
  const place = panels.section("quality", outcomes.kind === "values" ? "Accuracy" : "Decisions", aboutRows());
  const grid = node("div", { class: "grid-panels" });
  if (outcomes.kind !== "values") decisions();
  place.append(grid);
  if (outcomes.kind === "values") values();
  if (statistics.against.length) efficiency();
  if (statistics.metrics.length) place.append(metrics());

  function add(title, picture, live = false) {
    const redraw = panels.panel(grid, title, picture);
    if (live && app.threshold) app.threshold.onMove(redraw);
    else still.push(redraw);
  }

  function output() {
    return statistics.outputs[outcomes.kind === "two classes" ? 0 : app.view.output];
  }

  /* The class that an output is about. */
  function positive() {
    return outcomes.classes[outcomes.kind === "two classes" ? 1 : app.view.output];
  }

  /* The output with its rates at the threshold of the page. */
  function atThreshold() {
    return app.threshold && sample.target ? { ...output(), point: app.threshold.shares() } : output();
  }

  function decisions() {
    if (sample.target) add("Confusion matrix", confusion, true);
    if (sample.target) grid.firstChild.id = "confusion";
    const what = sample.target ? "Scores by class" : "Scores";
    const mark = () => (app.threshold ? app.threshold.value : null);
    add(what, (wide) => panels.histogram(wide, output().histogram, scoreName(), mark()), true);
    add("Receiver operating characteristic (ROC)", (wide) => panels.roc(wide, atThreshold(), positive()), true);
    add("Precision and recall", (wide) => panels.precision(wide, atThreshold(), positive()), true);
    add("Calibration", (wide) => panels.calibration(wide, output()));
  }

  /* Weights of rows by what they are and what is decided, with shares of each true class. */
  function confusion() {
    const names = outcomes.classes;
    const counts = app.threshold ? twoByTwo() : statistics.confusion;
    const most = Math.max(...counts.flat(), 1e-300);
    const head = node("tr", {}, [node("th", { text: "truth" }), ...names.map((name) => (
      node("th", { scope: "col", text: `decided: ${shorten(name, 24)}`, title: name })
    ))]);
    const rows = counts.map((row, truth) => {
      const all = row.reduce((sum, n) => sum + n, 0);
      return node("tr", {}, [node("th", { scope: "row", text: shorten(names[truth], 24), title: names[truth] }),
        ...row.map((n, decided) => cell(n, all, most, truth === decided))]);
    });
    const table = node("table", { class: "confusion" }, [node("thead", {}, [head]), node("tbody", {}, rows)]);
    return [node("div", { class: "scroll" }, [table]), panels.hint(says(counts))];
  }

  function cell(n, all, most, right) {
    const shade = node("td", { class: `number ${right ? "right" : "wrong"}` }, [
      node("strong", { text: count(n) }), node("span", { text: all > 0 ? percent(n / all) : "–" }),
    ]);
    shade.style.setProperty("--share", (0.08 + 0.42 * (n / most)).toFixed(3));
    return shade;
  }

  function twoByTwo() {
    const { tp, fp, fn, tn } = app.threshold.counts();
    return [[tn, fp], [fn, tp]];
  }

  function says(counts) {
    const unit = sample.weights ? "Weights" : "Numbers";
    if (!app.threshold) {
      const right = counts.reduce((sum, row, k) => sum + row[k], 0);
      const all = counts.flat().reduce((sum, n) => sum + n, 0);
      return `${unit} of rows, and shares of each true class. Accuracy ${percent(right / all)}.`;
    }
    const { tpr, fpr, precision, accuracy } = app.threshold.shares();
    const text = (share) => (share === null ? "–" : percent(share));
    return `${unit} of rows, and shares of each true class. True-positive rate ${text(tpr)}, false-positive rate `
      + `${text(fpr)}, precision ${text(precision)}, accuracy ${text(accuracy)}.`;
  }

  function metrics() {
    const rows = statistics.metrics.map(([name, value]) => node("tr", {}, [
      node("th", { scope: "row", text: name }),
      node("td", { class: "number", text: format(value, 4) }),
    ]));
    const at = app.threshold ? [panels.hint("At the declared threshold.")] : [];
    return node("details", { class: "fold" }, [node("summary", { text: "All metrics" }),
      node("div", { class: "scroll" }, [node("table", {}, [node("tbody", {}, rows)])]), ...at]);
  }

  function aboutRows() {
    const weighted = sample.weights ? `, counted by their weights in ${sample.weights}` : "";
    const left = sample.n_left_out;
    const rows = left ? `${count(sample.n)} of ${count(sample.n + left)}` : `all ${count(sample.n)}`;
    const lines = [`From ${rows} rows of ${sample.name}${weighted}.`];
    if (data.stops) lines.push("Confusion matrix, ROC, precision, recall and rates by column follow the threshold that you drag beside the sliders.");
    if (left) lines.push("The other rows hold values that training never saw, and are left out.");
    const several = outcomes.kind === "values" && outcomes.outputs.length > 1;
    if (!sample.target && !several) {
      lines.push("No target column is known, so nothing is said about how accurate the model is: "
        + `${data.advice.target}.`);
    }
    if (sample.trained) {
      lines.push("The model was trained on a table of this name: on new rows it may do worse.");
    }
    return lines.join(" ");
  }

  function scoreName() {
    if (outcomes.kind === "classes") return `probability of ${outcomes.classes[app.view.output]}`;
    return outcomes.kind === "two classes" ? "score" : app.view.name;
  }

  function values() {
    add("Predictions", (wide) => panels.histogram(wide, statistics.outputs[app.view.output].histogram, scoreName()));
    if (!statistics.residuals) return;
    const { residuals } = isotone;
    add("Predicted against observed", (wide) => residuals.pairs(wide, statistics.residuals.pairs, sample.target));
    add("Residuals", (wide) => [
      ...panels.histogram(wide, statistics.residuals.histogram, "observed minus predicted", 0, ""),
    ]);
    add("Residuals by prediction", (wide) => residuals.byPrediction(wide, statistics.residuals.by_prediction));
  }

  function efficiency() {
    const { against } = statistics;
    const isShare = outcomes.kind !== "values";
    let k = opened(against);
    const redraw = panels.panel(
      grid,
      isShare ? "Rates by column" : "Means by column",
      (wide) => panels.against(wide, app.threshold ? app.threshold.inBins(against[k]) : against[k], efficiencyName(), isShare),
      `Up to ten bins with about equally many rows${data.stops ? ", at the threshold that you drag" : ""}. `
        + "Bars are one standard error.",
    );
    const choice = panels.choice("against", "column ", against.map((each) => each.column), (chosen) => {
      k = chosen;
      redraw();
    });
    choice.querySelector("select").value = k;
    grid.lastChild.append(choice);
    if (app.threshold) app.threshold.onMove(redraw);
    else still.push(redraw);
  }

  /* The column to open with: the input with the largest effect. */
  function opened(against) {
    const effect = new Map(data.controls.map((control) => [control.name, control.effect]));
    const rank = against.map(({ column }) => effect.get(column) ?? -1);
    return rank.indexOf(Math.max(...rank));
  }

  function efficiencyName() {
    const { kind, classes } = outcomes;
    if (kind === "values") return "mean";
    if (kind === "two classes") return sample.target ? `rate of decisions for ${classes[1]}` : `share decided ${classes[1]}`;
    return sample.target ? "true-positive rate" : "share so decided";
  }
};
