"""Go back: unfold, rewind, switch. Each is an entry of its own; nothing is ever taken out of the journal."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from windowsill.budget import Budget
from windowsill.compose.summaries import write_records
from windowsill.errors import FoldError, NotFoundError
from windowsill.history.entries import ROOT, ROOT_HASH, Entry, Range, on_path, within
from windowsill.history.folds import BlockSpan, Fold, MessageSpan, Proposal, Span, edits_of_past, ends, unpack_stand_ins
from windowsill.history.head import Draft, Head, rewind_meta
from windowsill.history.view import View, build, fold_meta, message_meta, restored_by, unfold_meta, units
from windowsill.journal.writer import JournalWriter
from windowsill.strategies.base import MARKER_TOKENS, fold_units

MANY_SPANS = 16
"""Spans of a fold that are shown again one by one; for more the view is built anew."""


class Branch(msgspec.Struct, frozen=True):
    """An end of the history: the current one, or one that was left by a rewind."""

    id: str
    """The id of its last entry; `session.switch(id)` returns to it."""
    at: float
    messages: int
    current: bool


def branches(journal: JournalWriter) -> list[Branch]:
    """List every end of the history, the current one first."""
    found = []
    for head in branch_heads(journal):
        entry = journal.entry(head)
        count = sum(1 for _ in journal.walk(journal.path(head), kinds=("message",)))
        found.append(Branch(id=entry.id, at=entry.at, messages=count, current=head == journal.version))
    return found


def branch_heads(journal: JournalWriter) -> dict[int, str]:
    """Return the ends of all branches, the current one first, each with the reason why it was left."""
    heads = {journal.version: ""}
    for entry in journal.walk([(1, journal.version)], kinds=("rewind",)):
        moved = rewind_meta(entry.meta)
        heads.setdefault(moved.left, moved.reason)
    heads.pop(ROOT, None)
    return heads


def removed_spans(journal: JournalWriter, path: Sequence[Range]) -> dict[int, set[int]]:
    """Return for each fold on the path the spans that no longer apply."""
    gone: dict[int, set[int]] = {}
    for entry in journal.walk(path, kinds=("unfold",)):
        value = unfold_meta(entry.meta)
        gone.setdefault(value.fold, set()).update(value.spans)
    return gone


# Unfolding


def unfold(journal: JournalWriter, fold_id: str, span: int | None = None, reason: str = "") -> str:
    """Show again what a fold hid, or one span of it; return the id of the entry."""

    def make(draft: Draft) -> Entry:
        # Found at each attempt: whoever wrote first may have removed it, or left its branch.
        entry, _, numbers = _find_applying(journal, fold_id, span)
        return draft.unfold(entry.seq, fold_id, numbers, reason)

    return journal.append(make, reshape=lambda entries: _without_fold(journal, entries)).id


def unfold_what_fits(journal: JournalWriter, fold_id: str, budget: Budget, reason: str = "") -> str:
    """Show again as much of a fold as the budget allows, the newest first; the rest stays behind a new marker."""

    def make(draft: Draft) -> Entry:
        entry, fold, numbers = _find_applying(journal, fold_id, None)
        numbers = _parts_that_fit(journal.head.view, fold, numbers, budget)
        if not numbers:
            raise _nothing_fits(fold_id)
        undone = Draft(journal.head.copy(), journal.clock()).unfold(entry.seq, fold_id, numbers, reason)
        view = _without_fold(journal, [undone]).view
        runs = [span for number, span in enumerate(fold.spans) if number in numbers and isinstance(span, MessageSpan)]
        rest = _fold_what_is_too_much(view, fold_id, runs, budget, reason)
        written = draft.unfold(entry.seq, fold_id, numbers, reason)
        if rest is not None:
            draft.fold(rest, view.tokens(), view.tokens_of(view.after(rest.spans)))
        return written

    return journal.append(make, reshape=lambda entries: _without_fold(journal, entries)).id


def _parts_that_fit(view: View, fold: Fold, numbers: Sequence[int], budget: Budget) -> list[int]:
    """Return the numbers of these spans without the oldest parts of messages that are too much."""
    room = budget.high - budget.fixed - view.tokens()
    found = []
    for number in reversed(numbers):
        span = fold.spans[number]
        if isinstance(span, BlockSpan):
            room -= view.tokens_of(span.saves)
            if room < 0:
                continue
        found.append(number)
    return found[::-1]


def _nothing_fits(fold_id: str) -> FoldError:
    return FoldError(f"nothing of fold {fold_id!r} fits the budget", remedy="raise the budget, or fold something else")


def _fold_what_is_too_much(
    view: View, fold_id: str, runs: Sequence[MessageSpan], budget: Budget, reason: str
) -> Proposal | None:
    """Propose to hide the oldest units of these runs until the budget is kept; nothing when it is already."""
    inside = [
        unit for unit in units(view.items) if any(run.first <= view.items[unit.start].first <= run.last for run in runs)
    ]
    excess = budget.fixed + view.tokens() - budget.high
    excess += MARKER_TOKENS if excess > 0 else 0
    hide = []
    for unit in inside:
        if excess <= 0:
            break
        hide.append(unit)
        excess -= view.tokens_of(unit.weight(view.items))
    if inside and len(hide) == len(inside):
        raise _nothing_fits(fold_id)
    rest = fold_units(view, hide, strategy="unfold", reason=reason or "as much as fits")
    return rest and write_records(view, rest, budget)


def _find_applying(journal: JournalWriter, fold_id: str, span: int | None) -> tuple[Entry, Fold, list[int]]:
    """Find a fold's entry and the spans of it that still apply on this branch."""
    entry = journal.find(fold_id, "fold")
    path = journal.path(journal.version)
    if not on_path(path, entry.seq):
        raise FoldError(
            f"fold {fold_id!r} belongs to a branch that was left", remedy="switch to that branch first", fold=fold_id
        )
    fold = fold_meta(entry.meta)
    if span is not None and not 0 <= span < len(fold.spans):
        raise NotFoundError(f"fold {fold_id!r} has no span {span}", remedy=f"give 0 to {len(fold.spans) - 1}")
    gone = removed_spans(journal, path).get(entry.seq, set())
    numbers = [number for number in (range(len(fold.spans)) if span is None else [span]) if number not in gone]
    if not numbers:
        raise FoldError(f"fold {fold_id!r} was removed before", remedy="`session.folds` shows which are active")
    return entry, fold, numbers


