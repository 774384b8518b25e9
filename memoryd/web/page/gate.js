// What the gate refused and why; and what it would say to a prompt, without telling or writing anything.

import { ask } from "./api.js";
import { at, fill, h, line, say, stored } from "./dom.js";
import { counted, empty, heading, label, waiting, wrong } from "./parts.js";
import { REASONS, titled } from "./lessons.js";

const MOST_LISTED = 20;

export async function gate(main, { params, signal }) {
  const [told, listed] = await Promise.all([ask("audit", {}, signal), ask("lessons", { limit: 200 }, signal)]);
  const counts = Object.entries(told.blocked).sort((a, b) => b[1] - a[1]);
  const most = Math.max(1, ...counts.map(([, number]) => number));
  const all = counts.reduce((sum, [, number]) => sum + number, 0);
  const field = h("input", { type: "search", value: params.get("q") ?? "", placeholder: "A prompt, such as: the build fails", autocomplete: "off",
    spellcheck: "false", id: "prompt" });
  const project = h("input", { type: "text", value: params.get("project") ?? "", placeholder: "any project", autocomplete: "off", spellcheck: "false", id: "for" });
  const tried = h("div", { "aria-live": "polite" });
  fill(main, heading("Gate"),
    h("section", { class: "card" }, h("h2", {}, "Refused so far"),
      all ? h("p", { class: "soft" }, `${counted(all, "time")} a lesson that fitted was not told; the first reason that holds is counted.`)
        : h("p", { class: "soft" }, "The gate has refused nothing yet."),
      h("ul", { class: "plain-list bars" }, counts.map(([reason, number]) => h("li", { class: number ? "" : "none" },
        h("span", { class: "reason" }, h("b", {}, reason.replaceAll("_", " ")), h("span", { class: "soft" }, REASONS[reason] ?? "")),
        h("span", { class: "bar", "aria-hidden": "true" }, Array.from({ length: 20 }, (_, at_) => h("i", { class: at_ < Math.ceil((20 * number) / most) && number ? "on" : "" }))),
        h("span", { class: "number" }, number.toLocaleString("en-GB")))))),
    h("section", { class: "card" }, h("h2", {}, "What would a prompt be told?"),
      h("p", { class: "soft" }, "Exactly what the next block would hold. Asking changes nothing."),
      h("div", { class: "line" }, h("label", { class: "unseen", for: "prompt" }, "A prompt"), field,
        h("label", { class: "unseen", for: "for" }, "In the project (its whole path)"), project), tried),
    h("section", { class: "card" }, h("h2", {}, "Most often kept back"), refusedMost(listed.lessons)));
  let pause = 0;
  let asking = new AbortController();
  signal.addEventListener("abort", () => { clearTimeout(pause); asking.abort(); });
  const later = () => { clearTimeout(pause); pause = setTimeout(() => attempt(), 200); };
  field.addEventListener("input", later);
  project.addEventListener("input", later);

  async function attempt() {
    asking.abort();
    asking = new AbortController();
    const mine = asking.signal;
    const query = field.value.trim();
    history.replaceState(null, "", at(["gate"], { q: query, project: project.value.trim() }));
    if (!query) return fill(tried);
    if (!tried.childElementCount) fill(tried, waiting());
    try {
      fill(tried, traced(await ask("trace", { query, project: project.value.trim() }, mine), listed.lessons));
      say("traced");
    } catch (error) {
      if (!mine.aborted) fill(tried, wrong(error));
    }
    return null;
  }

  if (field.value) await attempt();
}

function refusedMost(lessons) {
  const counted_ = lessons.map((one) => [one, Object.values(one.refused).reduce((sum, number) => sum + number, 0)])
    .filter(([, number]) => number).sort((a, b) => b[1] - a[1]).slice(0, MOST_LISTED);
  if (!counted_.length) return h("p", { class: "soft" }, "None yet.");
  return h("ul", { class: "plain-list rows" }, counted_.map(([one, number]) => h("li", {}, h("a", { class: "card", href: at(["lessons", one.id]), "data-item": true },
    h("span", { class: "title", dir: "auto" }, titled(one)),
    h("span", { class: "meta" }, h("b", {}, counted(number, "time")), label(one, true), Object.entries(one.refused).map(([reason, times]) =>
      h("span", { class: "soft" }, `${times} × ${reason.replaceAll("_", " ")}`)))))));
}

function traced(told, lessons) {
  if (told.message) return h("p", { class: "soft" }, line(told.message));
  const named = new Map(lessons.map((one) => [one.id, titled(one)]));
  const row = (one, text) => h("li", {}, h("a", { href: at(["lessons", one.id]), "data-item": true, dir: "auto" }, named.get(one.id) ?? line(one.id)),
    h("span", { class: "soft" }, text));
  return [
    told.text ? [stored(told.text, { class: "quote" }, "pre"), h("p", { class: "soft" }, `${told.total_tokens} of ${counted(told.cap, "token")}`), label(told.label, true)]
      : h("p", {}, "Nothing would be told."),
    told.admitted.length ? h("ul", { class: "plain-list judged" }, told.admitted.map((one) => row(one, `let in, ${counted(one.tokens, "token")}`))) : null,
    told.blocked.length ? [h("h3", {}, "Kept back"), h("ul", { class: "plain-list judged" }, told.blocked.map((one) => row(one, REASONS[one.reason] ?? line(one.reason))))]
      : told.admitted.length ? null : empty("No lesson fits these words.")];
}
