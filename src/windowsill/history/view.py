"""The view: what the model sees at a head. A pure function of the entries on the path to it, kept up to date.

The view holds light items, not messages: what it costs to add one does not depend on how many there are. Units are the
items that may only be hidden or kept together: a tool call and its results are one, parallel calls included.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from itertools import pairwise
from typing import Any

import msgspec

from windowsill.errors import FoldError
from windowsill.history.entries import ROOT, START, Entry, Same, reader
from windowsill.history.folds import (
    BlockSpan,
    Fold,
    MessageSpan,
    PastEdit,
    Span,
    Unfold,
    edits_by,
    edits_of_past,
    without_nested,
)
from windowsill.messages import KEEP, ORIGIN, RESPONSE, Mark, Message, OutputRef, Role
from windowsill.tokens import Scale, Weight


class MessageMeta(msgspec.Struct, frozen=True, array_like=True):
    """The facts about a message that the view needs without reading it."""

    role: Role
    weight: Weight
    counter: str
    format: str
    conversation_hash: bytes
    calls: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    """The names of the tools called."""
    results: tuple[str, ...] = ()
    marks: tuple[Mark, ...] = ()
    sent: bool = False
    """A request was composed between the message before and this one."""
    own: bool = False
    """The user's own words, not text that a program put under the user role."""
    metadata: dict[str, Any] = {}
    leads: bool = False
    """Nothing but reasoning: it belongs to the message after it, where reasoning is a message of its own."""
    fingerprint: bytes = b""
    """The fingerprint of what it says by itself, whatever stands before it."""
    prompt_hash: bytes = b""
    """The system prompt and tools under which its reasoning was written, as `Call.prompt_hash` gives them."""
    same: tuple[Same, ...] = ()
    """The bytes that were left out of the stored body, in order."""
    refs: tuple[OutputRef | None, ...] = ()
    """For each result the output that is kept whole beside the journal; nothing when none is."""

    @property
    def places(self) -> tuple[bytes, ...]:
        """The keys under which a client that goes on from this message finds it."""
        if self.leads or not self.conversation_hash or ORIGIN in self.metadata:
            # It says nothing a client must send again: the conversation stands at the message before it.
            return ()
        response = self.metadata.get(RESPONSE)
        return (self.conversation_hash, response_key(str(response))) if response else (self.conversation_hash,)


def response_key(id: str) -> bytes:
    """Return the key of the message in which a provider's response with this id ends."""
    return hashlib.blake2b(f"{RESPONSE}:{id}".encode(), digest_size=16).digest()


class Marking(msgspec.Struct, frozen=True, array_like=True):
    """Marks given to or taken from a message."""

    message: int
    message_id: str
    add: tuple[Mark, ...] = ()
    remove: tuple[Mark, ...] = ()


class Cut(msgspec.Struct, frozen=True, array_like=True):
    """A block of a visible message that is replaced, by which span of which fold."""

    block: int
    fold: int
    span: int
    saves: Weight


class Item(msgspec.Struct, array_like=True, gc=False):
    """One visible thing: a message, or what stands in for hidden ones (`fold` is then the fold's entry number).

    A view may have 100,000: the garbage collector, which would walk them again and again, need not know of them, as
    nothing in them refers back.
    """

    seq: int
    first: int
    last: int
    id: str
    role: Role
    weight: Weight
    counter: str = ""
    calls: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    marks: tuple[Mark, ...] = ()
    sent: bool = False
    own: bool = False
    fold: int = 0
    span: int = 0
    hides: int = 0
    cuts: tuple[Cut, ...] = ()
    facts: dict[str, Any] = {}
    leads: bool = False
    prompt_hash: bytes = b""
    passing: bool = False
    """Context for one turn: it is hidden when the turn is over."""
    origin: str = ""
    """The part of Windowsill that put the message there; empty for messages of others."""

    @property
    def pinned(self) -> bool:
        """True when no built-in strategy may hide it."""
        return "pinned" in self.marks

    @property
    def is_empty(self) -> bool:
        """True when messages are hidden and nothing stands in their place."""
        return self.fold > 0 and self.weight == _NOTHING


