"""Labels: the entries of the journal that name a moment, or say which names are forgotten.

A label says what is new and copies nothing: everything that was there at that moment stands on the path to it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias, get_args

import msgspec

from windowsill.errors import InputError, NotFoundError, SettingError
from windowsill.history.entries import Entry, Kind, Range, path_to, reader, within
from windowsill.history.view import View, fold_meta
from windowsill.store import Store
from windowsill.store.checks import check_name

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


START = "initializing"
"""The phase in which every session begins."""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What a look at a session sees; of the last checkpoint, what was seen then."""

    at: float
    messages: int = 0
    tokens: int = 0
    """Of the view. For the last checkpoint: the fewest since, for only what was below a line can cross it."""
    phase: str = START

    def lowered(self, tokens: int) -> Seen:
        """The same after the view was seen with so many tokens."""
        return self if tokens >= self.tokens else msgspec.structs.replace(self, tokens=tokens)


class Automatic(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When checkpoints are made without being asked for. `None` switches a condition off."""

    seconds: float | None = 600
    """Since the last checkpoint."""
    messages: int | None = 50
    """Since the last checkpoint."""
    tokens: int | None = 100_000
    """Of the view: due when it has grown past this, and again only after it has been below."""
    on_phase: bool = True

    def __post_init__(self) -> None:
        if self.seconds is not None and not (self.seconds > 0 and math.isfinite(self.seconds)):
            raise SettingError("seconds", self.seconds, "seconds above 0, or None")
        for name, value in (("messages", self.messages), ("tokens", self.tokens)):
            if value is not None and value < 1:
                raise SettingError(name, value, f"{name}, 1 or more, or None")

    def due(self, seen: Seen, now: Seen) -> Reason | None:
        """Why a checkpoint is due now, the most telling reason first; `None` when none is.

        `seen` is what was seen at the last checkpoint. It changes only with a checkpoint, or when the view shrinks:
        looking more often makes nothing due earlier, or later.
        """
        if self.on_phase and now.phase != seen.phase:
            return "phase"
        if self.messages is not None and now.messages - seen.messages >= self.messages:
            return "messages"
        if self.tokens is not None and seen.tokens < self.tokens <= now.tokens:
            return "tokens"
        if self.seconds is not None and now.at - seen.at >= self.seconds:
            return "time"
        return None


_TELLING: tuple[Kind, ...] = ("label", "fold", "rewind")


class Watching:
    """Follows one session for the rule that says when a checkpoint is due."""

    def __init__(self, store: Store, session: str) -> None:
        self._store = store
        self._session = session
        self._at = 0
        self._seen: Seen | None = None
        self._counted = (-1, 0, 0)

    def seen(self, version: int, tokens: int) -> Seen:
        """What the last checkpoint on the path to an entry saw; the view there has so many tokens."""
        seen = self._since(version) or self._read(version)
        self._at, self._seen = version, seen.lowered(tokens)
        return self._seen

    def messages(self, view: View) -> int:
        """How many messages the branch has, hidden ones included; those counted before are not counted again."""
        edits, length, count = self._counted
        if edits != view.edits or length > len(view.items):
            length = count = 0
        count += sum(item.hides if item.fold else 1 for item in view.items[length:])
        self._counted = (view.edits, len(view.items), count)
        return count

    def _since(self, version: int) -> Seen | None:
        """What follows from the last look and what was written since; `None` when the path is another one."""
        seen = self._seen if version >= self._at else None
        if seen is None:
            return None
        for entry in self._store.read(self._session, self._at + 1, version, kinds=_TELLING, bodies=False):
            if entry.kind == "rewind":
                return None
            seen = _after(seen, entry)
        return seen

    def _read(self, version: int) -> Seen:
        path = path_to(version, self._store.jumps(self._session))
        seen, start = self._beginning(), 0
        for entry in newest_first(self._store, self._session, path):
            found = checkpoint_of(entry)
            if found is not None:
                seen, start = _seen_at(found), entry.seq
                break
        for first, last in within(path, start + 1, version):
            for entry in self._store.read(self._session, first, last, kinds=("fold",), bodies=False):
                seen = _after(seen, entry)
        return seen

    def _beginning(self) -> Seen:
        info = self._store.info(self._session)
        return Seen(at=info.created if info is not None else 0.0)


def _seen_at(checkpoint: Checkpoint) -> Seen:
    return Seen(at=checkpoint.at, messages=checkpoint.messages, tokens=checkpoint.tokens, phase=checkpoint.phase)


def _after(seen: Seen, entry: Entry) -> Seen:
    """What holds after a label or a fold. A fold says how small it made the view: a line may be crossed again."""
    if entry.kind == "fold":
        return seen.lowered(fold_meta(entry.meta).after)
    found = checkpoint_of(entry)
    return seen if found is None else _seen_at(found)
