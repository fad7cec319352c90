"""The base of all stores: checks of what they are asked to keep, and the holders of their locks."""

from __future__ import annotations

import hashlib
import math
import os
import socket
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from windowsill.errors import InputError, NotFoundError, StoreError
from windowsill.history.entries import Entry
from windowsill.store import Lock, Store
from windowsill.text import type_name

_UNKNOWN = "?"
_PARTS = 4
_DEAD_STATES = ("Z", "X", "x")
_START_FIELD = 19
"""The place of the start time in /proc/PID/stat, counted from the field after the command."""


def holder_name() -> str:
    """Name this thread as `host:pid:start:thread`; no other thread ever has the same name."""
    pid = os.getpid()
    return f"{_host()}:{pid}:{_start(pid) or _UNKNOWN}:{threading.get_native_id()}"


def is_dead(holder: str) -> bool:
    """Tell whether a holder ran on this host and its process is gone; false when that cannot be known from here."""
    parts = holder.rsplit(":", _PARTS - 1)
    if len(parts) != _PARTS or parts[0] != _host() or not parts[1].isdecimal():
        return False
    pid, start = int(parts[1]), parts[2]
    seen = _start(pid)
    if seen is None or start == _UNKNOWN:
        return not _answers(pid)
    # A number is given again to a new process, so the start time has to be the same too.
    return seen != start


def in_force(lock: Lock, now: float) -> bool:
    """Tell whether a lock still keeps others out: its time is not over and its holder is not known to be dead."""
    return lock.expires > now and not is_dead(lock.holder)


def in_the_way(holder: str, held: Lock | None, line: Iterable[Lock], now: float) -> str | None:
    """Return who keeps a holder from a lock: whoever has it, else whoever came first of those who wait for it."""
    for lock in (*([held] if held else []), *line):
        if in_force(lock, now):
            return None if lock.holder == holder else lock.holder
    return None


def _host() -> str:
    """Name the machine as far as process numbers go: containers may share a host name but not their processes."""
    name = socket.gethostname()
    try:
        return f"{name}/{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return name


def _start(pid: int) -> str | None:
    """Return when a process started, in ticks of the machine; empty for a dead one, `None` if none can be seen."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The command stands second, in brackets, and may itself hold spaces and brackets.
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in _DEAD_STATES else fields[_START_FIELD]


def _answers(pid: int) -> bool:
    if sys.platform == "win32":
        # There, signal 0 is not a question but Ctrl-C; the lock ends with its time.
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


MAX_SEQ = 2**32 - 1
"""The last number an entry can have: it is half of the key of its body, or of its passages."""

MAX_NAME = 500
"""Long enough for a path or a URL as a session's name, short enough for an index entry in every database."""


def check_name(what: str, name: str) -> None:
    """Refuse a name that some database could not keep as it is."""
    if not isinstance(name, str):
        raise InputError(f"the {what} is {type_name(name)}", remedy=f"give 1 to {MAX_NAME} characters of text")
    if not name:
        raise InputError(f"the {what} is empty", remedy=f"give 1 to {MAX_NAME} characters")
    if len(name) > MAX_NAME:
        raise InputError(f"the {what} has {len(name)} characters", remedy=f"give 1 to {MAX_NAME}", name=name)
    if not _is_plain(name):
        raise InputError(f"the {what} {name!r} holds a character that is not text", remedy="leave it out", name=name)


def check_batch(session: str, version: int, entries: Sequence[Entry]) -> None:
    """Refuse entries that do not continue the journal after `version`, or would not read back as they are."""
    for expected, entry in enumerate(entries, version + 1):
        problem = _problem(expected, entry)
        if problem:
            raise StoreError(
                f"session {session!r}: entry {entry.id!r} {problem[0]}", remedy=problem[1], session=session
            )
    if len(entries) > 1 and len({entry.id for entry in entries}) < len(entries):
        raise duplicate(session, Counter(entry.id for entry in entries).most_common(1)[0][0])


def check_extras(
    session: str, end: int, snapshots: Sequence[tuple[int, bytes]], blobs: Sequence[tuple[str, bytes]]
) -> None:
    """Refuse a snapshot of a moment that the journal has not reached, and blobs that cannot be named so."""
    for seq, _ in snapshots:
        if not 0 <= seq <= end:
            raise StoreError(
                f"session {session!r}: a snapshot at {seq}, but the journal ends at {end}",
                remedy="append the snapshot together with its entry",
                session=session,
            )
    for id, _ in blobs:
        check_name("blob's id", id)


@contextmanager
def closed_on_error(store: Store) -> Iterator[None]:
    """Close a store that cannot be opened after all."""
    try:
        yield
    except BaseException:
        store.close()
        raise


def duplicate(session: str, id: str) -> StoreError:
    """Make the error for an entry id that the session already has."""
    return StoreError(
        f"session {session!r} already has an entry {id!r}", remedy="give each entry an id of its own", session=session
    )


def no_session(session: str) -> NotFoundError:
    """Make the error for writing to a session that is not there."""
    return NotFoundError(f"there is no session {session!r}", remedy="create it first", session=session)


def settings_checksum(session: str, settings: bytes) -> bytes:
    """Return the checksum of the settings of a session."""
    data = settings if isinstance(settings, bytes) else repr(settings).encode(errors="replace")
    return hashlib.blake2b(session.encode() + b"\0" + data, digest_size=16).digest()


def journal_problems(run: Callable[[str], Iterable[Any]]) -> list[str]:
    """List what is wrong with the rows of journals, by the statements `gaps`, `lost_tips` and `session_checksums`."""
    found = [
        f"session {id!r} has {count} entries, but its last one is number {last}" for id, count, last in run("gaps")
    ]
    found += [
        f"session {id!r} ended with entry {known}, but its last one is {last or 'gone'}"
        if known != last
        else f"session {id!r} ends with another entry {last} than the one that was written"
        for id, known, last in run("lost_tips")
    ]
    found += [
        f"the settings of session {id!r} are not what was written"
        for id, settings, checksum in run("session_checksums")
        if checksum != settings_checksum(id, settings)
    ]
    return found


def _problem(expected: int, entry: Entry) -> tuple[str, str] | None:
    """Find what is wrong with an entry, and the remedy."""
    if entry.seq != expected:
        return f"is numbered {entry.seq}, not {expected}", "number entries from version + 1 without gaps"
    if expected > MAX_SEQ:
        return f"is numbered {expected}", f"go on in another session: one has {MAX_SEQ} entries at most"
    if not 0 <= entry.parent < entry.seq:
        return f"has the parent {entry.parent}", "build on an earlier entry, or on 0"
    if entry.body is None:
        return "comes without its body", "read it with its body first"
    # It has to read back with the same `repr`, which is part of the entry's hash.
    if type(at := entry.at) is not float or not math.isfinite(at) or (at == 0 and math.copysign(1, at) < 0):
        return f"has the time {at!r}", "give seconds as a float, neither infinite nor minus zero"
    if not 0 < len(entry.id) <= MAX_NAME or not _is_plain(entry.id):
        return "has an id that cannot be kept", f"give 1 to {MAX_NAME} characters of text"
    return None


def _is_plain(text: str) -> bool:
    """Tell whether every database can keep the text: PostgreSQL has no NUL, and none half a surrogate pair."""
    if "\0" in text:
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
