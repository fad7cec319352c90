// Over time: tokens of each call split into cached, written and new; folds and compactions marked; cost summed.
import { html, tokens, short, dollars, percent, moment, plural, visible } from "./text.js";
import { useEffect, useRef, useState } from "./vendor/hooks.js";
import { api, get, isExport, renewed, session, version } from "./data.js";
import { Badge, Empty, Failure, Loading, here } from "./parts.js";
import uPlot from "./vendor/uplot.js";

const PAGES_AT_ONCE = 20; // of 500 calls; older ones come by a button
const ROWS = 60;

// All calls of a session: the newest page again at each version, older pages once.
function useCalls() {
  const id = session.value;
  const at = version.value;
  const again = renewed.value;
  const [state, setState] = useState({ id, calls: [], events: [], head: null, older: null, error: null });
  const held = useRef(state);
  const keep = (next) => {
    held.current = next;
    setState(next);
  };
  useEffect(() => {
    let alive = true;
    const merge = (left, right) => {
      const known = new Map([...left, ...right].map((one) => [`${one.id}:${one.seq}`, one]));
      return [...known.values()].sort((a, b) => a.seq - b.seq);
    };
    const load = async () => {
      const base = held.current.id === id ? held.current : { id, calls: [], events: [], head: null, older: null, error: null };
      try {
        const head = await get(api("calls", { session: id }));
        if (!alive) return;
        const met = base.calls.length && head.calls.length && base.calls[base.calls.length - 1].seq >= head.calls[0].seq;
        let next = {
          id, head, error: null,
          calls: met ? merge(base.calls, head.calls) : head.calls,
          events: met ? merge(base.events, head.events) : head.events,
          older: met ? base.older : head.older,
        };
        keep(next);
        for (let n = 1; n < PAGES_AT_ONCE && next.older && !met; n++) {
          const page = await get(next.older);
          if (!alive) return;
          next = { ...next, calls: merge(page.calls, next.calls), events: merge(page.events, next.events), older: page.older };
          keep(next);
        }
        if (!head.totals.complete && !isExport) setTimeout(() => alive && load(), 1000);
      } catch (error) {
        if (alive) keep({ ...base, error });
      }
    };
    load();
    return () => {
      alive = false;
    };
  }, [id, at, again]);
  const more = async () => {
    const page = await get(held.current.older);
    keep({ ...held.current, calls: [...page.calls, ...held.current.calls], events: [...page.events, ...held.current.events], older: page.older });
  };
  return { ...state, more };
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// A pattern beside the colour: the three shares are told apart without it.
function stripes(context, back, front, kind) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const brush = tile.getContext("2d");
  brush.fillStyle = back;
  brush.fillRect(0, 0, 8, 8);
  brush.strokeStyle = brush.fillStyle = front;
  brush.lineWidth = 1.6;
  if (kind === "lines") {
    brush.beginPath();
    for (const x of [-4, 4, 12]) {
      brush.moveTo(x - 4, 12);
      brush.lineTo(x + 8, 0);
    }
    brush.stroke();
  } else {
    brush.fillRect(1, 1, 2, 2);
    brush.fillRect(5, 5, 2, 2);
  }
  return context.createPattern(tile, "repeat");
}

