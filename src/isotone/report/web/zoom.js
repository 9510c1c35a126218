"use strict";
/* Zoom: a card shows a part of its axis, twice as near with every step, and always one that holds the current row.
   `shown` is the control with that axis, `full` the control itself; all else on the page uses the whole axis. */
isotone.zoom = (() => {
  const NEAREST = 256; // times
  const FEWEST = 4; // whole numbers

  /* Where the row is along the axis of a card. */
  function here(app, { control }) {
    return app.network.along(control.feature, app.row[control.feature]);
  }

  function show(app, card, [low, high]) {
    const { control } = card;
    const [least, most] = [low, high].map((t) => app.network.back(control.feature, t));
    card.shown = { ...control, full: control, axis: [low, high], low: Math.max(control.low, least), high: Math.min(control.high, most) };
    card.placed();
  }

  /* Half of what is shown; the row stays where it is on the screen. Nothing if that is too near. */
  function nearer(app, card) {
    const at = here(app, card);
    const [low, high] = [Math.min(card.shown.axis[0], at), Math.max(card.shown.axis[1], at)];
    const next = [(low + at) / 2, (high + at) / 2];
    if (!isWide(app, card.control, next)) return;
    show(app, card, next);
    app.changed();
  }

  function isWide(app, { axis, feature, whole }, [low, high]) {
    const [least, most] = [low, high].map((t) => app.network.back(feature, t));
    return high - low >= (axis[1] - axis[0]) / NEAREST && (!whole || most - least >= FEWEST);
  }

  /* The row in the middle, if it went elsewhere. */
  function follow(app, card) {
    if (!card.shown.full) return;
    const [low, high] = card.shown.axis;
    const [at, half] = [here(app, card), (high - low) / 2];
    if (at < low - 1e-9 * half || at > high + 1e-9 * half) show(app, card, [at - half, at + half]);
  }

  function reset(app, card) {
    card.shown = card.control;
    card.placed();
    app.changed();
  }

  return { nearer, follow, reset };
})();
