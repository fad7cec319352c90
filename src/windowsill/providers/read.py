"""Takes whatever a program has at hand after a call: text, messages, SDK objects, whole responses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from windowsill.errors import FormatError
from windowsill.messages import Cleared, Message, Tool, Usage, text_message
from windowsill.providers.base import Format
from windowsill.providers.detect import AMBIGUOUS, detect
from windowsill.providers.openai_chat.messages import DIALECTS
from windowsill.providers.registry import sdk_format
from windowsill.providers.wire import any_decoder, decode, encode, items_decoder, plain, to_bytes

_SPEAKERS = ("user", "assistant")


class Added(msgspec.Struct, frozen=True):
    """Messages to add, with what the provider said it used."""

    messages: list[Message]
    usage: Usage | None = None
    model: str | None = None
    cleared: Cleared | None = None


def take(source: Any, format: str | None, get: Callable[[str], Format], default: str = AMBIGUOUS) -> Added:
    """The messages in `source`."""
    if isinstance(source, Message):
        return Added([source])
    if isinstance(source, str):
        # Encoding once shows text that no provider could be sent.
        encode(source)
        return Added([text_message("user", source)])
    if isinstance(source, bytes | bytearray | memoryview):
        return _from_bytes(to_bytes(source), format, get, default)
    if isinstance(source, list | tuple):
        return _together([take(each, format, get, default) for each in source])
    if not isinstance(source, Mapping):
        made_for = sdk_format(type(source))
        if made_for not in DIALECTS:
            format = format or made_for
        elif default not in DIALECTS:
            # One package serves all dialects: which of them it is, the model tells.
            default = AMBIGUOUS
        source = _object(source)
    body = encode(dict(source))
    if _is_ambiguous(source):
        return Added([get(format or default).read_message(body, "")])
    value = source if _is_plain(source) else decode(any_decoder, body)
    return _read(value, body, get(format or detect(value, default)))


def _is_ambiguous(source: Any) -> bool:
    """Tell whether a message is roles and words, which is the same in every format: no need to look further."""
    return source.keys() == {"role", "content"} and source["role"] in _SPEAKERS and type(source["content"]) is str


def _is_plain(source: Any) -> bool:
    """Whether a message holds no objects of an SDK, so that it can be looked at as it is."""
    content = source.get("content")
    return (
        type(source) is dict
        and "tool_calls" not in source
        and (isinstance(content, str) or (type(content) is list and all(type(each) is dict for each in content)))
    )


def _from_bytes(body: bytes, format: str | None, get: Callable[[str], Format], default: str) -> Added:
    """JSON as it came: its own bytes are kept."""
    if body.lstrip()[:1] == b"[":
        return _together([_from_bytes(bytes(each), format, get, default) for each in decode(items_decoder, body)])
    value = decode(any_decoder, body)
    if not isinstance(value, dict):
        return take(value, format, get, default)
    return _read(value, body, get(format or detect(value, default)))


def _read(value: dict[str, Any], body: bytes, format: Format) -> Added:
    if "messages" in value or "contents" in value or ("input" in value and "type" not in value):
        request = format.read_body(body)
        return Added(list(request.messages), model=request.model)
    if isinstance(value.get("message"), dict):
        body = b'{"choices":[' + body + b"]}"
    elif not _is_reply(value, format.name):
        if value.keys().isdisjoint({"role", "type", "parts"}):
            raise FormatError("neither a message nor a reply", remedy="pass a message with `role` and `content`")
        return Added([format.read_message(body, "")])
    reply = format.read_reply(body)
    return Added([reply.message, *reply.more], reply.usage, reply.model, reply.cleared)


def _is_reply(value: dict[str, Any], format: str) -> bool:
    """Whether it is a whole response rather than a message or an item of one."""
    if "choices" in value or "candidates" in value or ("output" in value and "type" not in value):
        return True
    # In Responses a message is an item of the response, not the response.
    return value.get("type") == "message" and format != "responses"


def _object(source: Any) -> dict[str, Any]:
    value = plain(source) if hasattr(source, "model_dump") else None
    if not isinstance(value, dict):
        raise FormatError(
            f"a {type(source).__name__} is no message", remedy="pass a message, a reply, text, or a list of these"
        )
    return value


def _together(parts: list[Added]) -> Added:
    used = [part.usage for part in parts if part.usage is not None]
    models = [part.model for part in parts if part.model is not None]
    return Added(
        [message for part in parts for message in part.messages],
        used[-1] if used else None,
        models[-1] if models else None,
    )


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
