"""How a kept output lies in the store: its parts as blobs, and one index blob that makes them an output.

    output/part/TOKEN/0000000        a part; TOKEN names one writing
    output/part/TOKEN/alive-TIME     the writing was still going on then
    output/index/REF/TIME-TOKEN      what the parts of a finished writing are

Each writing has blobs of its own, so that nobody ever removes a part that somebody else relies on. The same content
written twice has two indexes for a moment; the newest one counts, and the others go.
"""

from __future__ import annotations

import hashlib

import msgspec

from windowsill.errors import DamagedError
from windowsill.outputs.output import Part
from windowsill.store import Store

INDEXES = "output/index/"
PARTS = "output/part/"
_ALIVE = "alive-"
_DIGEST = 32


class Index(msgspec.Struct, frozen=True, array_like=True):
    """What the parts of an output are."""

    digest: bytes
    """SHA-256 of the whole content."""
    size: int
    lines: int
    parts: tuple[Part, ...]


class Copy(msgspec.Struct, frozen=True, order=True):
    """One finished writing of an output; the greatest is the one that counts."""

    at: int
    """When it was finished, in milliseconds."""
    token: str
    ref: str
    blob: str


def index_id(ref: str, at: int, token: str) -> str:
    """The id of an index blob."""
    return f"{INDEXES}{ref}/{at:015d}-{token}"


def part_id(token: str, number: int) -> str:
    """The id of a part's blob."""
    return f"{PARTS}{token}/{number:07d}"


def alive_id(token: str, at: int) -> str:
    """The id of the blob that says a writing was still going on."""
    return f"{PARTS}{token}/{_ALIVE}{at:015d}"


def token_of(blob: str) -> str:
    """The writing that a blob under `PARTS` belongs to."""
    return blob.removeprefix(PARTS).partition("/")[0]


def alive_at(blob: str) -> int | None:
    """The time that an alive blob tells, in milliseconds."""
    name = blob.rpartition("/")[2]
    return int(name.removeprefix(_ALIVE)) if name.startswith(_ALIVE) else None


def copies(store: Store, session: str, ref: str = "") -> list[Copy]:
    """The finished writings of an output, or of all, the one that counts last."""
    found = []
    for blob in store.blob_ids(session, f"{INDEXES}{ref}/" if ref else INDEXES):
        name, _, written = blob.removeprefix(INDEXES).partition("/")
        at, _, token = written.partition("-")
        found.append(Copy(int(at), token, name, blob))
    return sorted(found)


def packed(index: Index) -> bytes:
    """An index as it is stored, with its own hash before it."""
    data = msgspec.msgpack.encode(index)
    return hashlib.sha256(data).digest() + data


def unpacked(stored: bytes, ref: str) -> Index:
    """The index that was stored; `DamagedError` when it is not what was written."""
    data = stored[_DIGEST:]
    if hashlib.sha256(data).digest() != stored[:_DIGEST]:
        raise DamagedError(
            f"tool output {ref!r} is damaged: its index is not what was written",
            remedy="run the tool again; `windowsill sessions verify` says what else is damaged",
            ref=ref,
        )
    return msgspec.msgpack.decode(data, type=Index)