def _without_fold(journal: JournalWriter, entries: Sequence[Entry]) -> Head:
    """Return the head with the spans of a fold removed that a batch names, and then the batch applied."""
    after = journal.head.copy()
    undone = next(written for written in entries if written.kind == "unfold")
    removal = unfold_meta(undone.meta)
    entry = journal.entry(removal.fold)
    folded = fold_meta(entry.meta).spans
    spans = [folded[number] for number in removal.spans]
    shapers = [*journal.branch("fold", "unfold"), undone]
    after.view.edits_of_past = edits_of_past(
        {each.seq: fold_meta(each.meta) for each in shapers if each.kind == "fold"},
        {each.seq: unfold_meta(each.meta) for each in shapers if each.kind == "unfold"},
    )
    after.view.restored |= restored_by(spans)
    if len(spans) > MANY_SPANS:
        # Each looks through all folds behind it: for many, one look at the whole branch costs less.
        path = journal.branch("message", "fold", "unfold", "mark")
        whole = build([*path, undone], after.view.scale, after.view.read)
        after.view.splice(after.view.items[0].first, after.view.items[-1].last, whole)
    else:
        for span in spans:
            _show_again(journal, after.view, entry, span, undone)
    for written in entries:
        after.apply(written)
    return after


def _show_again(journal: JournalWriter, view: View, fold: Entry, span: Span, undone: Entry) -> None:
    """Put back into the view what one span covered, if it is not covered by another fold."""
    first, last = ends(span)
    cover = view.cover(first)
    owner = (fold.seq, first, last) if isinstance(span, MessageSpan) else (0, first, last)
    if cover is None or (cover.fold, cover.first, cover.last) != owner:
        return
    path = journal.path(journal.version)
    messages = journal.walk(within(path, first, last), kinds=("message",))
    shapers = journal.walk(within(path, first, journal.version), kinds=("fold", "unfold", "mark"))
    shown = build([*messages, *shapers, undone], view.scale, view.read, first=first, last=last)
    view.splice(first, last, shown)


