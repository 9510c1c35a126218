"use strict";
/* Panels about a table and about training, and the start of the page. */
isotone.start = () => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const app = new isotone.Explorer(data);
  isotone.app = app;
  app.build(document.getElementById("explorer"));
  const heat = new isotone.HeatMap(app, document.getElementById("heat"));
  const curves = document.getElementById("curves");
  app.onChange(() => {
    const responses = isotone.responses(app, 96);
    isotone.flipTable(app, responses);
    isotone.curves(app, curves, responses);
    heat.draw();
  });
  app.changed();
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    app.changed();
  });
};
isotone.start();
