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

from windowsill import providers
from windowsill.errors import NotFoundError
from windowsill.messages import Reply
from windowsill.providers import sse
from windowsill.providers.anthropic.messages import read_reply as read_anthropic
from windowsill.providers.anthropic.stream import AnthropicAssembly
from windowsill.providers.events import (
    Assembly,
    Parser,
    Stream,
)
from windowsill.providers.gemini import stream as gemini_wire
from windowsill.providers.gemini.stream import GeminiAssembly
from windowsill.providers.gemini.stream import read_reply as read_gemini
from windowsill.providers.openai_chat.deepseek import DeepSeek
from windowsill.providers.openai_chat.messages import read_reply as read_openai
from windowsill.providers.openai_chat.stream import OpenAIAssembly
from windowsill.providers.openai_responses.items import read_reply as read_responses
from windowsill.providers.openai_responses.stream import ResponsesAssembly
from windowsill.providers.sse import MAX_EVENT_BYTES


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
    found = _STREAMS.get(providers.ALIASES.get(format, format))
    if found is None:
        raise NotFoundError(f"no streams of format {format!r}", remedy=f"use one of {', '.join(_STREAMS)}")
    return Stream(found.parser(limit), found.assembly(), found.read_reply)
