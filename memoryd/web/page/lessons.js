// Lessons: what failed, what mended it, how far to believe it, and what came of each telling.

import { ask } from "./api.js";
import { at, fill, h, line, say, stored } from "./dom.js";
import { button, counted, empty, facts, heading, label, project, waiting, when } from "./parts.js";
import { confirm } from "./confirm.js";

export const OUTCOMES = { effective: "a proven fix came after it", ineffective: "the same error came again",
  inconclusive: "neither was seen", unmeasured: "not settled yet" };
export const REASONS = {
  seen: "this session had been told it", seen_this_session: "this session had been told it", ignored: "somebody chose to ignore it",
  stale: "it is no longer active", recurrence: "its error came again after it was told", weak: "it says too little",
  above_clearance: "it is above the session's class", untrusted: "it is untrusted: call it useful first",
  other_project: "it is another project's", duplicate: "a better one of the same error is told", budget: "it does not fit" };
const HOOKS = { pre_prompt: "at a prompt", compacting: "after a compaction", pull: "asked for" };
const STATUSES = ["active", "stale", "superseded", "archived"];
const VERDICTS = {
  useful: ["Useful", "It counts for the lesson: confidence rises by 0.05. An untrusted lesson is trusted from then on, and may be told."],
  wrong: ["Wrong", "It counts against the lesson: confidence falls by 0.1. A second “wrong” makes it stale, and it is told no more."],
  outdated: ["Outdated", "It counts against the lesson, which becomes stale at once and is told no more."],
  ignore: ["Ignore", "The lesson is hidden from every prompt. This is an action, not an opinion: it changes no confidence."] };

export async function lessons(main, context) {
  if (context.rest.length) await one(main, context, context.rest[0]);
  else await listing(main, context);
}

async function listing(main, { params, signal }) {
  const field = h("input", { type: "search", placeholder: "All of these words", value: params.get("q") ?? "",
    "aria-label": "Lessons with these words", autocomplete: "off", spellcheck: "false" });
  const status = h("select", { "aria-label": "Status" }, [["", "any status"], ...STATUSES.map((name) => [name, name])]
    .map(([key, text]) => h("option", { value: key, selected: key === (params.get("status") ?? "") }, text)));
  const list = h("ul", { class: "plain-list rows" });
  const more = h("div", { class: "buttons start" });
  fill(main, heading("Lessons", field, status), list, more);
  let pause = 0;
  field.addEventListener("input", () => { clearTimeout(pause); pause = setTimeout(() => page(null), 140); });
  status.addEventListener("change", () => page(null));
  signal.addEventListener("abort", () => clearTimeout(pause));

  async function page(after) {
    const asked = { query: field.value.trim(), status: status.value };
    history.replaceState(null, "", at(["lessons"], { q: asked.query, status: asked.status }));
    const told = await ask("lessons", { ...asked, after, limit: 50 }, signal);
    const rows = told.lessons.map(row);
    if (after) list.append(...rows);
    else fill(list, rows.length ? rows : h("li", {}, empty("No lessons here.", asked.query || asked.status
      ? "Other words, or another status?" : "They are learned from calls that fail in session logs.")));
    const last = told.lessons.length === 50 ? told.lessons.at(-1).id : null;
    fill(more, last ? button("More", () => page(last)) : null);
    say(counted(rows.length, "lesson"));
  }

  await page(null);
}

function row(one) {
  const measured = one.told.effective + one.told.ineffective;
  const told = Object.values(one.told).reduce((sum, number) => sum + number, 0);
  return h("li", {}, h("a", { class: "card", href: at(["lessons", one.id]), "data-item": true },
    h("span", { class: "title", dir: "auto" }, titled(one)),
    h("span", { class: "meta" }, h("b", {}, one.type), one.code ? h("code", {}, line(one.code)) : null, label(one, true),
      one.status === "active" ? null : h("span", { class: "chip" }, one.status),
      one.ignored ? h("span", { class: "chip" }, "ignored") : null,
      meter(one.confidence, true),
      h("span", { class: "soft" }, one.fix_args ? "mended" : "no fix seen yet"),
      h("span", { class: "soft" }, told ? `told ${counted(told, "time")}${measured ? `, helped ${one.told.effective} of ${measured}` : ""}` : "never told"),
      h("span", { class: "soft" }, project(one.project_id)))));
}

/** Return what a lesson is called: the error's own line, else the first line of its text. */
export function titled(one) {
  const first = one.content.split("\n").find((text) => text.trim()) ?? one.id;
  return line(one.first_line || first.replace(/^Causal pattern: /, ""), 160);
}

/** Return how far a lesson is believed: a bar, and the number. */
function meter(value, small = false) {
  const ten = Math.round(value * 10);
  return h("span", { class: small ? "meter small" : "meter" },
    h("span", { class: "bar", "aria-hidden": "true" }, Array.from({ length: 10 }, (_, number) => h("i", { class: number < ten ? "on" : "" }))),
    h("span", {}, `${Math.round(value * 100)} % sure`));
}

