// Asks memoryd: every request of the page is made here, to the page's own origin and nowhere else.

const KEPT = "memoryd-key";

/** What memoryd refuses, or cannot do now. */
export class Refused extends Error {
  constructor(status, told) {
    super(told.message ?? "memoryd gave no answer");
    this.status = status;
    this.code = told.code ?? "unavailable";
    this.remedy = told.remedy ?? "";
  }
}

/** Let this browser in with a token; raise Refused where it is not the right one. */
export async function open(token) {
  const { key } = await sent("/open", { token });
  localStorage.setItem(KEPT, key);
}

/** Return the answer to a question; `signal` takes it back. */
export async function ask(name, args = {}, signal = undefined) {
  const given = Object.entries(args).flatMap(([key, value]) =>
    (Array.isArray(value) ? value : [value]).filter((one) => one !== undefined && one !== null && one !== "")
      .map((one) => [key, String(one)]));
  const query = new URLSearchParams(given).toString();
  return taken(await fetch(`/api/${name}${query ? `?${query}` : ""}`, { headers: headers(), signal }));
}

/** Do one of the three things that change something. */
export async function act(name, args) {
  return sent(`/api/${name}`, args);
}

async function sent(path, body) {
  const about = { ...headers(), "content-type": "application/json" };
  return taken(await fetch(path, { method: "POST", headers: about, body: JSON.stringify(body) }));
}

function headers() {
  return { "x-memoryd-key": localStorage.getItem(KEPT) ?? "" };
}

async function taken(response) {
  let told = {};
  try {
    told = await response.json();
  } catch {
    throw new Refused(response.status, {});
  }
  if (!response.ok) throw new Refused(response.status, told);
  return told;
}
