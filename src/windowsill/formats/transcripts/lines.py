"""Takes the lines of a transcript apart; a line that is broken does not hide the others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from windowsill.errors import FormatError
from windowsill.formats.transcripts.transcript import Line, Notes
from windowsill.formats.wire import BOM, any_decoder, decode

T = TypeVar("T")

_SURROGATES = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


def whole(raw: bytes) -> bytes:
    """The line with U+FFFD for each half of a surrogate pair: agents cut outputs in the middle of a character."""
    if b"\\ud" not in raw and b"\\uD" not in raw:
        return raw
    return _SURROGATES.sub(lambda found: rb"\ufffd" if found.group(1) else found.group(0), raw)


def numbered(lines: Iterable[bytes]) -> Iterator[Line]:
    """Each line that is not empty, with its number."""
    for number, line in enumerate(lines, 1):
        raw = line.removeprefix(BOM).strip() if number == 1 else line.strip()
        if raw:
            yield Line(number, whole(raw))


def objects(lines: Iterable[Line], notes: Notes) -> Iterator[tuple[Line, dict[str, Any]]]:
    """Each line that is a JSON object, decoded; the others are noted as trouble."""
    for line in lines:
        value = decoded(line, any_decoder, notes)
        if isinstance(value, dict):
            yield line, value
        elif value is not None:
            notes.trouble(line.number, "not a JSON object")


def decoded(line: Line, decoder: msgspec.json.Decoder[T], notes: Notes) -> T | None:
    """The line as the decoder reads it; `None`, and a note, when it cannot."""
    try:
        return decode(decoder, line.raw)
    except FormatError as error:
        notes.trouble(line.number, error.what)
        return None
