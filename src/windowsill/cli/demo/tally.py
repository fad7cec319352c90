"""What the requests of the demo add up to: tokens, cache hits and cost, with Windowsill and when everything is sent."""

from __future__ import annotations

import msgspec

from windowsill.compose.payload import FoldMade, Report
from windowsill.models import Model
from windowsill.models.prices import Prices, prices


class Side(msgspec.Struct):
    """The requests of one way to work, added up."""

    peak: int = 0
    sent: int = 0
    cached: int = 0
    cost: float = 0.0

    def add(self, tokens: int, cached: int, price: Prices) -> None:
        """One more request, of which a prompt cache can serve `cached` tokens."""
        self.peak = max(self.peak, tokens)
        self.sent += tokens
        self.cached += cached
        self.cost += cached * price.cache_read + (tokens - cached) * price.cache_write

    @property
    def hits(self) -> float:
        """The share of all tokens that a prompt cache can serve."""
        return self.cached / self.sent if self.sent else 0.0


class Tally:
    """The running totals of a demo."""

    def __init__(self, model: Model) -> None:
        self.price = prices(model)
        self.cache_minimum = model.cache_minimum
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
        self.fitted.add(report.tokens, self._cached(report.stable), self.price)
        self.whole.add(whole, self._cached(self._whole_before), self.price)
        self._whole_before = whole

    def _cached(self, stable: int) -> int:
        """What a cache serves of a prefix: nothing when it is shorter than the provider caches."""
        return stable if stable >= self.cache_minimum else 0

    @property
    def ratio(self) -> float:
        """The cost against that of sending everything."""
        return self.fitted.cost / self.whole.cost if self.whole.cost else 1.0


def in_words(fold: FoldMade) -> str:
    """A fold as a person reads it."""
    messages = "1 message" if fold.messages == 1 else f"{fold.messages:,} messages"
    return f"{fold.id} {fold.kind}: {messages}, {fold.before:,} -> {fold.after:,} tokens"
