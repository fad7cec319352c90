// Branches, checkpoints and threads as a tree, with rewind, switch and restore; and what differs between two moments.
import { html, visible, tokens, short, moment, plural, ago } from "./text.js";
import { useState } from "./vendor/hooks.js";
import { api, canChange, change, session, useApi } from "./data.js";
import { Confirm, Empty, State, here, link } from "./parts.js";

const narrow = matchMedia("(max-width: 640px)");
const LANE = 22;

// A branch may end at a checkpoint, which then has the same id: what follows from it hangs on the checkpoint.
const parentOf = (tree, node) => tree.filter((other) => other !== node && other.id === node.parent).sort((a, b) => (a.kind === "end") - (b.kind === "end"))[0];

// Give each end of a branch a lane of its own: the current one stands leftmost.
function lanesOf(tree, parents) {
  const lane = new Map();
  const followed = new Set(parents.values());
  const ends = tree.filter((node) => !followed.has(node)).sort((a, b) => (b.current - a.current) || (b.seq - a.seq));
  let next = 0;
  for (const end of ends) {
    const mine = next;
    for (let node = end; node && !lane.has(node); node = parents.get(node)) {
      lane.set(node, mine);
      next = mine + 1;
    }
  }
  return { lane, count: next };
}

function Tree({ data, folds, act }) {
  const ROW = narrow.matches ? 76 : 44;
  // Folds stand on the line of the current branch, which has the first lane.
  const folded = folds.map((fold) => ({ id: fold.id, seq: fold.seq, kind: "fold", at: fold.at, current: fold.state !== "undone", fold }));
  const nodes = [...data.tree, ...folded].sort((a, b) => b.seq - a.seq || (b.kind === "end") - (a.kind === "end"));
  const parents = new Map(data.tree.map((node) => [node, node.parent == null ? undefined : parentOf(data.tree, node)]));
  const { lane, count } = lanesOf(data.tree, parents);
  const row = new Map(nodes.map((node, n) => [node, n]));
  const x = (node) => 14 + LANE * (lane.get(node) || 0);
  const y = (node) => ROW * row.get(node) + ROW / 2;
  const keyOf = (node) => node.kind + node.id;
  const branches = new Map(data.branches.map((branch) => [branch.id, branch]));
  const checkpoints = new Map(data.checkpoints.map((one) => [one.id, one]));
  return html`<div class="tree" style=${{ "--row": `${ROW}px` }}><svg width=${20 + LANE * count} height=${ROW * nodes.length} aria-hidden="true">
      ${nodes.filter((node) => parents.get(node)).map((node) => {
        const [x1, y1, x2, y2] = [x(node), y(node), x(parents.get(node)), y(parents.get(node))];
        const bend = x1 === x2 ? `M${x1} ${y1}V${y2}` : `M${x1} ${y1}V${y2 - 18}Q${x1} ${y2} ${x2} ${y2}`;
        return html`<path key=${`p${keyOf(node)}`} d=${bend} class=${`edge ${node.current ? "current" : ""}`} />`;
      })}
      ${nodes.map((node) => node.kind === "fold"
        ? html`<rect key=${keyOf(node)} x=${x(node) - 4} y=${y(node) - 4} width="8" height="8" class=${`dot fold ${node.current ? "current" : ""}`} />`
        : node.kind === "checkpoint"
        ? html`<path key=${keyOf(node)} d=${`M${x(node)} ${y(node) - 7}l7 7l-7 7l-7-7z`} class=${`dot ${node.current ? "current" : ""}`} />`
        : html`<circle key=${keyOf(node)} cx=${x(node)} cy=${y(node)} r=${node.kind === "end" ? 6 : 4.5} class=${`dot ${node.kind} ${node.current ? "current" : ""}`} />`)}
    </svg>
    <ol class="tree-rows">${nodes.map((node) => {
      const branch = node.kind === "end" ? branches.get(node.id) : undefined;
      const checkpoint = node.kind === "checkpoint" ? checkpoints.get(node.id) : undefined;
      return html`<li key=${keyOf(node)} class=${node.current ? "current" : "left"}><span class="tree-label"><span class="kind">${node.kind === "end" ? (node.current ? "now" : "branch") : node.kind}</span> <span class="one-line">${visible(checkpoint ? checkpoint.name : node.fold ? node.fold.reason : node.label === "now" || node.label === "start" ? "" : node.label)}</span>${node.fold ? html`<span class="faint">${plural(node.fold.messages, "message")}, ${short(node.fold.saved)} tokens saved${node.fold.state === "applies" ? "" : `, ${node.fold.state === "inside" ? "inside a later fold" : node.fold.state}`}</span>` : ""}
          ${branch ? html`<span class="faint">${plural(branch.entries, "entry", "entries")}${branch.reason && branch.reason !== node.label ? html`, ${visible(branch.reason)}` : ""}</span>` : ""}${checkpoint ? html`<span class="faint">${short(checkpoint.tokens)} tokens${checkpoint.phase ? `, ${checkpoint.phase}` : ""}${checkpoint.files ? ", with files" : ""}</span>` : ""}</span>
        <span class="faint when">${moment(node.at)}</span>
        <span class="buttons">${node.kind !== "start" && !(branch && branch.current) ? html`<a class="quiet button" href=${here("diff", node.id, "now")}>Diff to now</a>` : ""}
          ${node.fold ? html`<a class="quiet button" href=${here("window", node.id)}>Show it</a>` : ""}
          ${canChange() && checkpoint ? html`<button onClick=${() => act({ kind: "restore", checkpoint })}>Restore</button>` : ""}
          ${canChange() && branch && !branch.current ? html`<button onClick=${() => act({ kind: "switch", branch })}>Switch to it</button>` : ""}
          ${canChange() && node.kind === "fork" ? html`<button onClick=${() => act({ kind: "rewind", node })}>Rewind to here</button>` : ""}</span></li>`;
    })}</ol></div>`;
}

