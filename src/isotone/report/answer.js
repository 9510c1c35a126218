"use strict";
/* What the model answers for the current row, and what would change its decision. */
isotone.answer = (app) => {
  const { node, format } = isotone.charts;
  const { view, scores, judge } = app;
  const value = app.show(scores);
  const shown = view.probability ? isotone.charts.percent(value, 4) : format(value, 6);
  const lines = [node("p", { class: "what", text: view.name }), node("p", { class: "big", text: shown })];
  if (view.probability) {
    lines.push(meter(value, app.boundary()));
    if (scores.length === 1) lines.push(node("p", { class: "hint", text: `score ${format(scores[0], 6)}` }));
    else if (scores.length <= 8) lines.push(chances());
  }
  app.headline.replaceChildren(...lines);
  app.detail.replaceChildren(...(judge ? decision(app) : error(app)));

  /* The probabilities of all classes. */
  function chances() {
    const { classes } = app.data.outcomes;
    return node("ul", { class: "chances" }, app.network.probability(scores).map((p, k) => node("li", {}, [
      node("span", { text: classes[k] }), node("span", { class: "number", text: isotone.charts.percent(p) }), meter(p, null),
    ])));
  }

  /* A bar from 0 to 1 with a mark at the threshold. */
  function meter(p, mark) {
    const full = node("span", { class: "full" });
    full.style.width = `${100 * p}%`;
    const parts = [full];
    if (mark !== null) {
      const at = node("span", { class: "mark" });
      at.style.left = `${100 * mark}%`;
      parts.push(at);
    }
    return node("div", { class: "meter", "aria-hidden": "true" }, parts);
  }

  function decision({ data, row }) {
    const { classes } = data.outcomes;
    const chosen = classes[judge.decide(scores)];
    const lead = judge.lead(scores);
    const radius = judge.radius(row, scores);
    app.radius = radius;
    const distance = judge.kind === "threshold"
      ? `The score is ${format(Math.abs(lead))} ${lead >= 0 ? "above" : "below"} the threshold ${format(judge.threshold, 5)}.`
      : `Its logit is ${format(lead)} above the next class.`;
    const safe = radius.scaled === Infinity
      ? "Nothing can flip this decision."
      : `Certified: as long as the changes of all features add up to at most ${isotone.inward(radius.scaled, -1)} scaled units, the decision stays.`;
    return [
      node("p", { class: "decision" }, [node("span", { text: "Decision: " }), node("strong", { text: chosen })]),
      node("p", { text: distance }),
      node("p", { text: safe }),
      node("p", { class: "hint", text: "A scaled unit is what the network sees: see the last table column of “What would flip it”." }),
    ];
  }

  function error({ data }) {
    const bound = data.network.errors[view.output];
    const text = bound === null ? "" : `Off the exact value by at most ${format(bound, 2)}.`;
    return [node("p", { class: "hint", text })];
  }
};

/* A number with four digits or more, rounded toward side (-1 down, 1 up), so that what is printed
   is still on the safe side; `apart` is a distance that the digits must be able to tell. */
isotone.inward = (x, side, apart = Infinity) => {
  const { format } = isotone.charts;
  if (!Number.isFinite(x) || x === 0) return format(x);
  const needed = apart > 0 ? Math.ceil(Math.log10(Math.abs(x) / apart)) + 2 : 15;
  const digits = Math.min(Math.max(needed, 4), 15);
  let short = Number(x.toPrecision(digits));
  if (side * (short - x) < 0) {
    const unit = 10 ** (Math.floor(Math.log10(Math.abs(x))) - digits + 1);
    short = Number((short + side * unit).toPrecision(digits));
  }
  return format(short, digits);
};

/* Scores along every control, others as they are: { values, scores } each. */
isotone.responses = (app, nPoints) => app.data.controls.map((control) => {
  const row = [...app.row];
  if (control.kind === "category") {
    return control.features.map((_, c) => {
      control.features.forEach((i, other) => { row[i] = c === other ? 1 : 0; });
      return { value: c, scores: app.network.score(row) };
    });
  }
  const i = control.feature;
  const now = app.row[i];
  const [low, high] = control.axis;
  const values = [now];
  for (let k = 0; k <= nPoints; k += 1) values.push(app.network.back(i, low + (k / nPoints) * (high - low)));
  return values.sort((a, b) => a - b).map((value) => {
    row[i] = value;
    return { value, scores: app.network.score(row) };
  });
});

