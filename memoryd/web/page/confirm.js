// Asks before anything is changed: what would be done, in a sentence, and nothing happens without the second press.

import { act } from "./api.js";
import { fill, h, say } from "./dom.js";
import { wrong } from "./parts.js";

/** Show a question; on `yes` do the act and hand its answer on. `more`: elements between question and buttons. */
export function confirm({ title, text, yes, name, args, more = [], done }) {
  const trouble = h("div", {});
  const go = h("button", { type: "button", class: "main", on: { click: run } }, yes);
  const leave = h("button", { type: "button", on: { click: () => box.close() } }, "Cancel");
  const box = h("dialog", { "aria-labelledby": "ask-title", "aria-describedby": "ask-text",
    on: { close: () => box.remove() } },
    h("h2", { id: "ask-title" }, title), h("p", { id: "ask-text" }, text), more, trouble,
    h("div", { class: "buttons" }, leave, go));

  async function run() {
    go.disabled = true;
    try {
      const answer = await act(name, typeof args === "function" ? args() : args);
      box.close();
      say(`${title}: done`);
      done(answer);
    } catch (error) {
      go.disabled = false;
      fill(trouble, wrong(error));
    }
  }

  document.body.append(box);
  box.showModal();
  leave.focus();
}
