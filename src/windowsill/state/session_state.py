"""The layered state of a session: part of its history, so that going back brings it back too."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Literal, TypeVar

import msgspec

from windowsill.errors import InputError, NotFoundError
from windowsill.history.entries import Entry, reader, within
from windowsill.history.head import Draft
from windowsill.journal.writer import JournalWriter
from windowsill.state.changes import PHASE, Change, Drop, Put, Set, StateDocument, places, with_ids
from windowsill.state.layers import (
    PERMISSIONS,
    Criterion,
    Decision,
    Fact,
    Failure,
    Permission,
    Phase,
    State,
    Status,
    Step,
    known_permissions,
)
from windowsill.summaries.digest import DIGEST

T = TypeVar("T")

WHOLE_AFTER = 200
"""Changes after which the state is written down whole, so that a session opens without going through its past. A large
state waits until they are as many bytes as it was itself: what a turn writes must not grow with what is remembered."""


class StateShown(msgspec.Struct, frozen=True, array_like=True):
    """The pieces of the state that a model knows: the messages that told them, and a digest of each."""

    messages: tuple[int, ...]
    whole: bool
    """True when nothing that was shown before counts any more."""
    pieces: dict[str, str] = {}
    gone: tuple[str, ...] = ()


class StateMeta(msgspec.Struct, frozen=True, array_like=True):
    """The kind of a state entry.

    Its body holds the changes; or a `whole` state that replaces the one before; or a `copy` of the state, which says
    nothing new.
    """

    form: Literal["changes", "whole", "copy"] = "changes"
    reason: str = ""
    shown: StateShown | None = None


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
    """The state at one entry, and the pieces of it that a model knew there."""

    def __init__(self) -> None:
        self.at = 0
        self.document = StateDocument()
        self.shown: StateShown | None = None
        self._since_whole = 0
        self._bytes_since_whole = 0
        self._whole_bytes = 0

    @property
    def wants_copy(self) -> bool:
        """True when the state should be written whole with the next change."""
        return self._since_whole >= WHOLE_AFTER and self._bytes_since_whole >= self._whole_bytes

    def take(self, entry: Entry) -> None:
        """Apply the next entry of the path."""
        meta = _state_meta(entry.meta)
        if meta.form != "changes":
            self.document = StateDocument(_whole(entry.body or b""))
            self._since_whole = self._bytes_since_whole = 0
            self._whole_bytes = len(entry.body or b"")
        elif entry.body:
            self.document.apply(_changes(entry.body))
            self._since_whole += 1
            self._bytes_since_whole += len(entry.body)
        if meta.shown is not None:
            self.shown = _join(self.shown, meta.shown)


class SessionState:
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

    def changed_since_phase(self) -> frozenset[str]:
        """Return the paths that were changed on this branch since a phase was last entered."""
        journal, found = self._journal, set[str]()
        with journal.lock:
            entries = journal.walk_back(journal.path(journal.version), "state", bodies=True)
            for event in filter(None, map(event_of, entries)):
                if not event.changes:  # a whole state was loaded
                    return frozenset(places())
                changed = {change.path for change in event.changes}
                if PHASE in changed:
                    break
                found |= changed
        return frozenset(found)

    @property
    def extracted(self) -> dict[str, Any]:
        """The object that the strategy `extract` keeps of what was said; empty before its first update."""
        with self._journal.lock:
            states = [item.facts.get(DIGEST, {}).get("state", {}) for item in self._journal.view.items if item.fold]
        return {name: value for state in states for name, value in state.items()}

    def patch(self, *changes: Change, reason: str = "") -> str:
        """Make changes together, all or none, and return the id of their entry."""
        return self.change(lambda _: changes, reason=reason)

    def change(self, make: Callable[[State], Iterable[Change]], *, reason: str = "") -> str:
        """Make changes that are computed from the state at the moment of writing, whoever else changes it."""

        def record(draft: Draft) -> Entry:
            changes = tuple(make(self._reading().document.state))
            if not changes:
                raise InputError("there is nothing to change", remedy="give at least one change")
            return self.draft(draft, changes, reason)

        with self._journal.lock:
            self._journal.refresh()
            return self._journal.append(record).id

    def draft(self, draft: Draft, changes: Sequence[Change], reason: str = "") -> Entry:
        """Add changes to a draft, so that they are written together with its other entries."""
        reading = self._reading()
        if reading.wants_copy:
            draft.record("state", StateMeta("copy", shown=reading.shown), _pack(reading.document.state))
        made = reading.document.check(changes, at=draft.at, number=draft.next)
        return draft.record("state", StateMeta(reason=reason), _pack(made))

    def check(self, changes: Sequence[Change]) -> None:
        """Raise `InputError` for changes that could not be made now."""
        with self._journal.lock:
            self._reading().document.check(changes, at=0.0, number=0)

    def load(self, state: State, *, reason: str = "") -> str:
        """Replace the whole state, as one entry."""
        checked = State.from_json(state.to_json())
        with self._journal.lock:
            self._journal.refresh()
            meta = StateMeta("whole", reason, self._reading().shown)
            return self._journal.append(
                lambda draft: draft.record("state", meta, _pack(with_ids(checked, draft.next)))
            ).id

    @property
    def known_pieces(self) -> Mapping[str, str] | None:
        """Digests of the pieces that the model can still see; `None` when it sees nothing of the state."""
        with self._journal.lock:
            shown = self._reading().shown
            view = self._journal.view
            if shown is None or any(view.position(seq) is None for seq in shown.messages):
                return None
            return shown.pieces

    def record_shown(self, draft: Draft, shown: StateShown) -> None:
        """Record in a draft the pieces of the state that one of its messages shows."""
        draft.record("state", StateMeta(shown=shown))

    def set(self, path: str, value: Any, *, reason: str = "") -> str:
        """Set any value by its path, such as `task.goal`, or a field of one, such as `task.about.priority`."""
        return self.change(lambda state: [_set(state, path, value)], reason=reason)

    def put(self, path: str, value: Any, *, reason: str = "") -> str:
        """Add an element to any list by its path, or replace the one with its key."""
        return self.patch(Put(path, value), reason=reason)

    def drop(self, path: str, key: str, *, reason: str = "") -> str:
        """Take an element out of a list; the history still has it."""
        return self.patch(Drop(path, key), reason=reason)

    # The task

    def set_goal(self, goal: str, criteria: Iterable[str | Criterion] = ()) -> str:
        """Set the goal and, if given, the criteria of success."""
        if not goal.strip():
            raise InputError("the goal is empty", remedy="say in a sentence what is to be done")
        new = [
            Put("task.success_criteria", each if isinstance(each, Criterion) else Criterion(description=each))
            for each in _as_list(criteria)
        ]

        def make(state: State) -> Iterator[Change]:
            yield Set("task.goal", goal)
            if new:
                yield from (Drop("task.success_criteria", each.key) for each in state.task.success_criteria)
                yield from new

        return self.change(make)

    # The run

    def enter(self, phase: Phase, *, reason: str = "") -> str:
        """Enter another phase; raise `InputError` for one that may not follow."""
        return self.patch(Set("runtime.phase", phase), reason=reason)

    def grant(self, *permissions: Permission) -> str:
        """Grant permissions."""
        more = known_permissions(permissions, "grant")
        return self.change(lambda state: [_permissions({*state.runtime.permissions, *more})])

    def revoke(self, *permissions: Permission) -> str:
        """Revoke permissions."""
        less = known_permissions(permissions, "revoke")
        return self.change(lambda state: [_permissions({*state.runtime.permissions}.difference(less))])

    # Memory

    def add_fact(
        self, content: str, *, source: str, confidence: float = 1.0, verified: bool = True, id: str = ""
    ) -> str:
        """Remember a fact and where it comes from."""
        fact = Fact(id=id, content=content, source=source, confidence=confidence, verified=verified)
        return self.put("memory.semantic.facts", fact)

    def record_decision(self, description: str, *, rationale: str = "", alternatives: Sequence[str] = ()) -> str:
        """Remember a decision, its reason and its alternatives."""
        made = Decision(description=description, rationale=rationale, alternatives=tuple(alternatives))
        return self.patch(Put("memory.episodic.decisions", made), Put("runtime.execution.decisions", made))

    # Work

    def set_plan(self, steps: Iterable[str | Step]) -> str:
        """Replace the plan. Texts become steps, each after the one before."""
        made: list[Step] = []
        for number, each in enumerate(_as_list(steps), start=1):
            if isinstance(each, str):
                each = Step(description=each, dependencies=(made[-1].id,) if made else ())  # noqa: PLW2901
            made.append(each if each.id else msgspec.structs.replace(each, id=str(number)))

        def make(state: State) -> Iterator[Change]:
            yield from (Drop("work.plan.steps", step.key) for step in state.work.plan.steps)
            yield from (Put("work.plan.steps", step) for step in made)
            yield Set("work.plan.current", "")

        return self.change(make)

    def set_step(self, id: str, status: Status, *, result: Any = None, error: str = "") -> str:
        """Set the status of a step of the plan."""

        def make(state: State) -> Iterator[Change]:
            plan = state.work.plan
            step = next((each for each in plan.steps if each.id == id), None)
            if step is None:
                ids = ", ".join(each.id for each in plan.steps) or "none"
                raise NotFoundError(f"the plan has no step {id!r}", remedy=f"it has {ids}")
            known = {**msgspec.to_builtins(step), "status": status, "error": error or step.error}
            yield Put("work.plan.steps", known if result is None else {**known, "result": result})
            if status == "in_progress":
                yield Set("work.plan.current", id)
            elif status in ("completed", "failed", "skipped") and plan.current == id:
                yield Set("work.plan.current", "")

        return self.change(make)

    # Reading

    def _reading(self) -> StateAt:
        """Read the state at the head, as far as it is not known yet."""
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
        """Read the state at any entry, from the last whole one before it."""
        reading = StateAt()
        reading.at = seq
        journal, path = self._journal, self._journal.path(seq) if seq else []
        back = journal.walk_back(path, "state")
        whole = next((entry.seq for entry in back if _state_meta(entry.meta).form != "changes"), 1)
        for entry in journal.walk(within(path, whole, seq), kinds=("state",), bodies=True):
            reading.take(entry)
        return reading


def event_of(entry: Entry) -> StateEvent | None:
    """Return the event of a state entry that was read with its body; `None` when it changed nothing."""
    meta = _state_meta(entry.meta)
    if meta.form == "copy" or not entry.body:
        return None
    return StateEvent(entry.id, entry.at, meta.reason, () if meta.form == "whole" else _changes(entry.body))


def _join(before: StateShown | None, after: StateShown) -> StateShown:
    """Join what two messages showed: a whole state replaces what was shown before it."""
    if before is None or after.whole:
        return after
    pieces = {key: digest for key, digest in before.pieces.items() if key not in after.gone}
    return StateShown((*before.messages, *after.messages), before.whole, {**pieces, **after.pieces})


def _permissions(held: Collection[Permission]) -> Change:
    return Set("runtime.permissions", [each for each in PERMISSIONS if each in held])


def count_failure(state: State, tool: str, error: str, times: int = 1, entry: int = 0) -> Failure:
    """Return a failure as the state has it after so many more: the same one again counts as a retry.

    `entry` is the number of the message that it stands in.
    """
    same = [each for each in state.runtime.failures if (each.tool, each.error) == (tool, error)]
    if not same:
        return Failure(tool=tool, error=error, retries=times - 1, entry=entry)
    return msgspec.structs.replace(same[-1], retries=same[-1].retries + times, at=0.0, entry=entry)


def _set(state: State, path: str, value: Any) -> Change:
    """Set a value, or a field of one whose other fields stay."""
    outer, _, field = path.rpartition(".")
    if path in places() or outer not in places() or places()[outer].is_list:
        return Set(path, value)
    known = msgspec.to_builtins(attrgetter(outer)(state))
    return Set(outer, {**known, field: value}) if isinstance(known, Mapping) and field in known else Set(path, value)


def _as_list(given: Iterable[str | T]) -> Iterable[str | T]:
    """Return what was given as a list: a text alone is one entry, not its letters."""
    return (given,) if isinstance(given, str) else given
