"""The goal, as what elements are compared with."""

from __future__ import annotations

from collections.abc import Sequence

from windowsill.archive.embedders import Embedder
from windowsill.archive.relevance import relevance
from windowsill.state.building.nodes import clean


class Aim:
    """A goal, and how near to it texts are. Without a goal everything is relevant."""

    def __init__(self, goal: str, threshold: float, embedder: Embedder | None) -> None:
        self.goal = goal
        # As it is shown: others' code need not know what to do with half a character.
        self._clean = clean(goal)
        self._threshold = threshold
        self._embedder = embedder
        # A goal without a single word is near to nothing, not even to itself.
        self._none = not goal.strip() or relevance(self._clean, [self._clean], embedder) == [0.0]

    def near(self, relevance: float) -> bool:
        """Whether something so relevant is shown."""
        return self._none or relevance > self._threshold

    def relevance(self, texts: Sequence[str]) -> list[float]:
        """For each text a number from 0 to 1."""
        return [1.0] * len(texts) if self._none else relevance(self._clean, [*map(clean, texts)], self._embedder)