class View:
    """The items visible at a head, in order, with their weight."""

    def __init__(
        self,
        scale: Scale,
        read: Callable[[Item], Message],
        items: list[Item] | None = None,
        *,
        at: int = ROOT,
        conversation_hash: bytes = START,
    ) -> None:
        self.scale = scale
        self.read = read
        """Gives the message an item shows, replaced blocks included; read from the store when it is not in memory."""
        self.items = items if items is not None else []
        self.at = at
        self.conversation_hash = conversation_hash
        self.weight = sum_weights(item.weight for item in self.items)
        self.edits = 0
        """Counts every change that was not an addition at the end: what a renderer's memory depends on."""
        self.edits_of_past: tuple[PastEdit, ...] = ()
        """Edits of the past that visible messages were said before."""
        self.restored: frozenset[tuple[int, int]] = frozenset()
        """Blocks, as `(message, block)`, that somebody had shown again: no strategy should cut them a second time.

        A run of messages is there by its last one, with the block `WHOLE`."""

    def __len__(self) -> int:
        return len(self.items)

    def tokens(self, *items: Item) -> int:
        """Weigh the given items in tokens; without any, the whole view."""
        if len(items) > 1:
            return self.scale.tokens(sum_weights(item.weight for item in items))
        return self.scale.tokens(items[0].weight if items else self.weight)

    def tokens_of(self, weight: Weight) -> int:
        """Return a weight in tokens."""
        return self.scale.tokens(weight)

    def each(self, items: Sequence[Item]) -> list[int]:
        """Return what each of the items weighs in tokens."""
        return self.scale.each([item.weight for item in items])

    def estimates(self, weights: Iterable[Weight]) -> list[float]:
        """Return weights in tokens, not rounded."""
        return self.scale.calibration.estimates(weights)

    def weigh(self, message: Message) -> Weight:
        """Return what a message would weigh here."""
        return self.scale.weigh(message)

    def weigh_with(self, scale: Scale) -> None:
        """Weigh with this scale from now on; what was counted with another vocabulary is counted again."""
        self.scale = scale
        for index, item in enumerate(self.items):
            if item.counter != scale.name:
                self.items[index] = msgspec.structs.replace(
                    item, weight=scale.weigh(self.read(item)), counter=scale.name
                )
        self.weight = sum_weights(item.weight for item in self.items)

    def position(self, seq: int) -> int | None:
        """Find the position of the item that shows message `seq`; `None` when it is hidden."""
        index = bisect_left(self.items, seq, key=lambda item: item.last)
        found = self.items[index : index + 1]
        return index if found and found[0].first <= seq and not found[0].fold else None

    def cover(self, seq: int) -> Item | None:
        """Find the item that shows message `seq`, or the one that stands in for it."""
        index = bisect_left(self.items, seq, key=lambda item: item.last)
        found = self.items[index : index + 1]
        return found[0] if found and found[0].first <= seq else None

    def whole(self, item: Item) -> Message:
        """Read the message of an item without any cuts."""
        return self.read(msgspec.structs.replace(item, cuts=()) if item.cuts else item)

    def leading(self) -> int:
        """Count the system messages at the start: they are never cut."""
        return next((index for index, item in enumerate(self.items) if item.role != "system"), len(self.items))

    def task(self) -> int | None:
        """Find the position of the first message that is the user's own: the task."""
        fallback = None
        for index, item in enumerate(self.items):
            if item.role == "user" and not item.fold and not item.results:
                if item.own:
                    return index
                fallback = index if fallback is None else fallback
            if index > TASK_IS_WITHIN:
                break
        return fallback

    def task_seq(self) -> int | None:
        """Return the entry number of the task."""
        index = self.task()
        return None if index is None else self.items[index].seq

    def add(self, item: Item) -> None:
        """Show one more message at the end."""
        self.items.append(item)
        self.weight = self.weight + item.weight

    def edited_before(self, item: Item, prompt_hash: bytes = b"") -> bool:
        """Tell whether a fold edited the history before this message, so that its signed reasoning is invalid.

        So is reasoning that was written under another system prompt or other tools than the request has.
        """
        if item.prompt_hash and prompt_hash and item.prompt_hash != prompt_hash:
            return True
        return any(edit.after < item.seq < edit.before for edit in self.edits_of_past)

    def unfolded(self) -> list[int]:
        """Return the last message of each run that somebody had shown again, where it is still visible."""
        return [seq for seq, block in sorted(self.restored) if block == WHOLE and self.position(seq) is not None]

    def fold(self, seq: int, id: str, fold: Fold) -> None:
        """Apply a fold; `FoldError` when one of its runs does not begin and end where items do."""
        self.edits_of_past = without_nested([*self.edits_of_past, *edits_by(seq, fold)])
        for number, span in enumerate(fold.spans):
            if isinstance(span, MessageSpan):
                self.hide(seq, id, number, span)
            else:
                self.cut(seq, number, span)
        self.edits += 1

    def slice_of(self, first: int, last: int) -> slice:
        """Find the items that cover exactly the messages `first` to `last`."""
        start = bisect_left(self.items, first, key=lambda item: item.last)
        stop = max(start, bisect_right(self.items, last, key=lambda item: item.last))
        beyond = self.items[stop : stop + 1]
        if start == stop or self.items[start].first < first or (beyond and beyond[0].first <= last):
            raise FoldError(
                f"messages {first} to {last} are not a run of whole items of the view",
                remedy="fold whole visible items, inner folds included",
            )
        return slice(start, stop)

    def hide(self, seq: int, id: str, number: int, run: MessageSpan) -> None:
        """Put the stand-in of a run where its messages are."""
        where = self.slice_of(run.first, run.last)
        hidden = sum_weights(item.weight for item in self.items[where])
        item = Item(
            seq=seq,
            first=run.first,
            last=run.last,
            id=f"{id}:{number}",
            role=run.role,
            weight=run.weight,
            counter=self.items[where.start].counter,
            calls=run.calls,
            results=run.results,
            fold=seq,
            span=number,
            hides=run.hides,
            facts=run.facts,
        )
        self.items[where] = [item]
        self.weight = self.weight - hidden + run.weight

    def cut(self, seq: int, number: int, part: BlockSpan) -> None:
        """Replace one block of a visible message."""
        index = self.position(part.message)
        if index is None:
            raise FoldError(f"message {part.message} is not visible", remedy="fold what the view shows")
        item = self.items[index]
        before = next((cut for cut in item.cuts if cut.block == part.block), None)
        others = tuple(cut for cut in item.cuts if cut is not before)
        weight = item.weight - part.saves + (before.saves if before else Weight())
        cut = Cut(block=part.block, fold=seq, span=number, saves=part.saves)
        cuts = tuple(sorted((*others, cut), key=lambda each: each.block))
        self.weight = self.weight - item.weight + weight
        self.items[index] = msgspec.structs.replace(item, weight=weight, cuts=cuts)

    def become(self, other: View) -> None:
        """Show what another view shows, and stay the object that others hold."""
        self.items, self.weight = other.items, other.weight
        self.at, self.conversation_hash = other.at, other.conversation_hash
        self.edits_of_past, self.restored = other.edits_of_past, other.restored
        self.edits += 1

    def copy(self) -> View:
        """Return a view that shows the same and can be changed by itself."""
        twin = copy(self)
        twin.items = list(self.items)
        return twin

    def after(self, spans: Iterable[Span]) -> Weight:
        """Weigh the view as it would be with these spans applied."""
        weight = self.weight
        for span in spans:
            weight = weight - span.saves
            index = self.position(span.message) if isinstance(span, BlockSpan) else None
            if index is not None and isinstance(span, BlockSpan):
                # What an earlier cut of the same block saved is in the weight already.
                weight = sum_weights(
                    [weight, *(cut.saves for cut in self.items[index].cuts if cut.block == span.block)]
                )
        return weight

    def splice(self, first: int, last: int, shown: View) -> None:
        """Show `shown` where messages `first` to `last` were covered."""
        where = self.slice_of(first, last)
        self.weight = self.weight - sum_weights(item.weight for item in self.items[where]) + shown.weight
        self.items[where] = shown.items
        self.edits += 1

    def mark(self, marking: Marking) -> None:
        """Give or take marks; hidden messages are marked when they come back."""
        index = self.position(marking.message)
        if index is not None:
            item = self.items[index]
            self.items[index] = msgspec.structs.replace(item, marks=apply_marking(item.marks, marking))


