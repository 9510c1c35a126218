// Scored rows: what the network says of every row of a table.

/** `scores` and `probability` are arrays by output, `decided` the numbers of classes or null. */
export class Scored {
  constructor(network, outcomes, rows) {
    const outputs = network.data.slopes.map((_, k) => k);
    this.scores = outputs.map(() => new Float64Array(rows.n));
    this.probability = outcomes.probability ? outputs.map(() => new Float64Array(rows.n)) : null;
    this.decided = outcomes.decide(this.scores.map(() => 0)) === null ? null : new Float64Array(rows.n);
    for (let k = 0; k < rows.n; k += 1) this.score(network, outcomes, rows, k);
  }

  score(network, outcomes, rows, k) {
    const found = network.score(rows.row(k));
    found.forEach((score, output) => { this.scores[output][k] = score; });
    if (this.decided !== null) this.decided[k] = outcomes.decide(found);
    if (this.probability === null) return;
    const chances = network.probability(found);
    this.probability.forEach((values, output) => { values[k] = found.length === 1 ? chances[1] : chances[output]; });
  }
}
