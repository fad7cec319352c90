// The frame of the page: where the address leads, the header, keys, themes, and messages about what was done.
import { render } from "./vendor/preact.js";
import { signal, effect } from "./vendor/signals.js";
import { useEffect, useRef, useState } from "./vendor/hooks.js";
import { html, visible } from "./text.js";
import { about, api, dismiss, failure, get, isExport, live, login, open, session, toasts } from "./data.js";
import { Failure, Loading, here, link } from "./parts.js";
import { WindowView } from "./window.js";
import { TimeView } from "./time.js";
import { CallView, LastCall } from "./call.js";
import { ExplainView, MessageView } from "./explain.js";
import { DiffView, HistoryView } from "./history.js";
import { StateView } from "./state.js";
import { CompareView, EngineView, SessionsView } from "./sessions.js";

const route = signal([]);
const theme = signal(readTheme());
const helpOpen = signal(false);

function readTheme() {
  try {
    return localStorage.getItem("windowsill-theme") || "auto";
  } catch {
    return "auto"; // a file opened from disk may have no storage
  }
}
const dark = matchMedia("(prefers-color-scheme: dark)");
const darkNow = signal(dark.matches);
dark.addEventListener("change", () => { darkNow.value = dark.matches; });
const shade = () => (theme.value === "auto" ? (darkNow.value ? "dark" : "light") : theme.value);
effect(() => { document.documentElement.dataset.theme = shade(); });

function turn() {
  theme.value = shade() === "dark" ? "light" : "dark";
  try {
    localStorage.setItem("windowsill-theme", theme.value);
  } catch {
    return; // kept for this visit only
  }
}

function follow() {
  const path = location.hash.replace(/^#\/?/, "").split("/").filter(Boolean).map(decode);
  const named = path[0] === "s" ? path[1] ?? null : null;
  open(named);
  route.value = path;
  document.title = named ? `${named} · Windowsill` : "Windowsill";
}
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a stray percent sign in an address typed by hand
  }
}

const TABS = [["window", "Window"], ["time", "Over time"], ["call", "Calls"], ["explain", "Explain"], ["history", "History"], ["state", "State"]];
const ALIAS = { message: "explain", diff: "history" };
const LIVE = { live: "live", lost: "connecting …", waiting: "connecting …", export: "exported file", deleted: "not here", failed: "unreadable" };

function Header() {
  const path = route.value;
  const id = session.value;
  const at = ALIAS[path[2]] || path[2] || "window";
  return html`<header class="top"><a class="brand" href=${isExport ? here("window") : link()} aria-label="Windowsill, all sessions"><${Mark} /><span>Windowsill</span></a>
    ${id !== null ? html`<span class="crumb" title=${id}>${visible(id)}</span>` : html`<span class="crumb"></span>`}
    <nav class="views" aria-label="Views">${id !== null
      ? TABS.map(([name, title], n) => html`<a key=${name} href=${here(name)} aria-current=${at === name ? "page" : null} title=${`key ${n + 1}`}>${title}</a>`)
      : [["", "Sessions"], ["engine", "Engine"], ["compare", "Comparisons"]].map(([name, title]) => html`<a key=${name} href=${name ? link(name) : link()} aria-current=${(path[0] || "") === name || (!name && path[0] === "search") ? "page" : null}>${title}</a>`)}</nav>
    <span class="top-end"><span class=${`live live-${live.value}`} role="status">${LIVE[live.value]}</span><button class="icon" onClick=${turn} aria-label="Change between light and dark" title="Light or dark (t)">◐</button><button class="icon" onClick=${() => { helpOpen.value = true; }} aria-label="Keys" title="Keys (?)">?</button></span></header>`;
}

const Mark = () => html`<svg viewBox="0 0 24 24" width="20" height="20" aria-hidden="true"><rect x="3.5" y="2.5" width="17" height="14" rx="1.5" class="mark-frame" /><path d="M12 2.5v14M3.5 9.5h17" class="mark-frame" /><rect x="13" y="10.5" width="6.5" height="5" class="mark-fill" /><path d="M1.5 20h21" class="mark-sill" /></svg>`;

const KEYS = [["j  k", "next, previous item or call"], ["g  G", "first, newest item"], ["Enter", "open or close the item"], ["u", "unfold the selected fold"], ["/", "search or explain"], ["1 … 6", "views of a session"], ["0", "all sessions"], ["t", "light or dark"], ["?", "this list"], ["Esc", "close"]];

