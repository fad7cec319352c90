"""The prices of a model's tokens."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from windowsill import telemetry
from windowsill.messages import Usage
from windowsill.models.catalog import Model, PriceList, find_known
from windowsill.telemetry.spans import harmless
from windowsill.text import load_table

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice


MILLION = 1_000_000

UNKNOWN_OUTPUT = 5.0
"""The price of an answer token in input tokens where none is known: the usual ratio."""

UNKNOWN_CACHE_READ = 0.1
"""A cached token costs a tenth with most providers."""

CACHE_WRITE = {"explicit": 1.25, "automatic": 1.0, "none": 1.0}
"""Writing to a cache costs a quarter more where breakpoints are explicit, and nothing where it is automatic."""

_SELLERS = {"alibaba": ("openrouter", "qwen/"), "meta": ("openrouter", "meta-llama/")}
"""Open models have no price of their own; the largest reseller's stands in for it."""


MOST_MODELS = 64
"""Models whose prices are kept at hand: looking one up takes longer than all else that is recorded of a call."""

_ENDINGS = ("", "-instruct", "-preview", "-latest")
"""Endings that sellers put behind the names of the table."""


class Prices(msgspec.Struct, frozen=True, kw_only=True):
    """Dollars for one token. Where `known` is false they are only relative: an input token is 1."""

    input: float
    output: float
    cache_read: float
    cache_write: float
    known: bool = True

    def cost(self, usage: Usage) -> float:
        """Compute what a call costs that used so much."""
        return (
            usage.input * self.input
            + usage.output * self.output
            + usage.cache_read * self.cache_read
            + usage.cache_write * self.cache_write
        )


def prices(model: Model) -> Prices:
    """Find the prices of a model; the newest, and the lowest tier where they grow with length."""
    if model.prices is not None:
        listed = model.prices
        return _prices(model, listed.input, listed.output, listed.cache_read, listed.cache_write)
    found = _look_up(model)
    if found is not None:
        paid = [_amount(found, f"{kind}_mtok") for kind in ("input", "output", "cache_read", "cache_write")]
        if paid[0] is not None and paid[1] is not None:
            return _prices(model, paid[0], paid[1], paid[2], paid[3])
    relative = _prices(model, MILLION, UNKNOWN_OUTPUT * MILLION, None, None)
    return msgspec.structs.replace(relative, known=False)


def relative_prices(model: Model) -> Prices:
    """Return the prices of a model where an input token is 1, from a table of our own: the price list loads slowly."""
    ratios = load_table("windowsill.models", "price_ratios.toml").get(model.name, {})
    listed = model.prices or PriceList(**{"input": 1.0, "output": UNKNOWN_OUTPUT, **ratios})
    found = _prices(model, listed.input, listed.output, listed.cache_read, listed.cache_write)
    fresh = found.input or 1.0
    return Prices(
        input=1.0,
        output=found.output / fresh,
        cache_read=found.cache_read / fresh,
        cache_write=found.cache_write / fresh,
        known=False,
    )


def _prices(model: Model, input: float, output: float, cache_read: float | None, cache_write: float | None) -> Prices:
    return Prices(
        input=input / MILLION,
        output=output / MILLION,
        cache_read=(UNKNOWN_CACHE_READ * input if cache_read is None else cache_read) / MILLION,
        cache_write=(CACHE_WRITE[model.cache] * input if cache_write is None else cache_write) / MILLION,
    )


def _look_up(model: Model) -> ModelPrice | None:
    # Loaded on use: the price data takes longer to import than everything else together.
    from genai_prices.data import providers  # noqa: PLC0415

    seller, prefix = _SELLERS.get(model.provider, (model.provider, ""))
    provider = next((each for each in providers if each.id == seller), None)
    if provider is None:
        return None
    for ending in _ENDINGS:
        found = provider.find_model(f"{prefix}{model.name}{ending}")
        if found is not None:
            return _newest_price(found)
    return None


def _newest_price(found: ModelInfo) -> ModelPrice:
    from genai_prices.types import ModelPrice, StartDateConstraint  # noqa: PLC0415  as above

    if isinstance(found.prices, ModelPrice):
        return found.prices
    lasting = [each for each in found.prices if isinstance(each.constraint, StartDateConstraint | None)]
    return (lasting or found.prices)[-1].prices


def _amount(price: ModelPrice, field: str) -> float | None:
    value = getattr(price, field, None)
    value = getattr(value, "base", value)
    return None if value is None else float(value)


def record_usage(usage: Usage | None, model: Model | str, provider: str = "") -> None:
    """Record the tokens of a call, the share of them that a cache served, and dollars where the prices are known."""
    if usage is None or not telemetry.is_measured():
        return
    name, seller = (model.name, model.provider) if isinstance(model, Model) else (model, provider)
    cost = None
    with harmless():
        price = known_prices(model)
        cost = price.cost(usage) if price is not None else None
    telemetry.record_usage(usage, model=name, provider=seller, cost=cost)


@lru_cache(MOST_MODELS)
def known_prices(model: Model | str | None) -> Prices | None:
    """Return the prices of a model; `None` where they, or the model, are not known."""
    known = model if isinstance(model, Model) else find_known(model)
    found = prices(known) if known is not None else None
    return found if found is not None and found.known else None
