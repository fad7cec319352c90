"""The journal's entries: everything that ever happened to a session, in order, each bound to its parent by a hash.

Entries form a tree: `parent` is the entry this one builds on, which is the entry before it unless the session was
rewound. The head is always the last entry, so there is no pointer that could be lost.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias, TypeVar

import msgspec

from windowsill.errors import DamagedError

Kind: TypeAlias = Literal["message", "fold", "unfold", "mark", "call", "usage", "rewind", "label", "state", "tools"]

COMMON: frozenset[Kind] = frozenset({"message", "call", "usage", "state"})
"""The kinds that every turn writes. Stores find the others without walking these."""

ROOT = 0
"""The sequence number that stands for 'before everything'."""

ROOT_HASH = b"\0" * 32


class Entry(msgspec.Struct, frozen=True):
    """One thing that happened.

    `meta` is small and always loaded; `body` is what may be large (a message as it came) and is `None` when it was left
    in the store.
    """

    seq: int
    parent: int
    kind: Kind
    id: str
    at: float
    meta: bytes
    body: bytes | None
    hash: bytes
    body_hash: bytes
    """The hash of `body`, so that the chain can be checked without reading every body."""


class Same(msgspec.Struct, frozen=True, array_like=True):
    """Bytes that an entry's body shares with an earlier one and does not hold a second time."""

    at: int
    """Where they belong, in bytes from the start of the whole body."""
    length: int
    seq: int
    """The entry whose stored body has them."""
    offset: int


T = TypeVar("T")


def reader(type: type[T]) -> Callable[[bytes], T]:
    """Return a decoder for what an entry says; it raises `DamagedError` when that is not what was written."""
    decode = msgspec.msgpack.Decoder(type).decode

    def read(data: bytes) -> T:
        try:
            return decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DamagedError(
                f"an entry of the journal is damaged: {error}",
                remedy="`windowsill sessions verify` says which; restore a backup",
            ) from None

    return read


def seal(
    *, seq: int, parent: int, parent_hash: bytes, kind: Kind, id: str, at: float, meta: bytes, body: bytes = b""
) -> Entry:
    """Make an entry that is bound to its parent."""
    body_hash = hashlib.sha256(body).digest()
    return Entry(
        seq=seq,
        parent=parent,
        kind=kind,
        id=id,
        at=at,
        meta=meta,
        body=body,
        hash=chain_hash(parent_hash, parent, kind, id, at, meta, body_hash),
        body_hash=body_hash,
    )


def chain_hash(parent_hash: bytes, parent: int, kind: str, id: str, at: float, meta: bytes, body_hash: bytes) -> bytes:
    """Hash everything an entry says and everything before it."""
    # Lengths stand before each variable part, so that no two different entries feed the same bytes.
    head = f"{parent}:{kind}:{len(id)}:{id}:{at!r}:{len(meta)}:".encode()
    return hashlib.sha256(b"".join((parent_hash, head, meta, body_hash))).digest()


def is_whole(entry: Entry, parent_hash: bytes) -> bool:
    """Tell whether an entry still says what it said when it was sealed."""
    if entry.body is not None and hashlib.sha256(entry.body).digest() != entry.body_hash:
        return False
    return (
        chain_hash(parent_hash, entry.parent, entry.kind, entry.id, entry.at, entry.meta, entry.body_hash) == entry.hash
    )


Range: TypeAlias = tuple[int, int]


def path_to(head: int, jumps: Sequence[tuple[int, int]]) -> list[Range]:
    """Return the path to `head`, oldest first; `jumps` are the entries whose parent is not the one before."""
    starts = [seq for seq, _ in jumps]
    ranges: list[Range] = []
    while head != ROOT:
        index = bisect_right(starts, head) - 1
        first, before = jumps[index] if index >= 0 else (ROOT + 1, ROOT)
        ranges.append((first, head))
        head = before
    return ranges[::-1]


def on_path(ranges: Sequence[Range], seq: int) -> bool:
    """Tell whether an entry lies on a path."""
    index = bisect_right(ranges, seq, key=lambda each: each[0]) - 1
    return index >= 0 and ranges[index][0] <= seq <= ranges[index][1]


def within(ranges: Sequence[Range], first: int, last: int) -> list[Range]:
    """Return the part of a path between two entries, both included."""
    cut = ((max(start, first), min(stop, last)) for start, stop in ranges)
    return [(start, stop) for start, stop in cut if start <= stop]
