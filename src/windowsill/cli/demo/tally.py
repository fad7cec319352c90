"""What the requests of the demo add up to: tokens, cache hits and cost, with Windowsill and when everything is sent."""

from __future__ import annotations

import msgspec

from windowsill.compose.payload import FoldMade, Report
from windowsill.models import Model
from windowsill.models.prices import prices
from windowsill.replay.costs import request_cost


class Side(msgspec.Struct):
    """The requests of one way to work, added up."""

    peak: int = 0
    sent: int = 0
    cached: int = 0
    cost: float = 0.0

    def add(self, tokens: int, cached: int, cost: float) -> None:
        """One more request, of which a prompt cache can serve `cached` tokens."""
        self.peak = max(self.peak, tokens)
        self.sent += tokens
        self.cached += cached
        self.cost += cost

    @property
    def hits(self) -> float:
        """The share of all tokens that a prompt cache can serve."""
        return self.cached / self.sent if self.sent else 0.0


class Tally:
    """The running totals of a demo."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.price = prices(model)
        self.fitted = Side()
        self.whole = Side()
        self.requests = 0
        self.tools = 0
        self.sizes: list[int] = []
        self.folds: list[FoldMade] = []
        self.problems: list[str] = []
        """What a provider would have refused."""
        self._whole_before = 0

    def request(self, report: Report, whole: int) -> None:
        """Count a request, and the one with everything in it that would have been sent instead."""
        self.requests += 1
        self.sizes.append(report.tokens)
        self.folds += report.folds
        self._add(self.fitted, report.tokens, report.stable)
        self._add(self.whole, whole, self._whole_before)
        self._whole_before = whole

    def _add(self, side: Side, tokens: int, stable: int) -> None:
        # A provider caches no prefix shorter than this.
        cached = stable if stable >= self.model.cache_minimum else 0
        side.add(tokens, cached, request_cost(self.price, self.model, tokens, cached))

    def answered(self, tokens: int) -> None:
        """Count an answer: it costs the same both ways."""
        for side in (self.fitted, self.whole):
            side.cost += tokens * self.price.output

    @property
    def ratio(self) -> float:
        """The cost against that of sending everything."""
        return self.fitted.cost / self.whole.cost if self.whole.cost else 1.0


def in_words(fold: FoldMade) -> str:
    """A fold as a person reads it."""
    messages = "1 message" if fold.messages == 1 else f"{fold.messages:,} messages"
    return f"{fold.id} {fold.kind}: {messages}, {fold.before:,} -> {fold.after:,} tokens"