TASK_IS_WITHIN = 50
"""Items from the start among which the task is looked for: programs may speak first, but not for a whole session."""


_NOTHING = Weight()


def sum_weights(weights: Iterable[Weight]) -> Weight:
    """Add up weights."""
    return sum(weights, _NOTHING)


def apply_marking(marks: Sequence[Mark], marking: Marking) -> tuple[Mark, ...]:
    """Return marks after a marking, in a fixed order."""
    return tuple(sorted((set(marks) | set(marking.add)) - set(marking.remove)))


def item_of(entry: Entry, meta: MessageMeta) -> Item:
    """Make the item of a message's entry."""
    return Item(
        seq=entry.seq,
        first=entry.seq,
        last=entry.seq,
        id=entry.id,
        role=meta.role,
        weight=meta.weight,
        counter=meta.counter,
        calls=meta.calls,
        tools=meta.tools,
        results=meta.results,
        marks=meta.marks,
        sent=meta.sent,
        own=meta.own,
        leads=meta.leads,
        prompt_hash=meta.prompt_hash,
        passing=bool(meta.metadata) and meta.metadata.get(KEEP) == "turn",
        origin=str(meta.metadata.get(ORIGIN, "")) if meta.metadata else "",
    )


message_meta = reader(MessageMeta)
fold_meta = reader(Fold)
unfold_meta = reader(Unfold)
marking_meta = reader(Marking)


