// The model as a whole: its size, its K curve, its classes, settings and columns.

import { chances } from "./chances.js";
import { kCurve } from "./curve.js";
import { find, make, table } from "./dom.js";
import { counted, percent, plain, size, whole } from "./numbers.js";

const COLUMNS = 200;

export function aboutView() {
  return {
    show(model) {
      const path = model.path;
      const best = path ? path.accuracy[path.sizes.indexOf(path.chosen)] : undefined;
      const tiles = [
        ["Classes", whole(model.classes.length)],
        [
          model.kind === "text" ? "Words selected" : "Features selected",
          whole(model.n_selected),
          `of ${whole(model.n_features)}`,
        ],
        best === undefined ? null : ["Held-out accuracy", percent(best), "on the folds of the fit"],
        model.file ? ["Model file", size(model.file.bytes), `format ${model.file.format}`] : null,
      ].filter(Boolean);
      find("numbers").replaceChildren(
        ...tiles.map(([name, ...told]) =>
          make("div", {}, make("dt", {}, name), ...told.map((words) => make("dd", {}, words))),
        ),
      );
      find("curve").replaceChildren(
        ...(path
          ? kCurve(path)
          : [make("p", { class: "empty" }, "The number of features was set, so there is no curve.")]),
      );
      find("shares").replaceChildren(shares(model.classes));
      find("settings").replaceChildren(...settings(model.settings || {}));
      const columns = model.kind === "text" ? [] : model.columns || [];
      find("columns-card").hidden = columns.length === 0;
      find("columns").replaceChildren(...listed(columns));
    },
  };
}

function shares(classes) {
  const most = Math.max(...classes.map(({ share }) => share), 1e-9);
  const rows = classes.map(({ label, share }) => ({ label, share: share / most, told: percent(share) }));
  return chances({
    caption: "Classes and the shares they had in training",
    heads: ["Class", "Share"],
    rows,
    kind: "quiet",
  });
}

// What was found stands first; what was asked for, by part ("classifier: cv"), is there to unfold.
function settings(told) {
  const entries = Object.entries(told).map(([name, value]) => ({
    part: name.includes(": ") ? name.split(": ")[0] : "",
    name: name.split(": ").at(-1),
    value,
  }));
  const parts = [...new Set(entries.map(({ part }) => part))];
  const listed = (part) =>
    table({
      caption: part ? `Settings of the ${part}` : "What the model uses",
      kind: "plain settings",
      heads: [{ words: "Setting" }, { words: "Value" }],
      rows: entries
        .filter((entry) => entry.part === part)
        .map(({ name, value }) => ({ cells: [name.replaceAll("_", " "), spoken(value)] })),
    });
  return parts.map((part) =>
    part ? make("details", {}, make("summary", {}, `As asked of the ${part}`), listed(part)) : listed(part),
  );
}

function spoken(value) {
  if (value === null || value === undefined) return "none";
  if (typeof value === "number") return plain(value);
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function listed(columns) {
  const families = new Map();
  for (const { family } of columns) families.set(family, (families.get(family) || 0) + 1);
  const summary = [...families]
    .sort((a, b) => b[1] - a[1])
    .map(([family, count]) => `${whole(count)} ${family ?? "without a family"}`)
    .join(", ");
  return [
    make("p", { class: "soft" }, `By family: ${summary}.`),
    make(
      "div",
      { class: "scroll tall", tabindex: 0, role: "region", "aria-label": "Columns" },
      table({
        caption: "Columns of the table",
        kind: "plain",
        heads: [{ words: "Column" }, { words: "Kind" }, { words: "Family" }, { words: "Levels" }],
        rows: columns.slice(0, COLUMNS).map(({ name, kind, family, levels }) => ({
          cells: [
            name,
            kind,
            family ?? "–",
            !levels
              ? ""
              : levels.length > 8
                ? `${levels.slice(0, 8).join(", ")} and ${whole(levels.length - 8)} more`
                : levels.join(", "),
          ],
        })),
      }),
    ),
    columns.length > COLUMNS
      ? make(
          "p",
          { class: "soft small" },
          `${counted(columns.length - COLUMNS, "further column")}: see Features.`,
        )
      : null,
  ].filter(Boolean);
}
