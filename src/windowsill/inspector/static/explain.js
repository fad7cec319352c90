// Explain: where some words are, and by which rule they are out of the window. And one message as it was added.
import { html, visible, tokens, moment } from "./text.js";
import { useEffect, useState } from "./vendor/hooks.js";
import { api, canChange, session, useApi } from "./data.js";
import { Badge, BY, Empty, Price, State, UnfoldButtons, here } from "./parts.js";
import { Item } from "./item.js";

const STATES = { visible: "in the window", cut: "cut", hidden: "folded", left: "on another branch" };

export function WordSearch({ words, label, hint, to }) {
  const [text, setText] = useState(words);
  useEffect(() => setText(words), [words]);
  const submit = (event) => {
    event.preventDefault();
    location.hash = to(text.trim());
  };
  return html`<form class="search" role="search" onSubmit=${submit}><label class="sr" for="words">${label}</label>
    <input id="words" type="search" value=${text} placeholder=${hint} autocomplete="off" spellcheck="false" onInput=${(event) => setText(event.target.value)} /><button class="primary">Find</button></form>`;
}

function Found({ one, words }) {
  return html`<li class=${`found state-${one.state}`}><div class="found-head"><${Badge} kind=${`state-${one.state}`}>${STATES[one.state] || one.state}<//><span class="role">${visible(one.role)}</span><a href=${here("window", one.message)}>${one.message}</a>${one.lines ? html`<span class="faint">lines ${one.lines}</span>` : ""}<span class="faint">${moment(one.at)}</span></div>
    <div class="excerpt">${visible(one.text, words)}</div>
    <p class="why"><strong>Why:</strong> ${visible(one.why)}</p>
    <div class="fold-actions">${one.fold && one.price && html`<${UnfoldButtons} fold=${one.fold} price=${one.price} /><${Price} price=${one.price} />`}${one.fold ? html`<a class="quiet button" href=${here("window", one.fold)}>Show the fold</a>` : ""}<a class="quiet button" href=${here("message", one.message)}>As it was added</a></div></li>`;
}

export function ExplainView({ words }) {
  const answer = useApi(words ? api("explain", { session: session.value, words }) : null);
  return html`<div class="page narrow"><h1>Why is it in, why is it out?</h1>
    <${WordSearch} words=${words} label="Words to explain" hint="Type any words that were said, read or printed" to=${(text) => here("explain", text)} />
    ${words ? html`<${State} of=${answer} what="where they are">${(data) => data.found.length
      ? html`<ul class="results" aria-label="Where the words are">${data.found.map((one) => html`<${Found} key=${one.message + (one.lines || "")} one=${one} words=${words} />`)}</ul>`
      : html`<${Empty} title="Nowhere in this session">No message, tool output or folded part holds these words. Fewer words find more.<//>`}<//>`
      : html`<${Empty} title="Nothing is lost, only folded">Each match says whether the model sees it now, and if not, which fold hides it, by which rule, and what it costs to bring it back.<//>`}</div>`;
}

export function MessageView({ id }) {
  const answer = useApi(api("message", { session: session.value, id }));
  return html`<div class="page narrow"><${State} of=${answer} what="the message">${(item) => html`<h1>${item.id} as it was added</h1>
    <p class="why"><${Badge} kind=${`state-${item.why.visible ? "visible" : "hidden"}`}>${item.why.visible ? "in the window" : "not in the window"}<//> ${visible(item.why.why)}</p>
    ${item.why.folds && item.why.folds.length > 0 && html`<ul class="results">${item.why.folds.map((fold) => html`<li key=${fold.id} class="found"><div class="found-head"><a href=${here("window", fold.id)}>${fold.id}</a> <${Badge} kind="kind">${fold.kind}<//> <span class="faint">${visible(fold.strategy)} · ${BY[fold.by] || fold.by} · ${tokens(fold.before)} → ${tokens(fold.after)}</span></div><p>${visible(fold.reason)}</p>${fold.price && fold.state !== "undone" && html`<div class="fold-actions">${canChange() && html`<${UnfoldButtons} fold=${fold.id} price=${fold.price} />`}<${Price} price=${fold.price} /></div>`}</li>`)}</ul>`}
    <div class="card whole"><${Item} item=${{ marks: [], cuts: [], ...item, fold: null }} open=${true} toggle=${() => {}} plain=${true} largest=${item.tokens} /></div>
    <p><a class="button" href=${here("window", id)}>Show it in the window</a></p>`}<//></div>`;
}
