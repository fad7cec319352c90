"""What a person really paid for, as their agent recorded it, beside what the same calls are with Windowsill.

The usage that providers reported stands in the transcript, one entry for each call; dollars are at the list prices of
the recorded model. A transcript has no system prompt and no tools, but the provider counted them: what the first
request of a session had beyond its messages is taken as their size, and added to every request that is compared.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import msgspec

from windowsill import models
from windowsill.cli.replay.walking import Turn
from windowsill.errors import UnknownModelError
from windowsill.formats.transcripts import Charge
from windowsill.messages import Usage
from windowsill.models import Prices, prices

LONG_WRITE = 2.0
"""A token that stays in Anthropic's cache for an hour costs twice an input token to write."""

NAMELESS = "a model that was not recorded"

SOURCES = {
    "recorded": "the usage that the provider reported for each call, from the transcript; a call that several sessions "
    "or files tell of counts once; dollars at today's list prices of the recorded model",
    "compared": "the recorded calls that were replayed; tokens are counted here, and the size of the system prompt and "
    "tools, which transcripts lack, is taken from the first recorded request; dollars with the recorded answer, and "
    "with what the recorded request found in the cache, as far as the request still begins the same",
    "figures": "counted here, from the messages of the recording and --overhead; dollars at today's list prices",
}
"""Where the numbers of a report come from."""


class Spending(msgspec.Struct, frozen=True, kw_only=True):
    """What was paid for."""

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


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
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


class Purse:
    """Adds up charges; each call once, for all purses that share `seen`."""

    def __init__(self, seen: set[str]) -> None:
        self._seen = seen
        self._calls = 0
        self._used = Usage()
        self._dollars = 0.0
        self._unpriced: Counter[str] = Counter()

    def pay(self, charge: Charge) -> bool:
        """One more call; whether it was new."""
        if charge.key is not None and charge.key in self._seen:
            return False
        self._seen.update([charge.key] if charge.key is not None else [])
        self._calls += 1
        self._used = _sum(self._used, charge.usage)
        paid = dollars(charge)
        if paid is None:
            self._unpriced[charge.model or NAMELESS] += 1
        else:
            self._dollars += paid
        return True

    def add(self, other: Purse) -> None:
        """Count another purse's calls too."""
        self._calls += other._calls
        self._used = _sum(self._used, other._used)
        self._dollars += other._dollars
        self._unpriced += other._unpriced

    def spending(self) -> Spending | None:
        """What was paid; `None` when nothing was recorded."""
        if not self._calls:
            return None
        used, unpriced = self._used, self._unpriced.total()
        return Spending(
            calls=self._calls,
            input=used.input,
            cache_write=used.cache_write,
            cache_read=used.cache_read,
            output=used.output,
            tokens=used.total,
            dollars=round(self._dollars, 6) if unpriced < self._calls else None,
            unpriced=dict(sorted(self._unpriced.items())),
        )


class Balance:
    """Adds up calls as they were, and as they are with Windowsill."""

    def __init__(self) -> None:
        self._calls = self._recorded_tokens = self._tokens = self._unrecorded = self._priced = 0
        self._recorded_dollars = self._dollars = 0.0

    def weigh(self, charge: Charge, tokens: int, paid: float | None, unrecorded: int) -> None:
        """One more call: what was recorded, and its tokens and dollars with Windowsill."""
        self._calls += 1
        self._recorded_tokens += charge.usage.prompt
        self._tokens += tokens
        self._unrecorded = max(self._unrecorded, unrecorded)
        recorded = dollars(charge)
        if recorded is not None and paid is not None:
            self._priced += 1
            self._recorded_dollars += recorded
            self._dollars += paid

    def add(self, other: Balance) -> None:
        """Count another balance's calls too."""
        self._calls += other._calls
        self._recorded_tokens += other._recorded_tokens
        self._tokens += other._tokens
        self._unrecorded = max(self._unrecorded, other._unrecorded)
        self._priced += other._priced
        self._recorded_dollars += other._recorded_dollars
        self._dollars += other._dollars

    def comparison(self) -> Comparison | None:
        """Both sides; `None` when there was nothing to compare."""
        if not self._calls:
            return None
        return Comparison(
            calls=self._calls,
            recorded_tokens=self._recorded_tokens,
            tokens=self._tokens,
            unrecorded=self._unrecorded,
            priced=self._priced,
            recorded_dollars=round(self._recorded_dollars, 6) if self._priced else None,
            dollars=round(self._dollars, 6) if self._priced else None,
        )


class Account:
    """The recorded calls of one session: what was paid, and what they are with Windowsill."""

    def __init__(self, charges: tuple[Charge, ...], seen: set[str], model: str | None = None) -> None:
        self.purse = Purse(seen)
        self.balance = Balance()
        self._model = model
        """The model that was stated in place of the recorded ones."""
        self._charges = {charge.message: charge for charge in charges if charge.message is not None}
        self._new = {charge.message for charge in charges if self.purse.pay(charge)}
        self._unrecorded: int | None = None

    def replayed(self, turn: Turn) -> None:
        """A call of the session as it is with Windowsill; one that was not recorded is not compared."""
        charge = self._charges.get(turn.turn)
        if charge is None:
            return
        if self._unrecorded is None:
            self._unrecorded = max(0, charge.usage.prompt - turn.everything)
        if charge.message in self._new:
            tokens = turn.tokens + self._unrecorded
            paid = self._paid(charge, tokens, turn.stable + self._unrecorded)
            self.balance.weigh(charge, tokens, paid, self._unrecorded)

    def add(self, other: Account) -> None:
        """Count another session's calls too."""
        self.purse.add(other.purse)
        self.balance.add(other.balance)

    def _paid(self, charge: Charge, tokens: int, stable: int) -> float | None:
        """Dollars for a request that finds in the cache what the recorded one found, as far as it is the same."""
        used = charge.usage
        cached = min(stable, used.cache_read, tokens)
        written = used.cache_write / (used.cache_write + used.input) if used.cache_write else 0.0
        write = round((tokens - cached) * written)
        long = round(write * charge.long_cache_write / used.cache_write) if used.cache_write else 0
        sent = Usage(input=tokens - cached - write, cache_write=write, cache_read=cached, output=used.output)
        return dollars(Charge(usage=sent, long_cache_write=long, model=self._model or charge.model))


def dollars(charge: Charge) -> float | None:
    """What a call cost at the list prices of its model; `None` where they are not known."""
    price = _prices(charge.model)
    if price is None:
        return None
    used = charge.usage
    return (
        used.input * price.input
        + (used.cache_write - charge.long_cache_write) * price.cache_write
        + charge.long_cache_write * LONG_WRITE * price.input
        + used.cache_read * price.cache_read
        + used.output * price.output
    )


@cache
def _prices(model: str | None) -> Prices | None:
    try:
        found = None if model is None else prices(models.find(model))
    except UnknownModelError:
        return None
    return found if found is not None and found.known else None


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(
        input=one.input + other.input,
        output=one.output + other.output,
        cache_write=one.cache_write + other.cache_write,
        cache_read=one.cache_read + other.cache_read,
    )