def build(
    entries: Iterable[Entry],
    scale: Scale,
    read: Callable[[Item], Message],
    *,
    first: int = ROOT,
    last: int | None = None,
) -> View:
    """Build the view that the entries of a path define: the one definition of what is visible.

    Needs the messages, folds, unfolds and marks of the path, in order; other entries are passed over. With `first` and
    `last`, only what shows in the place of those messages.
    """
    by_kind: dict[str, list[Entry]] = {"message": [], "fold": [], "unfold": [], "mark": []}
    view = View(scale, read)
    for entry in entries:
        by_kind.setdefault(entry.kind, []).append(entry)
        view.at = entry.seq
    for entry in by_kind["message"]:
        if first <= entry.seq and (last is None or entry.seq <= last):
            meta = message_meta(entry.meta)
            view.items.append(item_of(entry, meta))
            view.conversation_hash = meta.conversation_hash
    view.weight = sum_weights(item.weight for item in view.items)
    for entry in by_kind["mark"]:
        view.mark(marking_meta(entry.meta))
    undone = {entry.seq: unfold_meta(entry.meta) for entry in by_kind["unfold"]}
    removed = {(each.fold, span) for each in undone.values() for span in each.spans}
    folds = {entry.seq: fold_meta(entry.meta) for entry in by_kind["fold"]}
    view.edits_of_past = edits_of_past(folds, undone)
    view.restored = restored_by(folds[seq].spans[number] for seq, number in removed if seq in folds)
    # Folds are laid on in the order they were made: a later one hides what an earlier one left visible, never less.
    for entry in by_kind["fold"]:
        for number, span in enumerate(folds[entry.seq].spans):
            if (entry.seq, number) not in removed:
                _lay(view, entry, number, span, first, last)
    return view


