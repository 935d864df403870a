// What spoke for one class against another: bars to either side of a line, the sum at the end.

import { make, styled, table } from "./dom.js";
import { bet, plain, signed } from "./numbers.js";

const MOST_MISSING = 5;

/** The value of a feature as it stands in the row. */
export function told(value) {
  if (value === null || value === undefined) return "missing";
  if (value === true || value === false) return value ? "yes" : "no";
  return typeof value === "number" ? plain(value) : String(value);
}

/** One line: who wins, and by how much. */
export function verdict({ first, second, total }) {
  if (second === null || second === undefined) return `${first} is the only class.`;
  if (Math.abs(total) < 0.005) return `The evidence for ${first} and ${second} is equal.`;
  const [winner, loser] = total > 0 ? [first, second] : [second, first];
  return `${bet(total)} for ${winner} against ${loser} (log-odds ${signed(total)}).`;
}

/** The table of bars. */
export function bars(explanation, isText) {
  const { first, second, prior, rest, total, features, spans } = explanation;
  // A model may see scaled counts; a reader sees how often a word stands there.
  const times = new Map();
  for (const { feature } of isText ? spans : []) times.set(feature, (times.get(feature) || 0) + 1);
  const seen = ({ name, value }) =>
    !isText ? told(value) : times.has(name) ? `${times.get(name)} ×` : value ? plain(value) : "absent";
  // Of a wide table most cells may be empty: they are told together.
  const silent = isText ? [] : features.filter(({ value, odds }) => odds === 0 && told(value) === "missing");
  const listed =
    silent.length > MOST_MISSING ? features.filter((feature) => !silent.includes(feature)) : features;
  const parts = [
    ...listed.map((feature) => ({ name: feature.name, value: seen(feature), odds: feature.odds })),
    ...(listed === features
      ? []
      : [{ name: `${silent.length} missing cells`, value: "", odds: 0, className: "other" }]),
    {
      name: isText ? "all other words, there or absent" : "all other features",
      value: "",
      odds: rest,
      className: "other",
    },
    { name: "prior", value: "", odds: prior, className: "other" },
  ];
  const most = Math.max(...parts.map(({ odds }) => Math.abs(odds)), 1e-9);
  const heads = [
    { words: isText ? "Word" : "Feature", className: "name" },
    { words: isText ? "Here" : "Value", className: "value" },
    { words: "Against and for", className: "bar", hidden: true },
    { words: "Log-odds", className: "n" },
  ];
  const rows = parts.map(({ name, value, odds, className }) => ({
    className,
    cells: [name, value, bar(odds / most), signed(odds)],
  }));
  rows.push({ className: "sum", cells: ["sum", "", "", signed(total)] });
  const evidence = table({
    caption: `Evidence for ${first} (positive) against ${second} (negative), as log-odds; the lines add up to the sum.`,
    heads,
    rows,
    kind: "evidence",
  });
  const sides = make(
    "p",
    { class: "sides small", "aria-hidden": "true" },
    make("span", { class: "against" }, `◂ ${second}`),
    make("span", { class: "for" }, `${first} ▸`),
  );
  return [sides, evidence];
}

function bar(share) {
  const side = share < 0 ? "against" : share > 0 ? "for" : "none";
  return make(
    "span",
    { class: "track", "aria-hidden": "true" },
    styled(make("span", { class: `part ${side}` }), "--share", `${(50 * Math.abs(share)).toFixed(2)}%`),
  );
}
