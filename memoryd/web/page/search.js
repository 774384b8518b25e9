// Search as one types: each pause asks, each key takes the question before it back.

import { ask } from "./api.js";
import { at, fill, h, plain, say } from "./dom.js";
import { called, classNames, counted, empty, kind, label, project, waiting, when, wrong } from "./parts.js";

const PAUSE_MS = 140;
const KINDS = [["owner", "You"], ["assistant", "Assistant"], ["tool_call", "Tools"], ["summary", "Summaries"],
               ["note", "Notes"]];
const TIMES = [["", "any time"], ["1", "last 24 hours"], ["7", "last 7 days"], ["30", "last 30 days"],
               ["90", "last 90 days"], ["dates", "between dates"]];
const TRUST = [["", "any"], ["owner-only", "trusted, and my words"], ["exclude", "trusted only"]];
const ORDERS = [["", "best first"], ["newest", "newest first"], ["oldest", "oldest first"]];

/** Return words of a query that can be looked for in a text, longest first. */
function sought(query) {
  const words = query.toLowerCase().match(/[\p{L}\p{N}_]{2,}/gu) ?? [];
  return [...new Set(words)].sort((one, other) => other.length - one.length);
}

/** Return a text with the words that were asked for marked; words are found by their stem, so by their beginning. */
export function marked(text, query) {
  const words = sought(query).map((word) => (word.length > 5 ? word.slice(0, -2) : word));
  const whole = plain(text);
  if (!words.length) return [whole];
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}])(?:${words.join("|")})[\\p{L}\\p{N}]*`, "giu");
  const parts = [];
  let from = 0;
  for (const found of whole.matchAll(pattern)) {
    parts.push(whole.slice(from, found.index), h("mark", {}, found[0]));
    from = found.index + found[0].length;
  }
  return [...parts, whole.slice(from)];
}

function select(name, words, options, params) {
  const value = params.get(name) ?? "";
  return h("label", { class: "field" }, h("span", {}, words),
    h("select", { name }, options.map(([key, text]) => h("option", { value: key, selected: key === value }, text))));
}

function filters(params, projects, sources) {
  const chosen = new Set(params.getAll("kinds"));
  return h("fieldset", { class: "filters" },
    h("legend", { class: "unseen" }, "Filters"),
    h("div", { class: "choices", role: "group", "aria-label": "Who or what" }, KINDS.map(([key, text]) =>
      h("label", { class: "choice" }, h("input", { type: "checkbox", name: "kinds", value: key,
        checked: chosen.has(key) }), h("span", {}, text)))),
    select("max_class", "Class up to", [["", "the highest"], ...classNames().map((name) => [name, name])], params),
    h("label", { class: "field" }, h("span", {}, "Project"),
      h("input", { name: "project", list: "projects", value: params.get("project") ?? "", placeholder: "any",
        autocomplete: "off", spellcheck: "false" }),
      h("datalist", { id: "projects" }, projects.map((name) => h("option", { value: name })))),
    select("source", "Harness", [["", "any"], ...sources.map((name) => [name, name])], params),
    select("time", "Time", TIMES, params),
    h("span", { class: "dates", hidden: params.get("time") !== "dates" },
      h("label", { class: "field" }, h("span", {}, "From"), h("input", { type: "date", name: "from", value: params.get("from") ?? "" })),
      h("label", { class: "field" }, h("span", {}, "To"), h("input", { type: "date", name: "to", value: params.get("to") ?? "" }))),
    select("untrusted", "Trust", TRUST, params),
    select("order", "Order", ORDERS, params));
}

/** Return what the fields say, as parameters of the address. */
function read(form) {
  const found = {};
  for (const field of form.querySelectorAll("input, select")) {
    if (field.type === "checkbox") {
      if (field.checked) (found[field.name] ??= []).push(field.value);
    } else if (field.value) {
      found[field.name] = field.value;
    }
  }
  if (found.time !== "dates") {
    delete found.from;
    delete found.to;
  }
  return found;
}

/** Return the arguments of `recall` for what the fields say. */
function asked({ q, time, from, to, ...rest }) {
  const args = { ...rest, query: q, limit: 20, snippet_tokens: 48 };
  if (/^\d+$/.test(time ?? "")) args.since = new Date(Date.now() - time * 86_400_000).toISOString();
  if (from) args.since = from;
  if (to) args.until = `${to}T23:59:59Z`;
  return args;
}

function hit(one, query) {
  const path = one.kind === "note" ? ["notes", `/memories/${one.session}`] : ["sessions", one.session];
  const href = at(path, one.kind === "note" ? {} : { source: one.source, id: one.id });
  return h("li", {}, h("a", { class: "card hit", href, "data-item": true },
    h("span", { class: "meta" }, h("b", {}, kind(one)), label(one, true),
      h("span", { class: "soft" }, when(one.ts)), h("span", { class: "soft" }, project(one.project)),
      h("span", { class: "soft" }, one.source)),
    h("span", { class: "stored excerpt", dir: "auto" }, marked(called(one, one.snippet), query))));
}

export async function search(main, { params, signal }) {
  const [projects, listed] = await Promise.all([
    ask("projects", { limit: 200 }, signal), ask("status", {}, signal)]);
  const sources = [...new Set((listed.sources ?? []).filter((one) => one.logs).map((one) => one.source))].sort();
  const names = projects.projects.map((one) => one.project).filter(Boolean).map((name) => project(name));
  const field = h("input", { type: "search", name: "q", id: "q", value: params.get("q") ?? "", placeholder: "What do we know about…",
    autocomplete: "off", spellcheck: "false", "aria-label": "Search the memory", "aria-controls": "hits" });
  const told = h("p", { class: "told" });
  const hits = h("ol", { class: "plain-list", id: "hits" });
  const more = h("div", { class: "buttons start" });
  const form = h("div", { class: "searching", role: "search" }, field,
    h("details", { class: "more-filters", open: window.innerWidth >= 760 }, h("summary", {}, "Filters"),
      filters(params, [...new Set(names)], sources)));
  fill(main, h("h1", { class: "unseen" }, "Search"), form, told, hits, more);
  if (window.innerWidth >= 760) {
    field.focus();
    field.setSelectionRange(field.value.length, field.value.length);
  }

  let pause = 0;
  let asking = new AbortController();
  signal.addEventListener("abort", () => { clearTimeout(pause); asking.abort(); });
  const later = () => { clearTimeout(pause); pause = setTimeout(run, PAUSE_MS); };
  form.addEventListener("input", later);
  form.addEventListener("change", (event) => {
    if (event.target.name === "time") form.querySelector(".dates").hidden = event.target.value !== "dates";
  });

  async function run() {
    asking.abort();
    asking = new AbortController();
    const fields = read(form);
    history.replaceState(null, "", at(["search"], fields));
    fill(more);
    if (!/[\p{L}\p{N}]/u.test(fields.q ?? "")) {
      fill(hits);
      fill(told, h("span", { class: "soft" }, listed.rows === null ? "The index is being built."
        : `${counted(listed.rows, "record")} can be searched. Words, "quoted phrases", prefix*.`));
      return;
    }
    await page(fields, null, asking.signal);
  }

  async function page(fields, cursor, mine) {
    if (!hits.childElementCount) fill(told, waiting());
    try {
      const answer = await ask("recall", { ...asked(fields), cursor }, mine);
      const found = answer.hits.map((one) => hit(one, fields.q));
      if (cursor) hits.append(...found);
      else fill(hits, found);
      const number = hits.childElementCount;
      fill(told, number ? [counted(number, "hit"), answer.cursor ? ", and more; " : "; ", label(answer.label, true)]
        : empty("Nothing found.", "Try other words, or fewer filters."));
      say(number ? counted(number, "hit") : "nothing found");
      fill(more, answer.cursor ? h("button", { type: "button", on: {
        click: () => page(fields, answer.cursor, mine) } }, "More") : null);
    } catch (error) {
      if (mine.aborted) return;
      fill(hits);
      fill(told, wrong(error));
    }
  }

  await run();
}
