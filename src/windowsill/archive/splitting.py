"""Cuts long text into pieces of a few hundred tokens that know their lines, so that a hit is small."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

PIECE_BYTES = 1_200
"""About 300 tokens in most languages: four bytes of English each, three bytes of a Japanese character."""

OVERLAP_BYTES = 160
"""The last line of a piece begins the next one too, if it is no longer than this: a hit at a cut keeps its context."""

END = 8 << 20
"""Characters of a text that are indexed from its beginning, and as many from its end. What is larger is a dump of data
whose middle is there for those who search the output itself."""


class Piece(NamedTuple):
    """A part of a text, with its first and last line counted from 1."""

    first: int
    last: int
    text: str


def ends(text: str) -> list[tuple[int, str]]:
    """What of a text is indexed, with the number of its first line: all of it, or its two ends, cut between lines."""
    if len(text) <= 2 * END:
        return [(1, text)]
    # A single line as long as this is cut wherever that is.
    stop = text.rfind("\n", END // 2, END) + 1 or END
    start = text.find("\n", len(text) - END, len(text) - END // 2) + 1 or len(text) - END
    return [(1, text[:stop]), (text.count("\n", 0, start) + 1, text[start:])]


def pieces(text: str, start: int = 1) -> list[Piece]:
    """A text in pieces, cut between lines where it can be; `start` is the number of its first line."""
    if len(text) <= PIECE_BYTES and (text.isascii() or len(text.encode()) <= PIECE_BYTES):
        return [Piece(start, start + text.count("\n"), text)] if text and not text.isspace() else []
    found: list[Piece] = []
    held: list[tuple[int, str]] = []
    size = fresh = 0
    for number, part in _parts(text, start):
        weight = len(part.encode()) + 1
        if fresh and size + weight > PIECE_BYTES:
            found.append(_joined(held))
            last = held[-1]
            held = [last] if len(last[1].encode()) <= OVERLAP_BYTES else []
            size, fresh = sum(len(each.encode()) + 1 for _, each in held), 0
        held.append((number, part))
        size += weight
        fresh += 1
    if fresh:
        found.append(_joined(held))
    return [piece for piece in found if piece.text.strip()]


def _joined(held: list[tuple[int, str]]) -> Piece:
    return Piece(held[0][0], held[-1][0], "\n".join(part for _, part in held))


def _parts(text: str, first: int) -> Iterator[tuple[int, str]]:
    """Lines with their numbers; a line longer than a piece in several parts, cut between words where it has any."""
    for number, line in enumerate(_lines(text), first):
        start = 0
        most = PIECE_BYTES if line.isascii() else PIECE_BYTES // 3
        while len(line) - start > most:
            stop = line.rfind(" ", start + most // 2, start + most) + 1 or start + most
            yield number, line[start:stop]
            # What a cut would tear apart stands whole in the part after it.
            back = stop - OVERLAP_BYTES * most // PIECE_BYTES
            start = line.find(" ", back, stop - 1) + 1 or back
        yield number, line[start:]


def _lines(text: str) -> Iterator[str]:
    """The lines of a text one after the other: a list of all would take several times its memory."""
    start = 0
    while (stop := text.find("\n", start)) >= 0:
        yield text[start:stop]
        start = stop + 1
    yield text[start:]
