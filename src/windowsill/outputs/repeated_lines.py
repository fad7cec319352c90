"""Lines that were shown before: `collapse` puts a pointer to where they stood in the place of a run of them."""

from __future__ import annotations

import re

LEAST_LINES = 3
"""The shortest run that is replaced: below, a reader loses more by looking elsewhere than is saved."""

WORTH = 3
"""The least length of a run, in lengths of its pointer: digits and brackets take about three times as many tokens as
words of the same length."""

MOST_PLACES = 16
"""Places looked at for one run: lines such as a lone bracket stand everywhere."""

_POINTER = re.compile(r"\[lines (\d+)-(\d+) as in (\S+) lines (\d+)-(\d+)\]")


class SeenLines:
    """The outputs in view, each line of which later ones may point to. It grows with what is added, never rescans."""

    def __init__(self) -> None:
        self._refs: list[str] = []
        self._lines: list[list[str]] = []
        self._places: dict[int, list[tuple[int, int]]] = {}

    def add(self, ref: str, text: str) -> None:
        """Add an output that is in view, under the ref that pointers name."""
        # By line feeds alone; the text after the last one is a line too, so that joining gives the text again.
        rows = text.split("\n")
        number = len(self._lines)
        self._refs.append(ref)
        self._lines.append(rows)
        for place in range(len(rows) - LEAST_LINES + 1):
            known = self._places.setdefault(_key(rows, place), [])
            known.append((number, place))
            if len(known) > MOST_PLACES:
                # Neither the first, from which a run of equal lines is longest, nor the last, which is nearest.
                del known[MOST_PLACES // 2]

    def collapse(self, text: str) -> str | None:
        """Return the text with pointers in place of repeated runs; `None` when nothing is gained."""
        rows = text.split("\n")
        # A text that speaks of pointers could not be told from one that has them: it is left alone.
        if not self._lines or any(_POINTER.fullmatch(line) for line in rows):
            return None
        pieces: list[str] = []
        start = done = 0
        while start <= len(rows) - LEAST_LINES:
            length, output, place = self._longest(rows, start)
            end = start + length
            pointer = f"[lines {start + 1}-{end} as in {self._refs[output]} lines {place + 1}-{place + length}]"
            if length and sum(len(line) + 1 for line in rows[start:end]) >= WORTH * len(pointer):
                pieces += (*rows[done:start], pointer)
                start = done = end
            else:
                start += 1
        return "\n".join((*pieces, *rows[done:])) if done else None

    def _longest(self, rows: list[str], start: int) -> tuple[int, int, int]:
        """Return the length of the longest run from a line on, and the output and the line where it was shown."""
        best = 0, 0, 0
        # The newest first, so that of equals the nearest is taken.
        for output, place in reversed(self._places.get(_key(rows, start), ())):
            length = _shared(rows, start, self._lines[output], place)
            if length >= LEAST_LINES and length > best[0]:
                best = length, output, place
        return best


def _key(lines: list[str], place: int) -> int:
    return hash((lines[place], lines[place + 1], lines[place + 2]))


def _shared(rows: list[str], start: int, other: list[str], place: int) -> int:
    """Count the lines that are the same from here on."""
    length = 0
    most = min(len(rows) - start, len(other) - place)
    while length < most and rows[start + length] == other[place + length]:
        length += 1
    return length
