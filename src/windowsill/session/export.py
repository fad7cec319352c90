"""Move a whole session between stores as lines of JSON; every hash is checked on arrival.

Secrets are taken out, unless they are asked for: an export is read by others. Nothing else is left out, and where there
is no secret the import is the same session, byte for byte.

The first line is the head (id, settings, number of entries), then come the entries in order. A blob that a call refers
to (a system prompt, tools) stands before that call, and a kept output, piece by piece, before the first message that
refers to it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from windowsill.config import Settings, read_settings
from windowsill.config.load import without_reach
from windowsill.errors import DamagedError, FormatError, InputError
from windowsill.history.entries import ROOT, Entry
from windowsill.history.head import call_meta
from windowsill.history.view import message_meta
from windowsill.journal.reader import CHUNK, JournalReader
from windowsill.outputs import Outputs, chunks
from windowsill.outputs.parts import copies
from windowsill.session.audit import is_blob
from windowsill.session.export_redacted import Redaction, redact_pieces
from windowsill.store import SessionInfo, Store
from windowsill.store.base import no_session
from windowsill.strategies.registry import is_installed

VERSION = 2
"""Of the lines themselves; it goes up when an older Windowsill could not read them."""

WITHOUT_OUTPUTS = 1
"""The version of an export that carries no kept output: an older Windowsill reads it too."""

REMEDY = "export the session again; nothing was imported"


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """Some bytes of a kept output, which the line after this one continues or ends."""

    output: str
    """Its ref, which is a hash of all its bytes."""
    data: bytes


def kept_refs(store: Store, id: str, version: int) -> set[str]:
    """Return the refs in messages, on whatever branch, of outputs that the session keeps."""
    kept = {copy.ref for copy in copies(store, id)}
    # Most sessions keep none: they are not read twice.
    messages = JournalReader(store, id).walk([(ROOT + 1, version)] if kept else [], kinds=("message",))
    return kept.intersection(ref for entry in messages for ref in refs_of(entry))


def refs_of(entry: Entry) -> list[str]:
    """Return the refs of the outputs that a message answers with."""
    return [ref.id for ref in message_meta(entry.meta).refs if ref is not None]


def pieces_of(store: Store, id: str, ref: str, redaction: Redaction | None = None) -> Iterator[Piece]:
    """Return the pieces of a kept output; `DamagedError` where it is no longer what was written."""
    output = Outputs(store, id).open(ref)

    def read() -> Iterator[bytes]:
        return (data for _, data in chunks(output))

    new = ref if redaction is None else redaction.output(ref, read())
    pieces = read() if new == ref else redact_pieces(read())
    for data in itertools.chain([next(pieces, b"")], pieces):
        yield Piece(output=new, data=data)


class Head(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The first line."""

    windowsill: Literal["session"]
    version: int
    id: str
    created: float
    entries: int
    settings: msgspec.Raw
    redacted: int = 0
    """From how many entries, parts and outputs secrets were taken out."""


