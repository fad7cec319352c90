"""Save what is left of a damaged session into another store, with a list of what is missing."""

from __future__ import annotations

import hashlib

import msgspec

from windowsill.history.entries import ROOT, ROOT_HASH, Entry, is_whole, seal
from windowsill.messages import Usage
from windowsill.session.copies import copy_entries
from windowsill.session.integrity import problems
from windowsill.store import Store
from windowsill.store.sqlite.salvage import Remains

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
        entry = seal(
            seq=seq,
            parent=found.parent,
            parent_hash=hashes[found.parent],
            kind=found.kind,
            id=found.id,
            at=found.at,
            meta=found.meta,
            body=found.body or b"",
        )
        hashes[seq] = entry.hash
        made.append(entry)
    return made, lost


def _is_sound(entry: Entry, parent_hash: bytes | None) -> bool:
    """Tell whether an entry is what was written; of one whose parent cannot be read, its body has to be enough."""
    if parent_hash is None:
        return 0 <= entry.parent < entry.seq and hashlib.sha256(entry.body or b"").digest() == entry.body_hash
    return is_whole(entry, parent_hash)
