"""Patterns that take linear time whatever the text: RE2, on bytes, loaded on use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Protocol

from windowsill.errors import InputError

LARGEST_AUTOMATON = 64 << 20
"""Bytes for the states of one pattern: enough that none here falls back to the slow way of matching."""


class Match(Protocol):
    """Where a pattern was found."""

    def span(self, group: int = 0) -> tuple[int, int]:
        """First byte and one past the last; -1 twice for a group that took no part."""


class Pattern(Protocol):
    """A compiled pattern. Several threads may use it."""

    @property
    def groups(self) -> int:
        """How many groups it has."""

    def finditer(self, text: bytes, pos: int = 0, endpos: int | None = None) -> Iterator[Match]:
        """All matches between two places, none over another."""

    def match(self, text: bytes, pos: int = 0, endpos: int | None = None) -> Match | None:
        """The match that begins at `pos`."""


@cache
def compiled(source: str) -> Pattern:
    """A pattern of ours; its classes know ASCII, and every other byte is a character of its own."""
    import re2  # type: ignore[import-untyped]  # noqa: PLC0415 - has no types; loads a library, on use

    made: Pattern = re2.compile(source.encode(), _options(re2))
    return made


def users_own(source: str) -> Pattern:
    """A pattern of the user's, which sees characters and not bytes; `InputError` when it is none."""
    import re2  # noqa: PLC0415 - loads a library, on use

    options = re2.Options()
    options.max_mem, options.log_errors = LARGEST_AUTOMATON, False
    try:
        made: Pattern = re2.compile(source.encode(), options)
    except (re2.error, UnicodeEncodeError, AttributeError) as error:
        what = f"the pattern {source!r} for secrets cannot be used ({error})"
        raise InputError(what, remedy="write it in RE2 syntax, without lookaround and backreferences") from None
    return made


def _options(re2: Any) -> Any:
    options = re2.Options()
    options.max_mem, options.log_errors = LARGEST_AUTOMATON, False
    options.encoding = re2.Options.Encoding.LATIN1
    return options


class Hints:
    """Tells in one pass which of many short words a text holds."""

    def __init__(self, words: Sequence[tuple[str, bool]]) -> None:
        """`words` say for each whether it counts in whatever case."""
        import re2  # noqa: PLC0415 - loads a library, on use

        self._set = re2.Set.SearchSet(_options(re2))
        for word, any_case in words:
            self._set.Add((b"(?i)" if any_case else b"") + re2.escape(word.encode()))
        self._set.Compile()

    def held(self, data: bytes) -> list[int]:
        """The places of the words in the list."""
        found: list[int] | None = self._set.Match(data)
        return found or []
