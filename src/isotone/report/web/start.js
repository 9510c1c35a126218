"use strict";
/* The start of the page: which sections there are, and when they are drawn. */
isotone.start = (data) => {
  const { count } = isotone.charts;
  if (isotone.closing) isotone.closing.abort(); // of another report in the same window
  isotone.closing = new AbortController();
  const { signal } = isotone.closing;
  const app = new isotone.Explorer(data);
  const still = []; // drawn when the view or the width changes, not with every row
  let drawn = "";
  isotone.app = app;
  app.build(document.getElementById("explorer"));
  if (data.stops) app.threshold = new isotone.Threshold(app);
  const heat = new isotone.HeatMap(app, document.getElementById("heat"));
  explain();
  app.onChange(draw);
  isotone.reasons(app);
  isotone.recourse(app);
  isotone.rivals(app, still);
  if (data.sample) isotone.importance(app, still);
  if (data.sample) isotone.quality(app, still);
  if (data.robustness) isotone.robustness(app, still);
  if (data.history) training();
  if (isotone.state.read(app)) refresh();
  isotone.state.offer(app);
  app.onChange(drawSeen, true);
  app.changed();
  followWindow();

  function refresh() {
    app.widgets.forEach((widget) => widget.refresh());
    const view = document.getElementById("view");
    if (view) view.value = app.views.indexOf(app.view);
  }

  /* The cards on the screen, with few points while a slider moves. */
  function drawSeen() {
    const cards = seen();
    const size = app.network.size + (app.rival ? app.rival.network.size : 0);
    const points = Math.min(Math.max(Math.floor(app.budget / size / Math.max(cards.length, 1)), 12), app.nPoints);
    isotone.drawResponses(app, cards, isotone.responses(app, cards.map(({ shown }) => shown), points));
    if (app.threshold) app.threshold.draw();
  }

  /* Looked for anew after a scroll: asking where cards are makes the browser lay out the page. */
  function seen() {
    const tall = window.innerHeight;
    app.seen ||= app.cards.filter(({ card }) => {
      const { top, bottom, width } = card.getBoundingClientRect();
      return width > 0 && bottom > -50 && top < tall + 50;
    });
    return app.seen;
  }

  function* draw() {
    app.seen = null;
    const responses = [];
    for (const control of app.curved) {
      responses.push(...isotone.responses(app, [control], app.nPoints));
      yield;
    }
    isotone.flipTable(app, responses);
    yield;
    const cards = app.curved.map((control) => app.cards.find((card) => card.control === control));
    const curves = cards.map(({ shown, control }, k) => (
      shown === control ? responses[k] : isotone.responses(app, [shown], app.nPoints)[0]
    ));
    for (let k = 0; k < cards.length; k += 4) {
      isotone.drawResponses(app, cards.slice(k, k + 4), curves.slice(k, k + 4), responses);
      yield;
    }
    if (app.threshold) yield* follow(app.threshold);
    heat.draw();
    yield;
    app.drawnAt = document.body.clientWidth;
    const state = `${app.drawnAt} ${app.view.name}`;
    if (state === drawn) return;
    drawn = state;
    for (const redraw of still) {
      redraw();
      yield;
    }
  }

  /* The threshold, and the figures that follow it; those off the screen waited until now. */
  function* follow(threshold) {
    threshold.draw();
    for (const each of threshold.late()) {
      threshold.follow(each);
      yield;
    }
  }

  function followWindow() {
    let width = window.innerWidth;
    window.addEventListener("resize", () => {
      app.seen = null;
      if (window.innerWidth === width) return;
      width = window.innerWidth;
      app.changed();
    }, { signal });
    window.addEventListener("scroll", () => {
      app.seen = null;
      if (app.cards.length > app.curved.length) app.frame ||= requestAnimationFrame(() => {
        app.frame = null;
        drawSeen();
      });
    }, { passive: true, signal });
    window.addEventListener("hashchange", () => {
      if (!isotone.state.read(app)) return;
      refresh();
      app.changed();
    }, { signal });
    window.addEventListener("beforeprint", () => {
      document.querySelectorAll("details").forEach((each) => { each.open = true; });
    }, { signal });
    offerPage();
    if (window.location.protocol === "about:") stayInFrame();
  }

  /* In a notebook's frame links to sections would lead to the notebook itself. */
  function stayInFrame() {
    document.addEventListener("click", (event) => {
      const link = event.target.closest('a[href^="#"]');
      if (!link) return;
      event.preventDefault();
      document.getElementById(link.getAttribute("href").slice(1)).scrollIntoView();
    }, { signal });
  }

  /* One page for an auditor: figures, the decisions at this threshold, and the proof. */
  function offerPage() {
    const button = document.getElementById("print-page");
    button.hidden = false;
    button.addEventListener("click", () => {
      document.body.classList.add("one-page");
      window.print();
    });
    window.addEventListener("afterprint", () => document.body.classList.remove("one-page"), { signal });
  }

  function explain() {
    const lines = ["Move a slider: the model runs inside this page. A curve shows the answer as that feature moves alone, and "
      + "cannot leave its certified band."];
    if (data.sample) lines.push("Gray bars: rows of the table.");
    say("explore-lead", lines.join(" "));
    say("map-lead", "Two features move, the others stay at the current row. Click or drag to move there.");
    if (data.sample) say("footnote", `${held()} Statistics are of all rows.`);
  }

  function say(id, text) {
    document.getElementById(id).textContent = text;
  }

  /* Which rows of the table the file holds. */
  function held() {
    const { n, name } = data.sample;
    const some = data.rows.number.length;
    if (some === 0) {
      return `It holds no row of ${name}, only counts, medians and ranges of columns. ${data.advice.rows}`;
    }
    if (some === n) return `It holds all ${count(n)} rows of ${name}.`;
    return `It holds ${count(some)} of the ${count(n)} rows of ${name}, ${data.advice.drawn}.`;
  }

  function training() {
    const { panels } = isotone;
    const { members } = data.history;
    const of = members > 1 ? `, averaged over ${members} networks that were trained together` : "";
    const lead = `Mean loss in every epoch, a pass over the training rows${of}.`;
    const place = panels.section("training", "Training", lead);
    still.push(panels.panel(place, "Loss by epoch", (wide) => panels.losses(wide, data.history)));
  }
};

{
  const held = document.getElementById("data");
  if (held) isotone.start(JSON.parse(held.textContent));
}
