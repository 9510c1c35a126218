"use strict";
/* What would flip the decision: the certified range of every feature, and the nearest flips. */

/* The nearest values of one feature, down and up, that flip the decision, as far as was looked. */
isotone.nearestFlips = (app, control, samples) => {
  const { judge, network } = app;
  const i = control.feature;
  const now = judge.decide(app.scores);
  const row = [...app.row];
  const start = samples.findIndex(({ value }) => value === app.row[i]);
  return { down: search(-1), up: search(1) };

  function search(side) {
    for (let k = start + side; k >= 0 && k < samples.length; k += side) {
      if (judge.decide(samples[k].scores) !== now) {
        return narrow(samples[k - side].value, samples[k].value, side);
      }
    }
    return null;
  }

  /* The flip between a value that does not and one that does. */
  function narrow(inside, outside, side) {
    let [near, far] = [inside, outside];
    for (let k = 0; k < 60; k += 1) {
      const middle = (near + far) / 2;
      if (flips(middle)) far = middle;
      else near = middle;
    }
    if (control.whole) far = side > 0 ? Math.ceil(far) : Math.floor(far);
    return flips(far) ? far : null;
  }

  function flips(value) {
    row[i] = value;
    return judge.decide(network.score(row)) !== now;
  }
};

/* The table of what would flip the decision, nearest first. */
isotone.flipTable = (app, responses) => {
  const { node, format, plain } = isotone.charts;
  if (!app.judge) return;
  const { network } = app;
  const found = responses.map(({ control, samples }) => (
    control.kind === "number" ? number(control, samples) : category(control, samples)
  )).sort((a, b) => a.far - b.far);
  const best = found[0];
  const lead = best && Number.isFinite(best.far)
    ? ["Smallest single change that flips the decision: ", best.says]
    : ["No change of a single feature within its slider flips the decision.", ""];
  app.flipPlace.replaceChildren(
    node("h3", { text: "What would flip it" }),
    node("p", {}, [node("span", { text: lead[0] }), node("strong", { text: lead[1] })]),
    ...listed(),
    node("p", {
      class: "hint",
      text: "Certified is proved for every value in that range, the feature moving alone; found "
        + "is the nearest flip that a search along the slider met.",
    }),
  );

  /* The table, and a line that says so where it is taller than its window or has fewer rows. */
  function listed() {
    const box = node("div", { ...isotone.charts.scrolling, "aria-label": "What would flip the decision" }, [table()]);
    const [some, all] = [found.length, app.data.controls.length];
    const few = some < all
      ? [node("p", { class: "hint", text: `The ${some} of ${all} features with the largest measured effects.` })] : [];
    return [box, ...isotone.more(box, some, "features"), ...few];
  }

  function table() {
    const heads = ["feature", "now", "certified: cannot flip", "found: flips at"];
    const rows = found.map((each) => node("tr", {}, [
      node("th", { scope: "row", text: each.name }),
      ...each.cells.map((text) => node("td", { class: "number", text })),
    ]));
    return node("table", {}, [
      node("thead", {}, [node("tr", {}, heads.map((text) => node("th", { text })))]),
      node("tbody", {}, rows),
    ]);
  }

  function number(control, samples) {
    if (app.lacks(control)) return { name: control.name, far: Infinity, says: "", cells: ["missing", "–", "–"] };
    const i = control.feature;
    const now = app.row[i];
    const flips = isotone.nearestFlips(app, control, samples);
    const far = (v) => {
      const wide = control.axis[1] - control.axis[0];
      return Math.abs(network.along(i, v) - network.along(i, now)) / wide;
    };
    const at = [flips.down, flips.up].filter((v) => v !== null).sort((a, b) => far(a) - far(b));
    const texts = at.map((v) => (control.whole ? plain(v) : isotone.inward(v, v > now ? 1 : -1, Math.abs(v - now))));
    const move = at[0] > now ? "raise" : "lower";
    return {
      name: control.name,
      far: at.length ? far(at[0]) : Infinity,
      says: `${move} ${control.name} from ${plain(now)} to ${texts[0]}`,
      cells: [plain(now), safe(control, now), texts.join(" or ") || "not within the slider"],
    };
  }

  /* Where the feature cannot flip the decision by itself. */
  function safe({ feature: i, whole }, now) {
    const [down, up] = [app.radius.down[i], app.radius.up[i]];
    const low = whole ? plain(Math.ceil(now - down)) : isotone.inward(now - down, 1, down);
    const high = whole ? plain(Math.floor(now + up)) : isotone.inward(now + up, -1, up);
    if (down === Infinity && up === Infinity) return "at any value";
    if (down === 0 && up === 0) return "nothing certified";
    if (down === Infinity) return `at or below ${high}`;
    return up === Infinity ? `at or above ${low}` : `${low} to ${high}`;
  }

  function category(control, samples) {
    const now = app.judge.decide(app.scores);
    const at = app.chosen(control);
    const steps = Math.max(samples.length - 1, 1);
    const far = ({ value }) => (control.kind === "category" || at < 0 ? 1 : Math.abs(value - at) / steps);
    const flips = samples.filter(({ scores }) => app.judge.decide(scores) !== now).sort((a, b) => far(a) - far(b));
    const names = flips.map(({ value }) => control.labels[value]);
    const current = control.labels[at] || (at < 0 && control.kind === "ordered" ? "missing" : "–");
    return {
      name: control.name,
      far: flips.length ? far(flips[0]) : Infinity,
      says: `change ${control.name} from ${current} to ${names[0]}`,
      cells: [current, proved(control, at), names.join(", ") || "no category"],
    };
  }

  /* The ordered categories that cannot flip the decision. */
  function proved(control, at) {
    if (control.kind === "category" || at < 0) return "–";
    const [down, up] = [app.radius.down[control.feature], app.radius.up[control.feature]];
    return control.labels.filter((_, c) => c >= at - down && c <= at + up).join(", ");
  }
};
