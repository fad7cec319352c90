"""Recorded sessions: a request body, a message list, one of these with an id and times, or an agent's transcript."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import msgspec

from windowsill import formats
from windowsill.cli.reading import STANDARD_INPUT, files_of, naming, not_gzip, read_source
from windowsill.errors import FormatError
from windowsill.formats import transcripts
from windowsill.formats.transcripts.charges import charge
from windowsill.formats.transcripts.times import timestamp as timestamp_of
from windowsill.formats.wire import BOM
from windowsill.messages import Request

OWN_FIELDS = frozenset({"id", "format", "times", "usage"})
"""What a recording says besides the request; no provider has fields of these names."""

timestamp = timestamp_of

LINES = (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz")


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """A session as it was recorded."""

    id: str
    request: Request
    times: tuple[float | None, ...] = ()
    """Seconds since the epoch for each message, where they were recorded."""
    charges: tuple[transcripts.Charge, ...] = ()
    """The calls that were paid for, as far as the provider's words for them were recorded."""
    named: bool = True
    """Whether the recording itself says its id."""


class Broken(msgspec.Struct, frozen=True):
    """A line or file that is no recording."""

    where: str
    why: str
    file: str = ""
    line: int = 0
    """Counted from 1; 0 for the whole file."""


class Foreign(msgspec.Struct, frozen=True):
    """A file of a folder with no recording in it."""

    where: str
    why: str


class Skipped(msgspec.Struct, frozen=True):
    """What a transcript holds besides the conversation: kinds and counts."""

    where: str
    kinds: dict[str, int]


Found: TypeAlias = Recording | Broken | Foreign | Skipped


class _Envelope(msgspec.Struct):
    id: str | int | None = None
    format: str | None = None
    times: list[Any] | None = None
    usage: Any = None


_envelope = msgspec.json.Decoder(_Envelope)


def readable(files: Sequence[str]) -> int:
    """The size of all files; an `OSError` before any work is done when one that was named cannot be opened."""
    total = 0
    for file in files:
        if Path(file).is_dir():
            next(Path(file).iterdir(), None)  # A search passes over what it may not open; this says so.
            total += sum(map(_size, files_of(file)))
        elif file != STANDARD_INPUT:
            with naming(file), Path(file).open("rb") as opened:
                total += opened.seek(0, 2)
    return total


def _size(file: str) -> int:
    """The size of a file of a folder; 0 when it went away while we looked."""
    try:
        return Path(file).stat().st_size
    except OSError:
        return 0


def recordings(
    files: Sequence[str], *, format: str | None = None, advance: Callable[[int], None] | None = None
) -> Iterator[Found]:
    """Every recording of every file and folder, in order, and what could not be read.

    `advance` is told the bytes passed.
    """
    for source in files:
        if source == STANDARD_INPUT or not Path(source).is_dir():
            yield from _advancing(_of_file(source, format), advance)
            continue
        for file in files_of(source):
            yield from _known(_advancing(_of_file(file, format), advance), file)


def recorded_in(data: bytes, file: str, format: str | None = None) -> Iterator[Found]:
    """Every recording in the content of a file, whatever it is called."""
    transcript = transcripts.read(data, _stem(file))
    if transcript is not None:
        yield from _told(transcript, file, format)
    elif file.endswith(LINES):
        for number, line in enumerate(data.split(b"\n"), 1):
            if line.strip():
                yield _read(line, file, number, f"{_stem(file)}:{number}", format)
    else:
        yield _read(data, file, 0, _stem(file), format)


def _advancing(found: Iterable[tuple[Found, int]], advance: Callable[[int], None] | None) -> Iterator[Found]:
    seen = 0
    for each, position in found:
        yield each
        if advance is not None:
            advance(position - seen)
        seen = position


def _known(found: Iterator[Found], file: str) -> Iterator[Found]:
    """What a file of a folder holds; only that it is foreign when there is no recording in it."""
    before: list[Found] = []
    try:
        for each in found:
            before.append(each)
            if isinstance(each, Recording):
                break
        else:
            yield Foreign(file, _why_foreign([each for each in before if isinstance(each, Broken)]))
            return
    except OSError as error:
        yield Foreign(file, (error.strerror or str(error)).lower())
        return
    yield from before
    yield from found


def _why_foreign(broken: Sequence[Broken]) -> str:
    if not broken:
        return "there is no message in it"
    more = f" (and {len(broken) - 1:,} more like this)" if len(broken) > 1 else ""
    place = f"line {broken[0].line}: " if broken[0].line else ""
    return f"{place}{broken[0].why}{more}"


