"""The lengths of files as they say them: pages of a PDF, seconds of sound and film."""

from __future__ import annotations

import binascii
import re
import zlib
from collections.abc import Iterator

_PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
_COUNT = re.compile(rb"/Count\s+(\d{1,6})")
_LINEARIZED = re.compile(rb"/Linearized[^>]{0,200}?/N\s+(\d{1,6})")
_PACKED = re.compile(rb"/ObjStm.{0,400}?stream\r?\n", re.DOTALL)

_HEAD_OF_PDF = 2_048
"""Bytes in which a PDF that is made for the web says how many pages it has."""

_LARGEST_PACKED = 4_194_304
"""Bytes that are unpacked of one stream of objects: a page is described in a few hundred."""

_MOST_PACKED = 500
"""Streams of objects that are looked into."""

_WAVE_HEAD = 65_536
"""Base64 characters in which the headers of a sound file end, but for pictures in its tags."""

_MP3_RATES = {
    1: (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    2: (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
"""Thousand bits in a second by the version of MPEG (2 stands for 2 and 2.5) and the number in a frame's header."""

SOUND_BYTES = 4_000
"""Bytes in a second of sound whose header cannot be read: a low rate, which asks for too many seconds, not too few."""

RAW_SOUND_BYTES = 48_000
"""Bytes in a second of sound without a header, as realtime services send it: 24,000 samples of two bytes."""

FILM_BYTES = 60_000
"""Bytes in a second of film whose header cannot be read: half a megabit."""

LONGEST = 86_400.0
"""Seconds in a day: a header that says more is damaged."""


def decode_base64(data: str, length: int | None = None) -> bytes:
    """Decode base64 text of either alphabet, or its first `length` characters; nothing when it is none."""
    wanted = data if length is None else data[:length]
    if "-" in wanted or "_" in wanted:
        wanted = wanted.replace("-", "+").replace("_", "/")
    try:
        return binascii.a2b_base64(wanted)
    except (binascii.Error, ValueError):
        return b""


def count_pages(pdf: bytes) -> int | None:
    """Count the pages of a PDF; `None` when it does not say them."""
    if (linearized := _LINEARIZED.search(pdf[:_HEAD_OF_PDF])) and int(linearized[1]):
        return int(linearized[1])
    found = _pages_in(pdf)
    if not found:
        found = sum(map(_pages_in, _unpacked(pdf)))
    return found or max((int(each) for each in _COUNT.findall(pdf)), default=0) or None


def _pages_in(objects: bytes) -> int:
    return sum(1 for _ in _PAGE.finditer(objects))


def _unpacked(pdf: bytes) -> Iterator[bytes]:
    """Yield what the streams hold in which newer PDFs pack their objects."""
    for number, match in enumerate(_PACKED.finditer(pdf)):
        if number >= _MOST_PACKED:
            return
        try:
            yield zlib.decompressobj().decompress(pdf[match.end() :], _LARGEST_PACKED)
        except zlib.error:
            continue


def seconds_of_sound(data: str, size: int, kind: str = "") -> float:
    """Return the seconds of base64 sound of `size` bytes, by its header or by what such files usually have."""
    head = decode_base64(data, _WAVE_HEAD)
    seconds = _wave_seconds(head, size) or _mp3_seconds(head, size) or _movie_seconds(data)
    if seconds is None:
        seconds = size / (RAW_SOUND_BYTES if "pcm" in kind or "L16" in kind else SOUND_BYTES)
    return min(LONGEST, seconds)


def seconds_of_film(data: str, size: int) -> float:
    """Return the seconds of a base64 film of `size` bytes, by its header or by what films usually have."""
    return min(LONGEST, _movie_seconds(data) or size / FILM_BYTES)


def _wave_seconds(head: bytes, size: int) -> float | None:
    if head[:4] != b"RIFF" or head[8:12] != b"WAVE":
        return None
    place = head.find(b"fmt ")
    rate = int.from_bytes(head[place + 16 : place + 20], "little") if place > 0 else 0
    data = head.find(b"data")
    return max(0, size - max(data, 0) - 8) / rate if rate else None


def _mp3_seconds(head: bytes, size: int) -> float | None:
    start = 0
    if head[:3] == b"ID3":
        a, b, c, d = head[6:10].ljust(4, b"\0")
        start = 10 + (a << 21 | b << 14 | c << 7 | d)
    frame = head[start : start + 4]
    if len(frame) < 4 or frame[0] != 0xFF or frame[1] & 0xE6 != 0xE2:  # noqa: PLR2004  the mark of a frame of layer III
        # Behind a large picture the frames are out of sight: most files have 128 thousand bits in a second.
        return max(0, size - start) / 16_000 if head[:3] == b"ID3" else None
    rates = _MP3_RATES[1 if frame[1] & 0x18 == 0x18 else 2]  # noqa: PLR2004  the bits of the version
    number = frame[2] >> 4
    rate = rates[number] * 125 if number < len(rates) else 0
    return max(0, size - start) / rate if rate else None


def _movie_seconds(data: str) -> float | None:
    """Read the seconds in the movie header of an MP4 or QuickTime file, which may stand at its end."""
    if decode_base64(data, 16)[4:8] != b"ftyp":
        return None
    movie = decode_base64(data)
    place = movie.find(b"mvhd")
    if place < 0:
        return None
    wide = movie[place + 4 : place + 5] == b"\1"
    at, size = (place + 24, 8) if wide else (place + 16, 4)
    scale, length = int.from_bytes(movie[at : at + 4]), int.from_bytes(movie[at + 4 : at + 4 + size])
    return length / scale if scale and length else None
