"use strict";
/* How much every column matters, as measured on the table. */
isotone.importance = (app, still) => {
  const { node, percent, shorten, count } = isotone.charts;
  const { panels } = isotone;
  const { controls, sample } = app.data;
  const MOST = 20;
  const order = [...controls].sort((a, b) => b.effect - a.effect);
  const lead = `Which columns the predictions depend on, measured on ${count(sample.n)} rows.`;
  const place = panels.section("importance", "Importance", lead);
  still.push(panels.panel(place, "Effect of every column", (wide) => [bars(wide, order.slice(0, MOST)), hint()]));

  function hint() {
    const some = order.length > MOST ? ` The ${MOST} largest of ${count(order.length)} are shown.` : "";
    return panels.hint(`The change of the score when a column has the value of another row, as a share of all.${some}`);
  }

  /* Bars across, one below the other; the arrow is the declared direction. */
  function bars(width, shown) {
    const letters = Math.floor(width / 22);
    const top = Math.max(...shown.map(({ effect }) => effect), 1e-9);
    const chart = isotone.charts.frame({
      width,
      height: 50 + 22 * shown.length,
      title: "effect of every column",
      x: { low: 0, high: 1.05 * top, label: "share of all effects", format: (v) => percent(v) },
      y: { low: shown.length - 0.5, high: -0.5, ticks: shown.map((_, k) => k), format: (k) => name(shown[k], letters) },
    });
    const { xs, ys } = chart;
    shown.forEach(({ effect, name: column }, k) => {
      const y = ys.of(k);
      chart.plot.append(node("rect", { class: "bar", x: xs.from, y: y - 7, width: Math.max(xs.of(effect) - xs.from, 0.5), height: 14 }));
      isotone.charts.tell(chart, column, "c0", [[effect, k]], false);
    });
    chart.where = (event) => {
      const [, share] = isotone.charts.place(event, chart);
      const k = Math.min(Math.max(Math.round((1 - share) * shown.length - 0.5), 0), shown.length - 1);
      return [[shown[k].name, percent(shown[k].effect)]];
    };
    return chart;
  }

  function name({ name: column, feature, features }, letters) {
    const sign = features ? 0 : app.data.network.declared[app.view.output][feature];
    return shorten(column, letters) + (sign ? ` ${sign > 0 ? "↗" : "↘"}` : "");
  }
};
