"""Takes secrets out of texts: detectors for known formats, for what is assigned to secret names, and for chance."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property
from operator import itemgetter

import msgspec

from windowsill.errors import SettingError
from windowsill.regex import Pattern, WordSet
from windowsill.secrets import assignments, patterns
from windowsill.secrets import entropy as chance
from windowsill.secrets.base import Range, Secret, merged, replaced, sign, signs, starts_in, users_own, without
from windowsill.secrets.patterns import FORMATS

EXTRA = "extra"
"""The kind of what a user's own pattern finds."""

KINDS = frozenset({format.kind for format in FORMATS} | {patterns.KIND, chance.KIND, EXTRA} | set(assignments.KINDS))

_BLOCKS, _EXTRA, _FORMATS, _ASSIGNED, _CHANCE = range(5)
"""Who says what kind a secret is when several found it: the surest first."""


class Redactor:
    """Finds secrets and puts signs in their place. The same text gives the same result; threads may share one.

    `extra` are further patterns in RE2 syntax; of a pattern with groups the first one is the secret. What stands within
    one of the strings of `allow` is left alone. Without `entropy` only what has a known format or name is found.
    """

    def __init__(self, extra: Sequence[str] = (), allow: Sequence[str] = (), *, entropy: bool = True) -> None:
        self.extra = _strings("extra", extra)
        self.allow = _strings("allow", allow)
        self.entropy = entropy
        self._patterns: tuple[Pattern, ...] = tuple(users_own(each) for each in self.extra)

    def find(self, text: str) -> list[Secret]:
        """The secrets in a text, in order, none over another; an empty list for most texts."""
        data = text.encode("utf-8", "surrogatepass")
        return _in_characters(data, self._find(data)) if len(data) != len(text) else self._find(data)

    def redacted(self, text: str) -> str:
        """The text with `[secret: kind]` in the place of each secret; the same object when there is none."""
        data = text.encode("utf-8", "surrogatepass")
        found = self._find(data)
        return replaced(data, found).decode("utf-8", "surrogatepass") if found else text

    def redacted_bytes(self, data: bytes) -> bytes:
        """The same for UTF-8 text as bytes; bytes that are no text are passed over."""
        found = self._find(data)
        return replaced(data, found) if found else data

    def holds(self, data: bytes) -> bool:
        """Whether UTF-8 text holds a secret."""
        return bool(self._round(data))

    def allows(self, text: str) -> bool:
        """Whether a text is one that is left alone."""
        return text in self.allow

    @cached_property
    def known(self) -> Redactor:
        """The same without `entropy`."""
        return Redactor(self.extra, self.allow, entropy=False)

    def _find(self, data: bytes) -> list[Secret]:
        found = self._round(data)
        new = found
        while new:
            # What stood beside a secret can look different without it.
            shorter, gaps = replaced(data, found), _gaps(found)
            new = [_placed(each, gaps) for each in self._round(shorter)]
            found = merged((0, each) for each in (*found, *new))
        return found

    def _round(self, data: bytes) -> list[Secret]:
        ranked: list[tuple[int, Secret]] = []
        quiet: list[Range] = []
        hinted = _detectors().hinted(data)
        if hinted.blocks:
            keys, quiet = patterns.find(data)
            ranked += ((_BLOCKS, each) for each in keys)
        ranked += ((_EXTRA, each) for each in self._extra(data))
        ranked += ((_FORMATS, each) for place in hinted.formats for each in FORMATS[place].find(data))
        taken = signs(data, KINDS)
        if hinted.names:
            # A sign reads like an assignment itself.
            ranked += ((_ASSIGNED, each) for each in assignments.find(data) if not starts_in(each, taken))
        found = merged(ranked)
        if self.entropy:
            quiet = sorted([*quiet, *((each.start, each.end) for each in found)])
            found = merged((0, each) for each in (*found, *chance.find(data, quiet)))
        if not found:
            return []
        left = without(found, taken)
        allowed = [self._places(data, text) for text in self.allow]
        return [each for each in left if data[each.start : each.end].strip() and not _is_within(each, allowed)]

    def _extra(self, data: bytes) -> Iterator[Secret]:
        for pattern in self._patterns:
            for match in pattern.finditer(data):
                start, end = match.span(1 if pattern.groups else 0)
                if end > start:
                    yield Secret(EXTRA, start, end)

    def _places(self, data: bytes, text: str) -> list[Range]:
        """Where a text of `allow` stands, in order."""
        wanted = text.encode("utf-8", "surrogatepass")
        found: list[Range] = []
        start = data.find(wanted)
        while start >= 0:
            found.append((start, start + len(wanted)))
            start = data.find(wanted, start + 1)
        return found


class _Hinted(msgspec.Struct):
    """Which detectors a text needs."""

    formats: list[int]
    names: bool
    blocks: bool


class _Detectors:
    """Tells in one pass over a text which detectors may find something: most find nothing in most texts."""

    def __init__(self) -> None:
        words = [(hint, place, format.any_case) for place, format in enumerate(FORMATS) for hint in format.hints]
        words += [(hint, _NAMES, True) for hint in assignments.HINTS]
        words.append((patterns.HINT, _KEYS, False))
        self._of = [place for _, place, _ in words]
        self._hints = WordSet([(hint, any_case) for hint, _, any_case in words])

    def hinted(self, data: bytes) -> _Hinted:
        """The detectors to ask."""
        held = {self._of[place] for place in self._hints.find(data)}
        return _Hinted(sorted(held - {_NAMES, _KEYS}), _NAMES in held, _KEYS in held)


_NAMES, _KEYS = -1, -2
"""In the place of a format's number: the detectors of names and of blocks."""


@cache
def _detectors() -> _Detectors:
    return _Detectors()


def _strings(setting: str, values: Sequence[str]) -> tuple[str, ...]:
    if isinstance(values, str) or not all(isinstance(each, str) and each for each in values):
        raise SettingError(setting, values, "a list of texts, none of them empty")
    return tuple(values)


def _is_within(found: Secret, allowed: Iterable[Sequence[Range]]) -> bool:
    """Whether a secret stands within one of the ranges; those of one sequence are in order and equally long."""
    for ranges in allowed:
        # Of those that begin before it the last reaches the furthest.
        place = bisect_right(ranges, found.start, key=itemgetter(0)) - 1
        if place >= 0 and found.end <= ranges[place][1]:
            return True
    return False


def _gaps(found: Sequence[Secret]) -> list[tuple[int, int]]:
    """For each stretch between secrets, where it begins once signs stand in their place, and where it began before."""
    gaps = [(0, 0)]
    shift = 0
    for each in found:
        shift += len(sign(each.kind)) - (each.end - each.start)
        gaps.append((each.end + shift, each.end))
    return gaps


def _placed(found: Secret, gaps: Sequence[tuple[int, int]]) -> Secret:
    """A secret found among signs, where it stands in the text without them."""
    now, before = gaps[bisect_right(gaps, found.start, key=itemgetter(0)) - 1]
    return Secret(found.kind, found.start - now + before, found.end - now + before)


def _in_characters(data: bytes, found: Sequence[Secret]) -> list[Secret]:
    """The same places counted in characters."""
    done: list[Secret] = []
    bytes_before = characters = 0
    for each in found:
        start = characters + len(data[bytes_before : each.start].decode("utf-8", "surrogatepass"))
        characters = start + len(data[each.start : each.end].decode("utf-8", "surrogatepass"))
        bytes_before = each.end
        done.append(Secret(each.kind, start, characters))
    return done
