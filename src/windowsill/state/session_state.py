"""The layered state of a session: part of its history, so that going back brings it back too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from windowsill.errors import InputError
from windowsill.history.entries import Entry, Range, reader, within
from windowsill.history.head import Draft
from windowsill.journal.writer import JournalWriter
from windowsill.state.changes import Change, StateDocument, with_ids
from windowsill.state.layers import State
from windowsill.state.verbs import Verbs

CHUNK = 2_000
"""Entries that are looked through at a time, from the end, for the last whole state."""

WHOLE_AFTER = 200
"""Changes after which the state is written down whole, so that a session opens without going through its past. A large
state waits until they are as many bytes as it was itself: what a turn writes must not grow with what is remembered."""


class StateShown(msgspec.Struct, frozen=True, array_like=True):
    """What a model was told of the state: by which messages, and a digest of each piece they said or took back."""

    messages: tuple[int, ...]
    whole: bool
    """What was said before it no longer counts."""
    pieces: dict[str, str] = {}
    gone: tuple[str, ...] = ()


class StateMeta(msgspec.Struct, frozen=True, array_like=True):
    """What a state entry is.

    Its body holds the changes; or a `whole` state that replaces the one before; or a `copy` of the state, which says
    nothing new.
    """

    form: Literal["changes", "whole", "copy"] = "changes"
    reason: str = ""
    told: StateShown | None = None


class StateEvent(msgspec.Struct, frozen=True):
    """One change of the state, as the history has it; without changes when the whole was replaced."""

    id: str
    at: float
    reason: str
    changes: tuple[Change, ...]

    def __str__(self) -> str:
        """Describe the change in one line for a person."""
        paths = ", ".join(dict.fromkeys(change.path for change in self.changes)) or "the whole state"
        return f"changed {paths}" + (f": {self.reason}" if self.reason else "")


_state_meta = reader(StateMeta)
_changes = reader(tuple[Change, ...])
_whole = reader(State)
_pack = msgspec.msgpack.Encoder().encode


class StateAt:
    """The state at one entry, and what a model was last told of it there."""

    def __init__(self) -> None:
        self.at = 0
        self.document = StateDocument()
        self.told: StateShown | None = None
        self._since_whole = 0
        self._bytes_since_whole = 0
        self._whole_bytes = 0

    @property
    def wants_copy(self) -> bool:
        """Whether the state should be written down whole with the next change."""
        return self._since_whole >= WHOLE_AFTER and self._bytes_since_whole >= self._whole_bytes

    def take(self, entry: Entry) -> None:
        """Go on by one entry of the path."""
        meta = _state_meta(entry.meta)
        if meta.form != "changes":
            self.document = StateDocument(_whole(entry.body or b""))
            self._since_whole = self._bytes_since_whole = 0
            self._whole_bytes = len(entry.body or b"")
        elif entry.body:
            self.document.apply(_changes(entry.body))
            self._since_whole += 1
            self._bytes_since_whole += len(entry.body)
        if meta.told is not None:
            self.told = _joined(self.told, meta.told)


class SessionState(Verbs):
    """Reads and changes the state of a session.

    `value` is the state now; every verb is one entry of the history.
    """

    def __init__(self, journal: JournalWriter) -> None:
        self._journal = journal
        self._now = StateAt()

    @property
    def value(self) -> State:
        """The state as it is now, on this branch."""
        with self._journal.lock:
            return self._reading().document.state

    def at(self, id: str) -> State:
        """Return the state as it was at any entry: a message, a fold, a checkpoint, a change."""
        with self._journal.lock:
            return self._read(self._journal.seq_of(id)).document.state

    @property
    def history(self) -> list[StateEvent]:
        """Every change on this branch, oldest first."""
        with self._journal.lock:
            path = self._journal.path(self._journal.version)
            entries = self._journal.walk(path, kinds=("state",), bodies=True)
            return [event for entry in entries if (event := event_of(entry)) is not None]

    def patch(self, *changes: Change, reason: str = "") -> str:
        """Make changes together, all or none; the id of the entry that says so."""
        return self.change(lambda _: changes, reason=reason)

    def change(self, make: Callable[[State], Iterable[Change]], *, reason: str = "") -> str:
        """Make changes that follow from the state as it is when they are written, whoever else changes it meanwhile."""

        def drafted(draft: Draft) -> Entry:
            changes = tuple(make(self._reading().document.state))
            if not changes:
                raise InputError("there is nothing to change", remedy="give at least one change")
            return self.draft(draft, changes, reason)

        with self._journal.lock:
            self._journal.refresh()
            return self._journal.append(drafted).id

    def draft(self, draft: Draft, changes: Sequence[Change], reason: str = "") -> Entry:
        """Make changes as part of a draft, so that they are written together with what it holds already."""
        reading = self._reading()
        if reading.wants_copy:
            draft.record("state", StateMeta("copy", told=reading.told), _pack(reading.document.state))
        made = reading.document.check(changes, at=draft.at, number=draft.next)
        return draft.record("state", StateMeta(reason=reason), _pack(made))

    def check(self, changes: Sequence[Change]) -> None:
        """`InputError` for changes that could not be made now."""
        with self._journal.lock:
            self._reading().document.check(changes, at=0.0, number=0)

    def load(self, state: State, *, reason: str = "") -> str:
        """Replace the whole state, as one entry."""
        checked = State.from_json(state.to_json())
        with self._journal.lock:
            self._journal.refresh()
            told = self._reading().told

            def drafted(draft: Draft) -> Entry:
                return draft.record("state", StateMeta("whole", reason, told), _pack(with_ids(checked, draft.next)))

            return self._journal.append(drafted).id

    @property
    def told(self) -> Mapping[str, str] | None:
        """Digests of what the model can still see of the state; `None` when it sees nothing of it."""
        with self._journal.lock:
            told = self._reading().told
            view = self._journal.view
            if told is None or any(view.position(seq) is None for seq in told.messages):
                return None
            return told.pieces

    def tell(self, draft: Draft, told: StateShown) -> None:
        """Note in a draft what one of its messages tells of the state."""
        draft.record("state", StateMeta(told=told))

    def _reading(self) -> StateAt:
        """Return the state at the head, read as far as it is not known yet."""
        now, version = self._now, self._journal.version
        if now.at == version:
            return now
        new = list(self._journal.walk([(now.at + 1, version)], kinds=("state", "rewind"), bodies=True))
        if not now.at or now.at > version or any(entry.kind == "rewind" for entry in new):
            self._now = self._read(version)
            return self._now
        for entry in new:
            now.take(entry)
        now.at = version
        return now

    def _read(self, seq: int) -> StateAt:
        reading = StateAt()
        reading.at = seq
        path = self._journal.path(seq) if seq else []
        for entry in self._journal.walk(within(path, self._last_whole(path), seq), kinds=("state",), bodies=True):
            reading.take(entry)
        return reading

    def _last_whole(self, path: Sequence[Range]) -> int:
        store, session = self._journal.store, self._journal.session
        for first, last in reversed(path):
            for stop in range(last, first - 1, -CHUNK):
                found = store.read(session, max(first, stop - CHUNK + 1), stop, kinds=("state",), bodies=False)
                for entry in reversed(found):
                    if _state_meta(entry.meta).form != "changes":
                        return entry.seq
        return 1


def event_of(entry: Entry) -> StateEvent | None:
    """Return what a state entry, read with its body, changed; `None` when it changed nothing."""
    meta = _state_meta(entry.meta)
    if meta.form == "copy" or not entry.body:
        return None
    return StateEvent(entry.id, entry.at, meta.reason, () if meta.form == "whole" else _changes(entry.body))


def _joined(before: StateShown | None, after: StateShown) -> StateShown:
    """Join what two messages showed: a whole state replaces what was shown before it."""
    if before is None or after.whole:
        return after
    pieces = {key: digest for key, digest in before.pieces.items() if key not in after.gone}
    return StateShown((*before.messages, *after.messages), before.whole, {**pieces, **after.pieces})
