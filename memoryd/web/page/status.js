// How memoryd is: whether it answers, how far behind it is, what it holds and leaves out, what is wrong.

import { ask } from "./api.js";
import { fill, h, line } from "./dom.js";
import { counted, facts, heading } from "./parts.js";

export async function status(main, { signal }) {
  const told = await ask("status", {}, signal);
  const behind = told.behind ?? { logs: 0, bytes: 0, held: 0 };
  const faults = told.faults ?? [];
  fill(main, heading("Status"),
    faults.length ? h("section", { class: "card wrong", role: "alert" }, h("h2", {}, counted(faults.length, "fault")),
      h("ul", {}, faults.map((one) => h("li", { dir: "auto" }, line(one.what, 300), one.remedy ? h("span", { class: "soft" }, ` — ${line(one.remedy, 300)}`) : null)))) : null,
    h("div", { class: "figures" },
      figure(told.ready ? "ready" : "indexing", "memoryd"), figure(number(told.rows), "records that can be searched"),
      figure(behind.logs ? number(behind.logs) : "none", "logs behind", behind.logs ? `${bytes(behind.bytes)} to read${behind.held ? `, ${behind.held} held` : ""}` : "everything on disk is read"),
      figure(number(told.notes?.notes), "notes", told.notes?.pending || told.notes?.external ? `${told.notes.pending} proposed, ${told.notes.external} changed outside` : ""),
      figure(number(told.lessons?.lessons), "lessons", told.lessons?.calls ? counted(told.lessons.calls, "call") + " seen" : "")),
    rebuild(told.rebuild),
    told.sources?.length ? h("section", { class: "card" }, h("h2", {}, "What is read"), sources(told.sources)) : null,
    told.left_out?.length ? h("section", { class: "card" }, h("h2", {}, "Left out of the index"),
      h("p", { class: "soft" }, "Rows above the highest class that is indexed, by what raised their session first."),
      facts(told.left_out.map((one) => [number(one.rows), h("span", { dir: "auto" }, line(one.why))]))) : null,
    told.skipped?.length ? h("section", { class: "card" }, h("h2", {}, "Not read"),
      h("ul", { class: "plain-list" }, told.skipped.map((one) => h("li", { dir: "auto" }, line(one.path, 300), h("span", { class: "soft" }, ` — ${line(one.why)}`))))) : null,
    h("section", { class: "card" }, h("h2", {}, "The daemon"), facts([
      ["version", told.version && line(told.version)], ["up for", uptime(told.uptime)], ["home", told.home && h("span", { dir: "auto" }, line(told.home, 300))],
      ["lines nobody can read", number(told.unreadable)],
      ["sockets", (told.sockets ?? []).map((one) => `${line(one.name)} (${line(one.clearance)})`).join(", ")],
      ["asked", told.traffic ? `${counted(told.traffic.requests, "request")} over ${counted(told.traffic.connections, "connection")}` : null]])));
}

function number(value) {
  return value === null || value === undefined ? "–" : Number(value).toLocaleString("en-GB");
}

function figure(said, name, about = "") {
  return h("section", { class: "card figure" }, h("p", { class: "number" }, said), h("h2", {}, name), about ? h("p", { class: "soft" }, about) : null);
}

function bytes(value) {
  return value < 1_000_000 ? `${Math.ceil(value / 1_000)} kB` : `${(value / 1_000_000).toFixed(1)} MB`;
}

function uptime(seconds) {
  if (seconds < 120) return counted(seconds, "second");
  if (seconds < 7_200) return counted(Math.floor(seconds / 60), "minute");
  return seconds < 172_800 ? counted(Math.floor(seconds / 3_600), "hour") : counted(Math.floor(seconds / 86_400), "day");
}

function rebuild(told) {
  if (!told || told.state !== "running") return null;
  return h("section", { class: "card" }, h("h2", {}, "The index is being built anew"),
    h("p", {}, `${number(told.logs)} of ${counted(told.all_logs ?? 0, "log")}; the old one serves meanwhile`));
}

function sources(list) {
  const heads = ["harness", "folder", "logs", "records", "indexed", "left out", "unreadable"];
  return h("ul", { class: "plain-list sources" }, [...list].sort((a, b) => b.indexed - a.indexed).map((one) =>
    h("li", {}, h("b", {}, line(one.source)), h("span", { class: "soft path", dir: "auto" }, line(one.root, 300)),
      h("span", { class: "counts" }, heads.slice(2).map((name) => [name, one[name.replace(" ", "_")]]).filter(([name, value]) => value || name === "indexed")
        .map(([name, value]) => h("span", {}, h("b", {}, number(value)), ` ${value === 1 ? name.replace(/s$/, "") : name}`))))));
}
