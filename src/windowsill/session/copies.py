"""Copy whole sessions from store to store, byte for byte, whatever the stores are; a copy that was cut off goes on.

Of a damaged session, what is left is saved into another store, with a list of what is missing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import msgspec

from windowsill.errors import InputError
from windowsill.history.entries import ROOT, ROOT_HASH, Entry, is_whole, reseal
from windowsill.history.view import message_meta
from windowsill.journal.reader import JournalReader
from windowsill.messages import Usage
from windowsill.search.query import index_words
from windowsill.session.integrity import problems
from windowsill.store import SessionInfo, Store
from windowsill.store.base import no_session
from windowsill.store.codec import CLOCK, DELETED, MARK
from windowsill.store.search_index import APART, Filters, passage_number
from windowsill.store.sqlite.salvage import Remains

BATCH = 500
"""Entries read at once."""

BATCH_BYTES = 4 << 20
"""Bytes written in one transaction: few enough for memory, enough that its commit costs little."""

T = TypeVar("T")


def copy_session(source: Store, target: Store, id: str) -> int:
    """Copy a session with all that belongs to it; return how many entries were new in the target.

    Every hash is checked on the way. A target that has the beginning of the session already gets the rest; one that has
    other entries under that id is refused untouched.
    """
    info = source.info(id)
    if info is None:
        raise no_session(id)
    problems = JournalReader(source, id).problems(info.version)
    if problems:
        raise InputError(
            f"session {id!r} is not whole: {problems[0]}",
            remedy="`windowsill sessions verify` lists what is wrong, `windowsill store repair` saves the rest",
        )
    first = _begin(source, target, info)
    known = set(target.blob_ids(id, ""))
    ids = (blob for blob in source.blob_ids(id, "") if blob not in known)
    for blobs in _batches(((blob, source.blob(id, blob) or b"") for blob in ids), lambda each: len(each[1])):
        target.put_blobs(id, blobs)
    copy_entries(JournalReader(source, id).walk([(first, info.version)], bodies=True), target, id)
    _copy_views(source, target, info)
    _copy_stored(source, target, id)
    return info.version - first + 1


def copy_facts(source: Store, target: Store) -> int:
    """Copy what was learned about models, unless the target knows better; return how many facts were new."""
    known = source.facts("").items()
    found = {key: value for key, value in known if key not in (MARK, DELETED, CLOCK) and target.recall(key) is None}
    for key, value in found.items():
        target.remember(key, value)
    return len(found)


def _begin(source: Store, target: Store, info: SessionInfo) -> int:
    """Make the session in the target; return the first entry that it lacks."""
    if target.create(info.id, at=info.created, settings=info.settings):
        return 1
    there = target.info(info.id)
    version = there.version if there else 0
    last = target.read(info.id, version, version, bodies=False)
    same = source.read(info.id, version, version, bodies=False)
    if version > info.version or [each.hash for each in last] != [each.hash for each in same]:
        raise InputError(
            f"there is another session {info.id!r} already", remedy="delete it, or copy the others by their ids"
        )
    if there and there.settings != info.settings:
        target.set_settings(info.id, info.settings)
    return version + 1


def copy_entries(entries: Iterable[Entry], target: Store, id: str) -> None:
    """Append entries to a session in batches, with the keys under which clients find its messages."""
    for batch in _batches(entries, lambda entry: len(entry.body or b"")):
        messages = (entry for entry in batch if entry.kind == "message")
        places = [(key, entry.seq) for entry in messages for key in message_meta(entry.meta).places]
        target.append(id, batch[0].seq - 1, batch, places=places)


def _batches(items: Iterable[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    batch: list[T] = []
    held = 0
    for item in items:
        batch.append(item)
        held += size(item)
        if held > BATCH_BYTES or len(batch) >= BATCH:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch


def _copy_views(source: Store, target: Store, info: SessionInfo) -> None:
    """Copy the stored views: with them a long session opens as fast as before."""
    before = info.version
    while (found := source.snapshot(info.id, before)) is not None:
        target.append(info.id, info.version, [], snapshots=[found])
        before = found[0] - 1


def _copy_stored(source: Store, target: Store, id: str) -> None:
    """Copy what was put into the archive by hand; the rest of its index is made again from the journal."""
    index = source.search_index()
    for session in index.sessions([id]):
        keys = [key for key in index.allowed(session, Filters()) if passage_number(key) >= APART]
        stored = [passage for _, passage in sorted(index.passages(keys).items()) if passage.seq is None]
        if stored:
            target.search_index().put(id, stored, [index_words(passage.text) for passage in stored])


_NOTHING = msgspec.msgpack.encode(Usage())


def salvage_session(left: Remains, target: Store) -> list[str]:
    """Write what is left of a session to a store that does not have it; list what is missing.

    Up to the first entry that is lost everything is as it was. In the place of a lost entry stands an empty one, so
    that all that refers to entries by their numbers still does, and what follows is bound to it anew.
    """
    entries, lost = _chained(left)
    target.create(left.id, at=left.created, settings=left.settings)
    target.put_blobs(left.id, left.blobs.items())
    copy_entries(entries, target, left.id)
    info = target.info(left.id)
    return lost + (problems(target, info) if info else [])


def _chained(left: Remains) -> tuple[list[Entry], list[str]]:
    lost: list[str] = []
    made: list[Entry] = []
    written = {ROOT: ROOT_HASH}
    """The hashes that were written, as far as they can be read."""
    hashes = {ROOT: ROOT_HASH}
    for seq in range(ROOT + 1, left.version + 1):
        found = left.entries.get(seq)
        if found is not None:
            written[seq] = found.hash
        if found is None or not _is_sound(found, written.get(found.parent)):
            what = f"{found.kind} {found.id}" if found is not None else "nothing of it can be read"
            lost.append(f"entry {seq} is lost ({what})")
            found = Entry(seq, seq - 1, "usage", f"lost-{seq}", made[-1].at if made else 0.0, _NOTHING, b"", b"", b"")
        entry = reseal(found, hashes[found.parent], found.meta, found.body or b"")
        hashes[seq] = entry.hash
        made.append(entry)
    return made, lost


def _is_sound(entry: Entry, parent_hash: bytes | None) -> bool:
    """Tell whether an entry is what was written; of one whose parent cannot be read, its body has to be enough."""
    if parent_hash is None:
        return 0 <= entry.parent < entry.seq and hashlib.sha256(entry.body or b"").digest() == entry.body_hash
    return is_whole(entry, parent_hash)
