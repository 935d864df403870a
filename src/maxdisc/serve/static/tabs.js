// Tabs by the usual pattern: one stop of the Tab key, arrows, Home and End; the address remembers which is open.

import { find } from "./dom.js";

export function startTabs(opened) {
  const tabs = [...find("tabs").querySelectorAll("[role=tab]")];
  const named = (name) => tabs.find((tab) => tab.getAttribute("aria-controls") === name);

  function open(tab, { focus = false } = {}) {
    for (const other of tabs) {
      const chosen = other === tab;
      other.setAttribute("aria-selected", String(chosen));
      other.tabIndex = chosen ? 0 : -1;
      find(other.getAttribute("aria-controls")).hidden = !chosen;
    }
    if (focus) tab.focus();
    const name = tab.getAttribute("aria-controls");
    history.replaceState(null, "", `#${name}`);
    opened(name);
  }

  for (const [place, tab] of tabs.entries()) {
    tab.addEventListener("click", () => open(tab));
    tab.addEventListener("keydown", (event) => {
      const to = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: tabs.length - 1 }[event.key];
      if (to === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      open(tabs[(to + tabs.length) % tabs.length], { focus: true });
    });
  }
  addEventListener("hashchange", () => {
    const tab = named(location.hash.slice(1));
    if (tab) open(tab);
  });
  return {
    open: (name) => open(named(name)),
    start: () => open(named(location.hash.slice(1)) || tabs[0]),
    current: () =>
      tabs.find((tab) => tab.getAttribute("aria-selected") === "true").getAttribute("aria-controls"),
  };
}
