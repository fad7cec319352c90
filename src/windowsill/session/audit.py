"""Tells what happened to a session and why: folds, calls, audit, explanations."""

from __future__ import annotations

import msgspec

from windowsill import providers
from windowsill.compose.payload import build_body
from windowsill.compose.prompt_cache import Breakpoints
from windowsill.compose.render import Rendering, shows_refs
from windowsill.errors import DamagedError
from windowsill.history.entries import Entry, Kind, on_path, reader
from windowsill.history.folds import BlockSpan, Fold, MessageSpan, unpack_stand_ins
from windowsill.history.head import Call, call_meta, rewind_meta
from windowsill.history.view import fold_meta, marking_meta, message_meta, unfold_meta
from windowsill.journal.writer import JournalWriter
from windowsill.messages import Message, Tool, text_of
from windowsill.session.branches import CallRecord, Event, Explanation, FoldRecord, SpanRecord, removed_spans
from windowsill.session.checkpoints import label_told
from windowsill.session.state import event_of
from windowsill.state.changes import Put
from windowsill.state.tools import ToolDecision


def folds(ledger: JournalWriter) -> list[FoldRecord]:
    """The folds of the current branch, oldest first."""
    path = ledger.path(ledger.version)
    gone = removed_spans(ledger, path)
    return [
        _record(ledger, entry, fold_meta(entry.meta), gone.get(entry.seq, set()))
        for entry in ledger.walk(path, kinds=("fold",), bodies=True)
    ]


def _record(ledger: JournalWriter, entry: Entry, fold: Fold, gone: set[int]) -> FoldRecord:
    holders = unpack_stand_ins(entry.body or b"")
    spans = tuple(
        _span(ledger, number, span, holders[number], active=number not in gone)
        for number, span in enumerate(fold.spans)
    )
    return FoldRecord(
        id=entry.id,
        kind=fold.kind,
        strategy=fold.strategy,
        reason=fold.reason,
        at=entry.at,
        before=fold.before,
        after=fold.after,
        active=any(span.active for span in spans),
        spans=spans,
    )


def _span(
    ledger: JournalWriter, number: int, span: MessageSpan | BlockSpan, holder: Message | None, *, active: bool
) -> SpanRecord:
    first, last = (span.first, span.last) if isinstance(span, MessageSpan) else (span.message, span.message)
    return SpanRecord(
        number=number,
        first=ledger.entry(first).id,
        last=ledger.entry(last).id,
        messages=span.hides if isinstance(span, MessageSpan) else 1,
        saved=ledger.scale.tokens(span.saves),
        active=active,
        block=span.block if isinstance(span, BlockSpan) else None,
        shown=text_of(holder.blocks) if holder is not None else "",
    )


def calls(ledger: JournalWriter) -> list[CallRecord]:
    """The composed requests of the current branch, oldest first."""
    path = ledger.path(ledger.version)
    found = []
    for entry in ledger.walk(path, kinds=("call",)):
        call = call_meta(entry.meta)
        found.append(
            CallRecord(
                id=entry.id,
                at=entry.at,
                format=call.format,
                model=call.model,
                tokens=call.tokens,
                cached=call.cached,
                folds=call.folds,
            )
        )
    return found


def audit(ledger: JournalWriter) -> list[Event]:
    """Every change of what the model sees or of the state, and every checkpoint, on every branch, as it happened."""
    kinds: tuple[Kind, ...] = ("fold", "unfold", "mark", "rewind", "state", "label")
    entries = ledger.walk([(1, ledger.version)], kinds=kinds, bodies=True)
    return [event for entry in entries if (event := _event(entry)) is not None]


def _event(entry: Entry) -> Event | None:
    if entry.kind == "state":
        from windowsill.session.state import event_of  # noqa: PLC0415 - most sessions keep no state

        change = event_of(entry)
        if change is None:
            return None
        what = str(change)
    elif entry.kind == "fold":
        fold = fold_meta(entry.meta)
        what = f"{fold.kind} by {fold.strategy}: {fold.reason} ({fold.before:,} to {fold.after:,} tokens)"
    elif entry.kind == "unfold":
        undone = unfold_meta(entry.meta)
        what = f"unfolded {undone.fold_id}" + (f": {undone.reason}" if undone.reason else "")
    elif entry.kind == "mark":
        marking = marking_meta(entry.meta)
        signs = [f"+{mark}" for mark in marking.add] + [f"-{mark}" for mark in marking.remove]
        what = f"marked {marking.message_id}: {', '.join(signs)}"
    elif entry.kind == "label":
        what = label_told(entry)
    else:
        rewind = rewind_meta(entry.meta)
        what = f"went from entry {rewind.left} to entry {rewind.to}" + (f": {rewind.reason}" if rewind.reason else "")
    return Event(id=entry.id, at=entry.at, kind=entry.kind, what=what)