function Chart({ calls, first, events, limit, theme, onPoint, onOpen }) {
  const box = useRef(null);
  const plot = useRef(null);
  const held = useRef({});
  let sum = 0;
  const cost = calls.map((call) => (sum += call.cost || 0));
  const placed = events.filter((event) => event.kind !== "checkpoint").map((event) => {
    let low = 0;
    let high = calls.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (calls[middle].seq > event.seq) high = middle;
      else low = middle + 1;
    }
    return { ...event, x: Math.max(0, low - 0.5) };
  });
  const anyCost = sum > 0;
  held.current = { calls, first, placed, limit, onPoint, onOpen };
  const data = [
    calls.map((_, n) => n),
    calls.map((call) => call.tokens),
    calls.map((call) => call.cached + call.written),
    calls.map((call) => call.cached),
    anyCost ? cost : cost.map(() => null),
  ];
  useEffect(() => {
    const ink = colour("--ink-2");
    const line = colour("--line");
    const draw = (u) => {
      const { context, left, top, width, height } = { context: u.ctx, ...u.bbox };
      const ratio = devicePixelRatio || 1;
      context.save();
      context.beginPath();
      context.rect(left, top, width, height);
      context.clip();
      for (const event of held.current.placed) {
        const x = Math.round(u.valToPos(event.x, "x", true));
        context.strokeStyle = context.fillStyle = event.kind === "compaction" ? colour("--c-task") : colour("--ink");
        context.lineWidth = ratio;
        context.setLineDash(event.kind === "fold" ? [] : [4 * ratio, 3 * ratio]);
        context.globalAlpha = 0.55;
        context.beginPath();
        context.moveTo(x, top);
        context.lineTo(x, top + height);
        context.stroke();
        context.globalAlpha = 1;
        context.beginPath();
        const r = 4.5 * ratio;
        if (event.kind === "compaction") context.rect(x - r, top + 2, 2 * r, 2 * r);
        else if (event.kind === "fold") {
          context.moveTo(x - r, top + 2);
          context.lineTo(x + r, top + 2);
          context.lineTo(x, top + 2 + 1.7 * r);
        } else context.arc(x, top + 2 + r, r * 0.8, 0, 7);
        context.fill();
      }
      if (held.current.limit) {
        const y = Math.round(u.valToPos(held.current.limit, "y", true));
        context.setLineDash([6 * ratio, 4 * ratio]);
        context.strokeStyle = colour("--c-task");
        context.lineWidth = 1.5 * ratio;
        context.beginPath();
        context.moveTo(left, y);
        context.lineTo(left + width, y);
        context.stroke();
      }
      context.restore();
    };
    const paths = calls.length > 400 ? uPlot.paths.stepped({ align: 1 }) : uPlot.paths.bars({ size: [0.86, 60], align: 0 });
    const font = "12px system-ui, sans-serif";
    const options = {
      width: box.current.clientWidth || 600,
      height: Math.max(220, Math.min(460, innerHeight * 0.4)),
      legend: { show: false },
      cursor: { y: false, points: { show: false } },
      scales: {
        x: { time: false, range: (u, min, max) => [min - 0.7, max + 0.7] },
        y: { range: (u, min, max) => [0, Math.max(max, held.current.limit && max > held.current.limit * 0.55 ? held.current.limit : 0) * 1.08 || 1] },
        money: { range: (u, min, max) => [0, (max || 1) * 1.15] },
      },
      axes: [
        { stroke: ink, font, grid: { show: false }, ticks: { stroke: line }, label: "call", labelFont: font, labelSize: 18, size: 32, values: (u, values) => values.map((value) => (Number.isInteger(value) && value >= 0 ? held.current.first + value : "")) },
        { stroke: ink, font, grid: { stroke: line, width: 1 }, ticks: { show: false }, size: 54, values: (u, values) => values.map((value) => short(value)) },
        ...(anyCost ? [{ scale: "money", side: 1, stroke: ink, font, grid: { show: false }, ticks: { show: false }, size: 56, values: (u, values) => values.map((value) => dollars(value)) }] : []),
      ],
      series: [
        {},
        { label: "new", scale: "y", width: 0, fill: (u) => stripes(u.ctx, colour("--c-new"), colour("--c-new-2"), "dots"), paths, points: { show: false } },
        { label: "written", scale: "y", width: 0, fill: (u) => stripes(u.ctx, colour("--c-written"), colour("--c-written-2"), "lines"), paths, points: { show: false } },
        { label: "cached", scale: "y", width: 0, fill: () => colour("--c-cached"), paths, points: { show: false } },
        { label: "cost", scale: "money", stroke: colour("--ink"), width: 1.6, dash: [2, 3], points: { show: false } },
      ],
      hooks: {
        draw: [draw],
        setCursor: [(u) => held.current.onPoint(u.cursor.idx)],
      },
    };
    const chart = new uPlot(options, data, box.current);
    plot.current = chart;
    const pressed = () => chart.cursor.idx != null && held.current.onOpen(chart.cursor.idx);
    chart.over.addEventListener("click", pressed);
    const resized = new ResizeObserver(() => {
      const width = box.current ? box.current.clientWidth : 0; // the view may be gone already
      if (width && width !== chart.width) chart.setSize({ width, height: options.height });
    });
    resized.observe(box.current);
    return () => {
      resized.disconnect();
      chart.destroy();
      plot.current = null;
    };
  }, [theme, anyCost, calls.length > 400]);
  useEffect(() => {
    if (plot.current) plot.current.setData(data);
  });
  return html`<div class="chart" ref=${box}></div>`;
}

function Point({ call, number }) {
  if (!call) return html`<p class="point faint">Point at a call for its figures, click to open it.</p>`;
  return html`<p class="point"><b>call ${tokens(number)}</b> ${call.id || "an answer"} · ${moment(call.at)} · ${tokens(call.tokens)} tokens: ${tokens(call.cached)} cached, ${tokens(call.written)} written, ${tokens(call.new)} new${call.output != null ? ` · ${tokens(call.output)} out` : ""}${call.cost != null ? ` · ${dollars(call.cost)}` : ""}${call.reported ? "" : " · our own count"}</p>`;
}

