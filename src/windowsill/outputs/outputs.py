"""The tool outputs of one session: keep them, open, read and search them, and remove what nothing refers to."""

from __future__ import annotations

import hashlib
import itertools
import secrets
import time
from collections import defaultdict
from collections.abc import AsyncIterable, Callable, Iterable
from weakref import WeakSet

import msgspec

from windowsill.errors import DamagedError, NotFoundError
from windowsill.history.entries import Entry
from windowsill.history.view import message_meta
from windowsill.journal.reader import JournalReader, message_of
from windowsill.messages import OutputRef, ToolResult
from windowsill.outputs.grep import SECONDS, Query, grep
from windowsill.outputs.parts import (
    PARTS,
    MessageOutput,
    Output,
    alive_at,
    copies,
    encode_text,
    find_stored,
    is_stored,
    place_of,
    ref_at,
    token_of,
)
from windowsill.outputs.read import read
from windowsill.outputs.show import Limits, preview_output, result_text
from windowsill.outputs.write import OutputWriter, drop
from windowsill.store import Store

GRACE = 3600.0
"""Seconds for which an output stays although nothing refers to it: its message may be on its way into the journal, and
a writing that is silent for less may still go on."""


class Collected(msgspec.Struct, frozen=True):
    """The outputs and blobs that a collection removed."""

    outputs: tuple[str, ...] = ()
    """The refs that no longer resolve."""
    blobs: int = 0


MANY_LINES = 2_000
MANY_MATCHES = 100


