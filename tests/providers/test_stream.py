"""What every stream does, whatever its format."""

from __future__ import annotations

import pytest

from windowsill.errors import FormatError, NotFoundError
from windowsill.providers import streams

pytestmark = pytest.mark.unit


def chunk(text: str) -> bytes:
    return b'data: {"choices":[{"index":0,"delta":{"content":"' + text.encode() + b'"}}]}\n\n'


def test_last_chunk_torn_is_left_out_at_close():
    """A chunk cut in the middle is no failure of the provider."""
    stream = streams.stream("openai")
    stream.feed(chunk("a"))
    stream.feed(b'data: {"choices":[{"index":0,"delta":{"con')
    assert stream.close() == []
    assert stream.failure is None
    assert stream.reply().message.text == "a"


def test_format_without_streams():
    """The error names those there are."""
    with pytest.raises(NotFoundError, match="anthropic, deepseek, gemini, openai, responses"):
        streams.stream("telegraph")


def test_limit_is_that_of_the_stream():
    """An event above it is an error, and what arrived before stays."""
    stream = streams.stream("openai", limit=300)
    stream.feed(chunk("a"))
    with pytest.raises(FormatError, match="300 bytes"):
        stream.feed(chunk("b" * 300))
    assert stream.reply().message.text == "a"
