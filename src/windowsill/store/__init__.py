"""The protocol of a store, which keeps sessions, and `open_store`, which opens one by its address."""

# ruff: noqa: PLC0415 - stores are imported when one is opened: they import this file, and cost time

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec

from windowsill.errors import InputError, StoreError
from windowsill.extras import extra
from windowsill.history.entries import Entry, Kind
from windowsill.store.search_index import SearchIndex
from windowsill.text import type_name

if TYPE_CHECKING:
    from windowsill.store.postgres import PostgresStore

__all__ = ["MOST_PLACES", "Lock", "Place", "SearchIndex", "SessionInfo", "Store", "StoreInfo", "open_store"]


def open_store(address: str | Path | None = None) -> Store:
    """Open the store at an address: a folder, a database file, `sqlite:///FILE`, `postgresql://...`, `:memory:`.

    Without an address it is the default place. A folder that does not exist is made, readable by its owner alone, and
    holds `sessions.db`; in a database of PostgreSQL a schema `windowsill` is made.
    """
    if address is not None and not isinstance(address, str | os.PathLike):
        raise InputError(f"{type_name(address)} is no address of a store", remedy="give a folder or a file as text")
    if server := server_address(address, os.environ):
        return open_server(server)
    try:
        path = database_file(address, os.environ, Path.cwd())
    except OSError as error:
        raise StoreError(
            f"the place of the sessions cannot be looked at ({error.strerror}: {error.filename})",
            remedy="allow this user to enter the folder, or give another one",
        ) from error
    if path is None:
        from windowsill.store.memory import MemoryStore

        return MemoryStore()
    from windowsill.store.sqlite import SQLiteStore

    return SQLiteStore(path, busy_seconds=_wait(str(address)))


def server_address(address: str | Path | None, env: Mapping[str, str]) -> str | None:
    """Return the address of a PostgreSQL server that is meant: given, or named by WINDOWSILL_HOME."""
    stated = str(env.get("WINDOWSILL_HOME", "") if address is None else address)
    scheme, found, _ = stated.partition("://")
    return stated if found and scheme.lower().partition("+")[0] in _POSTGRESQL else None


def open_server(address: str, *, create: bool = True) -> PostgresStore:
    """Open the store in a PostgreSQL database; without `create` it is an error when there is none."""
    with extra("postgres", "PostgreSQL"):
        from windowsill.store.postgres import PostgresStore
    return PostgresStore(address, create=create)


class SessionInfo(msgspec.Struct, frozen=True):
    """A session as a list shows it; `updated` is the time of its last entry, or of its creation if that is later."""

    id: str
    created: float
    updated: float
    version: int
    settings: bytes = b"{}"


class StoreInfo(msgspec.Struct, frozen=True):
    """A store as a whole: its kind, its place without a password, the version of its schema, its size on disk."""

    kind: str
    place: str
    schema: int
    bytes: int
    encrypted: bool = False
    """Bodies, blobs, views, settings and facts are encrypted with a key from WINDOWSILL_KEY."""
    deleted: int = 0
    """Deleted sessions whose bytes are in the files of the database until `windowsill store vacuum`."""


class Place(msgspec.Struct, frozen=True):
    """An entry that is found by a key: a session's message at which a conversation stands."""

    key: bytes
    session: str
    seq: int


MOST_PLACES = 8
"""Sessions that are returned for one key: whoever begins as thousands did is nobody's continuation."""


class Lock(msgspec.Struct, frozen=True):
    """The holder of a session, and when the lock ends."""

    session: str
    holder: str
    expires: float


