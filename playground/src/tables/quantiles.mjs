// Quantiles, bins and counts of numbers, as NumPy defines them.

/** Numbers in ascending order, those that are none left out. */
export function sorted(values) {
  return Float64Array.from(values).filter((x) => !Number.isNaN(x)).sort();
}

/** Quantiles between neighbors of sorted numbers, by linear interpolation. */
export function quantile(ascending, level) {
  const place = level * (ascending.length - 1), k = Math.floor(place), t = place - k;
  const [a, b] = [ascending[k], ascending[Math.min(k + 1, ascending.length - 1)]];
  return t >= 0.5 ? b - (b - a) * (1 - t) : a + (b - a) * t;
}

/** The smallest of sorted numbers that at least this share of them does not exceed. */
export function lowerQuantile(ascending, level) {
  const n = ascending.length;
  let k = Math.max(Math.ceil(level * n) - 1, 0);
  while (k > 0 && k / n >= level) k -= 1;
  while ((k + 1) / n < level) k += 1;
  return ascending[k];
}

/** Evenly spaced numbers from low to high. */
export function linspace(low, high, n) {
  const step = (high - low) / (n - 1);
  return Array.from({ length: n }, (_, k) => (k === n - 1 ? high : low + k * step));
}

const unique = (values) => [...new Set(values)].sort((a, b) => a - b);

/** Edges of bins with about equally many values; the largest value is in the last bin. */
export function quantileEdges(values, n) {
  const ascending = sorted(Array.from(values).filter(Number.isFinite));
  const edges = unique(linspace(0, 1, n + 1).map((level) => quantile(ascending, level)));
  const above = nextUp(edges.at(-1));
  return edges.length > 1 ? [...edges.slice(0, -1), above] : [edges[0], above];
}

const view = new DataView(new ArrayBuffer(8));

/** The next larger float64; infinite numbers and NaN stay. */
export function nextUp(x) {
  if (!Number.isFinite(x)) return x;
  if (x === 0) return Number.MIN_VALUE;
  view.setFloat64(0, x);
  view.setBigInt64(0, view.getBigInt64(0) + (x > 0 ? 1n : -1n));
  return view.getFloat64(0);
}

/** How many of ascending numbers are below x, or do not exceed it. */
export function below(ascending, x, orEqual = false) {
  let low = 0, high = ascending.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ascending[middle] < x || (orEqual && ascending[middle] === x)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Counts in n equal bins from low to high; the last includes its upper end. */
export function counts(values, n, low, high) {
  const edges = linspace(low, high, n + 1), found = Array(n).fill(0);
  for (const x of values) {
    if (x >= low && x <= high) found[Math.min(below(edges, x, true) - 1, n - 1)] += 1;
  }
  return found;
}

export function mean(values) {
  return values.reduce((sum, x) => sum + x, 0) / values.length;
}
