"""Recorded sessions in files: request bodies, message lists, one of these with an id and times, agents' transcripts.

Sessions that Windowsill keeps or has exported are recordings too.
"""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import msgspec

from windowsill import providers, transcripts
from windowsill.errors import DamagedError, FormatError
from windowsill.history.head import call_meta, usage_meta
from windowsill.messages import ORIGIN, Message, Origin, Request
from windowsill.providers.wire import BOM
from windowsill.session import Session
from windowsill.session.audit import prompt_of
from windowsill.session.export import import_session, is_export
from windowsill.store import Store
from windowsill.store.memory import MemoryStore
from windowsill.transcripts import Charge
from windowsill.transcripts.base import charge, timestamp
from windowsill.transcripts.request_logs import RECORDED

STANDARD_INPUT = "-"

LINES = (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz")
"""Endings of files that hold one session per line."""

IN_FOLDERS = (".jsonl", ".jsonl.gz", ".json")
"""Endings of the files that are read when a folder is given."""

MOST_UNPACKED, LEAST_UNPACKED = 100, 64 * 1024 * 1024
"""A compressed file may unpack to so many times its size, or to so many bytes if that is more. Conversations reach a
tenth of the ratio; what passes it is made to fill the memory."""

_DAMAGED_GZIP = (gzip.BadGzipFile, EOFError, zlib.error)


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """A session as it was recorded."""

    id: str
    request: Request
    times: tuple[float | None, ...] = ()
    """Seconds since the epoch for each message, where they were recorded."""
    charges: tuple[transcripts.Charge, ...] = ()
    """The calls that were paid for, as far as their usage was recorded."""
    named: bool = True
    """True when the recording itself states its id."""


class BrokenLine(msgspec.Struct, frozen=True):
    """A line or file that cannot be read as a recording."""

    where: str
    why: str
    file: str = ""
    line: int = 0
    """Counted from 1; 0 for the whole file."""


class ForeignFile(msgspec.Struct, frozen=True):
    """A file of a folder with no recording in it."""

    where: str
    why: str


class SkippedContent(msgspec.Struct, frozen=True):
    """Content of a transcript that is not part of the conversation: kinds and counts."""

    where: str
    kinds: dict[str, int]


Found: TypeAlias = Recording | BrokenLine | ForeignFile | SkippedContent


class _Envelope(msgspec.Struct):
    id: str | int | None = None
    format: str | None = None
    times: list[Any] | None = None
    usage: Any = None


_envelope_decoder = msgspec.json.Decoder(_Envelope)


def read_source(source: str) -> bytes:
    """Read all bytes of a file (decompressed if its name ends in .gz), or of standard input for `-`."""
    if source == STANDARD_INPUT:
        return sys.stdin.buffer.read()
    with name_in_errors(source), Path(source).open("rb") as raw:
        try:
            return _opened(raw, source).read()
        except _DAMAGED_GZIP as error:
            raise FormatError(_gzip_problem(error), remedy="compress it again") from None


def first_line(source: str) -> bytes:
    """Return the first line of a file, by which an export is known; nothing where it cannot be read."""
    try:
        with Path(source).open("rb") as raw:
            return _opened(raw, source).readline()
    except (OSError, FormatError, *_DAMAGED_GZIP):
        return b""  # Reading all of it gives the better error.


def _opened(raw: BinaryIO, file: str) -> io.BufferedReader | BinaryIO:
    """Return the content of a file, decompressed if its name ends in .gz."""
    if not file.endswith(".gz"):
        return raw
    size = raw.seek(0, io.SEEK_END)
    raw.seek(0)
    return io.BufferedReader(_Unpacked(raw, max(LEAST_UNPACKED, MOST_UNPACKED * size)), 1 << 16)


class _Unpacked(io.RawIOBase):
    """The content of a compressed file, up to a limit."""

    def __init__(self, raw: BinaryIO, limit: int) -> None:
        self._file = gzip.GzipFile(fileobj=raw)
        self._limit = self._left = limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read1(len(buffer))
        self._left -= len(data)
        if self._left < 0:
            raise FormatError(
                f"it unpacks to more than {self._limit:,} bytes, far more than conversations do",
                remedy="unpack it yourself if that is right (gzip -d): plain files have no limit",
            )
        buffer[: len(data)] = data
        return len(data)


@contextmanager
def name_in_errors(source: str) -> Iterator[None]:
    """Add the name of the file to errors about its content and about reading it."""
    name = source_name(source)
    try:
        yield
    except FormatError as error:
        raise FormatError(error.what, where=name, remedy=error.remedy) from None
    except OSError as error:
        if error.filename is None:
            error.filename = name
        raise


def source_name(source: str) -> str:
    """Return the name of a source, or of a line of it, for people."""
    is_input = source == STANDARD_INPUT or source.startswith(f"{STANDARD_INPUT} line ")
    return f"standard input{source[1:]}" if is_input else source


def no_recordings(unreadable: Sequence[BrokenLine | ForeignFile], source: str) -> FormatError:
    """Return the error about a source without a recording: the first thing that could not be read."""
    if not unreadable:
        remedy = "pass recorded sessions as JSON"
        return FormatError("there is no session in it", where=source_name(source), remedy=remedy)
    return FormatError(_first_of([each.why for each in unreadable]), where=source_name(unreadable[0].where))


def _first_of(reasons: Sequence[str]) -> str:
    return reasons[0] + (f" (and {len(reasons) - 1:,} more like this)" if len(reasons) > 1 else "")


def list_files(source: str) -> list[str]:
    """List the files in a folder, at any depth, that may hold recordings; a file is itself."""
    if source == STANDARD_INPUT or not Path(source).is_dir():
        return [source]
    return sorted(str(path) for path in Path(source).rglob("*") if path.name.endswith(IN_FOLDERS) and path.is_file())


def total_size(sources: Sequence[str]) -> int:
    """Add up the bytes of all files; raise `OSError` before any work if one that was named cannot be opened."""
    total = 0
    for source in sources:
        if Path(source).is_dir():
            next(Path(source).iterdir(), None)  # rglob passes over what it may not open; this raises.
            total += sum(map(_size, list_files(source)))
        elif source != STANDARD_INPUT:
            with name_in_errors(source), Path(source).open("rb") as opened:
                total += opened.seek(0, 2)
    return total


def _size(file: str) -> int:
    try:
        return Path(file).stat().st_size
    except OSError:
        return 0  # A file of a folder may vanish while we look.


def read_recordings(
    sources: Sequence[str], *, format: str | None = None, advance: Callable[[int], None] | None = None
) -> Iterator[Found]:
    """Read every recording of every file and folder, in order, and report what could not be read.

    `advance` is called with the number of bytes passed.
    """
    for source in sources:
        if source == STANDARD_INPUT or not Path(source).is_dir():
            yield from _advancing(_in_file(source, format), advance)
            continue
        yield from read_files(list_files(source), format=format, advance=advance)


def read_files(
    files: Iterable[str], *, format: str | None = None, advance: Callable[[int], None] | None = None
) -> Iterator[Found]:
    """Read every recording of the files of a folder, in order; files without one are reported as foreign."""
    for file in files:
        yield from _or_foreign(_advancing(_in_file(file, format), advance), file)


def read_content(data: bytes, file: str, format: str | None = None) -> Iterator[Found]:
    """Read every recording in the content of a file, whatever the file is called."""
    if is_export(data.partition(b"\n")[0]):
        yield _exported(data.split(b"\n"), file)
        return
    transcript = transcripts.read(data, _stem(file))
    if transcript is not None:
        yield from _of_transcript(transcript, file, format)
    elif file.endswith(LINES):
        for number, line in enumerate(data.split(b"\n"), 1):
            if line.strip():
                yield _read(line, file, number, f"{_stem(file)}:{number}", format)
    else:
        yield _read(data, file, 0, _stem(file), format)


def parse(document: bytes, name: str, format: str | None = None) -> Recording:
    """Read one recording; `name` is its id if it states none."""
    body = document.removeprefix(BOM)
    envelope = _envelope_of(body)
    request = providers.read_request(body, format=format or envelope.format)
    if not request.messages:
        raise FormatError("it has no messages", remedy="record at least one message")
    usage = envelope.usage if isinstance(envelope.usage, list) else []
    charges = [charge(each, model=request.model, message=index) for index, each in enumerate(usage)]
    rest = {key: value for key, value in request.rest.items() if key not in RECORDED}
    return Recording(
        id=name if envelope.id is None else str(envelope.id),
        request=msgspec.structs.replace(request, rest=rest),
        times=tuple(map(timestamp, envelope.times or ())),
        charges=tuple(each for each in charges if each is not None),
        named=envelope.id is not None,
    )


def _envelope_of(body: bytes) -> _Envelope:
    if body.lstrip()[:1] != b"{":
        return _Envelope()
    try:
        return _envelope_decoder.decode(body)
    except msgspec.ValidationError as error:
        raise FormatError(str(error).replace("`", ""), remedy="give id and format as text, times as a list") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _Envelope()  # Reading the request gives the better error.


def _advancing(found: Iterable[tuple[Found, int]], advance: Callable[[int], None] | None) -> Iterator[Found]:
    passed = 0
    for each, position in found:
        yield each
        if advance is not None:
            advance(position - passed)
        passed = position


def _or_foreign(found: Iterator[Found], file: str) -> Iterator[Found]:
    """Pass on the content of a file of a folder; report the file as foreign if there is no recording in it."""
    before: list[Found] = []
    try:
        for each in found:
            before.append(each)
            if isinstance(each, Recording):
                break
        else:
            yield ForeignFile(file, _why_foreign([each for each in before if isinstance(each, BrokenLine)]))
            return
    except OSError as error:
        yield ForeignFile(file, (error.strerror or str(error)).lower())
        return
    yield from before
    yield from found


def _why_foreign(broken: Sequence[BrokenLine]) -> str:
    if not broken:
        return "there is no message in it"
    return (f"line {broken[0].line}: " if broken[0].line else "") + _first_of([each.why for each in broken])


def _in_file(file: str, format: str | None) -> Iterator[tuple[Found, int]]:
    """Read the content of a file, each piece with the position in the file where it ends."""
    if not file.endswith(LINES):
        try:
            data = read_source(file)
        except FormatError as error:
            yield BrokenLine(file, str(error), file), 0
            return
        size = len(data) if file == STANDARD_INPUT else Path(file).stat().st_size
        yield from ((each, size) for each in read_content(data, file, format))
        return
    with Path(file).open("rb") as raw:
        if is_export(next(_whole_lines(raw, file, []), b"")):
            raw.seek(0)
            yield _exported(_opened(raw, file), file), raw.seek(0, io.SEEK_END)
            return
        raw.seek(0)
        agent = transcripts.recognise(_whole_lines(raw, file, []))
        raw.seek(0)
        damage: list[BrokenLine] = []
        lines = _whole_lines(raw, file, damage)
        if agent is not None:
            found: list[Found] = [*_of_transcript(transcripts.read_lines(agent, lines, _stem(file)), file, format)]
            yield from ((each, raw.tell()) for each in [*found, *damage])
            return
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield _read(line, file, number, f"{_stem(file)}:{number}", format), raw.tell()
        yield from ((each, raw.tell()) for each in damage)


def _exported(lines: Iterable[bytes], file: str) -> Recording | BrokenLine:
    store = MemoryStore()
    try:
        return stored_recording(store, import_session(store, lines))
    except (FormatError, DamagedError, *_DAMAGED_GZIP) as error:
        return _broken(file, 0, str(error))


def _of_transcript(transcript: transcripts.Transcript, file: str, format: str | None) -> Iterator[Found]:
    # Troubles come first, so that a limit on sessions does not hide them.
    for trouble in transcript.troubles:
        yield _broken(file, trouble.line, trouble.why)
    if transcript.skipped:
        yield SkippedContent(file, transcript.skipped)
    for session in transcript.sessions:
        # An agent writes one format, whatever was stated for the other files.
        found = _read(session.document(), file, 0, session.id, session.format or format)
        if isinstance(found, Recording):
            found = msgspec.structs.replace(found, named=session.named, charges=session.charges)
        yield found


def _read(document: bytes, file: str, line: int, name: str, format: str | None) -> Recording | BrokenLine:
    try:
        return parse(document, name, format)
    except FormatError as error:
        return _broken(file, line, str(error))


def _broken(file: str, line: int, why: str) -> BrokenLine:
    return BrokenLine(f"{file} line {line}" if line else file, why, file, line)


def _stem(file: str) -> str:
    return "stdin" if file == STANDARD_INPUT else Path(file).name.partition(".")[0]


def _whole_lines(raw: BinaryIO, file: str, damage: list[BrokenLine]) -> Iterator[bytes]:
    """Read the lines of a file up to where a compressed one is damaged, and note the damage."""
    number = 0
    try:
        # Iterating over the file itself would disable tell().
        for line in iter(_opened(raw, file).readline, b""):
            number += 1
            yield line
    except (FormatError, *_DAMAGED_GZIP) as error:
        why = str(error) if isinstance(error, FormatError) else f"{_gzip_problem(error)}; compress it again"
        damage.append(BrokenLine(f"{file} after line {number}", why, file, number + 1))


def _gzip_problem(error: Exception) -> str:
    return f"not a whole gzip file ({error})"


_MADE_HERE = frozenset({Origin.RECALLED, Origin.STATE})
"""Messages that a replay adds by itself where its options ask for them."""


def stored_recording(store: Store, id: str) -> Recording:
    """Return the current branch of a stored session as it would have been recorded: no fold applies to it.

    System prompt and tools are those of its last request.
    """
    with Session.open(id, store=store, config=False) as session:
        journal = session.journal
        messages: list[Message] = []
        times: list[float | None] = []
        charges: list[Charge] = []
        for entry in journal.branch("message", "usage", bodies=True):
            if entry.kind == "usage":
                answer = len(messages) - 1 if messages else None
                charges.append(Charge(usage=usage_meta(entry.meta), model=session.settings.model, message=answer))
                continue
            message = journal.decode(entry)
            if message.origin not in _MADE_HERE:
                metadata = {name: value for name, value in message.metadata.items() if name != ORIGIN}
                messages.append(msgspec.structs.replace(message, id="", metadata=metadata))
                times.append(entry.at)
        calls = list(journal.branch("call"))
        system, tools = prompt_of(journal, call_meta(calls[-1].meta)) if calls else (None, ())
        request = Request(
            format=session.composer.format,
            messages=tuple(messages),
            system=system,
            tools=tools,
            model=session.settings.model,
        )
    return Recording(id=id, request=request, times=tuple(times), charges=tuple(charges))
