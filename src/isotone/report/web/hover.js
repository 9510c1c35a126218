"use strict";
/* Values under the pointer: a line and a small box beside it, for every chart; and what a chart
   shows as SVG and as CSV, to be kept. */
isotone.hover = (chart) => {
  const { node } = isotone.numbers;
  const { svg, xs, ys, width } = chart;
  const guide = node("line", { class: "guide", y1: ys.from, y2: ys.to, visibility: "hidden" });
  svg.append(guide);
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const px = ((event.clientX - box.left) / box.width) * width;
    if (!chart.series.length || px < xs.from - 4 || px > xs.to + 4) hide();
    else show(event, px);
  });
  svg.addEventListener("pointerleave", hide);

  function show(event, px) {
    const found = chart.series.filter(({ points }) => points.length).map((each) => (
      { ...each, point: nearest(each.points, px) }
    ));
    if (!found.length) return;
    const own = chart.where ? chart.where(event) : null;
    const closest = found.reduce((a, b) => (distance(a.point, px) <= distance(b.point, px) ? a : b));
    const x = xs.of(closest.point[0]);
    guide.setAttribute("x1", x);
    guide.setAttribute("x2", x);
    guide.setAttribute("visibility", own ? "hidden" : "visible");
    const texts = own || [
      [chart.x.label || chart.x.name || "", (chart.x.format || isotone.numbers.format)(closest.point[0])],
      ...found.filter(({ point }) => Math.abs(xs.of(point[0]) - x) < 12).map(({ name, point }) => (
        [name, (chart.y.format || isotone.numbers.format)(point[1])]
      )),
    ];
    isotone.tip(event, texts);
  }

  function distance([x], px) {
    return Math.abs(xs.of(x) - px);
  }

  function nearest(points, px) {
    return points.reduce((a, b) => (distance(b, px) < distance(a, px) ? b : a));
  }

  function hide() {
    guide.setAttribute("visibility", "hidden");
    isotone.tip(null);
  }
};

/* The box with names and values beside the pointer; null hides it. */
isotone.tip = (event, texts = []) => {
  const { node } = isotone.numbers;
  isotone.tipBox ||= document.body.appendChild(node("div", { class: "tip", "aria-hidden": "true", hidden: "" }));
  const box = isotone.tipBox;
  box.hidden = event === null;
  if (event === null) return;
  box.replaceChildren(...texts.map(([name, value]) => node("p", {}, [
    node("span", { text: isotone.numbers.shorten(name, 40) }), node("strong", { text: value }),
  ])));
  const { innerWidth, innerHeight } = window;
  box.style.left = `${Math.min(event.clientX + 14, innerWidth - box.offsetWidth - 8)}px`;
  box.style.top = `${Math.min(event.clientY + 14, innerHeight - box.offsetHeight - 8)}px`;
};

/* Downloads of the chart that `get` gives: buttons beside it. */
isotone.downloads = (get, title = get().title) => {
  const { node } = isotone.numbers;
  const name = title.replace(/[^A-Za-z0-9]+/g, "-").slice(0, 60).toLowerCase();
  const button = (kind, make, type) => node("button", {
    type: "button", class: "save", text: kind, "aria-label": `${title}: download as ${kind}`,
    onclick: () => isotone.save(make(get()), type, `${name}.${kind.toLowerCase()}`),
  });
  return node("span", { class: "downloads" }, [
    button("SVG", ({ svg }) => isotone.toSvg(svg), "image/svg+xml"),
    button("CSV", isotone.toCsv, "text/csv"),
  ]);
};

/* Text as a file of the person who looks at the page. */
isotone.save = (text, type, name) => {
  const { node } = isotone.numbers;
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = node("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
};

/* A chart as a file of its own: the looks that the page gives its parts are written into them. */
isotone.toSvg = (svg) => {
  const copy = svg.cloneNode(true);
  const looks = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "visibility"];
  const [mine, theirs] = [svg, copy].map((each) => [...each.querySelectorAll("*")]);
  mine.forEach((each, k) => {
    const style = getComputedStyle(each);
    looks.forEach((look) => theirs[k].setAttribute(look, style.getPropertyValue(look)));
    theirs[k].removeAttribute("class");
  });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("font-family", "sans-serif");
  return new XMLSerializer().serializeToString(copy);
};

/* The points of a chart in lines: series, x, y. */
isotone.toCsv = (chart) => {
  const cell = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const head = ["series", chart.x.label || chart.x.name || "x", chart.y.label || "y"].map(cell).join(",");
  const at = (v) => (chart.x.ticks && chart.x.format ? chart.x.format(v) : String(v));
  const lines = chart.series.flatMap(({ name, points }) => (
    points.map(([x, y]) => [name, at(x), String(y)].map(cell).join(","))
  ));
  return `${[head, ...lines].join("\n")}\n`;
};
