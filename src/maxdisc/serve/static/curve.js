// Held-out accuracy against the number of features, on a logarithmic axis, with the number that was chosen.

import { axes, linear, logarithmic, path, picture, powers, ticks } from "./charts.js";
import { draw, make, table } from "./dom.js";
import { percent, whole } from "./numbers.js";

const HEIGHT = 300;

export function kCurve({ sizes, accuracy, standard_error: errors, chosen }) {
  const points = sizes
    .map((size, place) => ({ size, accuracy: accuracy[place], error: errors ? errors[place] || 0 : 0 }))
    .filter((point) => Number.isFinite(point.accuracy) && point.size > 0);
  if (points.length < 2)
    return [make("p", { class: "empty" }, "The number of features was set, so there is no curve.")];
  const nearest = (size) =>
    points.reduce(
      (so, point, place) =>
        Math.abs(Math.log(point.size / size)) < Math.abs(Math.log(points[so].size / size)) ? place : so,
      0,
    );
  const kept = nearest(chosen);
  let at = kept;

  const title = `Held-out accuracy against the number of features: ${percent(points[kept].accuracy)} with the ${whole(chosen)} chosen`;
  const words = `From ${whole(points[0].size)} feature (${percent(points[0].accuracy)}) to ${whole(points.at(-1).size)} (${percent(points.at(-1).accuracy)}).`;
  const cursor = draw("g", { class: "cursor" });
  let scales = null;

  function inside(width) {
    const box = { left: 52, right: width - 12, top: 28, bottom: HEIGHT - 44 };
    const low = Math.max(0, Math.min(...points.map((point) => point.accuracy - point.error)));
    const high = Math.min(1, Math.max(...points.map((point) => point.accuracy + point.error)));
    const room = Math.max(0.06 * (high - low), 0.004);
    const y = linear(Math.max(0, low - room), Math.min(1, high + room), box.bottom, box.top);
    const x = logarithmic(points[0].size, points.at(-1).size, box.left + 4, box.right - 4);
    scales = { x, y, box };
    const line = points.map((point) => [x(point.size), y(point.accuracy)]);
    const band = [
      ...points.map((point) => [x(point.size), y(Math.min(1, point.accuracy + point.error))]),
      ...[...points].reverse().map((point) => [x(point.size), y(Math.max(0, point.accuracy - point.error))]),
    ];
    move();
    return {
      height: HEIGHT,
      parts: [
        axes({
          x,
          y,
          box,
          xTicks: powers(points[0].size, points.at(-1).size),
          yTicks: ticks(low - room, high + room, 5).filter((v) => v >= 0 && v <= 1),
          xName: "features selected, best first",
          yName: "held-out accuracy",
          told: short,
          yTold: (value) => `${Number((100 * value).toFixed(2))} %`,
        }),
        draw("path", { class: "band", d: `${path(band)}Z` }),
        draw("path", { class: "line k0", d: path(line) }),
        draw("line", { class: "chosen", x1: x(chosen), x2: x(chosen), y1: box.top, y2: box.bottom }),
        draw("circle", { class: "chosen", cx: x(points[kept].size), cy: y(points[kept].accuracy), r: 5 }),
        draw(
          "text",
          {
            class: "chosen",
            x: Math.min(Math.max(x(chosen), 60), width - 60),
            y: box.top - 8,
            "text-anchor": "middle",
          },
          `K = ${whole(chosen)}`,
        ),
        cursor,
      ],
    };
  }

  const told = make("output", { class: "small", id: "curve-told", for: "curve-slider" });
  const slider = make("input", {
    type: "range",
    id: "curve-slider",
    min: 0,
    max: points.length - 1,
    step: 1,
  });
  slider.value = at;
  function move() {
    const point = points[at];
    const words = `${whole(point.size)} ${point.size === 1 ? "feature" : "features"}: ${percent(point.accuracy)}${point.error ? ` ± ${percent(point.error)}` : ""}${at === kept ? ", the number chosen" : ""}`;
    told.textContent = words;
    slider.setAttribute("aria-valuetext", words);
    if (!scales) return;
    const { x, y, box } = scales;
    cursor.replaceChildren(
      draw("line", { x1: x(point.size), x2: x(point.size), y1: box.top, y2: box.bottom }),
      draw("circle", { cx: x(point.size), cy: y(point.accuracy), r: 4 }),
    );
  }
  slider.addEventListener("input", () => {
    at = Number(slider.value);
    move();
  });

  const { frame, svg } = picture({ title, words, inside });
  svg.addEventListener("pointermove", (event) => {
    const across = event.clientX - svg.getBoundingClientRect().left;
    at = points.reduce(
      (so, point, place) =>
        Math.abs(scales.x(point.size) - across) < Math.abs(scales.x(points[so].size) - across) ? place : so,
      0,
    );
    slider.value = at;
    move();
  });
  const numbers = make(
    "details",
    {},
    make("summary", {}, "As numbers"),
    make(
      "div",
      {
        class: "scroll tall",
        tabindex: 0,
        role: "region",
        "aria-label": "Accuracy for every number of features",
      },
      table({
        caption: "Held-out accuracy for every number of features that was tried",
        kind: "plain",
        heads: [
          { words: "Features", className: "n" },
          { words: "Accuracy", className: "n" },
          { words: "Standard error", className: "n" },
        ],
        rows: points.map((point, place) => ({
          className: place === kept ? "winner" : "",
          cells: [whole(point.size), percent(point.accuracy), percent(point.error)],
        })),
      }),
    ),
  );
  return [
    frame,
    make(
      "p",
      { class: "slide" },
      make("label", { for: "curve-slider", class: "small" }, "Read the curve"),
      slider,
      told,
    ),
    numbers,
  ];
}

const short = (value) => (value >= 1e6 ? `${value / 1e6}M` : value >= 1e4 ? `${value / 1e3}k` : whole(value));
