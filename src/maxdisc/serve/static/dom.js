// Elements from data. Data only ever becomes text or an attribute's value: a document with markup in it stays text.

const SVG = "http://www.w3.org/2000/svg";

export const find = (id) => document.getElementById(id);

/** An element; attributes that are null, undefined or false are left out, functions are listeners. */
export function make(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function draw(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** A custom property of CSS: the way to a width from data that the content security policy leaves open. */
export function styled(element, name, value) {
  element.style.setProperty(name, value);
  return element;
}

/** Put words into an element, and show it only if there are any. */
export function say(element, words) {
  element.textContent = words || "";
  element.hidden = !words;
}

export function options(select, pairs, chosen) {
  select.replaceChildren(...pairs.map(([value, words]) => make("option", { value }, words)));
  select.value = chosen;
}

/** A table with a caption for those who hear it, headings with scopes, and rows of cells; the first cell names its row. */
export function table({ caption, heads, rows, kind }) {
  const head = heads.map(({ words, className, hidden }) =>
    make("th", { scope: "col", class: className }, hidden ? make("span", { class: "unseen" }, words) : words),
  );
  return make(
    "table",
    { class: kind },
    make("caption", { class: "unseen" }, caption),
    make("thead", {}, make("tr", {}, ...head)),
    make(
      "tbody",
      {},
      ...rows.map(({ cells, className }) =>
        make(
          "tr",
          { class: className },
          ...cells.map((cell, column) => {
            const content = typeof cell === "string" ? breakable(cell) : Array.isArray(cell) ? cell : [cell];
            const name = heads[column].className;
            return column === 0
              ? make("th", { scope: "row", class: name }, ...content)
              : make("td", { class: name }, ...content);
          }),
        ),
      ),
    ),
  );
}

/** Words that may be broken after the dots, dashes and slashes that long names are made of. */
export function breakable(words) {
  return words
    .split(/(?<=[._/:,;=])(?=[^\s\d])/)
    .flatMap((part, place) => (place ? [make("wbr"), part] : [part]));
}

/** Wait until calls cease for so many milliseconds. */
export function settled(call, pause) {
  let timer = 0;
  const later = (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...given), pause);
  };
  later.cancel = () => clearTimeout(timer);
  return later;
}
