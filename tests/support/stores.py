"""Journals for the store's tests: entries that are sealed, numbered and bound to each other."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from support import postgres
from windowsill.errors import ConflictError
from windowsill.history.entries import ROOT, ROOT_HASH, Entry, is_whole, seal
from windowsill.store import Store
from windowsill.store.memory import MemoryStore
from windowsill.store.postgres import PostgresStore
from windowsill.store.sqlite import SQLiteStore

STORES: dict[str, Callable[[Path], Store]] = {
    "memory": lambda _: MemoryStore(),
    "sqlite": lambda folder: SQLiteStore(folder / "sessions.db"),
    "postgres": lambda _: PostgresStore(postgres.server().empty_url()),
}
"""Every kind of store, each empty."""


class Counting(MemoryStore):
    """A store that counts the entries it gives out, and the keys it looks up."""

    given = 0

    def read(self, *place: Any, **more: Any) -> list[Entry]:
        found = super().read(*place, **more)
        self.given += len(found)
        return found

    def places(self, keys: Iterable[bytes], **more: Any) -> Any:
        return super().places(self._counted(keys), **more)

    def _counted(self, keys: Iterable[bytes]) -> Iterator[bytes]:
        for key in keys:
            self.given += 1
            yield key


def child_env() -> dict[str, str]:
    """The environment for a child process that imports this file."""
    path = [str(Path(__file__).resolve().parents[1]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))}


def chain(
    count: int, *, after: Entry | None = None, name: str = "m", body: bytes = b"body", jump: int | None = None
) -> list[Entry]:
    """Entries that continue a journal after its last one; `jump` is the number of another parent for the first."""
    made: list[Entry] = []
    for _ in range(count):
        last = made[-1] if made else after
        seq = last.seq + 1 if last else 1
        made.append(
            seal(
                seq=seq,
                parent=jump if jump is not None and not made else seq - 1,
                parent_hash=last.hash if last else ROOT_HASH,
                kind="message",
                id=f"{name}{seq}",
                at=1000.0 + seq,
                meta=b"{}",
                body=body,
            )
        )
    return made


def is_chain(entries: Iterable[Entry]) -> bool:
    """Tell whether entries are numbered from 1 and each is bound to its parent."""
    hashes = {ROOT: ROOT_HASH}
    for place, entry in enumerate(entries, 1):
        if entry.seq != place or not is_whole(entry, hashes[entry.parent]):
            return False
        hashes[entry.seq] = entry.hash
    return True


def everything(store: Store, session: str = "s") -> list[Entry]:
    """The whole journal."""
    return store.read(session, 1, 2**40)


def grow(store: Store, count: int, *, name: str, body: bytes = b"body", session: str = "s") -> Sequence[Entry]:
    """Append one batch at the end, however often somebody else is faster."""
    while True:
        info = store.info(session)
        assert info is not None
        last = store.read(session, info.version, info.version)
        batch = chain(count, after=last[0] if last else None, name=name, body=body)
        try:
            store.append(session, info.version, batch)
        except ConflictError:
            continue
        return batch
