"""Going back: unfold, rewind, switch. Each is an entry of its own; nothing is ever taken out of the journal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from windowsill.budget import Budget
from windowsill.errors import FoldError, NotFoundError
from windowsill.history.entries import ROOT, ROOT_HASH, Entry, on_path, within
from windowsill.history.folds import (
    BlockSpan,
    Fold,
    MessageSpan,
    PastEdit,
    Proposal,
    StandIn,
    edits_of_past,
    unpack_stand_ins,
)
from windowsill.history.head import Draft, Head, rewind_meta
from windowsill.history.units import units
from windowsill.history.view import View, build, fold_meta, message_meta, restored, unfold_meta
from windowsill.journal.writer import JournalWriter
from windowsill.messages import Message
from windowsill.strategies.base import MARKER_TOKENS, fold_units


class SpanRecord(msgspec.Struct, frozen=True):
    """One span of a fold: which messages it hides, or which block of a message it replaces."""

    number: int
    first: str
    last: str
    messages: int
    """How many it touches, those inside inner folds included."""
    saved: int
    active: bool
    block: int | None = None
    shown: str = ""
    """What stands in its place."""


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
    """Whether any of it still applies on the current branch."""
    spans: tuple[SpanRecord, ...] = ()

    @property
    def saved(self) -> int:
        """Tokens it took out of the view."""
        return self.before - self.after


class Branch(msgspec.Struct, frozen=True):
    """An end of the history: the current one, or one that was left by a rewind."""

    id: str
    """The id of its last entry; `session.switch(id)` returns to it."""
    at: float
    messages: int
    current: bool


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
    """Why a message is, or is not, in the window."""

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


def unfold(ledger: JournalWriter, fold_id: str, span: int | None = None, reason: str = "") -> str:
    """Show again what a fold hid, or one span of it; the id of the entry that says so."""
    entry, fold, numbers = _applying(ledger, fold_id, span)

    def make(draft: Draft) -> Entry:
        return draft.unfold(entry.seq, fold_id, numbers, reason)

    return ledger.commit(make, reshape=lambda entries: _shown_again(ledger, entry, fold, numbers, entries)).id


def _shown_again(ledger: JournalWriter, entry: Entry, fold: Fold, numbers: Sequence[int], entries: list[Entry]) -> Head:
    """The history with spans of a fold removed, and then the rest of a batch applied."""
    after = ledger.copy()
    undone = next(written for written in entries if written.kind == "unfold")
    after.view.edits_of_past = _edits_with(ledger, undone)
    after.view.restored |= restored(fold.spans[number] for number in numbers)
    for number in numbers:
        _show(ledger, after.view, entry, fold.spans[number], undone)
    for written in entries:
        after.apply(written)
    return after


def _edits_with(ledger: JournalWriter, undone: Entry) -> tuple[PastEdit, ...]:
    """What the folds of this branch change, once `undone` is written."""
    shapers = list(ledger.branch("fold", "unfold"))
    folds = {entry.seq: fold_meta(entry.meta) for entry in shapers if entry.kind == "fold"}
    gone = {entry.seq: unfold_meta(entry.meta) for entry in (*shapers, undone) if entry.kind == "unfold"}
    return edits_of_past(folds, gone)


def _applying(ledger: JournalWriter, fold_id: str, span: int | None) -> tuple[Entry, Fold, list[int]]:
    """The fold's entry and the spans of it that still apply on this branch."""
    entry = ledger.find(fold_id, "fold")
    path = ledger.path(ledger.version)
    if not on_path(path, entry.seq):
        raise FoldError(
            f"fold {fold_id!r} belongs to a branch that was left", remedy="switch to that branch first", fold=fold_id
        )
    fold = fold_meta(entry.meta)
    gone = removed_spans(ledger, path).get(entry.seq, set())
    wanted = range(len(fold.spans)) if span is None else [span]
    if span is not None and not 0 <= span < len(fold.spans):
        raise NotFoundError(f"fold {fold_id!r} has no span {span}", remedy=f"give 0 to {len(fold.spans) - 1}")
    numbers = [number for number in wanted if number not in gone]
    if not numbers:
        raise FoldError(f"fold {fold_id!r} was removed before", remedy="`session.folds` shows which are active")
    return entry, fold, numbers


