// One call: the exact request, what of it is the same as the call before, and what the cache was expected to hold.
import { html, visible, tokens, dollars, percent, moment, bytes, plural } from "./text.js";
import { useEffect, useRef, useState } from "./vendor/hooks.js";
import { api, isExport, session, useApi } from "./data.js";
import { Badge, Empty, Failure, LongText, ShareBar, State, here } from "./parts.js";
import { VirtualList, usePages } from "./list.js";

const STATES = { same: "same", changed: "changed", new: "new" };

function Strip({ strip, before }) {
  if (!strip) return html`<p>This is the first request of the session: there is nothing before it to compare with.</p>`;
  const middle = Math.max(0, strip.total - strip.same - strip.tail);
  return html`<div class="strip">
    <${ShareBar} label="Bytes of this request" total=${strip.total} shares=${[
      { name: "same as before", part: "same", value: strip.same },
      { name: strip.grew_only ? "new" : "changed or new", part: strip.grew_only ? "new" : "changed", value: middle },
      { name: "same again at the end", part: "same", value: strip.tail },
    ]} />
    <ul class="legend inline"><li><span class="swatch fill part-same"></span>same as ${before ? html`<a href=${here("call", before)}>${before}</a>` : "before"} <b>${bytes(strip.same)}</b> ${percent(strip.total ? strip.same / strip.total : 0)}</li>
      <li><span class=${`swatch fill part-${strip.grew_only ? "new" : "changed"}`}></span>${strip.grew_only ? "new" : "changed or new"} <b>${bytes(middle)}</b></li>${strip.gone ? html`<li>gone since then <b>${bytes(strip.gone)}</b></li>` : ""}${strip.tail ? html`<li>same again at the end <b>${bytes(strip.tail)}</b></li>` : ""}</ul>
    <p><strong>${visible(strip.why)}</strong>${strip.first_difference != null && html` First difference at byte ${tokens(strip.first_difference)}${strip.where ? html`, in <code>${visible(strip.where)}</code>` : ""}.`}</p>
    ${!strip.grew_only && (strip.then || strip.now) && html`<div class="difference"><div><span class="label">before</span><code>${visible(strip.then)}</code></div><div><span class="label">now</span><code>${visible(strip.now)}</code></div></div>`}
  </div>`;
}

function Cache({ cache, usage, total }) {
  const reported = cache.reported == null ? null : cache.reported;
  const wide = Math.max(total || 0, cache.expected || 0, reported || 0) || 1;
  const line = (name, value, part) => html`<div class="cacheline"><span class="label">${name}</span><span class="meter wide" aria-hidden="true"><i class=${`fill part-${part}`} style=${{ width: `${(100 * (value || 0)) / wide}%` }}></i></span><span class="num">${value == null ? "not reported" : tokens(value)}</span></div>`;
  return html`<div>${line("expected", cache.expected, "same")}${line("reported", reported, "cached")}<p>${visible(cache.why)}${cache.missing ? html` <span class="faint">${tokens(cache.missing)} tokens fewer than expected.</span>` : ""}</p>
    ${usage && html`<p class="faint">The provider counted ${tokens(usage.cached)} read, ${tokens(usage.written)} written, ${tokens(usage.new)} new, ${tokens(usage.output)} answered.</p>`}</div>`;
}

// JSON for reading: names, values, and texts with their lines.
function Json({ value }) {
  if (value === null || typeof value !== "object") {
    if (typeof value !== "string") return html`<span class="num">${String(value)}</span>`;
    return html`<span class=${value.includes("\n") ? "string lines block-text" : "string"}>${visible(value)}</span>`;
  }
  const entries = Array.isArray(value) ? value.map((one) => ["–", one]) : Object.entries(value);
  if (!entries.length) return Array.isArray(value) ? "[]" : "{}";
  return html`<div class="nest">${entries.map(([key, one], n) => html`<div key=${n}><span class="key">${visible(key)}${Array.isArray(value) ? "" : ":"}</span> <${Json} value=${one} /></div>`)}</div>`;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // cut in the middle: shown as text
  }
}

function Wire({ one }) {
  const value = one.cut ? undefined : parsed(one.json);
  if (value === undefined) return html`<${LongText} mono=${true} text=${one.json.replaceAll("\\n", "\n")} />`;
  const { role, ...rest } = value;
  return html`<div class="json"><${Json} value=${role === one.role ? rest : value} /></div>`;
}

