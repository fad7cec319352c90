"""The tokens of pictures, documents, sound and film, by the rules that providers published and the lengths of files."""

from __future__ import annotations

import binascii
import math
import re
import zlib
from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

from windowsill.errors import InputError
from windowsill.messages import Document, Image

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


Size: TypeAlias = tuple[int, int]

_HEAD = 64
"""Base64 characters that hold the size in every format but JPEG: 48 bytes, of which WebP needs 30."""

_JPEG_READS = (4_096, 131_072, 2_097_152)
"""JPEG keeps its size behind thumbnails and colour profiles of any length: read more only when needed."""

_JPEG_NOT_A_FRAME = frozenset({0xC4, 0xC8, 0xCC})
_JPEG_FRAMES = range(0xC0, 0xD0)
_JPEG_BARE = frozenset({0x01, *range(0xD0, 0xD9)})


def picture_size(data: str) -> Size | None:
    """Read width and height of a base64 picture; `None` when it does not say them."""
    head = decode_base64(data, _HEAD)
    if head.startswith(b"\xff\xd8"):
        return _jpeg_in(data)
    size = _png(head) or _gif(head) or _webp(head)
    return size if size and all(size) else None


def decoded_size(data: str) -> int:
    """Count the bytes that a base64 text stands for, without decoding it."""
    return len(data) * 3 // 4 - data.count("=", -2)


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
        size = _jpeg(decode_base64(data, length))
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


class ImageRule(msgspec.Struct, frozen=True):
    """A provider's rule: the tokens of a picture with a known size, and the most any picture costs."""

    name: str
    """The name the model table uses."""
    page: int = 1_000
    """Tokens of the picture of a PDF's page."""
    page_text: int = 1_500
    """The most tokens that the text of a page has besides; 0 where it is not counted."""
    sound: int = 32
    """Tokens of a second of sound."""
    film: int = 300
    """Tokens of a second of film, its sound included."""

    def tokens(self, width: int, height: int, detail: str | None = None) -> int:
        """Count the tokens of a picture of this size."""
        raise NotImplementedError

    def largest(self, detail: str | None = None) -> int:
        """Count the tokens of the most expensive picture: what an unknown size is taken as."""
        raise NotImplementedError


class AreaRule(ImageRule, frozen=True, kw_only=True):
    """Tokens by area, after the picture was made to fit a longest edge (Anthropic)."""

    edge: int
    most: int
    pixels_per_token: int = 750

    def tokens(self, width: int, height: int, detail: str | None = None) -> int:
        """Divide the area by `pixels_per_token`."""
        shrink = min(1.0, self.edge / max(width, height))
        return min(self.most, math.ceil(width * shrink * height * shrink / self.pixels_per_token))

    def largest(self, detail: str | None = None) -> int:
        """Return the provider's ceiling."""
        return self.most


class TileRule(ImageRule, frozen=True, kw_only=True):
    """A base and a price for each tile of 512 pixels (OpenAI: gpt-4o, gpt-4.1, gpt-5, o1, o3)."""

    base: int
    tile: int

    def tokens(self, width: int, height: int, detail: str | None = None) -> int:
        """Fit the picture into 2,048 pixels, then the shorter side into 768, then count tiles."""
        if detail == "low":
            return self.base
        fit = min(1.0, 2048 / max(width, height))
        fit *= min(1.0, 768 / (min(width, height) * fit))
        return self.base + self.tile * _cells(width * fit, height * fit, 512)

    def largest(self, detail: str | None = None) -> int:
        """Count 4 by 2 tiles: 2,048 by 768 pixels."""
        return self.tokens(2048, 768, detail)


class PatchRule(ImageRule, frozen=True, kw_only=True):
    """A token for each square patch, up to a ceiling, times a factor of the model (newer OpenAI models, generic)."""

    patches: int
    factor: float = 1.0
    side: int = 32
    original_patches: int = 0
    """The ceiling at `detail: original`; 0 where the model has no such detail."""

    def tokens(self, width: int, height: int, detail: str | None = None) -> int:
        """Count the patches that cover the picture, at most the ceiling."""
        return math.ceil(min(_cells(width, height, self.side), self._ceiling(detail)) * self.factor)

    def largest(self, detail: str | None = None) -> int:
        """Return the ceiling."""
        return math.ceil(self._ceiling(detail) * self.factor)

    def _ceiling(self, detail: str | None) -> int:
        return max(self.patches, self.original_patches) if detail == "original" else self.patches


class CropRule(ImageRule, frozen=True, kw_only=True):
    """258 tokens for a small picture and for each crop of a larger one (Gemini up to 2.5)."""

    crop: int = 258

    def tokens(self, width: int, height: int, detail: str | None = None) -> int:
        """Count crops whose side is two thirds of the shorter side, between 256 and 768 pixels."""
        if max(width, height) <= 384:  # noqa: PLR2004  the published limit of a small picture
            return self.crop
        fit = min(1.0, 3072 / max(width, height))
        width, height = max(1, int(width * fit)), max(1, int(height * fit))
        side = min(768, max(256, int(min(width, height) / 1.5)))
        return self.crop * _cells(width, height, side)

    def largest(self, detail: str | None = None) -> int:
        """Count 12 by 2 crops: 3,072 by 384 pixels; no other shape has more."""
        return self.tokens(3072, 384 + 1, detail)


class FlatRule(ImageRule, frozen=True, kw_only=True):
    """The same for every picture (Gemini 3 and later)."""

    each: int

    def tokens(self, width: int, height: int, detail: str | None = None) -> int:
        """Return the flat price."""
        return self.each

    def largest(self, detail: str | None = None) -> int:
        """Return the flat price."""
        return self.each


