"""A kept output: read part by part from the store's blobs, each checked when it is read for the first time."""

from __future__ import annotations

import hashlib
import zlib

from windowsill.errors import DamagedError
from windowsill.messages import Block
from windowsill.outputs.index import Copy, Index, copies, part_id, unpacked
from windowsill.store import Store


class Kept:
    """An output whose parts are blobs. Several threads may read it."""

    blocks: tuple[Block, ...] = ()

    def __init__(self, store: Store, session: str, copy: Copy, index: Index, checked: set[str] | None = None) -> None:
        self.id = copy.ref
        self.bytes = index.size
        self.lines = index.lines
        self.parts = index.parts
        self.digest = index.digest
        self._store = store
        self._session = session
        self._token = copy.token
        self._checked = set() if checked is None else checked

    def data(self, number: int) -> bytes:
        """The bytes of a part; `DamagedError` when they are not what was written."""
        return self._data(number)

    def verify(self) -> None:
        """Read everything; `DamagedError` when it is not, byte for byte, what was written."""
        whole = hashlib.sha256()
        for number in range(len(self.parts)):
            whole.update(self._data(number, again=True))
        if whole.digest() != self.digest:
            raise DamagedError(
                f"tool output {self.id!r} is damaged: its content is not what was written",
                remedy="run the tool again",
                ref=self.id,
            )

    def _data(self, number: int, *, again: bool = False) -> bytes:
        """The bytes of a part, checked when it is read for the first time, or `again`."""
        blob = part_id(self._token, number)
        data = self._store.blob(self._session, blob)
        if data is None:
            data = self._elsewhere(number)
            blob = part_id(self._token, number)
        part = self.parts[number]
        if data is None:
            raise self._damage(number, "is missing")
        # Overwritten pages can give any type.
        if not isinstance(data, bytes) or len(data) != part.size:
            raise self._damage(number, "is not what was written")
        if again or blob not in self._checked:
            if zlib.crc32(data) != part.check:
                raise self._damage(number, "is not what was written")
            self._checked.add(blob)
        return data

    def _elsewhere(self, number: int) -> bytes | None:
        """The part from a newer copy: the same content was kept again since this one was opened."""
        for copy in reversed(copies(self._store, self._session, self.id)):
            if copy.token != self._token:
                self._token = copy.token
                return self._store.blob(self._session, part_id(copy.token, number))
        return None

    def _damage(self, number: int, how: str) -> DamagedError:
        part = self.parts[number]
        places = [(part.line, part.column) for part in self.parts[number + 1 : number + 2]]
        following, column = places[0] if places else (self.lines + 1, 1)
        last = following - (column == 1)
        return DamagedError(
            f"tool output {self.id!r} is damaged: what holds lines {part.line:,}-{last:,} {how}",
            remedy="the other lines can still be read; run the tool again for these",
            ref=self.id,
            first=part.line,
            last=last,
        )


def find_kept(store: Store, session: str, ref: str, checked: set[str] | None = None) -> Kept | None:
    """The kept output with this ref, or `None` when the session has none; `checked` remembers parts found whole."""
    for copy in reversed(copies(store, session, ref)):
        stored = store.blob(session, copy.blob)
        # It is gone when the same content was kept again between the two calls: then the next one is not.
        if stored is not None:
            return Kept(store, session, copy, unpacked(stored, ref), checked)
    return None
