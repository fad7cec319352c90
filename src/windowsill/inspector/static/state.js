// The layered state of an agent, its policies, the tools it is offered and those that are hidden, with the reason.
import { html, visible, tokens, moment, plural } from "./text.js";
import { api, session, useApi } from "./data.js";
import { Badge, Empty, State } from "./parts.js";

const LAYERS = { system: "Role", task: "Task", runtime: "Run", evidence: "Evidence", memory: "Memory", work: "Work" };

// What was never set says nothing: it is left out.
function said(value) {
  if (value === null || value === undefined || value === "") return false;
  if (Array.isArray(value)) return value.some(said);
  return typeof value === "object" ? Object.entries(value).some(([key, one]) => !BOOKKEEPING.has(key) && said(one)) : true;
}
const BOOKKEEPING = new Set(["id", "at", "entry", "created_at"]);

const HEADS = ["description", "content", "text", "rule", "goal", "name", "title"];
const scalar = (value) => typeof value !== "object";

// One thing of a list: what it says first, the rest of it small behind.
function Thing({ value }) {
  const head = HEADS.find((key) => scalar(value[key]) && said(value[key]));
  if (!head) return html`<${Pairs} of=${value} />`;
  const rest = Object.entries(value).filter(([key, one]) => key !== head && !BOOKKEEPING.has(key) && said(one));
  const small = rest.filter(([, one]) => scalar(one) && one !== false).map(([key, one]) => `${key.replaceAll("_", " ")}: ${one}`);
  return html`${visible(String(value[head]))}${small.length > 0 && html` <span class="faint">${visible(small.join(" · "))}</span>`}${rest.filter(([, one]) => !scalar(one)).map(([key, one]) => html`<${Pairs} key=${key} of=${{ [key]: one }} />`)}`;
}

function Value({ value }) {
  if (!said(value)) return html`<span class="faint">none</span>`;
  if (Array.isArray(value)) {
    return html`<ul class="values">${value.filter(said).map((one, n) => html`<li key=${n}>${scalar(one) ? visible(String(one)) : Array.isArray(one) ? html`<${Value} value=${one} />` : html`<${Thing} value=${one} />`}</li>`)}</ul>`;
  }
  if (typeof value === "object") return html`<${Pairs} of=${value} />`;
  return html`<span class=${typeof value === "string" ? "" : "num"}>${visible(String(value))}</span>`;
}

export function Pairs({ of }) {
  const entries = Object.entries(of || {}).filter(([key, value]) => !BOOKKEEPING.has(key) && said(value));
  if (!entries.length) return html`<span class="faint">none</span>`;
  return html`<dl class="pairs">${entries.map(([key, value]) => html`<div key=${key} class=${scalar(value) ? "" : "deep"}><dt>${visible(key.replaceAll("_", " "))}</dt><dd><${Value} value=${value} /></dd></div>`)}</dl>`;
}

function Tools({ tools }) {
  const { offered, decision, decisions } = tools;
  const most = Math.max(1, ...offered.map((one) => one.tokens || 0));
  return html`<section class="card"><h2>Tools <span class="faint">${plural(offered.length, "offered tool")}${decision ? `, ${decision.hidden.length} hidden` : ""}</span></h2>
    ${decision && html`<p class="faint">${[decision.phase && `phase ${decision.phase}`, decision.environment && `environment ${decision.environment}`, decision.mode && `mode ${decision.mode}`, decision.permissions && decision.permissions.length && `may ${decision.permissions.join(", ")}`].filter(Boolean).join(" · ")}</p>`}
    ${offered.length > 0 && html`<div class="scroll-x"><table><thead><tr><th>tool</th><th class="r">calls</th><th class="r">tokens</th><th></th><th>what it is for</th></tr></thead><tbody>${offered.map((one) => html`<tr key=${one.name}><td><code>${visible(one.name)}</code></td><td class="r">${one.calls ? tokens(one.calls) : html`<span class="faint">unused</span>`}</td><td class="r">${tokens(one.tokens)}</td><td><span class="meter"><i class="fill part-tools" style=${{ width: `${(100 * (one.tokens || 0)) / most}%` }}></i></span></td><td class="wide-cell">${visible((one.description || "").slice(0, 200))}</td></tr>`)}</tbody></table></div>`}
    ${decision && decision.hidden.length > 0 && html`<h3>Hidden, and why</h3><ul class="notes">${decision.hidden.map((one) => html`<li key=${one.name}><code>${visible(one.name)}</code> ${visible(one.why)}</li>`)}</ul>`}
    ${decision && decision.narrowed && decision.narrowed.length > 0 && html`<h3>Narrowed</h3><${Value} value=${decision.narrowed} />`}
    ${decisions.length > 1 && html`<details><summary>${plural(decisions.length, "decision")} so far</summary><ul class="notes">${decisions.map((one) => html`<li key=${one.id}><span class="faint">${moment(one.at)} ${one.id}</span> ${visible(one.phase)}: ${one.names} offered, ${one.hidden} hidden</li>`)}</ul></details>`}
    ${!offered.length && !decision && html`<p class="faint">No tools were offered in this session.</p>`}</section>`;
}

// Limits, policies and audit have a card of their own.
const layersOf = (state) => Object.entries({ ...state, system: state.system && state.system.role }).filter(([, value]) => said(value));

export function StateView() {
  const answer = useApi(api("state", { session: session.value }));
  return html`<div class="page"><${State} of=${answer} what="the state">${(data) => html`<h1>State, tools and policies</h1>
    ${data.empty ? html`<${Empty} title="No state is kept">This session was not run by an agent of Windowsill, or nothing was recorded about its task yet.<//>`
      : html`<div class="cards">${layersOf(data.state).map(([layer, value]) => html`<section class="card layer" key=${layer}><h2>${LAYERS[layer] || layer}</h2><${Value} value=${value} /></section>`)}</div>`}
    <section class="card"><h2>Policies</h2>${data.policies.length ? html`<div class="scroll-x"><table><thead><tr><th>rule</th><th>category</th><th class="r">priority</th><th>enforcement</th></tr></thead><tbody>${data.policies.map((one) => html`<tr key=${one.id}><td class="wide-cell">${visible(one.rule)} <span class="faint">${visible(one.id)}</span></td><td>${visible(one.category)}</td><td class="r">${one.priority}</td><td><${Badge} kind=${one.enforcement === "hard" ? "hard" : "kind"}>${visible(one.enforcement)}<//></td></tr>`)}</tbody></table></div>` : html`<p class="faint">None.</p>`}
      ${data.constraints && Object.keys(data.constraints).length > 0 && html`<details><summary>Limits</summary><${Pairs} of=${data.constraints} /></details>`}${data.audit && Object.keys(data.audit).length > 0 && html`<details><summary>Audit</summary><${Pairs} of=${data.audit} /></details>`}</section>
    <${Tools} tools=${data.tools} />
    ${data.changes.length > 0 && html`<section class="card"><h2>Last changes</h2><ol class="notes">${data.changes.map((one) => html`<li key=${one.id}><span class="faint">${moment(one.at)} ${one.id}</span> ${visible(one.text)}</li>`)}</ol></section>`}
    ${data.settings && html`<details class="card"><summary>Settings of this session</summary><${Pairs} of=${data.settings} /></details>`}`}<//></div>`;
}
