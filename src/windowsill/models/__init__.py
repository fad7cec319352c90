"""The facts about a model: window, limits, prices, family, cache and signature rules."""

from __future__ import annotations

from windowsill.models.catalog import (
    Demands,
    Model,
    PriceList,
    Ratios,
    find,
    find_known,
    is_overflow,
    learn_window,
    names,
    signs_calls,
    wants_reasoning,
)
from windowsill.models.prices import Prices, known_prices, prices, record_usage, relative_prices

__all__ = [
    "Demands",
    "Model",
    "PriceList",
    "Prices",
    "Ratios",
    "find",
    "find_known",
    "is_overflow",
    "known_prices",
    "learn_window",
    "names",
    "prices",
    "record_usage",
    "relative_prices",
    "signs_calls",
    "wants_reasoning",
]
