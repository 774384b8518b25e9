// A session as it went: each record in its order, the label climbing beside it, and what raised it.

import { ask } from "./api.js";
import { at, fill, h, line, plain, say, stored } from "./dom.js";
import { called, classNames, counted, empty, folded, heading, kind, label, level, project, tone, waiting, when, wrong }
  from "./parts.js";

const PAGE = 200;
const MOST_PAGES = 25;
/** How long a title is that memoryd has cut. */
const CUT = 120;

export async function sessions(main, context) {
  if (context.rest.length) await one(main, context, context.rest[0]);
  else await listing(main, context);
}

async function listing(main, { params, signal }) {
  const field = h("input", { type: "search", placeholder: "Project", value: params.get("project") ?? "",
    "aria-label": "Only of projects named", autocomplete: "off", spellcheck: "false" });
  const list = h("ul", { class: "plain-list rows" });
  const more = h("div", { class: "buttons start" });
  fill(main, heading("Sessions", field), list, more);
  let pause = 0;
  field.addEventListener("input", () => { clearTimeout(pause); pause = setTimeout(() => page(null), 140); });
  signal.addEventListener("abort", () => clearTimeout(pause));

  async function page(cursor) {
    const name = field.value.trim();
    history.replaceState(null, "", at(["sessions"], { project: name }));
    const wanted = name && !name.includes("*") ? `*${name}*` : name;
    const told = await ask("sessions", { project: wanted, cursor, limit: 50 }, signal);
    const rows = told.sessions.map(row);
    if (cursor) list.append(...rows);
    else fill(list, rows.length ? rows : h("li", {}, empty("No sessions here.",
      name ? "Another project?" : "memoryd reads the logs of harnesses as they are written.")));
    fill(more, told.cursor ? h("button", { type: "button", on: { click: () => page(told.cursor) } }, "More") : null);
  }

  await page(null);
}

function row(told) {
  return h("li", {}, h("a", { class: "card", href: at(["sessions", told.session], { source: told.source }), "data-item": true },
    h("span", { class: "title", dir: "auto" }, told.title ? `${line(told.title, 140)}${told.title.length >= CUT ? "…" : ""}` : "(no words of yours)"),
    h("span", { class: "meta" }, label(told, true), h("span", { class: "soft" }, when(told.last_ts)),
      h("span", { class: "soft" }, project(told.project)), h("span", { class: "soft" }, told.source),
      h("span", { class: "soft" }, counted(told.rows, "record")))));
}

async function one(main, { params, signal, hello }, session) {
  const source = params.get("source");
  const wanted = params.get("id");
  const title = h("h1", { dir: "auto" }, line(session, 120));
  const about = h("div", { class: "meta" });
  const steps = h("div", { class: "timeline", role: "list", "aria-label": "Records, and where the label rose" });
  const more = h("div", { class: "buttons start" });
  fill(main, h("p", { class: "up" }, h("a", { href: at(["sessions"]), "data-up": true }, "‹ Sessions")), title, about,
    lanes(), steps, more);
  fill(steps, waiting());
  const drawn = new Timeline(steps, wanted);
  let cursor = null;
  const explained = new Map();

  async function page() {
    const told = await ask("records", { session, source, cursor, limit: PAGE }, signal);
    for (const log of new Set(told.records.map((record) => record.log))) {
      if (!explained.has(log)) explained.set(log, await why(log, hello, signal));
    }
    if (!cursor) fill(steps);
    drawn.add(told.records, explained, !told.cursor);
    cursor = told.cursor;
    fill(more, cursor ? h("button", { type: "button", "data-item": true, on: { click: page } }, "Later records") : null);
    return told.records;
  }

  const first = await page();
  if (!first.length) {
    fill(steps, empty("There is no such session.", "It may have been forgotten, or lie above what is indexed."));
    return;
  }
  for (let pages = 1; wanted && cursor && !drawn.found && pages < MOST_PAGES; pages += 1) await page();
  const owner = first.find((record) => record.kind === "owner");
  if (owner) fill(title, line(owner.text, 120));
  const labels = [...explained.values()].filter((told) => told.class);
  const highest = labels.sort((a, b) => level(b.class) - level(a.class))[0];
  fill(about, highest ? label({ class: highest.class, untrusted: labels.some((told) => told.untrusted) }) : null,
    h("span", { class: "soft" }, when(first[0].ts, true)), h("span", { class: "soft" }, project(first[0].project)),
    h("span", { class: "soft" }, first[0].source),
    labels.length ? h("span", { class: "soft" }, `${counted(labels.reduce((sum, told) => sum + told.records, 0), "record")} in its log`) : null,
    [...explained.values()].filter((told) => told.error).map((told) => wrong(told.error)));
  drawn.found?.scrollIntoView({ block: "center" });
  drawn.found?.focus({ preventScroll: true });
  say(`${drawn.rises} places where the label rose`);
}

/** Return why the labels of a log are what they are; of a log that is gone, that nobody can tell any more. */
async function why(log, hello, signal) {
  if (!hello.methods.includes("explain")) return { steps: [], overrides: [] };
  try {
    return await ask("explain", { log }, signal);
  } catch (error) {
    if (signal.aborted) throw error;
    return { steps: [], overrides: [], error };
  }
}

