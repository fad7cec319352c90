// One item of the window as the model sees it: a message, a cut output, or a fold as a closed box.
import { html, visible, tokens, short, moment, plural, bytes } from "./text.js";
import { useState } from "./vendor/hooks.js";
import { api, canChange, change, get, session } from "./data.js";
import { Badge, BY, Confirm, Failure, LongText, Price, UnfoldButtons, here, textSource } from "./parts.js";

export const PART_NAMES = {
  system: "system prompt", tools: "tools", task: "task", pinned: "pinned", user: "user", assistant: "assistant", outputs: "tool outputs",
  recalled: "recalled", folded: "stand-ins of folds", unseen: "seen by the provider only", free: "free", reserve: "reserve for the answer",
};

function Block({ block, item, index, shown, open, words }) {
  const source = textSource(item.id, index, shown);
  const long = (mono) => html`<${LongText} text=${block.text || ""} cut=${block.cut} length=${block.length} source=${source} words=${words} mono=${mono} clamp=${!open} />`;
  if (block.kind === "text") return html`<div class="block">${long(false)}</div>`;
  if (block.kind === "reasoning") {
    return html`<div class="block reasoning"><div class="block-head">reasoning${block.opaque ? ", encrypted by the provider" : ""}</div>${block.text && long(false)}</div>`;
  }
  if (block.kind === "call") {
    return html`<div class="block call"><div class="block-head"><span class="verb">calls</span> <code>${visible(block.name)}</code> <span class="faint">${visible(block.call)}</span></div>${long(true)}</div>`;
  }
  if (block.kind === "result") {
    return html`<div class=${`block result ${block.error ? "is-error" : ""}`}><div class="block-head"><span class="verb">${block.error ? "error from" : "result of"}</span> <code>${visible(block.name || "a tool")}</code> <span class="faint">${visible(block.call)}</span></div>${long(true)}</div>`;
  }
  if (block.kind === "image" || block.kind === "document") {
    return html`<div class="block media"><span class="media-icon" aria-hidden="true">${block.kind === "image" ? "▧" : "▤"}</span> ${block.kind} ${visible(block.name)} <span class="faint">${block.media} ${bytes(block.bytes)}</span></div>`;
  }
  return html`<div class="block other"><div class="block-head"><code>${visible(block.name)}</code></div>${long(true)}</div>`;
}

function Hidden({ fold }) {
  const [state, setState] = useState({ data: null, error: null, asked: false });
  if (!state.asked) {
    state.asked = true;
    get(api("fold", { session: session.value, id: fold })).then(
      (data) => setState({ data, error: null, asked: true }),
      (error) => setState({ data: null, error, asked: true }),
    );
  }
  if (state.error) return html`<${Failure} error=${state.error} small=${true} />`;
  if (!state.data) return html`<p class="faint">Loading what it hides …</p>`;
  const { hidden, messages, spans } = state.data;
  return html`<div class="hidden-list"><h3>What this fold hides: ${plural(messages, "message")}${spans > 1 ? ` in ${spans} places` : ""}</h3>
    <ul>${hidden.map((one) => html`<li key=${one.id}><a href=${here("window", one.id)}><span class="role">${one.role}</span><span class="one-line">${visible(one.text)}</span><span class="num">${short(one.tokens)}</span></a></li>`)}</ul>
    ${messages > hidden.length && html`<p class="faint">and ${tokens(messages - hidden.length)} more</p>`}</div>`;
}

