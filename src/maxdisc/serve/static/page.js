// The page: which model, which view, whether a token is needed, where a dropped file goes.

import { aboutView } from "./about.js";
import { ask, hasToken, setLimits, setToken } from "./api.js";
import { classifyView } from "./classify.js";
import { fileView } from "./csvfile.js";
import { find, options, say } from "./dom.js";
import { rankingView } from "./ranking.js";
import { startTabs } from "./tabs.js";
import { counted, whole } from "./numbers.js";

const views = { classify: classifyView(), file: fileView(), features: rankingView(), model: aboutView() };
let model = null;
let upToDate = new Set();

// A view asks for what it shows when it is first looked at.
const tabs = startTabs((name) => {
  if (!model || upToDate.has(name)) return;
  upToDate.add(name);
  views[name].show(model);
});

async function start() {
  try {
    await ready();
    const { models } = await ask("models");
    if (!models.length) throw new Error("The service has no model.");
    const first = models.find((one) => one.default) || models[0];
    options(
      find("models"),
      models.map(({ name }) => [name, name]),
      first.name,
    );
    find("choose-model").hidden = models.length < 2;
    await open(first.name);
  } catch (error) {
    find("starting").hidden = true;
    if (error.status !== 401) say(find("trouble"), error.message);
  }
}

// Large models take a while to load; the service answers all the same, and says so.
async function ready() {
  for (;;) {
    try {
      return await ask("readyz");
    } catch (error) {
      if (error.status !== 503) throw error;
      find("starting").textContent = "The service is loading its models …";
      await new Promise((done) => setTimeout(done, 500));
    }
  }
}

async function open(name) {
  const given = await ask("model", { query: { model: name } });
  // Another may have been chosen meanwhile.
  if (find("models").value !== name) return;
  model = given;
  setLimits(model.limits);
  upToDate = new Set();
  const features = model.kind === "text" ? "words" : "features";
  document.title = `${model.name} · maxdisc`;
  find("title").textContent = model.name;
  const kept =
    model.n_selected === model.n_features
      ? `all ${whole(model.n_features)}`
      : `${whole(model.n_selected)} of ${whole(model.n_features)}`;
  find("facts").textContent =
    `${counted(model.classes.length, "class", "classes")} · ${kept} ${features} selected`;
  find("file-facts").textContent = [
    `maxdisc ${model.version || ""}`.trim(),
    model.file && model.file.loaded_at ? `model loaded ${when(model.file.loaded_at)}` : "",
  ]
    .filter(Boolean)
    .join(" · ");
  say(find("trouble"), "");
  find("starting").hidden = true;
  find("token-form").hidden = true;
  find("tabs").hidden = false;
  tabs.start();
}

function when(told) {
  const date = new Date(typeof told === "number" ? told * 1000 : told);
  return Number.isNaN(date.valueOf())
    ? String(told)
    : date.toLocaleString("en", { dateStyle: "medium", timeStyle: "short" });
}

find("models").addEventListener("change", async (event) => {
  try {
    await open(event.target.value);
  } catch (error) {
    if (model) event.target.value = model.name;
    if (error.status !== 401) say(find("trouble"), error.message);
  }
});

document.addEventListener("token-needed", () => {
  find("starting").hidden = true;
  find("tabs").hidden = true;
  for (const name of Object.keys(views)) find(name).hidden = true;
  say(find("token-trouble"), hasToken() ? "The service does not take this token." : "");
  setToken("");
  find("token-form").hidden = false;
  find("token").value = "";
  find("token").focus();
});

find("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const value = find("token").value.trim();
  // Headers hold no other letters; the browser would refuse to send them.
  if (!/^[\x21-\x7e]+$/.test(value))
    return say(find("token-trouble"), "A token has letters, digits and signs only, and no spaces.");
  setToken(value);
  start();
});

// A file that is dropped anywhere is taken by the view that is open; elsewhere the browser would leave the page for it.
const carriesFile = (event) => event.dataTransfer && [...event.dataTransfer.types].includes("Files");
const over = (now) => document.body.classList.toggle("dropping", now);
addEventListener("dragover", (event) => {
  if (!carriesFile(event)) return;
  event.preventDefault();
  over(Boolean(model));
});
addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) over(false);
});
addEventListener("drop", (event) => {
  if (!carriesFile(event)) return;
  event.preventDefault();
  over(false);
  const [file] = event.dataTransfer.files;
  if (!file || !model || find("tabs").hidden) return;
  if (tabs.current() === "classify" && views.classify.takesText()) return views.classify.takeFile(file);
  tabs.open("file");
  views.file.take(file);
});

start();
