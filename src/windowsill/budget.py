"""The budget of a request: how full a window may get, and when and how far it is reduced."""

from __future__ import annotations

import math
import re
from typing import TypeAlias

import msgspec

from windowsill.errors import SettingError
from windowsill.models import Model
from windowsill.models.catalog import SizeClass
from windowsill.tokens import Weight

Size: TypeAlias = int | float | str | tuple[int | float | str, ...]
"""Tokens (`40_000`), a share (`0.8`, `"80%"`), or both with the smaller winning (`(200_000, 0.8)`).

A budget is a share of the window; the marks are shares of what a request may have."""

WARN: Size = 0.6
"""The share at which a request begins to be large: it is reported, and summaries that a model writes are begun."""

HIGH: Size = 0.8

LOW_BELOW_HIGH = 0.3
"""The share of what a request may have that the low mark lies below the high one where none is stated: 50% under 80%.
Folds come rarely and in big steps: between the two marks the cached prefix stays whole."""

LOWEST_OF_HIGH = 0.4
"""The share of a very low high mark that stays all the same."""

WARN_OF_HIGH = 0.75
"""The warning where it would come with or after the reduction: 60% under 80%."""

OUTPUT_RESERVE = 16_384
"""Tokens kept free for the answer when nobody says how long it may get: more than most answers need."""

LARGEST_RESERVE_SHARE = 4
"""On a small window the reserve is at most a quarter of it."""

MARGIN = 0.05
"""Of the model's own limit, kept free where its tokenizer is not public: a count that learns is still an estimate."""

EXACT_MARGIN = 0.01
"""The same where it is public: what stands around calls and results is not."""

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(%|k|m)?\s*", re.IGNORECASE)


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a provider besides tokens; `None` where it has no limit."""

    bytes: int | None = None
    media: int | None = None
    media_bytes: int | None = None


class CachePrices(msgspec.Struct, frozen=True, kw_only=True):
    """The price of a cached token against one that is read afresh, and how long the cache lives without use."""

    read: float = 0.1
    write: float = 1.25
    output: float = 5.0
    """A token that the model writes."""
    lifetime: float = 300.0
    """Seconds."""


class WriterPrices(msgspec.Struct, frozen=True, kw_only=True):
    """The prices of the model that writes summaries, against a token that the session's own reads afresh."""

    input: float = 0.0
    output: float = 0.0
    shared: bool = False
    """It reads what the session's own model has cached."""
    seconds: float = 0.0
    """The seconds that its last text took."""


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """The token budget of one request."""

    limit: int
    """No request has more input tokens than this."""
    high: int
    """Above this the view is reduced,"""
    low: int
    """down to this."""
    fixed: int = 0
    """Tokens of the parts that are never cut: system prompt, tool definitions, dynamic context, framing."""
    step: int = 0
    """When set, what is hidden is a multiple of it, counted from the start of the conversation: a caller who keeps no
    session and sends the whole list again then gets the same cut for many turns."""
    warn: int = 0
    """Above this the user is told, and summaries are prepared; 0 for never."""
    window: int = 0
    limits: Limits = Limits()
    fixed_bytes: int = 0
    """Bytes of the parts that are never cut."""
    size: SizeClass = "balanced"
    """The size of the model in its family."""
    refs: bool = True
    """The model is offered the tool that reads outputs by their refs: what is cut stays within its reach."""
    writer: WriterPrices | None = None
    """The prices of the model that writes summaries, where one does."""
    bound_after: int | None = None
    """The entry behind which signed reasoning is void once its past was edited; `None` where a model takes it with any
    past."""
    cache: CachePrices = CachePrices()
    phase: str = ""
    """The phase of the work, for strategies under which requests tell the state,"""
    layers: dict[str, int] = {}
    """and the tokens of each layer of the state in this phase, by its settings."""

    @property
    def room_bytes(self) -> int | None:
        """Bytes that messages may have, where the provider has a limit."""
        return None if self.limits.bytes is None else max(0, self.limits.bytes - self.fixed_bytes)

    def is_exceeded(self, weight: Weight) -> bool:
        """Tell whether messages of this weight pass a limit of the provider's that is not of tokens."""
        limits = self.limits
        return (
            (self.room_bytes is not None and weight.bytes > self.room_bytes)
            or (limits.media is not None and weight.media > limits.media)
            or (limits.media_bytes is not None and weight.media_bytes > limits.media_bytes)
        )

    def lowered(self, goal: int) -> Budget:
        """Return the budget with marks of at most `goal` tokens."""
        return msgspec.structs.replace(self, high=min(self.high, goal), low=min(self.low, goal))

    def to_hide(self, total: int) -> int:
        """Count the tokens that must go when the request has `total`; 0 while it is below the high mark."""
        if total <= self.high:
            return 0
        if self.step:
            return math.ceil((total - self.high) / self.step) * self.step
        return total - self.low


