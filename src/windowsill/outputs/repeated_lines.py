"""Lines that were shown before: a run of them becomes a pointer to where they stand, exactly undone by `expand`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

LEAST_LINES = 3
"""The shortest run that is replaced: below, a reader loses more by looking elsewhere than is saved."""

WORTH = 3
"""How many times longer than its pointer a run has to be: digits and brackets take about three times as many tokens as
the same length of words."""

MOST_PLACES = 16
"""Places looked at for one run: lines such as a lone bracket stand everywhere."""

_POINTER = re.compile(r"\[lines (\d+)-(\d+) as in (\S+) lines (\d+)-(\d+)\]")


class Run(msgspec.Struct, frozen=True):
    """Lines of a text, from `start` and counted from 0, that stand in an earlier output from `place` on."""

    start: int
    length: int
    output: int
    place: int


class SeenLines:
    """The outputs in view, each line of which later ones may point to. It grows with what is added, never rescans."""

    def __init__(self) -> None:
        self._refs: list[str] = []
        self._lines: list[list[str]] = []
        self._places: dict[int, list[tuple[int, int]]] = {}

    def add(self, ref: str, text: str) -> None:
        """Add an output that is in view, under the ref that pointers name."""
        # By line feeds alone; what follows the last one is a line too, so that joining gives the text again.
        held = text.split("\n")
        number = len(self._lines)
        self._refs.append(ref)
        self._lines.append(held)
        for place in range(len(held) - LEAST_LINES + 1):
            known = self._places.setdefault(_key(held, place), [])
            known.append((number, place))
            if len(known) > MOST_PLACES:
                # Neither the first, from which a run of equal lines is longest, nor the last, which is nearest.
                del known[MOST_PLACES // 2]

    def collapse(self, text: str) -> str | None:
        """Return the text with pointers in place of what was shown before; `None` when there is nothing to gain."""
        held = text.split("\n")
        # A text that speaks of pointers could not be told from one that has them: it is left alone.
        if not self._lines or any(_POINTER.fullmatch(line) for line in held):
            return None
        pieces: list[str] = []
        done = 0
        for run in self._runs(held):
            pieces += held[done : run.start]
            pieces.append(self._pointer(run))
            done = run.start + run.length
        return "\n".join((*pieces, *held[done:])) if done else None

    def _runs(self, held: list[str]) -> Iterator[Run]:
        """Yield the runs that are worth a pointer, from the first line on, each as long as it can be."""
        start = 0
        while start <= len(held) - LEAST_LINES:
            run = self._longest(held, start)
            if run is not None and self._is_worth(held, run):
                yield run
                start += run.length
            else:
                start += 1

    def _longest(self, held: list[str], start: int) -> Run | None:
        best: Run | None = None
        # The newest first, so that of equals the nearest is taken.
        for output, place in reversed(self._places.get(_key(held, start), ())):
            length = _shared(held, start, self._lines[output], place)
            if length >= LEAST_LINES and (best is None or length > best.length):
                best = Run(start, length, output, place)
        return best

    def _is_worth(self, held: list[str], run: Run) -> bool:
        size = sum(len(line) + 1 for line in held[run.start : run.start + run.length])
        return size >= WORTH * len(self._pointer(run))

    def _pointer(self, run: Run) -> str:
        here = f"{run.start + 1}-{run.start + run.length}"
        return f"[lines {here} as in {self._refs[run.output]} lines {run.place + 1}-{run.place + run.length}]"


def expand(text: str, earlier: Mapping[str, str]) -> str:
    """Return the text that was collapsed; a line that only looks like a pointer stays as it is."""
    held: list[str] = []
    for line in text.split("\n"):
        found = _POINTER.fullmatch(line)
        held += (_pointed(found, len(held), earlier) if found else None) or [line]
    return "\n".join(held)


def _pointed(found: re.Match[str], done: int, earlier: Mapping[str, str]) -> list[str] | None:
    """Return the lines a pointer stands for; `None` when it cannot have been made here."""
    start, stop, first, last = (int(found[group]) for group in (1, 2, 4, 5))
    if found[3] not in earlier or start != done + 1 or stop - start != last - first or not 1 <= first <= last:
        return None
    lines = earlier[found[3]].split("\n")
    return lines[first - 1 : last] if last <= len(lines) else None


def _key(lines: list[str], place: int) -> int:
    return hash((lines[place], lines[place + 1], lines[place + 2]))


def _shared(held: list[str], start: int, other: list[str], place: int) -> int:
    """Count the lines that are the same from here on."""
    length = 0
    most = min(len(held) - start, len(other) - place)
    while length < most and held[start + length] == other[place + length]:
        length += 1
    return length