function FoldBox({ item, open, words, toggle }) {
  const fold = item.fold;
  const share = fold.before ? Math.max(0.01, Math.min(1, fold.after / fold.before)) : 1;
  return html`<div class=${`foldbox by-${fold.by}`}>
    <div class="fold-head">
      <button class="fold-title" aria-expanded=${open} onClick=${toggle}><span class="chevron" aria-hidden="true">${open ? "▾" : "▸"}</span>${plural(fold.messages, "message")} folded</button>
      <${Badge} kind="kind">${fold.kind}<//>
      <span class="faint">${fold.strategy ? visible(fold.strategy) : ""} · ${BY[fold.by] || fold.by} · ${moment(fold.at)}</span>
      <span class="fold-size" title="tokens before and after"><span class="ratio" aria-hidden="true"><i style=${{ width: `${100 * share}%` }}></i></span>${tokens(fold.before)} → ${tokens(fold.after)}</span>
    </div>
    <p class="fold-reason">${visible(fold.reason)}</p>
    <div class="fold-actions"><${UnfoldButtons} fold=${fold.id} span=${fold.span} price=${fold.price} /><${Price} price=${fold.price} /></div>
    ${open && html`<div class="fold-open"><h3>What stands in its place</h3>
      ${item.blocks.map((block, n) => html`<${Block} key=${n} block=${block} item=${item} index=${n} shown=${true} open=${true} words=${words} />`)}
      <${Hidden} fold=${fold.id} /></div>`}
  </div>`;
}

function Cut({ cut }) {
  return html`<div class="cut"><span><${Badge} kind="kind">${cut.kind}<//> ${visible(cut.reason)} <span class="faint">${tokens(cut.before)} → ${tokens(cut.after)}, ${BY[cut.by] || cut.by}</span></span>
    <span class="fold-actions"><${UnfoldButtons} fold=${cut.fold} span=${cut.span} price=${cut.price} /><${Price} price=${cut.price} /></span></div>`;
}

function rewindTo(message, text, done) {
  return html`<${Confirm} title="Rewind to this message?" verb="Rewind" onNo=${done}
    onYes=${() => change({ do: "rewind", message, before: false }, (answer) => answer.left && { label: "Go back", run: () => change({ do: "switch", to: answer.left }) })}>
    <p>The session goes on from <code>${message}</code>. What came after it stays as a branch, and you can switch back at any time.</p>
    <blockquote class="one-line">${visible(text)}</blockquote><//>`;
}

export function Item({ item, open, toggle, selected, select, words, largest, plain = false }) {
  const [asking, setAsking] = useState(false);
  const message = item.fold ? null : item.id;
  const pinned = item.marks.includes("pinned");
  const text = item.blocks.map((block) => block.text || "").join(" ").slice(0, 200);
  return html`<div class=${`item part-line-${item.part} ${selected ? "selected" : ""} ${open ? "open" : ""}`} onClick=${select}>
    <div class="gutter"><span class="role">${item.fold ? "fold" : item.role}</span><a class="faint id" href=${here("window", item.fold ? item.fold.id : item.id)} title="Link to this place">${item.fold ? item.fold.id : item.id}</a></div>
    <div class="body">
      ${item.fold
        ? html`<${FoldBox} item=${item} open=${open} words=${words} toggle=${toggle} />`
        : html`${item.blocks.map((block, n) => html`<${Block} key=${n} block=${block} item=${item} index=${n} shown=${!plain && item.cuts.some((cut) => cut.block === n)} open=${open} words=${words} />`)}
          ${item.cuts.map((cut) => html`<${Cut} key=${`${cut.fold}:${cut.span}`} cut=${cut} />`)}
          ${open && !plain && html`<div class="item-actions">
            <a class="button" href=${here("message", item.id)}>As it was added</a>
            ${canChange() && html`<button onClick=${() => change({ do: pinned ? "unpin" : "pin", message })}>${pinned ? "Unpin" : "Pin"}</button>
              <button onClick=${() => setAsking(true)}>Rewind to here</button>`}
            <span class="faint">${moment(item.at)}${item.origin ? ` · ${item.origin}` : ""}</span></div>`}
          ${asking && rewindTo(message, text, () => setAsking(false))}`}
    </div>
    <div class="weight" title=${`${tokens(item.tokens)} tokens`}>${item.marks.map((mark) => html`<${Badge} key=${mark} kind="mark">${mark}<//>`)}<span class="num">${short(item.tokens)}</span><span class="meter" aria-hidden="true"><i class=${`fill part-${item.part}`} style=${{ width: `${Math.min(100, (100 * item.tokens) / (largest || 1))}%` }}></i></span></div>
    ${!item.fold && html`<button class="expand" aria-expanded=${open} aria-label=${open ? "Show less" : "Show all of it"} onClick=${toggle}>${open ? "▾" : "▸"}</button>`}
  </div>`;
}
