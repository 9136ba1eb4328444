"use strict";
// Themes: the reader's own choice, else the system's. Charts use the style sheet's colours, so nothing is drawn anew.
const root = document.documentElement;
const dark = matchMedia("(prefers-color-scheme: dark)");
const stored = () => { try { return localStorage.getItem("kernelab-theme"); } catch { return null; } };
const showTheme = () => { root.dataset.theme = stored() || (dark.matches ? "dark" : "light"); };
showTheme();
dark.addEventListener("change", showTheme);
document.querySelector("button.theme").addEventListener("click", () => {
  const next = root.dataset.theme === "dark" ? "light" : "dark";
  try { localStorage.setItem("kernelab-theme", next); } catch { /* a file:// page may not store */ }
  root.dataset.theme = next;
});

// Charts: drawn when they come near the screen.
const look = JSON.parse(document.getElementById("look").textContent);
const draw = async (plot) => {
  if (plot.dataset.drawn) return;
  plot.dataset.drawn = "yes";
  try {
    const spec = JSON.parse(document.getElementById("spec-" + plot.dataset.chart).textContent);
    const width = plot.clientWidth;
    spec.config = structuredClone(look);
    spec.config.axis.labelLimit = Math.max(90, Math.min(320, width * 0.4));
    spec.config.legend.columns = width < 520 ? 1 : spec.config.legend.columns;
    spec.config.legend.labelLimit = Math.max(150, width * 0.6);
    spec.autosize = spec.vconcat ? undefined : { type: "fit-x", contains: "padding" };
    for (const view of spec.vconcat || []) view.width = Math.max(180, width - 75);
    await vegaEmbed(plot, spec, { mode: "vega-lite", renderer: "svg", actions: false, tooltip: { theme: "kernelab" } });
    // The place around the chart says what it shows; the roles that Vega gives to marks without names only confuse.
    plot.querySelectorAll("svg [role]").forEach((mark) => ["role", "aria-roledescription"].forEach((name) => mark.removeAttribute(name)));
  } catch (error) {
    plot.textContent = "This chart could not be drawn: " + error.message;
    console.error(error);
  }
};
const plots = [...document.querySelectorAll(".plot[data-chart]")];
const near = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) { near.unobserve(entry.target); draw(entry.target); }
}, { rootMargin: "400px" });
plots.forEach((plot) => near.observe(plot));
addEventListener("beforeprint", () => plots.filter((plot) => plot.clientWidth).forEach(draw));

// Tables: sorted by the headings' buttons, filtered by the fields above them.
const key = (cell) => cell.dataset.value ?? cell.textContent.trim();
for (const table of document.querySelectorAll("table.sortable")) {
  table.querySelectorAll("thead th button").forEach((button) => button.addEventListener("click", () => {
    const heading = button.closest("th");
    const up = heading.getAttribute("aria-sort") !== "ascending";
    table.querySelectorAll("th[aria-sort]").forEach((other) => other.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
    const numeric = heading.classList.contains("number");
    const rows = [...table.tBodies[0].rows].map((row) => [key(row.cells[heading.cellIndex]), row]);
    rows.sort(([a], [b]) => {
      if (!a || !b) return (a ? 0 : 1) - (b ? 0 : 1); // empty cells last, either way
      return (up ? 1 : -1) * (numeric ? a - b : a.localeCompare(b, undefined, { numeric: true }));
    });
    table.tBodies[0].append(...rows.map(([, row]) => row));
  }));
}
for (const form of document.querySelectorAll("form.filters")) {
  const table = document.getElementById(form.dataset.table);
  const rows = [...table.tBodies[0].rows].map((row) => [row, row.textContent.toLowerCase()]);
  const apply = () => {
    const words = form.elements.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const only = form.elements.only.value;
    let shown = 0;
    for (const [row, text] of rows) {
      row.hidden = !(words.every((word) => text.includes(word)) && (!only || row.dataset.kind === only));
      shown += !row.hidden;
    }
    form.querySelector("output").value = `${shown} of ${rows.length} rows`;
  };
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  apply();
}
document.querySelectorAll("button.all").forEach((button) => button.addEventListener("click", () => {
  const open = button.getAttribute("aria-pressed") !== "true";
  button.setAttribute("aria-pressed", open);
  document.querySelectorAll("main details").forEach((details) => { details.open = open; });
}));
if (innerWidth < 992) document.querySelector("nav details").open = false;
// A link to something inside a closed part opens it.
const reveal = () => {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let part = target; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
  if (target) target.scrollIntoView();
};
addEventListener("hashchange", reveal);
reveal();
