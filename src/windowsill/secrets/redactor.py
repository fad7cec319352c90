"""Take secrets out of texts: run the detectors, merge what they find, and put `[secret: kind]` in its place.

Columns are searched here: below the header of a CSV or Markdown table, and among the values of SQL's `INSERT`.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property
from itertools import chain
from operator import itemgetter

from windowsill.errors import InputError, SettingError
from windowsill.regex import Pattern, PatternError, WordSet, compile_text
from windowsill.secrets import detectors
from windowsill.secrets.detectors import (
    PRIVATE_KEY,
    PRIVATE_KEY_HINTS,
    Range,
    Secret,
    compiled,
    find_private_keys,
    formats,
    kind_under,
    plain_kind_under,
)

LONGEST_LINE = 4_000
"""Bytes of a line that may be a row of a table."""

MOST_COLUMNS = 200

_COLUMN_NAMES = (
    r"(?:[a-z]+[_ -])?(?:passwords?|passwd|pwd|passphrase|passcode|secret|(?:api|access|private|secret)[_ -]?key"
    r"|(?:access|auth|refresh|api)[_ -]?token|token)"
)
_COLUMNS_PART = rf"""(?i)[,;|\t][ "'`*]*{_COLUMN_NAMES}|{_COLUMN_NAMES}[ "'`*]*[,;|\t]|\binsert\s+into\s"""
"""A name beside another, or among the columns of an `INSERT`: without it there is no table."""
_HEADER = rf"""(?im)^(?:[^\n]*[,;|\t])?[ "'`*]*{_COLUMN_NAMES}[ "'`*]*(?:[,;|\t][^\n]*)?\r?$"""
_RULE = re.compile(rb"[\s|:+-]*")
_CELL = re.compile(rb"""[ ]*+(?:"((?:[^"\n]|"")*+)"|'([^'\n]*+)'|([^,;|\t\n]*+))[ \r]*+([,;|\t]|$)""")
_INSERT = rf"""(?i)\binsert\s+into\s+[^\s(]+\s*\(([^()]*\b{_COLUMN_NAMES}\b[^()]*)\)\s*values\s*"""
_TUPLE = re.compile(rb"""\s*+,?\s*+\(((?:'(?:[^']|'')*+'|"[^"]*+"|[^()'"])*+)\)""")
_VALUE = re.compile(rb"""\s*+(?:N?'((?:[^']|'')*+)'|"([^"]*+)"|([^,]*+))\s*+(?:,|$)""")


def find_in_columns(data: bytes) -> Iterator[Secret]:
    """Yield the values in columns whose name is that of a secret."""
    yield from _in_tables(data)
    for match in compiled(_INSERT).finditer(data):
        begin, stop = match.span(1)
        names = [data[start:end] for start, end in _cells(_VALUE, data, begin, stop)]
        place = match.end()
        while row := _TUPLE.match(data, place):
            yield from _row(data, names, _cells(_VALUE, data, *row.span(1)), sure=True)
            place = row.end()


def _in_tables(data: bytes) -> Iterator[Secret]:
    done = 0
    for match in compiled(_HEADER).finditer(data):
        start, end = match.span()
        if start < done or end - start > LONGEST_LINE:
            continue
        names = [data[low:high].strip(b" \"'`*") for low, high in _cells(_CELL, data, start, end)]
        if len(names) < 2:  # noqa: PLR2004 - one name is no table
            continue
        done = end
        while done < len(data):
            begin = done + 1
            found = data.find(b"\n", begin, begin + LONGEST_LINE)
            stop = found if found >= 0 else len(data) if len(data) - begin <= LONGEST_LINE else begin
            cells = _cells(_CELL, data, begin, stop)
            if len(cells) != len(names):
                break
            done = stop
            if not _RULE.fullmatch(data, begin, stop):
                yield from _row(data, names, cells, sure=False)


def _cells(pattern: re.Pattern[bytes], data: bytes, start: int, end: int) -> list[Range]:
    """Return the places of the cells of a row, without their quotes."""
    found: list[Range] = []
    while start < end and len(found) <= MOST_COLUMNS and (match := pattern.match(data, start, end)):
        group = next(number for number in (1, 2, 3) if match.span(number)[0] >= 0)
        low, high = match.span(group)
        found.append((low, low + len(data[low:high].rstrip())))
        if match.end() == start:
            break
        start = match.end()
    return found


def _row(data: bytes, names: list[bytes], cells: list[Range], *, sure: bool) -> Iterator[Secret]:
    kind_of = kind_under if sure else plain_kind_under
    for name, (start, end) in zip(names, cells, strict=False):
        if start < end and (
            kind := kind_of(name.decode("utf-8", "replace"), data[start:end].decode("utf-8", "replace"))
        ):
            yield Secret(kind, start, end)


SWITCH = "WINDOWSILL_ENTROPY"
"""The variable that switches the detection by entropy off, for a whole process."""

EXTRA = "extra"
"""The kind of what a user's own pattern finds."""

_UNSEEN = r"\xc2\xad|\xe2\x80[\x8b-\x8d]|\xe2\x81\xa0|\xef\xbb\xbf"
_INVISIBLE = re.compile(_UNSEEN.encode())
"""Soft hyphens, spaces and joiners without a width, and byte order marks, in UTF-8."""

SIGN = re.compile(rb"\[secret: ([a-z0-9-]{1,32})\]")
"""The text in the place of a secret. Neither it nor any part of it is ever taken for a secret."""

_SIGN_START = b"[secret: "

_PRIVATE_KEYS, _EXTRA, _FORMATS, _ASSIGNED = range(4)
"""The ranks of the detectors when several find the same secret: the surest names its kind."""

_NAMES, _BLOCKS, _COLUMNS = -1, -2, -3
"""The detectors of names, of private keys and of columns, in the place of a format's number."""


@cache
def kinds() -> frozenset[str]:
    """Return the kinds of secrets that are known."""
    others = {PRIVATE_KEY, detectors.HIGH_ENTROPY, EXTRA, *detectors.ASSIGNMENT_KINDS}
    return frozenset(others.union(format.kind for format in formats()))


@cache
def _words() -> tuple[tuple[str, int, bool], ...]:
    """Return the words without which a detector finds nothing, the detector of each, and whether any case counts."""
    words = [(hint, place, format.any_case) for place, format in enumerate(formats()) for hint in format.hints]
    words += [(hint, _NAMES, True) for hint in detectors.ASSIGNMENT_HINTS]
    return *words, *((hint, _BLOCKS, False) for hint in PRIVATE_KEY_HINTS)


@cache
def _hints() -> tuple[WordSet, list[int]]:
    """Return the words and expressions without which a detector finds nothing, and the detector of each."""
    parts = {place: format.part for place, format in enumerate(formats()) if format.part}
    parts |= {_NAMES: detectors.ASSIGNMENT, _COLUMNS: _COLUMNS_PART}
    words = [each for each in _words() if each[1] not in parts]
    found = WordSet([(hint, any_case) for hint, _, any_case in words], list(parts.values()))
    return found, [*(owner for _, owner, _ in words), *parts]


@cache
def _suspect() -> tuple[Pattern, ...]:
    """Return patterns of whatever makes a detector look closer; as one they would have many times the states."""
    words = [f"(?{'i' if any_case else '-i'}:{re.escape(hint)})" for hint, _, any_case in _words()]
    parts = [format.part for format in formats() if not format.hints]
    return compiled("|".join((*words, *parts))), compiled(detectors.CANDIDATE)


class Redactor:
    """Find secrets and put signs in their place. The same text gives the same result; threads may share one.

    `extra` are further patterns in RE2 syntax; of a pattern with groups the first one is the secret. What stands within
    one of the strings of `allow` is left alone. Without `entropy` only what has a known format or name is found,
    without `names` no value for its name alone.
    """

    def __init__(
        self, extra: Sequence[str] = (), allow: Sequence[str] = (), *, entropy: bool = True, names: bool = True
    ) -> None:
        self.extra = _strings("extra", extra)
        self.allow = _strings("allow", allow)
        self.entropy = entropy
        self.names = names
        self._patterns = tuple(_user_pattern(each) for each in self.extra)

    def find(self, text: str) -> list[Secret]:
        """Return the secrets in a text, in order, none over another; an empty list for most texts."""
        data = text.encode("utf-8", "surrogatepass")
        return _in_characters(data, self._find(data))

    def redact(self, text: str) -> str:
        """Return the text with `[secret: kind]` in the place of each secret; the same object when there is none."""
        data = text.encode("utf-8", "surrogatepass")
        clean = self.redact_bytes(data)
        return text if clean is data else clean.decode("utf-8", "surrogatepass")

    def redact_bytes(self, data: bytes) -> bytes:
        """Return UTF-8 text without its secrets; bytes that are no text are passed over."""
        found = self._find(data)
        return replace(data, found) if found else data

    def holds(self, data: bytes) -> bool:
        """Tell whether UTF-8 text holds a secret."""
        return bool(self._round(_INVISIBLE.sub(b"", data)))

    def suspects(self, lines: bytes) -> set[int]:
        """Return the numbers of those lines of UTF-8 text, each with its end, that may hold a secret; no other does."""
        if self._patterns or _has_invisible(lines):
            return set(range(lines.count(b"\n")))
        found: set[int] = set()
        for pattern in _suspect():
            number = searched = 0
            for match in pattern.finditer(lines):
                number += lines.count(b"\n", searched, match.start())
                searched = match.start()
                found.add(number)
        return found

    @cached_property
    def known(self) -> Redactor:
        """The same redactor without `entropy`."""
        return Redactor(self.extra, self.allow, entropy=False, names=self.names)

    def _find(self, data: bytes) -> list[Secret]:
        if not _has_invisible(data):
            return self._find_visible(data)
        # What nobody sees inside a key does not hide it.
        gaps, bare = [(0, 0)], 0
        for match in _INVISIBLE.finditer(data):
            bare += match.start() - gaps[-1][1]
            gaps.append((bare, match.end()))
        found = self._find_visible(_INVISIBLE.sub(b"", data))
        return [Secret(each.kind, _moved(each.start, gaps), _moved(each.end - 1, gaps) + 1) for each in found]

    def _find_visible(self, data: bytes) -> list[Secret]:
        found = self._round(data)
        new = found
        while new:
            # The text beside a secret can look different without it.
            gaps = _gaps(found)
            new = [_placed(each, gaps) for each in self._round(replace(data, found))]
            found = merge((0, each) for each in (*found, *new))
        return found

    def _round(self, data: bytes) -> list[Secret]:
        ranked: list[tuple[int, Secret]] = []
        quiet: list[Range] = []
        words, owners = _hints()
        hinted = {owners[place] for place in words.find(data)}
        if not hinted and not self._patterns and len(data) < detectors.SHORTEST_TOKEN:
            return []
        if _BLOCKS in hinted:
            keys, quiet = find_private_keys(data)
            ranked += ((_PRIVATE_KEYS, each) for each in keys)
        if self._patterns:
            ranked += ((_EXTRA, each) for each in self._extra(data))
        if places := sorted(place for place in hinted if place >= 0):
            hinted_formats = [formats()[place] for place in places]
            ranked += ((_FORMATS, each) for format in hinted_formats for each in format.find(data))
        taken = find_signs(data)
        if self.names and hinted & {_NAMES, _COLUMNS}:
            # A sign reads like an assignment itself.
            signs = {start for start, _ in taken}
            named = chain(
                detectors.find_assignments(data, signs) if _NAMES in hinted else (),
                find_in_columns(data) if _COLUMNS in hinted else (),
            )
            ranked += ((_ASSIGNED, each) for each in named if not starts_in(each, taken))
        found = merge(ranked) if ranked else []
        if self.entropy and len(data) >= detectors.SHORTEST_TOKEN:
            quiet = sorted([*quiet, *((each.start, each.end) for each in found)]) if found else quiet
            if random := list(detectors.find_by_entropy(data, quiet)):
                found = merge((0, each) for each in (*found, *random))
        left = subtract(found, taken) if found else []
        allowed = [_places(data, text) for text in self.allow] if left else []
        return [each for each in left if data[each.start : each.end].strip() and not _is_within(each, allowed)]

    def _extra(self, data: bytes) -> Iterator[Secret]:
        for pattern in self._patterns:
            for match in pattern.finditer(data):
                start, end = match.span(1 if pattern.groups else 0)
                if end > start:
                    yield Secret(EXTRA, start, end)


@cache
def default_redactor() -> Redactor:
    """Return the redactor that is used where none was made by hand; `WINDOWSILL_ENTROPY=off` is read once."""
    return Redactor(entropy=os.environ.get(SWITCH, "").strip().lower() not in ("off", "false", "no", "0"))


def _has_invisible(data: bytes) -> bool:
    return not data.isascii() and compiled(_UNSEEN).search(data, 0, len(data)) is not None


def sign(kind: str) -> str:
    """Return the text in the place of a secret of this kind."""
    return f"[secret: {kind}]"


def find_signs(data: bytes) -> list[Range]:
    """Return the places of signs. Only those of known kinds count: no word may hide behind brackets."""
    if _SIGN_START not in data:
        return []
    return [match.span() for match in SIGN.finditer(data) if match[1].decode() in kinds()]


def merge(found: Iterable[tuple[int, Secret]]) -> list[Secret]:
    """Return secrets in order; where two overlap, one that covers both, of the kind with the lower rank."""
    done: list[tuple[int, Secret]] = []
    for rank, each in sorted(found, key=lambda pair: (pair[1].start, pair[0], -pair[1].end)):
        if done and each.start < done[-1][1].end:
            before, last = done[-1]
            kind = last.kind if before <= rank else each.kind
            done[-1] = (min(before, rank), Secret(kind, last.start, max(last.end, each.end)))
        else:
            done.append((rank, each))
    return [each for _, each in done]


def subtract(found: Sequence[Secret], taken: Sequence[Range]) -> list[Secret]:
    """Return the secrets less the ranges in `taken`, which are in order; what is left on both sides stays a secret."""
    left: list[Secret] = []
    place = 0
    for each in found:
        start = each.start
        while place < len(taken) and taken[place][1] <= start:
            place += 1
        here = place
        while here < len(taken) and taken[here][0] < each.end:
            if start < taken[here][0]:
                left.append(Secret(each.kind, start, taken[here][0]))
            start = max(start, taken[here][1])
            here += 1
        if start < each.end:
            left.append(Secret(each.kind, start, each.end))
    return left


def starts_in(found: Secret, taken: Sequence[Range]) -> bool:
    """Tell whether a secret begins in one of the ranges in `taken`, which are in order."""
    place = bisect_right(taken, found.start, key=itemgetter(0)) - 1
    return place >= 0 and found.start < taken[place][1]


def replace(data: bytes, found: Sequence[Secret]) -> bytes:
    """Return the data with a sign in the place of each secret."""
    pieces: list[bytes] = []
    end = 0
    for each in found:
        pieces += (data[end : each.start], sign(each.kind).encode())
        end = each.end
    return b"".join((*pieces, data[end:]))


def _user_pattern(source: str) -> Pattern:
    try:
        return compile_text(source)
    except PatternError as error:
        what = f"the pattern {source!r} for secrets cannot be used ({error})"
        raise InputError(what, remedy="write it in RE2 syntax, without lookaround and backreferences") from None


def _places(data: bytes, text: str) -> list[Range]:
    """Return the places of a text of `allow`, in order."""
    wanted = text.encode("utf-8", "surrogatepass")
    found: list[Range] = []
    start = data.find(wanted)
    while start >= 0:
        found.append((start, start + len(wanted)))
        start = data.find(wanted, start + 1)
    return found


def _strings(setting: str, values: Sequence[str]) -> tuple[str, ...]:
    if isinstance(values, str) or not all(isinstance(each, str) and each for each in values):
        raise SettingError(setting, values, "a list of texts, none of them empty")
    return tuple(values)


def _is_within(found: Secret, allowed: Iterable[Sequence[Range]]) -> bool:
    """Tell whether a secret stands within one of the ranges; those of one sequence are in order and equally long."""
    # Of those that begin before it the last reaches the furthest.
    places = [(ranges, bisect_right(ranges, found.start, key=itemgetter(0)) - 1) for ranges in allowed]
    return any(place >= 0 and found.end <= ranges[place][1] for ranges, place in places)


def _gaps(found: Sequence[Secret]) -> list[tuple[int, int]]:
    """Return, for each stretch between secrets, its start among signs and its start in the original."""
    gaps = [(0, 0)]
    shift = 0
    for each in found:
        shift += len(sign(each.kind)) - (each.end - each.start)
        gaps.append((each.end + shift, each.end))
    return gaps


def _placed(found: Secret, gaps: Sequence[tuple[int, int]]) -> Secret:
    """Return a secret found among signs at its place in the original."""
    start = _moved(found.start, gaps)
    return Secret(found.kind, start, start + found.end - found.start)


def _moved(place: int, gaps: Sequence[tuple[int, int]]) -> int:
    """Return the place in the original of one in a text where stretches, each with both its starts, were moved."""
    now, before = gaps[bisect_right(gaps, place, key=itemgetter(0)) - 1]
    return place - now + before


def _in_characters(data: bytes, found: Sequence[Secret]) -> list[Secret]:
    """Return the same places counted in characters."""
    done: list[Secret] = []
    bytes_before = characters = 0
    for each in found:
        start = characters + len(data[bytes_before : each.start].decode("utf-8", "surrogatepass"))
        characters = start + len(data[each.start : each.end].decode("utf-8", "surrogatepass"))
        bytes_before = each.end
        done.append(Secret(each.kind, start, characters))
    return done
