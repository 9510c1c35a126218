"use strict";
/* Predictions of numbers against what was observed, from counts. */
isotone.residuals = (() => {
  const { node, format, count } = isotone.numbers;

  /* How many rows have which observed and predicted number: squares, darker where there are more. */
  function pairs(width, { low, high, n, cells }, target) {
    const height = Math.min(width, 420);
    const chart = isotone.charts.frame({
      width, height, title: "predicted against observed",
      x: { low, high, label: `observed ${target}` }, y: { low, high, label: "predicted" },
    });
    const { xs, ys } = chart;
    const size = (high - low) / n;
    const most = Math.max(...cells.map(([, , m]) => m), 1e-300);
    const [wide, tall] = [(xs.to - xs.from) / n, (ys.from - ys.to) / n];
    for (const [i, j, m] of cells) {
      const square = node("rect", {
        class: "cell", x: xs.of(low + i * size), y: ys.of(low + (j + 1) * size), width: wide + 0.3, height: tall + 0.3,
      });
      square.style.opacity = 0.15 + 0.85 * Math.sqrt(m / most);
      chart.plot.append(square);
    }
    isotone.charts.line(chart, [[low, low], [high, high]], "c5 thin");
    const middle = (k) => low + (k + 0.5) * size;
    const rows = new Map(cells.map(([i, j, m]) => [`${i} ${j}`, m]));
    chart.series = [{ name: "rows", points: cells.map(([i, j]) => [middle(i), middle(j)]) }];
    chart.where = (event) => {
      const [i, j] = isotone.charts.place(event, chart).map((share) => Math.floor(share * n));
      const m = rows.get(`${i} ${j}`) || 0;
      return [["observed", format(middle(i))], ["predicted", format(middle(j))], ["rows", count(m)]];
    };
    return [chart, isotone.panels.hint("Rows on the thin line are predicted perfectly; darker squares hold more rows.")];
  }

  /* The middle of the residuals, and where eight in ten lie, in bins of the prediction. */
  function byPrediction(width, { at, low, middle, high }) {
    const [least, most] = isotone.numbers.extent([...low, ...high, 0]);
    const [from, to] = isotone.numbers.extent(at);
    const beyond = 0.06 * (most - least) || 0.5;
    const chart = isotone.charts.frame({
      width, height: 290, title: "residuals by prediction",
      x: { low: from, high: to > from ? to : from + 1, label: "predicted" },
      y: { low: least - beyond, high: most + beyond, label: "observed minus predicted" },
    });
    isotone.charts.band(chart, at.map((x, k) => [x, low[k], high[k]]), "envelope");
    isotone.charts.rule(chart, { y: 0 });
    isotone.charts.line(chart, at.map((x, k) => [x, middle[k]]), "main", "median");
    isotone.charts.tell(chart, "10 %", "", at.map((x, k) => [x, low[k]]));
    isotone.charts.tell(chart, "90 %", "", at.map((x, k) => [x, high[k]]));
    const says = "Median of observed minus predicted; the shaded area holds the middle eight in ten rows.";
    return [chart, isotone.panels.hint(says)];
  }

  return { pairs, byPrediction };
})();
