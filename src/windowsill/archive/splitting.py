"""Cuts long text into pieces of a few hundred tokens that know their lines, so that a hit is small."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

PIECE_BYTES = 1_200
"""About 300 tokens in most languages: four bytes of English each, three bytes of a Japanese character."""

OVERLAP_BYTES = 160
"""The last line of a piece begins the next one too, if it is no longer than this: a hit at a cut keeps its context."""


class Piece(NamedTuple):
    """A part of a text, with its first and last line counted from 1."""

    first: int
    last: int
    text: str


def pieces(text: str) -> list[Piece]:
    """A text in pieces, cut between lines where it can be."""
    if len(text) <= PIECE_BYTES and (text.isascii() or len(text.encode()) <= PIECE_BYTES):
        return [Piece(1, text.count("\n") + 1, text)] if text and not text.isspace() else []
    found: list[Piece] = []
    held: list[tuple[int, str]] = []
    size = fresh = 0
    for number, part in _parts(text):
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


def _parts(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers; a line longer than a piece in several parts, cut between words where it has any."""
    for number, line in enumerate(text.split("\n"), 1):
        start = 0
        most = PIECE_BYTES if line.isascii() else PIECE_BYTES // 3
        while len(line) - start > most:
            stop = line.rfind(" ", start + most // 2, start + most) + 1 or start + most
            yield number, line[start:stop]
            start = stop
        yield number, line[start:]
