// The keyboard: `/` to search, j and k (or arrows) from item to item, Enter opens, Escape goes back.

import { h } from "./dom.js";

const SAID = [
  ["/", "search"], ["j, ↓ · k, ↑", "next, previous"], ["Enter", "open"], ["Esc", "leave the field, then back"],
  ["1 … 7", "the views"], ["?", "this list"],
];

function typing(element) {
  return element?.matches?.("input, textarea, select") ?? false;
}

function items() {
  return [...document.querySelectorAll("main [data-item]")].filter((one) => one.getClientRects().length);
}

/** Move to the next item in a direction; from nowhere, to the first. */
function move(step) {
  const found = items();
  if (!found.length) return;
  const here = found.indexOf(document.activeElement?.closest?.("[data-item]"));
  const next = found[here < 0 ? (step > 0 ? 0 : found.length - 1) : Math.min(found.length - 1, Math.max(0, here + step))];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

function back() {
  const up = document.querySelector("main [data-up]");
  if (up) up.click();
}

function searchField(views) {
  const field = document.querySelector("main input[type=search]");
  if (field) {
    field.focus();
    field.select();
  } else {
    location.hash = views[0];
  }
}

/** Listen to the keyboard; `views` are the addresses behind the numbers. */
export function follow(views) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const field = typing(event.target);
    const { key } = event;
    if (field && key === "Escape") event.target.blur();
    else if (field && key === "ArrowDown" && event.target.matches("input[type=search]")) move(1);
    else if (field && key === "Enter" && event.target.matches("input[type=search]")) move(1);
    else if (field) return;
    else if (key === "/") searchField(views);
    else if (key === "j" || key === "ArrowDown") move(1);
    else if (key === "k" || key === "ArrowUp") move(-1);
    else if (key === "Escape") back();
    else if (key === "?") help();
    else if (/^[1-9]$/.test(key) && views[key - 1]) location.hash = views[key - 1];
    else return;
    event.preventDefault();
  });
}

/** Show the keys. */
export function help() {
  const close = h("button", { type: "button", class: "main", on: { click: () => box.close() } }, "Close");
  const box = h("dialog", { "aria-labelledby": "keys-title", on: { close: () => box.remove() } },
    h("h2", { id: "keys-title" }, "Keys"),
    h("dl", { class: "facts" }, SAID.map(([key, what]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)])),
    h("div", { class: "buttons" }, close));
  document.body.append(box);
  box.showModal();
}
