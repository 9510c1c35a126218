"use strict";
/* The state of the sliders in the address of the page: a link opens where one left off. */
isotone.state = (() => {
  /* Row, view and threshold as text behind the #. */
  function write(app) {
    const parts = [`row=${app.row.map((x) => Number(x)).join(",")}`, `view=${app.views.indexOf(app.view)}`];
    if (app.threshold) parts.push(`stop=${app.threshold.k}`);
    return `#${parts.join("&")}`;
  }

  /* What the address asks for, if it is about this model; whether it was. */
  function read(app, hash = window.location.hash) {
    const found = Object.fromEntries(hash.slice(1).split("&").map((part) => part.split("=")));
    if (found.row === undefined) return false;
    const row = found.row.split(",").map(Number);
    if (row.length !== app.row.length || !row.every(Number.isFinite)) return false;
    app.row = row;
    const view = Number(found.view);
    if (app.views[view]) app.view = app.views[view];
    const stop = Number(found.stop);
    if (app.threshold && app.threshold.stops.at[stop] !== undefined) {
      app.threshold.k = stop;
      app.judge.moveTo(app.threshold.stops.at[stop]);
    }
    return true;
  }

  /* A button that copies the link. */
  function offer(app) {
    const button = document.getElementById("copy-link");
    if (window.location.protocol === "about:") return; // inside a notebook the page has no address
    button.hidden = false;
    button.addEventListener("click", () => {
      const link = window.location.href.split("#")[0] + write(app);
      window.history.replaceState(null, "", write(app));
      if (navigator.clipboard) navigator.clipboard.writeText(link).then(() => say("Link copied"), () => say("Link is in the address bar"));
      else say("Link is in the address bar");
    });

    function say(text) {
      button.textContent = text;
      setTimeout(() => { button.textContent = "Copy link to this row"; }, 2000);
    }
  }

  return { write, read, offer };
})();
