"use strict";
/* How the answer changes when one feature moves from the current row. */

/* Scores along some controls, others as they are: { control, samples: { value, scores } }. A value that is missing
   is taken to be there: no row has a flag of missing values and another value than the fill. */
isotone.responses = (app, controls, nPoints) => controls.map((control) => {
  const row = [...app.row];
  if (app.lacks(control)) row[control.indicator] = 0;
  if (control.kind !== "number") return { control, samples: control.labels.map(chosen) };
  const i = control.feature;
  const [low, high] = control.axis;
  const knots = app.network.knots(i).filter((v) => v > low && v < high);
  const few = Math.ceil(knots.length / nPoints);
  const values = [app.row[i], ...knots.filter((_, k) => k % few === 0)];
  for (let k = 0; k <= nPoints; k += 1) {
    values.push(app.network.back(i, low + (k / nPoints) * (high - low)));
  }
  const samples = values.sort((a, b) => a - b).map((value) => {
    row[i] = value;
    return { value, scores: app.network.score(row) };
  });
  return { control, samples };

  function chosen(_, value) {
    app.choose(control, value, row);
    return { value, scores: app.network.score(row) };
  }
});

/* The maps of a chart's axis along a feature: logarithmic where the scaling is. */
isotone.alongFeature = (network, control) => {
  const i = control.feature;
  const map = {
    forth: (v) => network.along(i, v),
    back: (t) => network.back(i, t),
    log: network.isLog(i),
    zero: control.low <= 0,
    whole: control.whole,
  };
  return { low: control.axis[0], high: control.axis[1], map };
};

