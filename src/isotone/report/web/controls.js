"use strict";
/* Controls: a card for every column, with its curve, its slider under the curve, and a box. */
isotone.controls = (() => {
  const { node, format, plain } = isotone.numbers;

  /* { control, shown, card, picture, refresh }: what is on the page for a column; `shown` is its control, zoomed or not. */
  function make(app, control, k) {
    const whole = { control, shown: control };
    const made = control.kind === "number" ? number(app, whole, k) : choice(app, control, k);
    const features = control.features || [control.feature];
    const label = node("label", { for: `value-${k}`, text: control.name, title: control.name });
    const direction = node("span", { class: "direction", text: app.direction(features) });
    const picture = node("div", { class: "picture" });
    const card = node("div", { class: "control card", "data-name": control.name }, [
      label, direction, picture, ...made.parts,
    ]);
    if (control.indicator !== undefined) card.append(missing(app, control, k, made.inputs, made.refresh));
    made.refresh();
    // not dblclick, which is lost when the first click has drawn the chart anew
    if (made.track) picture.addEventListener("mousedown", (event) => {
      if (event.detail === 2 && !event.target.closest("button")) isotone.zoom.nearer(app, whole);
    });
    return Object.assign(whole, { card, picture, track: made.track, refresh: made.refresh });
  }

  /* Categories, with or without an order. */
  function choice(app, control, k) {
    const options = control.labels.map((text, c) => node("option", { value: c, text }));
    const select = node("select", { id: `value-${k}` }, options);
    const refresh = () => {
      select.value = app.chosen(control);
    };
    select.addEventListener("change", () => {
      app.choose(control, Number(select.value), app.row);
      app.changed();
    });
    app.widgets.push({ refresh });
    return { parts: [node("div", { class: "inputs" }, [select])], inputs: [select], refresh };
  }

  function number(app, card, k) {
    const { control } = card;
    const i = control.feature;
    const scale = sliderScale(app, card);
    const slider = node("input", {
      type: "range", id: `slider-${k}`, ...scale.ends, "aria-label": `${control.name}, slider`,
    });
    const box = node("input", { type: "number", id: `value-${k}`, step: "any" });
    const outside = node("span", { class: "outside" });
    const refresh = (from) => {
      const raw = app.row[i];
      isotone.zoom.follow(app, card);
      if (from !== slider) slider.value = scale.forth(raw);
      if (from !== box) box.value = typed(raw);
      slider.setAttribute("aria-valuetext", plain(raw));
      const side = raw < control.low ? "below all rows" : raw > control.high ? "above all rows" : "";
      const said = side && !app.data.sample ? "unusual" : side;
      if (outside.textContent !== said) outside.textContent = said; // else the card would be laid out anew
    };
    const set = (raw, from) => {
      app.setFeature(i, raw);
      refresh(from);
    };
    slider.addEventListener("input", () => set(scale.back(Number(slider.value)), slider));
    slider.addEventListener("keydown", (event) => {
      const side = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
      if (!side || !control.whole) return;
      event.preventDefault();
      set(scale.step(app.row[i], side));
    });
    box.addEventListener("input", () => {
      if (box.value !== "" && Number.isFinite(Number(box.value))) set(Number(box.value), box);
    });
    box.addEventListener("blur", () => refresh());
    app.widgets.push({ refresh, control });
    const track = rail(app, card, slider);
    const where = app.data.sample ? "table" : "usual";
    const [low, high] = [control.low, control.high].map((v) => format(v, control.whole ? 16 : undefined));
    const range = node("span", { class: "hint", text: `${where}: ${low} to ${high}` });
    const all = node("button", {
      type: "button", class: "save", text: "Whole range", hidden: "", "aria-label": `${control.name}: show the whole range`,
    });
    all.addEventListener("click", () => {
      isotone.zoom.reset(app, card);
      slider.focus(); // the button goes
    });
    card.placed = () => {
      track.place();
      all.hidden = !card.shown.full;
      range.hidden = !all.hidden; // they share one place
      slider.value = scale.forth(app.row[i]);
    };
    const parts = [node("div", { class: "inputs" }, [track]), node("div", { class: "below" }, [range, outside, all, box])];
    return { parts, inputs: [slider, box], track, refresh };
  }

  /* From raw numbers to positions of a slider and back: whole numbers step by whole numbers. */
  function sliderScale(app, card) {
    const { network } = app;
    const { control } = card;
    const [low, high] = control.axis.map((t) => network.back(control.feature, t));
    const [least, most] = [Math.min(low, control.low), Math.max(high, control.high)];
    const ends = { min: 0, max: 1000, step: 1 };
    const forth = (raw) => 1000 * app.share(card.shown, raw);
    const back = (at) => app.atShare(card.shown, at / 1000);
    const step = (raw, side) => {
      const by = app.wholeStep(card.shown);
      const next = side > 0 ? Math.floor(raw / by) * by + by : Math.ceil(raw / by) * by - by;
      return Math.min(Math.max(next, Math.ceil(least)), Math.floor(most));
    };
    return { ends, forth, back, step };
  }

  /* All digits of a number, the way that takes less room in a box. */
  function typed(raw) {
    const [short, power] = [String(raw), raw.toExponential()];
    return power.length < short.length ? power : short;
  }

  /* The slider over a bar that marks the range of the table. */
  function rail(app, card, slider) {
    const range = node("span", { class: "range" });
    const track = node("span", { class: "track" }, [node("span", { class: "rail" }, [range]), slider]);
    track.place = () => {
      const [from, to] = [card.control.low, card.control.high].map((raw) => app.share(card.shown, raw));
      range.style.left = `${100 * from}%`;
      range.style.width = `${100 * (to - from)}%`;
    };
    track.place();
    return track;
  }

  function missing(app, control, k, inputs, refresh) {
    const box = node("input", { type: "checkbox", id: `missing-${k}` });
    const follow = () => {
      box.checked = app.row[control.indicator] === 1;
      inputs.forEach((input) => { input.disabled = box.checked; });
    };
    box.addEventListener("change", () => {
      app.row[control.indicator] = box.checked ? 1 : 0;
      if (box.checked) app.row[control.feature] = control.fill;
      else if (control.kind === "ordered") app.row[control.feature] = Math.floor(control.fill);
      refresh();
      follow();
      app.changed();
    });
    app.widgets.push({ refresh: follow });
    return node("div", { class: "below" }, [box, node("label", { for: `missing-${k}`, text: " missing" })]);
  }

  /* Search and order of many cards. */
  function finder(app, place) {
    if (app.data.controls.length <= 12) return null;
    const search = node("input", { type: "search", id: "search", placeholder: "name of a feature" });
    const order = node("select", { id: "order" }, ["by effect", "by name", "as in the table"].map(
      (text, value) => node("option", { value, text }),
    ));
    const follow = () => {
      const wanted = search.value.trim().toLowerCase();
      const cards = [...app.cards];
      if (order.value === "0") cards.sort((a, b) => b.control.effect - a.control.effect);
      if (order.value === "1") cards.sort((a, b) => (a.control.name < b.control.name ? -1 : 1));
      cards.forEach(({ card, control }) => { card.hidden = !control.name.toLowerCase().includes(wanted); });
      place.replaceChildren(...cards.map(({ card }) => card));
      app.seen = null;
      if (app.scores) app.changed();
    };
    search.addEventListener("input", follow);
    order.addEventListener("change", follow);
    follow();
    return node("p", { class: "field" }, [
      node("label", { for: "search", text: "Find " }), search,
      node("label", { for: "order", text: "order " }), order,
      node("span", { class: "hint", text: `${app.data.controls.length} features` }),
    ]);
  }

  return { make, finder };
})();