/** Return the names of the lanes, over the lanes. */
function lanes() {
  return h("div", { class: "lane-names", "aria-hidden": "true" },
    classNames().map((name) => h("span", { class: `lane-name tone-${tone(name)}` }, h("b", {}, plain(name)))));
}

/** Draws records and steps, as they come. */
class Timeline {
  constructor(place, wanted) {
    this.place = place;
    this.wanted = wanted;
    this.found = null;
    this.rises = 0;
    this.log = null;
    this.steps = [];
    this.label = { class: classNames()[0], untrusted: false };
  }

  add(records, explained, last) {
    const rows = [];
    for (const record of records) {
      if (record.log !== this.log) {
        rows.push(...this.rest(), ...this.begin(record.log, explained.get(record.log)));
      }
      while (this.steps.length && before(this.steps[0], record)) rows.push(this.rise(this.steps.shift()));
      rows.push(this.record(record));
    }
    if (last) rows.push(...this.rest());
    this.place.append(...rows);
  }

  begin(log, told) {
    const rows = this.log === null ? [] : [h("p", { class: "soft resumed", role: "listitem" }, `goes on in ${line(log)}`)];
    this.log = log;
    this.steps = [...(told?.steps ?? [])];
    const start = this.steps[0];
    if (start && start.n < 0) {
      this.label = { class: start.class, untrusted: start.untrusted };
      this.steps.shift();
      rows.push(this.start(start));
      while (this.steps[0]?.n < 0) rows.push(this.rise(this.steps.shift()));
    }
    return rows;
  }

  start(step) {
    const rules = step.because.filter((rule) => rule.rule).map((rule) => line(rule.rule)).join(", ");
    return h("div", { class: "record", role: "listitem", tabindex: "-1", "data-item": true }, gutter(this.label),
      h("div", { class: "body meta starts" }, h("span", { class: "soft", dir: "auto" }, "starts as"), label(this.label, true),
        rules ? h("span", { class: "soft", dir: "auto" }, `by ${rules}`) : null));
  }

  rest() {
    return this.steps.splice(0).map((step) => this.rise(step));
  }

  record(told) {
    const words = { owner: "yours", assistant: "theirs", tool_call: "call", summary: "sum" }[told.kind] ?? "";
    const here = told.id === this.wanted;
    // The lane shows what the session had seen; a row that the owner has relabelled says so by its own chip.
    const text = told.kind === "tool_call"
      ? folded((part) => stored(part, { class: "args" }, "pre"), called(told, told.text), 500)
      : folded((part) => stored(part), told.text);
    const made = h("div", { class: `record ${words}${here ? " here" : ""}`, role: "listitem", tabindex: "-1", "data-item": true },
      gutter(this.label), h("div", { class: "body" },
        h("div", { class: "meta" }, h("b", {}, kind(told)), h("span", { class: "soft" }, when(told.ts, true)),
          h("span", { class: "soft number" }, `record ${told.n}`), label(told, true)), text));
    if (here) this.found = made;
    return made;
  }

  rise(step) {
    const from = this.label;
    const to = { class: step.class, untrusted: step.untrusted };
    this.label = to;
    this.rises += 1;
    const rose = level(to.class) > level(from.class);
    const what = rose ? [h("span", {}, "rises to "), label(to)] : [h("span", {}, "becomes "), label(to)];
    return h("div", { class: `record rise tone-${tone(to.class)}`, role: "listitem", tabindex: "-1", "data-item": true },
      crossing(from, to), h("div", { class: "body" },
        h("p", { class: "what" }, what),
        h("p", {}, "because of ", h("b", { dir: "auto" }, line(step.what)),
          step.n >= 0 ? h("span", { class: "soft number" }, ` at record ${step.n}`) : null),
        h("ul", { class: "because" }, step.because.map((rule) =>
          h("li", {}, h("code", { dir: "auto" }, line(rule.rule)), " asks for ", label(rule, true))))));
  }
}

/** Say whether a step stands before a record; a hosted search raises what follows its own block. */
function before(step, record) {
  return step.n < record.n || (step.n === record.n && step.block < record.block);
}

function gutter(told) {
  const mine = level(told.class);
  return h("div", { class: "gutter", "aria-hidden": "true" }, classNames().map((name, number) =>
    h("i", { class: number === mine ? `on tone-${tone(name)}${told.untrusted ? " broken" : ""}` : "" })));
}

function crossing(from, to) {
  const [low, high] = [level(from.class), level(to.class)];
  return h("div", { class: "gutter", "aria-hidden": "true" }, classNames().map((name, number) => {
    if (low === high) {
      return h("i", { class: number === low ? `turn tone-${tone(name)}${from.untrusted ? " broken-above" : ""}${to.untrusted ? " broken-below" : ""}` : "" });
    }
    const where = number === low ? "from" : number === high ? "to" : number > low && number < high ? "across" : "";
    const broken = where === "from" && from.untrusted ? " broken" : where === "to" && to.untrusted ? " broken" : "";
    return h("i", { class: where ? `${where} tone-${tone(where === "from" ? name : to.class)}${broken}` : "" });
  }));
}
