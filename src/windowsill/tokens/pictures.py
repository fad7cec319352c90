"""The width and height of a picture, read from the first bytes of PNG, JPEG, GIF and WebP."""

from __future__ import annotations

import binascii
from typing import TypeAlias

Size: TypeAlias = tuple[int, int]

_HEAD = 64
"""Base64 characters that hold the size in every format but JPEG: 48 bytes, of which WebP needs 30."""

_JPEG_READS = (4_096, 131_072, 2_097_152)
"""JPEG keeps its size behind thumbnails and colour profiles of any length: read more only when needed."""

_JPEG_NOT_A_FRAME = frozenset({0xC4, 0xC8, 0xCC})
_JPEG_FRAMES = range(0xC0, 0xD0)
_JPEG_BARE = frozenset({0x01, *range(0xD0, 0xD9)})


def picture_size(data: str) -> Size | None:
    """Width and height of a base64 picture; `None` when they cannot be told."""
    head = _decode(data, _HEAD)
    if head.startswith(b"\xff\xd8"):
        return _jpeg_in(data)
    size = _png(head) or _gif(head) or _webp(head)
    return size if size and all(size) else None


def decoded_size(data: str) -> int:
    """Bytes that a base64 text stands for, without decoding it."""
    return len(data) * 3 // 4 - data.count("=", -2)


def _decode(data: str, length: int) -> bytes:
    try:
        return binascii.a2b_base64(data[:length])
    except (binascii.Error, ValueError):
        return b""


def _png(head: bytes) -> Size | None:
    if not head.startswith(b"\x89PNG\r\n\x1a\n") or len(head) < 24:  # noqa: PLR2004  where the header ends
        return None
    return int.from_bytes(head[16:20]), int.from_bytes(head[20:24])


def _gif(head: bytes) -> Size | None:
    if not head.startswith((b"GIF87a", b"GIF89a")) or len(head) < 10:  # noqa: PLR2004  where the header ends
        return None
    return int.from_bytes(head[6:8], "little"), int.from_bytes(head[8:10], "little")


def _webp(head: bytes) -> Size | None:
    if head[:4] != b"RIFF" or head[8:12] != b"WEBP" or len(head) < 30:  # noqa: PLR2004  where the longest header ends
        return None
    form = head[12:16]
    if form == b"VP8X":
        return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
    if form == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if form == b"VP8 ":
        return int.from_bytes(head[26:28], "little") & 0x3FFF, int.from_bytes(head[28:30], "little") & 0x3FFF
    return None


def _jpeg_in(data: str) -> Size | None:
    for length in _JPEG_READS:
        size = _jpeg(_decode(data, length))
        if size or length >= len(data):
            return size
    return None


def _jpeg(picture: bytes) -> Size | None:
    at, end = 2, len(picture)
    while at + 9 <= end:
        if picture[at] != 0xFF:  # noqa: PLR2004  every marker starts with it
            return None
        marker = picture[at + 1]
        if marker == 0xFF:  # noqa: PLR2004  padding before a marker
            at += 1
        elif marker in _JPEG_BARE:
            at += 2
        elif marker in _JPEG_FRAMES and marker not in _JPEG_NOT_A_FRAME:
            height, width = int.from_bytes(picture[at + 5 : at + 7]), int.from_bytes(picture[at + 7 : at + 9])
            return (width, height) if width and height else None
        else:
            at += 2 + max(2, int.from_bytes(picture[at + 2 : at + 4]))
    return None
