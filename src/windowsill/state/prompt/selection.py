"""Choose from the lists of a state what is worth showing for its goal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from windowsill.search.embeddings import Embedder
from windowsill.search.ranking import relevance
from windowsill.state.layers import State
from windowsill.state.prompt.catalogue import PLACES, Kind, Limits, node_of
from windowsill.state.prompt.fit import Item
from windowsill.state.prompt.formats import Formatter, Rendered, clean

NAMELESS = "="
"""Stands between a path and a digest that serves as a key: where a key stands, any sign may be its first."""


class Goal:
    """The goal of a task, and how near to it texts are. Without a goal everything is relevant."""

    def __init__(self, text: str, threshold: float, embedder: Embedder | None) -> None:
        self.text = text
        # As it is shown: others' code need not know what to do with half a character.
        self._clean = clean(text)
        self._threshold = threshold
        self._embedder = embedder
        # A goal without a single word is near to nothing, not even to itself.
        self._none = not text.strip() or relevance(self._clean, [self._clean], embedder) == [0.0]

    def is_near(self, relevance: float) -> bool:
        """Tell whether something so relevant is shown."""
        return self._none or relevance > self._threshold

    def relevance(self, texts: Sequence[str]) -> list[float]:
        """Compare texts with the goal: for each a number from 0 to 1."""
        return [1.0] * len(texts) if self._none else relevance(self._clean, [*map(clean, texts)], self._embedder)


class Selection:
    """Chooses from one list of the state.

    Elements never change, so what was found out about one (its rank, its text, its tokens) is kept, by its identity,
    while it stays in the list.
    """

    def __init__(self, kind: Kind, limits: Limits, formatter: Formatter) -> None:
        self.kind = kind
        self.elements: tuple[Any, ...] = ()
        self.items: list[Item] = []
        """The chosen elements, in the order of the text."""
        self.until = math.inf
        """The moment from which others may be chosen, though the state stays the same."""
        self._limits = limits
        self._formatter = formatter
        self._goal: Goal | None = None
        self._ranks: dict[int, Any] = {}
        self._rendered: dict[int, Rendered] = {}
        self._by_key: dict[str, Any] | None = None
        self._tokens: int | None = None

    def choose(self, state: State, goal: Goal, now: float) -> list[Item]:
        """Choose what is shown of the list as it is in this state."""
        elements = self.kind.elements(state)
        if self.kind.expiry is None and elements is self.elements and goal is self._goal:
            return self.items
        ranks = self._rank(elements, goal)
        rendered = {id(each): known for each in elements if (known := self._rendered.get(id(each)))}
        chosen, until = self._best(elements, ranks, state, now)
        items = self._items(elements, chosen, rendered)
        # Only from here on anything changes: counting and comparing are others' code, which may fail.
        self._ranks, self._rendered, self.items, self.until = ranks, rendered, items, until
        self.elements, self._goal, self._by_key, self._tokens = elements, goal, None, None
        return items

    @property
    def tokens(self) -> int:
        """Tokens of all elements, chosen or not."""
        if self._tokens is None:
            self._tokens = sum(self.render(each).tokens for each in self.elements)
        return self._tokens

    def find(self, key: str) -> Any:
        """Return the element with this key, or `None`."""
        if self._by_key is None:
            self._by_key = {each.key: each for each in self.elements}
        return self._by_key.get(key)

    def render(self, element: Any) -> Rendered:
        """Return an element of the list in its format."""
        return self._render(element, self._rendered)

    def _render(self, element: Any, known: dict[int, Rendered]) -> Rendered:
        found = known.get(id(element))
        if found is None:
            found = known[id(element)] = self._formatter.render(node_of(self.kind.look, element))
        return found

    def _rank(self, elements: tuple[Any, ...], goal: Goal) -> dict[int, Any]:
        """Rank elements by their identity; `None` is not shown."""
        kind, known = self.kind, self._ranks if goal is self._goal else {}
        ranks = {id(each): known.get(id(each)) for each in elements}
        new = [each for each in elements if id(each) not in known and kind.holds(each)]
        if kind.about is None:
            return ranks | {id(each): kind.rank(each, 1.0) for each in new}
        # What somebody found out before is not found out again.
        near: dict[int, float] = {id(each): value for each in new if (value := _stated_relevance(each)) is not None}
        unstated = [each for each in new if id(each) not in near]
        near |= zip(map(id, unstated), goal.relevance([kind.about(each) for each in unstated]), strict=True)
        for each in new:
            ranks[id(each)] = kind.rank(each, near[id(each)]) if goal.is_near(near[id(each)]) else None
        return ranks

    def _best(
        self, elements: tuple[Any, ...], ranks: dict[int, Any], state: State, now: float
    ) -> tuple[list[int], float]:
        """Return the places of what is chosen, the most important first, and until when that holds."""
        kind, until = self.kind, math.inf
        passing = [place for place, each in enumerate(elements) if ranks[id(each)] is not None]
        if kind.expiry is not None:
            ends = {place: kind.expiry(elements[place], state, self._limits) for place in passing}
            passing = [place for place in passing if now < ends[place]]
            until = min((ends[place] for place in passing), default=math.inf)
        if kind.newest:
            passing.reverse()
        best = sorted(passing, key=lambda place: ranks[id(elements[place])], reverse=True)
        if kind.latest_of:
            field = attrgetter(kind.latest_of)
            latest: dict[Any, int] = {}
            for place in best:
                latest.setdefault(field(elements[place]), place)
            best = list(latest.values())
        return best[: getattr(self._limits, kind.limit)] if kind.limit else best, until

    def _items(self, elements: tuple[Any, ...], chosen: list[int], rendered: dict[int, Rendered]) -> list[Item]:
        kind, place = self.kind, PLACES[self.kind.path]
        items: list[Item] = []
        used: set[str] = set()
        for spot, rank, where in sorted((rank if kind.by_rank else at, rank, at) for rank, at in enumerate(chosen)):
            key, shown = elements[where].key, self._render(elements[where], rendered)
            # Without a key of its own only what it says tells it apart.
            named = key and key not in used
            used.add(key)
            name = f"{kind.path}#{key}" if named else f"{kind.path}{NAMELESS}{shown.digest}"
            items.append(Item(kind, key, name, shown, (rank, place), (place, spot)))
        return items


def _stated_relevance(element: Any) -> float | None:
    found: float | None = getattr(element, "relevance", None)
    return found
