// Does telling lessons help? Two rates, each with its counts; where nothing was measured there is no figure.

import { ask } from "./api.js";
import { at, fill, h, line } from "./dom.js";
import { chart, legend } from "./chart.js";
import { counted, empty, heading, label, percent, when } from "./parts.js";
import { OUTCOMES } from "./lessons.js";

export async function outcomes(main, { signal }) {
  const [told, days, ledger] = await Promise.all([
    ask("audit", {}, signal), ask("days", {}, signal), ask("tellings", { limit: 30 }, signal)]);
  const found = told.injections;
  const measured = found.effective + found.ineffective;
  const drawing = h("div", { class: "drawing" });
  fill(main, heading("Outcomes"),
    h("div", { class: "figures" },
      figure("Precision", found.precision_rate, measured ? `${found.effective} of ${counted(measured, "measured telling")} had a proven fix after it`
        : "nothing was measured yet"),
      figure("Coverage", found.coverage_rate, found.total ? `${measured} of ${counted(found.total, "telling")} could be measured` : "nothing was told yet"),
      figure("Prevented", null, "the command that once failed ran after the telling and never failed; in neither rate", String(found.prevented))),
    h("section", { class: "card" }, h("h2", {}, "Up to each day"),
      days.days.length ? [drawing, legend(), table(days.days)] : empty("No figure yet.", "Once a lesson has been told in a block, its outcome is settled when that session rests.")),
    h("section", { class: "card" }, h("h2", {}, "The latest tellings"), ledger.tellings.length ? list(ledger.tellings)
      : h("p", { class: "soft" }, "Nothing was told yet.")),
    h("p", { class: "soft" }, "“Effective” says that somebody recovered after being told, not that the telling did it. Coverage is small by construction."));
  if (days.days.length) {
    const draw = () => fill(drawing, chart(days.days, Math.max(280, Math.floor(drawing.clientWidth))));
    draw();
    const watch = new ResizeObserver(draw);
    watch.observe(drawing);
    signal.addEventListener("abort", () => watch.disconnect());
  }
}

function figure(name, rate, about, instead = null) {
  const said = instead ?? percent(rate);
  return h("section", { class: "card figure" }, h("h2", {}, name),
    h("p", { class: said === "no figure yet" ? "number none" : "number" }, said), h("p", { class: "soft" }, about));
}

function table(days) {
  const cell = (value) => h("td", {}, value === null ? "–" : value);
  return h("details", {}, h("summary", {}, "All numbers"), h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "numbers by day" },
    h("table", {}, h("thead", {}, h("tr", {}, ["day", "told", ...Object.keys(OUTCOMES), "prevented", "precision so far", "coverage so far"]
      .map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, [...days].reverse().map((day) => h("tr", {}, h("th", { scope: "row" }, day.day), cell(day.total),
      Object.keys(OUTCOMES).map((name) => cell(day[name])), cell(day.prevented),
      cell(percent(day.so_far.precision_rate)), cell(percent(day.so_far.coverage_rate))))))));
}

function list(rows) {
  return h("ul", { class: "plain-list ledger" }, rows.map((row) => h("li", { class: "meta" },
    h("span", { class: `chip outcome ${row.outcome}`, title: OUTCOMES[row.outcome] }, row.outcome), when(row.ts, true),
    h("a", { href: at(["lessons", row.lesson]), "data-item": true }, "the lesson"), h("span", { class: "soft" }, "told in"),
    h("a", { href: at(["sessions", row.session]), dir: "auto", "data-item": true }, line(row.session || "no session", 60)), label(row, true))));
}