function Help() {
  const box = useRef(null);
  useEffect(() => {
    box.current.showModal();
  }, []);
  return html`<dialog ref=${box} aria-label="Keys" onClose=${() => { helpOpen.value = false; }}><h2>Keys</h2><dl class="keys">${KEYS.map(([key, what]) => html`<dt key=${key}>${key.split("  ").map((one) => html`<kbd key=${one}>${one}</kbd>`)}</dt><dd key=${what}>${what}</dd>`)}</dl><p class="buttons"><button class="primary" onClick=${() => box.current.close()}>Close</button></p></dialog>`;
}

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && event.target.closest("input")) event.target.blur();
  if (event.target.closest("input, textarea, select, dialog")) return;
  const n = Number(event.key);
  if (event.key === "?") helpOpen.value = true;
  else if (event.key === "t") turn();
  else if (event.key === "0" && !isExport) location.hash = link();
  else if (n >= 1 && n <= 6 && session.value !== null) location.hash = here(TABS[n - 1][0]);
  else if (event.key === "/") {
    const field = document.querySelector("input[type=search]");
    if (field) field.focus();
    else if (session.value !== null) {
      location.hash = here("explain");
      const wait = () => {
        const found = document.querySelector("input[type=search]");
        if (found) found.focus();
        else requestAnimationFrame(wait);
      };
      requestAnimationFrame(wait);
    }
  } else return;
  event.preventDefault();
}

function Toasts() {
  return html`<div class="toasts" role="status" aria-live="polite">${toasts.value.map((one) => html`<div key=${one.id} class=${`toast ${one.kind}`}><span>${visible(one.text)}</span>${one.action && html`<button onClick=${() => { one.action.run(); dismiss(one.id); }}>${one.action.label}</button>`}<button class="quiet" aria-label="Dismiss" onClick=${() => dismiss(one.id)}>×</button></div>`)}</div>`;
}

function Body() {
  const [first, id, view = "window", a, b] = route.value;
  if (live.value === "failed") return html`<${Failure} error=${failure.value} />`;
  if (first === "engine") return html`<${EngineView} />`;
  if (first === "compare") return html`<${CompareView} />`;
  if (first !== "s" || id === undefined) return html`<${SessionsView} words=${first === "search" ? id || "" : ""} />`;
  if (live.value === "deleted") return html`<${Failure} error=${{ kind: "not_found", message: "There is no such session, or it was deleted.", remedy: "" }} />`;
  if (view === "time") return html`<${TimeView} key=${id} theme=${shade()} />`;
  if (view === "call") return a ? html`<${CallView} key=${id + a} id=${a} />` : html`<${LastCall} key=${id} />`;
  if (view === "explain") return html`<${ExplainView} key=${id} words=${a || ""} />`;
  if (view === "message") return html`<${MessageView} key=${id + a} id=${a || ""} />`;
  if (view === "history") return html`<${HistoryView} key=${id} />`;
  if (view === "diff") return html`<${DiffView} key=${id} from=${a || "now"} to=${b || "now"} />`;
  if (view === "state") return html`<${StateView} key=${id} />`;
  return html`<${WindowView} key=${id} target=${a || null} />`;
}

function App() {
  const [state, setState] = useState({ ready: isExport, error: null });
  useEffect(() => {
    const start = async () => {
      try {
        await login();
        // A link that names what it wants need not wait for the rest.
        const asked = isExport ? null : get(api("about")).then((answer) => { about.value = answer; });
        if (location.hash.length < 2) {
          await asked;
          if (about.value.session) history.replaceState(null, "", link("s", about.value.session, "window"));
        }
        follow();
        setState({ ready: true, error: null });
        await asked;
      } catch (error) {
        setState({ ready: false, error });
        if (error.kind === "unreachable") setTimeout(start, 1500);
      }
    };
    start();
    addEventListener("hashchange", follow);
    addEventListener("keydown", keys);
    return () => {
      removeEventListener("hashchange", follow);
      removeEventListener("keydown", keys);
    };
  }, []);
  return html`<a class="skip" href="#content" onClick=${(event) => { event.preventDefault(); document.getElementById("content").focus(); }}>To the content</a><${Header} />
    <div id="content" class="content" tabindex="-1">${state.error ? html`<${Failure} error=${state.error} />` : state.ready ? html`<${Body} />` : html`<${Loading} what="the page" />`}</div>
    <${Toasts} />${helpOpen.value && html`<${Help} />`}`;
}

const root = document.getElementById("app");
root.replaceChildren();
render(html`<${App} />`, root);
