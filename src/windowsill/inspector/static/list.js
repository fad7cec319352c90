// A list of any length of which only what is seen is in the document, and the pages of data behind it.
import { html } from "./text.js";
import { useEffect, useLayoutEffect, useRef, useState } from "./vendor/hooks.js";
import { get, renewed } from "./data.js";

const OVERSCAN = 400; // pixels above and below that are drawn as well, so that a quick scroll shows no gap

// Offsets of rows with heights that are guessed until they are measured.
class Heights {
  constructor(guess) {
    this.guess = guess;
    this.count = 0;
    this.height = new Float32Array(0);
    this.top = new Float64Array(1);
    this.stale = 0; // tops beyond this index are not computed
  }
  resize(count) {
    if (count > this.height.length) {
      const height = new Float32Array(Math.ceil(count * 1.5));
      height.set(this.height);
      height.fill(this.guess, this.count);
      this.height = height;
      const top = new Float64Array(height.length + 1);
      top.set(this.top);
      this.top = top;
    } else if (count > this.count) this.height.fill(this.guess, this.count, count);
    this.stale = Math.min(this.stale, this.count, count);
    this.count = count;
  }
  set(index, height) {
    if (index >= this.count || this.height[index] === height) return 0;
    const more = height - this.height[index];
    this.height[index] = height;
    this.stale = Math.min(this.stale, index);
    return more;
  }
  topOf(index) {
    for (let n = this.stale; n < this.count; n++) this.top[n + 1] = this.top[n] + this.height[n];
    this.stale = this.count;
    return this.top[Math.min(index, this.count)];
  }
  at(pixel) {
    this.topOf(0);
    let low = 0;
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.top[middle + 1] > pixel) high = middle;
      else low = middle + 1;
    }
    return Math.min(low, Math.max(0, this.count - 1));
  }
}

export function VirtualList({ count, guess = 72, render, keyOf, label, control, onRange, follow = false, selected = null }) {
  const pane = useRef(null);
  const heights = useRef(null);
  if (!heights.current) heights.current = new Heights(guess);
  const table = heights.current;
  table.resize(count);
  const [, redraw] = useState(0);
  const view = useRef({ top: 0, height: 900, end: follow, target: null, set: 0 });
  const now = view.current;

  const first = Math.max(0, table.at(now.top - OVERSCAN));
  const last = count ? table.at(now.top + now.height + OVERSCAN) : -1;

  // Rows that turn out taller or lower than guessed must not move what is being read.
  const measure = () => {
    const element = pane.current;
    if (!element) return;
    const anchor = table.at(now.top);
    let moved = 0;
    let changed = false;
    for (const row of element.querySelectorAll(":scope > [data-index]")) {
      const index = Number(row.dataset.index);
      const more = table.set(index, row.offsetHeight);
      if (more) changed = true;
      if (index < anchor) moved += more;
    }
    const from = element.scrollTop;
    if (now.target) element.scrollTop = place(now.target.index, now.target.align);
    else if (now.end) element.scrollTop = element.scrollHeight;
    else if (moved) element.scrollTop += moved;
    now.set = element.scrollTop;
    if (element.scrollTop !== from) now.top = element.scrollTop;
    if (changed || element.scrollTop !== from) redraw((n) => n + 1);
  };
  const place = (index, align) => {
    const top = table.topOf(index);
    if (align === "center") return Math.max(0, top - now.height / 3);
    const bottom = table.topOf(index + 1);
    const at = pane.current.scrollTop;
    if (top < at + 8) return Math.max(0, top - 8);
    return bottom > at + now.height - 8 ? Math.min(top - 8, bottom - now.height + 8) : at;
  };

  useLayoutEffect(measure);
  useEffect(() => {
    if (onRange && count) onRange(first, last);
  });
  useLayoutEffect(() => {
    const element = pane.current;
    const look = () => {
      const height = element.clientHeight;
      if (height === now.height && element.scrollTop === now.top) return;
      now.height = height;
      now.top = element.scrollTop;
      redraw((n) => n + 1);
    };
    const scrolled = () => {
      // Somebody scrolled on: what was to be shown has been seen.
      if (now.target && Math.abs(element.scrollTop - now.set) > 2) now.target = null;
      now.end = follow && element.scrollTop + element.clientHeight >= element.scrollHeight - 24;
      look();
    };
    const touched = () => {
      now.target = null;
    };
    const resized = new ResizeObserver(() => {
      look();
      measure();
    });
    resized.observe(element);
    element.addEventListener("scroll", scrolled, { passive: true });
    for (const name of ["wheel", "touchmove", "pointerdown"]) element.addEventListener(name, touched, { passive: true });
    look();
    return () => {
      resized.disconnect();
      element.removeEventListener("scroll", scrolled);
      for (const name of ["wheel", "touchmove", "pointerdown"]) element.removeEventListener(name, touched);
    };
  }, []);
  if (control) {
    control.reveal = (index, align = "near") => {
      now.target = { index, align };
      now.end = false;
      pane.current.scrollTop = place(index, align);
      now.top = now.set = pane.current.scrollTop;
      redraw((n) => n + 1);
    };
    control.toEnd = () => {
      now.target = null;
      now.end = true;
      redraw((n) => n + 1);
    };
    control.first = () => table.at(now.top + 8);
  }

  const rows = [];
  for (let index = first; index <= last; index++) {
    rows.push(html`<div key=${keyOf(index)} data-index=${index} class="row" role="article" aria-posinset=${index + 1}
      aria-setsize=${count} aria-current=${selected === index ? "true" : null}>${render(index)}</div>`);
  }
  return html`<div class="pane" role="feed" aria-label=${label} ref=${pane} tabindex="0">
    <div key="above" style=${{ height: `${table.topOf(first)}px` }}></div>
    ${rows}
    <div key="below" style=${{ height: `${Math.max(0, table.topOf(count) - table.topOf(last + 1))}px` }}></div>
  </div>`;
}

