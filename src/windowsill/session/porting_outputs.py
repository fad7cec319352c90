"""Carries kept outputs between stores: piece by piece, so that a large one never has to fit in memory."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from windowsill.errors import DamagedError
from windowsill.history.entries import ROOT, Entry
from windowsill.history.view import message_meta
from windowsill.outputs import Outputs, Writing, chunks
from windowsill.outputs.index import copies
from windowsill.outputs.output import Output
from windowsill.session.journal import CHUNK
from windowsill.session.porting_secrets import Cleaning, cleaned
from windowsill.store import Store


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """Some bytes of a kept output, which the line after this one continues or ends."""

    output: str
    """Its ref, which is a hash of all its bytes."""
    data: bytes


def kept_refs(store: Store, id: str, version: int) -> set[str]:
    """The refs in messages, on whatever branch, of outputs that the session keeps."""
    kept = {copy.ref for copy in copies(store, id)}
    found: set[str] = set()
    # Most sessions keep none: they are not read twice.
    for start in range(ROOT + 1, version + 1 if kept else 0, CHUNK):
        entries = store.read(id, start, min(version, start + CHUNK - 1), kinds=("message",), bodies=False)
        found.update(ref for entry in entries for ref in refs_of(entry))
    return kept & found


def refs_of(entry: Entry) -> list[str]:
    """The refs of the outputs that a message answers with."""
    return [ref.id for ref in message_meta(entry.meta).refs if ref is not None]


def pieces_of(store: Store, id: str, ref: str, cleaning: Cleaning | None = None) -> Iterator[Piece]:
    """A kept output; `DamagedError` where it is no longer what was written."""
    output = Outputs(store, id).open(ref)
    new = ref if cleaning is None else cleaning.output(ref, _data(output))
    empty = True
    for data in _data(output) if new == ref else cleaned(_data(output)):
        empty = False
        yield Piece(output=new, data=data)
    if empty:
        yield Piece(output=new, data=b"")


def _data(output: Output) -> Iterator[bytes]:
    return (data for _, data in chunks(output))


class Arriving:
    """Kept outputs on their way into a session, one after the other."""

    def __init__(self, store: Store, id: str) -> None:
        self._outputs = Outputs(store, id)
        self._ref = ""
        self._writing: Writing | None = None

    def take(self, piece: Piece, line: int) -> None:
        """Keep a piece; the first one of another output ends the one before."""
        if piece.output != self._ref:
            self.end(line)
            self._ref, self._writing = piece.output, self._outputs.start()
        if self._writing is not None:
            self._writing.write(piece.data)

    def end(self, line: int) -> None:
        """End the output, if there is one; `DamagedError` when it is not the one that its ref says."""
        if self._writing is None:
            return
        made, wanted = self._writing.finish(), self._ref
        self._ref, self._writing = "", None
        if made.id != wanted:
            raise DamagedError(
                f"line {line}: tool output {wanted!r} before it is not what was written",
                remedy="export the session again; nothing was imported",
                ref=wanted,
            )
