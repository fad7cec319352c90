"""Tells those who measure what a model call used, and what that cost."""

from __future__ import annotations

from functools import lru_cache

from windowsill import telemetry
from windowsill.errors import UnknownModelError
from windowsill.messages import Usage
from windowsill.models import Model, Prices, find, prices
from windowsill.telemetry.metrics import harmless

MOST_MODELS = 64
"""Models whose prices are kept at hand: looking one up takes longer than all else that is told of a call."""


def meter(usage: Usage | None, model: Model | str, provider: str = "") -> None:
    """Count the tokens of a call, the share of them that a cache served, and dollars where the prices are known."""
    if usage is None or not telemetry.measures():
        return
    name, seller = (model.name, model.provider) if isinstance(model, Model) else (model, provider)
    cost = None
    with harmless():
        cost = _cost(usage, model)
    telemetry.usage(usage, model=name, provider=seller, cost=cost)


def _cost(usage: Usage, model: Model | str) -> float | None:
    try:
        price = _prices(model)
    except UnknownModelError:
        return None
    if not price.known:
        return None
    return price.cost(usage)


@lru_cache(MOST_MODELS)
def _prices(model: Model | str) -> Prices:
    return prices(model if isinstance(model, Model) else find(model))
