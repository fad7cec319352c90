"""Scores of messages with their reasons, and a memory of them: what a message says is looked at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from weakref import WeakKeyDictionary

import msgspec

from windowsill.history.view import Item, View


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


class ScoreMemory:
    """What the visible messages of each view are worth, for as long as the view lives."""

    def __init__(self) -> None:
        self._views: WeakKeyDictionary[View, tuple[Hashable, dict[Hashable, float]]] = WeakKeyDictionary()

    def values(self, view: View, find: Callable[[Item], float], under: Hashable = None) -> list[float]:
        """Return what `find` says of each item; each is asked for once as long as `under` stays the same."""
        before, known = self._views.get(view, (under, {}))
        if before != under:
            known = {}
        found = {}
        for item in view.items:
            key = key_of(item)
            found[key] = known[key] if key in known else find(item)
        self._views[view] = (under, found)
        return list(found.values())


def key_of(item: Item) -> Hashable:
    """Return what tells an item apart, as it is shown now, from all others of its session."""
    if not item.cuts and not item.fold:
        return item.seq
    return (item.seq, item.span, *((cut.block, cut.fold, cut.span) for cut in item.cuts))
