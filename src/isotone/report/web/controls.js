"use strict";
/* Controls: a card for every column, with its curve, its slider under the curve, and a box. */
isotone.controls = (() => {
  const { node, format, plain } = isotone.numbers;

  /* { control, card, picture, refresh }: what is on the page for a column. */
  function make(app, control, k) {
    const made = control.kind === "number" ? number(app, control, k) : choice(app, control, k);
    const features = control.features || [control.feature];
    const label = node("label", { for: `value-${k}`, text: control.name, title: control.name });
    const direction = node("span", { class: "direction", text: app.direction(features) });
    const picture = node("div", { class: "picture" });
    const card = node("div", { class: "control card", "data-name": control.name }, [
      label, direction, picture, ...made.parts,
    ]);
    if (control.indicator !== undefined) card.append(missing(app, control, k, made.inputs, made.refresh));
    made.refresh();
    return { control, card, picture, track: made.track, refresh: made.refresh };
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

  function number(app, control, k) {
    const i = control.feature;
    const scale = sliderScale(app, control);
    const slider = node("input", {
      type: "range", id: `slider-${k}`, ...scale.ends, "aria-label": `${control.name}, slider`,
    });
    const box = node("input", { type: "number", id: `value-${k}`, step: "any" });
    const outside = node("span", { class: "outside" });
    const refresh = (from) => {
      const raw = app.row[i];
      if (from !== slider) slider.value = scale.forth(raw);
      if (from !== box) box.value = typed(raw);
      slider.setAttribute("aria-valuetext", plain(raw));
      const side = raw < control.low ? "below all rows" : raw > control.high ? "above all rows" : "";
      outside.textContent = side && !app.data.sample ? "unusual" : side;
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
    const track = rail(app, control, slider);
    const where = app.data.sample ? "table" : "usual";
    const range = node("span", { class: "hint", text: `${where}: ${format(control.low)} to ${format(control.high)}` });
    const parts = [node("div", { class: "inputs" }, [track]), node("div", { class: "below" }, [range, outside, box])];
    return { parts, inputs: [slider, box], track, refresh };
  }

  /* From raw numbers to positions of a slider and back: whole numbers step by whole numbers. */
  function sliderScale(app, control) {
    const { network } = app;
    const [low, high] = control.axis.map((t) => network.back(control.feature, t));
    const [least, most] = [Math.min(low, control.low), Math.max(high, control.high)];
    const by = control.whole ? app.wholeStep(control) : 0;
    const ends = { min: 0, max: 1000, step: 1 };
    const forth = (raw) => 1000 * app.share(control, raw);
    const back = (at) => app.atShare(control, at / 1000);
    const step = (raw, side) => {
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
  function rail(app, control, slider) {
    const range = node("span", { class: "range" });
    const [from, to] = [control.low, control.high].map((raw) => app.share(control, raw));
    range.style.left = `${100 * from}%`;
    range.style.width = `${100 * (to - from)}%`;
    return node("span", { class: "track" }, [node("span", { class: "rail" }, [range]), slider]);
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
