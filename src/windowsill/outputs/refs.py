"""The names of tool outputs: `o12` for the one in entry 12, `o12.2` for its second, `b` and a hash for a kept one.

They are short because they stand in the context, where every character is paid for at every call.
"""

from __future__ import annotations

import re

import msgspec

_PLACE = re.compile(r"o([1-9][0-9]{0,9})(?:\.([1-9][0-9]{0,3}))?")
_KEPT = re.compile(r"b[0-9a-f]{16,64}")


class Place(msgspec.Struct, frozen=True):
    """Where an output stands in the journal: the entry, and which of its results; `None` when it should be the only."""

    seq: int
    number: int | None = None


def ref_at(seq: int, number: int = 1, *, of: int = 1) -> str:
    """The ref of the `number`-th of `of` results in the message of entry `seq`."""
    return f"o{seq}" if of == 1 else f"o{seq}.{number}"


def place_of(ref: str) -> Place | None:
    """The place a ref names; `None` when it names none."""
    found = _PLACE.fullmatch(ref)
    if found is None:
        return None
    return Place(int(found[1]), int(found[2]) if found[2] else None)


def is_kept(ref: str) -> bool:
    """Whether a ref is spelled like that of a kept output."""
    return _KEPT.fullmatch(ref) is not None
