"""Search for a regular expression with RE2, which takes linear time whatever the pattern."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Protocol

_UNBOUNDED = re.compile(r"[*+]|\{\d+,\}")
"""What lets a match be of any length; found where it is quoted too, which only makes one more careful."""


class Match(Protocol):
    """Where a pattern was found."""

    def start(self) -> int:
        """The first byte."""

    def end(self) -> int:
        """One past the last byte."""


class Compiled(Protocol):
    """What RE2 makes of a pattern."""

    @property
    def programsize(self) -> int:
        """The steps it was compiled to."""

    def search(self, text: bytes, pos: int, endpos: int) -> Match | None:
        """The first match between two places; anchors and word boundaries see what is around them."""

    def possiblematchrange(self, maxlen: int) -> tuple[bytes, bytes]:
        """Texts between which every match stands in the order of bytes; an error of RE2 when there are none."""

    def finditer(self, text: bytes, pos: int, endpos: int) -> Iterator[Match]:
        """All matches between two places."""


class Expression:
    """A regular expression that never matches a line end."""

    def __init__(self, pattern: str, made: Compiled, to_line_end: Compiled) -> None:
        self.programsize = made.programsize
        # Without a loop each step is taken once, for at most one byte.
        self.longest = None if _UNBOUNDED.search(pattern) else made.programsize
        self._made = made
        self._to_line_end = to_line_end
        self._never_empty = _never_empty(made)

    def search(self, text: bytes, pos: int, endpos: int) -> Match | None:
        """The first match between two places; anchors and word boundaries see what is around them."""
        return self._made.search(text, pos, endpos)

    def matching_lines(self, text: bytes, pos: int, endpos: int) -> int:
        """How many lines match, between two places at which lines begin."""
        if self._never_empty:
            return sum(1 for _ in self._to_line_end.finditer(text, pos, endpos))
        count, reached = 0, -1
        for match in self._to_line_end.finditer(text, pos, endpos):
            # The end of a line that matched may match once more, as nothing; so may the end of everything.
            if match.start() != reached and (match.start() < endpos or not text.endswith(b"\n", 0, endpos)):
                count += 1
            reached = match.end()
        return count


def _never_empty(made: Compiled) -> bool:
    """Whether each match has a first byte; false when that is not known."""
    import re2  # type: ignore[import-untyped]  # noqa: PLC0415 - has no types; loads a library, on use

    try:
        return bool(made.possiblematchrange(1)[0])
    except re2.error:
        return False
