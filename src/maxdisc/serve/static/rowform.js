// A row of a table as a form: one input for each column, and nothing for what is not known.

import { find, make, say, settled } from "./dom.js";
import { counted, plain } from "./numbers.js";

// Wider tables show the columns that tell most; the others are found by name.
const MOST = 36;
const MOST_LEVELS = 200;

/** `changed` is called whenever the row is; `named` gives the columns that have something in their name, from the service. */
export function rowForm(changed, named) {
  let columns = [];
  let empty = "not known";
  let open = false; // whether there may be more columns than those at hand
  let values = new Map();
  let order = [];

  const isTruth = (value) => String(value).toLowerCase() === "true";

  /** A typical value as the form keeps it; undefined if the form cannot show it. */
  function example({ kind, levels, typical }) {
    const value = typical?.example;
    if (value === undefined || value === null) return undefined;
    if (kind === "truth") return typeof value === "string" ? isTruth(value) : value > 0.5;
    if (kind === "category") return levels?.includes(value) ? value : undefined;
    return value;
  }

  function range(column, id) {
    const [low, high] = column.typical?.range || [];
    return low === undefined
      ? null
      : make("span", { id: `${id}-range`, class: "soft small" }, `${plain(low, 3)} to ${plain(high, 3)}`);
  }

  function input(column, id) {
    const kept = values.get(column.name);
    if (column.kind === "truth")
      return choice(
        column,
        id,
        [
          ["yes", true],
          ["no", false],
        ],
        kept,
      );
    if (column.kind === "category" && column.levels && column.levels.length <= MOST_LEVELS) {
      return choice(
        column,
        id,
        column.levels.map((level) => [String(level), level]),
        kept,
      );
    }
    return typed(column, id, kept);
  }

  // Values are places in the list: a level may be called anything, even nothing.
  function choice(column, id, pairs, kept) {
    const select = make(
      "select",
      { id, name: column.name },
      make("option", { value: "" }, "not known"),
      ...pairs.map(([words], place) => make("option", { value: place }, words === "" ? "(empty)" : words)),
    );
    const place = pairs.findIndex(([, value]) => value === kept);
    if (place >= 0) select.value = String(place);
    select.addEventListener("change", () =>
      put(column, select.value === "" ? undefined : pairs[Number(select.value)][1]),
    );
    return select;
  }

  function typed(column, id, kept) {
    const number = column.kind === "number";
    const list =
      !number && column.levels
        ? make(
            "datalist",
            { id: `${id}-levels` },
            ...column.levels.slice(0, 1000).map((level) => make("option", { value: level })),
          )
        : null;
    const field = make("input", {
      id,
      name: column.name,
      autocomplete: "off",
      spellcheck: "false",
      inputmode: number ? "decimal" : null,
      placeholder: empty,
      list: list && list.id,
      "aria-describedby": column.typical?.range ? `${id}-range` : null,
    });
    if (kept !== undefined) field.value = String(kept);
    field.addEventListener("input", () => {
      const words = field.value.trim();
      const wrong = number && words !== "" && !Number.isFinite(asNumber(words));
      field.setAttribute("aria-invalid", String(wrong));
      put(column, words === "" ? undefined : number ? (wrong ? words : asNumber(words)) : field.value);
    });
    return list ? [field, list] : field;
  }

  function put(column, value) {
    if (value === undefined) values.delete(column.name);
    else values.set(column.name, value);
    changed();
  }

  function show() {
    const wanted = find("cell-search").value.trim().toLowerCase();
    const fits = order.filter(({ name }) => name.toLowerCase().includes(wanted));
    const shown = fits.slice(0, MOST);
    find("cells").replaceChildren(
      ...shown.map((column, place) => {
        const id = `cell-${place}`;
        return make(
          "div",
          { class: "field" },
          make("label", { for: id }, column.name),
          ...[input(column, id)].flat(),
          range(column, id),
        );
      }),
    );
    const left = fits.length - shown.length;
    say(
      find("cells-left"),
      left > 0
        ? `${counted(left, "further column")} not shown: find them by name. Those shown tell most about the classes.`
        : fits.length
          ? ""
          : "No column has a name like that.",
    );
  }
  async function search() {
    const wanted = find("cell-search").value.trim();
    if (open && wanted) {
      const known = new Set(columns.map(({ name }) => name));
      columns.push(...(await named(wanted)).filter(({ name }) => !known.has(name)));
    }
    show();
  }
  find("cell-search").addEventListener("input", settled(search, 200));

  return {
    /** `given` are columns; without names of columns what is empty is zero. */
    show(given, { unnamed = false } = {}) {
      columns = given;
      open = unnamed;
      empty = unnamed ? "0" : "not known";
      values = new Map();
      const placed = ({ rank }) => rank ?? columns.length;
      order = unnamed ? columns : [...columns].sort((a, b) => placed(a) - placed(b));
      find("row-hint").textContent = unnamed
        ? "Fill in non-zero values; leave the others empty."
        : "Fill in known values and leave the others empty: missing cells carry no evidence. Columns are in the order of the ranking, with their usual range.";
      find("find-cell").hidden = columns.length <= MOST;
      find("cell-search").value = "";
      show();
    },
    hasExample: () => columns.some((column) => example(column) !== undefined),
    /** Fill in typical values of the largest class. */
    fillExample() {
      values = new Map(
        columns.map((column) => [column.name, example(column)]).filter(([, value]) => value !== undefined),
      );
      show();
    },
    clear() {
      values.clear();
      show();
    },
    isEmpty: () => values.size === 0,
    /** What is known; a column that is not named is missing. */
    row: () => Object.fromEntries(values),
    /** What is not a number where one should be. */
    wrong: () =>
      columns
        .filter(({ name, kind }) => kind === "number" && typeof values.get(name) === "string")
        .map(({ name }) => name),
    focus: () => find("cell-0")?.focus(),
  };
}

// "1,5" is no number to a machine but is one to half of the world.
function asNumber(words) {
  return Number(/^[-+]?\d*,\d+$/.test(words) ? words.replace(",", ".") : words);
}
