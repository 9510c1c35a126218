"use strict";
/* Why the current row differs from another one: Shapley values of the columns, by enumeration. */

/* { total, from, parts: [{ control, share }] } of what is explained, or null if there are too many
   columns that differ. With sets S of those, every column gets
   sum over S of |S|! (m - |S| - 1)! / m! (f(S and it) - f(S)). */
isotone.shapley = (app, row, other) => {
  const { network, view, data } = app;
  const moved = data.controls.filter((control) => featuresOf(control).some((i) => row[i] !== other[i]));
  const m = moved.length;
  if (m > 12 || 2 ** m * network.size > 3e8) return null;
  const values = Float64Array.from({ length: 2 ** m }, (_, set) => value(mixed(set)));
  const weights = Array.from({ length: m }, (_, n) => (factorial(n) * factorial(m - n - 1)) / factorial(m));
  const parts = moved.map((control, k) => {
    let share = 0;
    for (let set = 0; set < values.length; set += 1) {
      if (!(set & (1 << k))) share += weights[bits(set)] * (values[set | (1 << k)] - values[set]);
    }
    return { control, share };
  });
  return { total: values[values.length - 1], from: values[0], parts };

  function featuresOf({ feature, features, indicator }) {
    return [...(features || [feature]), ...(indicator === undefined ? [] : [indicator])];
  }

  function mixed(set) {
    const made = [...other];
    moved.forEach((control, k) => {
      if (set & (1 << k)) featuresOf(control).forEach((i) => { made[i] = row[i]; });
    });
    return made;
  }

  /* The score; of several classes the probability, whose directions are promised. */
  function value(made) {
    const scores = network.score(made);
    return data.outcomes.kind === "classes" ? network.probability(scores)[view.output] : scores[view.output];
  }

  function factorial(n) {
    return n < 2 ? 1 : n * factorial(n - 1);
  }

  function bits(set) {
    let n = 0;
    for (let rest = set; rest; rest &= rest - 1) n += 1;
    return n;
  }
};

/* The panel: what to compare with, and a bar for every column that differs. */
isotone.reasons = (app) => {
  const { node, format, plain } = isotone.numbers;
  const { data } = app;
  const first = data.sample ? "median of the table" : "center of the model";
  const others = [{ name: first, row: data.start }, ...(data.presets || [])];
  let other = others[0];
  const lead = "What moves this row away from another one: the contribution of every column that differs, as exact Shapley "
    + "values. They add up to the difference.";
  const place = isotone.panels.section("why", "Why", lead);
  document.getElementById("reasons").append(place);
  const body = node("div", { class: "why" });
  place.append(isotone.panels.choice("compared", "compared with ", others.map(({ name }) => name), (k) => {
    other = others[k];
    draw();
  }), body);
  app.onChange(draw);

  function draw() {
    const found = isotone.shapley(app, app.row, other.row);
    if (found === null) {
      body.replaceChildren(isotone.panels.hint("Too many columns differ to enumerate all sets of them here: isotone explain does more."));
    } else if (!found.parts.length) {
      body.replaceChildren(isotone.panels.hint(`The row is the ${other.name}. Move a slider, or compare with another one.`));
    } else body.replaceChildren(says(found), table(found));
  }

  function says({ total, from, parts }) {
    const { kind, classes } = data.outcomes; // of classes the probability, whatever is shown
    const what = kind === "classes" ? `probability of ${classes[app.view.output]}` : "score";
    const largest = [...parts].sort((a, b) => Math.abs(b.share) - Math.abs(a.share))[0];
    return node("p", { text: `The ${what} is ${format(total)}, against ${format(from)}. The largest contribution is that of `
      + `${largest.control.name}: ${signed(largest.share)}.` });
  }

  function signed(share) {
    return share > 0 ? `+${format(share)}` : format(share);
  }

  function table({ parts }) {
    const order = [...parts].sort((a, b) => Math.abs(b.share) - Math.abs(a.share));
    const most = Math.abs(order[0].share) || 1;
    const rows = order.map(({ control, share }) => node("tr", {}, [
      node("th", { scope: "row", text: control.name }),
      node("td", { class: "number", text: `${shown(control, other.row)} → ${shown(control, app.row)}` }),
      node("td", { class: "bars" }, [bar(share / most)]),
      node("td", { class: "number", text: signed(share) }),
      node("td", { class: "hint", text: proved(control) ? "sign proved" : "" }),
    ]));
    const heads = ["column", "from → to", "lowers · raises", "contribution", ""];
    return node("div", { ...isotone.charts.scrolling, "aria-label": "Contributions" }, [node("table", {}, [
      node("thead", {}, [node("tr", {}, heads.map((text) => node("th", { text })))]), node("tbody", {}, rows),
    ])]);
  }

  function shown(control, row) {
    if (control.indicator !== undefined && row[control.indicator] === 1) return "missing";
    return control.kind === "number" ? plain(row[control.feature]) : control.labels[app.chosen(control, row)] || "missing";
  }

  /* A direction fixes the sign to the last bit if there is a grid, unless one of the values is missing. */
  function proved({ feature, features, indicator }) {
    if (features || (indicator !== undefined && app.row[indicator] !== other.row[indicator])) return false;
    return data.network.grid !== null && data.network.directions[app.view.output][feature] !== 0;
  }

  function bar(share) {
    const made = node("span", { class: share < 0 ? "less" : "moreof" });
    made.style.width = `${50 * Math.abs(share)}%`;
    if (share < 0) made.style.right = "50%";
    else made.style.left = "50%";
    return node("span", { class: "balance", "aria-hidden": "true" }, [made]);
  }
};
