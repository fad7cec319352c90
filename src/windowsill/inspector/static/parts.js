// Pieces that several views share: states of loading and failure, badges, long texts, prices.
import { html, visible, tokens, short, dollars, priceText } from "./text.js";
import { useEffect, useRef, useState } from "./vendor/hooks.js";
import { api, get, session, canChange, change } from "./data.js";

export const link = (...path) => "#/" + path.map(encodeURIComponent).join("/");
export const here = (...path) => link("s", session.value, ...path);

// What a view shows while it has nothing, or when it cannot have anything.
export function State({ of: { data, error }, what = "this", children }) {
  if (data !== null && data !== undefined) {
    return html`${error && html`<${Failure} error=${error} small=${true} />`}${children(data)}`;
  }
  return error ? html`<${Failure} error=${error} />` : html`<${Loading} what=${what} />`;
}

export function Loading({ what }) {
  return html`<div class="state" role="status"><div class="shimmer" aria-hidden="true"><i></i><i></i><i></i></div><p>Loading ${what} …</p></div>`;
}

const TITLES = {
  damaged: "This session is damaged",
  not_found: "Not found",
  unreachable: "The server is away",
  token: "A token is needed",
  not_in_file: "Not in this file",
  conflict: "Somebody else changed it first",
  too_large: "Too large to show",
};

export function Failure({ error, small = false }) {
  const calm = error.kind === "not_in_file";
  return html`<div class=${`state failure ${calm ? "calm" : ""} ${small ? "small" : ""} kind-${error.kind}`} role=${calm ? "note" : "alert"}>
    <h2>${TITLES[error.kind] || "This did not work"}</h2>
    <p>${visible(error.message)}</p>
    ${error.remedy && html`<p class="remedy">${visible(error.remedy)}</p>`}
    ${error.kind === "token" && html`<p class="remedy">Open the address that <code>windowsill inspect</code> printed: it ends in <code>#token=…</code></p>`}
  </div>`;
}

export function Empty({ title, children }) {
  return html`<div class="state empty" role="note"><h2>${title}</h2><p>${children}</p></div>`;
}

export const Badge = ({ kind, children, title }) => html`<span class=${`badge badge-${kind}`} title=${title}>${children}</span>`;

// Text of any length: the beginning at once, the rest in slices when it is asked for.
export function LongText({ text, cut, length, source, words, mono = false, clamp = false }) {
  const [more, setMore] = useState([]);
  const [next, setNext] = useState(text.length);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState(null);
  const first = useRef(text);
  if (first.current !== text) {
    first.current = text;
    if (more.length) {
      setMore([]);
      setNext(text.length);
    }
  }
  const load = async (event) => {
    event.stopPropagation();
    setBusy(true);
    try {
      const answer = await get(source(next));
      setMore([...more, answer.text]);
      setNext(answer.next);
      setFailure(null);
    } catch (error) {
      setFailure(error);
    }
    setBusy(false);
  };
  const rest = cut && next !== null ? length - text.length - more.reduce((sum, part) => sum + part.length, 0) : 0;
  return html`<div class=${`long ${mono ? "mono" : ""} ${clamp && !more.length ? "clamp" : ""}`}>
    <div class="text">${visible(text, words)}</div>
    ${more.map((part, n) => html`<div class="text slice" key=${n}>${visible(part, words)}</div>`)}
    ${rest > 0 && source && html`<button class="more" disabled=${busy} onClick=${load}>${busy ? "Loading …" : `Show more (${tokens(rest)} characters left)`}</button>`}
    ${failure && html`<p class="remedy">${failure.message} ${failure.remedy}</p>`}
  </div>`;
}

// The price of an unfold in figures, before it is done.
export function Price({ price }) {
  if (!price) return null;
  return html`<span class=${`price ${price.fits ? "" : "over"}`} title=${priceText(price)}>
    <b>+${tokens(price.tokens)}</b> tokens<span class="sep">·</span>${price.known && price.dollars != null
      ? html`<b>${dollars(price.dollars)}</b> once${price.each_call ? html`, ${dollars(price.each_call)} per call` : ""}`
      : "price unknown"}<span class="sep">·</span>next request ${short(price.total)} of ${short(price.limit)}${price.fits ? "" : html` <strong>does not fit</strong>`}
  </span>`;
}

export function unfold(fold, span, fit) {
  const body = { do: "unfold", fold };
  if (span != null && !fit) body.span = span;
  if (fit) body.fit = true;
  return change(body);
}

export function UnfoldButtons({ fold, span, price }) {
  const [busy, setBusy] = useState(false);
  if (!canChange()) return null;
  const act = (fit) => async (event) => {
    event.stopPropagation();
    setBusy(true);
    await unfold(fold, span, fit);
    setBusy(false);
  };
  const fits = !price || price.fits;
  return html`<span class="buttons">
    <button class=${fits ? "primary" : ""} disabled=${busy || !fits} title=${fits ? priceText(price) : "It does not fit: unfold what fits instead"} onClick=${act(false)}>Unfold</button>
    <button class=${fits ? "" : "primary"} disabled=${busy} title="Bring back as much of this fold as the budget has room for" onClick=${act(true)}>Unfold what fits</button>
  </span>`;
}

export const BY = { windowsill: "Windowsill", client: "the agent itself", user: "by hand", model: "the model" };

// One bar of shares with patterns and names: never only a colour.
export function ShareBar({ shares, total, label }) {
  const whole = total || shares.reduce((sum, one) => sum + one.value, 0) || 1;
  return html`<div class="sharebar" role="img" aria-label=${`${label}: ${shares.map((one) => `${one.name} ${tokens(one.value)}`).join(", ")}`}>
    ${shares.filter((one) => one.value > 0).map((one) => html`<span key=${one.name} class=${`fill part-${one.part}`} title=${`${one.name}: ${tokens(one.value)}`}
      style=${{ flexGrow: String(one.value / whole) }}></span>`)}
  </div>`;
}

// Ask before something that moves the head of the session.
export function Confirm({ title, children, verb, onYes, onNo }) {
  const box = useRef(null);
  useEffect(() => {
    box.current.showModal();
  }, []);
  const yes = () => {
    box.current.close();
    onYes();
  };
  return html`<dialog ref=${box} aria-label=${title} onClose=${onNo}>
    <h2>${title}</h2>
    <div class="dialog-body">${children}</div>
    <p class="buttons"><button onClick=${() => box.current.close()}>Cancel</button><button class="primary" onClick=${yes}>${verb}</button></p>
  </dialog>`;
}

export const textSource = (id, block, shown) => (offset) => api("text", { session: session.value, id, block, offset, shown: shown ? 1 : null });