/* The nearest values of one feature, down and up, that flip the decision, as far as was looked. */
isotone.nearestFlips = (app, control, samples) => {
  const i = control.feature;
  const now = app.judge.decide(app.scores);
  const row = [...app.row];
  const flipped = (value) => {
    row[i] = value;
    return app.judge.decide(app.network.score(row)) !== now;
  };
  const start = samples.findIndex(({ value }) => value === app.row[i]);
  const search = (side) => {
    for (let k = start + side; k >= 0 && k < samples.length; k += side) {
      if (app.judge.decide(samples[k].scores) !== now) {
        return narrow(samples[k - side].value, samples[k].value, side);
      }
    }
    return null;
  };
  const narrow = (inside, outside, side) => {
    let [near, far] = [inside, outside];
    for (let k = 0; k < 60; k += 1) {
      const middle = (near + far) / 2;
      if (flipped(middle)) far = middle;
      else near = middle;
    }
    if (control.whole) far = side > 0 ? Math.ceil(far) : Math.floor(far);
    return flipped(far) ? far : null;
  };
  return { down: search(-1), up: search(1) };
};

/* The table of what would flip the decision, nearest first. */
isotone.flipTable = (app, responses) => {
  const { node, format } = isotone.charts;
  if (!app.judge) return;
  const { network, data } = app;
  const found = data.controls.map((control, k) => (control.kind === "category"
    ? category(control, responses[k])
    : number(control, responses[k]))).sort((a, b) => a.far - b.far);
  const best = found[0];
  const lead = best && Number.isFinite(best.far)
    ? node("p", {}, [node("span", { text: "Smallest single change that flips the decision: " }), node("strong", { text: best.says })])
    : node("p", { text: "No change of a single feature within its slider flips the decision." });
  const heads = ["feature", "now", "certified: cannot flip", "found: flips at", "one scaled unit"];
  const table = node("table", {}, [
    node("thead", {}, [node("tr", {}, heads.map((text) => node("th", { text })))]),
    node("tbody", {}, found.map((each) => node("tr", {}, [
      node("th", { scope: "row", text: each.name }),
      ...each.cells.map((text) => node("td", { class: "number", text })),
    ]))),
  ]);
  const note = node("p", { class: "hint", text: "Certified is proved for every value in that range, the feature moving alone; found is the nearest flip that a search along the slider met." });
  app.flipPlace.replaceChildren(node("h3", { text: "What would flip it" }), lead, node("div", { class: "scroll" }, [table]), note);

  function number(control, samples) {
    const i = control.feature;
    const now = app.row[i];
    const { down, up } = isotone.nearestFlips(app, control, samples);
    const at = [down, up].filter((v) => v !== null);
    const far = (v) => Math.abs(network.along(i, v) - network.along(i, now)) / (control.axis[1] - control.axis[0]);
    at.sort((a, b) => far(a) - far(b));
    const nearest = at[0];
    return {
      name: control.name,
      far: at.length ? far(nearest) : Infinity,
      says: at.length ? `${nearest > now ? "raise" : "lower"} ${control.name} from ${format(now)} to ${beyond(nearest, now)}` : "",
      cells: [format(now, 5), safe(i, now), at.map((v) => beyond(v, now)).join(" or ") || "not within the slider", unit(i)],
    };
  }

  /* Rounded away from where the row is now. */
  function beyond(v, now) {
    return isotone.inward(v, v > now ? 1 : -1, Math.abs(v - now));
  }

  function safe(i, now) {
    const { down, up } = app.radius;
    if (down[i] === Infinity && up[i] === Infinity) return "at any value";
    if (down[i] === Infinity) return `at or below ${isotone.inward(now + up[i], -1, up[i])}`;
    if (up[i] === Infinity) return `at or above ${isotone.inward(now - down[i], 1, down[i])}`;
    return `${isotone.inward(now - down[i], 1, down[i])} to ${isotone.inward(now + up[i], -1, up[i])}`;
  }

  function unit(i) {
    const { log, factor } = network.scaling;
    return log[i] ? `a factor of ${format(Math.exp(1 / factor[i]), 3)}` : format(1 / factor[i], 3);
  }

  function category(control, samples) {
    const now = app.judge.decide(app.scores);
    const flips = samples.filter(({ scores }) => app.judge.decide(scores) !== now);
    const names = flips.map(({ value }) => control.labels[value]);
    const current = control.labels[control.features.findIndex((i) => app.row[i] === 1)] || "–";
    return {
      name: control.name,
      far: flips.length ? 1 : Infinity,
      says: flips.length ? `change ${control.name} from ${current} to ${names[0]}` : "",
      cells: [current, "–", names.join(", ") || "by no category", "–"],
    };
  }
};
