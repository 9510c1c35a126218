// Effects: how much every column moves the prediction, as measured.

const MOST_PAIRS = 512;

/**
 * The effect of every column: the share of what scores change by when its values are those of other rows.
 * Without rows, the range of the score between usual values of the column, from the start.
 */
export function effects(controls, start) {
  const { model, rows } = controls;
  if (rows === null) return model.inputs.columns.map((column) => rangeOf(controls, column, start));
  const n = Math.min(rows.n, MOST_PAIRS), step = rows.n / n;
  const places = Array.from({ length: n }, (_, k) => Math.floor(k * step));
  const pairs = places.map((place, k) => [rows.row(place), rows.row(places[(k + (n >> 1) + 1) % n])]);
  const changes = model.inputs.columns.map((column) => meanChange(controls, featuresOf(model, column), pairs));
  const totals = changes[0].map((_, k) => changes.reduce((sum, each) => sum + each[k], 0));
  return changes.map((each) => {
    const shares = each.map((x, k) => (totals[k] > 0 ? x / totals[k] : 0));
    return shares.reduce((sum, x) => sum + x, 0) / shares.length;
  });
}

/** The features of a column, the indicator of missing values included. */
function featuresOf({ inputs }, column) {
  const own = column.features.map((_, k) => inputs.place(column) + k);
  return column.fill === null ? own : [...own, inputs.indicator(column)];
}

/** Mean absolute change of every output. */
function meanChange({ network, model }, features, pairs) {
  const total = Array(model.nOutputs).fill(0);
  for (const [row, other] of pairs) {
    const moved = [...row];
    for (const i of features) moved[i] = other[i];
    const [before, after] = [row, moved].map((each) => centered(model, network.score(each)));
    after.forEach((score, k) => { total[k] += Math.abs(score - before[k]); });
  }
  return total.map((sum) => sum / pairs.length);
}

/** Of several logits only differences mean something. */
function centered({ ofClasses }, scores) {
  if (!ofClasses) return scores;
  const middle = scores.reduce((sum, z) => sum + z, 0) / scores.length;
  return scores.map((z) => z - middle);
}

function rangeOf({ model, network, usual }, column, start) {
  const place = model.inputs.place(column);
  const values = column.kind === "category"
    ? column.features.map((_, k) => column.features.map((__, other) => Number(k === other)))
    : usual[place].map((x) => [x]);
  const scores = values.map((own) => {
    const row = [...start];
    own.forEach((x, k) => { row[place + k] = x; });
    return network.score(row);
  });
  const ranges = scores[0].map((_, k) => {
    const each = scores.map((z) => z[k]);
    return Math.max(...each) - Math.min(...each);
  });
  return Math.max(...ranges);
}
