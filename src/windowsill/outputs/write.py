"""Write an output that arrives in pieces: in bounded memory, in small transactions, visible only when whole."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from windowsill.errors import DamagedError, InputError, StoreError
from windowsill.messages import OutputRef
from windowsill.outputs.parts import (
    PART_BYTES,
    PARTS,
    Cutter,
    Index,
    Part,
    alive_at,
    alive_id,
    copies,
    encode_text,
    index_id,
    pack_index,
    part_id,
    unpack_index,
)
from windowsill.store import Store

if TYPE_CHECKING:
    from typing import Self


HEARTBEAT = 15 * 60.0
"""Seconds between two signs that a slow writing goes on: several fit into the time until it counts as abandoned."""

ID_DIGITS = (16, 32, 64)
"""Hexadecimal digits of a ref: short, and longer only if another content of the session has the same beginning."""


class OutputWriter:
    """An output on its way into the store: `write` its pieces, then `finish`, or `abandon` it."""

    def __init__(
        self, store: Store, session: str, token: str, *, clock: Callable[[], float], part_bytes: int = PART_BYTES
    ) -> None:
        self.token = token
        self._store = store
        self._session = session
        self._clock = clock
        self._cutter = Cutter(part_bytes)
        self._digest = hashlib.sha256()
        self._parts: list[Part] = []
        self._ready: list[tuple[str, bytes]] = []
        self._written = 0
        self._signs: list[str] = []
        self._signed = float("-inf")
        self._done = False

    @property
    def is_open(self) -> bool:
        """True until it is finished or abandoned."""
        return not self._done

    def write(self, piece: bytes | str) -> None:
        """Add a piece; text is kept as UTF-8."""
        for _ in self.take(piece):
            self.put()

    def take(self, piece: bytes | str) -> Iterator[None]:
        """Add a piece; stops whenever there is something to `put` before it goes on."""
        self._check_open()
        for data in encode_text(piece) if isinstance(piece, str) else (piece,):
            self._digest.update(data)
            for part, cut in self._cutter.take(data):
                self._add(part, cut)
                yield  # a part in each transaction: 2 MiB hold the write lock for milliseconds
        if self._signs and self._clock() - self._signed >= HEARTBEAT:
            yield

    def put(self) -> None:
        """Store the parts that are complete."""
        now = self._clock()
        if now - self._signed >= HEARTBEAT:
            self._signs.append(alive_id(self.token, int(now * 1000)))
            self._ready.append((self._signs[-1], b""))
            self._signed = now
        self._store.put_blobs(self._session, self._ready)
        self._written = len(self._parts)
        self._ready.clear()

    def finish(self) -> OutputRef:
        """Make it an output of the session; content that the session already has is not kept twice."""
        self._check_open()
        self._check_whole()
        for part, data in self._cutter.rest():
            self._add(part, data)
        digest = self._digest.digest()
        index = Index(digest, self._cutter.size, self._cutter.lines, tuple(self._parts))
        ref = self._free_ref(digest)
        mine = index_id(ref, int(self._clock() * 1000), self.token)
        self._store.put_blobs(self._session, [*self._ready, (mine, pack_index(index))])
        self._done = True
        self._ready.clear()
        drop(self._store, self._session, self._signs)
        for copy in copies(self._store, self._session, ref)[:-1]:
            # The index goes first: without it the parts are leftovers, which a collection finds.
            drop(self._store, self._session, [copy.blob])
            drop(self._store, self._session, self._store.blob_ids(self._session, f"{PARTS}{copy.token}/"))
        return OutputRef(ref, index.size, index.lines)

    def abandon(self) -> None:
        """Remove what was written so far. After `finish` it does nothing."""
        if not self._done:
            self._done = True
            self._ready.clear()
            drop(self._store, self._session, self._store.blob_ids(self._session, f"{PARTS}{self.token}/"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Abandon what was not finished inside the block."""
        self.abandon()

    def _add(self, part: Part, data: bytes) -> None:
        self._ready.append((part_id(self.token, len(self._parts)), data))
        self._parts.append(part)

    def _check_open(self) -> None:
        if self._done:
            raise InputError("this output is already finished or abandoned", remedy="start another one")

    def _check_whole(self) -> None:
        """Refuse to finish a writing that was silent for long and taken for an abandoned one."""
        if not self._signs:
            return
        found = self._store.blob_ids(self._session, f"{PARTS}{self.token}/")
        if sum(alive_at(blob) is None for blob in found) < self._written:
            raise StoreError(
                f"a tool output of session {self._session!r} was removed while it was written: it was silent for long",
                remedy="run the tool again",
                session=self._session,
            )

    def _free_ref(self, digest: bytes) -> str:
        """Return the shortest ref that no other content of this session has."""
        refs = [f"b{digest.hex()[:digits]}" for digits in ID_DIGITS]
        return next((ref for ref in refs if self._digest_of(ref) in (None, digest)), refs[-1])

    def _digest_of(self, ref: str) -> bytes | None:
        found = copies(self._store, self._session, ref)
        stored = self._store.blob(self._session, found[-1].blob) if found else None
        try:
            return unpack_index(stored, ref).digest if stored else None
        except DamagedError:
            # Keeping the content again is the remedy for a damaged one.
            return None


def drop(store: Store, session: str, ids: Iterable[str]) -> int:
    """Remove blobs one by one: deleted bytes are overwritten, and others wait for the lock meanwhile."""
    return sum(store.drop_blobs(session, [id]) for id in list(ids))
