"use strict";
/* The explorer: one row of raw numbers, controls that change it, and what the model says. */
isotone.Explorer = class {
  constructor(data) {
    this.data = data;
    this.network = new isotone.Network(data.network);
    this.judge = data.decision ? new isotone.Judge(this.network, data.decision) : null;
    this.row = [...data.start];
    this.views = this.listViews();
    this.view = this.views[this.firstView()];
    // flips are looked for along these, and curves off the screen are drawn for these
    this.curved = this.strongest(48);
    this.nPoints = Math.min(Math.max(Math.floor(6e7 / this.network.size / this.curved.length), 24), 96);
    this.budget = 1e6; // multiplications while a slider moves; follows the machine
    this.growth = 1.1; // of the budget after a frame in time
    this.widgets = [];
    this.listeners = []; // draw what may wait
    this.live = []; // draw while a slider moves
    this.pending = null; // what may wait, while there is any
    this.version = 0;
  }

  /* The controls with the largest measured effects, in their order. */
  strongest(most) {
    const { controls } = this.data;
    const order = controls.map((_, k) => k).sort((a, b) => controls[b].effect - controls[a].effect);
    return order.slice(0, most).sort((a, b) => a - b).map((k) => controls[k]);
  }

  /* Of several classes the first about which something is promised, or the one that wins. */
  firstView() {
    const { declared } = this.data.network;
    if (!this.judge || this.judge.kind !== "classes") return 0;
    const promised = declared.findIndex((row) => row.some((sign) => sign !== 0));
    return promised >= 0 ? promised : this.judge.decide(this.network.score(this.row));
  }

  /* What can be looked at: probabilities and scores of every output. */
  listViews() {
    const { kind, classes, outputs, probability } = this.data.outcomes;
    if (kind === "values") {
      const target = this.data.outcomes.target;
      const only = target ? `prediction of ${target}` : "prediction";
      return outputs.map((name, output) => ({
        output, probability: false, name: outputs.length > 1 ? `output ${name}` : only,
      }));
    }
    const scores = kind === "classes" ? classes.map((name) => `score of ${name}`) : ["score"];
    const views = scores.map((name, output) => ({ output, probability: false, name }));
    const likely = scores.map((_, output) => ({
      output, probability: true, name: `probability of ${kind === "classes" ? classes[output] : classes[1]}`,
    }));
    const points = this.data.points ? [{ output: 0, probability: false, points: true, name: "points" }] : [];
    return probability ? [...likely, ...points, ...views] : [...points, ...views];
  }

  /* The number that a view shows, from scores. */
  show(scores, view = this.view) {
    if (view.points) return this.inPoints(scores[0]);
    if (!view.probability) return scores[view.output];
    const p = this.network.probability(scores);
    return scores.length === 1 ? p[1] : p[view.output];
  }

  /* Points of a logit, as isotone.explanation.Points gives them. */
  inPoints(score) {
    const { factor, even } = this.data.points;
    return factor * score + even;
  }

  /* 1 if what the view shows rises with the score, -1 if it falls. */
  get sense() {
    return this.view.points && this.data.points.factor < 0 ? -1 : 1;
  }

  /* Where the decision boundary lies in the view, if it is one number. */
  boundary() {
    if (!this.judge || this.judge.kind !== "threshold") return null;
    return this.show([this.judge.threshold]);
  }

  build(place) {
    const { node } = isotone.charts;
    const cards = node("div", { id: "curves", class: "cards" });
    this.cards = this.data.controls.map((control, k) => isotone.controls.make(this, control, k));
    cards.append(...this.cards.map(({ card }) => card));
    this.answer = node("div", { class: "answer" });
    this.headline = node("div", { class: "headline", "aria-live": "polite" });
    this.detail = node("div", {});
    this.strip = node("div", { class: "strip" });
    this.answer.append(this.viewChoice(), this.headline, this.strip, this.detail);
    this.flipPlace = node("div", { class: "flips" });
    this.pin = node("p", { class: "pin", "aria-hidden": "true" }); // on phones, where the answer scrolls away
    const left = node("div", { class: "left" }, [this.presetChoice(), isotone.controls.finder(this, cards), cards, this.pin]);
    const side = node("div", { class: "side", id: "answer" }, [this.answer]);
    place.append(node("div", { class: this.cards.length <= 12 ? "columns few" : "columns" }, [left, side]), this.flipPlace);
  }

  viewChoice() {
    const { node } = isotone.charts;
    if (this.views.length === 1) return node("span", {});
    const options = this.views.map((view, k) => node("option", { value: k, text: view.name }));
    const choice = node("select", { id: "view" }, options);
    choice.addEventListener("change", () => this.setView(Number(choice.value)));
    choice.value = this.views.indexOf(this.view);
    return node("p", { class: "field" }, [node("label", { for: "view", text: "Show " }), choice]);
  }

  setView(k) {
    this.view = this.views[k];
    this.changed();
  }

  presetChoice() {
    const { node } = isotone.charts;
    const first = this.data.sample ? "median of the table" : "center of the model";
    const presets = [{ name: first, row: this.data.start }];
    for (const { name, number, row } of this.data.presets || []) {
      presets.push({ name: number === null ? name : `${name} (row ${number}, counted from 0)`, row });
    }
    const options = presets.map((preset, k) => node("option", { value: k, text: preset.name }));
    const choice = node("select", { id: "preset" }, options);
    const go = () => this.setRow(presets[Number(choice.value)].row);
    choice.addEventListener("change", go);
    const again = node("button", { type: "button", text: "Go there", onclick: go });
    const label = node("label", { for: "preset", text: "Start from " });
    const fields = [node("p", { class: "field" }, [label, choice, again])];
    if (this.data.rows && this.data.rows.number.length) fields.push(this.rowChoice());
    return node("div", { class: "presets" }, fields);
  }

  /* Steps through the embedded rows. */
  rowChoice() {
    const { node } = isotone.charts;
    const { number, columns, truth } = this.data.rows;
    const about = node("span", { class: "hint" });
    const box = node("input", { type: "number", id: "row", min: 1, max: number.length, value: 1 });
    const go = () => {
      const k = Math.min(Math.max(Math.round(Number(box.value) || 1), 1), number.length) - 1;
      box.value = k + 1;
      const seen = truth === null ? "" : `, ${this.truth(truth[k])}`;
      about.textContent = `row ${number[k]} of ${this.data.sample.name}, counted from 0${seen}`;
      this.setRow(columns.map((column) => column[k]));
    };
    const move = (by) => () => {
      box.value = Number(box.value) + by;
      go();
    };
    box.addEventListener("change", go);
    return node("p", { class: "field" }, [
      node("label", { for: "row", text: `or from embedded row (1 to ${number.length}) ` }),
      node("button", { type: "button", "aria-label": "previous row", text: "‹", onclick: move(-1) }),
      box,
      node("button", { type: "button", "aria-label": "next row", text: "›", onclick: move(1) }),
      about,
    ]);
  }

  truth(y) {
    const { classes } = this.data.outcomes;
    return classes.length ? `truly ${classes[y]}` : `observed ${isotone.charts.format(y)}`;
  }

  setRow(row) {
    this.row = [...row];
    this.widgets.forEach((widget) => widget.refresh());
    this.changed();
  }

  setFeature(i, raw) {
    this.row[i] = raw;
    this.changed();
  }

  direction(features) {
    const { outcomes, network } = this.data;
    const signs = features.map((i) => network.directions.map((row) => row[i]));
    const proved = { 1: "↗ only rises", "-1": "↘ only falls" };
    const hoped = { 1: "↕ should rise, not proved", "-1": "↕ should fall, not proved" };
    const found = [];
    signs.forEach((row, f) => row.forEach((sign, j) => {
      const declared = network.declared[j][features[f]];
      if (!declared) return;
      const about = row.length > 1 ? ` (${outcomes.classes[j] || outcomes.outputs[j]})` : "";
      const along = features.length > 1 ? ` with ${network.features[features[f]]}` : "";
      found.push(`${sign ? proved[sign] : hoped[declared]}${about}${along}`);
    }));
    return found.join(", ") || "↕ free";
  }

  /* Whether a row lacks the value of a column: what stands there is its fill. */
  lacks(control, row = this.row) {
    return control.indicator !== undefined && row[control.indicator] === 1;
  }

  /* The number of the category that a row has, counted from 0; -1 where it is missing. */
  chosen(control, row = this.row) {
    if (control.kind === "category") return control.features.findIndex((i) => row[i] === 1);
    return this.lacks(control, row) ? -1 : row[control.feature];
  }

  /* A row with that category. */
  choose(control, c, row) {
    if (control.kind === "category") {
      control.features.forEach((i, other) => { row[i] = c === other ? 1 : 0; });
      return;
    }
    row[control.feature] = c;
    if (control.indicator !== undefined) row[control.indicator] = 0;
  }

  /* Where a raw number lies between the ends of its slider, 0 to 1. */
  share(control, raw) {
    const [low, high] = control.axis;
    return Math.min(Math.max((this.network.along(control.feature, raw) - low) / (high - low), 0), 1);
  }

  /* The raw number there, with as many digits as the slider can tell apart. The ends are the
     smallest and the largest number of the table, if these lie farther out. What a zoomed card shows is not left. */
  atShare(control, share) {
    const [low, high] = control.axis;
    const raw = this.network.back(control.feature, low + share * (high - low));
    if (share <= 0 && control.low < raw) return control.low;
    if (share >= 1 && control.high > raw) return control.high;
    const rounded = this.rounded(control, raw);
    if (!control.full) return rounded;
    const ends = control.axis.map((t) => this.network.back(control.feature, t));
    const [least, most] = control.whole ? [Math.ceil(ends[0]), Math.floor(ends[1])] : ends;
    return Math.min(Math.max(rounded, least), most);
  }

  rounded(control, raw) {
    const [low, high] = control.axis;
    if (control.whole) {
      const by = this.wholeStep(control);
      return Math.round(raw / by) * by + 0;
    }
    if (this.network.isLog(control.feature)) return Number(raw.toPrecision(4));
    const unit = 10 ** Math.floor(Math.log10((high - low) / 1000));
    return Number((Math.round(raw / unit) * unit).toPrecision(12));
  }

  /* How far one step of the slider of a column of whole numbers goes. */
  wholeStep(control) {
    if (this.network.isLog(control.feature)) return 1;
    const [low, high] = control.axis;
    return 10 ** Math.max(Math.floor(Math.log10((high - low) / 1000)), 0);
  }

  /* What to do when the browser has time, and while something moves. A listener that may wait can
     be a generator: it is left off where it yields, and dropped if the row changes meanwhile. */
  onChange(listener, live = false) {
    (live ? this.live : this.listeners).push(listener);
  }

  /* Answer at once, draw what is seen with the next frame, and the rest when there is time. */
  changed() {
    this.version += 1;
    this.scores = this.network.score(this.row);
    isotone.answer(this);
    this.frame ||= requestAnimationFrame(() => this.drawLive());
    clearTimeout(this.pending);
    this.pending = setTimeout(() => this.drawRest(this.work(), 0), this.cost > 12 ? 140 : 0);
  }

  /* One frame of a slider that moves, and a look at when the next one comes. */
  drawLive() {
    this.frame = null;
    const start = performance.now();
    this.live.forEach((listener) => listener(this));
    const took = performance.now() - start;
    const shown = document.timeline.currentTime;
    requestAnimationFrame(() => this.pace(took, document.timeline.currentTime - shown));
  }

  /* As many points as the browser shows 60 times a second: fewer after a frame that came late though there was
     much to draw, or took more than half of its time; more, but slowly after one was late, after others. */
  pace(took, gap) {
    const late = gap > 20 && took > 3;
    this.growth = late ? 1.005 : Math.min(1.0002 * this.growth, 1.1);
    const factor = late ? 0.7 : Math.min(8 / Math.max(took, 1), this.growth);
    this.budget = Math.min(Math.max(this.budget * Math.max(factor, 0.6), 1e5), 2e7);
  }

  * work() {
    for (const listener of this.listeners) {
      const more = listener(this);
      if (more && more.next) yield* more;
      yield;
    }
  }

  /* The rest in pieces of some milliseconds, so that a slider that moves again is not held up. */
  drawRest(work, spent) {
    const start = performance.now();
    let done = false;
    while (!done && performance.now() - start < 10) ({ done } = work.next());
    const total = spent + performance.now() - start;
    if (done) this.cost = total;
    this.pending = done ? null : setTimeout(() => this.drawRest(work, total));
  }
};
