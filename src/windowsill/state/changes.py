"""Changes of a state, as the journal keeps them: values that were set, elements that were put or dropped."""

from __future__ import annotations

import difflib
import functools
import math
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any, TypeAlias, get_args, get_origin, get_type_hints

import msgspec

from windowsill.errors import InputError, NotFoundError
from windowsill.state.layers import Element, Part, State, check_jump, check_steps


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
    """Of the value, or of the elements of the list."""
    is_list: bool


@functools.cache
def places() -> dict[str, Place]:
    """Every place by its path, such as `task.goal` or `memory.semantic.facts`."""
    return {place.path: place for place in _within(State, "")}


def place(path: str, *, is_list: bool | None = None) -> Place:
    """The place of a path; `InputError` when there is none, or one of the other kind."""
    found = places().get(path)
    if found is None:
        near = difflib.get_close_matches(path, places(), n=3, cutoff=0.5)
        raise InputError(
            f"the state has nothing at {path!r}",
            remedy=f"did you mean {' or '.join(near)}?" if near else "give a path such as task.goal",
        )
    if is_list is not None and found.is_list is not is_list:
        what = "a list: put elements into it, or drop them" if found.is_list else "a value: set it"
        raise InputError(f"{path!r} cannot be changed in this way", remedy=f"it is {what}")
    return found


def _within(part: type[Part], prefix: str) -> Iterator[Place]:
    for name, hint in get_type_hints(part, include_extras=True).items():
        path = f"{prefix}{name}"
        element = _element_of(hint)
        if element is not None:
            yield Place(path, element, is_list=True)
        elif _holds_lists(hint):
            yield from _within(hint, f"{path}.")
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


LATEST = 100
"""How many of what happens at every step are kept in sight; all of them are in the history."""

OBSERVATIONS = 2_000

CAPS = {
    "runtime.execution.tool_calls": LATEST,
    "runtime.execution.decisions": LATEST,
    "runtime.execution.errors": LATEST,
    "runtime.execution.warnings": LATEST,
    "runtime.failures": LATEST,
    "memory.short_term.turns": LATEST,
    "memory.short_term.observations": LATEST,
    "evidence.observations": OBSERVATIONS,
}
"""The most elements of a list; the oldest leave it."""

EPISODES = "memory.episodic.max_entries"
EPISODIC = ("memory.episodic.summaries", "memory.episodic.decisions", "memory.episodic.milestones")

MOST_NESTED = 100
"""How deep a value may be nested: one that is nested deeper could be written, and not be read from everywhere."""

STEPS, CURRENT, PHASE = "work.plan.steps", "work.plan.current", "runtime.phase"


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
            self._state = _replaced(self._state, path.split("."), value)
        self._stale.clear()
        self._values.clear()
        return self._state

    def checked(self, changes: Iterable[Change], *, at: float, number: int) -> tuple[Change, ...]:
        """The changes as they will be written, with ids and times in place; `InputError` for those that cannot be.

        `number` makes the ids of new elements: that of the entry they will stand in.
        """
        made: list[Change] = []
        new: defaultdict[str, set[str]] = defaultdict(set)
        for change in changes:
            where = place(change.path, is_list=not isinstance(change, Set))
            if isinstance(change, Drop):
                made.append(change)
                continue
            value = _typed(where, _plain(where, change.value))
            if isinstance(value, Element):
                if not value.id:
                    # A state that was loaded may have any ids.
                    taken = (self._list(change.path), new[change.path])
                    value = named(value, f"{number}.{len(made) + 1}" if made else str(number), taken)
                value = value if value.at else msgspec.structs.replace(value, at=at)
                new[change.path].add(value.id)
            made.append(Set(change.path, value) if isinstance(change, Set) else Put(change.path, value))
        self._check(made)
        return tuple(made)

    def apply(self, changes: Iterable[Change]) -> None:
        """Take in changes that were checked when they were written."""
        for change in changes:
            path = change.path
            where = places().get(path)
            if where is None:
                # Written by a later version that has more to remember.
                continue
            if isinstance(change, Set):
                self._values[path] = _typed(where, change.value)
                self._stale.add(path)
                if path == EPISODES:
                    for each in EPISODIC:
                        self._cap(each)
                continue
            held = self._list(path)
            if isinstance(change, Drop):
                held.pop(change.key, None)
            else:
                value = _typed(where, change.value)
                held[value.key] = value
                self._cap(path)
            self._stale.add(path)

    def _list(self, path: str) -> dict[str, Element]:
        held = self._lists.get(path)
        if held is None:
            held = self._lists[path] = {element.key: element for element in _at(self._state, path)}
        return held

    def _cap(self, path: str) -> None:
        most = self._value(EPISODES) if path in EPISODIC else CAPS.get(path)
        held = self._list(path)
        while most is not None and len(held) > most:
            del held[next(iter(held))]
            self._stale.add(path)

    def _value(self, path: str) -> Any:
        return self._values[path] if path in self._values else _at(self._state, path)

    def _check(self, changes: Sequence[Change]) -> None:
        phase = self._value(PHASE)
        for change in changes:
            if change.path == PHASE and isinstance(change, Set):
                check_jump(phase, change.value)
                phase = change.value
        self._check_drops(changes)
        if any(change.path in (STEPS, CURRENT) for change in changes):
            self._check_plan(changes)

    def _check_drops(self, changes: Sequence[Change]) -> None:
        added: defaultdict[str, set[str]] = defaultdict(set)
        for change in changes:
            if isinstance(change, Put):
                added[change.path].add(change.value.key)
            elif (
                isinstance(change, Drop)
                and change.key not in self._list(change.path)
                and change.key not in added[change.path]
            ):
                raise NotFoundError(f"{change.path} has no {change.key!r}", remedy="look at `session.state.value`")

    def _check_plan(self, changes: Sequence[Change]) -> None:
        steps = dict(self._list(STEPS))
        current = self._value(CURRENT)
        for change in changes:
            if change.path == CURRENT and isinstance(change, Set):
                current = change.value
            elif change.path == STEPS and isinstance(change, Drop):
                steps.pop(change.key, None)
            elif change.path == STEPS and isinstance(change, Put):
                steps[change.value.key] = change.value
        check_steps(tuple(steps.values()))  # type: ignore[arg-type]  # the list at STEPS holds steps
        if current and current not in steps:
            raise NotFoundError(f"the plan has no step {current!r}", remedy=f"it has {', '.join(steps) or 'none'}")


