"use strict";
/* The explorer: one row of raw numbers, controls that change it, and what the model says. */
isotone.Explorer = class {
  constructor(data) {
    this.data = data;
    this.network = new isotone.Network(data.network);
    this.judge = data.decision ? new isotone.Judge(this.network, data.decision) : null;
    this.row = [...data.start];
    this.views = this.listViews();
    // of several classes, the one that wins at the start
    const several = this.judge && this.judge.kind === "classes";
    this.view = this.views[several ? this.judge.decide(this.network.score(this.row)) : 0];
    this.curved = this.mostMoving(48);
    // as many points as keep a redraw below some ten million multiplications
    this.nPoints = Math.min(Math.max(Math.floor(2e7 / this.network.size / this.curved.length), 12), 96);
    this.widgets = [];
    this.listeners = [];
  }

  /* The controls whose certified slopes allow the largest changes, in their order. */
  mostMoving(most) {
    const { network, data: { controls } } = this;
    const reach = controls.map((control) => {
      if (control.kind !== "number") return Infinity;
      const i = control.feature;
      const [from, to] = control.axis.map((t) => network.position(i, network.back(i, t)));
      return (to - from) * Math.max(...network.data.slopes.map((row) => row[i][1] - row[i][0]));
    });
    const order = controls.map((_, k) => k).sort((a, b) => reach[b] - reach[a]);
    return order.slice(0, most).sort((a, b) => a - b).map((k) => controls[k]);
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
    return probability ? [...likely, ...views] : views;
  }

  /* The number that a view shows, from scores. */
  show(scores, view = this.view) {
    if (!view.probability) return scores[view.output];
    const p = this.network.probability(scores);
    return scores.length === 1 ? p[1] : p[view.output];
  }

  /* Where the decision boundary lies in the view, if it is one number. */
  boundary() {
    if (!this.judge || this.judge.kind !== "threshold") return null;
    return this.show([this.judge.threshold]);
  }

  build(place) {
    const { node } = isotone.charts;
    const controls = node("div", { class: "controls" });
    this.data.controls.forEach((control, k) => controls.append(this.control(control, k)));
    this.answer = node("div", { class: "answer" });
    this.headline = node("div", { class: "headline", "aria-live": "polite" });
    this.detail = node("div", {});
    this.answer.append(this.viewChoice(), this.headline, this.detail);
    this.flipPlace = node("div", { class: "flips" });
    this.pin = node("p", { class: "pin", "aria-hidden": "true" }); // on phones, where the answer scrolls away
    const left = node("div", {}, [this.presetChoice(), controls, this.pin]);
    const side = node("div", { class: "side" }, [this.answer]);
    place.append(node("div", { class: "columns" }, [left, side]), this.flipPlace);
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
      presets.push({ name: `${name} (row ${number})`, row });
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

  control(control, k) {
    return control.kind === "number" ? this.number(control, k) : this.choice(control, k);
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

  /* The number of the category that a row has, counted from 0; -1 where it is missing. */
  chosen(control, row = this.row) {
    if (control.kind === "category") return control.features.findIndex((i) => row[i] === 1);
    return row[control.indicator] === 1 ? -1 : row[control.feature];
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

  /* Categories, with or without an order. */
  choice(control, k) {
    const { node } = isotone.charts;
    const options = control.labels.map((text, c) => node("option", { value: c, text }));
    const choice = node("select", { id: `value-${k}` }, options);
    const refresh = () => {
      choice.value = this.chosen(control);
    };
    choice.addEventListener("change", () => {
      this.choose(control, Number(choice.value), this.row);
      this.changed();
    });
    this.widgets.push({ refresh });
    refresh();
    const made = node("div", { class: "control" }, [
      node("label", { for: `value-${k}`, text: control.name }),
      node("span", { class: "direction", text: this.direction(control.features || [control.feature]) }),
      node("div", { class: "inputs" }, [choice]),
    ]);
    if (control.indicator !== undefined) made.append(this.missing(control, k, [choice], refresh));
    return made;
  }

  number(control, k) {
    const { node, format } = isotone.charts;
    const i = control.feature;
    const slider = node("input", {
      type: "range", id: `slider-${k}`, min: 0, max: 1000, step: 1, "aria-label": `${control.name}, slider`,
    });
    const box = node("input", { type: "number", id: `value-${k}`, step: "any" });
    const outside = node("span", { class: "outside" });
    const refresh = (from) => {
      const raw = this.row[i];
      if (from !== slider) slider.value = 1000 * this.share(control, raw);
      if (from !== box) box.value = this.typed(raw);
      slider.setAttribute("aria-valuetext", format(raw, 6));
      outside.textContent = raw < control.low || raw > control.high ? "outside" : "";
    };
    const set = (raw, from) => {
      this.setFeature(i, raw);
      refresh(from);
    };
    slider.addEventListener("input", () => set(this.atShare(control, Number(slider.value) / 1000), slider));
    box.addEventListener("input", () => {
      if (box.value !== "" && Number.isFinite(Number(box.value))) set(Number(box.value), box);
    });
    box.addEventListener("blur", () => refresh());
    this.widgets.push({ refresh, control });
    const inputs = node("div", { class: "inputs" }, [this.track(control, slider), box]);
    const where = this.data.sample ? "table" : "usual";
    const range = `${where}: ${format(control.low)} to ${format(control.high)} `;
    const hint = node("span", { class: "hint", text: range });
    const made = node("div", { class: "control" }, [
      node("label", { for: `value-${k}`, text: control.name }),
      node("span", { class: "direction", text: this.direction([i]) }),
      inputs, node("div", { class: "below" }, [hint, outside]),
    ]);
    if (control.indicator !== undefined) made.append(this.missing(control, k, [slider, box], refresh));
    refresh();
    return made;
  }

  /* All digits of a number, the way that takes less room in a box. */
  typed(raw) {
    const [plain, power] = [String(raw), raw.toExponential()];
    return power.length < plain.length ? power : plain;
  }

  /* The slider over a bar that marks the range of the table. */
  track(control, slider) {
    const { node } = isotone.charts;
    const range = node("span", { class: "range" });
    const [from, to] = [control.low, control.high].map((raw) => this.share(control, raw));
    range.style.left = `${100 * from}%`;
    range.style.width = `${100 * (to - from)}%`;
    return node("span", { class: "track" }, [node("span", { class: "rail" }, [range]), slider]);
  }

  missing(control, k, inputs, refresh) {
    const { node } = isotone.charts;
    const box = node("input", { type: "checkbox", id: `missing-${k}` });
    const follow = () => {
      box.checked = this.row[control.indicator] === 1;
      inputs.forEach((input) => { input.disabled = box.checked; });
    };
    box.addEventListener("change", () => {
      this.row[control.indicator] = box.checked ? 1 : 0;
      if (box.checked) this.row[control.feature] = control.fill;
      else if (control.kind === "ordered") this.row[control.feature] = Math.floor(control.fill);
      refresh();
      follow();
      this.changed();
    });
    this.widgets.push({ refresh: follow });
    return node("div", { class: "below" }, [box, node("label", { for: `missing-${k}`, text: " missing" })]);
  }

  /* Where a raw number lies between the ends of its slider, 0 to 1. */
  share(control, raw) {
    const [low, high] = control.axis;
    return Math.min(Math.max((this.network.along(control.feature, raw) - low) / (high - low), 0), 1);
  }

  /* The raw number there, with as many digits as the slider can tell apart. */
  atShare(control, share) {
    const [low, high] = control.axis;
    const raw = this.network.back(control.feature, low + share * (high - low));
    if (control.whole) return Math.round(raw);
    if (this.network.isLog(control.feature)) return Number(raw.toPrecision(4));
    const unit = 10 ** Math.floor(Math.log10((high - low) / 1000));
    return Number((Math.round(raw / unit) * unit).toPrecision(12));
  }

  onChange(listener) {
    this.listeners.push(listener);
  }

  /* Answer at once, and draw when the browser has time. */
  changed() {
    this.scores = this.network.score(this.row);
    isotone.answer(this);
    if (this.pending) clearTimeout(this.pending);
    const wait = this.cost > 25 ? 120 : 0;
    this.pending = setTimeout(() => {
      this.pending = null;
      const start = performance.now();
      this.listeners.forEach((listener) => listener(this));
      this.cost = performance.now() - start;
    }, wait);
  }
};
