"""What the local server remembers of each request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from windowsill.formats import Problem

SECRETS = ("auth", "key", "token", "secret", "cookie")
"""A header whose name holds one of these words may say who asks: it is never kept."""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """One request as the server saw it."""

    format: str
    body: dict[str, Any]
    raw: bytes
    status: int
    problems: tuple[Problem, ...] = ()
    tokens: int = 0
    """What it weighed when it was held against the window: after clearing, before a compaction."""
    cached: int = 0
    path: str = ""
    """Without the query, which may hold a key."""
    headers: dict[str, str] = {}
    """Names in lower case; none that say who asks."""
    model: str = ""
    cleared: int = 0
    """How many tool results the server cleared because the request asked for it."""
    compacted: bool = False


def public(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that may be kept."""
    named = {name.lower(): value for name, value in headers.items()}
    return {name: value for name, value in named.items() if not any(word in name for word in SECRETS)}