async function one(main, { signal }, id) {
  const up = h("p", { class: "up" }, h("a", { href: at(["lessons"]), "data-up": true }, "‹ Lessons"));
  fill(main, up, waiting());
  const [listed, ledger] = await Promise.all([ask("lessons", { id }, signal), ask("tellings", { lesson: id, limit: 500 }, signal)]);
  const [lesson] = listed.lessons;
  if (!lesson) {
    fill(main, up, empty("There is no such lesson.", "It may have been forgotten with its session."));
    return;
  }
  const again = () => one(main, { signal }, id);
  fill(main, up,
    h("h1", { dir: "auto" }, titled(lesson)),
    h("div", { class: "meta" }, h("b", {}, lesson.type), label(lesson), h("span", { class: "chip" }, lesson.status),
      lesson.ignored ? h("span", { class: "chip" }, "ignored") : null, h("span", { class: "soft" }, project(lesson.project_id))),
    h("div", { class: "columns" },
      h("section", { class: "card" }, h("h2", {}, "What failed"),
        facts([["code", lesson.code ? h("code", {}, line(lesson.code)) : null], ["tool", lesson.source_tool && line(lesson.source_tool)],
          ["hint", lesson.hint && stored(lesson.hint, {}, "span")],
          ["in", lesson.source_session ? h("a", { href: at(["sessions", lesson.source_session]), "data-item": true, dir: "auto" }, line(lesson.source_session, 80)) : null],
          ["learned", when(lesson.created_at, true)]]),
        stored(lesson.content, { class: "quote" }, "pre")),
      h("section", { class: "card" }, h("h2", {}, "What mended it"),
        lesson.fix_args ? stored(lesson.fix_args.replaceAll("; ", "\n"), { class: "quote" }, "pre")
          : h("p", { class: "soft" }, "No fix was seen yet: the same call going well would prove one."),
        lesson.suggestion ? h("p", { class: "soft", dir: "auto" }, line(lesson.suggestion, 300)) : null,
        lesson.last_verified_at ? h("p", { class: "soft" }, "last proven ", when(lesson.last_verified_at, true)) : null,
        lesson.superseded_by ? h("p", {}, h("a", { href: at(["lessons", lesson.superseded_by]), "data-item": true }, "replaced by another")) : null,
        h("h2", {}, "How far to believe it"), meter(lesson.confidence), reckoned(lesson)),
      h("section", { class: "card" }, h("h2", {}, "Told"), tellings(ledger.tellings)),
      h("section", { class: "card" }, h("h2", {}, "Kept back"), kept(lesson.refused ?? {}),
        h("h2", {}, "Your word"), judge(lesson, again))));
}

function reckoned(one) {
  const parts = [["0.5", "to begin with"], [`+ 0.1 × ${one.evidence_count}`, counted(one.evidence_count, "proven fix", "proven fixes")],
    [`− 0.15 × ${one.recurrence_count}`, counted(one.recurrence_count, "return")],
    [`+ 0.05 × ${one.useful ?? 0}`, "said useful"], [`− 0.1 × ${one.against ?? 0}`, "said wrong or outdated"]];
  return h("dl", { class: "facts reckoned" }, parts.map(([number, text]) => [h("dt", {}, number), h("dd", { class: "soft" }, text)]));
}

/** Return each telling with what came of it. */
export function tellings(list) {
  if (!list.length) return h("p", { class: "soft" }, "It was never told.");
  return h("ul", { class: "plain-list ledger" }, list.map((row) => h("li", { class: "meta" },
    h("span", { class: `chip outcome ${row.outcome}`, title: OUTCOMES[row.outcome] }, row.outcome),
    row.prevented ? h("span", { class: "chip", title: "the command that once failed ran and never failed" }, "prevented") : null,
    when(row.ts, true), h("span", { class: "soft" }, HOOKS[row.hook] ?? line(row.hook)),
    h("a", { href: at(["sessions", row.session]), dir: "auto", "data-item": true }, line(row.session || "no session", 60)),
    label(row, true), h("span", { class: "soft" }, counted(row.tokens, "token")),
    row.final ? null : h("span", { class: "soft" }, "still open"))));
}

function kept(refused) {
  const rows = Object.entries(refused).sort((a, b) => b[1] - a[1]);
  if (!rows.length) return h("p", { class: "soft" }, "The gate has never refused it.");
  return facts(rows.map(([reason, number]) => [counted(number, "time"), REASONS[reason] ?? line(reason)]));
}

function judge(lesson, again) {
  const ask_ = (verdict) => {
    const [name, text] = VERDICTS[verdict];
    const note = h("input", { type: "text", id: "note", maxlength: "500", autocomplete: "off" });
    confirm({ title: `Call it ${name.toLowerCase()}?`, text, yes: name, name: "feedback",
      args: () => ({ memory_id: lesson.id, verdict, ...(note.value ? { note: note.value } : {}) }),
      more: h("p", {}, h("label", { for: "note" }, "Why (may stay empty)"), note), done: again });
  };
  return [h("p", { class: "soft" }, `So far ${lesson.useful ?? 0} for it and ${lesson.against ?? 0} against.`),
    h("div", { class: "buttons start" }, Object.keys(VERDICTS).map((name) => button(`${VERDICTS[name][0]}…`, () => ask_(name))))];
}