class Blob(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes that calls refer to."""

    blob: str
    data: bytes


class _Line(msgspec.Struct):
    """Tells lines apart."""

    blob: str | None = None
    output: str | None = None


_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_encode = msgspec.json.Encoder().encode
_head = msgspec.json.Decoder(Head)


def is_export(line: bytes) -> bool:
    """Tell whether this is the first line of an export, rather than a conversation."""
    try:
        _head.decode(line)
    except _UNREADABLE:
        return False
    return True


def left_out(line: bytes) -> tuple[str, ...]:
    """Name the settings in the first line of an export that an import leaves out, unless the file is trusted."""
    return limit_trust(_head.decode(line).settings, "")[1]


def limit_trust(settings: msgspec.Raw, session: str) -> tuple[msgspec.Raw, tuple[str, ...]]:
    """Return settings from elsewhere without what only a user may decide, and the names of what was left out."""
    limited, dropped = without_reach(read_settings(bytes(settings), session), is_installed)
    return msgspec.Raw(msgspec.json.encode(limited)) if dropped else settings, dropped


def taken_out(line: bytes) -> int:
    """Count the places of an export, whose first line this is, from which secrets were taken out."""
    return _head.decode(line).redacted


def export_session(store: Store, id: str, *, secrets: bool = False) -> Iterator[bytes]:
    """Return the lines of a session, without line ends; `DamagedError` where the store no longer has what was written.

    Without `secrets`, `[secret: kind]` stands in their place, in whatever was said, sent or kept. Kept outputs come
    along as far as the store has them; those that no message refers to do not.
    """
    info = store.info(id)
    if info is None:
        raise no_session(id)
    return _export(store, info, secrets=secrets)


def _export(store: Store, info: SessionInfo, *, secrets: bool) -> Iterator[bytes]:
    if not secrets:
        looking = Redaction(store, info.id)
        for _ in _lines(store, info, looking):
            # The head says how much was taken out, and stands before everything.
            pass
        if looking.changed:
            yield from _lines(store, info, Redaction(store, info.id), redacted=looking.changed)
            return
    yield from _lines(store, info, None)


def _lines(store: Store, info: SessionInfo, redaction: Redaction | None, redacted: int = 0) -> Iterator[bytes]:
    id, version = info.id, info.version
    waiting = kept_refs(store, id, version)
    settings = info.settings if redaction is None else redaction.settings(info.settings)
    yield _encode(
        Head(
            windowsill="session",
            version=VERSION if waiting else WITHOUT_OUTPUTS,
            id=id,
            created=info.created,
            entries=version,
            settings=msgspec.Raw(settings.replace(b"\n", b" ")),
            redacted=redacted,
        )
    )
    written: set[str] = set()
    for start in range(ROOT + 1, version + 1, CHUNK):
        stop = min(version, start + CHUNK - 1)
        entries = store.read(id, start, stop)
        if len(entries) != stop - start + 1:
            raise DamagedError(f"session {id!r} lacks entries", remedy="`windowsill sessions verify` says which")
        for entry in entries:
            if entry.kind == "call":
                yield from _blobs_of(store, id, entry, written, redaction)
            elif entry.kind == "message" and waiting:
                for ref in sorted(waiting.intersection(refs_of(entry))):
                    waiting.remove(ref)
                    yield from map(_encode, pieces_of(store, id, ref, redaction))
            try:
                clean = entry if redaction is None else redaction.entry(entry)
            except RecursionError:
                what = f"entry {entry.id!r} of session {id!r} is nested too deeply to look for secrets in it"
                raise InputError(what, remedy="export it with its secrets, as a backup", session=id) from None
            yield _encode(clean)


def _blobs_of(store: Store, id: str, entry: Entry, written: set[str], redaction: Redaction | None) -> Iterator[bytes]:
    for name, blob in sorted(call_meta(entry.meta).blobs.items()):
        if blob in written:
            continue
        data = store.blob(id, blob)
        if data is None:
            raise DamagedError(f"the {name} of call {entry.id!r} is missing from the store", remedy="restore a backup")
        written.add(blob)
        new, clean = (blob, data) if redaction is None else redaction.blob(blob, data, name)
        yield _encode(Blob(blob=new, data=clean))


def import_session(store: Store, lines: Iterable[bytes], id: str | None = None, *, trusted: bool = False) -> str:
    """Write an exported session to a store, under its own id or another; return the id.

    Everything is checked first: a line that is damaged, or that no session can be opened with, is a `DamagedError` that
    names it, and then nothing is imported. The file decides nothing about the user's keys, code and other sessions:
    unless it is `trusted`, settings that would (`config.trust`) are left out, and are stated when it is opened.
    """
    # It is asked for here: it opens a session, which most that write a file never do.
    from windowsill.session.acceptance import Acceptance  # noqa: PLC0415

    numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    head = _read_head(next(numbered, None))
    if not trusted:
        head = msgspec.structs.replace(head, settings=limit_trust(head.settings, head.id)[0])
    name, created = id or head.id, False
    try:
        # Opened with what any file may state: a tokenizer's file of its own machine need not be here.
        accepted = Acceptance(name, head.created, bytes(limit_trust(head.settings, name)[0]))
        new: dict[str, bytes] = {}
        blobs: dict[str, bytes] = {}
        last, count = 1, 0
        read = ((number, _read(line, number)) for number, line in numbered)
        for ref, group in itertools.groupby(read, lambda pair: getattr(pair[1], "output", None)):
            if ref is not None:
                # At once: outputs are too large to wait until everything was checked.
                created = created or _create(store, name, head)
                last = _keep_output(store, name, ref, group)
                continue
            for last, found in group:
                if isinstance(found, Blob):
                    new[found.blob] = found.data
                elif isinstance(found, Entry):
                    accepted.take(found, new, last)
                    count += 1
                    blobs |= new
                    new = {}
        if count != head.entries:
            what = f"line {last}: it ends after {count} of {head.entries} entries"
            raise DamagedError(what, remedy=REMEDY)  # noqa: TRY301 - what was written goes again
        entries = accepted.finish()
        created = created or _create(store, name, head)
        messages = (entry for entry in entries if entry.kind == "message")
        places = [(key, entry.seq) for entry in messages for key in message_meta(entry.meta).places]
        store.append(name, ROOT, entries, blobs=blobs.items(), places=places)
    except BaseException:
        if created:
            store.delete(name)
        raise
    return name


def _create(store: Store, id: str, head: Head) -> bool:
    """Make the session, which is not there before something is written."""
    if not store.create(id, at=head.created, settings=bytes(head.settings)):
        raise already_there(id)
    return True


def _keep_output(store: Store, id: str, ref: str, pieces: Iterable[tuple[int, object]]) -> int:
    """Keep the output that these pieces are; return the number of the last line."""
    line = 0
    with Outputs(store, id).start() as writing:
        for line, piece in pieces:  # noqa: B007 - the last one is used below
            assert isinstance(piece, Piece)
            writing.write(piece.data)
        made = writing.finish()
    if made.id != ref:
        what = f"line {line + 1}: tool output {ref!r} before it is not what was written"
        raise DamagedError(what, remedy=REMEDY, ref=ref)
    return line


def find_imported(
    store: Store, lines: Sequence[bytes], id: str | None = None
) -> tuple[str, Literal["new", "same", "other"]]:
    """Return the id that an export would have in a store, and what is there: nothing, all of it, something else."""
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    head = _read_head(numbered[0] if numbered else None)
    name = id or head.id
    info = store.info(name)
    if info is None:
        return name, "new"
    stored = store.read(name, head.entries, head.entries, bodies=False)
    last = _read(numbered[-1][1], numbered[-1][0]) if head.entries else None
    # The hash of an entry covers everything before it.
    same = not head.entries or (stored and isinstance(last, Entry) and stored[0].hash == last.hash)
    return name, "same" if same else "other"


def already_there(id: str) -> InputError:
    """Make the error for an id that the store already has."""
    return InputError(f"there is a session {id!r} already", remedy="give another id", session=id)


def _read_head(first: tuple[int, bytes] | None) -> Head:
    if first is None:
        raise FormatError("it is empty", remedy="pass what an export gave")
    try:
        head = _head.decode(first[1])
        msgspec.json.decode(head.settings, type=Settings).check()
    except _UNREADABLE as error:
        raise DamagedError(f"line {first[0]}: not the head of an export ({error})", remedy=REMEDY) from None
    if head.version > VERSION:
        raise FormatError(
            f"an export of version {head.version}, and this Windowsill knows up to {VERSION}",
            remedy="upgrade windowsill",
        )
    return head


def _read(line: bytes, number: int) -> Entry | Blob | Piece:
    try:
        kind = msgspec.json.decode(line, type=_Line)
        if kind.output is not None:
            return msgspec.json.decode(line, type=Piece)
        if kind.blob is None:
            return msgspec.json.decode(line, type=Entry)
        blob = msgspec.json.decode(line, type=Blob)
    except _UNREADABLE as error:
        raise DamagedError(
            f"line {number}: neither an entry nor a blob nor an output ({error})", remedy=REMEDY
        ) from None
    if not is_blob(blob.blob, blob.data):
        raise DamagedError(f"line {number}: blob {blob.blob!r} is not what was written", remedy=REMEDY)
    return blob
