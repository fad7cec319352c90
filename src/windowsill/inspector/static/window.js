// The window now: what fills it, and the list of items as the model sees it.
import { html, tokens, short, dollars, percent, plural, visible, ago } from "./text.js";
import { signal } from "./vendor/signals.js";
import { useEffect, useRef, useState } from "./vendor/hooks.js";
import { api, get, session, toast, useApi, version } from "./data.js";
import { Empty, Failure, State, here, unfold } from "./parts.js";
import { Item, PART_NAMES } from "./item.js";
import { VirtualList, usePages } from "./list.js";

const QUIET = new Set(["free", "reserve"]);

function WindowBar({ data }) {
  // A budget far below the window of the model would leave the bar to what may never be used: that part is drawn short.
  const parts = data.parts.map((part) => ({ ...part, drawn: part.name === "reserve" && data.limit ? Math.min(part.tokens, data.limit * 0.12) : part.tokens }));
  const whole = parts.reduce((sum, part) => sum + part.drawn, 0) || 1;
  const label = `The window: ${tokens(data.tokens)} of ${tokens(data.limit)} tokens. ` + data.parts.filter((part) => part.tokens).map((part) => `${PART_NAMES[part.name]} ${tokens(part.tokens)}`).join(", ");
  return html`<div class="windowbar">
    <div class="bar" role="img" aria-label=${label}>
      ${parts.filter((part) => part.tokens > 0).map((part) => html`<span key=${part.name} class=${`fill part-${part.name} ${part.drawn < part.tokens ? "short" : ""}`} style=${{ flexGrow: String(part.drawn / whole) }}
        title=${`${PART_NAMES[part.name]}: ${tokens(part.tokens)} tokens`}><span class="fill-name">${(part.drawn / whole) * innerWidth > 88 ? part.name : ""}</span></span>`)}
      ${data.marks.map((mark) => html`<span key=${mark.name} class=${`markline mark-${mark.name}`} style=${{ left: `${Math.min(100, (100 * mark.tokens) / whole)}%` }} title=${`${mark.name} mark: ${tokens(mark.tokens)} tokens`}></span>`)}
    </div>
    <div class="marknames" aria-hidden="true">${spread(data.marks, whole).map((mark) => html`<span key=${mark.name} class=${mark.left > 80 ? "to-left" : ""} style=${{ left: `${mark.left}%` }}>${mark.label}</span>`)}</div>
  </div>`;
}

// Names of marks that would cover each other stand together.
function spread(marks, whole) {
  const out = [];
  for (const mark of [...marks].reverse()) {
    const left = Math.min(100, (100 * mark.tokens) / whole);
    const label = `${mark.name} ${short(mark.tokens)}`;
    const near = out[out.length - 1];
    if (near && near.left - left < (innerWidth < 640 ? 30 : 12)) near.label = `${label} · ${near.label}`;
    else out.push({ name: mark.name, left, label });
  }
  return out;
}

function Legend({ data }) {
  return html`<ul class="legend" aria-label="What fills the window">
    ${data.parts.filter((part) => part.tokens > 0 || part.name === "free").map((part) => html`<li key=${part.name} class=${QUIET.has(part.name) ? "quiet" : ""}>
      <span class=${`swatch fill part-${part.name}`} aria-hidden="true"></span><span class="legend-name">${PART_NAMES[part.name]}</span><span class="num">${short(part.tokens)}</span></li>`)}
  </ul>`;
}

function Figures({ data }) {
  const next = data.next || {};
  const fill = data.limit ? data.tokens / data.limit : 0;
  return html`<dl class="figures">
    <div><dt>in the window</dt><dd><b>${tokens(data.tokens)}</b> <span>of ${tokens(data.limit)}, ${percent(fill)}${data.over > 0 ? html` <strong class="warn">over by ${tokens(data.over)}</strong>` : ""}</span></dd></div>
    <div><dt>next request</dt><dd><b>${next.known && next.cost != null ? dollars(next.cost) : short(next.tokens)}</b> <span>${next.known && next.cost != null ? `${short(next.cached)} of ${short(next.tokens)} cached` : "tokens, price unknown"}</span></dd></div>
    <div><dt>out of sight</dt><dd><b>${tokens(data.hidden)}</b> <span>of ${plural(data.messages, "message")}, ${plural(data.folds, "fold")}${data.compactions ? `, ${data.compactions} by the agent itself` : ""}</span></dd></div>
    <div><dt>to the limit</dt><dd><b>${short(Math.max(0, data.limit - data.tokens))}</b> <span>tokens free${data.exact ? "" : data.error_percent ? `, counted within ${data.error_percent} %` : ", estimated"}</span></dd></div>
  </dl>`;
}

const selected = signal(null);
const opened = signal(new Set());

function toggleOpen(id) {
  const next = new Set(opened.value);
  if (!next.delete(id)) next.add(id);
  opened.value = next;
}

