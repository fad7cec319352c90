// Text as text nodes, with what hides in it made visible, and figures as people read them.
import { h } from "./vendor/preact.js";
import htm from "./vendor/htm.js";

export const html = htm.bind(h);

// Control characters, bidirectional overrides, zero-width characters, lone surrogates: a transcript may hide behind them.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

const NAMES = {
  0: "NUL", 8: "BS", 13: "CR", 27: "ESC", 127: "DEL", 0xad: "soft hyphen", 0x200b: "zero-width space",
  0x200c: "zero-width non-joiner", 0x200d: "zero-width joiner", 0x200e: "left-to-right mark", 0x200f: "right-to-left mark",
  0x202a: "left-to-right embedding", 0x202b: "right-to-left embedding", 0x202c: "pop directional formatting",
  0x202d: "left-to-right override", 0x202e: "right-to-left override", 0x2066: "left-to-right isolate",
  0x2067: "right-to-left isolate", 0x2068: "first strong isolate", 0x2069: "pop directional isolate", 0xfeff: "byte order mark",
};

function sign(character) {
  const code = character.charCodeAt(0);
  const hex = "U+" + code.toString(16).toUpperCase().padStart(4, "0");
  const shown = code < 32 ? String.fromCharCode(0x2400 + code) : hex;
  return html`<span class="hidden-sign" title=${NAMES[code] ? hex + " " + NAMES[code] : hex}>${shown}</span>`;
}

// Return text nodes for a transcript's text. `words`, when given, are highlighted.
export function visible(text, words = null) {
  if (text == null) return null;
  text = String(text);
  const out = [];
  let at = 0;
  for (const found of text.matchAll(HIDDEN)) {
    // A carriage return before a line feed is only the line end of another system.
    if (found[0] === "\r" && text[found.index + 1] === "\n") continue;
    if (found.index > at) out.push(text.slice(at, found.index));
    out.push(sign(found[0]));
    at = found.index + found[0].length;
  }
  if (at === 0 && !words) return text;
  out.push(text.slice(at));
  return words ? out.flatMap((part) => (typeof part === "string" ? highlight(part, words) : [part])) : out;
}

function highlight(text, words) {
  const wanted = words.split(/\s+/).filter((word) => word.length > 1);
  if (!wanted.length) return [text];
  const pattern = wanted.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|");
  return text.split(new RegExp(`(${pattern})`, "gi")).map((part, n) => (n % 2 ? html`<mark>${part}</mark>` : part));
}

export const tokens = (n) => (n == null ? "?" : Math.round(n).toLocaleString("en-US"));

export function short(n) {
  if (n == null) return "?";
  const size = Math.abs(n);
  if (size >= 999500) return trim(n / 1e6, size >= 1e7 ? 0 : 1) + "M";
  if (size >= 1000) return trim(n / 1e3, size >= 99950 ? 0 : 1) + "k";
  return String(Math.round(n));
}

const trim = (n, digits) => n.toFixed(digits).replace(/\.0$/, "");

export function dollars(n) {
  if (n == null) return "price unknown";
  if (n === 0) return "$0";
  const size = Math.abs(n);
  const digits = size >= 0.1 ? 2 : size >= 0.01 ? 3 : size >= 0.001 ? 4 : 5;
  return (n < 0 ? "−$" : "$") + size.toFixed(digits);
}

export const percent = (share) => (share == null ? "?" : `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`);

export function bytes(n) {
  if (n == null) return "?";
  if (n < 1000) return `${n} B`;
  if (n < 1e6) return `${trim(n / 1e3, 1)} KB`;
  return n < 1e9 ? `${trim(n / 1e6, 1)} MB` : `${trim(n / 1e9, 1)} GB`;
}

const twoDigits = (n) => String(n).padStart(2, "0");

export function moment(at) {
  if (at == null) return "";
  const date = new Date(at * 1000);
  const clock = `${twoDigits(date.getHours())}:${twoDigits(date.getMinutes())}:${twoDigits(date.getSeconds())}`;
  const today = new Date().toDateString() === date.toDateString();
  return today ? clock : `${date.getFullYear()}-${twoDigits(date.getMonth() + 1)}-${twoDigits(date.getDate())} ${clock}`;
}

export function ago(at) {
  if (at == null) return "";
  const seconds = Math.max(0, Date.now() / 1000 - at);
  if (seconds < 60) return "just now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return seconds < 86400 * 60 ? `${Math.floor(seconds / 86400)} d ago` : moment(at).slice(0, 10);
}

export const plural = (n, word, many = word + "s") => `${tokens(n)} ${n === 1 ? word : many}`;

// A price in one sentence: what comes back, what the next request then weighs, what it costs.
export function priceText(price) {
  if (!price) return "";
  const room = price.fits ? `${tokens(price.total)} of ${tokens(price.limit)}` : `${tokens(price.total)}, over the limit of ${tokens(price.limit)}`;
  const once = price.known && price.dollars != null ? `${dollars(price.dollars)} once, then ${dollars(price.each_call)} more per call` : "price unknown";
  const cache = price.rewritten ? `; ${short(price.rewritten)} cached tokens are written again` : "";
  return `+${tokens(price.tokens)} tokens → next request ${room}; ${once}${cache}`;
}
