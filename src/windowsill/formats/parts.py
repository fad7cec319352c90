"""Reads the parts of a request that come one by one: tool definitions and usage, of any provider."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from windowsill.errors import FormatError
from windowsill.formats.base import Format
from windowsill.formats.wire import any_decoder, decode, encode, to_bytes
from windowsill.messages import Tool, Usage

RESPONSES_TOOLS = frozenset(
    {
        "apply_patch",
        "code_interpreter",
        "computer",
        "computer_use_preview",
        "file_search",
        "image_generation",
        "local_shell",
        "mcp",
        "namespace",
        "programmatic_tool_calling",
        "shell",
        "tool_search",
        "web_search",
        "web_search_preview",
    }
)
"""Tools that OpenAI runs or knows by itself; Anthropic's carry a date in their type."""


def read_tool(source: Any, where: str, get: Callable[[str], Format]) -> Tool:
    """A tool definition in whatever format it is."""
    if isinstance(source, Tool):
        return source
    raw = to_bytes(source)
    value = decode(any_decoder, raw, where)
    if not isinstance(value, dict):
        raise FormatError("a tool definition is an object", where=where, remedy="pass the provider's own definition")
    return get(_format_of(value)).read_tool(raw, where)


def _format_of(tool: Mapping[str, Any]) -> str:
    """Whose definition it is: OpenAI nests a function in chats, and writes it flat in Responses."""
    kind = tool.get("type")
    if "function" in tool or "custom" in tool:
        return "openai"
    if "input_schema" not in tool and (kind in {"function", "custom"} or kind in RESPONSES_TOOLS):
        return "responses"
    return "gemini" if kind is None and _is_gemini(tool) else "anthropic"


def _is_gemini(tool: Mapping[str, Any]) -> bool:
    """Whether it is a function declaration, or an entry of `tools` that holds declarations or a tool of Google's."""
    if "name" in tool:
        return "input_schema" not in tool and any(key.startswith("parameters") for key in tool)
    return bool(tool) and all(
        isinstance(value, dict) or key in {"functionDeclarations", "function_declarations"}
        for key, value in tool.items()
    )


def read_usage(usage: Mapping[str, Any] | Any, get: Callable[[str], Format]) -> Usage:
    """What a provider reported, from its own usage object."""
    body = encode(usage)
    fields = decode(any_decoder, body)
    if "input_tokens_details" in fields or ("input_tokens" in fields and "total_tokens" in fields):
        reply = get("responses").read_reply(b'{"output":[{"role":"assistant","content":""}],"usage":' + body + b"}")
    elif "promptTokenCount" in fields or "prompt_token_count" in fields:
        reply = get("gemini").read_reply(b'{"candidates":[{}],"usageMetadata":' + body + b"}")
    elif "prompt_tokens" in fields:
        reply = get("openai").read_reply(
            b'{"choices":[{"message":{"role":"assistant","content":""}}],"usage":' + body + b"}"
        )
    else:
        reply = get("anthropic").read_reply(b'{"role":"assistant","content":[],"usage":' + body + b"}")
    return reply.usage or Usage()
