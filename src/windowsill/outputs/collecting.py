"""Remove kept outputs that nothing refers to, and what abandoned writings left behind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container

import msgspec

from windowsill.outputs.index import PARTS, alive_at, copies, token_of
from windowsill.outputs.writing import drop
from windowsill.store import Store

GRACE = 3600.0
"""Seconds for which an output stays although nothing refers to it: its message may be on its way into the journal, and
a writing that is silent for less may still go on."""


class Collected(msgspec.Struct, frozen=True):
    """What a collection removed."""

    outputs: tuple[str, ...] = ()
    """The refs that no longer resolve."""
    blobs: int = 0


def collect(
    store: Store, session: str, referenced: Container[str], *, now: float, writing: Container[str] = ()
) -> Collected:
    """Remove what neither `referenced` nor anything of the last hour needs; `writing` are tokens known to be at work.

    `referenced` has the refs of every message of the session, on whatever branch, hidden or not.
    """
    # Blobs first: an index that appears between the two calls then protects its parts.
    blobs = store.blob_ids(session, PARTS)
    oldest = int((now - GRACE) * 1000)
    found = copies(store, session)
    newest = {copy.ref: copy for copy in found}
    gone = sorted(ref for ref, copy in newest.items() if ref not in referenced and copy.at < oldest)
    doomed = [copy for copy in found if copy is not newest[copy.ref] or copy.ref in gone]
    dropped = drop(store, session, [copy.blob for copy in doomed])
    used = {copy.token for copy in found} - {copy.token for copy in doomed}
    finished = {copy.token for copy in doomed}
    for token, ids in _by_token(blobs).items():
        if token in used or token in writing:
            continue
        signs = [at for id in ids if (at := alive_at(id)) is not None]
        if token in finished or max(signs, default=oldest - 1) < oldest:
            dropped += drop(store, session, ids)
    return Collected(tuple(gone), dropped)


def _by_token(blobs: list[str]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = defaultdict(list)
    for blob in blobs:
        groups[token_of(blob)].append(blob)
    return groups
