// A small chart of rates over days: lines with marks of two shapes, and below them how many tellings there were.

import { h, s } from "./dom.js";
import { percent } from "./parts.js";

const HIGH = 190, COUNTS = 70, LEFT = 46, RIGHT = 14, TOP = 14, GAP = 30, FOOT = 26;
const OUTCOMES = ["effective", "ineffective", "inconclusive", "unmeasured"];

/** Return the drawing of `days` in `width` pixels; a rate that is null leaves its line open there. */
export function chart(days, width) {
  const height = TOP + HIGH + GAP + COUNTS + FOOT;
  const step = days.length > 1 ? (width - LEFT - RIGHT) / days.length : width - LEFT - RIGHT;
  const x = (number) => LEFT + step * (number + 0.5);
  const y = (rate) => TOP + HIGH * (1 - rate);
  const most = Math.max(1, ...days.map((day) => day.total));
  const foot = TOP + HIGH + GAP + COUNTS;
  return s("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
    "aria-label": "Precision and coverage up to each day, and tellings a day; the table below has every number" },
    [0, 0.25, 0.5, 0.75, 1].map((rate) => [
      s("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(rate), y2: y(rate) }),
      s("text", { class: "tick", x: LEFT - 8, y: y(rate) + 4, "text-anchor": "end" }, `${rate * 100} %`)]),
    s("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: foot, y2: foot }),
    s("text", { class: "tick", x: LEFT - 8, y: foot - COUNTS + 8, "text-anchor": "end" }, String(most)),
    s("text", { class: "tick", x: LEFT - 8, y: foot, "text-anchor": "end" }, "0"),
    days.map((day, number) => bar(day, x(number), Math.min(26, Math.max(2, step * 0.62)), foot, most)),
    ticks(days, step).map((number) =>
      s("text", { class: "tick", x: x(number), y: foot + 18, "text-anchor": "middle" }, days[number].day.slice(5))),
    curve(days, "coverage", x, y), curve(days, "precision", x, y));
}

/** Return which days are named below, so that no two names meet. */
function ticks(days, step) {
  const every = Math.max(1, Math.ceil(48 / step));
  return days.map((_, number) => number).filter((number) => (days.length - 1 - number) % every === 0);
}

function bar(day, middle, wide, foot, most) {
  let top = foot;
  return s("g", {}, s("title", {}, `${day.day}: told ${day.total}, ${OUTCOMES.map((name) => `${day[name]} ${name}`).join(", ")}`),
    OUTCOMES.map((name) => {
      const tall = (COUNTS * day[name]) / most;
      top -= tall;
      return day[name] ? s("rect", { class: `count ${name}`, x: middle - wide / 2, y: top, width: wide, height: tall }) : null;
    }));
}

function curve(days, name, x, y) {
  const points = days.map((day, number) => ({ day, number, rate: day.so_far[`${name}_rate`] })).filter((point) => point.rate !== null);
  const runs = [];
  for (const point of points) {
    const last = runs.at(-1)?.at(-1);
    if (last && last.number === point.number - 1) runs.at(-1).push(point);
    else runs.push([point]);
  }
  return s("g", { class: `curve ${name}` },
    runs.map((run) => s("polyline", { points: run.map((point) => `${x(point.number)},${y(point.rate)}`).join(" ") })),
    points.length > 60 ? points.slice(-1).map((point) => mark(name, point, x, y)) : points.map((point) => mark(name, point, x, y)));
}

function mark(name, point, x, y) {
  const [left, top] = [x(point.number), y(point.rate)];
  const told = s("title", {}, `${name} up to ${point.day.day}: ${percent(point.rate)}`);
  return name === "precision" ? s("circle", { cx: left, cy: top, r: 4 }, told)
    : s("rect", { x: left - 3.5, y: top - 3.5, width: 7, height: 7 }, told);
}

/** Return what the shapes mean. */
export function legend() {
  const line = (name, shape) => h("li", { class: name }, s("svg", { viewBox: "0 0 28 12", width: 28, height: 12, "aria-hidden": "true", class: `curve ${name}` },
    s("line", { x1: 0, x2: 28, y1: 6, y2: 6 }), shape), name);
  return h("ul", { class: "legend" }, line("precision", s("circle", { cx: 14, cy: 6, r: 4 })),
    line("coverage", s("rect", { x: 10.5, y: 2.5, width: 7, height: 7 })),
    OUTCOMES.map((name) => h("li", {}, h("span", { class: `swatch count ${name}`, "aria-hidden": "true" }), name)));
}
