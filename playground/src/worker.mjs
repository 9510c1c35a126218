// The worker: answers what the page asks, one question after the other, and keeps the files between them.

import { readModel } from "../../verifier/src/model.mjs";
import { BadFile } from "../../verifier/src/refusal.mjs";
import { chain } from "./chain.mjs";
import { Content } from "./content.mjs";
import { Examination, keeps } from "./examination.mjs";
import { visible } from "./markup.mjs";
import { Problem, quoted } from "./problem.mjs";
import { readTable } from "./tables/table.mjs";

/** The files that are open. */
export class Session {
  constructor() {
    this.found = this.name = this.table = null;
  }

  /** Answer { kind: "Model" | "Table" | "Nothing" | "Report", ... }: what to show, or what is wrong. */
  answer(message) {
    try {
      return this[`answer${message.kind}`](message);
    } catch (error) {
      if (error instanceof Problem) return { kind: "Problem", about: message.kind, ...error.told };
      throw error;
    }
  }

  /** Read and judge a model file. */
  answerModel({ name, bytes }) {
    const start = performance.now();
    const found = new Examination(read(name, bytes));
    Object.assign(this, { found, name });
    const { model, verdict, reason } = found, took = performance.now() - start;
    const columns = model.inputs.columns.map((column) => column.name);
    return {
      kind: "Model", name, verdict, reason, took, columns, fingerprint: model.fingerprint,
      decides: model.nOutputs === 1, logits: model.outputs === "logits",
      directions: directionsOf(found), chain: chain(model),
    };
  }

  answerTable({ name, bytes }) {
    this.table = readTable(name, bytes);
    return { kind: "Table", name, n: this.table.n, columns: this.table.names };
  }

  /** Forget the table. */
  answerNothing() {
    this.table = null;
    return { kind: "Table", name: null, n: 0, columns: [] };
  }

  /** The report of the model and the table, as JSON, with its parts; and scores by output. */
  answerReport({ target, unseen, threshold, alone = false }) {
    const start = performance.now();
    const content = new Content(this.found, this.name, this.table, { target, unseen, threshold, alone });
    const { rows, scored, parts, targets } = content;
    return {
      kind: "Report", parts, targets, target: content.target, data: toJson(content.data), took: performance.now() - start,
      numbers: rows?.numbers ?? null, scores: scored?.scores ?? null, probability: scored?.probability ?? null,
      outputs: content.outcomes.outputs, nRows: this.table?.n ?? 0,
    };
  }
}

/** The model in the bytes of a file, or what is wrong with them. */
function read(name, bytes) {
  try {
    return readModel(bytes);
  } catch (error) {
    if (!(error instanceof BadFile)) throw error;
    const [must, advice] = /not match its checksum|cut off|are declared/.test(error.message)
      ? ["every byte must be as isotone wrote it", "copy the file again"]
      : ["this page opens .isotone files", "save one with model.save(...) or isotone train"];
    throw new Problem(`${quoted(name)} cannot be read: ${error.message}`, must, advice);
  }
}

/** How many directions are declared, and proved. */
function directionsOf(found) {
  const judged = found.outputs.flatMap((k) => found.model.inputs.encoded.map((_, i) => found.direction(k, i)));
  const declared = judged.filter((v) => v !== null), kept = declared.filter(keeps).length;
  if (declared.length === 0) return "no direction is declared";
  return `${kept === declared.length ? `all ${kept}` : `${kept} of ${declared.length}`} declared directions proved`;
}

/** JSON in which every text is visible; what is not finite becomes null. */
function toJson(data) {
  return JSON.stringify(data, (_, value) => {
    if (typeof value === "string") return visible(value);
    if (ArrayBuffer.isView(value)) return Array.from(value);
    if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [visible(name), each]));
  });
}

if (typeof WorkerGlobalScope !== "undefined") {
  const session = new Session();
  self.onmessage = ({ data }) => self.postMessage(session.answer(data));
}
