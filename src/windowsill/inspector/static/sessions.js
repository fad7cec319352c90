// All sessions with search over everything; the engine's metrics and health; comparisons of runs.
import { html, visible, tokens, short, dollars, percent, ago, moment, plural, bytes } from "./text.js";
import { useEffect, useRef, useState } from "./vendor/hooks.js";
import { about, api, get, listVersion, renewed, useApi } from "./data.js";
import { Badge, Empty, Failure, Loading, State, link } from "./parts.js";
import { Pairs } from "./state.js";
import { WordSearch } from "./explain.js";

function useSessions() {
  const changed = listVersion.value + renewed.value;
  const [state, setState] = useState({ rows: null, total: 0, error: null });
  const count = useRef(100);
  const load = async () => {
    try {
      const rows = [];
      let total = 0;
      do {
        const answer = await get(api("sessions", { offset: rows.length || null }));
        rows.push(...answer.sessions);
        total = answer.total;
        if (!answer.sessions.length) break;
      } while (rows.length < Math.min(total, count.current));
      setState({ rows, total, error: null });
    } catch (error) {
      setState((last) => ({ ...last, error }));
    }
  };
  useEffect(() => {
    load();
  }, [changed]);
  return { ...state, more: () => { count.current += 100; load(); } };
}

// Sub-agents stand below the session that started them.
function grouped(rows) {
  const ids = new Set(rows.map((one) => one.id));
  const children = new Map();
  for (const one of rows) if (one.parent && ids.has(one.parent)) children.set(one.parent, [...(children.get(one.parent) || []), one]);
  const out = [];
  const put = (one, depth) => {
    out.push({ ...one, depth });
    if (depth < 6) for (const child of children.get(one.id) || []) put(child, depth + 1);
  };
  for (const one of rows) if (!one.parent || !ids.has(one.parent)) put(one, 0);
  return out;
}

function Row({ one }) {
  const figures = one.figures;
  const sum = (value) => html`${value}${figures && !figures.complete ? html`<span class="faint">+</span>` : ""}`;
  return html`<tr><td class="wide-cell"><a class=${`session-link depth-${Math.min(4, one.depth)}`} href=${link("s", one.id, "window")}>${one.depth ? html`<span class="faint" aria-hidden="true">└ </span>` : ""}${visible(one.id)}</a>${one.title ? html`<div class="one-line title">${visible(one.title)}</div>` : ""}<div class="faint">${visible(one.model) || "no model yet"}${one.damaged ? html` <${Badge} kind="state-hidden" title=${String(one.damaged)}>damaged<//>` : ""}</div></td>
    <td>${figures ? html`<span class="fillbar" role="img" aria-label=${`${percent(figures.fill)} full`} title=${`${tokens(figures.tokens)} of ${tokens(figures.limit ?? figures.window)} tokens`}><i style=${{ width: `${Math.min(100, 100 * (figures.fill || 0))}%` }}></i></span> <span class="num">${percent(figures.fill)}</span>` : html`<span class="faint">…</span>`}</td>
    <td class="r" data-what="entries">${tokens(one.entries)}</td><td class="r" data-what="calls">${figures ? sum(tokens(figures.calls)) : ""}</td><td class="r" data-what="folds">${figures ? sum(tokens(figures.folds)) : ""}</td><td class="r" data-what="cost">${figures ? (figures.cost == null ? html`<span class="faint">unknown</span>` : sum(dollars(figures.cost))) : ""}</td><td class="r" data-what="cached">${figures && figures.cache_share != null ? percent(figures.cache_share) : ""}</td><td class="r when">${ago(one.updated)}</td></tr>`;
}

function Search({ words }) {
  const answer = useApi(api("search", { words }), listVersion);
  return html`<${State} of=${answer} what="what was said">${(data) => data.found.length
    ? html`<ul class="results" aria-label="Found">${data.found.map((one) => html`<li class="found" key=${one.session + one.message + one.text}><div class="found-head"><a href=${link("s", one.session, "window", one.message)}>${visible(one.session)} · ${one.message}</a><span class="role">${visible(one.role)}</span>${one.left ? html`<${Badge} kind="state-left">on another branch<//>` : ""}<span class="faint">${moment(one.at)}</span></div><div class="excerpt">${visible(one.text, words)}</div></li>`)}</ul>`
    : html`<${Empty} title="Found nowhere">No session holds these words. Fewer words find more.<//>`}<//>`;
}

