// Makes elements. The only way by which anything gets onto the page: stored text becomes text nodes and nothing else,
// attributes come from this page's own code, links lead into this page.

const SVG = "http://www.w3.org/2000/svg";

/** Characters that a reader would not see, or that turn what stands beside them around, as `bxctl` shows them too. */
const HIDDEN = new RegExp(
  "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u061c\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f"
  + "\\ufeff\\ufff9-\\ufffb]|\\udb40[\\udc00-\\udc7f]", "g");

/** Return stored text with its hidden characters made visible. */
export function plain(text) {
  return String(text).replaceAll("\r\n", "\n").replace(HIDDEN, (found) => {
    const code = found.codePointAt(0);
    if (code < 32) return String.fromCharCode(0x2400 + code);
    if (code === 127) return "\u2421";
    return code > 0xffff ? `\\U${code.toString(16).padStart(8, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

/** Return stored text on one line, at most `most` characters of it. */
export function line(text, most = 200) {
  const whole = plain(String(text).replace(/\s+/g, " ").trim());
  return whole.length > most ? `${whole.slice(0, most - 1)}…` : whole;
}

/** Return an element. `props`: attributes, `class`, and under `on` listeners by event; children: nodes or text. */
export function h(tag, props = {}, ...children) {
  return filled(document.createElement(tag), props, children);
}

/** Return an element of a drawing. */
export function s(tag, props = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), props, children);
}

function filled(element, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (/^(on|style|src)/.test(name) || (name === "href" && !String(value).startsWith("#/"))) {
      throw new TypeError(`no element is given ${name}`);
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(4)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Put children in the place of whatever an element holds. */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

/** Return stored text as an element that keeps its line ends, its own direction, and to itself. */
export function stored(text, props = {}, tag = "div") {
  return h(tag, { dir: "auto", ...props, class: `stored ${props.class ?? ""}`.trim() }, plain(text));
}

/** Tell something to those who listen rather than look. */
export function say(text) {
  document.getElementById("said").textContent = text;
}

export function at(path, params = {}) {
  const given = Object.entries(params).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).filter((one) => one !== undefined && one !== null && one !== "")
      .map((one) => [name, one]));
  const query = new URLSearchParams(given).toString();
  return `#/${path.map(encodeURIComponent).join("/")}${query ? `?${query}` : ""}`;
}
