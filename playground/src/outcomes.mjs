// Outcomes: what the outputs of a network are about, in the words of its user.

/** What is predicted, and how it becomes a decision. `kind` is two classes, classes or values. */
export class Outcomes {
  constructor(model, threshold, target) {
    const known = model.provenance.get("target");
    this.target = target ?? (typeof known === "string" ? known : null);
    this.probability = model.outputs === "logits";
    this.named = model.classes !== null;
    this.threshold = null;
    const numbered = Array.from({ length: model.nOutputs }, (_, k) => String(k));
    const names = model.classes?.length === model.nOutputs ? model.classes : numbered;
    if (model.ofClasses) this.is("classes", names, names);
    else if (model.nOutputs === 1 && (this.probability || threshold !== null)) {
      this.is("two classes", model.classes ?? ["0", "1"], ["score"]);
      this.threshold = threshold ?? 0;
    } else this.is("values", [], model.nOutputs === 1 ? ["score"] : names);
  }

  is(kind, classes, outputs) {
    Object.assign(this, { kind, classes, outputs });
  }

  /** A class with what it is a class of. */
  name(k) {
    if (this.target !== null) return `${this.target} = ${this.classes[k]}`;
    if (!this.probability) return ["rejected", "accepted"][k];
    return this.named ? this.classes[k] : `class ${k}`;
  }

  /** The number of the class that is decided by scores of a row, null if nothing is decided. */
  decide(scores) {
    if (this.kind === "classes") return scores.indexOf(Math.max(...scores));
    return this.threshold === null ? null : Number(scores[0] >= this.threshold);
  }

  describe() {
    const { kind, target, outputs, threshold, probability } = this;
    return { kind, target, classes: this.classes.map((_, k) => this.name(k)), outputs, threshold, probability };
  }
}
