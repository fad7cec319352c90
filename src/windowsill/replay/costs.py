"""The cost of a session: simulated against sending everything, and compared with the recorded price.

*Simulated*: a cached prefix is paid at the cache-read price, the rest at the cache-write price where breakpoints are
explicit and at the input price elsewhere, answers at the output price. A request that is sent has as its cached prefix
what it shares with the one before; the unreduced request has all of the one before. A cache that was left alone for
longer than it lives, by the recorded times, is cold for both.

*Recorded*: the usage that providers reported is part of the transcript, one entry per call; dollars are at the list
prices of the recorded model. A transcript has no system prompt and no tools, but the provider counted them: what the
first request of a session had beyond its messages is taken as their size, and added to every request that is compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from windowsill.messages import Usage
from windowsill.models import Model, Prices, known_prices, prices
from windowsill.replay.walk import ModelCall
from windowsill.transcripts import Charge

LONG_WRITE = 2.0
"""A token that stays in Anthropic's cache for an hour costs twice an input token to write."""

NAMELESS = "a model that was not recorded"

SOURCES = {
    "recorded": "the usage that the provider reported for each call, from the transcript; a call that several sessions "
    "or files tell of counts once; dollars at today's list prices of the recorded model",
    "compared": "the recorded calls that were replayed; what is counted here says which share of each recorded request "
    "is left, the rest is as recorded: the answer, what was found in the cache as far as the request still begins the "
    "same, and the system prompt and tools that transcripts lack, by the size of the first recorded request",
    "figures": "counted here, from the messages of the recording and --overhead; dollars at today's list prices",
}
"""The sources of the numbers in a report."""


class CallCost(msgspec.Struct, frozen=True):
    """The simulated cost of one call, in input tokens: prices of different models, and unknown ones, add up."""

    sent: float = 0.0
    everything: float = 0.0
    unit: float | None = None
    """Dollars for an input token, where the price is known."""


