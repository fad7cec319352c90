"""Report what happened to a session and why: folds, calls, tools, changes; and rebuild past requests."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from windowsill import providers
from windowsill.compose.composer import Composer
from windowsill.compose.composition import Composition, composition_of, weigh_parts
from windowsill.compose.payload import build_body, output_room
from windowsill.compose.render import Breakpoints, Rendered, Renderer, own_tools
from windowsill.errors import DamagedError, WindowsillError
from windowsill.history.entries import Entry, Kind, Range, on_path, reader
from windowsill.history.folds import BlockSpan, Fold, MessageSpan, ends, unpack_stand_ins
from windowsill.history.head import MANAGED, Call, call_meta, rewind_meta
from windowsill.history.view import fold_meta, marking_meta, message_meta, unfold_meta
from windowsill.journal.reader import message_of
from windowsill.journal.writer import JournalWriter
from windowsill.messages import Message, Tool, ToolUse, text_of
from windowsill.session.branches import removed_spans
from windowsill.session.checkpoints import describe_label
from windowsill.store import Store
from windowsill.text import shorten
from windowsill.tokens import Weight

if TYPE_CHECKING:
    from windowsill.state.tools import ToolDecision


# ruff: noqa: PLC0415 - most sessions keep no state

CHANGES: tuple[Kind, ...] = ("fold", "unfold", "mark", "rewind", "state", "label")
"""The entries that the audit lists."""

RUNS = "runtime.execution.tool_calls"
"""The path under which the state notes the runs of calls."""


class SpanRecord(msgspec.Struct, frozen=True):
    """One span of a fold: which messages it hides, or which block of a message it replaces."""

    number: int
    first: str
    last: str
    messages: int
    """The number of messages it touches, those inside inner folds included."""
    saved: int
    active: bool
    block: int | None = None
    shown: str = ""
    """The text in its place."""


class FoldRecord(msgspec.Struct, frozen=True):
    """A fold: what was hidden, by which strategy, why, and what it saved."""

    id: str
    kind: str
    strategy: str
    reason: str
    at: float
    before: int
    after: int
    active: bool
    """Some of it still applies on the current branch."""
    spans: tuple[SpanRecord, ...] = ()
    inside: str = ""
    """The later fold that hides what this one shows; empty while the model sees it."""

    @property
    def saved(self) -> int:
        """Tokens it took out of the view."""
        return self.before - self.after


class CallRecord(msgspec.Struct, frozen=True):
    """A request that was composed."""

    id: str
    at: float
    format: str
    model: str | None
    tokens: int
    cached: int
    folds: tuple[str, ...]


class Explanation(msgspec.Struct, frozen=True):
    """The reason why a message is, or is not, in the window."""

    message: str
    visible: bool
    why: str
    folds: tuple[FoldRecord, ...] = ()
    """The folds that hide or cut it, the outermost first."""
    call: str | None = None
    """The model call this is about; `None` for the window as it is now."""


class Event(msgspec.Struct, frozen=True):
    """One line of the audit: something that changed what the model sees."""

    id: str
    at: float
    kind: str
    what: str
    data: dict[str, Any] = {}


def folds(journal: JournalWriter) -> list[FoldRecord]:
    """List the folds of the current branch, oldest first."""
    gone = removed_spans(journal, journal.path(journal.version))
    return [
        _fold_record(journal, entry, fold_meta(entry.meta), gone.get(entry.seq, set()))
        for entry in journal.branch("fold", bodies=True)
    ]


def span_records(
    journal: JournalWriter, entry: Entry, fold: Fold, gone: set[int], wanted: slice = slice(None)
) -> tuple[SpanRecord, ...]:
    """Describe the spans of a fold, whose entry was read with its body; `gone` are those that were undone."""
    stand_ins = unpack_stand_ins(entry.body or b"")
    return tuple(
        SpanRecord(
            number=number,
            first=journal.entry(ends(span)[0]).id,
            last=journal.entry(ends(span)[1]).id,
            messages=span.hides if isinstance(span, MessageSpan) else 1,
            saved=journal.scale.tokens(span.saves),
            active=number not in gone,
            block=span.block if isinstance(span, BlockSpan) else None,
            shown=text_of(stand_in.blocks) if stand_in is not None else "",
        )
        for number, (span, stand_in) in list(enumerate(zip(fold.spans, stand_ins, strict=True)))[wanted]
    )


def _fold_record(journal: JournalWriter, entry: Entry, fold: Fold, gone: set[int]) -> FoldRecord:
    spans = span_records(journal, entry, fold, gone)
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
        inside=outer_fold(journal, entry, fold, gone),
    )


def outer_fold(journal: JournalWriter, entry: Entry, fold: Fold, gone: set[int]) -> str:
    """Return the fold in whose place the current view shows all that is left of another; else nothing."""
    outer = ""
    for number, span in enumerate(fold.spans):
        cover = journal.view.cover(ends(span)[0]) if number not in gone else None
        if cover is not None and cover.fold in (0, entry.seq):
            return ""
        if cover is not None:
            outer = cover.id.partition(":")[0]
    return outer


def calls(journal: JournalWriter) -> list[CallRecord]:
    """List the composed requests of the current branch, oldest first."""
    return [
        CallRecord(entry.id, entry.at, call.format, call.model, call.tokens, call.cached, call.folds)
        for entry in journal.branch("call")
        for call in [call_meta(entry.meta)]
    ]


def audit(journal: JournalWriter) -> list[Event]:
    """List every change of what the model sees or of the state, and every checkpoint, on every branch, in order."""
    entries = journal.walk([(1, journal.version)], kinds=CHANGES, bodies=True)
    events = ((entry, describe_entry(entry)) for entry in entries)
    return [Event(id=entry.id, at=entry.at, kind=entry.kind, what=what) for entry, what in events if what is not None]


def describe_entry(entry: Entry) -> str | None:
    """Describe a change of the view or of the state in one line; `None` for one that says nothing new."""
    match entry.kind:
        case "state":
            from windowsill.state.session_state import event_of

            change = event_of(entry)
            return None if change is None else str(change)
        case "fold":
            fold = fold_meta(entry.meta)
            return f"{fold.kind} by {fold.strategy}: {fold.reason} ({fold.before:,} to {fold.after:,} tokens)"
        case "unfold":
            undone = unfold_meta(entry.meta)
            return f"unfolded {undone.fold_id}" + (f": {undone.reason}" if undone.reason else "")
        case "mark":
            marking = marking_meta(entry.meta)
            signs = [f"+{mark}" for mark in marking.add] + [f"-{mark}" for mark in marking.remove]
            return f"marked {marking.message_id}: {', '.join(signs)}"
        case "label":
            return describe_label(entry)
        case _:
            rewind = rewind_meta(entry.meta)
            reason = f": {rewind.reason}" if rewind.reason else ""
            return f"went from entry {rewind.left} to entry {rewind.to}{reason}"


def explain(
    journal: JournalWriter, message_id: str, call_id: str | None = None, waiting: Callable[[], str] = str
) -> Explanation:
    """Explain why a message is or is not in the window: of the current head, or of a past call.

    `waiting` says why nothing is folded now.
    """
    message = journal.find(message_id, "message")
    head, view = journal.version, journal.view
    if call_id is not None:
        head = call_meta(journal.find(call_id, "call").meta).at
        view = journal.at(head).view
    path = journal.path(head)
    if not on_path(path, message.seq):
        why = "it was added later" if message.seq > head else "it is on a branch that was left by a rewind"
        return Explanation(message=message_id, visible=False, why=why, call=call_id)
    item = view.cover(message.seq)
    if item is not None and not item.fold:
        if item.cuts:
            why = "it is shown, with a part of it cut"
        elif item.pinned:
            why = "it is pinned"
        elif message.seq == view.task_seq():
            why = "it is the task"
        else:
            decided = "" if call_id is not None else waiting()
            why = f"no fold hides it: {decided}" if decided else "no fold hides it"
        cuts = tuple(_covering(journal, path, message.seq)) if item.cuts else ()
        return Explanation(message=message_id, visible=True, why=why, folds=cuts, call=call_id)
    covering = _covering(journal, path, message.seq)
    outer = covering[0]
    more = len(covering) - 1
    inner = f"; inside it {'is 1 earlier fold' if more == 1 else f'are {more} earlier folds'}" if more else ""
    why = f"hidden by {outer.kind} {outer.id} of {outer.strategy}: {outer.reason}{inner}"
    return Explanation(message=message_id, visible=False, why=why, folds=tuple(covering), call=call_id)


def _covering(journal: JournalWriter, path: Sequence[Range], seq: int) -> list[FoldRecord]:
    """List the folds that apply to a message, the outermost first."""
    gone = removed_spans(journal, path)
    found = []
    for entry in journal.walk(path, kinds=("fold",), bodies=True):
        fold, removed = fold_meta(entry.meta), gone.get(entry.seq, set())
        applying = (ends(span) for number, span in enumerate(fold.spans) if number not in removed)
        if any(first <= seq <= last for first, last in applying):
            found.append(_fold_record(journal, entry, fold, removed))
    return found[::-1]


# Tool calls


def tool_decisions(journal: JournalWriter) -> list[ToolDecision]:
    """List which tools the model got on the current branch, each time that changed, oldest first."""
    from windowsill.state.tools import ToolDecision

    decided = reader(ToolDecision)
    return [decided(entry.meta) for entry in journal.branch("tools")]


def open_calls(journal: JournalWriter) -> list[tuple[str, ToolUse]]:
    """List the calls of the last reply that have no result yet, each with the id of its message."""
    items = journal.view.items
    stop = len(items)
    while stop and items[stop - 1].role != "assistant":
        stop -= 1
    start = stop
    while start and items[start - 1].role == "assistant":
        start -= 1
    # Some models give two calls of one answer the same id: then the first result is the first call's.
    answered = Counter(id for item in items[stop:] for id in item.results)
    found = []
    for item in items[start:stop]:
        for call in journal.message(item.seq).calls if item.calls else ():
            if answered[call.id] > 0:
                answered[call.id] -= 1
            else:
                found.append((item.id, call))
    return found


def record_tools(journal: JournalWriter, decision: ToolDecision) -> None:
    """Record which tools the model gets from now on, and which were hidden by which rule."""
    with journal.lock:
        journal.refresh()
        journal.append(lambda draft: draft.record("tools", decision))


def run_key(message_id: str, call_id: str) -> str:
    """Return the key under which the state notes the run of a call: models repeat the ids of calls."""
    return f"{message_id}/{call_id}"


def begun_calls(journal: JournalWriter, message_id: str) -> frozenset[str]:
    """Return the ids of a message's calls that were begun or answered after it, on whatever branch."""
    from windowsill.state.changes import Put
    from windowsill.state.session_state import event_of

    message = journal.find(message_id, "message")
    ids = message_meta(message.meta).calls
    later = [(message.seq + 1, journal.version)]
    answered = {id for entry in journal.walk(later, kinds=("message",)) for id in message_meta(entry.meta).results}
    noted = set()
    for entry in journal.walk(later, kinds=("state",), bodies=True):
        try:
            change = event_of(entry)
        except DamagedError:
            # What cannot be read may have noted any of them.
            return frozenset(ids)
        puts = (each for each in (change.changes if change is not None else ()) if isinstance(each, Put))
        noted |= {each.value.get("id") for each in puts if each.path == RUNS}
    return frozenset(id for id in ids if id in answered or run_key(message_id, id) in noted)


