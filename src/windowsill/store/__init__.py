"""Where sessions are kept: the protocol that every store fulfils, and how to open one by its address."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from windowsill.history.entries import Entry, Kind

__all__ = ["Lock", "SessionInfo", "Store"]


class SessionInfo(msgspec.Struct, frozen=True):
    """A session as a list shows it."""

    id: str
    created: float
    updated: float
    version: int
    settings: bytes = b"{}"


class Lock(msgspec.Struct, frozen=True):
    """Who holds a session, and until when."""

    session: str
    holder: str
    expires: float


@runtime_checkable
class Store(Protocol):
    """An append-only journal per session, and small derived data beside it.

    `version` is the number of entries. Every call is one transaction: it happens whole or not at all, and when it
    returns, it survives the death of the process. Stores may be used by several threads.
    """

    def create(self, session: str, *, at: float, settings: bytes = b"{}") -> bool:
        """Make sure the session exists; true when it is new. Its settings are written only then."""

    def info(self, session: str) -> SessionInfo | None:
        """What is known of one session, or `None`."""

    def sessions(self) -> list[SessionInfo]:
        """All sessions, the last used first."""

    def delete(self, session: str) -> bool:
        """Remove a session with everything that belongs to it; false when there was none."""

    def set_settings(self, session: str, settings: bytes) -> None:
        """Replace the session's settings."""

    def append(
        self,
        session: str,
        version: int,
        entries: Sequence[Entry],
        *,
        snapshots: Iterable[tuple[int, bytes]] = (),
        blobs: Iterable[tuple[str, bytes]] = (),
    ) -> None:
        """Add entries after `version`, with snapshots and blobs, all or nothing; `ConflictError` if it moved on."""

    def read(
        self, session: str, first: int, last: int, *, kinds: Sequence[Kind] | None = None, bodies: bool = True
    ) -> list[Entry]:
        """Entries with `first <= seq <= last`, in order; without bodies their `body` is `None`."""

    def jumps(self, session: str) -> list[tuple[int, int]]:
        """`(seq, parent)` of every entry whose parent is not the entry before it, in order."""

    def find(self, session: str, id: str) -> Entry | None:
        """The entry with this id."""

    def snapshot(self, session: str, at_or_before: int) -> tuple[int, bytes] | None:
        """The last view snapshot at or before an entry."""

    def blob(self, session: str, id: str) -> bytes | None:
        """A blob that an entry of this session refers to."""

    def remember(self, key: str, value: bytes) -> None:
        """Keep a fact learned about the world (a window, a calibration) across sessions."""

    def recall(self, key: str) -> bytes | None:
        """A fact kept by `remember`."""

    def recall_all(self, prefix: str) -> dict[str, bytes]:
        """All facts whose key begins with `prefix`."""

    def lock(self, session: str, holder: str, *, seconds: float, now: float) -> Lock:
        """Take or renew the session's lock; `LockedError` while another living holder has it."""

    def locked(self, session: str, *, now: float) -> Lock | None:
        """Who holds the lock now."""

    def unlock(self, session: str, holder: str | None = None) -> bool:
        """Give the lock back; without a holder, release it by force. False when there was nothing to release."""

    def close(self) -> None:
        """Release what the store holds. Closing twice is fine."""
