"use strict";
/* What shifts of columns can do and do to the rows of the table. */
isotone.robustness = (app, still) => {
  const { node, format, percent, count } = isotone.charts;
  const { panels } = isotone;
  const { data } = app;
  const { radii, moves, shifts, user } = data.robustness;
  const lead = data.outcomes.kind === "values"
    ? "How far predictions can move when columns are off, as certified, and how far they do."
    : "How many decisions can change when columns are off, as certified, and how many do.";
  const place = panels.section("robustness", "Robustness", lead);
  const grid = node("div", { class: "grid-panels" });
  place.append(grid);
  if (shifts.curves.length) shifted();
  together();
  if (radii) scaled();

  function stop() {
    return app.threshold ? app.threshold.k : 0;
  }

  function add(redraw) {
    if (app.threshold) app.threshold.onMove(redraw);
    else still.push(redraw);
  }

  /* One column at a time. */
  function shifted() {
    const { n, curves: found } = shifts;
    const order = found.map((_, k) => k).sort((a, b) => effect(found[b]) - effect(found[a]));
    let k = order[0];
    const says = node("p", { "aria-live": "polite" });
    const last = found[0].delta.length;
    const slider = node("input", { type: "range", id: "shift", min: 0, max: last, step: 1, value: 4 });
    const track = node("span", { class: "track" }, [node("span", { class: "rail" }), slider]);
    const isShare = data.outcomes.kind !== "values";
    const redraw = panels.panel(grid, "What if one column is shifted?", (wide) => {
      const at = Number(slider.value);
      says.textContent = tell(found[k], at, isShare);
      slider.setAttribute("aria-valuetext", format([0, ...found[k].delta][at], 3));
      return panels.shifts(wide, found[k], at, stop(), isShare);
    }, n < data.sample.n ? `Of ${count(n)} rows, evenly spaced in the table.` : "Of all rows.");
    slider.addEventListener("input", redraw);
    const choice = panels.choice("shift-feature", "column ", found.map((each) => each.feature), (chosen) => {
      k = chosen;
      redraw();
    });
    choice.querySelector("select").value = k;
    grid.lastChild.append(
      choice,
      node("p", { class: "field" }, [node("label", { for: "shift", text: "shift δ " }), track]),
      says,
    );
    add(redraw);
  }

  function effect({ feature }) {
    return data.controls.find((control) => control.name === feature).effect;
  }

  function tell({ feature, delta, bound, up, down }, at, isShare) {
    if (at === 0) return "Without a shift nothing changes.";
    const of = (values) => values[at - 1][stop()];
    const by = format(delta[at - 1], 3);
    if (!isShare) {
      return `If ${feature} is off by up to ${by} in every row, no prediction moves by more than `
        + `${isotone.inward(of(bound), 1)}. Raising it by that much in all rows moves one by up to ${format(of(up))}, `
        + `lowering it by up to ${format(of(down))}.`;
    }
    return `If ${feature} is off by up to ${by} in every row, at most `
      + `${percent(of(bound))} of the decisions can change. Raising it by that much in all rows `
      + `changes ${percent(of(up))}, lowering it ${percent(of(down))}. The bound allows for the `
      + "steepest slope in every row, so it is usually far above what happens.";
  }

  /* All columns at once, by the shifts of the user. */
  function together() {
    const names = Object.keys(user);
    const rows = names.map((name) => node("tr", {}, [
      node("th", { scope: "row", text: name }), node("td", { class: "number", text: `± ${format(user[name], 4)}` }),
    ]));
    const table = node("div", { ...isotone.charts.scrolling, "aria-label": "Shifts" }, [node("table", {}, [
      node("thead", {}, [node("tr", {}, [node("th", { text: "column" }), node("th", { text: "off by up to" })])]),
      node("tbody", {}, rows),
    ])]);
    const by = data.robustness.usual
      ? `These are 1\u00a0% of each standard deviation${data.advice.shift}.`
      : "As given when the report was written.";
    const redraw = panels.panel(grid, "What if all columns are off at once?", (wide) => [
      ...(moves ? panels.histogram(wide, moves, "certified largest move of the prediction") : []),
      node("p", {}, [node("strong", { text: headline() })]), table,
      ...isotone.more(table, names.length, "columns"), panels.hint(by),
    ]);
    add(redraw);
  }

  function headline() {
    if (moves) {
      return `Half of all predictions move by less than ${isotone.inward(moves.median, 1)}, 95\u00a0% by less than `
        + `${isotone.inward(moves.most, 1)}: certified.`;
    }
    const share = app.threshold ? app.threshold.certified() : data.robustness.certified[0];
    return `${isotone.numbers.atLeast(share)} of all decisions stand: certified.`;
  }

  /* The same question in the units of the network. */
  function scaled() {
    const says = "Half of all rows keep their decision for every change of less than "
      + `${isotone.inward(radii.median, -1)} in total, nine in ten for less than `
      + `${isotone.inward(radii.tenth, -1)}${data.stops ? ", at the declared threshold" : ""}.`;
    const inner = node("div", {});
    const fold = node("details", { class: "fold" }, [node("summary", { text: "Certified radius in scaled units" }), inner]);
    place.append(fold);
    const redraw = panels.panel(inner, "Certified radius", (wide) => [
      ...panels.histogram(wide, radii, "total change of all features, in scaled units"), panels.hint(says),
    ], "The decision on a row cannot change as long as its features move by less than this in total.");
    fold.addEventListener("toggle", redraw);
    still.push(redraw);
  }
};

/* A box with few lines is shown whole; below one with many, a line says that it can be scrolled. */
isotone.more = (box, n, what, where = "table") => {
  box.classList.toggle("tall", n > 12);
  return n > 12 ? [isotone.numbers.node("p", {
    class: "hint more", text: `All ${n} ${what} are in this ${where}: scroll inside it.`,
  })] : [];
};
