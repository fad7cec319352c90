"""Changes of a state, as the journal keeps them: values that were set, elements that were put or dropped."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterator
from typing import Any, TypeAlias, get_args, get_origin, get_type_hints

import msgspec

from windowsill.errors import InputError
from windowsill.state.element import Element, Part
from windowsill.state.state import State


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
