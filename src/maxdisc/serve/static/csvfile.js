// A CSV file in, the same rows with predictions out.

import { ask, mostBytes, newest } from "./api.js";
import { chances } from "./chances.js";
import { find, make, say, table } from "./dom.js";
import { counted, percent, plain, size } from "./numbers.js";

const PREVIEW = 10;
// Longer cells show so many characters, and no more than that when they are opened.
const EXCERPT = 160;
const MOST_SHOWN = 20_000;
const GIVEN = ["label", "probability", "runner_up", "runner_up_probability", "novelty"];

/** Rows of a CSV, each a list of cells; quotes may hold commas, quotes and new lines. */
export function parsed(text) {
  const rows = [];
  let row = [];
  let cell = "";
  let quoted = false;
  const endRow = () => {
    row.push(cell);
    if (row.length > 1 || row[0] !== "") rows.push(row);
    [row, cell] = [[], ""];
  };
  for (let place = 0; place < text.length; place++) {
    const letter = text[place];
    if (quoted) {
      if (letter !== '"') cell += letter;
      else if (text[place + 1] === '"') cell += text[++place];
      else quoted = false;
    } else if (letter === '"') quoted = true;
    else if (letter === ",") {
      row.push(cell);
      cell = "";
    } else if (letter === "\n") endRow();
    else if (letter !== "\r") cell += letter;
  }
  if (cell !== "" || row.length) endRow();
  return rows;
}

/** The beginning of a long text; the rest of it opens on a click. */
function longCell(words) {
  const cut = words.lastIndexOf(" ", EXCERPT);
  const excerpt = words.slice(0, cut > EXCERPT / 2 ? cut : EXCERPT);
  const rest = words.length > MOST_SHOWN ? `${words.slice(0, MOST_SHOWN)}…` : words;
  return make(
    "details",
    { class: "long" },
    make("summary", {}, make("span", { class: "excerpt" }, `${excerpt}…`)),
    make("p", {}, rest),
  );
}

export function fileView() {
  let model = null;
  let address = null;
  const latest = newest();

  function forget() {
    if (address) URL.revokeObjectURL(address);
    address = null;
    find("csv-result").hidden = true;
    say(find("csv-trouble"), "");
    find("csv-said").textContent = "";
  }

  async function take(file) {
    forget();
    if (model.kind === "vectors") return;
    const most = mostBytes();
    if (most && file.size > most) {
      return say(
        find("csv-trouble"),
        `${file.name} is too large: ${size(file.size)}, and the service takes ${size(most)} at most. Split it, or use maxdisc predict.`,
      );
    }
    find("csv-said").textContent = `Predicting ${file.name} …`;
    const { answer, error, late } = await latest((signal) =>
      ask("predict.csv", { query: { model: model.name }, body: file, type: "text/csv", as: "text", signal }),
    );
    if (late) return;
    find("csv-said").textContent = "";
    if (error) return say(find("csv-trouble"), error.message);
    address = URL.createObjectURL(new Blob([answer], { type: "text/csv" }));
    const link = find("csv-download");
    link.href = address;
    link.download = `${file.name.replace(/\.[^.]*$/, "")}-predictions.csv`;
    show(parsed(answer), file.name);
  }

  function show([heads = [], ...rows], name) {
    find("csv-said").textContent = `${counted(rows.length, "row")} of ${name} predicted.`;
    // What was predicted stands behind the input's columns, which may have the same names.
    const at = (column) => heads.lastIndexOf(column);
    const given = GIVEN.filter((column) => at(column) >= 0);
    const own = heads
      .map((_, place) => place)
      .filter((place) => !given.some((column) => at(column) === place));
    const text = own.find((place) => model.kind === "text" && heads[place] === (model.text_column || "text"));
    const order = text === undefined ? own : [text, ...own.filter((place) => place !== text)];
    const shownColumns = [...order.slice(0, 1), ...given.map(at), ...order.slice(1, 4)];
    const left = heads.length - shownColumns.length;
    const cell = (place, words = "") => {
      if (given.some((column) => at(column) === place) && /probability/.test(heads[place]) && words !== "")
        return percent(Number(words));
      if (heads[place] === "novelty" && at("novelty") === place && words !== "")
        return plain(Number(words), 2);
      return words.length > EXCERPT ? longCell(words) : words;
    };
    // Documents need width more than their counts do.
    const isText = model.kind === "text";
    find("csv-result").classList.toggle("stacked", isText);
    const ownClass = (place) => (isText && heads[place] === (model.text_column || "text") ? "own document" : "own");
    find("csv-preview").replaceChildren(
      make(
        "div",
        { class: "scroll", tabindex: 0, role: "region", "aria-label": "The first rows" },
        table({
          caption: "The first rows with their predictions",
          kind: "plain preview",
          heads: shownColumns.map((place) => ({
            words: heads[place].replaceAll("_", " "),
            className: given.some((column) => at(column) === place) ? "given" : ownClass(place),
          })),
          rows: rows
            .slice(0, PREVIEW)
            .map((row) => ({ cells: shownColumns.map((place) => cell(place, row[place])) })),
        }),
      ),
      make(
        "p",
        { class: "soft small" },
        [
          rows.length > PREVIEW ? `The first ${PREVIEW} rows.` : "",
          left > 0 ? `${counted(left, "further column")} in the file.` : "",
        ]
          .join(" ")
          .trim(),
      ),
    );
    counts(rows.map((row) => row[at("label")]));
    find("csv-result").hidden = false;
  }

  function counts(labels) {
    const times = new Map();
    for (const label of labels) times.set(label, (times.get(label) || 0) + 1);
    const order = [...times].sort((a, b) => b[1] - a[1]);
    const rows = order
      .slice(0, 30)
      .map(([label, count]) => ({ label, share: count / order[0][1], told: counted(count, "row") }));
    find("csv-counts").replaceChildren(
      chances({ caption: "How often each label was given", heads: ["Label", "Rows"], rows }),
    );
  }

  find("csv").addEventListener("change", (event) => {
    const [file] = event.target.files;
    if (file) take(file);
  });
  // So that the same file can be chosen again once it was mended.
  find("csv").addEventListener("click", (event) => {
    event.target.value = "";
  });
  find("csv-form").addEventListener("submit", (event) => event.preventDefault());

  return {
    take,
    show(given) {
      model = given;
      forget();
      const columns = (model.columns || []).map(({ name }) => name);
      const named =
        columns.slice(0, 8).join(", ") +
        (columns.length > 8 ? ` and ${counted(columns.length - 8, "more", "more")}` : "");
      const most = mostBytes();
      const unnamed = model.kind === "vectors";
      find("csv-zone").hidden = unnamed;
      find("csv-hint").textContent = unnamed
        ? "This model was fitted on rows without names of columns, which a CSV cannot hold. Send rows to POST /predict instead."
        : [
            model.kind === "text"
              ? `A first line with names, and the documents in the column “${model.text_column || "text"}”.`
              : `A first line with names, among them ${named}. Cells may be empty.`,
            "The file comes back with a label, its probability and the runner-up for every row.",
            most ? `At most ${size(most)}.` : "",
          ]
            .join(" ")
            .trim();
    },
  };
}
