"""One list of the state with what was found out about its elements: only new ones are looked at again."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nlargest
from operator import attrgetter, is_
from typing import Any

from windowsill.state.building.aim import Aim
from windowsill.state.building.frame import Drawn
from windowsill.state.building.kinds import Kind
from windowsill.state.building.nodes import node
from windowsill.state.building.pen import Pen
from windowsill.state.building.picks import Picks
from windowsill.state.state import State


class Collection:
    """Elements are told apart by identity, as they never change. What left the list is forgotten with it."""

    def __init__(self, kind: Kind, picks: Picks, pen: Pen) -> None:
        self.kind = kind
        self.elements: tuple[Any, ...] = ()
        self.weight = 0
        """Tokens of all elements."""
        self._picks = picks
        self._pen = pen
        self._aim: Aim | None = None
        self._weights: list[int] = []
        self._ranks: list[Any] = []
        self._best: list[int] | None = None
        self._drawn: dict[int, Drawn] = {}
        self._by_key: dict[str, Any] | None = None

    def refresh(self, elements: tuple[Any, ...], aim: Aim) -> None:
        """Take in what the list holds now."""
        old = self.elements
        if elements is old and aim is self._aim:
            return
        start, old_end, new_end = differing(old, elements)
        known = {id(each): place for place, each in enumerate(old[start:old_end], start)}
        new = elements[start:new_end]
        places = [known.get(id(each)) for each in new]
        weights = [
            self._pen.weigh(node(self.kind.look, each)) if place is None else self._weights[place]
            for each, place in zip(new, places, strict=True)
        ]
        if aim is self._aim:
            unknown = iter(self._ranked([each for each, place in zip(new, places, strict=True) if place is None], aim))
            ranks = [next(unknown) if place is None else self._ranks[place] for place in places]
        else:
            ranks = self._ranked(elements, aim)
        # Only from here on anything changes: counting and comparing are others' code, which may fail.
        self.weight += sum(weights) - sum(self._weights[start:old_end])
        self._weights[start:old_end] = weights
        self._ranks = [*self._ranks[:start], *ranks, *self._ranks[old_end:]] if aim is self._aim else ranks
        for gone in known.keys() - {id(each) for each in new}:
            self._drawn.pop(gone, None)
        self.elements, self._aim, self._best, self._by_key = elements, aim, None, None

    def _ranked(self, elements: Sequence[Any], aim: Aim) -> list[Any]:
        kind = self.kind
        if kind.about is None:
            return [kind.rank(each, 1.0) if kind.holds(each) else None for each in elements]
        unstated = [each for each in elements if kind.holds(each) and _stated(each) is None]
        found = iter(aim.relevance([kind.about(each) for each in unstated]))
        ranks: list[Any] = []
        for each in elements:
            if not kind.holds(each):
                ranks.append(None)
                continue
            stated = _stated(each)
            near = next(found) if stated is None else stated
            ranks.append(kind.rank(each, near) if aim.near(near) else None)
        return ranks

    def best(self, now: float, state: State) -> list[int]:
        """The places of the elements that are chosen, the most important first."""
        fresh, picks = self.kind.fresh, self._picks
        if fresh is None and self._best is not None:
            return self._best
        passing = [place for place, rank in enumerate(self._ranks) if rank is not None]
        if fresh is not None:
            passing = [place for place in passing if fresh(self.elements[place], now, state, picks)]
        if self.kind.newest:
            passing.reverse()
        most = getattr(picks, self.kind.most) if self.kind.most else len(passing)
        if self.kind.latest_of or most >= len(passing):
            best = sorted(passing, key=self._ranks.__getitem__, reverse=True)
        else:
            best = nlargest(most, passing, key=self._ranks.__getitem__)
        self._best = self._one_of_each(best) if self.kind.latest_of else best
        return self._best

    def _one_of_each(self, places: list[int]) -> list[int]:
        field = attrgetter(self.kind.latest_of)
        first: dict[Any, int] = {}
        for place in places:
            first.setdefault(field(self.elements[place]), place)
        return list(first.values())

    def drawn(self, element: Any) -> Drawn:
        """An element in its format."""
        found = self._drawn.get(id(element))
        if found is None:
            found = self._drawn[id(element)] = self._pen.draw(node(self.kind.look, element))
        return found

    def find(self, key: str) -> Any:
        """The element with this key, or `None`."""
        if self._by_key is None:
            self._by_key = dict(zip(map(attrgetter("key"), self.elements), self.elements, strict=True))
        return self._by_key.get(key)


def _stated(element: Any) -> float | None:
    """The relevance that somebody found out before, where there is one."""
    found: float | None = getattr(element, "relevance", None)
    return found


def differing(old: tuple[Any, ...], new: tuple[Any, ...]) -> tuple[int, int, int]:
    """Where two lists differ: from the first place on, up to the second in the old one and the third in the new one."""
    most = min(len(old), len(new))
    start = bytes(map(is_, old, new)).find(0)
    if start < 0:
        start = most
    same = bytes(map(is_, reversed(old), reversed(new))).find(0)
    same = min(most - start, same if same >= 0 else most)
    return start, len(old) - same, len(new) - same
