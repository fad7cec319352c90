"""Recorded sessions: a request body, a message list, or one of these with an id, a format and times."""

from __future__ import annotations

import datetime as dt
import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from windowsill import formats
from windowsill.cli.reading import STANDARD_INPUT, not_gzip, read_source
from windowsill.errors import FormatError
from windowsill.formats.wire import BOM
from windowsill.messages import Request

OWN_FIELDS = frozenset({"id", "format", "times", "usage"})
"""What a recording says besides the request; no provider has fields of these names."""

LINES = (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz")


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """A session as it was recorded."""

    id: str
    request: Request
    times: tuple[float | None, ...] = ()
    """Seconds since the epoch for each message, where they were recorded."""
    named: bool = True
    """Whether the recording itself says its id."""


class Broken(msgspec.Struct, frozen=True):
    """A line or file that is no recording."""

    where: str
    why: str


class _Envelope(msgspec.Struct):
    id: str | int | None = None
    format: str | None = None
    times: list[Any] | None = None


_envelope = msgspec.json.Decoder(_Envelope)


def readable(files: Sequence[str]) -> int:
    """The size of all files; an `OSError` before any work is done when one of them cannot be opened."""
    total = 0
    for file in files:
        if file != STANDARD_INPUT:
            with Path(file).open("rb") as opened:
                total += opened.seek(0, 2)
    return total


def recordings(
    files: Sequence[str], *, format: str | None = None, advance: Callable[[int], None] | None = None
) -> Iterator[Recording | Broken]:
    """Every recording of every file, in order, and what could not be read; `advance` is told the bytes passed."""
    for file in files:
        seen = 0
        for document, where, name, position in _documents(file):
            yield _read(document, where, name, format)
            if advance is not None:
                advance(position - seen)
            seen = position


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
        named=envelope.id is not None,
    )


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


def timestamp(value: Any) -> float | None:
    """Seconds since the epoch from a number or ISO 8601 (UTC where it names no zone); `None` from anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    try:
        moment = dt.datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).timestamp()


def _read(document: bytes | FormatError, where: str, name: str, format: str | None) -> Recording | Broken:
    try:
        if isinstance(document, FormatError):
            raise document
        return parse(document, name, format)
    except FormatError as error:
        return Broken(where, str(error))


def _documents(file: str) -> Iterator[tuple[bytes | FormatError, str, str, int]]:
    """Each document of a file: its bytes, where it is, a name for it, and how far into the file it ends."""
    stem = "stdin" if file == STANDARD_INPUT else Path(file).name.partition(".")[0]
    if not file.endswith(LINES):
        try:
            data = read_source(file)
        except FormatError as error:
            yield error, file, stem, 0
            return
        yield data, file, stem, len(data) if file == STANDARD_INPUT else Path(file).stat().st_size
        return
    with Path(file).open("rb") as raw:
        number = 0
        try:
            for number, line in enumerate(_lines(raw, file), 1):
                if line.strip():
                    yield line, f"{file} line {number}", f"{stem}:{number}", raw.tell()
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            yield not_gzip("", error), f"{file} after line {number}", stem, raw.tell()


def _lines(raw: BinaryIO, file: str) -> Iterator[bytes]:
    if not file.endswith(".gz"):
        # Not by iterating over the file: then it could not tell how far it is.
        yield from iter(raw.readline, b"")
        return
    with gzip.GzipFile(fileobj=raw) as unpacked:
        yield from unpacked