class CostSimulation:
    """The costs of one session, call by call: as it is sent, and with everything sent each time."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._prices = prices(model)
        self._last_at: float | None = None
        self._everything_before = 0

    def cost(self, call: ModelCall) -> CallCost:
        """Return the cost of the next model call."""
        at, report = call.at, call.report
        cold = at is not None and self._last_at is not None and at - self._last_at > self._model.cache_lifetime
        self._last_at = at if at is not None else self._last_at
        before, self._everything_before = self._everything_before, call.everything
        price = self._prices
        unit = price.input or 1.0
        answer = call.output * price.output
        sent = request_cost(price, self._model, report.tokens, 0 if cold else report.stable)
        everything = request_cost(price, self._model, call.everything, 0 if cold else before)
        return CallCost((sent + answer) / unit, (everything + answer) / unit, unit if price.known else None)


def request_cost(price: Prices, model: Model, tokens: int, prefix: int) -> float:
    """Return the dollars for a request of which `prefix` tokens at its start were sent before."""
    if model.cache == "none" or tokens < model.cache_minimum:
        return tokens * price.input
    cached = min(prefix, tokens) if prefix >= model.cache_minimum else 0
    rest = price.cache_write if model.cache == "explicit" else price.input
    return cached * price.cache_read + (tokens - cached) * rest


class RecordedCost(msgspec.Struct, frozen=True, kw_only=True):
    """The calls that were really paid for."""

    calls: int
    input: int
    """Input tokens that were neither written to a cache nor read from one."""
    cache_write: int
    cache_read: int
    output: int
    tokens: int
    """All of them."""
    dollars: float | None
    """Of the calls whose price is known; `null` when that is none."""
    unpriced: dict[str, int]
    """Models without a known price, and how many calls they answered."""

    @classmethod
    def of(cls, charges: Sequence[Charge]) -> RecordedCost | None:
        """Add up the charges; `None` if there are none."""
        if not charges:
            return None
        paid = [dollars(charge) for charge in charges]
        unpriced = Counter(charge.model or NAMELESS for charge, each in zip(charges, paid, strict=True) if each is None)
        kinds = ("input", "cache_write", "cache_read", "output")
        used = {kind: sum(getattr(charge.usage, kind) for charge in charges) for kind in kinds}
        return cls(
            calls=len(charges),
            **used,
            tokens=sum(used.values()),
            dollars=_rounded_sum(paid),
            unpriced=dict(sorted(unpriced.items())),
        )


class ComparedCall(msgspec.Struct, frozen=True, kw_only=True):
    """One recorded call, and the same call with Windowsill."""

    charge: Charge
    tokens: int
    dollars: float | None
    unrecorded: int
    """Tokens of the system prompt and tools that the recording lacks."""


class CostComparison(msgspec.Struct, frozen=True, kw_only=True):
    """The same calls, as they were and with Windowsill."""

    calls: int
    recorded_tokens: int
    """Input tokens of all requests, as the provider counted them,"""
    tokens: int
    """and with Windowsill, the part that was not recorded included."""
    unrecorded: int
    """Tokens of the system prompt and tools, in the request that had the most of them."""
    priced: int
    """Calls whose price is known on both sides: only these are in the dollars."""
    recorded_dollars: float | None
    dollars: float | None

    @classmethod
    def of(cls, calls: Sequence[ComparedCall]) -> CostComparison | None:
        """Add up both sides; `None` if there was nothing to compare."""
        if not calls:
            return None
        both = [(dollars(call.charge), call.dollars) for call in calls]
        priced = [(recorded, paid) for recorded, paid in both if recorded is not None and paid is not None]
        return cls(
            calls=len(calls),
            recorded_tokens=sum(call.charge.usage.prompt for call in calls),
            tokens=sum(call.tokens for call in calls),
            unrecorded=max(call.unrecorded for call in calls),
            priced=len(priced),
            recorded_dollars=_rounded_sum(recorded for recorded, _ in priced),
            dollars=_rounded_sum(paid for _, paid in priced),
        )


class SessionCosts:
    """The recorded calls of one session, and the price of the same calls with Windowsill.

    What the provider reported is the truth: tokens that are counted here only say which share of the recorded request
    is left, and how much of it begins like the request before. So a request that is not reduced costs what was paid.

    `model` is the model that was stated in place of the recorded ones.
    """

    def __init__(self, charges: Sequence[Charge], model: str | None = None) -> None:
        self.compared: list[ComparedCall] = []
        self._model = model
        self._charges = {charge.message: charge for charge in charges if charge.message is not None}
        self._unrecorded: int | None = None
        self._everything_before = 0

    def replayed(self, call: ModelCall) -> None:
        """Compare a call with its record; a call without a record is not compared."""
        before, self._everything_before = self._everything_before, call.everything
        charge = self._charges.get(call.turn)
        if charge is None:
            return
        prompt = charge.usage.prompt
        if self._unrecorded is None:
            self._unrecorded = max(0, prompt - call.everything)
        unrecorded, report = self._unrecorded, call.report
        scale = prompt / max(1, call.everything + unrecorded)
        tokens = round((report.tokens + unrecorded) * scale)
        # A request that begins like the one before, as far as the recorded one did, finds in the cache what that found.
        stable = prompt if report.stable >= before else round((report.stable + unrecorded) * scale)
        paid = self._price(charge, tokens, min(charge.usage.cache_read, stable, tokens))
        self.compared.append(ComparedCall(charge=charge, tokens=tokens, dollars=paid, unrecorded=unrecorded))

    def _price(self, charge: Charge, tokens: int, cached: int) -> float | None:
        """Price a request of which so many tokens were found in the cache; the rest is written as it was recorded."""
        used = charge.usage
        written = used.cache_write / (used.cache_write + used.input) if used.cache_write else 0.0
        write = round((tokens - cached) * written)
        long = round(write * charge.long_cache_write / used.cache_write) if used.cache_write else 0
        sent = Usage(input=tokens - cached - write, cache_write=write, cache_read=cached, output=used.output)
        return dollars(Charge(usage=sent, long_cache_write=long, model=self._model or charge.model))


def dollars(charge: Charge) -> float | None:
    """Price a call at the list prices of its model; `None` if they are not known."""
    price = known_prices(charge.model)
    if price is None:
        return None
    return price.cost(charge.usage) + charge.long_cache_write * (LONG_WRITE * price.input - price.cache_write)


def _rounded_sum(amounts: Iterable[float | None]) -> float | None:
    known = [amount for amount in amounts if amount is not None]
    return round(sum(known), 6) if known else None
