"""Recognises passages that say the same, such as the output of a command that was run again."""

from __future__ import annotations

import re
from bisect import bisect
from zlib import crc32

_WORD = re.compile(r"\w+")

_STARTS = (0, 1 << 30, 1 << 31, 3 << 30)
"""Where among all hashes a text's words are looked at. Texts with nine words of ten in common share the two words that
follow one of these places 999 times of 1,000; equal texts always do."""


class Seen:
    """Remembers texts and finds the earlier one that a new one repeats.

    Two texts repeat each other when their numbers are the same and nearly all their words: a changed number is news.
    """

    def __init__(self, alike: float) -> None:
        self._alike = alike
        self._by_sample: dict[tuple[int, ...], list[int]] = {}
        self._known: dict[int, tuple[frozenset[str], frozenset[str]]] = {}

    def repeats(self, text: str, place: int) -> int | None:
        """The place of the earlier text that this one repeats; a text that repeats none is kept under its `place`."""
        words = frozenset(_WORD.findall(text.casefold()))
        numbers = frozenset([word for word in words if not word.isalpha()])
        samples = _samples(words)
        for sample in samples:
            for earlier in self._by_sample.get(sample, ()):
                others, their_numbers = self._known[earlier]
                if numbers == their_numbers and len(words & others) >= self._alike * len(words | others):
                    return earlier
        for sample in samples:
            self._by_sample.setdefault(sample, []).append(place)
        self._known[place] = words, numbers
        return None


def _samples(words: frozenset[str]) -> list[tuple[int, ...]]:
    """A few pairs of a text's words, chosen by nothing but the words themselves."""
    hashes = sorted([crc32(word.encode("utf-8", "replace")) for word in words])
    round_again = hashes + hashes[:2]
    return [tuple(round_again[place : place + 2]) for place in [bisect(hashes, start) for start in _STARTS]]
