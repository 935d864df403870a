// One text or one row: its classes, the evidence, the words in place.

import { ask, askPatiently, mostBytes, newest } from "./api.js";
import { chances } from "./chances.js";
import { find, make, options, say, settled } from "./dom.js";
import { bars, verdict } from "./evidence.js";
import { showWords } from "./highlight.js";
import { percent, plain, size } from "./numbers.js";
import { rowForm } from "./rowform.js";

const PAUSE = 350;
const FEATURES = 12;
const CLASSES = 6;
const EMPTY = {
  text: "Classes and the evidence for them appear here.",
  row: "Fill in a cell: classes and the evidence for them appear here.",
};

export function classifyView() {
  let model = null;
  let isText = true;
  let asked = null; // the text or row that is shown
  let best = []; // its classes, best first
  let n = FEATURES;
  let all = false;
  const latest = newest();
  const words = find("text");
  const later = settled(() => classify(), PAUSE);
  const row = rowForm(later, (search) => features({ search }).catch(() => []));

  /** Features as columns of numbers, the most telling first. */
  async function features(query) {
    const { features: found } = await askPatiently("ranking", {
      query: { model: model.name, limit: 200, ...query },
    });
    return found.map(({ name }) => ({ name, kind: "number" }));
  }

  const question = () =>
    isText
      ? { text: words.value.toWellFormed ? words.value.toWellFormed() : words.value }
      : { row: row.row() };
  const isEmpty = () => (isText ? words.value.trim() === "" : row.isEmpty());

  async function classify() {
    later.cancel();
    say(find("ask-trouble"), "");
    if (isEmpty()) return latest(async () => blank());
    const wrong = isText ? [] : row.wrong();
    if (wrong.length)
      return latest(async () =>
        trouble(`${wrong.join(", ")}: not a number. Write one, like 1.5, or leave it empty.`),
      );
    n = FEATURES;
    return explain(question());
  }

  async function explain(data) {
    find("classify").setAttribute("aria-busy", "true");
    const { answer, error, late } = await latest(async (signal) => {
      const send = (path, json) => ask(path, { query: { model: model.name }, json, signal });
      const novelty = model.novelty
        ? send("predict", isText ? { texts: [data.text], top: 1 } : { rows: [data.row], top: 1 })
        : null;
      // Should both fail, the first failure is told; the second must not go unheard either.
      novelty?.catch(() => {});
      let explanation = await send("explain", { ...data, n });
      const pair = wanted(explanation);
      if (pair) explanation = await send("explain", { ...data, n, ...pair });
      return { explanation, novelty: novelty && (await novelty).predictions[0] };
    });
    if (late) return;
    find("classify").removeAttribute("aria-busy");
    if (error) return trouble(error.message);
    asked = data;
    say(find("ask-trouble"), "");
    shown(answer);
  }

  /** The two classes that were chosen, if they are not the best and the runner-up. */
  function wanted({ classes, first, second }) {
    const labels = classes.map(({ label }) => String(label));
    const of = (id) => (labels.includes(find(id).value) ? find(id).value : "");
    let [left, right] = [of("first"), of("second")];
    if (labels.length < 2 || (!left && !right)) return null;
    left = left || labels.find((label) => label !== right);
    right = right || labels.find((label) => label !== left);
    if (left === String(first) && right === String(second)) return null;
    const as = (told) => classes.find(({ label }) => String(label) === told).label;
    return { first: as(left), second: as(right) };
  }

  function shown({ explanation, novelty }) {
    best = explanation.classes;
    find("answer").classList.remove("empty");
    find("answer").replaceChildren(
      make("strong", {}, String(explanation.label)),
      ` ${percent(explanation.probability)}`,
    );
    const p = novelty && novelty.novelty;
    say(
      find("novelty"),
      p === null || p === undefined
        ? ""
        : p < 0.01
          ? `Possibly none of these: only ${percent(p)} of the rows of known classes fit as badly (novelty p = ${plain(p, 2)}).`
          : `It fits the known classes (novelty p = ${plain(p, 2)}).`,
    );
    showClasses();
    choices(explanation);
    find("verdict").textContent = verdict(explanation);
    const more =
      explanation.features.length >= n
        ? make(
            "p",
            {},
            make(
              "button",
              {
                type: "button",
                id: "more-features",
                click: () => {
                  n *= 2;
                  explain(asked);
                },
              },
              "More features",
            ),
          )
        : null;
    find("bars").replaceChildren(...[...bars(explanation, isText), more].filter(Boolean));
    find("why").hidden = best.length < 2;
    find("words-card").hidden = !isText;
    find("why").classList.toggle("alone", !isText);
    if (isText) showWords(asked.text, explanation);
  }

  function showClasses() {
    const few = all || best.length <= CLASSES + 1 ? best : best.slice(0, CLASSES);
    const rows = few.map(({ label, probability }, place) => ({
      label,
      share: probability,
      told: percent(probability),
      className: place === 0 ? "winner" : "",
    }));
    const toggle = () => {
      all = !all;
      showClasses();
      find("all-classes").focus();
    };
    const button =
      best.length > CLASSES + 1
        ? make(
            "p",
            {},
            make(
              "button",
              { type: "button", id: "all-classes", "aria-expanded": String(all), click: toggle },
              all ? "Fewer classes" : `All ${best.length} classes`,
            ),
          )
        : null;
    find("classes").replaceChildren(
      ...[
        chances({ caption: "Classes, the most probable first", heads: ["Class", "Probability"], rows }),
        button,
      ].filter(Boolean),
    );
  }

  /** The two lists of classes: the first entry follows the best and the runner-up, whatever they are. */
  function choices({ first, second, classes }) {
    for (const [id, now, name] of [
      ["first", first, "best"],
      ["second", second, "runner-up"],
    ]) {
      const chosen = find(id).value;
      const known = classes.some(({ label }) => String(label) === chosen);
      options(
        find(id),
        [
          ["", known ? `the ${name}` : `${now} (${name})`],
          ...classes.map(({ label }) => [String(label), String(label)]),
        ],
        known ? chosen : "",
      );
      find(id).dataset.now = String(now);
    }
  }

  function compared(changed, other) {
    // A class cannot be weighed against itself: the other one takes the place that this one had.
    if (
      find(changed).value !== "" &&
      find(changed).value === (find(other).value || find(other).dataset.now)
    ) {
      find(other).value = find(changed).dataset.now;
    }
    if (asked) explain(asked);
  }

  function swap() {
    const [first, second] = [find("first"), find("second")];
    [first.value, second.value] = [second.dataset.now, first.dataset.now];
    if (asked) explain(asked);
  }

  function trouble(message) {
    say(find("ask-trouble"), message);
    find("classify").removeAttribute("aria-busy");
    asked = null;
    find("why").hidden = true;
    find("classes").replaceChildren();
    say(find("novelty"), "");
    find("answer").classList.add("empty");
    find("answer").textContent = isText ? EMPTY.text : EMPTY.row;
  }

  const blank = () => trouble("");

  async function takeFile(file) {
    try {
      const most = mostBytes();
      if (most && file.size > most)
        throw new Error(`${file.name} has ${size(file.size)}; the service takes ${size(most)} at most.`);
      const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
      if (text.includes("\0")) throw new TypeError();
      words.value = text;
    } catch (error) {
      return trouble(
        error instanceof TypeError
          ? `${file.name} is not a text in UTF-8: save it as plain text, or paste its words.`
          : error.message,
      );
    }
    return classify();
  }

  async function ownWords() {
    const labels = model.classes.map(({ label }) => String(label));
    const of = labels[Math.floor(Math.random() * labels.length)];
    const { answer, error } = await latest((signal) =>
      askPatiently("ranking", { query: { model: model.name, class: of, limit: 30 }, signal }),
    );
    if (error) return trouble(error.message);
    if (!answer) return;
    const names = answer.features.filter(({ kept }) => kept).map(({ name }) => name);
    words.value = names.slice(0, 12).join(" ");
    return classify();
  }

  function clear() {
    words.value = "";
    row.clear();
    classify();
    if (isText) words.focus();
    else row.focus();
  }

  words.addEventListener("input", later);
  words.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) classify();
  });
  find("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    classify();
  });
  find("clear").addEventListener("click", clear);
  find("own-words").addEventListener("click", ownWords);
  find("example").addEventListener("click", () => {
    row.fillExample();
    classify();
  });
  find("open-text").addEventListener("click", () => find("text-file").click());
  find("text-file").addEventListener("change", (event) => {
    const [file] = event.target.files;
    event.target.value = "";
    if (file) takeFile(file);
  });
  find("first").addEventListener("change", () => compared("first", "second"));
  find("second").addEventListener("change", () => compared("second", "first"));
  find("swap").addEventListener("click", swap);

  return {
    takeFile,
    takesText: () => isText,
    async show(given) {
      model = given;
      isText = model.kind === "text";
      all = false;
      find("ask-title").textContent = isText ? "Text" : "A row";
      for (const id of ["text-part", "open-text", "own-words"]) find(id).hidden = !isText;
      find("row-part").hidden = isText;
      options(find("first"), [["", "the best"]], "");
      options(find("second"), [["", "the runner-up"]], "");
      later.cancel();
      await latest(async () => blank());
      const unnamed = model.kind === "vectors";
      const columns = isText ? [] : model.columns || [];
      row.show(columns, { unnamed });
      find("example").hidden = isText || !row.hasExample();
      const [largest] = [...model.classes].sort((a, b) => b.share - a.share);
      find("example").title = `Typical values of the largest class, ${largest?.label}`;
      // A text that is there, or was typed meanwhile, is for this model too.
      if (isText && !isEmpty()) return classify();
      if (!unnamed) return;
      const ranked = await features({}).catch(() => []);
      if (model === given && row.isEmpty()) row.show(ranked, { unnamed });
    },
  };
}