# Past requests


def rebuild_request(journal: JournalWriter, call: Call) -> bytes:
    """Build the body of a past request again: same view, same parts, same bytes."""
    format = providers.get(call.format, call.demands)
    system, tools = prompt_of(journal, call)
    rest = rest_of(journal, call)
    rendered = read_part(journal.store, journal.session, call, MANAGED)
    if rendered is None:
        renderer = Renderer(format, call.demands, own_tools=own_tools(tools), continued=format.continues(rest))
        view = journal.at(call.at).view
        # One read for many messages: those of a past view are not in memory.
        journal.load_items(view.items)
        rendered = renderer.render(view, call.prompt_hash)
    return build_body(
        format,
        rendered,
        system=system,
        tools=tools,
        rest=rest,
        model=call.model,
        demands=call.demands,
        breakpoints=Breakpoints(**call.breakpoints),
    )


FIRST_ENTRIES = 20
"""Entries among which the task of a session is looked for."""


TITLE = 80
"""Characters of a task in a list of sessions."""


def task_of(store: Store, session: str) -> str:
    """Return the first words of the task of a session; empty where none was given."""
    for entry in store.read(session, 1, FIRST_ENTRIES, kinds=("message",), bodies=False):
        if message_meta(entry.meta).own:
            return shorten(message_of(store.read(session, entry.seq, entry.seq)[0], store, session).text, TITLE)
    return ""