@runtime_checkable
class Store(Protocol):
    """An append-only journal per session, and small derived data beside it.

    `version` is the number of entries. Every call is one transaction: it happens whole or not at all, and when it
    returns, it survives the death of the process. Stores may be used by several threads.

    Reading from a session that does not exist finds nothing; writing to one is a `NotFoundError`. Only `lock` and
    `unlock` do not ask whether it exists. Names and ids are 1 to 500 characters of text.
    """

    def create(self, session: str, *, at: float, settings: bytes = b"{}") -> bool:
        """Make sure the session exists; true when it is new. Its settings are written only then."""

    def info(self, session: str) -> SessionInfo | None:
        """Return what is known of one session, or `None`."""

    def sessions(self) -> list[SessionInfo]:
        """List all sessions, the last used first."""

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
        places: Iterable[tuple[bytes, int]] = (),
    ) -> None:
        """Add entries after `version`, with what belongs to them, all or nothing; `ConflictError` if it moved on.

        Entries are numbered from `version + 1` without gaps and have ids of their own, else it is a `StoreError`. A
        snapshot replaces an earlier one of the same entry; a blob whose id is already there is left as it is. `places`
        are keys under which `places` finds entries; of two of the same session the later one counts. They are digests:
        a store may tell them apart by their first 8 bytes.
        """

    def exclusive(self, session: str) -> AbstractContextManager[object]:
        """Keep everybody else from appending to a session until the end, waiting for a turn as long as a call would.

        What this thread writes meanwhile may be one transaction, undone by an exception and kept at the end.
        """

    def read(
        self, session: str, first: int, last: int, *, kinds: Sequence[Kind] | None = None, bodies: bool = True
    ) -> list[Entry]:
        """Return the entries with `first <= seq <= last`, in order; without bodies their `body` is `None`."""

    def jumps(self, session: str) -> list[tuple[int, int]]:
        """Return `(seq, parent)` of every entry whose parent is not the entry before it, in order."""

    def find(self, session: str, id: str) -> Entry | None:
        """Return the entry with this id."""

    def places(self, keys: Iterable[bytes], *, session: str | None = None) -> list[Place]:
        """Return the places of the first of these keys that is known: one for each session, newer ones first.

        At most `MOST_PLACES`, found without walking anything, in all sessions or in one.
        """

    def snapshot(self, session: str, at_or_before: int) -> tuple[int, bytes] | None:
        """Return the last view snapshot at or before an entry."""

    def blob(self, session: str, id: str) -> bytes | None:
        """Return a blob of this session."""

    def put_blobs(self, session: str, blobs: Iterable[tuple[str, bytes]]) -> None:
        """Keep blobs without touching the journal; one whose id is already there is left as it is."""

    def blob_ids(self, session: str, prefix: str) -> list[str]:
        """List the ids of the session's blobs that begin with `prefix`, in the order of their code points."""

    def drop_blobs(self, session: str, ids: Iterable[str]) -> int:
        """Remove blobs; return how many of them were there. The caller knows that nothing refers to them."""

    def remember(self, key: str, value: bytes) -> None:
        """Keep a fact learned about the world (a window, a calibration) across sessions."""

    def recall(self, key: str) -> bytes | None:
        """Return a fact kept by `remember`."""

    def facts(self, prefix: str) -> dict[str, bytes]:
        """Return the facts whose keys begin with `prefix`, in the order of their keys."""

    def forget(self, key: str) -> bool:
        """Drop a fact; false when there was none."""

    def lock(
        self, session: str, holder: str, *, seconds: float, now: float | None = None, patience: float = 0.0
    ) -> Lock:
        """Take or renew the session's lock; `LockedError` while another living holder has it, or came before.

        Its time goes by the store's own clock, unless `now` is given: machines that share a database have clocks that
        differ, so that there it is the database's. With `patience` a holder that is refused keeps its place in the line
        for so many seconds: whoever asks later is refused until then.
        """

    def locked(self, session: str, *, now: float | None = None) -> Lock | None:
        """Return who holds the lock now."""

    def unlock(self, session: str, holder: str | None = None) -> bool:
        """Give the lock and a place in the line back; without a holder, release the lock by force.

        False when there was no lock to release.
        """

    def search_index(self) -> SearchIndex:
        """Return the index of what was said in the sessions; a deleted session leaves nothing in it."""

    def about(self) -> StoreInfo:
        """Return what is known of the store as a whole."""

    def check(self, session: str | None = None) -> list[str]:
        """List what is wrong with the place itself; the hash chain is the reader's to check."""

    def vacuum(self) -> None:
        """Write the database anew, without the room and the bytes of what was deleted; others wait meanwhile."""

    def close(self) -> None:
        """Release what the store holds. Closing twice is fine."""


