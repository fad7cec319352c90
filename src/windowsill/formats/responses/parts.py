"""The parts of a message or an output: text, pictures, files; read and built."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Raw

from windowsill.errors import FormatError
from windowsill.formats.foreign import data_url, image_url, in_words, is_web, split_data_url
from windowsill.formats.wire import UNREADABLE, decode
from windowsill.messages import Block, Document, Image, Text, Unknown


class _Part(msgspec.Struct, gc=False):
    type: str
    text: str | None = None
    image_url: str | None = None
    detail: str | None = None
    file_id: str | None = None
    file_data: str | None = None
    file_url: str | None = None
    filename: str | None = None


class _Written(msgspec.Struct, tag_field="type", tag="input_text", forbid_unknown_fields=True, gc=False):
    text: str


class _Spoken(msgspec.Struct, tag_field="type", tag="output_text", forbid_unknown_fields=True, gc=False):
    text: str
    annotations: Raw = Raw(b"[]")
    logprobs: Raw = Raw(b"[]")


class _Type(msgspec.Struct, gc=False):
    type: str


_text = msgspec.json.Decoder(_Written | _Spoken)
"""What nearly every part is; all others, and those with a field more, take the longer way."""
_part = msgspec.json.Decoder(_Part)
_type = msgspec.json.Decoder(_Type)

TEXTS = frozenset({"input_text", "output_text"})
KNOWN = TEXTS | {"input_image", "input_file", "computer_screenshot"}


def read_parts(content: str | list[Raw] | None, where: str, field: str) -> tuple[Block, ...]:
    """Text, or a list of parts."""
    if isinstance(content, str):
        return (Text(text=content),)
    blocks: list[Block] = []
    for index, raw in enumerate(content or ()):
        own = bytes(raw)
        try:
            blocks.append(Text(text=_text.decode(own).text, raw=own))
        except UNREADABLE:
            blocks.append(read_part(raw, f"{where}.{field}[{index}]".removeprefix(".")))
    return tuple(blocks)


def read_part(raw: Raw, where: str) -> Block:
    """One part; of a kind that is not known, its bytes."""
    own = bytes(raw)
    try:
        wire = _part.decode(raw)
    except UNREADABLE:
        kind = decode(_type, raw, where).type
        if kind not in KNOWN:
            return Unknown(type=kind, raw=own)
        wire = decode(_part, raw, where)
    if wire.type not in KNOWN:
        return Unknown(type=wire.type, raw=own)
    if wire.type in TEXTS:
        if wire.text is None:
            raise FormatError(f"a part of type {wire.type} without text", where=where, remedy="leave it out")
        return Text(text=wire.text, raw=own)
    return _document(wire, own) if wire.type == "input_file" else _image(wire, own)


def _image(wire: _Part, raw: bytes) -> Image:
    inline = split_data_url(wire.image_url) if wire.image_url else None
    if inline is None:
        return Image(url=wire.image_url or wire.file_id, detail=wire.detail, raw=raw)
    return Image(media_type=inline[0], data=inline[1], detail=wire.detail, raw=raw)


def _document(wire: _Part, raw: bytes) -> Document:
    inline = split_data_url(wire.file_data) if wire.file_data else None
    media_type, data = inline if inline is not None else (None, wire.file_data)
    return Document(media_type=media_type, data=data, url=wire.file_url or wire.file_id, title=wire.filename, raw=raw)


def build_parts(blocks: Iterable[Block], *, native: bool, spoken: bool = False) -> list[Any]:
    """Parts for blocks: their own bytes where they are of this format; `spoken` by the assistant."""
    return [_build(block, native=native, spoken=spoken) for block in blocks]


def _build(block: Block, *, native: bool, spoken: bool) -> Any:
    if native and block.raw is not None and isinstance(block, Text | Image | Document | Unknown):
        return Raw(block.raw)
    if spoken:
        text = block.text if isinstance(block, Text) else in_words(block)
        return {"type": "output_text", "text": text, "annotations": []}
    if isinstance(block, Image) and (url := image_url(block)) is not None:
        return {"type": "input_image", "image_url": url, "detail": block.detail or "auto"}
    if isinstance(block, Document) and block.data is not None:
        file = data_url(block.media_type, block.data)
        return {"type": "input_file", "filename": block.title or "document", "file_data": file}
    if isinstance(block, Document) and is_web(block.url):
        return {"type": "input_file", "file_url": block.url}
    return {"type": "input_text", "text": block.text if isinstance(block, Text) else in_words(block)}


def text_or_parts(blocks: Iterable[Block], *, native: bool) -> Any:
    """Plain text where that says it all, else parts."""
    found = list(blocks)
    if not found:
        return ""
    if len(found) == 1 and isinstance(found[0], Text) and (found[0].raw is None or not native):
        return found[0].text
    return build_parts(found, native=native)
