// Notes as they stand, how they came to be, and what waits for the owner: nothing is accepted that was not shown.

import { ask } from "./api.js";
import { at, fill, h, line, plain, say, stored } from "./dom.js";
import { button, counted, difference, empty, facts, heading, label, waiting, when, wrong } from "./parts.js";
import { confirm } from "./confirm.js";

const KINDS = { accept: "accepted from outside", reject: "rejected", redact: "redacted", ask: "asked for", approve: "approved",
                use: "done as approved", external: "changed outside" };

export async function notes(main, context) {
  if (context.rest.length) await one(main, context, context.rest[0]);
  else await listing(main, context);
}

async function listing(main, { signal, hello }) {
  const may = hello.methods.includes("notes.pending");
  const [told, open] = await Promise.all([
    ask("notes", { limit: 2_000 }, signal), may ? ask("pending", {}, signal) : { pending: [] }]);
  const waits = h("section", { class: "waits", "aria-labelledby": "waits" });
  fill(main, heading("Notes"), waits, h("section", { "aria-label": "All notes" },
    told.notes.length ? classesOf(told.notes) : empty("No notes yet.", "Agents keep them, and you can: bxctl memory notes create.")));
  waitingFor(waits, open.pending, () => listing(main, { signal, hello }));
}

function classesOf(list) {
  const groups = new Map();
  for (const note of list) {
    const name = note.label?.class ?? "";
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(note);
  }
  return [...groups].map(([, held]) => [h("h2", {}, label({ class: held[0].label.class, untrusted: false })),
    h("ul", { class: "plain-list rows" }, held.map(row))]);
}

function row(note) {
  const about = note.description || note.title || note.odd || "";
  return h("li", {}, h("a", { class: "card", href: at(["notes", note.path]), "data-item": true },
    h("span", { class: "meta" }, h("b", { class: "path", dir: "auto" }, line(short(note.path))),
      note.label.untrusted ? label(note.label, true) : null, marks(note)),
    about ? h("span", { class: "soft", dir: "auto" }, line(about, 160)) : null));
}

