"use strict";
/* Recourse: the least change of the columns that may change which turns the decision, found by search, and a
   bound from below by the certificate, as isotone.explanation.find_recourse has it. One standard deviation of
   a column costs 1, and so do a rank and another category; values stay in the range of the table. */
isotone.Recourse = class {
  /* `allowed` is "up", "down" or "any" by the name of a column; others stay. */
  constructor(app, allowed) {
    const some = app.data.controls.filter(({ name }) => allowed[name]);
    this.app = app;
    this.now = app.judge.decide(app.scores);
    this.exact = app.data.network.grid !== null && app.judge.kind === "threshold";
    this.random = isotone.random(7);
    this.categories = some.filter(({ kind }) => kind === "category");
    this.moves = some.filter((control) => control.kind !== "category" && app.chosen(control) !== -1)
      .map((control) => this.move(control, allowed[control.name]));
  }

  move(control, side) {
    const ordered = control.kind === "ordered";
    const whole = ordered || control.whole;
    const [low, high] = ordered ? [0, control.labels.length - 1] : [control.low, control.high];
    const spread = ordered ? 1 : control.spread ?? (high - low) / 4;
    return {
      control, whole, i: control.feature, cost: spread > 0 ? 1 / spread : 1, up: side !== "down", down: side !== "up",
      low: whole ? Math.ceil(low) : low, high: whole ? Math.floor(high) : high,
    };
  }

  /* How far a column may move to a side. */
  far({ i, low, high, up, down }, side) {
    const x = this.app.row[i];
    const room = side > 0 ? high - x : x - low;
    return (side > 0 ? up : down) && low <= high ? Math.max(room, 0) : 0;
  }

  /* The direction of the score along a column toward the other decision, where it is proved. */
  sign(i) {
    if (!this.exact) return 0;
    return (this.now === 1 ? -1 : 1) * this.app.data.network.directions[0][i];
  }

  /* The sides that can help: a column with a direction helps on one alone. */
  sides() {
    return this.moves.flatMap((move) => [1, -1].flatMap((side) => {
      const far = this.far(move, side);
      return far > 0 && side * this.sign(move.i) >= 0 ? [{ move, side, far, price: far * move.cost }] : [];
    }));
  }

  turns(row) {
    return this.app.judge.decide(this.app.network.score(row)) !== this.now;
  }

  cost(row, start, paid) {
    return paid + this.moves.reduce((sum, { i, cost }) => sum + cost * Math.abs(row[i] - start[i]), 0);
  }

  /* { row, cost, bound }: the best that was found, with an infinite cost if nothing was. */
  * find() {
    const best = { row: null, cost: Infinity };
    let possible = false;
    for (const { row, paid } of this.choices()) {
      const found = yield* this.search(row, paid);
      possible ||= found.possible;
      if (found.cost < best.cost) Object.assign(best, found);
    }
    const bound = possible ? this.bound() : Infinity;
    return { row: best.row, cost: best.cost, bound };
  }

  /* Rows with other categories, at most 64 of them; the first is the current one. */
  choices() {
    const { app } = this;
    return this.categories.reduce((rows, control) => rows.flatMap(({ row, paid }) => [
      { row, paid }, ...control.labels.flatMap((text, c) => {
        if (c === app.chosen(control) || text === "(missing)") return [];
        const made = [...row];
        app.choose(control, c, made);
        return [{ row: made, paid: paid + 1 }];
      }),
    ]).slice(0, 64), [{ row: [...app.row], paid: 0 }]);
  }

  /* Rays of equal cost: along single columns, along random ones among the most helpful, then near the best. */
  * search(start, paid) {
    const sides = this.sides();
    const best = { row: null, cost: Infinity, weights: null, possible: true };
    if (this.turns(start)) return { row: start, cost: paid, possible: true };
    if (!sides.length) return { cost: Infinity, possible: false };
    const ordered = sides.every(({ move }) => this.sign(move.i) !== 0);
    const farthest = this.at(start, sides, sides.map(() => 1), Infinity);
    if (ordered && !this.turns(farthest)) return { cost: Infinity, possible: false };
    const attempt = (weights) => {
      const row = this.along(start, sides, weights, ordered);
      const cost = row ? this.cost(row, start, paid) : Infinity;
      if (cost < best.cost) Object.assign(best, { row, cost, weights });
    };
    const strong = this.strongest(start, sides, 12);
    for (const k of strong) {
      attempt(sides.map((_, j) => (j === k ? 1 : 0)));
      yield;
    }
    attempt(sides.map(() => 1));
    for (let n = 0; n < 64; n += 1) {
      attempt(this.draw(sides.length, strong));
      yield;
    }
    for (let n = 0; n < 96 && best.weights; n += 1) {
      attempt(this.near(best.weights, strong, 0.97 ** n));
      yield;
    }
    if (best.row) best.row = this.rounded(this.polish(this.simpler(best, start, sides, ordered), start), start);
    return { row: best.row, cost: best.row ? this.cost(best.row, start, paid) : Infinity, possible: true };
  }

  /* The sides by how much of the lead a step of equal cost takes away. */
  strongest(start, sides, most) {
    const { judge, network } = this.app;
    const gain = sides.map((_, k) => {
      const row = this.at(start, sides, sides.map((__, j) => (j === k ? 1 : 0)), 0.5);
      const scores = network.score(row);
      const lead = judge.lead(scores);
      return this.turns(row) ? Infinity : -Math.abs(lead);
    });
    return sides.map((_, k) => k).sort((a, b) => gain[b] - gain[a]).slice(0, most);
  }

  /* A few of the strongest sides with random weights, half of the time one side long before the next. */
  draw(n, strong) {
    const weights = new Array(n).fill(0);
    const power = this.random() < 0.5 ? 1 : 5;
    const some = Math.min(1 + Math.floor(this.random() * 4), strong.length);
    for (let k = 0; k < some; k += 1) {
      const at = strong[Math.floor(this.random() ** 1.5 * strong.length)];
      weights[at] = (-Math.log(this.random())) ** power;
    }
    return weights;
  }

  near(weights, strong, width) {
    const total = weights.reduce((sum, w) => sum + w, 0);
    const made = weights.map((w) => w * Math.exp(2 * width * (this.random() - 0.5)));
    if (this.random() < 0.5) made[strong[Math.floor(this.random() * strong.length)]] += 0.3 * width * total * this.random();
    return made;
  }

  /* The row at a cost along a ray; sides that have come to their end stay there. */
  at(start, sides, weights, cost) {
    const row = [...start];
    const total = weights.reduce((sum, w) => sum + w, 0);
    sides.forEach(({ move, side, far }, k) => {
      if (!weights[k]) return;
      const by = Math.min((cost * weights[k]) / total / move.cost, far);
      row[move.i] = this.placed(move, start[move.i], side, by === far ? far : by);
    });
    return row;
  }

  /* A value moved to a side, outward to a whole number where values are whole. */
  placed({ whole, low, high }, x, side, by) {
    const there = x + side * by;
    const round = side > 0 ? Math.ceil : Math.floor;
    return Math.min(Math.max(whole ? round(there - side * 1e-9) : there, Math.min(low, x)), Math.max(high, x));
  }

  /* The first row of a ray that turns the decision: by halving where directions are proved, else after a look
     at some points. */
  along(start, sides, weights, ordered) {
    const total = weights.reduce((sum, w) => sum + w, 0);
    const end = Math.max(...sides.map(({ price }, k) => (weights[k] > 0 ? (price * total) / weights[k] : 0)));
    const at = (cost) => this.at(start, sides, weights, cost);
    const steps = ordered ? 1 : 24;
    let [near, far] = [0, null];
    for (let k = 1; k <= steps && far === null; k += 1) {
      const cost = end * (k / steps) ** 2;
      if (this.turns(at(cost))) far = cost;
      else near = cost;
    }
    if (far === null) return null;
    for (let k = 0; k < 30 && far - near > 1e-7 * far; k += 1) {
      const middle = (near + far) / 2;
      if (this.turns(at(middle))) far = middle;
      else near = middle;
    }
    return at(far);
  }

  /* The same without columns that hardly move, if that costs at most 1 % more. */
  simpler({ row, cost, weights }, start, sides, ordered) {
    const moved = ({ i, cost: unit }) => unit * Math.abs(row[i] - start[i]);
    const fewer = weights.map((w, k) => (moved(sides[k].move) < 0.02 * cost ? 0 : w));
    const found = fewer.some((w) => w > 0) ? this.along(start, sides, fewer, ordered) : null;
    return found && this.cost(found, start, 0) <= 1.01 * this.cost(row, start, 0) ? found : row;
  }

  /* Short numbers a little farther on, if they turn the decision as well. */
  rounded(found, start) {
    const row = [...found];
    for (const { i, cost, whole, low, high } of this.moves) {
      const side = Math.sign(row[i] - start[i]);
      if (!side || whole) continue;
      const unit = 10 ** (Math.floor(Math.log10(1 / cost)) - 3);
      const short = Number(((side > 0 ? Math.ceil : Math.floor)(row[i] / unit) * unit).toPrecision(12));
      const tries = [...row];
      tries[i] = Math.min(Math.max(short, Math.min(low, start[i])), Math.max(high, start[i]));
      if (this.turns(tries)) row[i] = tries[i];
    }
    return row;
  }

  /* Every column moved back as far as the others allow, twice. */
  polish(found, start) {
    const row = [...found];
    const moved = this.moves.filter(({ i }) => row[i] !== start[i]);
    for (const move of [...moved, ...moved]) {
      const { i } = move;
      const [x, side] = [start[i], Math.sign(row[i] - start[i])];
      let [near, far] = [0, Math.abs(row[i] - x)];
      const tries = [...row];
      for (let k = 0; k < 30 && far - near > (move.whole ? 0.5 : 1e-7 * far); k += 1) {
        const middle = (near + far) / 2;
        tries[i] = this.placed(move, x, side, middle);
        if (this.turns(tries)) far = Math.abs(tries[i] - x);
        else near = middle;
      }
      tries[i] = this.placed(move, x, side, far);
      if (this.turns(tries)) row[i] = tries[i];
    }
    return row;
  }

  /* No allowed change that turns the decision costs less: see isotone.explanation.recourse.bound. */
  bound() {
    const { judge, scores } = this.app;
    if (judge.kind === "threshold") return this.boundOf(judge.decisions, scores[0]);
    const winner = judge.decide(scores);
    return Math.min(...judge.rivals[winner].map(([other, each]) => this.boundOf(each, scores[winner] - scores[other])));
  }

  boundOf(decisions, score) {
    const off = Math.abs(score - decisions.threshold) * isotone.SHORTEN - 2 * decisions.error;
    if (!(off > 0)) return 0;
    const n = this.moves.length + this.categories.length;
    const nLevels = n === 1 ? 1 : (n > 24 ? 4 : 16) * n; // fewer for many, for time; a bound all the same
    const levels = Array.from({ length: nLevels }, (_, k) => ((k + 1) / nLevels) * (off * isotone.SHORTEN));
    const [fall, rise] = decisions.coordinates;
    const [below, above] = score >= decisions.threshold ? [rise, fall] : [fall, rise];
    const tables = [
      ...this.moves.map((move) => levels.map((level) => this.leastMove(move, below, above, level))),
      ...this.categories.map((control) => this.leastChoices(control, below, above, levels)),
    ];
    return this.combine(tables, nLevels)[nLevels - n + 1] * isotone.SHORTEN;
  }

  /* The least cost at which a column alone can reach a level. */
  leastMove(move, below, above, level) {
    const x = this.app.row[move.i];
    return Math.min(...[[-1, below], [1, above]].map(([side, coordinates]) => {
      const distance = coordinates.distance(move.i, x, level, side);
      const far = this.far(move, side);
      if (!(distance <= far && far > 0)) return Infinity;
      return move.cost * (move.whole && Number.isInteger(x) ? Math.ceil(distance * isotone.SHORTEN) : distance);
    }));
  }

  leastChoices(control, below, above, levels) {
    const change = (along, i) => along.transform(i, 1) - along.transform(i, 0);
    const own = control.features[this.app.chosen(control)];
    const fall = own === undefined ? 0 : change(below, own);
    const gain = fall + Math.max(...control.features.map((i) => change(above, i)));
    return levels.map((level) => (gain / isotone.SHORTEN >= level ? 1 : Infinity));
  }

  /* The least cost at which all columns together reach a level. */
  combine(tables, nLevels) {
    let best = new Float64Array(nLevels + 1).fill(Infinity);
    best[0] = 0;
    for (const costs of tables) {
      const found = best.slice();
      costs.forEach((cost, k) => {
        if (cost === Infinity) return;
        for (let at = 0; at <= nLevels; at += 1) found[at] = Math.min(found[at], best[Math.max(at - k - 1, 0)] + cost);
      });
      best = found;
    }
    return best;
  }
};

