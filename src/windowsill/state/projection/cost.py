"""What it costs to change the tools of a request, and what it costs to leave them in."""

from __future__ import annotations

import math

import msgspec

from windowsill.models import Prices


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """The price of another set of tools, against masking: all definitions stay, and calls are refused.

    Definitions stand before the system prompt and the messages, so a cache that held the request is of no use once
    one of them changed. Dollars are only relative where `known` is false.
    """

    changed: bool
    """Whether the definitions of the request are others than before."""
    written: int = 0
    """Tokens that have to be written to the cache again: the new definitions and all that stood behind the old ones."""
    cost: float = 0.0
    """Dollars for writing them."""
    extra: float = 0.0
    """Of these, what would have been saved with the same tools as before."""
    masking: int = 0
    """Tokens of definitions that masking sends, or would send, though nobody may call them."""
    masking_cost: float = 0.0
    """Dollars for reading these from the cache, each turn."""
    known: bool = True

    @property
    def turns(self) -> float:
        """After how many turns removing has paid for itself; infinite when it never does."""
        if not self.changed or self.extra <= 0:
            return 0.0
        return self.extra / self.masking_cost if self.masking_cost else math.inf


def price(*, changed: bool, before: int, after: int, cached_tokens: int, masking: int, prices: Prices) -> Change:
    """What it costs to go from `before` to `after` tokens of definitions with so many tokens cached."""
    written = after + max(0, cached_tokens - before) if changed and cached_tokens else 0
    cost = written * prices.cache_write
    return Change(
        changed=changed,
        written=written,
        cost=cost,
        extra=cost - cached_tokens * prices.cache_read if written else 0.0,
        masking=masking,
        masking_cost=masking * prices.cache_read,
        known=prices.known,
    )