function short(path) {
  return path.replace(/^\/memories\//, "");
}

function marks(note) {
  return [note.external ? h("span", { class: "chip warn" }, "changed outside") : null,
    note.pending ? h("span", { class: "chip warn" }, "an edit waits") : null,
    note.expires ? h("span", { class: "soft" }, `until ${line(note.expires)}`) : null,
    (note.flags ?? []).map((flag) => h("span", { class: "chip warn" }, `flagged: ${line(flag.kind ?? flag)}`))];
}

/** Show what waits for an answer; `again` once one was given. */
function waitingFor(place, list, again) {
  if (!list.length) {
    fill(place, h("p", { class: "soft", id: "waits" }, "Nothing waits for you."));
    return;
  }
  fill(place, h("h2", { id: "waits" }, `${counted(list.length, "thing")} ${list.length === 1 ? "waits" : "wait"} for you`),
    list.map((one) => proposal(one, again)));
}

const OPS = { create: "a new note", str_replace: "a change", insert: "an insertion", delete: "a removal", rename: "another name",
              restore: "as it was before" };
const DONE = { create: "made", str_replace: "changed", insert: "inserted into", delete: "removed", rename: "renamed", restore: "restored",
               external: "accepted from outside" };

function title(one) {
  if (one.kind === "external") return { create: "Made outside", delete: "Removed outside" }[one.op] ?? "Changed outside";
  if (one.kind === "call") return one.approved ? `Approved ${line(one.op)}` : `Wants to call ${line(one.op)}`;
  return `Proposed: ${OPS[one.op] ?? line(one.op)}`;
}

/** Say in one sentence what accepting would do. */
function consequence(one) {
  const path = plain(one.path);
  if (one.kind === "external") {
    return one.op === "delete" ? `Accepting lets ${path} be gone.`
      : `Accepting makes ${path}, as it is shown here, a trusted note that agents may be shown.`;
  }
  if (one.kind === "call") {
    return one.repeat ? `Accepting lets this session call ${line(one.op)} once, with just these arguments.`
      : `Accepting does ${line(one.op)} once, with just these arguments.`;
  }
  return { delete: `Accepting deletes ${path} as your own edit; undo brings it back.`,
    rename: `Accepting moves ${path} to ${plain(one.to ?? "")} as your own edit.`,
    create: `Accepting makes ${path} a trusted note that agents may be shown.` }[one.op]
    ?? `Accepting changes ${path} as shown here, as your own edit; it stays trusted.`;
}

function shown(one) {
  const args = Object.entries(one.args ?? {});
  return [
    (one.flags ?? []).map((flag) => h("p", {}, h("span", { class: "chip warn" }, `flagged: ${line(flag.kind)}`), ` at line ${flag.line}: look twice`)),
    args.length ? facts(args.map(([name, value]) => [line(name), stored(typeof value === "string" ? value : JSON.stringify(value), {}, "span")])) : null,
    one.kind === "call" ? null : difference(one.diff ?? "")];
}

function proposal(one, again) {
  const who = one.session_label ? [
    h("span", { class: "soft", dir: "auto" }, `by ${line(one.client ?? "")}, ${line(one.session?.log ?? "an unnamed session")}`),
    label(one.session_label, true)] : null;
  const answer = (name, text, yes, args, more = shown(one)) => confirm({
    title: `${yes}?`, text, yes, name, args, more, done: () => {
      document.dispatchEvent(new Event("pending-changed"));
      again();
    } });
  const target = one.kind === "external" ? { path: one.path, expect: one.hash ?? "" } : { txn: one.txn };
  const reason = h("input", { type: "text", maxlength: "200", id: "reason", autocomplete: "off" });
  return h("article", { class: "card waits-one", tabindex: "-1", "data-item": true },
    h("div", { class: "meta" }, h("b", {}, title(one)), h("span", { class: "path", dir: "auto" }, line(one.path),
      one.to ? ` → ${line(one.to)}` : ""), one.created ? h("span", { class: "soft" }, when(one.created, true)) : null),
    who ? h("div", { class: "meta" }, who) : null,
    one.reason ? h("p", { class: "soft", dir: "auto" }, `“${line(one.reason)}”`) : null,
    one.rule ? h("p", { class: "soft" }, `waits by the rule: ${line(one.rule)}`) : null,
    one.broken ? h("p", { class: "wrong" }, line(one.broken)) : null,
    shown(one),
    h("div", { class: "buttons" },
      one.txn ? button("Reject…", () => answer("reject", one.kind === "call" ? "The session is not let do it."
        : "Its note stays as it is.", "Reject", () => ({ txn: one.txn, reason: reason.value }),
        h("p", {}, h("label", { for: "reason" }, "Why (kept in the journal; may stay empty)"), reason))) : null,
      one.broken || one.approved ? null : button("Accept…", () => answer("accept", consequence(one), "Accept", target), "main")));
}

async function one(main, { signal, hello }, path) {
  const up = h("p", { class: "up" }, h("a", { href: at(["notes"]), "data-up": true }, "‹ Notes"));
  const name = h("h1", { class: "path", dir: "auto" }, line(short(path)));
  const body = h("div", {}, waiting());
  const past = h("section", { "aria-labelledby": "past" }, h("h2", { id: "past" }, "History"));
  fill(main, up, name, body, past);
  const may = hello.methods.includes("notes.log");
  const [held, log, open] = await Promise.all([
    ask("note", { path }, signal).catch((error) => ({ error })),
    may ? ask("history", { path, limit: 200 }, signal) : { entries: [] },
    may ? ask("pending", {}, signal) : { pending: [] }]);
  if (signal.aborted) return;
  const mine = open.pending.filter((item) => item.path === path || item.to === path);
  const waits = h("section", { class: "waits" });
  if (mine.length) waitingFor(waits, mine, () => one(main, { signal, hello }, path));
  fill(body, waits, held.error ? gone(held.error, log.entries)
    : [h("div", { class: "meta" }, label(held.label), marks(held),
      h("span", { class: "soft" }, counted(held.text.split("\n").length - (held.text.endsWith("\n") ? 1 : 0), "line")),
      h("span", { class: "soft", title: held.hash }, `hash ${held.hash.slice(0, 12)}`)),
      h("div", { class: "card page" }, stored(held.text, { tabindex: "0", role: "region", "aria-label": "the note" }, "pre"))]);
  fill(past, h("h2", { id: "past" }, "History"), log.entries.length
    ? h("ol", { class: "plain-list history" }, [...log.entries].reverse().map((entry) => change(entry, signal)))
    : h("p", { class: "soft" }, "Nothing was done to it through memoryd yet."));
}

function gone(error, entries) {
  return error.code === "not_found" && entries.length
    ? empty("There is no such note now.", "Its history stands below.") : wrong(error);
}

function what(entry) {
  if (entry.kind === "intent") {
    return `${entry.undo_of ? "undone: " : ""}${DONE[entry.op] ?? line(entry.op ?? "")}${entry.ended === "commit" ? "" : " (not done)"}`;
  }
  if (entry.kind === "pending") return `proposed: ${OPS[entry.op] ?? line(entry.op ?? "")}`;
  return KINDS[entry.kind] ?? line(entry.kind);
}

function change(entry, signal) {
  const owner = entry.actor?.owner;
  const by = entry.session ? `${line(entry.actor?.client ?? "")}, ${line(entry.session.log)}` : owner ? "you" : line(entry.actor?.client ?? "");
  const meta = [h("b", {}, what(entry)), h("span", { class: "soft" }, when(entry.ts, true)),
    by ? h("span", { class: "soft", dir: "auto" }, `by ${by}`) : null,
    entry.reason ? h("span", { class: "soft", dir: "auto" }, `“${line(entry.reason)}”`) : null,
    entry.to ? h("span", { class: "path soft", dir: "auto" }, `→ ${line(entry.to)}`) : null];
  if (!["intent", "accept", "pending"].includes(entry.kind) || !entry.txn) {
    return h("li", {}, h("div", { class: "meta entry" }, meta));
  }
  const place = h("div", {});
  const box = h("details", { class: "entry" }, h("summary", { class: "meta", "data-item": true }, meta), place);
  box.addEventListener("toggle", async () => {
    if (!box.open || box.dataset.told) return;
    box.dataset.told = "yes";
    fill(place, waiting());
    try {
      const told = await ask("change", { txn: entry.txn }, signal);
      fill(place, told.redacted ? h("p", { class: "soft" }, "One side of this edit was taken away for good.") : difference(told.diff));
      say("difference shown");
    } catch (error) {
      if (!signal.aborted) fill(place, wrong(error));
    }
  });
  return h("li", {}, box);
}
