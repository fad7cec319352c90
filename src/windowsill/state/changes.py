"""Changes of a state as the journal keeps them, and the document that they are applied to.

The cost of a change does not depend on the size of the state.
"""

from __future__ import annotations

import difflib
import functools
import math
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, TypeAlias, get_args, get_origin, get_type_hints

import msgspec

from windowsill.errors import InputError, NotFoundError
from windowsill.state.layers import PHASES, Element, Part, Phase, State, check_steps

LATEST = 100
"""Elements kept in sight of what happens at every step; all of them are in the history."""

RECENT = 25
"""The same for what only the last minute matters of: a turn looks at each."""

CAPS = {
    "runtime.execution.tool_calls": LATEST,
    "runtime.execution.decisions": LATEST,
    "runtime.execution.errors": LATEST,
    "runtime.execution.warnings": LATEST,
    "runtime.failures": LATEST,
    "memory.short_term.turns": RECENT,
    "memory.short_term.observations": LATEST,
    "evidence.observations": RECENT,
    "evidence.retrieved": LATEST,
    "evidence.citations": LATEST,
    "evidence.measurements": LATEST,
    "work.changes": LATEST,
}
"""The most elements of a list; the oldest leave it."""

EPISODES = "memory.episodic.max_entries"
EPISODIC = ("memory.episodic.summaries", "memory.episodic.decisions", "memory.episodic.milestones")

MOST_NESTED = 100
"""Levels of a nested value: one that is nested deeper could be written, and not be read from everywhere."""

STEPS, CURRENT, PHASE = "work.plan.steps", "work.plan.current", "runtime.phase"

NEXT: dict[Phase, frozenset[Phase]] = {
    "initializing": frozenset({"planning", "executing", "failed"}),
    "planning": frozenset({"executing", "failed"}),
    "executing": frozenset({"planning", "reflecting", "verifying", "completed", "failed"}),
    "reflecting": frozenset({"planning", "executing", "verifying", "completed", "failed"}),
    "verifying": frozenset({"planning", "executing", "reflecting", "completed", "failed"}),
    "completed": frozenset({"initializing", "planning", "executing"}),
    "failed": frozenset({"initializing", "planning", "executing"}),
}
"""The phases that may follow each. Nothing is completed that was never worked on; what has ended may begin again."""


def check_jump(before: Phase, after: Phase) -> None:
    """Raise `InputError` for a phase that may not follow another; staying in one is always allowed."""
    if before != after and after not in NEXT[before]:
        raise InputError(
            f"a task cannot go from {before} to {after}",
            remedy=f"from {before} it may go to {', '.join(phase for phase in PHASES if phase in NEXT[before])}",
        )


class Set(msgspec.Struct, frozen=True, array_like=True, tag="set"):
    """A value was set."""

    path: str
    value: Any


class Put(msgspec.Struct, frozen=True, array_like=True, tag="put"):
    """An element was added to a list, or took the place of the one with the same key."""

    path: str
    value: Any


class Drop(msgspec.Struct, frozen=True, array_like=True, tag="drop"):
    """The element with this key left a list."""

    path: str
    key: str


Change: TypeAlias = Set | Put | Drop


class Place(msgspec.Struct, frozen=True):
    """A place in the state that can be changed."""

    path: str
    type: Any
    """The type of the value, or of the elements of the list."""
    is_list: bool


@functools.cache
def places() -> dict[str, Place]:
    """Return every place by its path, such as `task.goal` or `memory.semantic.facts`."""
    return {place.path: place for place in _places_in(State, "")}


def _places_in(part: type[Part], prefix: str) -> Iterator[Place]:
    for name, hint in get_type_hints(part, include_extras=True).items():
        path = f"{prefix}{name}"
        element = _element_of(hint)
        if element is not None:
            yield Place(path, element, is_list=True)
        elif _holds_lists(hint):
            yield from _places_in(hint, f"{path}.")
        else:
            yield Place(path, hint, is_list=False)