export function SessionsView({ words }) {
  const state = useSessions();
  const store = about.value && about.value.store;
  return html`<div class="page"><h1>Sessions</h1>
    <${WordSearch} words=${words} label="Search all sessions" hint="Search everything that was ever said" to=${(text) => (text ? link("search", text) : link())} />
    ${words ? html`<${Search} words=${words} />`
      : state.error && !state.rows ? html`<${Failure} error=${state.error} />`
      : !state.rows ? html`<${Loading} what="the sessions" />`
      : !state.rows.length ? html`<${Empty} title="No sessions yet">Run <code>windowsill demo</code>, or start an agent with <code>windowsill run</code>: its session appears here by itself.<//>`
      : html`<section class="card"><div class="scroll-x"><table class="sessions"><thead><tr><th>session</th><th>fill</th><th class="r">entries</th><th class="r">calls</th><th class="r">folds</th><th class="r">cost</th><th class="r">cached</th><th class="r">last use</th></tr></thead><tbody>${grouped(state.rows).map((one) => html`<${Row} key=${one.id} one=${one} />`)}</tbody></table></div>
        ${state.total > state.rows.length && html`<button onClick=${state.more}>Show more of ${tokens(state.total)}</button>`}</section>`}
    ${store && html`<p class="faint foot">${store.kind} store ${visible(store.place)}${store.bytes ? `, ${bytes(store.bytes)}` : ""}</p>`}</div>`;
}

function EngineCard({ one }) {
  const used = one.resources || {};
  return html`<section class="card"><h2><a href=${link("s", one.session, "state")}>${visible(one.session)}</a> <${Badge} kind=${one.running ? "state-visible" : "kind"}>${one.running ? "running" : "at rest"}<//> <span class="faint">${visible(one.phase)}, ${ago(one.updated)}</span></h2>
    ${one.goal && html`<p>${visible(one.goal)}</p>`}
    <dl class="figures"><div><dt>model calls</dt><dd><b>${tokens(used.model_calls)}</b></dd></div><div><dt>tool calls</dt><dd><b>${tokens(used.tool_calls)}</b></dd></div><div><dt>tokens in and out</dt><dd><b>${short(used.input)}</b> <span>and ${short(used.output)}, ${short(used.cached)} cached</span></dd></div><div><dt>cost</dt><dd><b>${dollars(used.cost)}</b> <span>in ${Math.round(used.seconds || 0)} s</span></dd></div></dl>
    ${one.errors.length > 0 && html`<h3>Last errors</h3><ul class="notes warn-list">${one.errors.map((error, n) => html`<li key=${n}>${visible(error)}</li>`)}</ul>`}</section>`;
}

function Health({ health }) {
  return html`<section class="card"><h2>Proxy <${Badge} kind=${health.status === "ok" ? "state-visible" : "state-hidden"}>${visible(health.status)}<//></h2>
    <p class="faint">up for ${health.seconds < 120 ? plural(Math.round(health.seconds || 0), "second") : plural(Math.round(health.seconds / 60), "minute")}</p>${health.counts && Object.keys(health.counts).length > 0 && html`<${Pairs} of=${health.counts} />`}
    ${health.faults && health.faults.length > 0 ? html`<h3>What went wrong</h3><ul class="notes">${health.faults.map((one, n) => html`<li key=${n}><span class="faint">${moment(one.at)}</span> ${visible(one.what || String(one))}</li>`)}</ul>` : html`<p>No faults.</p>`}
    ${health.upstreams && html`<h3>Providers behind it</h3><${Pairs} of=${health.upstreams} />`}</section>`;
}

export function EngineView() {
  const [beat, setBeat] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => document.hidden || setBeat((n) => n + 1), 2000);
    return () => clearInterval(timer);
  }, []);
  const answer = useApi(api("metrics"), { value: beat + listVersion.value });
  return html`<div class="page"><h1>Engine and health</h1><${State} of=${answer} what="the metrics">${(data) => html`
    ${data.proxy && html`<${Health} health=${data.proxy} />`}
    ${data.engines.map((one) => html`<${EngineCard} key=${one.session} one=${one} />`)}
    ${!data.engines.length && !data.proxy && html`<${Empty} title="No engine has worked here">Agents that keep a state, run by <code>windowsill agent</code> or by your own engine, appear here with their phase, their calls and their cost, live.<//>`}`}<//></div>`;
}

export function CompareView() {
  const answer = useApi(api("comparisons"), listVersion);
  return html`<div class="page"><h1>Comparisons</h1><${State} of=${answer} what="the comparisons">${(data) => data.files.length
    ? data.files.map((file) => html`<section class="card" key=${file.path + file.at + file.title}><h2>${visible(file.title || file.path)} <span class="faint">${file.kind}, ${moment(file.at)}</span></h2>
        <div class="scroll-x"><table><thead><tr>${file.columns.map((name, n) => html`<th key=${name} class=${n ? "r" : ""}>${visible(name)}</th>`)}</tr></thead><tbody>${file.rows.map((row, n) => html`<tr key=${n}>${row.map((cell, m) => html`<td key=${m} class=${typeof cell === "number" ? "r" : ""}>${typeof cell === "number" ? (Number.isInteger(cell) ? tokens(cell) : cell.toPrecision(4)) : visible(cell)}</td>`)}</tr>`)}</tbody></table></div>
        ${file.worse && file.worse.length > 0 && html`<h3>Got worse</h3><ul class="notes warn-list">${file.worse.map((one, n) => html`<li key=${n}>${visible(one)}</li>`)}</ul>`}<p class="faint">${visible(file.path)}</p></section>`)
    : html`<${Empty} title="Nothing to compare yet">Results of <code>windowsill replay --compare</code> and <code>windowsill evaluate</code> in ${visible(data.folder)} appear here.<//>`}<//></div>`;
}