const KEPT_PAGES = 60;

// Pages of a long list, fetched when they are seen. A new version leaves the old pages in place until newer ones arrive.
export function usePages(urlOf, size, version, pick) {
  const held = useRef({ pages: new Map(), wanted: [0, 0], name: "" });
  const [, redraw] = useState(0);
  const store = held.current;
  const name = urlOf(0);
  if (store.name !== name) Object.assign(store, { pages: new Map(), name });

  const load = (page) => {
    const known = store.pages.get(page);
    if (known && (known.loading || (known.version === version && known.again === renewed.peek()))) return;
    const entry = known || { items: null, error: null };
    Object.assign(entry, { loading: true, version, again: renewed.peek() });
    store.pages.delete(page); // the map's order is that of use
    store.pages.set(page, entry);
    const mine = store.name;
    get(urlOf(page)).then(
      (answer) => Object.assign(entry, { items: pick(answer), error: null }),
      (error) => Object.assign(entry, { error }),
    ).then(() => {
      entry.loading = false;
      if (store.name !== mine) return;
      for (const old of store.pages.keys()) {
        if (store.pages.size <= KEPT_PAGES) break;
        if (old < store.wanted[0] || old > store.wanted[1]) store.pages.delete(old);
      }
      redraw((n) => n + 1);
    });
  };
  const seen = (first, last) => {
    store.wanted = [Math.floor(first / size), Math.floor(last / size)];
    for (let page = store.wanted[0]; page <= store.wanted[1]; page++) load(page);
  };
  const again = renewed.value;
  useEffect(() => {
    for (let page = store.wanted[0]; page <= store.wanted[1]; page++) load(page);
  }, [version, again, name]);

  const entryOf = (index) => store.pages.get(Math.floor(index / size));
  return {
    seen,
    at: (index) => {
      const entry = entryOf(index);
      return entry && entry.items ? entry.items[index % size] : undefined;
    },
    errorAt: (index) => {
      const entry = entryOf(index);
      return entry && !entry.items ? entry.error : null;
    },
  };
}
