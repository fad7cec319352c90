"""Undo the pointers that stand for lines which were shown before."""

import re
from collections.abc import Mapping

_POINTER = re.compile(r"\[lines (\d+)-(\d+) as in (\S+) lines (\d+)-(\d+)\]")


def expand(text: str, earlier: Mapping[str, str]) -> str:
    """Return the text that was collapsed; a line that only looks like a pointer stays as it is."""
    rows: list[str] = []
    for line in text.split("\n"):
        found = _POINTER.fullmatch(line)
        rows += (_pointed(found, len(rows), earlier) if found else None) or [line]
    return "\n".join(rows)


def _pointed(found: re.Match[str], done: int, earlier: Mapping[str, str]) -> list[str] | None:
    """Return the lines a pointer stands for; `None` when it cannot have been made here."""
    start, stop, first, last = (int(found[group]) for group in (1, 2, 4, 5))
    if found[3] not in earlier or start != done + 1 or stop - start != last - first or not 1 <= first <= last:
        return None
    lines = earlier[found[3]].split("\n")
    return lines[first - 1 : last] if last <= len(lines) else None