BUSY_SECONDS = 10.0
"""The wait for other writers: far longer than any commit, short enough that a user still waits."""

DATABASE = "sessions.db"
MEMORY = ":memory:"
_FILE_ENDINGS = (".db", ".sqlite", ".sqlite3")
_SQLITE = "sqlite:///"
_POSTGRESQL = ("postgresql", "postgres")


def default_place(env: Mapping[str, str], cwd: Path, *, platform: str = sys.platform) -> Path:
    """Return the folder for sessions: `WINDOWSILL_HOME`, `.windowsill/` here if it exists, or the user's data."""
    stated = env.get("WINDOWSILL_HOME")
    if stated:
        return cwd / _expand(stated, env)
    local = cwd / ".windowsill"
    return local if local.is_dir() else _data_folder(env, platform) / "windowsill"


def database_file(address: str | Path | None, env: Mapping[str, str], cwd: Path) -> Path | None:
    """Return the database file that an address means; `None` for one that lives in memory only.

    `sqlite:///x.db` is relative to the current folder and `sqlite:////x.db` is not, as elsewhere in Python. A path with
    a database's ending is the file itself; any other is the folder that holds `sessions.db`.
    """
    if address is None:
        return default_place(env, cwd) / DATABASE
    text = str(address)
    if text in (MEMORY, _SQLITE + MEMORY, "sqlite://"):
        return None
    if "://" in text and not isinstance(address, Path):
        text = _without_scheme(text)
    if not text:
        raise StoreError("the store's address is empty", remedy="give a folder, or a file that ends with .db")
    path = cwd / _expand(text, env)
    if path.suffix in _FILE_ENDINGS:
        return path
    if path.is_file():
        raise StoreError(
            f"{path} is a file, not a folder", remedy="give a folder, or a database file that ends with .db", path=path
        )
    return path / DATABASE


def _without_scheme(address: str) -> str:
    scheme = address.partition("://")[0].lower()
    if address.startswith(_SQLITE):
        return address.removeprefix(_SQLITE).partition("?")[0]
    # The address itself stays out of the message: it may hold a password.
    raise StoreError(
        f"no store is known for {scheme}:// addresses",
        remedy="give a folder, sqlite:///FILE or postgresql://HOST/DATABASE",
    )


def _wait(address: str) -> float:
    """Return for how many seconds a writer of a SQLite file waits for others: `sqlite:///FILE?wait=60`."""
    query = address.partition("?")[2] if address.startswith(_SQLITE) else ""
    name, _, value = (query or f"wait={BUSY_SECONDS}").partition("=")
    if name != "wait" or not value.replace(".", "", 1).isdecimal():
        raise StoreError(f"?{query} in the store's address is not known", remedy="give ?wait=SECONDS, or nothing")
    return float(value)


def _data_folder(env: Mapping[str, str], platform: str) -> Path:
    home = _home(env)
    if platform == "darwin":
        return home / "Library" / "Application Support"
    if platform == "win32":
        stated = env.get("LOCALAPPDATA")
        return Path(stated) if stated else home / "AppData" / "Local"
    stated = env.get("XDG_DATA_HOME")
    # The XDG rules say to ignore a path that is not absolute.
    return Path(stated) if stated and Path(stated).is_absolute() else home / ".local" / "share"


def _expand(text: str, env: Mapping[str, str]) -> Path:
    if text == "~" or text.startswith(("~/", "~\\")):
        return _home(env) / text[2:]
    return Path(text)


def _home(env: Mapping[str, str]) -> Path:
    stated = env.get("HOME") or env.get("USERPROFILE")
    if stated:
        return Path(stated)
    try:
        return Path.home()
    except RuntimeError as error:
        raise StoreError("this user has no home folder", remedy="set WINDOWSILL_HOME to a folder") from error
