// Densities of a feature in each class: curves, probabilities of whole numbers, or bars of a few levels.

import { axes, linear, path, picture, ticks } from "./charts.js";
import { breakable, draw, make } from "./dom.js";
import { counted, percent, plain } from "./numbers.js";

const HEIGHT = 270;
// So many classes have a colour and a stroke of their own; the others are faint until they are chosen.
const COLOURS = 6;
// A class that is this much more concentrated than the widest is cut, or the others would lie flat.
const CUT = 6;
// Whole numbers up to so many are stems, more are steps.
const STEMS = 16;

/** The picture of one feature and its key. */
export function densityPicture({ feature, kind, points, curves, left_out: leftOut }, speaksFor) {
  const drawn = curves.filter(({ values }) => values && values.length);
  if (!drawn.length)
    return [
      make("p", { class: "empty" }, `${feature} has a single value and is uninformative.`),
    ];
  const many = drawn.length > COLOURS;
  const chosen = many ? extremes(points, drawn, speaksFor) : drawn.map((_, place) => place);
  const numeric = points.every((point) => typeof point === "number");
  const shape = kind === "bars" || !numeric ? levels : kind === "lattice" ? counts : densities;
  const { frame, again } = picture({
    title: `${feature} in each class`,
    words: drawn
      .map((curve) => inWords(curve, points, numeric && kind !== "bars"))
      .join("; ")
      .slice(0, 2000),
    inside: (width) => shape(width, points, drawn, chosen),
  });
  const entries = drawn.map((curve, place) =>
    entry(curve, place, chosen, many, () => {
      again();
      for (const [other, one] of entries.entries()) one.mark(chosen.indexOf(other));
    }),
  );
  const key = make(
    "ul",
    { class: many ? "curves many" : "curves", "aria-label": "Classes" },
    ...entries.map(({ item }) => item),
  );
  const between = leftOut
    ? make("p", { class: "soft small" }, `${counted(leftOut, "class", "classes")} in between not drawn.`)
    : null;
  return [
    frame,
    many ? make("p", { class: "soft small" }, `Choose up to ${COLOURS} classes to tell apart.`) : null,
    key,
    between,
  ].filter(Boolean);
}

/** Highest and lowest, and the class that the feature speaks for. */
function extremes(points, curves, speaksFor) {
  const place = curves.map(({ values }) => {
    const sum = values.reduce((so, value) => so + value, 0) || 1;
    return (
      values.reduce((so, value, k) => so + value * (typeof points[k] === "number" ? points[k] : k), 0) / sum
    );
  });
  const order = [...curves.keys()].sort((a, b) => place[b] - place[a]);
  const own = curves.findIndex(({ label }) => String(label) === String(speaksFor));
  return [...new Set([...(own >= 0 ? [own] : []), ...order.slice(0, 3), ...order.slice(-2)])].slice(
    0,
    COLOURS - 1,
  );
}

function entry({ label, at_zero: zero }, place, chosen, many, changed) {
  const swatch = draw("svg", {
    class: "swatch",
    width: 28,
    height: 10,
    viewBox: "0 0 28 10",
    "aria-hidden": "true",
  });
  const mark = (colour) =>
    swatch.replaceChildren(
      draw("line", { class: colour < 0 ? "line faint" : `line k${colour}`, x1: 1, x2: 27, y1: 5, y2: 5 }),
    );
  mark(chosen.indexOf(place));
  const words = [
    make("span", {}, ...breakable(String(label))),
    zero === null || zero === undefined
      ? null
      : make("span", { class: "soft zero" }, `0 in ${percent(zero)}`),
  ];
  if (!many) return { mark, item: make("li", {}, swatch, ...words.filter(Boolean)) };
  const box = make("input", {
    type: "checkbox",
    change: () => {
      if (!box.checked) chosen.splice(chosen.indexOf(place), 1);
      else {
        if (chosen.length >= COLOURS) boxes(box)[chosen.shift()].checked = false;
        chosen.push(place);
      }
      changed();
    },
  });
  box.checked = chosen.includes(place);
  return { mark, item: make("li", {}, make("label", {}, box, swatch, ...words.filter(Boolean))) };
}

const boxes = (box) => box.closest("ul").querySelectorAll("input");

function inWords({ label, values, at_zero: zero }, points, ordered) {
  const top = values.indexOf(Math.max(...values));
  const most = ordered
    ? `most likely near ${plain(points[top], 3)}`
    : `most often ${points[top]}, ${percent(values[top])}`;
  return `${label}: ${most}${zero === null || zero === undefined ? "" : `, 0 in ${percent(zero)}`}`;
}

// Faint ones first, so that chosen ones lie above them.
const layered = (curves, chosen) =>
  [...curves.keys()]
    .sort((a, b) => chosen.indexOf(a) - chosen.indexOf(b))
    .map((place) => ({ place, curve: curves[place], colour: chosen.indexOf(place) }));

const stroke = (colour) => (colour < 0 ? "line faint" : `line k${colour}`);

function box(width) {
  return { left: 50, right: width - 10, top: 28, bottom: HEIGHT - 44 };
}

