"""Scores with their reasons, and what is remembered of them: what a message says is looked at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

import msgspec

from windowsill.errors import SettingError
from windowsill.history.survey import Survey, survey
from windowsill.history.view import Item, View

T = TypeVar("T")

MEASURED = 1_000_000
"""A window that sizes are tried on when they are stated."""

FORGET_AFTER = 1_000
"""Messages remembered beyond twice those visible, before the hidden ones are forgotten."""


class Reason(msgspec.Struct, frozen=True):
    """One part of a score."""

    what: str
    points: float

    def __str__(self) -> str:
        return f"{self.what} ({self.points:+.3g})"


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """What a message is worth, and why."""

    id: str
    seq: int
    value: float
    reasons: tuple[Reason, ...]
    """Their points add up to the value, before it is kept within its range."""
    category: str = ""


class Memory(Generic[T]):
    """What was found out about the messages of a view, for as long as the view lives."""

    def __init__(self) -> None:
        self._views: WeakKeyDictionary[View, tuple[Hashable, dict[Hashable, T]]] = WeakKeyDictionary()
        self._columns: WeakKeyDictionary[Survey, tuple[Hashable, list[T]]] = WeakKeyDictionary()

    def of(self, view: View, under: Hashable = None) -> dict[Hashable, T]:
        """What is known of a view's items by their keys; nothing when it was found out `under` something else."""
        before, known = self._views.get(view, (under, {}))
        if before != under:
            known = {}
        if len(known) > 2 * len(view.items) + FORGET_AFTER:
            visible = {key_of(item) for item in view.items}
            known = {key: value for key, value in known.items() if key in visible}
        self._views[view] = (under, known)
        return known

    def follow(self, view: View, find: Callable[[Item], T], under: Hashable = None) -> list[T]:
        """For each item what `find` says of it; asked once for each as long as `under` stays the same.

        The list is the one that is kept: `recall` gives one that may be changed.
        """
        known = self.of(view, under)
        place = survey(view)
        before, column = self._columns.get(place, (under, []))
        if before != under:
            column = []
        missing = view.items[len(column) :]
        # After a fold this is done for every item: most have their number for a key.
        keys = [key_of(item) if item.fold or item.cuts else item.seq for item in missing]
        values = list(map(known.get, keys))
        if None in values:
            for item, key in zip(missing, keys, strict=True):
                if key not in known:
                    known[key] = find(item)
        column.extend(map(known.__getitem__, keys))
        self._columns[place] = (under, column)
        return column

    def recall(self, view: View, find: Callable[[Item], T], under: Hashable = None) -> list[T]:
        """The same in a list of its own."""
        return self.follow(view, find, under).copy()


def key_of(item: Item) -> Hashable:
    """What tells an item apart, as it is shown now, from all others of its session."""
    if not item.cuts and not item.fold:
        return item.seq
    return (item.seq, item.span, *((cut.block, cut.fold, cut.span) for cut in item.cuts))


def check_settings(strategy: object, names: Iterable[str], low: float, high: float, what: str) -> None:
    """Refuse settings that are not between `low` and `high`."""
    for name in names:
        value = getattr(strategy, name)
        if not low <= value <= high:
            raise SettingError(name, value, what)


def check_words(strategy: object, names: Iterable[str]) -> None:
    """Refuse lists in which a word is empty: it would be found everywhere."""
    for name in names:
        if not all(word.strip() for word in getattr(strategy, name)):
            raise SettingError(name, getattr(strategy, name), "words that are not empty")