def removed_spans(ledger: JournalWriter, path: Sequence[tuple[int, int]]) -> dict[int, set[int]]:
    """For each fold on the path, the spans that no longer apply."""
    gone: dict[int, set[int]] = {}
    for entry in ledger.walk(path, kinds=("unfold",)):
        value = unfold_meta(entry.meta)
        gone.setdefault(value.fold, set()).update(value.spans)
    return gone


def _show(ledger: JournalWriter, view: View, fold: Entry, span: MessageSpan | BlockSpan, unfolding: Entry) -> None:
    """Put back into the view what one span covered, if it is not covered by another fold."""
    first, last = (span.first, span.last) if isinstance(span, MessageSpan) else (span.message, span.message)
    cover = view.cover(first)
    if cover is None:
        return
    if isinstance(span, MessageSpan) and (cover.fold != fold.seq or cover.first != first or cover.last != last):
        return
    if isinstance(span, BlockSpan) and cover.fold:
        return
    path = ledger.path(ledger.version)
    messages = ledger.walk(within(path, first, last), kinds=("message",))
    shapers = ledger.walk(within(path, first, ledger.version), kinds=("fold", "unfold", "mark"))
    shown = build([*messages, *shapers, unfolding], view.scale, view.read, first=first, last=last)
    view.splice(first, last, shown)


def unfold_what_fits(ledger: JournalWriter, fold_id: str, budget: Budget, reason: str = "") -> str:
    """Show again as much of a fold as the budget allows, the newest first; the rest stays behind a new marker."""
    entry, fold, numbers = _applying(ledger, fold_id, None)
    undone = ledger.copy().draft(ledger.clock()).unfold(entry.seq, fold_id, numbers, reason)
    trial = _shown_again(ledger, entry, fold, numbers, [undone])
    runs = [span for number, span in enumerate(fold.spans) if number in numbers and isinstance(span, MessageSpan)]
    inside = [
        unit
        for unit in units(trial.view.items)
        if any(run.first <= trial.view.items[unit.start].first <= run.last for run in runs)
    ]
    hide = []
    room = budget.fixed + trial.view.tokens() - budget.high
    room += MARKER_TOKENS if room > 0 else 0
    for unit in inside:
        if room <= 0:
            break
        hide.append(unit)
        room -= trial.view.tokens_of(unit.weight(trial.view.items))
    if inside and len(hide) == len(inside):
        raise FoldError(
            f"nothing of fold {fold_id!r} fits the budget", remedy="raise the budget, or fold something else"
        )
    rest = fold_units(trial.view, hide, strategy="unfold", reason=reason or "as much as fits", quote=0)

    def make(draft: Draft) -> Entry:
        written = draft.unfold(entry.seq, fold_id, numbers, reason)
        if rest is not None:
            draft.fold(rest, trial.view.tokens(), trial.view.tokens_of(trial.view.after(rest.spans)))
        return written

    return ledger.commit(make, reshape=lambda entries: _shown_again(ledger, entry, fold, numbers, entries)).id


def move(ledger: JournalWriter, to: int, reason: str = "", *, carry: bool = False) -> str:
    """Set the head on another entry; the way it came from stays readable.

    With `carry` the folds that were made since, but hide only what stays, are made again: then what is sent begins as
    it did, and prompt caches stay warm.
    """
    ledger.flush()
    hash = ledger.entry(to).hash if to != ROOT else ROOT_HASH
    folds = _made_since(ledger, to) if carry else []

    def reshape(entries: list[Entry]) -> Head:
        after = ledger.at(to)
        for written in entries:
            after.apply(written)
        return after

    def make(draft: Draft) -> Entry:
        rewound = draft.rewind(to, hash, ledger.version, reason)
        for fold, proposal in folds:
            draft.fold(proposal, fold.before, fold.after)
        return rewound

    return ledger.commit(make, reshape=reshape).id


