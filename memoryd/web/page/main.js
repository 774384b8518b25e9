// Begins: lets the browser in, shows the view that the address names, and follows the address from there.

import { ask, open } from "./api.js";
import { at, fill, h, say } from "./dom.js";
import { follow, help } from "./keys.js";
import { empty, setClasses, waiting, wrong } from "./parts.js";
import { gate } from "./gate.js";
import { lessons } from "./lessons.js";
import { notes } from "./notes.js";
import { outcomes } from "./outcomes.js";
import { search } from "./search.js";
import { sessions } from "./sessions.js";
import { status } from "./status.js";

const VIEWS = {
  search: { name: "Search", show: search, needs: "recall" },
  sessions: { name: "Sessions", show: sessions, needs: "sessions" },
  notes: { name: "Notes", show: notes, needs: "notes.list" },
  lessons: { name: "Lessons", show: lessons, needs: "lessons.list" },
  outcomes: { name: "Outcomes", show: outcomes, needs: "lessons.days" },
  gate: { name: "Gate", show: gate, needs: "lessons.audit" },
  status: { name: "Status", show: status, needs: "status" },
};
const REFRESH_MS = 30_000;
const main = document.getElementById("main");
let hello = null;
let leaving = new AbortController();

/** Return what the address names: a view, the parts of its path, its parameters. */
function named() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").filter(Boolean).map((part) => {
    try { return decodeURIComponent(part); } catch { return part; }
  });
  const [view = "search", ...rest] = parts;
  return { view: view in VIEWS ? view : "search", rest, params: new URLSearchParams(query) };
}

async function show() {
  if (location.hash.startsWith("#token=")) return enter(location.hash.slice("#token=".length));
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  const { view, rest, params } = named();
  mark(view);
  document.title = `${VIEWS[view].name} · memoryd`;
  main.dataset.view = view;
  if (!hello) fill(main, waiting());
  try {
    hello ??= await welcome(signal);
    if (signal.aborted) return;
    if (!hello.methods.includes(VIEWS[view].needs)) {
      fill(main, h("h1", {}, VIEWS[view].name),
        empty("This socket does not grant it.", "memoryd web without --socket asks the owner's socket, which does."));
      return;
    }
    await VIEWS[view].show(main, { rest, params, signal, hello });
  } catch (error) {
    if (signal.aborted || error.name === "AbortError") return;
    if (error.status === 401) shut();
    else fill(main, h("h1", {}, VIEWS[view].name), wrong(error));
  }
}

async function welcome(signal) {
  const told = await ask("hello", {}, signal);
  setClasses(told.classes);
  return told;
}

async function enter(token) {
  // The token leaves the address at once, so that neither history nor a shared screen keeps it.
  history.replaceState(null, "", at(["search"]));
  try {
    await open(token);
  } catch (error) {
    shut(error);
    return;
  }
  hello = null;
  await show();
  beat();
}

/** Say that this browser is not let in, and take the link or its token. */
function shut(error = null) {
  const field = h("input", { id: "token", type: "text", autocomplete: "off", spellcheck: "false" });
  const go = () => enter(field.value.trim().replace(/^.*#token=/, ""));
  field.addEventListener("keydown", (event) => { if (event.key === "Enter") go(); });
  fill(main, h("section", { class: "door" },
    h("h1", {}, "The glass box is closed"),
    h("p", {}, "It opens with the link that ", h("code", {}, "memoryd web"), " printed when it was started."),
    h("label", { for: "token" }, "The link, or the token in it"),
    h("div", { class: "line" }, field, h("button", { type: "button", class: "main", on: { click: go } }, "Open")),
    error?.status === 401 ? h("p", { class: "wrong", role: "alert" }, "That is not the token of this start.")
      : error ? wrong(error) : null));
  field.focus();
}

function mark(view) {
  fill(document.getElementById("nav"), h("ul", {}, Object.entries(VIEWS).map(([name, { name: words }], number) =>
    h("li", {}, h("a", { href: at([name]), "aria-current": name === view ? "page" : null, title: `${number + 1}` },
      words, h("span", { class: "count", "data-count": name }))))));
  counts();
}

let pending = 0;

function counts() {
  for (const place of document.querySelectorAll('[data-count="notes"]')) {
    fill(place, pending ? [String(pending), h("span", { class: "unseen" }, " waiting")] : null);
  }
}

/** Look now and then whether memoryd answers, and how much waits for its owner. */
async function beat() {
  const pulse = document.getElementById("pulse");
  if (document.hidden) return;
  try {
    const told = await ask("status");
    const faults = told.faults?.length ?? 0;
    pulse.className = `pulse ${faults ? "faults" : "well"}`;
    fill(pulse, faults ? `${faults} ${faults === 1 ? "fault" : "faults"}` : told.ready ? "memoryd is well" : "indexing");
    pending = (told.notes?.pending ?? 0) + (told.notes?.external ?? 0);
    counts();
  } catch (error) {
    pulse.className = "pulse down";
    fill(pulse, error.status === 401 ? "closed" : "memoryd does not answer");
  }
}

document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
document.getElementById("keys").addEventListener("click", help);
document.addEventListener("pending-changed", beat);
window.addEventListener("hashchange", async () => {
  await show();
  if (document.activeElement === document.body) main.focus({ preventScroll: true });
  window.scrollTo(0, 0);
  say(document.title);
});
follow(Object.keys(VIEWS).map((name) => at([name])));
await show();
beat();
setInterval(beat, REFRESH_MS);