function Pretty({ call }) {
  const id = session.value;
  const size = call.messages.page_size || 100;
  const control = useRef({}).current;
  const pages = usePages((page) => api("call/messages", { session: id, id: call.id, page }), size, 0, (answer) => answer.messages);
  useEffect(() => {
    const at = call.messages.first_new;
    if (at != null && at > 3) control.reveal(Math.min(at, call.messages.count - 1), "center");
  }, [call.id]);
  const render = (index) => {
    const one = pages.at(index);
    if (!one) {
      const error = pages.errorAt(index);
      return html`<div class="item placeholder"><div class="body">${error ? (index % size ? "" : html`<${Failure} error=${error} small=${true} />`) : html`<i class="ghost"></i>`}</div></div>`;
    }
    return html`<div class=${`item wire state-${one.state}`}><div class="gutter"><span class="role">${visible(one.role)}</span><span class="faint id">${index}</span></div><div class="body"><${Wire} one=${one} />${one.cut && html`<p class="faint">${tokens(one.length)} characters in all: the raw request has every one.</p>`}</div><div class="weight"><${Badge} kind=${`diff-${one.state}`}>${STATES[one.state]}<//><span class="num">${bytes(one.bytes)}</span></div></div>`;
  };
  if (!call.messages.count) return html`<${Empty} title="No messages">This request held none.<//>`;
  return html`<${VirtualList} key=${call.id} count=${call.messages.count} render=${render} control=${control} keyOf=${(index) => `${call.id}:${index}`} onRange=${pages.seen} label="Messages of this request" />
    <div class="listend"><span>${plural(call.messages.count, "message")}</span><button class="quiet" onClick=${() => control.reveal(0)}>first</button>${call.messages.first_new != null && html`<button class="quiet" onClick=${() => control.reveal(Math.min(call.messages.first_new, call.messages.count - 1), "center")}>first new</button>`}</div>`;
}

function Raw({ call }) {
  const id = session.value;
  const url = (offset) => api("request", { session: id, id: call.id, offset });
  const first = useApi(url(0), null);
  return html`<${State} of=${first} what="the request">${(data) => html`<div class="raw" tabindex="0" aria-label="Raw request"><${LongText} mono=${true} text=${data.text} cut=${data.next !== null} length=${data.length} source=${url} /></div>`}<//>`;
}

export function CallView({ id }) {
  const answer = useApi(api("call", { session: session.value, id }), null);
  const [raw, setRaw] = useState(false);
  useEffect(() => {
    const keys = (event) => {
      if (event.target.closest("input, textarea, select, dialog") || event.ctrlKey || event.metaKey || event.altKey || !answer.data) return;
      const to = event.key === "j" || event.key === "]" ? answer.data.after : event.key === "k" || event.key === "[" ? answer.data.before : null;
      if (to) location.hash = here("call", to);
    };
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  });
  return html`<${State} of=${answer} what="the call">${(call) => html`<div class="call-view page fixed">
    <header class="call-head"><div class="title-row"><h1>Call ${call.number != null ? html`${tokens(call.number)} <span class="faint">of ${tokens(call.calls)}, ${call.id}</span>` : call.id}</h1><nav class="buttons" aria-label="Neighbours">${isExport ? "" : html`<form class="goto" onSubmit=${goto}><label class="sr" for="goto">Number of a call</label><input id="goto" name="number" inputmode="numeric" placeholder="Call number" size="10" /></form>`}${call.before ? html`<a class="button" href=${here("call", call.before)}>← ${call.before}</a>` : ""}${call.after ? html`<a class="button" href=${here("call", call.after)}>${call.after} →</a>` : ""}${call.answer ? html`<a class="button" href=${here("window", call.answer)}>its answer</a>` : ""}</nav></div>
      <p class="faint">${moment(call.at)} · ${visible(call.model)} · ${call.format} · ${tokens(call.tokens)} tokens · ${bytes(call.bytes)}${call.cost != null ? ` · ${dollars(call.cost)}` : ""}${call.folds.length ? html` · after ${call.folds.map((fold, n) => html`${n ? ", " : ""}<a href=${here("window", fold)}>${fold}</a>`)}` : ""}</p>
      <div class="two"><section class="card"><h2>Against the call before</h2><${Strip} strip=${call.strip} before=${call.before} /></section>
        <section class="card"><h2>Cache</h2><${Cache} cache=${call.cache} usage=${call.usage} total=${call.tokens} /></section></div>
      <div class="tabs" role="tablist" aria-label="Form of the request"><button role="tab" aria-selected=${!raw} onClick=${() => setRaw(false)}>Pretty</button><button role="tab" aria-selected=${raw} onClick=${() => setRaw(true)}>Raw</button>
        <span class="sections">${call.sections.map((one) => html`<span key=${one.name}>${one.name} ${bytes(one.bytes)} <${Badge} kind=${`diff-${one.state}`}>${one.state}<//></span>`)}</span>
        <a class="quiet button" href=${api("request.json", { session: session.value, id: call.id })} download=${`${call.id}.json`}>Download ${bytes(call.bytes)}</a></div></header>
    <main class="list">${raw ? html`<${Raw} call=${call} />` : html`<${Pretty} call=${call} />`}</main>
  </div>`}<//>`;
}

function goto(event) {
  event.preventDefault();
  const number = event.target.number.value.trim();
  if (number) location.hash = here("call", number);
}

// Without an id: the newest call.
export function LastCall() {
  const answer = useApi(api("window", { session: session.value }));
  return html`<${State} of=${answer} what="the last call">${(data) => data.last_call
    ? html`<${CallView} key=${data.last_call} id=${data.last_call} />`
    : html`<${Empty} title="No calls yet">The exact bytes of each request to a model can be read here.<//>`}<//>`;
}