def _plain(where: Place, value: Any) -> Any:
    """The value as JSON has it, so that what is in memory and what is read again later are the same."""
    try:
        plain = msgspec.to_builtins(value, str_keys=True)
        msgspec.msgpack.encode(plain)
        _check_sayable(plain, MOST_NESTED)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InputError(
            f"{where.path} cannot hold this {type(value).__name__}: {error}",
            remedy="give text, numbers, lists and objects that JSON can say",
            path=where.path,
        ) from None
    return plain


def _typed(where: Place, value: Any) -> Any:
    """The value as its place has it."""
    try:
        return msgspec.convert(value, where.type)
    except msgspec.ValidationError as error:
        raise InputError(
            f"{where.path}: {error}", remedy="`State.schema()` says what it may hold", path=where.path
        ) from None


def _check_sayable(value: Any, deep: int) -> None:
    """`ValueError` for what JSON cannot say, or only so deep that not everybody can read it."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is no number that JSON has")
    if not isinstance(value, (dict, list)):
        return
    if not deep:
        raise ValueError(f"it is nested more than {MOST_NESTED} levels deep")
    for each in value.values() if isinstance(value, dict) else value:
        _check_sayable(each, deep - 1)


def named(value: Element, number: str, taken: Sequence[Container[str]]) -> Element:
    """The element with an id made of its kind and a number, and of more where somebody has that id already."""
    made = f"{type(value).__name__.lower()}-{number}"
    id, more = made, 2
    while any(id in each for each in taken):
        id, more = f"{made}-{more}", more + 1
    return msgspec.structs.replace(value, id=id)


def whole(state: State, number: int) -> State:
    """A state as it can be changed afterwards, each element with an id; `InputError` for two that share their key."""
    made = 0
    for where in places().values():
        if not where.is_list:
            continue
        held: dict[str, Element] = {}
        given = {element.id for element in _at(state, where.path)}
        for element in _at(state, where.path):
            made += not element.id
            kept = element if element.id else named(element, f"{number}.{made}", (held, given))
            if kept.key in held:
                raise InputError(
                    f"{where.path} has two elements {kept.key!r}", remedy="give each its own", path=where.path
                )
            held[kept.key] = kept
        if made:
            state = _replaced(state, where.path.split("."), tuple(held.values()))
    current, steps = state.work.plan.current, [step.id for step in state.work.plan.steps]
    if current and current not in steps:
        raise NotFoundError(f"the plan has no step {current!r}", remedy=f"it has {', '.join(steps) or 'none'}")
    return state


def _at(state: Any, path: str) -> Any:
    for name in path.split("."):
        state = getattr(state, name)
    return state


def _replaced(part: Any, names: Sequence[str], value: Any) -> Any:
    first, *rest = names
    return msgspec.structs.replace(part, **{first: _replaced(getattr(part, first), rest, value) if rest else value})
