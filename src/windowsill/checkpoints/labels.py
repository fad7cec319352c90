"""Labels: the entries of the journal that name a moment, or say which names are forgotten.

A label says what is new and copies nothing: everything that was there at that moment stands on the path to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias, get_args

import msgspec

from windowsill.errors import InputError, NotFoundError
from windowsill.history.entries import Entry, reader
from windowsill.history.path import Range
from windowsill.store import Store
from windowsill.store.rules import check_name

Reason: TypeAlias = Literal["manual", "phase", "time", "messages", "tokens", "forced"]
REASONS: tuple[Reason, ...] = get_args(Reason)

TOLD = 10
"""How many checkpoints an error names: enough to recognise the one that was meant."""

_FIRST_STEP = 1_000
"""Entries looked through at first, from the end; each further step is larger, so that few steps reach the start."""

_WIDER = 4

_LIKE_AN_ID = re.compile(r"l\d+")


class Label(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """What a label entry says. One without a reason is no checkpoint: it says what is forgotten."""

    entry: int = 0
    """The number of the entry that it names: the head at that moment."""
    messages: int = 0
    tokens: int = 0
    phase: str = ""
    reason: Reason | None = None
    name: str = ""
    forgets: int = 0
    """Checkpoints whose labels stand before this entry number are forgotten."""


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A moment of a session to which `session.restore` goes back."""

    id: str
    """The id of its label."""
    name: str
    """What it goes by; empty when it was given no name, or a later one has taken it over."""
    at: float
    entry: int
    """The number of the entry that was the last one then."""
    messages: int
    """How many messages had been added on that branch, hidden ones included."""
    tokens: int
    """What the model saw of them."""
    phase: str
    reason: Reason


label_meta = reader(Label)


def checkpoint_of(entry: Entry, *, name: str | None = None) -> Checkpoint | None:
    """The checkpoint that a label makes, if it makes one; `name` is what it goes by now."""
    label = label_meta(entry.meta)
    if label.reason is None:
        return None
    return Checkpoint(
        id=entry.id,
        name=label.name if name is None else name,
        at=entry.at,
        entry=label.entry,
        messages=label.messages,
        tokens=label.tokens,
        phase=label.phase,
        reason=label.reason,
    )


def label_told(entry: Entry) -> str:
    """What a label says, in one line for a person."""
    label = label_meta(entry.meta)
    if label.reason is None:
        return f"forgot the checkpoints before entry {label.forgets}"
    named = f" {label.name!r}" if label.name else ""
    return f"checkpoint{named} ({label.reason}): {label.messages:,} messages, {label.tokens:,} tokens, {label.phase}"


def newest_first(store: Store, session: str, ranges: Sequence[Range]) -> Iterator[Entry]:
    """The labels within ranges of entry numbers, the last one first; what is not asked for is not read."""
    step = _FIRST_STEP
    for first, last in reversed(ranges):
        stop = last
        while stop >= first:
            start = max(first, stop - step + 1)
            yield from reversed(store.read(session, start, stop, kinds=("label",), bodies=False))
            stop, step = start - 1, step * _WIDER


def known(store: Store, session: str, version: int) -> Iterator[tuple[int, Checkpoint]]:
    """The checkpoints of every branch that are not forgotten, with their entry numbers, the newest first."""
    floor, names = 0, set[str]()
    for entry in newest_first(store, session, [(1, version)]):
        if entry.seq < floor:
            return
        label = label_meta(entry.meta)
        floor = max(floor, label.forgets)
        found = checkpoint_of(entry, name="" if label.name in names else label.name)
        if found is not None:
            names.add(label.name)
            yield entry.seq, found


def find(store: Store, session: str, version: int, id_or_name: str) -> tuple[int, Checkpoint]:
    """The checkpoint of this id or name, with its entry number; `NotFoundError` says which there are."""
    there: list[str] = []
    for seq, found in known(store, session, version):
        if id_or_name and id_or_name in (found.id, found.name):
            return seq, found
        there.append(f"{found.name!r} ({found.id})" if found.name else found.id)
    listed = ", ".join(there[:TOLD]) + (f" and {len(there) - TOLD} more" if len(there) > TOLD else "")
    raise NotFoundError(
        f"session {session!r} has no checkpoint {id_or_name!r}",
        remedy=f"give one of these: {listed}" if there else "it has none yet: `session.checkpoint()` makes one",
        session=session,
        id=id_or_name,
    )


def check_label(name: str, reason: str) -> None:
    """`InputError` for a name that a checkpoint cannot have, or a reason that is none."""
    if reason not in REASONS:
        raise InputError(f"{reason!r} is no reason for a checkpoint", remedy=f"give one of {', '.join(REASONS)}")
    if not name:
        return
    check_name("checkpoint's name", name)
    if not name.strip():
        raise InputError("the checkpoint's name is blank", remedy="give a word, or nothing")
    if _LIKE_AN_ID.fullmatch(name):
        raise InputError(
            f"{name!r} reads like the id of a checkpoint", remedy="give a name that is not l and a number", name=name
        )
