"""Which messages were said after a past that is no longer what stands before them.

Some models take their signed reasoning back only with the past it was written after. A fold edits the past of what was
said before it was made; removing it gives that past back, and edits that of what was said while it applied.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from windowsill.history.folds import Fold, Run, Unfold


class Change(msgspec.Struct, frozen=True, array_like=True):
    """Messages between these two entries were said with another past."""

    after: int
    before: int


def made(seq: int, fold: Fold) -> list[Change]:
    """What a fold made at `seq` changes, while it applies."""
    return [Change(span.first if isinstance(span, Run) else span.message, seq) for span in fold.spans]


def changes(folds: Mapping[int, Fold], undone: Mapping[int, Unfold]) -> tuple[Change, ...]:
    """All changes that the folds and unfolds of a path (by entry number) leave behind."""
    removed = {(each.fold, number): seq for seq, each in undone.items() for number in each.spans}
    found = []
    for seq, fold in folds.items():
        for number, change in enumerate(made(seq, fold)):
            gone = removed.get((seq, number))
            found.append(change if gone is None else Change(seq, gone))
    return widest(found)


def widest(found: Iterable[Change]) -> tuple[Change, ...]:
    """Without those that lie within another: folds widen each other, so few are left."""
    kept: list[Change] = []
    for change in sorted(set(found), key=lambda each: (each.after, -each.before)):
        if not kept or change.before > kept[-1].before:
            kept.append(change)
    return tuple(kept)
