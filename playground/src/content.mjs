// Content: everything that the scripts of a report read, and its parts in HTML.

import { Controls } from "./controls.mjs";
import { effects } from "./tables/effects.mjs";
import { figures } from "./figures.mjs";
import { escape } from "./markup.mjs";
import { describeDecision, describeNetwork } from "./network.mjs";
import { Outcomes } from "./outcomes.mjs";
import { Problem, quoted } from "./problem.mjs";
import { describeRobustness } from "./tables/robustness.mjs";
import { Rows, couldBeTarget } from "./tables/rows.mjs";
import { Scored } from "./tables/scored.mjs";
import { describeStatistics } from "./tables/statistics.mjs";
import { backgroundOf, describeStops, presetsOf, shownRows, stopsOf } from "./tables/stops.mjs";
import { badge, lead, parametersOf, proof } from "./words.mjs";

const MOST_PARAMETERS = 1e6;
const ADVICE = {
  target: "choose one above", shift: "", drawn: "evenly spaced",
  rows: "Drop the table beside the model on the playground to see rows, too.",
};

/**
 * What a report shows of an examined model and of a table or null.
 *
 * `options` are { target, unseen, threshold, alone }; an `undefined` target is the one that the model was
 * trained on, if the table has it. `alone` leaves the rows of the table out.
 */
export class Content {
  constructor(found, title, table = null, options = {}) {
    const { model } = found, threshold = options.threshold ?? null;
    refuseLarge(model, title);
    const named = new Outcomes(model, threshold, null).target;
    this.targets = table === null ? [] : targetsOf(model, table, threshold);
    this.target = options.target === undefined ? this.targets.find((name) => name === named) ?? null : options.target;
    this.outcomes = new Outcomes(model, threshold, this.target);
    const network = describeNetwork(model, found);
    this.model = model;
    this.network = new isotone.Network(network);
    const read = () => new Rows(model, table, this.outcomes, { ...options, target: this.target });
    this.rows = table === null || options.alone ? null : read();
    this.scored = this.rows === null ? null : new Scored(this.network, this.outcomes, this.rows);
    this.controls = new Controls(model, this.network, this.rows);
    const start = this.controls.start(), measured = effects(this.controls, start);
    this.data = {
      network,
      decision: describeDecision(model, found, this.outcomes.threshold),
      outcomes: this.outcomes.describe(),
      controls: this.controls.all().map((control, k) => ({ ...control, effect: measured[k] })),
      start, sample: null, rivals: [], history: null, advice: ADVICE,
      ...(this.rows === null ? {} : this.measured(found, measured)),
    };
    this.parts = {
      title: escape(title), lead: lead(model, this.outcomes), badge: badge(found, this.outcomes),
      figures: figures(model, this.outcomes, this.data), verdict: proof(model, found, this.outcomes),
    };
  }

  measured(found, effect) {
    const { outcomes, rows, scored } = this, stops = stopsOf(outcomes, scored.scores[0]);
    const single = found.model.nOutputs === 1 || outcomes.kind === "classes";
    const decision = single ? describeDecision(found.model, found, outcomes.threshold ?? 0) : null;
    return {
      sample: rows.describe(),
      stops: describeStops(outcomes, rows, scored.scores[0], stops),
      presets: presetsOf(this.controls, outcomes, rows, scored),
      background: backgroundOf(this.controls, rows, scored),
      rows: shownRows(rows),
      statistics: describeStatistics(outcomes, rows, scored, stops),
      robustness: describeRobustness(this, decision, effect, stops),
    };
  }
}

/** Sliders of a model that takes long would not move. */
function refuseLarge(model, name) {
  const n = parametersOf(model);
  if (n <= MOST_PARAMETERS) return;
  throw new Problem(
    `${quoted(name)} has ${n.toLocaleString("en-US")} parameters`,
    `this page shows reports of models with up to ${MOST_PARAMETERS.toLocaleString("en-US")}`,
    "use isotone certify and isotone score, which have no such limit",
  );
}

/** The columns of a table that the model might predict. */
function targetsOf(model, table, threshold) {
  const outcomes = new Outcomes(model, threshold, null), taken = model.inputs.columns.map((column) => column.name);
  return table.names.filter((name) => !taken.includes(name) && couldBeTarget(table, name, outcomes));
}
