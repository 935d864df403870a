// All features, the most telling first; one of them in every class.

import { askPatiently, newest } from "./api.js";
import { leftBar } from "./chances.js";
import { densityPicture } from "./density.js";
import { breakable, find, make, options, say, settled, table } from "./dom.js";
import { plain, whole } from "./numbers.js";

const PAGE = 20;

export function rankingView() {
  let model = null;
  let offset = 0;
  let chosen = null;
  let highest = 0;
  const [list, one] = [newest(), newest()];

  async function load({ choose = false } = {}) {
    const query = {
      model: model.name,
      search: find("search").value.trim(),
      class: find("of-class").value,
      offset,
      limit: PAGE,
    };
    const slow = setTimeout(() => {
      find("ranking-said").textContent = "Working it out …";
    }, 700);
    const { answer, error, late } = await list((signal) => askPatiently("ranking", { query, signal }));
    clearTimeout(slow);
    if (late) return;
    say(find("ranking-trouble"), error ? error.message : "");
    if (error) {
      find("ranking-said").textContent = "";
      return;
    }
    const { total, features } = answer;
    highest = Math.max(highest, ...features.map(({ score }) => score), 1e-300);
    find("ranking").replaceChildren(
      features.length ? listed(features) : make("p", { class: "empty" }, "No feature has a name like that."),
    );
    find("ranking-said").textContent = total
      ? `${whole(offset + 1)} to ${whole(offset + features.length)} of ${whole(total)}`
      : "none";
    find("before").disabled = offset === 0;
    find("next").disabled = offset + features.length >= total;
    if (choose && features.length) show(features[0]);
  }

  function listed(features) {
    const heads = [
      { words: "Feature", className: "name" },
      { words: "Rank", className: "n rank" },
      { words: "Score", className: "bar", hidden: true },
      { words: "Score", className: "n" },
      { words: "Most or least in", className: "of" },
      { words: "p", className: "n p" },
      { words: "q", className: "n q" },
    ];
    const rows = features.map((feature) => ({
      className: [feature.kept ? "" : "left-out", feature.name === chosen ? "chosen" : ""].join(" ").trim(),
      cells: [
        [
          make(
            "button",
            {
              type: "button",
              class: "link",
              "aria-pressed": String(feature.name === chosen),
              click: () => show(feature, true),
            },
            ...breakable(feature.name),
          ),
          feature.kept ? null : make("span", { class: "tag" }, "left out"),
        ],
        whole(feature.rank),
        leftBar(feature.score / highest),
        plain(feature.score, 3),
        speaksFor(feature),
        plain(feature.p, 2),
        plain(feature.q, 2),
      ],
    }));
    return table({
      caption: "Features, best first; select one to see its densities",
      heads,
      rows,
      kind: "ranking",
    });
  }

  // Up: that class has more of it than the others; down: less.
  function speaksFor({ class: label, direction }) {
    if (label === null || label === undefined) return "–";
    const [sign, words] = direction < 0 ? ["▾", "least in "] : ["▴", "most in "];
    return [
      make("span", { class: "sign", "aria-hidden": "true", title: words + label }, sign),
      make("span", { class: "unseen" }, words),
      ...breakable(String(label)),
    ];
  }

  async function show(feature, look = false) {
    chosen = feature.name;
    for (const button of find("ranking").querySelectorAll("button.link")) {
      const now = button.textContent === chosen;
      button.setAttribute("aria-pressed", String(now));
      button.closest("tr").classList.toggle("chosen", now);
    }
    const { answer, error, late } = await one((signal) =>
      askPatiently("density", { query: { model: model.name, feature: chosen }, signal }),
    );
    if (late) return;
    say(find("density-trouble"), error ? error.message : "");
    if (error) return find("density").replaceChildren();
    find("density-title").textContent = `“${feature.name}” in each class`;
    find("density").replaceChildren(...densityPicture(answer, feature.class));
    // Where it stands below the list, it would go unseen.
    if (look) find("density").closest(".card").scrollIntoView({ block: "nearest" });
  }

  function turn(by) {
    offset = Math.max(0, offset + by * PAGE);
    load();
  }
  const fromStart = () => {
    offset = 0;
    load();
  };
  find("search").addEventListener("input", settled(fromStart, 250));
  find("of-class").addEventListener("change", fromStart);
  find("ranking-form").addEventListener("submit", (event) => {
    event.preventDefault();
    fromStart();
  });
  find("before").addEventListener("click", () => turn(-1));
  find("next").addEventListener("click", () => turn(1));

  return {
    show(given) {
      [model, offset, chosen, highest] = [given, 0, null, 0];
      find("search").value = "";
      const labels = model.classes.map(({ label }) => String(label));
      options(find("of-class"), [["", "all classes"], ...labels.map((label) => [label, label])], "");
      find("density-title").textContent = "In each class";
      find("density").replaceChildren(
        make("p", { class: "empty" }, "Select a feature to see its density in each class."),
      );
      load({ choose: true });
    },
  };
}
