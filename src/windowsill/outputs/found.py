"""What a search is asked for, and what it comes to."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from windowsill.outputs.patterns import Pattern

MORE_COLUMNS = 10
"""How many further matches of one long line are told."""


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """What to look for, and how much to tell of it."""

    pattern: Pattern
    first: int
    """The line to begin at."""
    limit: int
    """How many lines to tell."""
    width: int
    """Characters of a line above which the places of its matches are told too."""
    room: int
    """Bytes of lines that can be shown: more are counted, not told."""
    late: Callable[[], bool]
    """Whether time is over."""


class Hit(msgspec.Struct, frozen=True):
    """A line that matches; where it is long, the characters at which it does."""

    line: int
    columns: tuple[int, ...] = ()
    text: bytes | None = None
    """The line itself, unless it is so long that only some of it should be read."""


class Found(msgspec.Struct):
    """What a search, or a stretch of one, came to."""

    count: int = 0
    hits: list[Hit] = msgspec.field(default_factory=list)
    late_at: int | None = None
    """The line from which time did not suffice; `None` when it did."""
    more: bool = False
    """Whether counting ended before the output did."""
    unsure: int | None = None
    """The first line so long that a very long match in it may have been missed."""