WHOLE = -1
"""In the place of a block's number: the whole message."""


def restored_by(spans: Iterable[Span]) -> frozenset[tuple[int, int]]:
    """Return what is shown again when these spans are removed, as `View.restored` holds it."""
    return frozenset(
        (span.message, span.block) if isinstance(span, BlockSpan) else (span.last, WHOLE) for span in spans
    )


def _lay(view: View, entry: Entry, number: int, span: Span, first: int, last: int | None) -> None:
    if isinstance(span, BlockSpan):
        if view.position(span.message) is not None:
            view.cut(entry.seq, number, span)
    elif first <= span.first and (last is None or span.last <= last):
        view.hide(entry.seq, entry.id, number, span)


class Unit(msgspec.Struct, frozen=True):
    """Items `start` to `stop` (exclusive) of a view; `open` while a call in it has no result."""

    start: int
    stop: int
    open: bool = False

    def weight(self, items: Sequence[Item]) -> Weight:
        """Add up what the items of the unit weigh."""
        return sum_weights(item.weight for item in items[self.start : self.stop])

    def holds(self, position: int | None) -> bool:
        """Tell whether an item is part of the unit."""
        return position is not None and self.start <= position < self.stop


def units(items: Sequence[Item]) -> list[Unit]:
    """Divide a view into units, in order. Between two of them it may be cut, nowhere else.

    A result belongs to its call as long as no request was sent between them. One that comes later is a unit of its own,
    because the request tells it as words at its own place (see `repair`). A call that is never answered ends with its
    own message unless it stands at the end, where it may still be running.
    """
    starts = _starts(items)
    running = _running(items, starts)
    if running is not None:
        del starts[running + 1 :]
    found = [Unit(start, stop) for start, stop in pairwise([*starts, len(items)])]
    if running is not None:
        found[-1] = Unit(starts[-1], len(items), open=True)
    return found


def begins_turn(items: Sequence[Item], index: int) -> bool:
    """Tell whether a request was sent right before an item: what stands before it was sent, answered or not."""
    item = items[index]
    return item.sent or (item.role == "assistant" and index > 0 and items[index - 1].role != "assistant")


def _starts(items: Sequence[Item]) -> list[int]:
    """Find where units begin."""
    starts: list[int] = []
    calls: dict[str, int] = {}
    answering: int | None = None
    leads = False
    for index, item in enumerate(items):
        if begins_turn(items, index):
            calls.clear()
            answering = None
        reach = index
        for id in item.results:
            # Right behind calls a result of another id may answer one of them, see `repair`.
            reach = min(reach, calls.get(id, index if answering is None else answering))
        for id in item.calls:
            calls[id] = index
        answering = index if item.calls else answering if item.results else None
        if leads and reach == index:
            # Reasoning that is a message of its own belongs to the message after it.
            reach -= 1
        leads = item.leads
        if reach == index:
            starts.append(index)
        else:
            while starts[-1] > reach:
                starts.pop()
    return starts


def _running(items: Sequence[Item], starts: Sequence[int]) -> int | None:
    """Find the first unit with a call at the end that still waits: all from there on is one open unit.

    Only the calls at the end can be running: the walk stops at the last unit in which the model spoke.
    """
    answered: set[str] = set()
    stop = len(items)
    for number in range(len(starts) - 1, -1, -1):
        start = starts[number]
        inside = items[start:stop]
        for item in inside:
            answered.update(item.results)
        if any(id not in answered for item in inside for id in item.calls):
            return number
        if any(item.role == "assistant" for item in inside):
            break
        stop = start
    return None
