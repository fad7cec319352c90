"""Rows as entries, and entries as rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from windowsill.errors import DamagedError
from windowsill.history.entries import Entry

_WHOLE = (int, int, str, str, float, bytes, bytes, bytes, bytes)
_META = (*_WHOLE[:6], type(None), *_WHOLE[7:])


def to_entry(row: Sequence[Any], path: Path) -> Entry:
    """The entry a row holds; overwritten pages can give any type, which the hash chain could not even compare."""
    if tuple(map(type, row)) not in (_WHOLE, _META):
        raise DamagedError(
            f"{path}: an entry is not what was written (number {row[0]!r})",
            remedy="put a backup in its place, or run `windowsill sessions verify` to see what is left",
            path=path,
        )
    return Entry(*row)


def to_row(key: int, entry: Entry) -> tuple[object, ...]:
    """The parameters of `insert_entry`."""
    return (
        key,
        entry.seq,
        entry.parent,
        entry.kind,
        entry.id,
        entry.at,
        entry.meta,
        entry.hash,
        entry.body_hash,
    )
