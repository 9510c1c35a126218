"use strict";
/* Why the current row has this score: what to compare with, and a bar for every column that differs. */
isotone.reasons = (app) => {
  const { node, format, plain, count } = isotone.numbers;
  const { data } = app;
  const others = compared();
  let other = others[0];
  const lead = "The contribution of every column to the difference from other rows: Shapley values, in decreasing order. "
    + "They add up to the difference.";
  const place = isotone.panels.section("why", "Why", lead);
  document.getElementById("reasons").append(place);
  const body = node("div", { class: "why" }, [isotone.panels.hint("Comparing …")]);
  place.append(isotone.panels.choice("compared", "compared with ", others.map(({ name }) => name), (k) => {
    other = others[k];
    app.changed();
  }), body);
  app.onChange(draw);

  /* The table, by its rows or by groups of them; and single rows. */
  function compared() {
    const first = data.sample ? "median of the table" : "center of the model";
    const single = [{ name: first, row: data.start }, ...(data.presets || [])];
    const found = single.map(({ name, row }) => ({ name: `the ${name}`, rows: [row] }));
    if (data.rows && data.rows.number.length > 1) {
      const most = data.controls.length > 12 ? 32 : 100; // orders are drawn for many columns, which takes time
      const some = data.rows.number.slice(0, most).map((_, k) => data.rows.columns.map((column) => column[k]));
      found.unshift({ name: `${some.length} rows of the table`, rows: some });
    } else if (data.background && data.background.length) {
      found.unshift({ name: `the table, in ${count(data.background.length)} groups`, rows: data.background });
    }
    return found;
  }

  function* draw() {
    const found = yield* isotone.shapley(app, app.row, other.rows);
    if (!found.parts.length) {
      body.replaceChildren(isotone.panels.hint(`The row is ${other.name}. Move a slider, or compare with another one.`));
    } else body.replaceChildren(says(found), table(found), how(found));
  }

  function says({ total, from, parts }) {
    const { kind, classes } = data.outcomes; // of classes the probability, whatever is shown
    const what = kind === "classes" ? `probability of ${classes[app.view.output]}` : app.view.points ? "points" : "score";
    const [largest] = ranked(parts);
    const are = what === "points" ? "The points are" : `The ${what} is`;
    return node("p", { text: `${are} ${format(total)}, against ${other.rows.length > 1 ? "a mean of " : ""}${format(from)}. `
      + `The largest contribution is that of ${largest.control.name}: ${signed(largest.share)}.` });
  }

  /* How the numbers were found. */
  function how({ isExact, n, parts }) {
    const groups = data.background && other.rows === data.background
      ? " Rows with similar scores form a group of 20 or more, which counts by the medians of its columns; isotone "
        + "explain compares with the rows themselves." : "";
    const found = isExact ? "Exact: all sets of columns were scored."
      : `Estimated from ${count(2 * n)} random orders of ${parts.length} columns; ± is the standard error.`;
    return isotone.panels.hint(found + groups);
  }

  function signed(share) {
    return share > 0 ? `+${format(share)}` : format(share);
  }

  function ranked(parts) {
    return [...parts].sort((a, b) => Math.abs(b.share) - Math.abs(a.share));
  }

  function table({ parts, isExact }) {
    const order = ranked(parts);
    const most = Math.abs(order[0].share) || 1;
    const one = other.rows.length === 1;
    const rows = order.map(({ control, share, error }) => node("tr", {}, [
      node("th", { scope: "row", text: control.name }),
      node("td", { class: "number", text: isExact ? signed(share) : `${signed(share)} ± ${format(error, 2)}` }),
      node("td", { class: "bars" }, [bar(share / most)]),
      node("td", { class: "number", text: one ? `${shown(control, other.rows[0])} → ${shown(control, app.row)}` : shown(control, app.row) }),
      node("td", { class: "hint", text: [sentence(control, share), proved(control) ? "sign proved" : ""].filter((text) => text).join("; ") }),
    ]));
    const heads = ["column", "contribution", "lowers · raises", one ? "from → to" : "value", ""];
    const box = node("div", { ...isotone.charts.scrolling, "aria-label": "Contributions" }, [node("table", {}, [
      node("thead", {}, [node("tr", {}, heads.map((text) => node("th", { text })))]), node("tbody", {}, rows),
    ])]);
    return node("div", {}, [box, ...isotone.more(box, order.length, "columns")]);
  }

  /* The reason in words, if the report has texts. */
  function sentence(control, share) {
    return data.texts ? isotone.sentence(data.texts, control.name, valueOf(control), share) : "";
  }

  function valueOf(control) {
    if (control.kind === "number") return shown(control, app.row) === "missing" ? null : app.row[control.feature];
    return control.labels[app.chosen(control)] || null;
  }

  function shown(control, row) {
    if (app.lacks(control, row)) return "missing";
    return control.kind === "number" ? plain(row[control.feature]) : control.labels[app.chosen(control, row)] || "missing";
  }

  /* A direction fixes the sign to the last bit if there is a grid, unless a value is missing: the row must lie on
     one side of all that it is compared with. */
  function proved({ feature, features, indicator }) {
    if (features || data.network.grid === null || data.network.directions[app.view.output][feature] === 0) return false;
    if (indicator !== undefined && other.rows.some((row) => row[indicator] !== app.row[indicator])) return false;
    const now = app.row[feature];
    return other.rows.every((row) => row[feature] <= now) || other.rows.every((row) => row[feature] >= now);
  }

  function bar(share) {
    const made = node("span", { class: share < 0 ? "less" : "moreof" });
    made.style.width = `${50 * Math.abs(share)}%`;
    if (share < 0) made.style.right = "50%";
    else made.style.left = "50%";
    return node("span", { class: "balance", "aria-hidden": "true" }, [made]);
  }
};

/* A template of isotone.explanation.Texts, filled in; formats such as {value:,.0f} are those of Python. */
isotone.sentence = (texts, column, value, contribution) => {
  const known = texts[column] || {};
  const kind = value === null && known.missing ? "missing" : contribution > 0 ? "raises" : "lowers";
  if (value === null ? !known.missing : !known[kind]) return `${column} is ${value === null ? "missing" : shown(value, "")}`;
  const fields = { value, column, contribution };
  return known[kind].replace(/\{\{|\}\}|\{(\w+)(?::([^}]*))?\}/g, (mark, name, spec = "") => {
    if (name === undefined) return mark[0];
    return shown(fields[name], spec);
  });

  function shown(x, spec) {
    if (typeof x !== "number") return String(x);
    const [, sign, comma, digits, type] = spec.match(/^(\+?)(,?)(?:\.(\d+))?([fgd%]?)$/) || [];
    const front = sign && x >= 0 ? "+" : "";
    if (type === "f" || type === "%" || type === "d") {
      const places = type === "d" ? 0 : Number(digits ?? 6);
      const look = { minimumFractionDigits: places, maximumFractionDigits: places, useGrouping: Boolean(comma) };
      const text = (type === "%" ? 100 * x : x).toLocaleString("en-US", { ...look, roundingMode: "halfEven" });
      return `${front}${text}${type === "%" ? "%" : ""}`;
    }
    const short = Number(x.toPrecision(Math.max(Number(digits ?? 10), 1)));
    return front + (comma ? short.toLocaleString("en-US", { maximumFractionDigits: 20 }) : String(short));
  }
};