function ItemList({ data, target }) {
  const control = useRef({}).current;
  const id = session.value;
  const size = data.page_size || 100;
  const pages = usePages((page) => api("items", { session: id, page }), size, version.value ?? data.version, (answer) => answer.items);
  const state = useRef({ target: null, started: false }).current;
  const [missing, setMissing] = useState(null);
  const cursor = selected.value;

  useEffect(() => {
    if (!data.items || target === state.target) return;
    state.target = target;
    setMissing(null);
    if (!target) return;
    get(api("place", { session: id, id: target })).then(
      (place) => {
        if (place.index === null) {
          setMissing(target);
          return;
        }
        selected.value = place.index;
        opened.value = new Set([...opened.value, place.item]);
        control.reveal(place.index, "center");
        if (!place.visible && place.item !== target) toast(`${target} is folded here: unfold it to see it in place, or open it as it was added.`, "note", { label: "Open it", run: () => { location.hash = here("message", target); } });
      },
      (error) => setMissing(error.kind === "not_found" ? target : `${target}: ${error.message}`),
    );
  }, [target, data.items]);
  useEffect(() => {
    const count = data.items;
    const keys = (event) => {
      if (event.target.closest("input, textarea, select, dialog") || event.ctrlKey || event.metaKey || event.altKey) return;
      const at = selected.value;
      const item = at === null ? null : pages.at(at);
      if (event.key === "j" || event.key === "k" || event.key === "ArrowDown" && event.shiftKey || event.key === "ArrowUp" && event.shiftKey) {
        const step = event.key === "j" || event.key === "ArrowDown" ? 1 : -1;
        selected.value = at === null ? control.first() : Math.max(0, Math.min(count - 1, at + step));
        control.reveal(selected.value);
      } else if (event.key === "g" || event.key === "G") {
        selected.value = event.key === "g" ? 0 : count - 1;
        control.reveal(selected.value);
      } else if ((event.key === "Enter" || event.key === "o") && item && !event.target.closest("button, a")) toggleOpen(item.id);
      else if (event.key === "u" && item) {
        if (item.fold) unfold(item.fold.id, item.fold.span, item.fold.price && !item.fold.price.fits);
        else if (item.cuts.length) unfold(item.cuts[0].fold, item.cuts[0].span, item.cuts[0].price && !item.cuts[0].price.fits);
        else toast("The selected message is not folded.", "note");
      } else return;
      event.preventDefault();
    };
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  });

  let largest = 1;
  const render = (index) => {
    const item = pages.at(index);
    if (!item) {
      const error = pages.errorAt(index);
      return error ? html`<div class="item placeholder"><div class="body">${index % size === 0 ? html`<${Failure} error=${error} small=${true} />` : ""}</div></div>` : html`<div class="item placeholder" aria-busy="true"><div class="gutter"><span class="role">…</span></div><div class="body"><i class="ghost"></i><i class="ghost"></i></div></div>`;
    }
    largest = Math.max(largest, item.tokens, 2000);
    return html`<${Item} item=${item} open=${opened.value.has(item.id)} toggle=${(event) => { event.stopPropagation(); toggleOpen(item.id); }} selected=${cursor === index} select=${() => { selected.value = index; }} largest=${largest} />`;
  };
  return html`${missing && html`<${Failure} small=${true} error=${{ kind: "not_found", message: `${missing} is not on this branch of the session.`, remedy: "" }} />`}
    <${VirtualList} key=${id} count=${data.items} render=${render} control=${control} label="Items as the model sees them" follow=${!target} selected=${cursor}
      keyOf=${(index) => { const item = pages.at(index); return item ? item.id : `at${index}`; }} onRange=${pages.seen} />
    <div class="listend"><span>${plural(data.items, "item")}</span><button class="quiet" onClick=${() => { selected.value = 0; control.reveal(0); }}>first</button><button class="quiet" onClick=${() => control.toEnd()}>newest</button></div>`;
}

function Side({ data }) {
  return html`<aside class="side" aria-label="About this window">
    <section><h2>What fills it</h2><${Legend} data=${data} /></section>
    ${data.outputs && data.outputs.length > 0 && html`<section><h2>Largest outputs</h2><ul class="meters">${data.outputs.map((one) => html`<li key=${one.tool}><span class="one-line"><code>${visible(one.tool)}</code> <span class="faint">${one.results} ×</span></span><span class="num">${short(one.tokens)}</span><span class="meter" aria-hidden="true"><i class="fill part-outputs" style=${{ width: `${(100 * one.tokens) / data.outputs[0].tokens}%` }}></i></span></li>`)}</ul></section>`}
    <section><h2>Session</h2><dl class="pairs"><div><dt>model</dt><dd>${visible(data.model) || "unknown"}</dd></div><div><dt>strategy</dt><dd>${visible(data.strategy)}</dd></div><div><dt>messages</dt><dd>${tokens(data.messages)}</dd></div>${data.branches > 1 && html`<div><dt>branches</dt><dd><a href=${here("history")}>${tokens(data.branches)}</a></dd></div>`}${data.updated != null && html`<div><dt>last use</dt><dd>${ago(data.updated)}</dd></div>`}${data.last_call && html`<div><dt>last call</dt><dd><a href=${here("call", data.last_call)}>${data.last_call}</a></dd></div>`}</dl></section>
    ${data.notes && data.notes.length > 0 && html`<section><h2>Notes</h2><ul class="notes">${data.notes.map((note, n) => html`<li key=${n}>${visible(note)}</li>`)}</ul></section>`}
  </aside>`;
}

export function WindowView({ target }) {
  const answer = useApi(api("window", { session: session.value }));
  useEffect(() => () => {
    selected.value = null;
  }, [session.value]);
  return html`<${State} of=${answer} what="the window">${(data) => html`<div class="window-view">
    <header class="window-head"><h1 class="sr">The window now</h1><${Figures} data=${data} /><${WindowBar} data=${data} /></header>
    <div class="columns"><main class="list">${data.items ? html`<${ItemList} data=${data} target=${target} />` : html`<${Empty} title="Nothing in the window yet">The first message that is added to this session appears here at once.<//>`}</main><${Side} data=${data} /></div>
  </div>`}<//>`;
}