def explain(ledger: JournalWriter, message_id: str, call_id: str | None = None) -> Explanation:
    """Why a message is or is not in the window: of the current head, or of a past call."""
    message = ledger.find(message_id, "message")
    head = ledger.version
    view = ledger.view
    if call_id is not None:
        head = call_meta(ledger.find(call_id, "call").meta).at
        view = ledger.at(head).view
    path = ledger.path(head)
    if not on_path(path, message.seq):
        why = "it was added later" if message.seq > head else "it is on a branch that was left by a rewind"
        return Explanation(message=message_id, visible=False, why=why, call=call_id)
    covering = _covering(ledger, path, message.seq)
    item = view.cover(message.seq)
    if item is not None and not item.fold:
        return Explanation(
            message=message_id,
            visible=True,
            why=_why_visible(item.pinned, bool(item.cuts), message, view.task_seq()),
            folds=tuple(fold for fold in covering if item.cuts),
            call=call_id,
        )
    outer = covering[0]
    inner = f", inside {len(covering) - 1} earlier fold(s)" if len(covering) > 1 else ""
    why = f"hidden by {outer.kind} {outer.id} of {outer.strategy}: {outer.reason}{inner}"
    return Explanation(message=message_id, visible=False, why=why, folds=tuple(covering), call=call_id)


def _why_visible(pinned: bool, cut: bool, message: Entry, task: int | None) -> str:  # noqa: FBT001 - two facts of one item
    if cut:
        return "it is shown, with a part of it cut"
    if pinned:
        return "it is pinned"
    if message.seq == task:
        return "it is the task"
    return "no fold hides it"


def _covering(ledger: JournalWriter, path: list[tuple[int, int]], seq: int) -> list[FoldRecord]:
    """The folds that apply to a message, the outermost first."""
    gone = removed_spans(ledger, path)
    found = []
    for entry in ledger.walk(path, kinds=("fold",), bodies=True):
        fold = fold_meta(entry.meta)
        removed = gone.get(entry.seq, set())
        for number, span in enumerate(fold.spans):
            hit = span.first <= seq <= span.last if isinstance(span, MessageSpan) else span.message == seq
            if hit and number not in removed:
                found.append(_record(ledger, entry, fold, removed))
                break
    return found[::-1]


def request_of(ledger: JournalWriter, call: Call) -> bytes:
    """The body of the request that was composed then: same view, same parts, same bytes."""
    format = providers.get(call.format, call.demands)
    system, tools = parts_of(ledger, call)
    rest = _part(ledger, call, "rest")
    view = ledger.at(call.at).view
    return build_body(
        format,
        Rendering(format, call.demands, refs=shows_refs(tools)).render(view, call.prompt_hash),
        system=system,
        tools=tools,
        rest=msgspec.json.decode(rest, type=dict[str, msgspec.Raw]) if rest is not None else {},
        model=call.model,
        breakpoints=Breakpoints(**call.breakpoints),
    )


def parts_of(ledger: JournalWriter, call: Call) -> tuple[Message | None, tuple[Tool, ...]]:
    """The system prompt and the tools that a request had."""
    system, tools = _part(ledger, call, "system"), _part(ledger, call, "tools")
    return (
        msgspec.json.decode(system, type=Message) if system is not None else None,
        msgspec.json.decode(tools, type=tuple[Tool, ...]) if tools is not None else (),
    )


def _part(ledger: JournalWriter, call: Call, name: str) -> bytes | None:
    id = call.blobs.get(name)
    if id is None:
        return None
    data = ledger.store.blob(ledger.session, id)
    if data is None:
        raise DamagedError(f"the {name} of this request is missing from the store", remedy="restore a backup")
    return data


_decided = reader(ToolDecision)


def decisions(ledger: JournalWriter) -> list[ToolDecision]:
    """The decisions of the current branch, oldest first."""
    path = ledger.path(ledger.version)
    return [_decided(entry.meta) for entry in ledger.walk(path, kinds=("tools",))]


RUNS = "runtime.execution.tool_calls"


def run_key(message_id: str, call_id: str) -> str:
    """Under which the state notes the run of a call: models give the same call ids again and again."""
    return f"{message_id}/{call_id}"


def begun(ledger: JournalWriter, message_id: str) -> frozenset[str]:
    """The calls of a message that were begun or answered after it, on whatever branch."""
    message = ledger.find(message_id, "message")
    calls = message_meta(message.meta).calls
    later = [(message.seq + 1, ledger.version)]
    found = {id for entry in ledger.walk(later, kinds=("message",)) for id in message_meta(entry.meta).results}
    noted = set()
    for entry in ledger.walk(later, kinds=("state",), bodies=True):
        try:
            change = event_of(entry)
        except DamagedError:
            # What cannot be read may have noted any of them.
            return frozenset(calls)
        puts = (each for each in (change.changes if change is not None else ()) if isinstance(each, Put))
        noted |= {each.value.get("id") for each in puts if each.path == RUNS}
    return frozenset(id for id in calls if id in found or run_key(message_id, id) in noted)
