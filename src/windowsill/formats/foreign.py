"""What crosses from one provider to another: pictures, ids, names, and words for what cannot cross."""

from __future__ import annotations

import re
from collections.abc import Iterable

from windowsill.formats.wording import words
from windowsill.history.repair import notes
from windowsill.messages import Block, Image, Text, ToolResult, Unknown

_DATA_URL = re.compile(r"data:([\w.+/-]*)(?:;[\w=.+-]+)*;base64,", re.ASCII)
_REFUSED_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")

MAX_NAME_CHARACTERS = 64
"""The shorter of the providers' limits for a tool's name."""

FAILED = "[error] "
"""Stands before a failed result where the format has no flag for it."""


def split_data_url(url: str) -> tuple[str | None, str] | None:
    """Media type and base64 of a data URL; `None` when it is another address."""
    found = _DATA_URL.match(url)
    return (found.group(1) or None, url[found.end() :]) if found else None


def data_url(media_type: str | None, data: str) -> str:
    """A picture or file as an address that holds it."""
    return f"data:{media_type or 'application/octet-stream'};base64,{data}"


def image_url(image: Image) -> str | None:
    """An address for a picture; `None` when only its own provider could find it."""
    if image.data is not None:
        return data_url(image.media_type, image.data)
    return image.url if is_web(image.url) else None


def is_web(url: str | None) -> bool:
    """Whether everybody can find it under this address."""
    return url is not None and url.startswith(("http://", "https://"))


def safe_name(name: str) -> str:
    """A tool's name in characters that every provider takes."""
    return _REFUSED_IN_NAMES.sub("_", name)[:MAX_NAME_CHARACTERS] or "tool"


def in_words(block: Block) -> str:
    """What a block was, for a provider that cannot take it; never empty."""
    if isinstance(block, Unknown) and block.raw is not None and (told := words(block.type, block.raw)):
        return told
    return notes.describe(block) or notes.EMPTY


def result_text(result: ToolResult, *, flagged: bool) -> str:
    """The words of a result; `flagged` puts a mark before a failed one."""
    text = "\n".join(_lines(result.content))
    return FAILED + text if flagged and result.is_error else text


def _lines(blocks: Iterable[Block]) -> Iterable[str]:
    for block in blocks:
        yield block.text if isinstance(block, Text) else in_words(block)
