"use strict";
/* What the model answers for the current row. */
isotone.answer = (app) => {
  const { node, become, format, percent } = isotone.numbers;
  const { view, scores, judge, data } = app;
  const { classes, probability } = data.outcomes;
  const value = app.show(scores);
  const shown = view.probability ? percent(value, 4) : format(value, view.points ? 4 : 6);
  const chosen = judge ? classes[judge.decide(scores)] : null;
  become(app.headline, [
    ...(app.views.length === 1 ? [node("p", { class: "what", text: view.name })] : []), // else it is chosen above
    node("p", { class: "big", text: shown }),
    ...(view.probability ? likely() : []),
  ]);
  become(app.detail, judge ? decision() : error());
  const also = chosen === null ? [] : [node("span", { text: `decision: ${chosen}` })];
  become(app.pin, [node("strong", { text: shown }), ...also]);

  /* Bars for the probability, and those of all classes. */
  function likely() {
    if (scores.length === 1) {
      return [meter(value, app.boundary()), hint(`score ${format(scores[0], 6)}`)];
    }
    if (scores.length > 8) return [meter(value, null)];
    const each = app.network.probability(scores).map((p, k) => node("li", { class: `k${k % 6}` }, [
      node("span", { text: classes[k] }),
      node("span", { class: "number", text: percent(p) }),
      meter(p, null),
    ]));
    return [node("ul", { class: "chances" }, each)];
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

  function decision() {
    app.radius = judge.radius(app.row, scores);
    return [
      node("p", { class: "decision" }, [
        node("span", { text: "Decision: " }), node("strong", { text: chosen }),
      ]),
      ...certified(app.radius),
    ];
  }

  function hint(text) {
    return node("p", { class: "hint", text });
  }

  /* In raw units, a feature at a time; all features together, in scaled units, are folded away. */
  function certified({ down, up, scaled }) {
    const strong = [...app.curved].sort((one, other) => other.effect - one.effect);
    const present = strong.filter((control) => control.kind === "number" && !app.lacks(control));
    const found = present.map((control) => alone(control, down, up));
    const fold = node("details", { class: "fold" }, [
      node("summary", { text: "all features together, in scaled units" }),
      node("p", { text: distance() }), node("p", { text: kept(scaled) }),
      hint(`Scaled units are what the network sees. One of them is ${strong.filter(({ kind }) => kind === "number")
        .slice(0, 6).map(unit).join(", ")}.`),
    ]);
    fold.open = app.detail.querySelector("details")?.open || false;
    const stands = found.filter((text) => text);
    if (!stands.length) return [node("p", { text: "Nothing is certified here: it is too close to a different decision." }), fold];
    return [
      node("p", { class: "what", text: "Certified: the decision stands while, alone," }),
      node("ul", { class: "stands" }, stands.slice(0, 4).map((text) => node("li", { text }))),
      fold,
    ];
  }

  /* How large a scaled unit is in raw ones. */
  function unit({ feature: i, name }) {
    const { network } = app;
    const size = 1 / network.scaling.factor[network.copy(i, app.row[i])];
    if (network.isLog(i)) return `a factor of ${format(Math.exp(size), 3)} of ${name}`;
    return `${format(size, 3)} of ${name}${network.ends[i].length ? " here" : ""}`;
  }

  /* How far one feature may move; whole numbers by whole numbers. */
  function alone({ feature: i, name, whole }, down, up) {
    const [less, more] = [down[i], up[i]].map((by) => (whole ? Math.floor(by) : by));
    const both = [moved("falls", less), moved("rises", more)].filter((text) => text);
    const moves = more === Infinity ? both.reverse() : both; // what is free comes first
    if (less === Infinity && more === Infinity) return `${name} takes any value`;
    return moves.length ? `${name} ${moves.join(", or ")}` : null;
  }

  function moved(word, by) {
    if (by === 0) return null;
    return by === Infinity ? word : `${word} by at most ${isotone.inward(by, -1)}`;
  }

  function kept(total) {
    if (total === Infinity) return "Certified: nothing can flip this decision.";
    if (total === 0) return "Nothing is certified here: it is too close to a different decision.";
    return "Certified: as long as the changes of all features add up to at most "
      + `${isotone.inward(total, -1)} scaled units, the decision stays.`;
  }

  function distance() {
    const lead = judge.lead(scores);
    if (judge.kind !== "threshold") return `Its score is ${format(lead)} above that of the next class.`;
    const { threshold } = judge;
    const p = probability ? `, a probability of ${percent(app.network.probability([threshold])[1], 4)}` : "";
    const side = lead >= 0 ? "above" : "below";
    return `The score is ${format(Math.abs(lead))} ${side} the threshold ${format(threshold, 5)}${p}.`;
  }

  /* What one more step of the strongest features can change, and the error of the number itself. */
  function error() {
    const bound = data.network.errors[view.output];
    const strong = [...app.curved].sort((one, other) => other.effect - one.effect);
    const moves = strong.filter(({ kind }) => kind === "number").slice(0, 4).map((control) => {
      const { by, low, high } = isotone.certifiedStep(app, control);
      return `${control.name} by ${format(by)}: ${isotone.inward(low, -1)} to ${isotone.inward(high, 1)}`;
    });
    const text = bound === null ? "" : `Off the exact value by at most ${isotone.inward(bound, 1)}.`;
    const list = bound === null || !moves.length ? [] : [
      node("p", { class: "what", text: "Certified: raising one feature changes it by" }),
      node("ul", { class: "stands" }, moves.map((line) => node("li", { text: line }))),
    ];
    return [...list, hint(text)];
  }
};

/* A round step up of a feature, and between what the change of the score then is, rounding included. */
isotone.certifiedStep = (app, { feature: i, axis, whole }) => {
  const { network, view } = app;
  const now = app.row[i];
  const wide = 0.05 * (network.back(i, axis[1]) - network.back(i, axis[0]));
  const rough = 10 ** Math.floor(Math.log10(wide));
  const by = whole ? Math.max(rough, 1) : rough;
  const slack = 2 * network.slack(i, network.copy(i, now)) + 2 * network.slack(i, network.copy(i, now + by));
  const step = network.position(i, now + by) - network.position(i, now) + slack;
  const [least, most] = network.data.slopes[view.output][i].map((x, k) => (x === null ? [-Infinity, Infinity][k] : x));
  const error = 2 * network.data.errors[view.output];
  const sign = network.data.directions[view.output][i];
  const low = Math.min(least, 0) * step - error;
  const high = Math.max(most, 0) * step + error;
  return { by, low: sign > 0 && network.data.grid !== null ? 0 : low, high: sign < 0 && network.data.grid !== null ? 0 : high };
};
