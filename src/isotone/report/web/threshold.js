"use strict";
/* The threshold: a slider among the stops that the file has counts for, over the scores by class;
   what it decides about all rows of the table, and about the current row. */
isotone.Threshold = class {
  constructor(app) {
    const { node } = isotone.numbers;
    this.app = app;
    this.stops = app.data.stops;
    this.k = this.stops.start;
    this.listeners = []; // figures that follow the threshold
    this.slider = node("input", {
      type: "range", id: "threshold", min: 0, max: 1000, step: 1, "aria-label": "threshold",
    });
    this.slider.addEventListener("input", () => this.moveTo(this.nearest(this.at(Number(this.slider.value) / 1000))));
    this.slider.addEventListener("keydown", (event) => {
      const side = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
      if (!side) return;
      event.preventDefault(); // one stop, however near the next one is
      this.moveTo(Math.min(Math.max(this.k + side, 0), this.stops.at.length - 1));
    });
    document.querySelector("nav a").after(" ", node("a", { href: "#answer", text: "Threshold" }));
    this.picture = node("div", { class: "picture" });
    this.text = node("p", { class: "threshold" });
    this.legend = node("ul", { class: "legend" });
    this.rates = node("dl", { class: "rates" });
    this.again = node("button", { type: "button", text: "as declared", onclick: () => this.moveTo(this.stops.start) });
    app.strip.append(
      this.text, this.picture, node("div", { class: "track" }, [node("span", { class: "rail" }), this.slider]), this.legend, this.rates,
    );
  }

  /* The ends of the axis, and the score at a share of it. */
  ends() {
    const { low, high } = this.app.data.statistics.outputs[0].histogram;
    const { at } = this.stops;
    return [Math.min(at[0], low), Math.max(at[at.length - 1], high)];
  }

  at(share) {
    const [low, high] = this.ends();
    return low + Math.min(Math.max(share, 0), 1) * (high - low);
  }

  /* The stop nearest to a score. */
  nearest(score) {
    const { at } = this.stops;
    return at.reduce((best, stop, k) => (Math.abs(stop - score) < Math.abs(at[best] - score) ? k : best), 0);
  }

  moveTo(k) {
    if (k === this.k) return;
    this.k = k;
    this.app.judge.moveTo(this.stops.at[k]);
    this.app.changed();
  }

  /* Draw a figure, as isotone.panels.panel gives it, when the threshold moves. */
  onMove(figure) {
    this.listeners.push({ figure, told: null });
  }

  get value() {
    return this.stops.at[this.k];
  }

  /* Weights of true and false positives and negatives, or of what is accepted and what is not. */
  counts(k = this.k) {
    const { total, accepted } = this.stops;
    if (total.all !== undefined) return { accepted: accepted.all[k], rejected: total.all - accepted.all[k] };
    const [tp, fp] = [accepted.positive[k], accepted.negative[k]];
    return { tp, fp, fn: total.positive - tp, tn: total.negative - fp };
  }

  /* Rates of the decision by the words of the field. */
  shares(k = this.k) {
    const { tp, fp, fn, tn, accepted, rejected } = this.counts(k);
    if (tp === undefined) return { positive: accepted / (accepted + rejected) };
    const share = (part, whole) => (whole > 0 ? part / whole : null);
    return {
      tpr: share(tp, tp + fn), fpr: share(fp, fp + tn), precision: share(tp, tp + fp),
      accuracy: share(tp + tn, tp + tn + fp + fn), positive: share(tp + fp, tp + tn + fp + fn),
    };
  }

  /* Curves of decisions in bins of a column, at the threshold; errors as in Binned.mean. */
  inBins(found) {
    const sum = (weights) => weights.reduce((total, w) => total + w, 0);
    const curves = found.curves.map((curve) => {
      const value = curve.between.map((row) => (sum(row) > 0 ? sum(row.slice(this.k + 1)) / sum(row) : null));
      const error = value.map((share, b) => {
        const n = curve.effective[b];
        const p = (share * n + 1) / (n + 2);
        return share === null ? null : Math.sqrt((p * (1 - p)) / (n + 3));
      });
      return { ...curve, value, error };
    });
    return { ...found, curves };
  }

  /* Share of the rows whose decision is certified under the user's shift. */
  certified(k = this.k) {
    return this.app.data.robustness.certified[k];
  }

  draw() {
    const { app } = this;
    const [low, high] = this.ends();
    this.slider.value = (1000 * (this.value - low)) / (high - low);
    const width = this.widthNow();
    if (!this.shown || this.shown.width !== width) this.frame(width);
    isotone.charts.again(this.shown, (chart) => this.fill(chart));
    if (this.told === this.state) return;
    this.told = this.state;
    this.tell();
    this.late(true).forEach((each) => this.follow(each));
  }

  /* What figures show: a threshold, at a width, in a view. */
  get state() {
    return `${this.k} ${this.measuredAt} ${this.app.view.name}`;
  }

  /* Figures that show another threshold; those on the screen, or all. */
  late(seen = false) {
    return this.listeners.filter(({ figure, told }) => told !== this.state && (!seen || figure.seen()));
  }

  follow(each) {
    each.figure();
    each.told = this.state;
  }

  /* Measured once for every width of the window. */
  widthNow() {
    if (this.measuredAt !== window.innerWidth && this.picture.clientWidth > 0) {
      this.width = Math.max(this.picture.clientWidth, 230);
      this.measuredAt = window.innerWidth;
    }
    return this.width || 230;
  }

  /* Scores by class. */
  parts() {
    return Object.entries(this.app.data.statistics.outputs[0].histogram.parts).filter(([, part]) => part.share.length);
  }

  /* The axes, and the names of the classes below. */
  frame(width) {
    const { charts } = isotone;
    const parts = this.parts();
    const top = Math.max(...parts.flatMap(([, part]) => part.share), 1e-9);
    const [low, high] = this.ends();
    const chart = charts.frame({
      width, height: 112, bottom: 20, top: 4, right: 10, title: "scores by class, and the threshold",
      x: { low, high, name: "score" }, y: { low: 0, high: 1.1 * top, format: (v) => charts.percent(v) },
    });
    const names = parts.map(([name], c) => ({ name, kind: isotone.hue(name, c) }));
    this.legend.replaceChildren(...charts.legend(names).children);
    charts.drag(chart.svg, (event) => {
      const [share] = charts.place(event, chart);
      this.moveTo(this.nearest(this.at(share)));
    });
    this.align(chart, width);
    this.shown = chart;
    this.saves ||= isotone.downloads(() => this.shown, "scores and threshold");
    this.picture.replaceChildren(chart.svg, this.saves);
  }

  /* Scores by class, the line to drag, and where the current row is. */
  fill(chart) {
    const { charts } = isotone;
    const { app } = this;
    const { low: from, high: to } = app.data.statistics.outputs[0].histogram;
    const [low, high] = this.ends();
    this.parts().forEach(([name, part], c) => charts.steps(chart, from, to, part.share, isotone.hue(name, c), name));
    const now = Math.min(Math.max(app.scores[0], low), high);
    charts.marks(chart, [[now, 0]], "current", 1, 6);
    charts.rule(chart, { x: this.value, kind: "handle" });
  }

  /* The slider lies under the chart. */
  align(chart, width) {
    const { style } = this.slider.parentElement;
    style.marginLeft = `${chart.xs.from - 9}px`;
    style.marginRight = `${width - chart.xs.to - 9}px`;
  }

  tell() {
    const { node, format, percent, atLeast } = isotone.numbers;
    const { app } = this;
    const p = app.data.outcomes.probability ? `, probability ${percent(app.network.probability([this.value])[1], 3)}` : "";
    const own = this.k === this.stops.start ? [node("span", { class: "hint", text: "as declared" })] : [this.again];
    this.text.replaceChildren(node("span", {}, [
      node("span", { text: "Threshold: score ≥ " }), node("strong", { text: format(this.value, 5) }), node("span", { text: p }),
    ]), ...own);
    this.slider.setAttribute("aria-valuetext", `score at least ${format(this.value, 5)}${p}`);
    const { tpr, fpr, precision, positive } = this.shares();
    const shown = tpr === undefined
      ? [["accepted", positive]]
      : [["true-positive rate", tpr], ["false-positive rate", fpr], ["precision", precision]];
    const all = app.data.robustness ? [...shown, ["certified", this.certified(), atLeast]] : shown;
    this.rates.replaceChildren(...all.map(([name, share, text = percent]) => node("div", {}, [
      node("dt", { text: name }), node("dd", { text: share === null ? "–" : text(share) }),
    ])));
    const figure = document.querySelector("#figure-certified strong");
    if (figure && app.data.robustness) figure.textContent = atLeast(this.certified());
  }
};
