"""Search for plain text: by its rarest byte, which the C library finds many times faster than any pattern."""

from __future__ import annotations

import re

import msgspec

_COMMON = b" etaonrisldhcu0123456789mpfgybw.:,-/_v\"'()=k[]{}xjqzTASCEIRNODLPM"
"""Bytes by how common they are in logs, code and prose, the most common first; the others are rarer."""

_PATIENCE = 64
"""Bytes of the rarest kind that may be in vain before one asks how close they stand."""

_SPARSE = 1024
"""Bytes between two of the rarest kind from which on looking for it is faster than looking for the whole text."""

_DENSE = 2048
"""Bytes between two places of the text below which counting them one by one costs more than the search itself."""

_SAMPLE = 32 * 1024


class Span(msgspec.Struct, frozen=True):
    """Where a text was found."""

    first: int
    last: int

    def start(self) -> int:
        """The first byte."""
        return self.first

    def end(self) -> int:
        """One past the last byte."""
        return self.last


class Literal:
    """Finds one text, letter for letter; used as a compiled pattern is."""

    programsize = 1
    longest: int | None

    def __init__(self, text: str) -> None:
        self._text = text.encode()
        self.longest = len(self._text)
        ranks = [_COMMON.find(byte) for byte in self._text]
        self._place = max(range(len(ranks)), key=lambda place: len(_COMMON) if ranks[place] < 0 else ranks[place])
        self._rare = self._text[self._place : self._place + 1]
        self._is_rare = True
        # No text makes this one look back, unlike what a model might write.
        self._to_line_end = re.compile(re.escape(self._text) + rb"[^\n]*")

    def search(self, text: bytes, pos: int, endpos: int) -> Span | None:
        """The first place of the text between two places."""
        start = self._by_rarest(text, pos, endpos) if self._is_rare else text.find(self._text, pos, endpos)
        return Span(start, start + len(self._text)) if start >= 0 else None

    def matching_lines(self, text: bytes, pos: int, endpos: int) -> int:
        """How many lines hold the text, between two places at which lines begin."""
        if text.count(self._text, pos, min(endpos, pos + _SAMPLE)) * _DENSE > _SAMPLE:
            return len(self._to_line_end.findall(text, pos, endpos))
        count = 0
        while (found := self.search(text, pos, endpos)) is not None:
            count += 1
            pos = text.find(b"\n", found.last, endpos) + 1 or endpos
        return count

    def _by_rarest(self, text: bytes, pos: int, endpos: int) -> int:
        place = pos + self._place
        last = endpos - len(self._text) + self._place + 1
        while True:
            begin = place
            for _ in range(_PATIENCE):
                place = text.find(self._rare, place, max(last, 0))
                if place < 0:
                    return -1
                if text.startswith(self._text, place - self._place):
                    return place - self._place
                place += 1
            if place - begin < _PATIENCE * _SPARSE:
                # It is common here, and what follows is more of the same.
                self._is_rare = False
                return text.find(self._text, place - self._place, endpos)