def parse(document: bytes, name: str, format: str | None = None) -> Recording:
    """One recording; `name` is its id when it does not say one."""
    body = document.removeprefix(BOM)
    envelope = _envelope_of(body)
    request = formats.read_request(body, format=format or envelope.format)
    if not request.messages:
        raise FormatError("it has no messages", remedy="record at least one message")
    rest = {key: value for key, value in request.rest.items() if key not in OWN_FIELDS}
    return Recording(
        id=name if envelope.id is None else str(envelope.id),
        request=msgspec.structs.replace(request, rest=rest),
        times=tuple(map(timestamp, envelope.times or ())),
        charges=_charges(envelope.usage, request.model),
        named=envelope.id is not None,
    )


def _charges(usage: Any, model: str | None) -> tuple[transcripts.Charge, ...]:
    """What a recording says that each message used, one entry for each message."""
    told = enumerate(usage) if isinstance(usage, list) else ()
    found = [charge(each, model=model, message=index) for index, each in told]
    return tuple(each for each in found if each is not None)


def _envelope_of(body: bytes) -> _Envelope:
    if body.lstrip()[:1] != b"{":
        return _Envelope()
    try:
        return _envelope.decode(body)
    except msgspec.ValidationError as error:
        raise FormatError(str(error).replace("`", ""), remedy="give id and format as text, times as a list") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # Reading the request says better what is wrong.
        return _Envelope()


def _read(document: bytes, file: str, line: int, name: str, format: str | None) -> Recording | Broken:
    try:
        return parse(document, name, format)
    except FormatError as error:
        return _broken(file, line, str(error))


def _broken(file: str, line: int, why: str) -> Broken:
    return Broken(f"{file} line {line}" if line else file, why, file, line)


def _of_file(file: str, format: str | None) -> Iterator[tuple[Found, int]]:
    """What a file holds, and how far into the file each ends."""
    if not file.endswith(LINES):
        yield from _of_document(file, format)
        return
    with Path(file).open("rb") as raw:
        agent = transcripts.recognise(_whole_lines(raw, file, []))
        raw.seek(0)
        damage: list[Broken] = []
        lines = _whole_lines(raw, file, damage)
        if agent is not None:
            transcript = transcripts.read_lines(agent, lines, _stem(file))
            found: list[Found] = [*_told(transcript, file, format), *damage]
            yield from ((each, raw.tell()) for each in found)
            return
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield _read(line, file, number, f"{_stem(file)}:{number}", format), raw.tell()
        yield from ((each, raw.tell()) for each in damage)


def _of_document(file: str, format: str | None) -> Iterator[tuple[Found, int]]:
    try:
        data = read_source(file)
    except FormatError as error:
        yield _broken(file, 0, error.what), 0
        return
    size = len(data) if file == STANDARD_INPUT else Path(file).stat().st_size
    yield from ((each, size) for each in recorded_in(data, file, format))


def _told(transcript: transcripts.Transcript, file: str, format: str | None) -> Iterator[Found]:
    """A transcript; what could not be read comes first, so that a limit on sessions does not hide it."""
    for trouble in transcript.troubles:
        yield _broken(file, trouble.line, trouble.why)
    if transcript.skipped:
        yield Skipped(file, transcript.skipped)
    for session in transcript.sessions:
        # What an agent writes is of one format, whatever was stated for the others.
        found = _read(session.document(), file, 0, session.id, session.format or format)
        if isinstance(found, Recording):
            found = msgspec.structs.replace(found, named=session.named, charges=session.charges)
        yield found


def _stem(file: str) -> str:
    return "stdin" if file == STANDARD_INPUT else Path(file).name.partition(".")[0]


def _whole_lines(raw: BinaryIO, file: str, damage: list[Broken]) -> Iterator[bytes]:
    """The lines of a file, up to where a compressed one is damaged; the damage is noted."""
    number = 0
    try:
        for line in _lines(raw, file):
            number += 1
            yield line
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        damage.append(Broken(f"{file} after line {number}", str(not_gzip("", error)), file, number + 1))


def _lines(raw: BinaryIO, file: str) -> Iterator[bytes]:
    if not file.endswith(".gz"):
        # Not by iterating over the file: then it could not tell how far it is.
        yield from iter(raw.readline, b"")
        return
    with gzip.GzipFile(fileobj=raw) as unpacked:
        yield from unpacked