MARKS = ("high", "low", "warn")
PERCENT = 100
"""A mark up to this number is meant as a share: as tokens, nearly every request would be above it."""


def tokens_of(size: Size, window: int, setting: str) -> int:
    """Turn a size into tokens of this window; raise `SettingError` for what is not a size."""
    if isinstance(size, tuple) and size:
        return min(tokens_of(part, window, setting) for part in size)
    if isinstance(size, str):
        return min(_from_text(part, window, setting, size) for part in size.split(","))
    if isinstance(size, bool) or not isinstance(size, (int, float)) or not math.isfinite(size) or size <= 0:
        raise SettingError(setting, size, "tokens above 0, or a share of the window between 0 and 1")
    if isinstance(size, int):
        if setting in MARKS and size <= PERCENT:
            raise SettingError(setting, size, f'a share such as "80%" or 0.8, or more than {PERCENT} tokens')
        return size
    if size > 1:
        raise SettingError(setting, size, 'a share up to 1.0, or tokens as a whole number ("80%" and 40_000 are clear)')
    return max(1, int(size * window))


def _from_text(part: str, window: int, setting: str, whole: str) -> int:
    match = _SIZE.fullmatch(part)
    if match is None or float(match[1]) <= 0:
        raise SettingError(setting, whole, 'a size such as "40000", "40k", "80%" or "200k,80%"')
    number, unit = float(match[1]), (match[2] or "").lower()
    if unit == "%":
        if number > 100:  # noqa: PLR2004 - a hundred percent is the whole
            raise SettingError(setting, whole, "at most 100%")
        return max(1, int(number / 100 * window))
    tokens = int(number * {"k": 1_000, "m": 1_000_000, "": 1}[unit])
    if tokens < 1 or (not unit and "." in match[1]):
        raise SettingError(setting, whole, 'a whole number of tokens; a share is written as "50%"')
    return tokens


def budget_for(
    model: Model,
    *,
    budget: Size | None = None,
    high: Size | None = None,
    low: Size | None = None,
    low_below_high: float = LOW_BELOW_HIGH,
    max_output: int | None = None,
    fixed: int = 0,
    stateless: bool = False,
    ceiling: int | None = None,
    warn: Size | None = None,
) -> Budget:
    """Make the budget of a request to `model`. `budget` is the most input tokens; without it the model's limits decide.

    `high`, `low` and `warn` are tokens, or shares of what the request may have; without `low` it lies the share
    `low_below_high` below the high mark. `ceiling` is what the provider has been seen to take, where that is less.
    """
    window = model.window
    if max_output is not None and not (isinstance(max_output, int) and 0 < max_output < window):
        raise SettingError("max_output", max_output, f"tokens above 0 and below the window of {window:,}")
    if budget is not None:
        limit = max(1, min(tokens_of(budget, window, "budget"), model.max_input, window - (max_output or 0)))
    else:
        reserve = max_output or min(model.max_output, OUTPUT_RESERVE, window // LARGEST_RESERVE_SHARE)
        limit = max(1, min(model.max_input, window - reserve))
        limit -= int(limit * (EXACT_MARGIN if model.exact else MARGIN))
    if ceiling is not None:
        limit = min(limit, ceiling)
    top = min(limit, tokens_of(HIGH if high is None else high, limit, "high"))
    if low is None:
        bottom = max(1, int(top * LOWEST_OF_HIGH), top - int(limit * low_below_high))
    else:
        bottom = min(top, tokens_of(low, limit, "low"))
    if bottom < top and fixed > bottom // 2:
        # The marks are shares of a request that is mostly free. Where the fixed parts fill it: shares of the rest.
        room = max(0, limit - fixed)
        top = min(limit, max(top, fixed + room * top // limit))
        bottom = min(top, max(bottom, fixed + room * bottom // limit))
    early = 0 if warn is None else tokens_of(warn, limit, "warn")
    return Budget(
        limit=limit,
        high=top,
        low=bottom,
        fixed=fixed,
        step=max(1, top - bottom) if stateless else 0,
        warn=early if early < top else int(top * WARN_OF_HIGH),
        window=window,
        size=model.size,
        limits=Limits(bytes=model.request_bytes, media=model.media_count, media_bytes=model.media_bytes),
    )
