"""Check what a store is given: the same rules for every database, checked before one is asked."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence

from windowsill.errors import InputError, NotFoundError, StoreError
from windowsill.history.entries import Entry
from windowsill.text import type_name

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
    for id, count in Counter(entry.id for entry in entries).items() if len(entries) > 1 else ():
        if count > 1:
            raise duplicate(session, id)


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


def _problem(expected: int, entry: Entry) -> tuple[str, str] | None:
    """Find what is wrong with an entry, and the remedy."""
    if entry.seq != expected:
        return f"is numbered {entry.seq}, not {expected}", "number entries from version + 1 without gaps"
    if not 0 <= entry.parent < entry.seq:
        return f"has the parent {entry.parent}", "build on an earlier entry, or on 0"
    if entry.body is None:
        return "comes without its body", "read it with its body first"
    if not _is_exact(entry.at):
        return f"has the time {entry.at!r}", "give seconds as a float, neither infinite nor minus zero"
    if not 0 < len(entry.id) <= MAX_NAME or not _is_plain(entry.id):
        return "has an id that cannot be kept", f"give 1 to {MAX_NAME} characters of text"
    return None


def _is_exact(at: float) -> bool:
    """Tell whether a time reads back with the same `repr`, which is part of the entry's hash."""
    return type(at) is float and math.isfinite(at) and (at != 0 or math.copysign(1, at) > 0)


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