def _element_of(hint: Any) -> type[Element] | None:
    first = get_args(hint)[:1] if get_origin(hint) is tuple else ()
    return first[0] if first and isinstance(first[0], type) and issubclass(first[0], Element) else None


def _holds_lists(hint: Any) -> bool:
    if not (isinstance(hint, type) and issubclass(hint, Part)):
        return False
    hints = get_type_hints(hint, include_extras=True).values()
    return any(_element_of(each) is not None or _holds_lists(each) for each in hints)


def _place(change: Change) -> Place:
    """Return the place of a change; raise `InputError` when there is none, or one of the other kind."""
    if (found := places().get(change.path)) is None:
        near = difflib.get_close_matches(change.path, places(), n=3, cutoff=0.5)
        raise InputError(
            f"the state has nothing at {change.path!r}",
            remedy=f"did you mean {' or '.join(near)}?" if near else "give a path such as task.goal",
        )
    if found.is_list is isinstance(change, Set):
        remedy = "it is a list: put elements into it, or drop them" if found.is_list else "it is a value: set it"
        raise InputError(f"{change.path!r} cannot be changed in this way", remedy=remedy)
    return found


class StateDocument:
    """Takes changes, and gives the state they lead to."""

    def __init__(self, state: State | None = None) -> None:
        self._state = state if state is not None else State()
        self._lists: dict[str, dict[str, Element]] = {}
        """The lists that were changed, by key; made when they first are."""
        self._values: dict[str, Any] = {}
        self._stale: set[str] = set()

    @property
    def state(self) -> State:
        """The state as it is now."""
        for path in self._stale:
            value = tuple(self._lists[path].values()) if path in self._lists else self._values[path]
            self._state = _with_value(self._state, path.split("."), value)
        self._stale.clear()
        self._values.clear()
        return self._state

    def check(self, changes: Iterable[Change], *, at: float, number: int) -> tuple[Change, ...]:
        """Return the changes as they will be written, with ids and times; raise `InputError` for those that cannot be.

        `number` makes the ids of new elements: that of the entry they will stand in.
        """
        checked: list[Change] = []
        new: defaultdict[str, set[str]] = defaultdict(set)
        for change in changes:
            place = _place(change)
            if isinstance(change, Drop):
                checked.append(change)
                continue
            value = _typed(place, _plain(place, change.value))
            if isinstance(value, Element):
                if not value.id:
                    # A state that was loaded may have any ids.
                    taken = (self._list(change.path), new[change.path])
                    value = _with_id(value, f"{number}.{len(checked) + 1}" if checked else str(number), taken)
                value = value if value.at else msgspec.structs.replace(value, at=at)
                new[change.path].add(value.id)
            checked.append(type(change)(change.path, value))
        self._check_order(checked)
        return tuple(checked)

    def apply(self, changes: Iterable[Change]) -> None:
        """Make changes that were checked when they were written."""
        for change in changes:
            path = change.path
            if (place := places().get(path)) is None:
                continue  # written by a later version that has more to remember
            if isinstance(change, Set):
                self._values[path] = _typed(place, change.value)
                for each in EPISODIC if path == EPISODES else ():
                    self._cap(each)
            elif isinstance(change, Drop):
                self._list(path).pop(change.key, None)
            else:
                value = _typed(place, change.value)
                self._list(path)[value.key] = value
                self._cap(path)
            self._stale.add(path)

    def _list(self, path: str) -> dict[str, Element]:
        if path not in self._lists:
            self._lists[path] = {element.key: element for element in attrgetter(path)(self._state)}
        return self._lists[path]

    def _cap(self, path: str) -> None:
        most = self._value(EPISODES) if path in EPISODIC else CAPS.get(path)
        held = self._list(path)
        while most is not None and len(held) > most:
            del held[next(iter(held))]
            self._stale.add(path)

    def _value(self, path: str) -> Any:
        return self._values[path] if path in self._values else attrgetter(path)(self._state)

    def _check_order(self, changes: Sequence[Change]) -> None:
        """Refuse a jump of the phase, a drop of what is not there, and a plan that contradicts itself."""
        changes_plan = any(change.path in (STEPS, CURRENT) for change in changes)
        steps = dict(self._list(STEPS)) if changes_plan else {}
        phase, current = self._value(PHASE), self._value(CURRENT)
        added: defaultdict[str, set[str]] = defaultdict(set)
        for change in changes:
            path = change.path
            if isinstance(change, Set):
                if path == PHASE:
                    check_jump(phase, change.value)
                    phase = change.value
                elif path == CURRENT:
                    current = change.value
            elif isinstance(change, Put):
                added[path].add(change.value.key)
                if path == STEPS:
                    steps[change.value.key] = change.value
            elif change.key not in self._list(path) and change.key not in added[path]:
                raise NotFoundError(f"{path} has no {change.key!r}", remedy="look at `session.state.value`")
            elif path == STEPS:
                steps.pop(change.key, None)
        if changes_plan:
            check_steps(tuple(steps.values()), current)  # type: ignore[arg-type]  # the list at STEPS holds steps