# Moving the head


def move(journal: JournalWriter, to: int, reason: str = "", *, carry: bool = False) -> str:
    """Set the head on another entry; the way it came from stays readable. Return the id of the entry that says so.

    With `carry` the folds that were made since, but hide only what stays, are made again: then what is sent begins as
    it did, and prompt caches stay warm.
    """
    journal.flush()
    hash = journal.entry(to).hash if to != ROOT else ROOT_HASH

    def make(draft: Draft) -> Entry:
        rewound = draft.rewind(to, hash, journal.version, reason)
        for fold, proposal in _folds_since(journal, to) if carry else ():
            draft.fold(proposal, fold.before, fold.after)
        return rewound

    def reshape(entries: list[Entry]) -> Head:
        after = journal.at(to)
        for written in entries:
            after.apply(written)
        return after

    return journal.append(make, reshape=reshape).id


def _folds_since(journal: JournalWriter, to: int) -> list[tuple[Fold, Proposal]]:
    """List the folds of this branch that were made after an entry and hide only what stands before it."""
    path = journal.path(journal.version)
    if not on_path(path, to):
        return []
    gone = removed_spans(journal, path)
    found: list[tuple[Fold, Proposal]] = []
    for entry in journal.walk(within(path, to + 1, journal.version), kinds=("fold",), bodies=True):
        fold = fold_meta(entry.meta)
        if entry.seq in gone or any(ends(span)[1] > to for span in fold.spans):
            # Folds build on each other: behind one that cannot be made again none can.
            break
        stand_ins = tuple(
            holder if isinstance(span, MessageSpan) or holder is None else holder.blocks[0]
            for holder, span in zip(unpack_stand_ins(entry.body or b""), fold.spans, strict=True)
        )
        proposal = Proposal(
            kind=fold.kind, reason=fold.reason, strategy=fold.strategy, spans=fold.spans, stand_ins=stand_ins
        )
        found.append((fold, proposal))
    return found


def go_to(journal: JournalWriter, message_id: str, reason: str) -> None:
    """Make sure that a message is the last one of the path."""
    journal.refresh()
    place = place_of_message(journal, message_id)
    if not journal.view.items or journal.view.items[-1].last != place:
        move(journal, place, reason)


def place_of_message(journal: JournalWriter, message_id: str, *, before: bool = False) -> int:
    """Return the entry a rewind to a message goes to."""
    entry = journal.find(message_id, "message")
    return entry.parent if before else entry.seq


def place_of_time(journal: JournalWriter, at: float) -> int:
    """Return the entry a rewind to a time goes to: everything from then on is left.

    When no message has exactly this time, it may fall into a stream: the assistant's message was finished, and
    recorded, after a user message that was typed meanwhile. The first user message at or after the time is then the
    boundary.
    """
    messages = list(journal.branch("message"))
    boundary = at
    if any(entry.at < at for entry in messages) and all(entry.at != at for entry in messages):
        users = (entry.at for entry in messages if entry.at >= at and message_meta(entry.meta).role == "user")
        boundary = next(users, at)
    first_left = next((entry for entry in messages if entry.at >= boundary), None)
    return first_left.parent if first_left is not None else journal.version