class Outputs:
    """The tool outputs of one session, whole; nothing of another session is ever found."""

    def __init__(
        self,
        store: Store,
        session: str,
        *,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.time,
        timer: Callable[[], float] = time.monotonic,
        new_token: Callable[[], str] = lambda: secrets.token_hex(8),
    ) -> None:
        self.limits = limits or Limits()
        self._store = store
        self._session = session
        self._clock = clock
        self._timer = timer
        self._new_token = new_token
        # A part is checked once, so that a second search does not check it again.
        self._checked: set[str] = set()
        self._writings: WeakSet[OutputWriter] = WeakSet()

    def start(self) -> OutputWriter:
        """Begin to keep an output that arrives in pieces."""
        writing = OutputWriter(self._store, self._session, self._new_token(), clock=self._clock)
        self._writings.add(writing)
        return writing

    def keep(self, output: bytes | str | Iterable[bytes | str]) -> OutputRef:
        """Keep an output, whole or in pieces, and give its ref; the same content gives the same ref."""
        with self.start() as writing:
            for piece in [output] if isinstance(output, bytes | str) else output:
                writing.write(piece)
            return writing.finish()

    async def akeep(self, pieces: AsyncIterable[bytes | str]) -> OutputRef:
        """Do as `keep` does, without holding up the event loop while the store is at work."""
        from anyio import CancelScope, to_thread  # noqa: PLC0415 - only who is asynchronous pays for it

        writing = self.start()
        try:
            async for piece in pieces:
                for _ in writing.take(piece):
                    await to_thread.run_sync(writing.put)
            return await to_thread.run_sync(writing.finish)
        finally:
            with CancelScope(shield=True):
                await to_thread.run_sync(writing.abandon)

    def open(self, ref: str) -> Output:
        """Return the output with this ref; `NotFoundError` when this session has none."""
        stored = find_stored(self._store, self._session, ref, self._checked) if is_stored(ref) else None
        return stored or self._from_message(ref)

    def read(self, ref: str, offset: int = 1, limit: int = MANY_LINES, *, column: int = 1) -> str:
        """Return lines with their numbers, from `offset` on; a `column` above 1 reads on inside that one line."""
        return read(self.open(ref), offset, limit, column, self.limits)

    def grep(
        self,
        ref: str,
        pattern: str,
        *,
        context: int = 0,
        before: int | None = None,
        after: int | None = None,
        ignore_case: bool = False,
        fixed: bool = False,
        limit: int = MANY_MATCHES,
        offset: int = 1,
        seconds: float = SECONDS,
    ) -> str:
        """Return the lines that match an RE2 pattern, or hold a fixed text, from line `offset` on."""
        query = Query(
            pattern=pattern,
            before=context if before is None else before,
            after=context if after is None else after,
            ignore_case=ignore_case,
            fixed=fixed,
            limit=limit,
            offset=offset,
        )
        return grep(self.open(ref), query, self.limits, self._timer, seconds)

    def preview(self, ref: str, *, with_ref: bool = True) -> str:
        """Return the beginning of an output, within the limits; `with_ref` says whether its ref may be named."""
        return preview_output(self.open(ref), self.limits, ref if with_ref else None)

    def verify(self, ref: str) -> None:
        """Read the whole of an output; `DamagedError` when it is not what was written."""
        self.open(ref).verify()

    def collect(self) -> Collected:
        """Remove stored outputs that no message refers to, on whatever branch, and leftovers of abandoned writings.

        Nothing of the last hour goes: its message may be on its way.
        """
        store, session = self._store, self._session
        referenced = self._referenced()
        # Blobs first: an index that appears between the two calls then protects its parts.
        writings: dict[str, list[str]] = defaultdict(list)
        for blob in store.blob_ids(session, PARTS):
            writings[token_of(blob)].append(blob)
        oldest = int((self._clock() - GRACE) * 1000)
        found = copies(store, session)
        newest = {copy.ref: copy for copy in found}
        gone = sorted(ref for ref, copy in newest.items() if ref not in referenced and copy.at < oldest)
        doomed = [copy for copy in found if copy is not newest[copy.ref] or copy.ref in gone]
        dropped = drop(store, session, [copy.blob for copy in doomed])
        finished = {copy.token for copy in doomed}
        used = {copy.token for copy in found} - finished
        used |= {writing.token for writing in self._writings if writing.is_open}
        for token, blobs in writings.items():
            signs = [at for blob in blobs if (at := alive_at(blob)) is not None]
            if token not in used and (token in finished or max(signs, default=oldest - 1) < oldest):
                dropped += drop(store, session, blobs)
        return Collected(tuple(gone), dropped)

    def _referenced(self) -> set[str]:
        """Return the refs of every message, on whatever branch, hidden or not."""
        info = self._store.info(self._session)
        walk = JournalReader(self._store, self._session).walk
        entries = walk([(1, info.version if info is not None else 0)], kinds=("message",))
        return {ref.id for entry in entries for ref in message_meta(entry.meta).refs if ref is not None}

    def _from_message(self, ref: str) -> Output:
        seq, number = place_of(ref) or (0, None)
        entries = self._store.read(self._session, seq, seq, kinds=("message",)) if seq else []
        results = self._results(entries[0], ref) if entries else ()
        if (number or 1) > len(results):
            raise NotFoundError(
                f"there is no tool output {ref!r} in this session",
                remedy="give a ref as it was shown, such as o12, o12.2 or b and 16 digits",
                ref=ref,
            )
        if number is None and len(results) > 1:
            raise NotFoundError(
                f"{ref} stands for {len(results)} tool outputs",
                remedy=f"name one: {ref_at(seq, 1, of=2)} to {ref_at(seq, len(results), of=2)}",
                ref=ref,
            )
        result = results[(number or 1) - 1]
        stored = find_stored(self._store, self._session, result.ref.id, self._checked) if result.ref else None
        return stored or MessageOutput(ref, encode_text(result_text(result)), result.content)

    def _results(self, entry: Entry, ref: str) -> tuple[ToolResult, ...]:
        try:
            shared = [self._store.read(self._session, each.seq, each.seq) for each in message_meta(entry.meta).same]
            entries = itertools.chain([entry], *shared)
            if all(hashlib.sha256(each.body or b"").digest() == each.body_hash for each in entries):
                return message_of(entry, self._store, self._session).results
        except DamagedError:
            pass
        raise DamagedError(
            f"tool output {ref!r} is damaged: no line of it can be read",
            remedy="run the tool again; `windowsill sessions verify` says what else is damaged",
            ref=ref,
        )
