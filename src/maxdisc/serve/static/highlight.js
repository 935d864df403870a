// The words of a text where they stand, marked by what they say: colour and underline both tell direction and strength.

import { find, make } from "./dom.js";
import { bet, signed } from "./numbers.js";

// More letters than this are shown on demand only: each marked word is an element.
const MOST = 20000;
const STRENGTHS = 4;

/** Cut a text into pieces, each with the spans that cover it. Terms of several words may overlap. */
export function pieces(text, spans) {
  const cuts = new Set([0, text.length]);
  for (const { start, end } of spans) {
    if (start < end && end <= text.length) cuts.add(start).add(end);
  }
  const edges = [...cuts].sort((a, b) => a - b);
  const waiting = [...spans].sort((a, b) => a.start - b.start);
  let open = [];
  let next = 0;
  return edges.slice(0, -1).map((start, place) => {
    const end = edges[place + 1];
    while (next < waiting.length && waiting[next].start <= start) open.push(waiting[next++]);
    open = open.filter((span) => span.end > start);
    return { start, end, words: text.slice(start, end), spans: open.filter((span) => span.end >= end) };
  });
}

let pair = []; // the two classes that the words shown speak for and against

find("words").addEventListener("keydown", move);
for (const kind of ["focusin", "mouseover"]) {
  find("words").addEventListener(kind, (event) => {
    const mark = event.target.closest("mark");
    if (mark) tell(mark);
  });
}

/** Show the text of an explanation in place. */
export function showWords(text, { spans, first, second }) {
  const place = find("words");
  find("words-key").replaceChildren(
    make("span", {}, make("mark", { class: "for s3" }, "for"), ` ${first}`),
    make("span", {}, make("mark", { class: "against s3" }, "against"), ` it, for ${second}`),
    make("span", { class: "soft" }, "the stronger, the darker"),
  );
  tell(null);
  const render = (length) => {
    const shown = text.slice(0, length);
    const seen = spans.filter(({ end }) => end <= length);
    // Not a spread: seen may hold more entries than a call takes arguments.
    const most = seen.reduce((so, { odds }) => Math.max(so, Math.abs(odds)), 1e-9);
    place.replaceChildren(...pieces(shown, seen).map((piece) => rendered(piece, most)));
    const marks = place.querySelectorAll("mark");
    if (marks.length) marks[0].tabIndex = 0;
    if (length < text.length)
      place.append(
        " … ",
        make("button", { type: "button", click: () => render(text.length) }, "Show all of the text"),
      );
    else if (!seen.length)
      place.append(make("p", { class: "empty" }, "The model knows none of these words."));
  };
  render(text.length > MOST ? cutBefore(text, MOST) : text.length);
  pair = [first, second];
}

// Not between the two halves of one character.
function cutBefore(text, length) {
  const unit = text.charCodeAt(length - 1);
  return unit >= 0xd800 && unit < 0xdc00 ? length - 1 : length;
}

function rendered({ words, spans }, most) {
  const odds = spans.reduce((sum, span) => sum + span.odds, 0);
  if (!spans.length) return words;
  const strength = Math.min(STRENGTHS, 1 + Math.floor((STRENGTHS * Math.abs(odds)) / most));
  const mark = make(
    "mark",
    { class: `${odds < 0 ? "against" : "for"} s${strength}`, tabindex: -1, "aria-describedby": "word-told" },
    words,
  );
  mark.evidence = { odds, features: [...new Set(spans.map(({ feature }) => feature))] };
  return mark;
}

function move(event) {
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity }[
    event.key
  ];
  if (step === undefined || event.target.tagName !== "MARK") return;
  event.preventDefault();
  const marks = [...find("words").querySelectorAll("mark")];
  const at = marks.indexOf(event.target);
  const to = marks[Math.max(0, Math.min(marks.length - 1, at + step))];
  event.target.tabIndex = -1;
  to.tabIndex = 0;
  to.focus();
}

function tell(mark) {
  const [first, second] = pair;
  for (const old of find("words").querySelectorAll("mark.told-of")) old.classList.remove("told-of");
  if (!mark) {
    find("word-told").textContent =
      "Point at a word, or go there with Tab and the arrow keys, to read its odds.";
    return;
  }
  mark.classList.add("told-of");
  const { odds, features } = mark.evidence;
  const [winner, loser] = odds < 0 ? [second, first] : [first, second];
  find("word-told").textContent =
    `${features.map((name) => `“${name}”`).join(", ")}: ${bet(odds)} for ${winner} against ${loser}, log-odds ${signed(odds)}`;
}
