// Small pieces that every view uses: labels, times, counts, differences, what is said when there is nothing.

import { fill, h, line, plain } from "./dom.js";

const TONES = 8;
let classes = [];

/** Take the classes, low to high, as the daemon names them. */
export function setClasses(names) {
  classes = names;
}

export function classNames() {
  return classes;
}

/** Return a class's place in the order; one that is not known counts as the highest. */
export function level(name) {
  const found = classes.indexOf(name);
  return found < 0 ? Math.max(0, classes.length - 1) : found;
}

/** Return which of the eight tones a class has, so that the lowest and the highest always look alike. */
export function tone(name) {
  return classes.length < 2 ? 0 : Math.round((level(name) * (TONES - 1)) / (classes.length - 1));
}

/** Return a label as chips: the class as words, colour and height; untrusted as a word with a broken edge. */
export function label(told, small = false) {
  if (!told || !told.class) return null;
  const pips = classes.map((_, number) => h("i", { class: number <= level(told.class) ? "on" : "" }));
  return h("span", { class: small ? "labels small" : "labels" },
    h("span", { class: `chip tone-${tone(told.class)}` },
      h("span", { class: "pips", "aria-hidden": "true" }, pips), plain(told.class)),
    told.untrusted ? h("span", { class: "chip untrusted" }, "untrusted") : null);
}

const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

/** Return a time as a person says it, the whole of it on hovering. */
export function when(ts, clock = false) {
  if (!ts) return h("span", { class: "soft" }, "no time");
  const moment = new Date(ts);
  if (Number.isNaN(moment.getTime())) return h("span", {}, line(ts));
  const ago = (Date.now() - moment.getTime()) / 60_000;
  let said = clock ? `${DAY.format(moment)}, ${CLOCK.format(moment)}` : DAY.format(moment);
  if (ago >= 0 && ago < 1) said = "just now";
  else if (ago >= 0 && ago < 60) said = `${Math.floor(ago)} min ago`;
  else if (ago >= 0 && ago < 24 * 60) said = `${Math.floor(ago / 60)} h ago`;
  return h("time", { datetime: ts, title: moment.toISOString() }, said);
}

export function counted(number, one, many = `${one}s`) {
  return `${Number(number).toLocaleString("en-GB")} ${number === 1 ? one : many}`;
}

export function percent(rate) {
  return rate === null || rate === undefined ? "no figure yet" : `${Math.round(rate * 100)} %`;
}

/** Return the last part of a folder's path, as people call projects. */
export function project(name) {
  return name ? line(name.replace(/\/+$/, "").split("/").pop() || name, 60) : "no project";
}

const KINDS = { owner: "you", assistant: "assistant", tool_call: "tool", summary: "summary", note: "note",
                lesson: "lesson" };

export function kind(told) {
  const name = KINDS[told.kind] ?? line(told.kind);
  return told.kind === "tool_call" && told.tool ? `${name} · ${line(told.tool, 80)}` : name;
}

/** Return what a call was given; its text begins with the tool's name, which stands above it already. */
export function called(told, text) {
  return told.kind === "tool_call" && text.startsWith(`${told.tool}\n`) ? text.slice(told.tool.length + 1) : text;
}

/** Return a unified difference, line by line: a sign, a colour, and for those who listen a word. */
export function difference(text) {
  const lines = plain(text).replace(/\n$/, "").split("\n");
  if (!text) return h("p", { class: "soft" }, "no difference in the text");
  const classOf = (one) => (/^(\+\+\+|---)/.test(one) ? "head" : { "+": "plus", "-": "minus", "@": "place" }[one[0]] ?? "");
  const most = 800;
  return h("div", { class: "diff", tabindex: "0", role: "region", "aria-label": "difference" },
    lines.slice(0, most).map((one) => h("div", { class: `row ${classOf(one)}`, dir: "auto" }, one || " ")),
    lines.length > most ? h("div", { class: "row place" }, `${lines.length - most} more lines`) : null);
}

/** Return a long text that opens on a press. */
export function folded(make, text, most = 1_400) {
  const whole = String(text);
  if (whole.length <= most) return make(whole);
  const box = h("div", {});
  const button = h("button", { type: "button", class: "quiet", on: { click: () => fill(box, make(whole)) } },
    `Show all ${counted(whole.length, "character")}`);
  return fill(box, make(`${whole.slice(0, most)} …`), button);
}

export function heading(text, ...beside) {
  return h("div", { class: "heading" }, h("h1", {}, text), ...beside);
}

export function empty(text, hint = "") {
  return h("div", { class: "empty" }, h("p", {}, text), hint ? h("p", { class: "soft" }, hint) : null);
}

/** Return what went wrong, and what can be done about it. */
export function wrong(error) {
  const remedy = error.remedy || (error.code ? "" : "is memoryd web still running?");
  return h("div", { class: "wrong", role: "alert" },
    h("p", {}, plain(error.code ? error.message : "memoryd web does not answer")),
    remedy ? h("p", { class: "soft" }, plain(remedy)) : null);
}

export function waiting() {
  return h("p", { class: "soft waiting" }, "…");
}

/** Return a list of names and values, those without a value left out. */
export function facts(pairs) {
  const told = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return h("dl", { class: "facts" }, told.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

/** Return a button. */
export function button(text, click, look = "") {
  return h("button", { type: "button", class: look, on: { click } }, text);
}
