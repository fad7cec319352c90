"""Verify a session: compare everything that is stored of it with what was written, or with what it was made from."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from windowsill.config import read_settings
from windowsill.errors import WindowsillError
from windowsill.history.entries import ROOT
from windowsill.history.head import call_meta, is_whole_snapshot
from windowsill.history.view import message_meta
from windowsill.journal.reader import CHUNK, SAME, JournalReader, output_digest
from windowsill.outputs.parts import INDEXES, PARTS, copies, find_stored
from windowsill.search.archive import passages_between
from windowsill.session.audit import is_blob
from windowsill.store import SessionInfo, Store
from windowsill.store.search_index import Filters, Passage

OUTPUTS = (INDEXES, PARTS)
RUNS = "run/"
"""Before the names of blobs with the events and results of runs by workers."""


def problems(store: Store, info: SessionInfo) -> list[str]:
    """List what is wrong with a session; one that can no longer be opened is checked too.

    `Store.check` lists what is wrong with the place itself: its file, its indexes, lost tails, settings.
    """
    reader = JournalReader(store, info.id)
    found: list[str] = []
    for check in (_settings, _entries, _views, _parts, _notes, _outputs, _places, _passages):
        try:
            found += check(reader, info)
        except WindowsillError as error:
            found.append(str(error))
    return found


def _settings(_: JournalReader, info: SessionInfo) -> Iterator[str]:
    read_settings(info.settings, info.id)
    yield from ()


def _entries(reader: JournalReader, info: SessionInfo) -> Iterator[str]:
    yield from reader.problems(info.version)


def _views(reader: JournalReader, info: SessionInfo) -> Iterator[str]:
    """Compare stored views with their checksums; an empty one was stored by an earlier version."""
    before = info.version
    while (found := reader.store.snapshot(info.id, before)) is not None:
        at, data = found
        if data != b"" and not is_whole_snapshot(data, reader.entry(at)):
            yield f"the view stored at entry {at} is not what was written; the entries are read instead"
        before = at - 1


def _parts(reader: JournalReader, info: SessionInfo) -> Iterator[str]:
    """Compare the parts of requests with their hashes."""
    known = {id for id in reader.store.blob_ids(info.id, "") if not id.startswith((SAME, RUNS, *OUTPUTS))}
    for id in sorted(known):
        if not is_blob(id, reader.store.blob(info.id, id) or b""):
            yield f"part {id!r} of a request is not what was written"
    for entry in reader.walk([(ROOT + 1, info.version)], kinds=("call",)):
        for name, id in sorted(call_meta(entry.meta).blobs.items()):
            if id not in known:
                yield f"the {name} of request {entry.id!r} is missing"


def _notes(reader: JournalReader, info: SessionInfo) -> Iterator[str]:
    """Compare the notes about repeated outputs with what stands where they say."""
    for name in reader.store.blob_ids(info.id, SAME):
        try:
            noted = reader.noted_output(name)
            sound = noted is not None and SAME + output_digest(noted[1]) == name
        except WindowsillError:
            sound = False
        if not sound:
            yield f"note {name!r} does not say where its output stands; it is made again when it is needed"


def _outputs(reader: JournalReader, info: SessionInfo) -> Iterator[str]:
    """Read every kept output, and look for those that messages refer to."""
    known = dict.fromkeys(copy.ref for copy in copies(reader.store, info.id))
    for entry in reader.walk([(ROOT + 1, info.version)], kinds=("message",)):
        for named in message_meta(entry.meta).refs:
            if named is not None and named.id not in known:
                yield f"tool output {named.id!r} of message {entry.id!r} is missing"
    for ref in known:
        try:
            kept = find_stored(reader.store, info.id, ref)
            if kept is not None:
                kept.verify()
        except WindowsillError as error:
            yield str(error)


def _places(reader: JournalReader, info: SessionInfo) -> Iterator[str]:
    """Look every message up by the keys under which a client finds it; of two with the same, the later one counts."""
    last: dict[bytes, tuple[int, str]] = {}
    for entry in reader.walk([(ROOT + 1, info.version)], kinds=("message",)):
        last |= dict.fromkeys(message_meta(entry.meta).places, (entry.seq, entry.id))
    for key, (seq, id) in last.items():
        if [place.seq for place in reader.store.places([key], session=info.id)] != [seq]:
            yield f"message {id!r} is not found by what was said up to it"


def _passages(reader: JournalReader, info: SessionInfo) -> Iterator[str]:
    """Compare the passages of the archive with the messages and folds they were made of."""
    store, index = reader.store, reader.store.search_index()
    for session in index.sessions([info.id]):
        kept = index.passages(index.allowed(session, Filters())).values()
        wrong = [_without_tool(passage) for passage in kept if passage.seq is not None]
        end = min(session.seq, info.version)
        for first in range(ROOT + 1, end + 1, CHUNK):
            made = set(map(_without_tool, passages_between(store, info.id, first, min(end, first + CHUNK - 1))))
            wrong = [passage for passage in wrong if passage not in made]
        if wrong:
            remedy = "`session.archive.rebuild()` makes it anew"
            yield f"{len(wrong)} passages of the archive are not what was said; {remedy}"


def _without_tool(passage: Passage) -> Passage:
    """Leave out the name of the tool, which is looked for in as many entries as were indexed together."""
    return msgspec.structs.replace(passage, tool=None)
