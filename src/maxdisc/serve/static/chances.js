// Labels with a share each: a table with bars from the left.

import { make, styled, table } from "./dom.js";

/** A bar of so much of its track, for the eye alone: the number stands beside it. */
export function leftBar(share, kind = "for") {
  return make(
    "span",
    { class: "track left", "aria-hidden": "true" },
    styled(make("span", { class: `part ${kind}` }), "--share", `${(100 * Math.max(0, share)).toFixed(2)}%`),
  );
}

/** `rows` have a label, the share of the track that is filled, and the words beside it. */
export function chances({ caption, heads: [name, words], rows, kind }) {
  return table({
    caption,
    kind: "chances",
    heads: [
      { words: name, className: "name" },
      { words: "Bar", className: "bar", hidden: true },
      { words, className: "n" },
    ],
    rows: rows.map(({ label, share, told, className }) => ({
      className,
      cells: [String(label), leftBar(share, kind), told],
    })),
  });
}
