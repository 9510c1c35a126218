"use strict";
/* The panel of the playground: what is open, the verdict, what is wrong, and what can be chosen. */
isotone.Panel = class {
  constructor(app) {
    this.app = app;
    this.at = (id) => document.getElementById(id);
    this.listen();
  }

  listen() {
    const { app } = this;
    for (const id of ["model-file", "table-file"]) {
      this.at(id).addEventListener("change", ({ target }) => {
        const files = [...target.files];
        target.value = ""; // the same file can be chosen again
        if (files.length) app.open(files);
      });
    }
    this.at("try").addEventListener("click", () => app.openExample());
    this.at("drop-table").addEventListener("click", () => app.forgetTable());
    this.at("options").addEventListener("submit", (event) => event.preventDefault());
    let inside = 0; // elements that a file is being dragged over
    const over = (by) => {
      inside = Math.max(inside + by, 0);
      this.at("drop").classList.toggle("over", inside > 0);
    };
    window.addEventListener("dragenter", () => over(1));
    window.addEventListener("dragleave", () => over(-1));
    window.addEventListener("dragover", (event) => event.preventDefault());
    window.addEventListener("drop", (event) => {
      event.preventDefault();
      over(-inside);
      if (event.dataTransfer.files.length) app.open(event.dataTransfer.files);
    });
  }

  say(text) {
    this.at("status").textContent = text;
  }

  /* Three parts: what was given, what must hold, what to do. */
  tellProblem(problem) {
    const { node } = isotone.numbers;
    const place = this.at("problem");
    place.hidden = problem === null;
    this.unseen = Boolean(problem && problem.unseen);
    if (problem === null) return;
    const upper = (text) => text[0].toUpperCase() + text.slice(1);
    place.replaceChildren(
      node("p", {}, [node("strong", { class: "bad", text: `${upper(problem.given)}.` })]),
      node("p", { text: `${upper(problem.must)}.` }),
      node("p", { text: `${upper(problem.advice)}.` }),
    );
    place.scrollIntoView({ block: "nearest" }); // on a phone it may be below the screen
  }

  /* Names of the open files, and the verdict on the model. */
  tellFiles() {
    const { model, table } = this.app;
    this.at("model-name").textContent = model ? model.name : "choose a model";
    this.at("table-name").textContent = table && table.name ? table.name : "choose a table (CSV)";
    this.at("drop-table").hidden = !(table && model);
    this.at("checked").hidden = model === null;
    if (model) this.tellVerdict(model);
  }

  tellVerdict({ verdict, reason, took, fingerprint, chain, directions }) {
    const { node, format } = isotone.numbers;
    const [mark, kind] = { HOLDS: ["✓", "good"], FAILS: ["✗", "bad"] }[verdict] || ["?", "bad"];
    const how = reason || `recomputed here in ${format(Math.max(took, 1), 2)} ms, in exact rational arithmetic: ${directions}`;
    const words = node("ul", {});
    words.innerHTML = chain.map((line) => `<li>${line}</li>`).join(""); // escaped by the worker
    this.at("checked").replaceChildren(
      node("p", { class: "verdict" }, [
        node("strong", { id: "verdict-word", class: kind, text: `${mark} ${verdict}` }), node("span", { text: how }),
      ]),
      node("details", {}, [
        node("summary", { text: "How a row becomes a score, and the fingerprint" }), words,
        node("p", {}, [node("code", { id: "fingerprint", text: fingerprint })]),
      ]),
    );
  }

  /* What can be chosen, and kept. */
  tellReport({ targets, target, took, scores, numbers, nRows }) {
    const { node, count } = isotone.numbers;
    const { app } = this;
    const all = numbers?.length === nRows ? "" : `${count(numbers?.length ?? 0)} of `;
    this.say(scores ? `${all}${count(nRows)} rows scored and looked at in ${count(Math.max(Math.round(took), 1))} ms.` : "");
    const fields = [];
    if (app.table) fields.push(...this.tableFields(targets, target));
    if (app.model.decides) fields.push(this.threshold());
    if (scores) fields.push(this.save("Scores as CSV", () => [app.scores(), "text/csv", "scores.csv"]));
    fields.push(this.save("Report as HTML", () => [app.page(), "text/html", "report.html"]));
    const made = fields.map((field) => (Array.isArray(field) ? node("label", {}, field) : field));
    const form = this.at("options"), focused = document.activeElement;
    const again = form.contains(focused) ? focused.id : null; // keys go on where they were
    form.replaceChildren(...made);
    form.hidden = false;
    if (again) this.at(again)?.focus();
  }

  tableFields(targets, target) {
    const { app } = this;
    const names = ["none", ...targets];
    const chosen = this.choice("target", names, target === null ? 0 : names.lastIndexOf(target), (k) => (
      app.change({ target: k === 0 ? null : names[k] })
    ));
    const rules = ["error", "missing", "skip"];
    const words = ["stop", "treat as missing", "leave out"];
    const now = rules.indexOf(app.asked.unseen || "error");
    const unseen = this.choice("unseen", words, now, (k) => app.change({ unseen: rules[k] }));
    const asks = this.unseen || app.asked.unseen; // once a row held such a value
    return [["target column", chosen], ...(asks ? [["rows with values never seen in training", unseen]] : [])];
  }

  choice(id, names, chosen, change) {
    const { node } = isotone.numbers;
    const made = node("select", { id }, names.map((text, value) => node("option", { value, text })));
    made.value = chosen;
    made.addEventListener("change", () => change(Number(made.value)));
    return made;
  }

  /* An empty box: no decisions, or those of a probability of one half. */
  threshold() {
    const { node } = isotone.numbers;
    const { app } = this;
    const box = node("input", {
      type: "number", id: "threshold-box", step: "any", value: app.asked.threshold ?? "",
      placeholder: app.model.logits ? "0" : "none",
    });
    box.addEventListener("change", () => {
      app.change({ threshold: box.value === "" ? null : Number(box.value) });
    });
    return ["threshold: score ≥", box];
  }

  save(text, make) {
    const { node } = isotone.numbers;
    return node("button", {
      type: "button", class: "save", text, onclick: () => {
        const [content, type, name] = make();
        isotone.save(content, type, name);
      },
    });
  }
};

isotone.playground = new isotone.Playground();