const goBack = (answer) => answer.left && { label: "Go back", run: () => change({ do: "switch", to: answer.left }) };

function Act({ what, done }) {
  const [scope, setScope] = useState("conversation");
  if (what.kind === "restore") {
    const files = !!what.checkpoint.files;
    return html`<${Confirm} title=${`Restore “${what.checkpoint.name}”?`} verb="Restore" onNo=${done} onYes=${() => change({ do: "restore", checkpoint: what.checkpoint.id, what: scope }, goBack)}>
      <p>The session goes on from this checkpoint. What came after it stays as a branch.</p>
      ${files && html`<fieldset><legend>What is restored</legend>${["conversation", "files", "both"].map((one) => html`<label key=${one}><input type="radio" name="scope" value=${one} checked=${scope === one} onChange=${() => setScope(one)} /> ${one}</label>`)}</fieldset>`}<//>`;
  }
  if (what.kind === "switch") {
    return html`<${Confirm} title="Switch to this branch?" verb="Switch" onNo=${done} onYes=${() => change({ do: "switch", to: what.branch.id }, goBack)}><p>The session goes on from the end of <code>${what.branch.id}</code>. The branch you leave stays as it is.</p><//>`;
  }
  return html`<${Confirm} title="Rewind to this message?" verb="Rewind" onNo=${done} onYes=${() => change({ do: "rewind", message: what.node.id, before: false }, goBack)}><p>The session goes on from <code>${what.node.id}</code>. What came after it stays as a branch, and you can switch back at any time.</p><//>`;
}

function Threads({ threads }) {
  if (!threads || threads.length < 2) return null;
  return html`<section class="card"><h2>Threads</h2><ul class="threads">${threads.map((one) => html`<li key=${one.id} class=${`thread-${one.relation}`}><a href=${link("s", one.id, "window")}>${visible(one.id)}</a> <span class="faint">${one.relation === "self" ? "this session" : one.relation === "parent" ? "started this one" : "started by this one"}, ${visible(one.model)}, ${plural(one.entries, "entry", "entries")}, ${ago(one.updated)}</span></li>`)}</ul></section>`;
}