def _cells(width: float, height: float, side: int) -> int:
    # Scaling leaves 768.0000001 where 768 is meant; a whole extra row of tiles must not come from that.
    return math.ceil(round(width, 6) / side) * math.ceil(round(height, 6) / side)


# A page of a PDF goes to the model as a picture, with its text besides except to Gemini; the text of a page is 1,500 to
# 3,000 tokens by Anthropic's words. Gemini takes 32 tokens for a second of sound and a frame of a film each second, 258
# tokens up to 2.5 and 70 from 3 on; OpenAI 10 for a second of sound. The sources are named in docs/counting.md.
_RULES: tuple[ImageRule, ...] = (
    AreaRule("anthropic", edge=1568, most=1600, page=1600, page_text=3000),
    AreaRule("anthropic-high", edge=2576, most=4784, page=1600, page_text=3000),
    TileRule("openai-4o", base=85, tile=170, page=765, sound=10),
    TileRule("openai-4o-mini", base=2833, tile=5667, page=765, sound=10),
    TileRule("openai-5", base=70, tile=140, page=630, sound=10),
    TileRule("openai-o", base=75, tile=150, page=675, sound=10),
    PatchRule("openai-mini", patches=1536, factor=1.62, sound=10),
    PatchRule("openai-nano", patches=1536, factor=2.46, sound=10),
    PatchRule("openai-o4-mini", patches=1536, factor=1.72, sound=10),
    PatchRule("openai-patches", patches=2500, original_patches=10_000, sound=10),
    CropRule("gemini", page=258, page_text=0),
    FlatRule("gemini-3", each=1120, page=560, page_text=0, film=102),
    # The words that stand for a picture where the model takes none.
    FlatRule("words", each=24),
    # Open models cut pictures into patches of 28 pixels and scale down to a few megapixels.
    PatchRule("generic", patches=2500, side=28),
)

IMAGE_RULES: dict[str, ImageRule] = {rule.name: rule for rule in _RULES}


def image_rule(name: str) -> ImageRule:
    """Return the rule with this name."""
    try:
        return IMAGE_RULES[name]
    except KeyError:
        raise InputError(
            f"there is no image rule {name!r}", remedy=f"use one of {', '.join(sorted(IMAGE_RULES))}"
        ) from None


def image_tokens(image: Image, rule: ImageRule) -> int:
    """Count the tokens of a picture; one whose size cannot be read counts as the most expensive there is."""
    data = inline_data(image.data, image.url)
    size = picture_size(data) if data else None
    return rule.tokens(*size, image.detail) if size else rule.largest(image.detail)


def inline_data(data: str | None, url: str | None) -> str | None:
    """Return the base64 text of an inline picture or document, also of one inside a `data:` address."""
    source = data or url
    if source and source.startswith("data:"):
        return source.partition(",")[2]
    return data


PAGE_BYTES = 40_000
"""A PDF made from text has about 50 to 100 KB for a page, scans more: this asks for too many pages, not too few."""

TEXT_BYTES = 4
"""Bytes of a PDF for each token of its text, at least: fonts and pictures are among them, and text is packed."""

REMOTE_PAGES = 10
"""Pages assumed for a document by address, whose size nobody can know before the reply; usage corrects it then."""

REMOTE_SECONDS = 60
"""Seconds assumed for sound and film by address."""

MOST_PAGES = 600
"""The most pages any provider reads from one document."""


def document_text(document: Document) -> str | None:
    """Return the text of a document that is text, inline or encoded; `None` for a PDF or an address."""
    if document.text is not None:
        return document.text
    kind = document.media_type or ""
    data = inline_data(document.data, document.url)
    if data is None or not (kind.startswith("text/") or kind == "application/json"):
        return None
    text = decode_base64(data)
    return text.decode("utf-8", "replace") if text or not data else None


def file_tokens(document: Document, rule: ImageRule) -> int:
    """Count the tokens of a document that is not text: sound and film by their seconds, others by their pages."""
    kind, data = _kind(document), inline_data(document.data, document.url)
    size = decoded_size(data) if data else 0
    if kind.startswith("audio/"):
        return math.ceil(rule.sound * (seconds_of_sound(data, size, kind) if data else REMOTE_SECONDS))
    if kind.startswith("video/"):
        seconds = min(LONGEST, _movie_seconds(data) or size / FILM_BYTES) if data else REMOTE_SECONDS
        return math.ceil(rule.film * seconds)
    if data is None:
        return REMOTE_PAGES * (rule.page + rule.page_text)
    pages = min(MOST_PAGES, count_pages(decode_base64(data)) or max(1, -(-size // PAGE_BYTES)))
    return pages * (rule.page + min(rule.page_text, size // pages // TEXT_BYTES))


def _kind(document: Document) -> str:
    source = document.data or document.url or ""
    stated = source[5:].partition(",")[0].partition(";")[0] if source.startswith("data:") else ""
    return (document.media_type or stated).lower()


SOUND_FORMATS = frozenset({"wav", "mp3", "pcm16", "flac", "opus", "aac"})
"""The formats of sound that OpenAI names."""


def read_file(raw: bytes) -> Document | None:
    """Read the encoded file in a block of an unknown kind, such as `input_audio` or `video_url`; `None` without one.

    It must be most of the block: what else it has then does not count.
    """
    try:
        fields = msgspec.json.decode(raw, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    for value in fields.values():
        inner = value if isinstance(value, dict) else {}
        for name in ("data", "url"):
            data = inner.get(name)
            if isinstance(data, str) and 2 * len(data) > len(raw) and (name == "data" or data.startswith("data:")):
                kind = inner.get("media_type") or inner.get("mimeType")
                if inner.get("format") in SOUND_FORMATS:
                    kind = f"audio/{inner['format']}"
                return Document(data=data, media_type=kind if isinstance(kind, str) else None)
    return None