def _made_since(ledger: JournalWriter, to: int) -> list[tuple[Fold, Proposal]]:
    """The folds of this branch that were made after an entry and hide only what stands before it."""
    path = ledger.path(ledger.version)
    if not on_path(path, to):
        return []
    gone = removed_spans(ledger, path)
    found: list[tuple[Fold, Proposal]] = []
    for entry in ledger.walk(within(path, to + 1, ledger.version), kinds=("fold",), bodies=True):
        fold = fold_meta(entry.meta)
        last = max(span.last if isinstance(span, MessageSpan) else span.message for span in fold.spans)
        if last > to or entry.seq in gone:
            # Folds build on each other: behind one that cannot be made again none can.
            break
        holders = unpack_stand_ins(entry.body or b"")
        stand_ins = tuple(_stand_in(holder, span) for holder, span in zip(holders, fold.spans, strict=True))
        found.append(
            (
                fold,
                Proposal(
                    kind=fold.kind, reason=fold.reason, strategy=fold.strategy, spans=fold.spans, stand_ins=stand_ins
                ),
            )
        )
    return found


def _stand_in(holder: Message | None, span: MessageSpan | BlockSpan) -> StandIn:
    return holder if isinstance(span, MessageSpan) or holder is None else holder.blocks[0]


def go_to(ledger: JournalWriter, message_id: str, reason: str) -> None:
    """Make sure that a message is the last one of the path."""
    ledger.refresh()
    place = place_of_message(ledger, message_id, before=False)
    if not ledger.view.items or ledger.view.items[-1].last != place:
        move(ledger, place, reason)


def place_of_message(ledger: JournalWriter, message_id: str, *, before: bool) -> int:
    """The entry a rewind to a message goes to."""
    entry = ledger.find(message_id, "message")
    return entry.parent if before else entry.seq


def place_of_time(ledger: JournalWriter, at: float) -> int:
    """The entry a rewind to a time goes to: everything from then on is left.

    When no message has exactly this time, it may fall into a stream: the assistant's message was finished, and
    recorded, after a user message that was typed meanwhile. The first user message at or after the time is then the
    boundary.
    """
    path = ledger.path(ledger.version)
    messages = list(ledger.walk(path, kinds=("message",)))
    exact = any(entry.at == at for entry in messages)
    earlier = any(entry.at < at for entry in messages)
    boundary = at
    if not exact and earlier:
        users = (entry.at for entry in messages if entry.at >= at and message_meta(entry.meta).role == "user")
        boundary = next(users, at)
    first_left = next((entry for entry in messages if entry.at >= boundary), None)
    return first_left.parent if first_left is not None else ledger.version


def branches(ledger: JournalWriter) -> list[Branch]:
    """Every end of the history, the current one first."""
    rewinds = ledger.walk([(1, ledger.version)], kinds=("rewind",))
    left = (rewind_meta(entry.meta).left for entry in rewinds)
    heads = [ledger.version, *left]
    found = []
    for head in dict.fromkeys(heads):
        if head == ROOT:
            continue
        entry = ledger.entry(head)
        count = sum(1 for _ in ledger.walk(ledger.path(head), kinds=("message",)))
        found.append(Branch(id=entry.id, at=entry.at, messages=count, current=head == ledger.version))
    return found


def place_of_entry(ledger: JournalWriter, id: str) -> int:
    """The number of any entry."""
    entry = ledger.store.find(ledger.session, id)
    if entry is None:
        raise NotFoundError(
            f"session {ledger.session!r} has no entry {id!r}", remedy="`session.branches` lists the ends"
        )
    return entry.seq
