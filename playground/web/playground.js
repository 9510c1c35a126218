"use strict";
/* The playground: files become bytes, a worker judges and scores them, and the report opens. */
isotone.Playground = class {
  constructor() {
    const text = JSON.parse(document.getElementById("worker").textContent).program;
    this.worker = new Worker(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
    this.waiting = []; // for answers, in the order of the questions
    this.worker.onmessage = ({ data }) => this.waiting.shift().resolve(data);
    this.worker.onerror = (event) => {
      event.preventDefault();
      this.waiting.splice(0).forEach(({ reject }) => reject(new Error(event.message)));
    };
    this.blank = JSON.parse(document.getElementById("blank").textContent).page;
    this.model = null; // what the worker said of the model
    this.table = null; // and of the table
    this.shown = null; // the report on the page
    this.asked = {}; // options of the report
    this.panel = new isotone.Panel(this);
    this.busy = Promise.resolve();
  }

  /* The answer of the worker. */
  ask(question) {
    return new Promise((resolve, reject) => {
      this.waiting.push({ resolve, reject });
      this.worker.postMessage(question);
    });
  }

  /* One thing after the other; what goes wrong is told. */
  then(work) {
    this.busy = this.busy.then(work).catch((error) => this.panel.tellProblem({
      given: `this page failed: ${error.message}`,
      must: "it opens every file that isotone reads",
      advice: "reload it, use isotone report, and tell us about the file",
    }));
    return this.busy;
  }

  /* Files that were dropped or chosen: models first. */
  open(files, options = {}) {
    const sorted = [...files].sort((a, b) => Number(this.isTable(a)) - Number(this.isTable(b)));
    return this.then(async () => {
      this.panel.tellProblem(null);
      for (const file of sorted) if (!await this.read(file)) return;
      this.asked = { ...this.asked, ...options };
      await this.report();
    });
  }

  isTable({ name }) {
    return /\.(csv|tsv|txt|gz|parquet|pq|root|xlsx?|json)$/i.test(name);
  }

  /* Whether a file was understood. */
  async read(file) {
    const isTable = this.isTable(file);
    this.panel.say(`${isTable ? "Reading" : "Reading and checking"} ${file.name} …`);
    const bytes = new Uint8Array(await file.arrayBuffer());
    const answer = await this.ask({ kind: isTable ? "Table" : "Model", name: file.name, bytes });
    if (answer.kind === "Problem") {
      this.panel.tellProblem(answer);
      this.panel.say("");
      return false;
    }
    if (isTable) this.table = answer;
    else this.model = answer;
    this.asked = isTable ? { ...this.asked, target: undefined } : {};
    if (!isTable) this.shown = null;
    this.panel.tellFiles();
    return true;
  }

  /* Show the report of what is open; of the model alone, if the table does not fit. */
  async report() {
    if (this.model === null) {
      this.panel.say("Now choose the model that is to score this table.");
      return;
    }
    this.panel.say(this.table === null ? "Working …" : `Scoring ${isotone.numbers.count(this.table.n)} rows …`);
    let answer = await this.ask({ kind: "Report", ...this.asked });
    if (answer.kind === "Problem") {
      this.panel.tellProblem(answer);
      answer = await this.ask({ kind: "Report", ...this.asked, alone: true });
    }
    if (answer.kind === "Problem") this.hide(answer);
    else this.show(answer);
  }

  /* There is nothing to show of this model but its verdict. */
  hide(problem) {
    this.panel.tellProblem(problem);
    this.panel.say("");
    document.getElementById("options").hidden = true;
    document.getElementById("report").hidden = true;
    document.body.classList.add("opened");
  }

  /* Put a report into the page. */
  show(answer) {
    this.shown = answer;
    const body = this.blank.slice(this.blank.indexOf("<header>"), this.blank.indexOf('<script type="application/json"'));
    const place = document.getElementById("report");
    place.innerHTML = this.fill(body, answer.parts);
    place.hidden = false;
    document.body.classList.add("opened");
    isotone.start(JSON.parse(answer.data));
    document.getElementById("copy-link").remove(); // a link would open this page without the files
    this.panel.tellReport(answer);
  }

  /* A template with parts at their marks; what a part holds is not looked at again. */
  fill(template, parts) {
    return template.split("%%").map((piece, k) => (k % 2 ? parts[piece] : piece)).join("");
  }

  /* Other options of the same files. */
  change(options) {
    this.asked = { ...this.asked, ...options };
    return this.then(async () => {
      this.panel.tellProblem(null);
      await this.report();
    });
  }

  forgetTable() {
    return this.then(async () => {
      await this.ask({ kind: "Nothing" });
      this.table = null;
      this.asked = { threshold: this.asked.threshold };
      this.panel.tellProblem(null);
      this.panel.tellFiles();
      await this.report();
    });
  }

  openExample() {
    const files = Object.entries(JSON.parse(document.getElementById("example").textContent));
    const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    return this.open(files.map(([name, text]) => new File([bytes(text)], name)), { target: "repaid" });
  }

  /* Scores of all rows that have one, as CSV: every digit, so that reading them gives the same bits. */
  scores() {
    const { numbers, scores, probability, outputs } = this.shown;
    const title = (what) => (scores.length === 1 ? [what] : outputs.map((name) => `${what}_${name}`));
    const cell = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    const columns = [...scores, ...(probability || [])];
    const head = ["row", ...title("score"), ...(probability ? title("probability") : [])].map(cell).join(",");
    return `${[head, ...numbers.map((row, k) => [row, ...columns.map((values) => values[k])].join(","))].join("\n")}\n`;
  }

  /* The report as a file of its own, without rows of the table. */
  page() {
    const data = JSON.parse(this.shown.data);
    if (data.rows) {
      data.rows = { number: [], columns: [], truth: null };
      data.presets = data.presets.filter(({ number }) => number === null);
    }
    const text = JSON.stringify(data).replace(/[<>&\u2028\u2029]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
    const own = [...document.querySelectorAll("script:not([type])")].map((script) => script.textContent);
    const scripts = own.slice(0, -2).map((script) => `<script>${script}<\/script>`).join("\n"); // without the playground's
    const style = document.querySelector("style").textContent;
    return this.fill(this.blank, { ...this.shown.parts, data: text, style, scripts });
  }
};