export function HistoryView() {
  const answer = useApi(api("history", { session: session.value }));
  const folds = useApi(api("folds", { session: session.value }));
  const [what, setWhat] = useState(null);
  const [name, setName] = useState("");
  const save = async (event) => {
    event.preventDefault();
    if (await change({ do: "checkpoint", name: name.trim() || "from the inspector" })) setName("");
  };
  return html`<div class="page"><${State} of=${answer} what="the branches">${(data) => html`<h1>Branches, checkpoints and folds</h1>
    <p class="faint">Nothing is ever taken away: a rewind leaves a branch, and every branch can be entered again.</p>
    ${canChange() && html`<form class="search" onSubmit=${save}><label class="sr" for="checkpoint">Name of a new checkpoint</label><input id="checkpoint" value=${name} placeholder="Name this moment" onInput=${(event) => setName(event.target.value)} /><button>Save a checkpoint</button></form>`}
    <section class="card">${data.tree.length > 1 ? html`<${Tree} data=${data} folds=${folds.data ? folds.data.folds : []} act=${setWhat} />` : html`<${Empty} title="One straight line">No checkpoint, no rewind yet.<//>`}</section>
    <${Threads} threads=${data.threads} />
    <section class="card"><h2>Compare two moments</h2><${Choose} data=${data} /></section>
    ${what && html`<${Act} what=${what} done=${() => setWhat(null)} />`}`}<//></div>`;
}

function Choose({ data, from = "", to = "now" }) {
  const [left, setLeft] = useState(from || (data.checkpoints[0] ? data.checkpoints[0].id : ""));
  const [right, setRight] = useState(to);
  const options = html`<datalist id="moments"><option value="now">now</option>${data.checkpoints.map((one) => html`<option key=${one.id} value=${one.id}>${one.name}</option>`)}${data.branches.map((one) => html`<option key=${one.id} value=${one.id}>end of a branch, ${one.entries} entries</option>`)}</datalist>`;
  const go = (event) => {
    event.preventDefault();
    if (left.trim()) location.hash = here("diff", left.trim(), right.trim() || "now");
  };
  return html`<form class="search" onSubmit=${go}>${options}<label for="from">from</label><input id="from" list="moments" value=${left} placeholder="m14, c20, a checkpoint" onInput=${(event) => setLeft(event.target.value)} /><label for="to">to</label><input id="to" list="moments" value=${right} onInput=${(event) => setRight(event.target.value)} /><button class="primary">Compare</button></form>`;
}

function DiffList({ title, kind, sign, items }) {
  if (!items.length) return null;
  return html`<section class="card"><h2>${title} <span class="faint">${tokens(items.length)}</span></h2><ul class=${`diff diff-${kind}`}>${items.map((one) => html`<li key=${one.id}><span class="sign" aria-hidden="true">${sign}</span><span class="role">${one.role}</span><a class="id" href=${here("window", one.id)}>${one.id}</a><span class="one-line">${visible(one.text)}</span><span class="faint">${visible(one.why)}</span><span class="num">${short(one.tokens)}</span></li>`)}</ul></section>`;
}

export function DiffView({ from, to }) {
  const answer = useApi(api("diff", { session: session.value, from, to }));
  const history = useApi(api("history", { session: session.value }));
  return html`<div class="page"><h1>From ${from} to ${to}</h1>${history.data && html`<${Choose} key=${from + to} data=${history.data} from=${from} to=${to} />`}
    <${State} of=${answer} what="the difference">${(data) => html`<p><b>${tokens(data.from.tokens)}</b> tokens in ${plural(data.from.items, "item")} became <b>${tokens(data.to.tokens)}</b> in ${plural(data.to.items, "item")}; ${plural(data.same, "item")} stayed as they were.${data.cut ? " Only the first 500 of each list are shown." : ""}</p>
      <${DiffList} title="Gone from the window" kind="removed" sign="−" items=${data.removed} /><${DiffList} title="Changed" kind="changed" sign="±" items=${data.changed} /><${DiffList} title="New in the window" kind="added" sign="+" items=${data.added} />
      ${!data.removed.length && !data.added.length && !data.changed.length && html`<${Empty} title="No difference">The model would see the same at both moments.<//>`}`}<//></div>`;
}