/* The curves of some cards, each above its slider. */
isotone.drawResponses = (app, cards, responses, every = null) => {
  const { node, format, percent, shorten } = isotone.charts;
  const { network, judge, view } = app;
  const widths = cards.map(widthOf);
  let [width, height] = [0, 0];
  const shared = span();
  let vertical = shared;
  cards.forEach((card, k) => {
    const { control, samples } = responses[k];
    vertical = control.full ? ownSpan(control, samples) : shared;
    width = widths[k];
    height = card.card.classList.contains("wide") ? 340 : 168;
    const axes = `${view.name} ${control.axis} ${width} ${height} ${vertical.low} ${vertical.high}`;
    const state = `${app.version} ${samples.length} ${axes}`;
    if (card.drawn === state) return;
    if (card.axes !== axes) frame(card, control);
    isotone.charts.again(card.chart, (chart) => (control.kind === "number" ? curve : bars)(chart, control, samples));
    Object.assign(card, { drawn: state, axes });
  });

  /* Axes in place of those that a card has; they last until these or its width change. */
  function frame(card, control) {
    const chart = control.kind === "number" ? forNumbers(control) : forLabels(control);
    if (card.chart) card.chart.svg.remove(); // alone: the buttons beside it may have the focus
    card.chart = chart;
    card.picture.prepend(chart.svg);
    if (!card.saves) card.picture.append(card.saves = tools(card));
    if (!card.track) return;
    card.track.style.marginLeft = `${chart.xs.from - 9}px`;
    card.track.style.marginRight = `${width - chart.xs.to - 9}px`;
  }

  /* Downloads, a button that zooms, and one that gives the card the width of all columns. */
  function tools(card) {
    const { name } = card.control;
    const made = isotone.downloads(() => card.chart, name);
    const enlarge = node("button", { type: "button", class: "save", text: "Enlarge", "aria-label": `${name}: enlarge` });
    enlarge.addEventListener("click", () => {
      const word = card.card.classList.toggle("wide") ? "Reduce" : "Enlarge";
      enlarge.textContent = word;
      enlarge.setAttribute("aria-label", `${name}: ${word.toLowerCase()}`);
      card.chart.svg.remove(); // else it would keep its width
      card.measuredAt = card.axes = null;
      app.changed();
    });
    made.prepend(enlarge);
    if (card.track) made.prepend(node("button", {
      type: "button", class: "save", text: "Zoom in", "aria-label": `${name}: zoom in`, onclick: () => isotone.zoom.nearer(app, card),
    }));
    return made;
  }

  /* Measured once for every width of the window: reading it makes the browser lay out the page. */
  function widthOf(card) {
    if (card.measuredAt !== window.innerWidth && card.picture.clientWidth > 0) {
      card.width = Math.max(card.picture.clientWidth, 230);
      card.measuredAt = window.innerWidth;
    }
    return card.width || 230;
  }

  /* One vertical axis for all curves, so that they can be compared; while a slider moves it only
     grows. */
  function span() {
    if (view.probability) return { low: 0, high: 1, format: (p) => percent(p) };
    const all = (every || responses).flatMap(({ samples }) => samples.map(({ scores }) => app.show(scores)));
    all.push(app.show(app.scores), ...(app.boundary() === null ? [] : [app.boundary()]));
    if (!every && app.spanned && app.spanned.view === view.name) all.push(...app.spanned.ends);
    const ends = isotone.charts.extent(all);
    app.spanned = { view: view.name, ends };
    const beyond = 0.08 * (ends[1] - ends[0]) || 1;
    return { low: ends[0] - beyond, high: ends[1] + beyond, format };
  }

  /* The axis of a zoomed curve is its own, of as much as moves there. */
  function ownSpan(control, samples) {
    const rival = app.rival ? app.rival.along(control, app.row, 12).map(([, y]) => y) : [];
    const [low, high] = isotone.charts.extent([...samples.map(({ scores }) => app.show(scores)), ...rival]);
    const beyond = 0.08 * (high - low) || 1e-3 * Math.max(Math.abs(low), 1);
    return { ...shared, low: low - beyond, high: high + beyond };
  }

  function empty(control, x) {
    const title = `${view.name} against ${control.name}`;
    return isotone.charts.frame({
      width, height, bottom: 22, x: { ...x, name: control.name }, y: { ...vertical, label: null }, title,
    });
  }

  function forNumbers(control) {
    const chart = empty(control, isotone.alongFeature(network, control));
    if (control.density) density(chart, control);
    isotone.charts.drag(chart.svg, (event) => follow(event, chart, control));
    return chart;
  }

  function forLabels(control) {
    const { labels } = control;
    const letters = Math.max(3, Math.floor((width - 70) / labels.length / 7));
    return empty(control, {
      low: -0.5,
      high: labels.length - 0.5,
      ticks: labels.map((_, c) => c),
      format: (c) => shorten(labels[c], letters),
    });
  }

  function curve(chart, control, samples) {
    const i = control.feature;
    const here = network.position(i, app.row[i]);
    const lacks = app.lacks(control); // then nothing is certified along the column, and no point of it is the row's
    if (!lacks) isotone.charts.band(chart, samples.map(({ value }) => {
      const step = network.position(i, value) - here;
      return [value, ...isotone.envelope(network, judge, app.scores, view, i, step)];
    }), "envelope");
    threshold(chart);
    isotone.charts.line(chart, samples.map(({ value, scores }) => [value, app.show(scores)]), `main ${isotone.viewHue(app)}`, view.name);
    isotone.drawRival(app, chart, control, Math.max(samples.length >> 1, 12));
    const [low, high] = control.axis.map((t) => network.back(i, t));
    const now = Math.min(Math.max(app.row[i], low), high);
    if (!lacks) isotone.charts.marks(chart, [[now, app.show(app.scores)]], "current", 0, 5);
  }

  function threshold(chart) {
    if (app.boundary() !== null) isotone.charts.rule(chart, { y: app.boundary() });
  }

  /* A click or a drag moves the row there; sliders do the same for the keyboard. */
  function follow(event, chart, control) {
    const [share] = isotone.charts.place(event, chart);
    if (share < 0 || share > 1) return;
    app.row[control.feature] = app.atShare(control, share);
    if (app.lacks(control)) app.row[control.indicator] = 0;
    app.setRow(app.row);
  }

  /* Where the rows of the table lie, below the axis. */
  function density(chart, control) {
    const { xs, ys } = chart;
    const shares = control.density;
    const most = Math.max(...shares, 1e-9);
    const [low, high] = (control.full || control).axis;
    const pixel = (k) => {
      const t = low + (k / shares.length) * (high - low);
      return Math.min(Math.max(xs.from + ((t - xs.low) / (xs.high - xs.low)) * (xs.to - xs.from), xs.from), xs.to);
    };
    let d = "";
    shares.forEach((share, k) => {
      const [from, wide] = [pixel(k), pixel(k + 1) - pixel(k)];
      const tall = share > 0 && wide > 0 ? Math.max(26 * (share / most), 1) : 0;
      if (tall) d += `M${from.toFixed(1)} ${ys.from}v${-tall.toFixed(1)}h${Math.max(wide - 0.6, 0.5).toFixed(1)}v${tall.toFixed(1)}Z`;
    });
    chart.grid.append(node("path", { class: "density", d }));
  }

  function bars(chart, control, samples) {
    threshold(chart);
    isotone.charts.tell(chart, view.name, isotone.viewHue(app), samples.map(({ value, scores }) => [value, app.show(scores)]), false);
    isotone.drawRival(app, chart, control);
    samples.forEach(({ value, scores }) => {
      const is = app.chosen(control) === value;
      const look = is ? ["current", 0, 5] : [isotone.viewHue(app), 2, 4];
      isotone.charts.marks(chart, [[value, app.show(scores)]], ...look);
    });
  }
};
