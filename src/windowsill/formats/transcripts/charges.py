"""What a provider reported for one call, as agents and logs note it down."""

from __future__ import annotations

from typing import Any

import msgspec

from windowsill import formats
from windowsill.errors import FormatError
from windowsill.messages import Usage


class Charge(msgspec.Struct, frozen=True, kw_only=True):
    """One call that was paid for."""

    usage: Usage
    long_cache_write: int = 0
    """Of the tokens written to the cache, those that were to stay for an hour: they cost more."""
    model: str | None = None
    message: int | None = None
    """The place of its answer among the messages of the session, where it has one."""
    key: str | None = None
    """The same key is the same call, whatever session or file tells of it; `None` is a call of its own."""


def charge(
    usage: Any, *, model: str | None = None, message: int | None = None, key: str | None = None
) -> Charge | None:
    """A call from the provider's own words for its usage; `None` where they say nothing."""
    if not isinstance(usage, dict):
        return None
    try:
        read = formats.read_usage(usage)
    except FormatError:
        return None
    if not read.total:
        return None
    return Charge(usage=read, long_cache_write=_long(usage, read), model=model, message=message, key=key)


def _long(usage: dict[str, Any], read: Usage) -> int:
    written = usage.get("cache_creation")
    tokens = written.get("ephemeral_1h_input_tokens") if isinstance(written, dict) else None
    return min(tokens, read.cache_write) if isinstance(tokens, int) and tokens > 0 else 0
