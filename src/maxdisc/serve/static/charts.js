// What pictures share: scales, ticks, axes, and a frame that is drawn again when its width changes.

import { draw, make } from "./dom.js";
import { plain } from "./numbers.js";

let numbered = 0;

export const linear = (low, high, from, to) => (value) =>
  from + ((value - low) / (high - low || 1)) * (to - from);

export function logarithmic(low, high, from, to) {
  const along = linear(Math.log10(low), Math.log10(high), from, to);
  return (value) => along(Math.log10(value));
}

/** Round numbers from low to high, about so many. */
export function ticks(low, high, about) {
  const raw = (high - low) / Math.max(about, 1);
  if (!(raw > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((times) => times * power).find((candidate) => candidate >= raw * 0.999);
  const first = Math.ceil(low / step - 1e-9);
  const count = Math.floor(high / step + 1e-9) - first + 1;
  return Array.from({ length: Math.max(count, 0) }, (_, place) =>
    Number(((first + place) * step).toPrecision(12)),
  );
}

/** Powers of ten, and 2 and 5 of them where there are few. */
export function powers(low, high) {
  const decades = Math.log10(high / low);
  const within = decades < 1 ? [1, 2, 3, 4, 5, 6, 7, 8, 9] : decades < 2 ? [1, 2, 5] : [1];
  const every = decades > 7 ? 2 : 1;
  const out = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += every) {
    out.push(
      ...within
        .map((times) => times * 10 ** power)
        .filter((value) => value >= low * 0.999 && value <= high * 1.001),
    );
  }
  return out;
}

/** A picture of `inside(width)`, which gives its height and elements; told in words by `title` and `words`. */
export function picture({ title, words, inside }) {
  const [titleId, wordsId] = [`picture-${++numbered}-title`, `picture-${numbered}-words`];
  const svg = draw("svg", {
    role: "img",
    "aria-labelledby": titleId,
    "aria-describedby": wordsId,
    class: "picture",
  });
  let drawn = 0;
  const again = (force = false) => {
    const width = Math.floor(svg.parentNode ? svg.parentNode.clientWidth : 0);
    if (width < 40 || (width === drawn && !force)) return;
    drawn = width;
    const { height, parts } = inside(width);
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("width", width);
    svg.setAttribute("height", height);
    svg.replaceChildren(
      draw("title", { id: titleId }, title),
      draw("desc", { id: wordsId }, words),
      ...parts,
    );
  };
  const frame = make("div", { class: "frame" }, svg);
  new ResizeObserver(() => again()).observe(frame);
  return { frame, svg, again: () => again(true) };
}

/** Lines and numbers along the bottom and the left. */
export function axes({ x, y, xTicks, yTicks, box, xName, yName, told = plain, yTold = plain }) {
  const { left, right, top, bottom } = box;
  const parts = [];
  for (const value of yTicks) {
    parts.push(draw("line", { class: "grid", x1: left, x2: right, y1: y(value), y2: y(value) }));
    parts.push(draw("text", { x: left - 6, y: y(value), dy: "0.32em", "text-anchor": "end" }, yTold(value)));
  }
  for (const value of xTicks) {
    parts.push(draw("line", { class: "tick", x1: x(value), x2: x(value), y1: bottom, y2: bottom + 4 }));
    parts.push(draw("text", { x: x(value), y: bottom + 16, "text-anchor": "middle" }, told(value)));
  }
  parts.push(draw("line", { class: "base", x1: left, x2: right, y1: bottom, y2: bottom }));
  if (xName)
    parts.push(draw("text", { class: "name", x: right, y: bottom + 34, "text-anchor": "end" }, xName));
  if (yName) parts.push(draw("text", { class: "name", x: 0, y: top - 10 }, yName));
  return draw("g", { class: "axes" }, ...parts);
}

export const path = (points) =>
  points.map(([x, y], place) => `${place ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
