"""Streaming, without input or output: feed bytes, get events, and in the end the message.

stream = streaming.stream("anthropic")
for chunk in response.iter_bytes():
    for event in stream.feed(chunk):
        ...
reply = stream.reply()
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from windowsill import formats
from windowsill.errors import NotFoundError
from windowsill.formats.anthropic.read import read_reply as read_anthropic
from windowsill.formats.deepseek import DeepSeek
from windowsill.formats.openai.read import read_reply as read_openai
from windowsill.formats.responses.read import read_reply as read_responses
from windowsill.formats.streaming import gemini_wire, sse
from windowsill.formats.streaming.anthropic import AnthropicAssembly
from windowsill.formats.streaming.events import (
    CallDelta,
    CallStarted,
    Event,
    Failed,
    Finished,
    Raw,
    ReasoningDelta,
    TextDelta,
    UsageSeen,
)
from windowsill.formats.streaming.gemini import GeminiAssembly
from windowsill.formats.streaming.gemini import read_reply as read_gemini
from windowsill.formats.streaming.openai import OpenAIAssembly
from windowsill.formats.streaming.responses import ResponsesAssembly
from windowsill.formats.streaming.sse import MAX_EVENT_BYTES
from windowsill.formats.streaming.stream import PARTIAL, Assembly, Parser, Stream
from windowsill.messages import Reply

__all__ = [
    "PARTIAL",
    "Assembly",
    "CallDelta",
    "CallStarted",
    "Event",
    "Failed",
    "Finished",
    "Parser",
    "Raw",
    "ReasoningDelta",
    "Stream",
    "TextDelta",
    "UsageSeen",
    "names",
    "stream",
]


class _Parts(NamedTuple):
    assembly: Callable[[], Assembly]
    read_reply: Callable[[bytes], Reply]
    parser: Callable[[int], Parser] = lambda limit: sse.Parser(limit=limit)


_STREAMS = {
    "anthropic": _Parts(AnthropicAssembly, read_anthropic),
    "deepseek": _Parts(OpenAIAssembly, DeepSeek.read_reply),
    "gemini": _Parts(GeminiAssembly, read_gemini, lambda limit: gemini_wire.Parser(limit=limit)),
    "openai": _Parts(OpenAIAssembly, read_openai),
    "responses": _Parts(ResponsesAssembly, read_responses),
}


def names() -> tuple[str, ...]:
    """The formats whose streams are known."""
    return tuple(_STREAMS)


def stream(format: str, *, limit: int = MAX_EVENT_BYTES) -> Stream:
    """A new stream of this format; `limit` is the size in bytes that one event may have."""
    found = _STREAMS.get(formats.ALIASES.get(format, format))
    if found is None:
        raise NotFoundError(f"no streams of format {format!r}", remedy=f"use one of {', '.join(_STREAMS)}")
    return Stream(found.parser(limit), found.assembly(), found.read_reply)
