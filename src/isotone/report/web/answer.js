"use strict";
/* What the model answers for the current row. */
isotone.answer = (app) => {
  const { node, format, percent } = isotone.charts;
  const { view, scores, judge, data } = app;
  const { classes, probability } = data.outcomes;
  const value = app.show(scores);
  const shown = view.probability ? percent(value, 4) : format(value, 6);
  const chosen = judge ? classes[judge.decide(scores)] : null;
  app.headline.replaceChildren(
    node("p", { class: "what", text: view.name }),
    node("p", { class: "big", text: shown }),
    ...(view.probability ? likely() : []),
  );
  app.detail.replaceChildren(...(judge ? decision() : error()));
  const also = chosen === null ? [] : [node("span", { text: `decision: ${chosen}` })];
  app.pin.replaceChildren(node("strong", { text: shown }), ...also);

  /* Bars for the probability, and those of all classes. */
  function likely() {
    if (scores.length === 1) {
      return [meter(value, app.boundary()), hint(`score ${format(scores[0], 6)}`)];
    }
    if (scores.length > 8) return [meter(value, null)];
    const each = app.network.probability(scores).map((p, k) => node("li", {}, [
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
      node("p", { text: distance() }),
      ...certified(app.radius.scaled),
    ];
  }

  function hint(text) {
    return node("p", { class: "hint", text });
  }

  function certified(total) {
    const unit = "Scaled units are what the network sees; the last column of “What would flip it” "
      + "says how large one is.";
    return [node("p", { text: kept(total) }), hint(unit)];
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

  function error() {
    const bound = data.network.errors[view.output];
    const text = bound === null ? "" : `Off the exact value by at most ${isotone.inward(bound, 1)}.`;
    return [hint(text)];
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