const SIGNS = { fold: "▼", compaction: "■", unfold: "●", rewind: "●", checkpoint: "◆" };

export function TimeView({ theme }) {
  const state = useCalls();
  const [point, setPoint] = useState(null);
  const [rows, setRows] = useState(ROWS);
  const { calls, events, head } = state;
  if (state.error && !head) return html`<${Failure} error=${state.error} />`;
  if (!head) return html`<${Loading} what="the calls" />`;
  if (!calls.length) return html`<${Empty} title="No calls yet">Each request to a model appears here: how large it was, what of it the provider had cached, what it cost.<//>`;
  const total = head.totals;
  // The number of the oldest call that is loaded: older ones count too.
  const first = total.complete ? total.calls - calls.length + 1 : 1;
  const shown = [...calls.map((call, n) => ({ ...call, number: first + n })), ...events.map((event) => ({ ...event, isEvent: true }))].sort((a, b) => b.seq - a.seq).slice(0, rows);
  return html`<div class="page time-view"><h1 class="sr">Over time</h1>
    <dl class="figures">
      <div><dt>spent</dt><dd><b>${total.known ? dollars(total.cost) : "price unknown"}</b> <span>in ${plural(total.calls, "call")}${total.complete ? "" : ", still counting"}</span></dd></div>
      <div><dt>read from the cache</dt><dd><b>${percent(total.cache_share)}</b> <span>of ${short(total.input)} tokens sent</span></dd></div>
      <div><dt>written to the cache</dt><dd><b>${short(total.written)}</b> <span>tokens, ${short(total.output)} answered</span></dd></div>
      <div><dt>folds</dt><dd><b>${tokens(total.folds)}</b> <span>${total.compactions ? `and ${plural(total.compactions, "compaction")} by the agent itself` : "none by the agent itself"}</span></dd></div>
    </dl>
    <section class="card" aria-label="Tokens of each call">
      <ul class="legend inline"><li><span class="swatch fill part-cached"></span>cached</li><li><span class="swatch fill part-written"></span>written</li><li><span class="swatch fill part-new"></span>new</li><li><span class="swatch dotted"></span>cost so far</li><li><span class="sign">▼</span>fold</li><li><span class="sign warn">■</span>compaction by the agent</li><li><span class="sign">●</span>unfold, rewind</li><li><span class="swatch dashed"></span>limit</li></ul>
      <${Chart} calls=${calls} first=${first} events=${events} limit=${head.limit} theme=${theme} onPoint=${setPoint} onOpen=${(n) => calls[n].id && (location.hash = here("call", calls[n].id))} />
      <${Point} call=${point == null ? null : calls[point]} number=${first + point} />
      ${state.older && html`<button onClick=${state.more}>Load older calls</button>`}
    </section>
    <section class="card"><h2>Calls and folds, newest first</h2><div class="scroll-x"><table><thead><tr><th class="r">call</th><th>what</th><th>when</th><th class="r">tokens</th><th class="r">cached</th><th class="r">written</th><th class="r">new</th><th class="r">out</th><th class="r">cost</th></tr></thead>
      <tbody>${shown.map((one) => one.isEvent
        ? html`<tr key=${`e${one.id}${one.kind}`} class="event"><td></td><td><span class=${`sign ${one.kind === "compaction" ? "warn" : ""}`} aria-hidden="true">${SIGNS[one.kind]}</span> ${one.kind === "fold" || one.kind === "compaction" ? html`<a href=${here("window", one.id)}>${one.kind}</a>` : one.kind}</td><td>${moment(one.at)}</td><td colspan="6">${visible(one.text)}${one.saved ? html` <span class="faint">saved ${short(one.saved)}</span>` : ""}</td></tr>`
        : html`<tr key=${`c${one.seq}`} class=${one.left ? "left" : ""}><td class="r">${tokens(one.number)}</td><td>${one.id ? html`<a href=${here("call", one.id)}>${one.id}</a>` : "answer"}${one.left ? html` <${Badge} kind="state-left">left branch<//>` : ""}</td><td>${moment(one.at)}</td><td class="r">${tokens(one.tokens)}</td><td class="r">${tokens(one.cached)}</td><td class="r">${tokens(one.written)}</td><td class="r">${tokens(one.new)}</td><td class="r">${one.output == null ? "" : tokens(one.output)}</td><td class="r">${one.cost == null ? "" : dollars(one.cost)}</td></tr>`)}</tbody></table></div>
      ${rows < calls.length + events.length && html`<button onClick=${() => setRows(rows * 3)}>Show more</button>`}
    </section></div>`;
}
