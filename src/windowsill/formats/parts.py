"""Reads the parts of a request that come one by one: tool definitions and usage, of any provider."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from windowsill.errors import FormatError
from windowsill.formats.format import Format
from windowsill.formats.wire import any_decoder, decode, encode, to_bytes
from windowsill.messages import Tool, Usage


def read_tool(source: Any, where: str, get: Callable[[str], Format]) -> Tool:
    """A tool definition in whatever format it is."""
    if isinstance(source, Tool):
        return source
    raw = to_bytes(source)
    value = decode(any_decoder, raw, where)
    if not isinstance(value, dict):
        raise FormatError("a tool definition is an object", where=where, remedy="pass the provider's own definition")
    openai = "function" in value or value.get("type") == "custom"
    return get("openai" if openai else "anthropic").read_tool(raw, where)


def read_usage(usage: Mapping[str, Any] | Any, get: Callable[[str], Format]) -> Usage:
    """What a provider reported, from its own usage object."""
    body = encode(usage)
    if "prompt_tokens" in decode(any_decoder, body):
        reply = get("openai").read_reply(
            b'{"choices":[{"message":{"role":"assistant","content":""}}],"usage":' + body + b"}"
        )
    else:
        reply = get("anthropic").read_reply(b'{"role":"assistant","content":[],"usage":' + body + b"}")
    return reply.usage or Usage()