/* The section: what may change, and the change that was found. */
isotone.recourse = (app) => {
  const { node, format, plain } = isotone.numbers;
  const { data } = app;
  if (!app.judge) return;
  const allowed = Object.fromEntries(data.controls.filter(({ kind }) => kind === "number").map(({ name }) => [name, "any"]));
  const lead = "The least change that turns the decision, several columns at once. A standard deviation of a column costs 1, and "
    + "values stay in the range of the table.";
  const place = isotone.panels.section("recourse", "Recourse", lead);
  document.getElementById("reasons").append(place);
  const body = node("div", { "aria-live": "polite" }, [isotone.panels.hint("Searching …")]);
  place.append(choices(), body);
  app.onChange(draw);

  function choices() {
    const sides = [["any", "may change"], ["up", "may rise"], ["down", "may fall"], ["", "stays"]];
    const rows = data.controls.map((control, k) => {
      const some = control.kind === "category" ? [sides[0], sides[3]] : sides;
      const select = node("select", { id: `allowed-${k}` }, some.map(([value, text]) => node("option", { value, text })));
      select.value = allowed[control.name] || "";
      select.addEventListener("change", () => {
        allowed[control.name] = select.value;
        app.changed();
      });
      return node("p", { class: "field" }, [node("label", { for: select.id, text: control.name }), select]);
    });
    const box = node("div", { ...isotone.charts.scrolling, class: "scroll tall allowed", "aria-label": "What may change" }, rows);
    const fold = node("details", { class: "fold" }, [node("summary", { text: "What may change" }), box, ...isotone.more(box, rows.length, "columns", "list")]);
    fold.open = data.controls.length <= 12;
    return fold;
  }

  function* draw() {
    const search = new isotone.Recourse(app, allowed);
    if (!search.moves.length && !search.categories.length) {
      body.replaceChildren(isotone.panels.hint("Nothing may change: choose columns above."));
      return;
    }
    const found = yield* search.find();
    app.turned = found;
    body.replaceChildren(...(found.row ? change(found) : none(found)));
  }

  function certified({ bound }) {
    if (bound === 0) return "The certificate excludes nothing here: the row is too close to the threshold.";
    return `Certified: no allowed change that costs less than ${isotone.inward(bound, -1)} turns the decision.`;
  }

  function none(found) {
    if (found.bound === Infinity) return [node("p", {}, [node("strong", { text: "Proved: no allowed change turns the decision." })])];
    return [node("p", { text: "No allowed change was found that turns the decision." }), isotone.panels.hint(certified(found))];
  }

  function change(found) {
    const moved = data.controls.filter((control) => text(control, found.row) !== text(control, app.row));
    const rows = moved.map((control) => node("tr", {}, [
      node("th", { scope: "row", text: control.name }),
      node("td", { class: "number", text: text(control, app.row) }), node("td", { class: "number", text: text(control, found.row) }),
    ]));
    const heads = ["column", "now", "change to"].map((each) => node("th", { text: each }));
    const go = node("button", { type: "button", id: "turn", text: "Go there", onclick: () => app.setRow(found.row) });
    const { classes } = data.outcomes;
    const then = classes[app.judge.decide(app.network.score(found.row))];
    return [
      node("p", {}, [node("span", { text: `Found, at a cost of ${format(found.cost)}: ` }), node("strong", { text: then })]),
      node("div", { class: "scroll" }, [node("table", {}, [node("thead", {}, [node("tr", {}, heads)]), node("tbody", {}, rows)])]),
      node("p", { class: "field" }, [go]),
      isotone.panels.hint(`${certified(found)} The least change lies in between.`),
    ];
  }

  function text(control, row) {
    if (app.lacks(control, row)) return "missing";
    return control.kind === "number" ? plain(row[control.feature]) : control.labels[app.chosen(control, row)] || "missing";
  }
};