function densities(width, points, curves, chosen) {
  const room = box(width);
  const peaks = curves.map(({ values }) => Math.max(...values.filter(Number.isFinite)));
  const lowest = Math.min(...peaks);
  const isCut = Math.max(...peaks) > CUT * lowest;
  const high = isCut ? CUT * lowest : Math.max(...peaks);
  const x = linear(points[0], points.at(-1), room.left, room.right);
  const y = linear(0, high * 1.04, room.bottom, room.top);
  const lines = layered(curves, chosen).map(({ curve, colour }) => {
    const line = curve.values.map((value, k) => [
      x(points[k]),
      y(Math.min(Number.isFinite(value) ? value : high, high * 1.04)),
    ]);
    const parts = [draw("path", { class: stroke(colour), d: path(line) })];
    if (colour >= 0)
      parts.unshift(
        draw("path", {
          class: `area k${colour}`,
          d: `${path([[line[0][0], room.bottom], ...line, [line.at(-1)[0], room.bottom]])}Z`,
        }),
      );
    return draw("g", {}, ...parts);
  });
  return {
    height: HEIGHT,
    parts: [
      axes({
        x,
        y,
        box: room,
        xTicks: ticks(points[0], points.at(-1), width / 90),
        yTicks: ticks(0, high, 4),
        yName: isCut ? "density (peaks cut)" : "density",
        xName: "value",
      }),
      ...lines,
    ],
  };
}

function counts(width, points, curves, chosen) {
  const room = box(width);
  const top = (from) => Math.max(...curves.flatMap(({ values }) => values.slice(from)), 0);
  // A rare word is nearly always absent; what matters are the few times it is not.
  const beyond = top(1);
  const isCut =
    points[0] === 0 && beyond > 0 && Math.max(...curves.map(({ values }) => values[0])) > CUT * beyond;
  const high = isCut ? 1.5 * beyond : top(0);
  const few = points.length <= STEMS;
  const x = linear(points[0] - 0.5, points.at(-1) + 0.5, room.left, room.right);
  const y = linear(0, high * 1.04, room.bottom, room.top);
  const up = (value) => y(Math.min(value, high * 1.04));
  const shown = few ? layered(curves, chosen).filter(({ colour }) => colour >= 0) : layered(curves, chosen);
  const step = 0.7 / Math.max(chosen.length, 1);
  const lines = shown.map(({ curve, colour }) => {
    if (!few)
      return draw("path", {
        class: stroke(colour),
        d: path(
          curve.values.flatMap((value, k) => [
            [x(points[k] - 0.5), up(value)],
            [x(points[k] + 0.5), up(value)],
          ]),
        ),
      });
    const beside = (colour - (chosen.length - 1) / 2) * step;
    return draw(
      "g",
      {},
      ...curve.values.flatMap((value, k) => {
        const across = x(points[k] + beside);
        const stem = draw("line", {
          class: `stem k${colour}`,
          x1: across,
          x2: across,
          y1: room.bottom,
          y2: up(value),
        });
        return value > high * 1.04
          ? [stem]
          : [stem, draw("circle", { class: `dot k${colour}`, cx: across, cy: up(value), r: 3 })];
      }),
    );
  });
  return {
    height: HEIGHT,
    parts: [
      axes({
        x,
        y,
        box: room,
        xTicks: few ? points : ticks(points[0], points.at(-1), width / 80).filter(Number.isInteger),
        yTicks: ticks(0, high, 4),
        yName: isCut ? "probability (zeros cut)" : "probability",
        xName: "times",
        yTold: short,
      }),
      ...lines,
    ],
  };
}

// Lying bars: names of levels may be long, and a phone is narrow.
function levels(width, points, curves, chosen) {
  const shown = layered(curves, chosen).filter(({ colour }) => colour >= 0);
  const thick = 9;
  const each = shown.length * thick + 14;
  const top = 8;
  const left = Math.min(Math.max(...points.map((point) => 7 * String(point).length)) + 14, 0.35 * width);
  const fits = Math.floor((left - 14) / 6.5);
  const high = Math.max(...curves.flatMap(({ values }) => values), 1e-9);
  const x = linear(0, Math.min(1, high * 1.05), left, width - 24);
  const bottom = top + points.length * each;
  const lines = ticks(0, Math.min(1, high * 1.05), width / 110).flatMap((value) => [
    draw("line", { class: "grid", x1: x(value), x2: x(value), y1: top, y2: bottom }),
    draw(
      "text",
      { x: x(value), y: bottom + 16, "text-anchor": "middle" },
      `${Number((100 * value).toFixed(3))} %`,
    ),
  ]);
  const rows = points.map((point, k) => {
    const name = String(point);
    return draw(
      "g",
      {},
      draw(
        "text",
        { class: "level", x: left - 8, y: top + k * each + each / 2, dy: "0.32em", "text-anchor": "end" },
        name.length > fits ? `${name.slice(0, Math.max(fits - 1, 1))}…` : name,
      ),
      ...shown.map(({ curve, colour }, place) =>
        draw("rect", {
          class: `solid k${colour}`,
          x: left,
          y: top + k * each + 7 + place * thick,
          height: thick - 2,
          width: Math.max(x(curve.values[k]) - left, 0.5),
          rx: 1.5,
        }),
      ),
    );
  });
  return { height: bottom + 24, parts: [draw("g", { class: "axes" }, ...lines), ...rows] };
}

const short = (value) => plain(value, 2);
