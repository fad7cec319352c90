// Where the page's data comes from: the server, or the packed JSON inside an exported file. Nothing else asks for anything.
import { signal, batch } from "./vendor/signals.js";
import { useEffect, useRef, useState } from "./vendor/hooks.js";

const packed = document.getElementById("windowsill-data");
const embedded = packed && (await unpack(packed.textContent));

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

export const isExport = embedded !== null;
export const about = signal(embedded ? embedded.about : null);
export const session = signal(null); // the id that is shown, or null on pages without one
export const version = signal(null); // the newest version the server named
export const live = signal(isExport ? "export" : "waiting"); // waiting | live | lost | export | deleted | failed
export const failure = signal(null); // why the store cannot be read
export const listVersion = signal(0); // changes when the list of sessions does
export const toasts = signal([]);
export const canChange = () => !isExport && !!about.value && about.value.can_change;

class ApiError extends Error {
  constructor(kind, what, remedy, status) {
    super(what);
    Object.assign(this, { kind, remedy, status });
  }
}

async function answerOf(response) {
  if (response.ok) return response.status === 204 ? null : response.json();
  let error = {};
  try {
    error = (await response.json()).error || {};
  } catch {
    error = {}; // an answer of something between us and the server: its status says enough
  }
  const kind = response.status === 401 ? "token" : error.kind || "failed";
  throw new ApiError(kind, error.what || `The server answered ${response.status}.`, error.remedy || "", response.status);
}

export async function get(url, signalOfCaller) {
  if (isExport) {
    if (url in embedded.answers) return embedded.answers[url];
    throw new ApiError("not_in_file", "This is not in this file.", "An exported file holds what the page shows first. `windowsill inspect` shows everything.", 0);
  }
  let response;
  try {
    response = await fetch(url, { cache: "no-cache", credentials: "same-origin", signal: signalOfCaller });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("unreachable", "The server does not answer.", "Is `windowsill inspect` still running? This page connects again by itself.", 0);
  }
  return answerOf(response);
}

async function post(url, body) {
  let response;
  try {
    response = await fetch(url, {
      method: "POST",
      credentials: "same-origin",
      headers: { "content-type": "application/json", "x-windowsill": "inspect" },
      body: JSON.stringify(body),
    });
  } catch {
    throw new ApiError("unreachable", "The server does not answer.", "Nothing was changed. Is `windowsill inspect` still running?", 0);
  }
  return answerOf(response);
}

export function api(name, parameters = {}) {
  const query = Object.entries(parameters)
    .filter(([, value]) => value != null)
    .map(([key, value]) => `${key}=${encodeURIComponent(value)}`)
    .join("&");
  return query ? `api/${name}?${query}` : `api/${name}`;
}

// Do something that changes the session, and say in a toast what became of it.
export async function change(body, undo) {
  const id = session.value;
  try {
    const done = await post(api("do", { session: id }), body);
    if (done.version != null && session.value === id) version.value = done.version;
    toast(done.text, "done", undo ? undo(done) : null);
    for (const note of done.notes || []) toast(note, "note");
    return done;
  } catch (error) {
    toast(`${error.message} ${error.remedy || ""}`, "failed");
    return null;
  }
}

let toastCount = 0;
export function toast(text, kind = "done", action = null) {
  const id = ++toastCount;
  toasts.value = [...toasts.value.slice(-3), { id, text, kind, action }];
  setTimeout(() => dismiss(id), kind === "failed" || action ? 20000 : 7000);
}
export function dismiss(id) {
  toasts.value = toasts.value.filter((one) => one.id !== id);
}

// Versions arrive by server-sent events while the tab is seen. A hidden tab holds no connection: a browser allows six.
let source = null;
let started = false; // no listening before the address was read
let retry = 0;
let timer = null;

function connect() {
  if (source) source.close();
  clearTimeout(timer);
  source = null;
  if (isExport || !started || document.hidden) return;
  const id = session.value;
  const url = id === null ? "events" : `events?session=${encodeURIComponent(id)}` + (version.value === null ? "" : `&after=${version.value}`);
  const mine = new EventSource(url);
  source = mine;
  mine.onopen = () => {
    retry = 0;
    if (live.value === "lost") batch(() => { listVersion.value += 1; renewed.value += 1; });
    live.value = "live";
  };
  mine.onmessage = (event) => {
    const data = JSON.parse(event.data);
    if ("error" in data) {
      batch(() => { failure.value = data.error; live.value = "failed"; });
      return;
    }
    if (live.value === "failed") batch(() => { live.value = "live"; renewed.value += 1; });
    if ("sessions" in data) listVersion.value += 1;
    else if (data.version === null) live.value = "deleted";
    else version.value = data.version;
  };
  mine.onerror = () => {
    if (mine !== source) return;
    live.value = "lost";
    mine.close();
    retry = Math.min(retry + 1, 5);
    timer = setTimeout(connect, 400 * retry);
  };
}

// Counts reconnects: what failed while the server was away is asked for again.
export const renewed = signal(0);

if (!isExport) {
  document.addEventListener("visibilitychange", connect);
  addEventListener("pagehide", () => source && source.close());
  addEventListener("pageshow", (event) => event.persisted && connect());
}

export function open(id) {
  if (started && session.peek() === id) return;
  started = true;
  batch(() => {
    session.value = id;
    version.value = null;
    if (!isExport) live.value = "waiting";
  });
  connect();
}

// Fetch a URL and again when what it depends on changes; the last good answer stays while a newer one is on its way.
export function useApi(url, changes = version) {
  const [state, setState] = useState({ url, data: null, error: null });
  const at = changes ? changes.value : 0;
  const again = renewed.value;
  const running = useRef(null);
  useEffect(() => {
    if (url === null) return undefined;
    let alive = true;
    const load = () => {
      const before = running.current;
      // One question at a time: a fast agent must not pile them up.
      const turn = (before || Promise.resolve()).then(async () => {
        if (!alive) return;
        try {
          const data = await get(url);
          if (alive) setState({ url, data, error: null });
        } catch (error) {
          if (alive) setState((last) => ({ url, data: last.url === url && error.kind === "unreachable" ? last.data : null, error }));
        }
      });
      running.current = turn;
    };
    load();
    return () => {
      alive = false;
    };
  }, [url, at, again]);
  return state.url === url ? state : { url, data: null, error: null };
}

// The token of the address bar becomes a cookie, and leaves the address bar.
export async function login() {
  const found = location.hash.match(/^#token=(.+)$/);
  if (!found) return;
  history.replaceState(null, "", location.pathname + location.search);
  await post("api/login", { token: decodeURIComponent(found[1]) });
}