def _plain(place: Place, value: Any) -> Any:
    """Convert a value to plain JSON, so that it is the same in memory and when it is read again."""
    try:
        plain = msgspec.to_builtins(value, str_keys=True)
        msgspec.msgpack.encode(plain)
        _check_json(plain, MOST_NESTED)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InputError(
            f"{place.path} cannot hold this {type(value).__name__}: {error}",
            remedy="give text, numbers, lists and objects that JSON can say",
            path=place.path,
        ) from None
    return plain


def _typed(place: Place, value: Any) -> Any:
    try:
        return msgspec.convert(value, place.type)
    except msgspec.ValidationError as error:
        raise InputError(
            f"{place.path}: {error}", remedy="`State.schema()` says what it may hold", path=place.path
        ) from None


def _check_json(value: Any, depth: int) -> None:
    """Raise `ValueError` for what JSON has no word for, or what is nested too deep."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not a number that JSON has")
    if not isinstance(value, (dict, list)):
        return
    if not depth:
        raise ValueError(f"it is nested more than {MOST_NESTED} levels deep")
    for each in value.values() if isinstance(value, dict) else value:
        if isinstance(each, (dict, list, float)):
            _check_json(each, depth - 1)


def _with_id(value: Element, number: str, taken: Sequence[Container[str]]) -> Element:
    """Give an element an id of its kind and a number, and more where another has that id already."""
    made = f"{type(value).__name__.lower()}-{number}"
    id, more = made, 2
    while any(id in each for each in taken):
        id, more = f"{made}-{more}", more + 1
    return msgspec.structs.replace(value, id=id)


def with_ids(state: State, number: int) -> State:
    """Give each element of a state an id, so that it can be changed; raise `InputError` for two with one key."""
    made = 0
    for place in places().values():
        if not place.is_list:
            continue
        elements = attrgetter(place.path)(state)
        held: dict[str, Element] = {}
        given = {element.id for element in elements}
        for element in elements:
            made += not element.id
            kept = element if element.id else _with_id(element, f"{number}.{made}", (held, given))
            if kept.key in held:
                raise InputError(
                    f"{place.path} has two elements {kept.key!r}", remedy="give each its own", path=place.path
                )
            held[kept.key] = kept
        if made:
            state = _with_value(state, place.path.split("."), tuple(held.values()))
    check_steps(state.work.plan.steps, state.work.plan.current)
    return state


def _with_value(part: Any, names: Sequence[str], value: Any) -> Any:
    first, *rest = names
    return msgspec.structs.replace(part, **{first: _with_value(getattr(part, first), rest, value) if rest else value})
