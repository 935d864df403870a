() => {
  const faults = [];
  const seen = new Set();
  const named = (one) => (one.getAttribute("aria-label") || one.textContent || "").trim() !== "";
  for (const one of document.querySelectorAll("[id]")) {
    if (seen.has(one.id)) faults.push(`twice: ${one.id}`);
    seen.add(one.id);
  }
  for (const name of ["aria-labelledby", "aria-describedby", "aria-controls", "for", "list"]) {
    for (const one of document.querySelectorAll(`[${name}]`)) {
      for (const id of one.getAttribute(name).split(" "))
        if (!seen.has(id)) faults.push(`${name} of nothing: ${id}`);
    }
  }
  for (const one of document.querySelectorAll("input, select, textarea")) {
    if (!one.labels.length && !one.getAttribute("aria-label")) faults.push(`no label: ${one.outerHTML}`);
  }
  for (const one of document.querySelectorAll("button, a[href], summary"))
    if (!named(one)) faults.push(`no name: ${one.outerHTML}`);
  for (const one of document.querySelectorAll("th"))
    if (!one.getAttribute("scope")) faults.push(`no scope: ${one.outerHTML}`);
  for (const one of document.querySelectorAll("table"))
    if (!one.caption || !one.caption.textContent) faults.push("no caption");
  for (const one of document.querySelectorAll("svg")) {
    const told =
      one.getAttribute("role") === "img" &&
      one.querySelector("title") &&
      one.querySelector("title").textContent;
    if (!told && one.getAttribute("aria-hidden") !== "true") faults.push("a picture without words");
  }
  for (const one of document.querySelectorAll("[style]"))
    if (/[^-\w:.%;\s]/.test(one.getAttribute("style"))) faults.push("style");
  if (document.querySelectorAll("h1").length !== 1) faults.push("h1");
  for (const one of ["main", "header", "footer", "[role=status]", "[role=alert]", "html[lang]"]) {
    if (!document.querySelector(one)) faults.push(`no ${one}`);
  }
  return faults;
};
