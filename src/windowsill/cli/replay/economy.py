"""What a session costs, against sending everything each time: both simulated with the model's prices and cache.

A cached prefix is paid at the cache-read price, the rest at the cache-write price where breakpoints are explicit and at
the input price elsewhere, answers at the output price. The request that is sent has as its cached prefix what it shares
with the one before; the unreduced request has all of the one before. A cache that was left alone for longer than it
lives, by the recorded times, is cold for both.
"""

from __future__ import annotations

import msgspec

from windowsill.models import Model, Prices, prices


class Bill(msgspec.Struct, frozen=True):
    """What one policy paid, in input tokens: prices of different models, and unknown ones, add up."""

    sent: float = 0.0
    everything: float = 0.0
    unit: float | None = None
    """Dollars for an input token, where the price is known."""


class Economy:
    """Follows both policies through one session."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._prices = prices(model)
        self._last_at: float | None = None
        self._everything_before = 0

    def pay(self, *, tokens: int, stable: int, everything: int, output: int, at: float | None) -> Bill:
        """One more model call."""
        cold = at is not None and self._last_at is not None and at - self._last_at > self._model.cache_lifetime
        self._last_at = at if at is not None else self._last_at
        before, self._everything_before = self._everything_before, everything
        unit = self._prices.input or 1.0
        answer = output * self._prices.output
        return Bill(
            sent=(request_cost(self._prices, self._model, tokens, 0 if cold else stable) + answer) / unit,
            everything=(request_cost(self._prices, self._model, everything, 0 if cold else before) + answer) / unit,
            unit=unit if self._prices.known else None,
        )


def request_cost(price: Prices, model: Model, tokens: int, prefix: int) -> float:
    """Dollars for a request of which `prefix` tokens at its start were sent before."""
    if model.cache == "none" or tokens < model.cache_minimum:
        return tokens * price.input
    cached = min(prefix, tokens) if prefix >= model.cache_minimum else 0
    rest = price.cache_write if model.cache == "explicit" else price.input
    return cached * price.cache_read + (tokens - cached) * rest