def readable_task(store: Store, session: str) -> str:
    """Return the task as `task_of` does; empty too where it is damaged, as a list still names such a session."""
    try:
        return task_of(store, session)
    except WindowsillError:
        return ""


class FixedParts(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens of a request besides its messages."""

    call: str = ""
    """The request; empty when none was composed yet."""
    system: int = 0
    tools: int = 0
    unseen: int = 0
    """Tokens that only the provider saw, and the overhead that was stated."""
    max_output: int | None = None
    """The tokens that its answer might have, where it said so."""

    @property
    def total(self) -> int:
        """All of them."""
        return self.system + self.tools + self.unseen


def fixed_parts(journal: JournalWriter, composer: Composer, entry: Entry | None) -> FixedParts:
    """Weigh the system prompt and the tools of a request, the last of the current branch."""
    if entry is None:
        return FixedParts(unseen=composer.settings.overhead)
    call, scale = call_meta(entry.meta), journal.scale
    system, tools = prompt_of(journal, call)
    return FixedParts(
        call=entry.id,
        system=scale.tokens(scale.weigh(system)) if system is not None else 0,
        tools=scale.tokens(scale.weigh_tools(tools)),
        unseen=call.unseen + composer.settings.overhead,
        max_output=output_room(providers.answer_limit(rest_of(journal, call)), composer.context.model),
    )


def composition(
    journal: JournalWriter,
    composer: Composer,
    *,
    fixed: FixedParts | None = None,
    weights: Mapping[str, Weight] | None = None,
) -> Composition:
    """Say what fills the window now; what is known already of its parts need not be weighed again."""
    view = journal.view
    beside = fixed
    if beside is None:
        beside = fixed_parts(journal, composer, journal.last(journal.path(journal.version), "call"))
    return composition_of(
        weights if weights is not None else weigh_parts(view.items, view.task_seq()),
        view,
        composer.budget(beside.total, max_output=beside.max_output),
        system=beside.system,
        tools=beside.tools,
        unseen=beside.unseen,
    )


def prompt_of(journal: JournalWriter, call: Call) -> tuple[Message | None, tuple[Tool, ...]]:
    """Return the system prompt and the tools that a request had."""
    store, session = journal.store, journal.session
    return read_part(store, session, call, "system"), read_part(store, session, call, "tools") or ()


def rest_of(journal: JournalWriter, call: Call) -> dict[str, msgspec.Raw]:
    """Return the further fields that a request had."""
    return read_part(journal.store, journal.session, call, "rest") or {}


_PARTS: dict[str, Any] = {
    "system": Message | None,
    "tools": tuple[Tool, ...],
    "rest": dict[str, msgspec.Raw],
    MANAGED: Rendered,
}


def read_part(store: Store, session: str, call: Call, name: str) -> Any:
    """Read a part of a request; `None` where it had none, `DamagedError` where it is not what was written."""
    id = call.blobs.get(name)
    if id is None:
        return None
    data = store.blob(session, id)
    if data is None:
        raise DamagedError(f"the {name} of this request is missing from the store", remedy="restore a backup")
    if not is_blob(id, data):
        raise DamagedError(f"the {name} of this request is not what was written", remedy="restore a backup")
    try:
        return msgspec.json.decode(data, type=_PARTS.get(name, Any))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedError(f"the {name} of this request cannot be read ({error})", remedy="restore a backup") from None


def is_blob(id: str, data: bytes) -> bool:
    """Tell whether these are the bytes of a part of a request: its id is the beginning of their hash."""
    return bool(id) and hashlib.sha256(data).hexdigest().startswith(id)
