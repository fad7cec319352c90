"""Where secrets stand in a text, and the signs that are put in their place."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import cache
from operator import itemgetter
from typing import TypeAlias

import msgspec

from windowsill.errors import InputError
from windowsill.regex import Pattern, PatternError, compile_ascii, compile_text


class Secret(msgspec.Struct, frozen=True):
    """A secret: what kind it is, and where it stands."""

    kind: str
    start: int
    end: int


Range: TypeAlias = tuple[int, int]

SIGN = re.compile(rb"\[secret: [a-z0-9-]{1,32}\]")
"""What stands in the place of a secret. It is never itself taken for one, nor any part of it."""


def sign(kind: str) -> str:
    """The text in the place of a secret of this kind."""
    return f"[secret: {kind}]"


def signs(data: bytes, kinds: Iterable[str]) -> list[Range]:
    """Where signs stand already. Only those of known kinds are: no word may hide behind brackets."""
    if b"[secret: " not in data:
        return []
    known = {sign(kind).encode() for kind in kinds}
    return [match.span() for match in SIGN.finditer(data) if match[0] in known]


def merged(found: Iterable[tuple[int, Secret]]) -> list[Secret]:
    """Secrets in order, none over another: where two overlap, one that covers both, of the kind with the lower rank."""
    done: list[tuple[int, Secret]] = []
    for rank, each in sorted(found, key=lambda pair: (pair[1].start, pair[0], -pair[1].end)):
        if done and each.start < done[-1][1].end:
            before, last = done[-1]
            kind = last.kind if before <= rank else each.kind
            done[-1] = (min(before, rank), Secret(kind, last.start, max(last.end, each.end)))
        else:
            done.append((rank, each))
    return [each for _, each in done]


def without(found: Sequence[Secret], taken: Sequence[Range]) -> list[Secret]:
    """The secrets less the ranges in `taken`, which are in order; what is left on both sides stays a secret."""
    if not taken:
        return list(found)
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
    """Whether a secret begins in one of the ranges in `taken`, which are in order."""
    place = bisect_right(taken, found.start, key=itemgetter(0)) - 1
    return place >= 0 and found.start < taken[place][1]


def replaced(data: bytes, found: Sequence[Secret]) -> bytes:
    """The data with a sign in the place of each secret."""
    pieces: list[bytes] = []
    end = 0
    for each in found:
        pieces += (data[end : each.start], sign(each.kind).encode())
        end = each.end
    return b"".join((*pieces, data[end:]))


@cache
def compiled(source: str) -> Pattern:
    """Compile a pattern of ours, once."""
    return compile_ascii(source)


def users_own(source: str) -> Pattern:
    """Compile a pattern of the user's; `InputError` when RE2 refuses it."""
    try:
        return compile_text(source)
    except PatternError as error:
        what = f"the pattern {source!r} for secrets cannot be used ({error})"
        raise InputError(what, remedy="write it in RE2 syntax, without lookaround and backreferences") from None
