"""Reads whatever a program has at hand: text, messages, SDK objects, whole responses, tool definitions, usage.

Where no format is stated, it is detected.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from windowsill.errors import FormatError
from windowsill.messages import NEUTRAL, Cleared, Message, Request, Tool, Usage, text_message
from windowsill.models import wants_reasoning
from windowsill.providers import frameworks
from windowsill.providers.base import Format
from windowsill.providers.lookup import all_formats, get, names, sdk_format
from windowsill.providers.openai_chat import DEEPSEEK, DIALECTS
from windowsill.providers.wire import (
    any_decoder,
    decode,
    encode,
    escape_halves,
    escape_lone,
    items_decoder,
    plain,
    to_bytes,
)
from windowsill.text import type_name

AMBIGUOUS = "openai"
"""A plain conversation (roles and text) is the same in both; more programs write OpenAI's."""

_OPENAI_ROLES = frozenset({"tool", "developer", "function", "system"})
# fmt: off
_OPENAI_FIELDS = frozenset({
    "tool_calls", "function_call", "tool_call_id", "refusal", "audio", "reasoning_content", "reasoning",
    "reasoning_details",
})
# fmt: on
_OPENAI_PARTS = frozenset({"image_url", "input_audio", "file", "refusal"})
_OPENAI_BODY = frozenset(
    {"max_completion_tokens", "response_format", "functions", "stream_options", "reasoning_effort", "n", "seed", "stop"}
)
# fmt: off
_ANTHROPIC_BLOCKS = frozenset({
    "tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document", "server_tool_use",
    "search_result", "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result",
    "bash_code_execution_tool_result", "text_editor_code_execution_tool_result", "tool_search_tool_result",
    "advisor_tool_result", "mcp_tool_use", "mcp_tool_result", "mcp_tool_listing", "container_upload", "compaction",
    "fallback",
})
# fmt: on
_ANTHROPIC_BODY = frozenset(
    {"system", "anthropic_version", "stop_sequences", "top_k", "container", "mcp_servers", "context_management"}
)
# fmt: off
_RESPONSES_TOOLS = frozenset({
    "apply_patch", "code_interpreter", "computer", "computer_use_preview", "file_search", "image_generation",
    "local_shell", "mcp", "namespace", "programmatic_tool_calling", "shell", "tool_search", "web_search",
    "web_search_preview",
})
# fmt: on
"""Tools that OpenAI runs or knows by itself; Anthropic's carry a date in their type."""

_REMEDY = f"pass format=, one of {', '.join(names())}"

_SELF_KNOWN = tuple(format for format in all_formats() if type(format).detects is not Format.detects)
"""Formats that can tell what is clearly theirs."""


def detect(value: Any, default: str = AMBIGUOUS) -> str:
    """Return the format of a decoded request body, message list, message or reply; `default` where it could be any.

    What is written as a chat of OpenAI's could be of any of its dialects: `default` decides if it is one, or the model.
    """
    found = _detect(value) or default
    if found != AMBIGUOUS:
        return found
    if default in DIALECTS and default != AMBIGUOUS:
        return default
    fields = value if isinstance(value, dict) else {"messages": value}
    listed = fields.get("messages")
    return _dialect(fields.get("model"), listed if isinstance(listed, list) else ())


def detect_body(body: bytes) -> str:
    """Return the format of a request body or message list as bytes."""
    return detect(decode(any_decoder, body))


def _dialect(model: Any, messages: Iterable[Any]) -> str:
    """Tell which dialect of OpenAI's format it is: by the model, or else when every message carries reasoning."""
    if model is not None:
        return DEEPSEEK if isinstance(model, str) and wants_reasoning(model) else AMBIGUOUS
    carried = [
        bool(each.get("reasoning_content"))
        for each in messages
        if isinstance(each, dict) and each.get("role") == "assistant"
    ]
    return DEEPSEEK if carried and all(carried) else AMBIGUOUS


def _detect(value: Any) -> str | None:
    # The others know their own; a chat and Anthropic's messages are told apart below.
    if found := [format.name for format in _SELF_KNOWN if format.detects(value)]:
        return found[0]
    if isinstance(value, list):
        for index, each in enumerate(value):
            if not isinstance(each, dict) or "role" not in each:
                raise FormatError("not a message", where=f"[{index}]", remedy=_REMEDY)
        return _first(map(_of_message, value))
    if not isinstance(value, dict):
        raise FormatError("neither a request body nor a message list", remedy="pass one of them")
    if "choices" in value or isinstance(value.get("message"), dict):
        return "openai"
    if "messages" in value:
        messages = value["messages"]
        listed = messages if isinstance(messages, list) else []
        claude = "anthropic" if "claude" in str(value.get("model")) else None
        return _of_body(value) or _first(map(_of_message, listed)) or claude
    if value.get("type") == "message" or _has_usage(value):
        return "anthropic"
    if "role" in value:
        return _of_message(value)
    raise FormatError("neither a request, a message nor a reply", remedy=_REMEDY)


def _first(found: Iterable[str | None]) -> str | None:
    return next((each for each in found if each is not None), None)


def _of_body(fields: Mapping[str, Any]) -> str | None:
    if fields.get("format") in names():
        return str(fields["format"])
    for tool in fields.get("tools") or ():
        if isinstance(tool, dict):
            # Mistral's tools may lack the type.
            is_chat = tool.get("type") in {"function", "custom"} or isinstance(tool.get("function"), dict)
            is_chat = is_chat and "input_schema" not in tool
            return "openai" if is_chat else "anthropic"
    thinking = fields.get("thinking")
    # DeepSeek and GLM have a field of this name too.
    is_claudes = isinstance(thinking, dict) and ("budget_tokens" in thinking or thinking.get("type") == "adaptive")
    if is_claudes or not _ANTHROPIC_BODY.isdisjoint(fields):
        return "anthropic"
    return "openai" if not _OPENAI_BODY.isdisjoint(fields) else None


def _of_message(message: Any) -> str | None:
    if not isinstance(message, dict):
        return None
    content = message.get("content")
    if isinstance(content, list):
        kinds = {str(block.get("type")) for block in content if isinstance(block, dict)}
        # Thinking is a list of parts in Mistral's chats, and text in Anthropic's messages.
        is_mistrals = any(isinstance(block, dict) and isinstance(block.get("thinking"), list) for block in content)
        if not kinds.isdisjoint(_ANTHROPIC_BLOCKS) and not is_mistrals:
            return "anthropic"
        if not kinds.isdisjoint(_OPENAI_PARTS) or is_mistrals:
            return "openai"
    if message.get("role") in _OPENAI_ROLES or not _OPENAI_FIELDS.isdisjoint(message):
        return "openai"
    return None


def detect_tool(tool: Mapping[str, Any]) -> str:
    """Return the format of a tool definition: OpenAI nests a function in chats, and writes it flat in Responses."""
    kind = tool.get("type")
    if "function" in tool or "custom" in tool:
        return "openai"
    if "input_schema" not in tool and (kind in {"function", "custom"} or kind in _RESPONSES_TOOLS):
        return "responses"
    return "gemini" if kind is None and _is_gemini_tool(tool) else "anthropic"


def _is_gemini_tool(tool: Mapping[str, Any]) -> bool:
    """Tell whether it is a function declaration, or an entry that holds declarations or a tool of Google's."""
    if "name" in tool:
        return "input_schema" not in tool and any(key.startswith("parameters") for key in tool)
    declared = {"functionDeclarations", "function_declarations"}
    return bool(tool) and all(isinstance(value, dict) or key in declared for key, value in tool.items())


def detect_usage(usage: Mapping[str, Any]) -> str:
    """Return the format of a usage object."""
    if "input_tokens_details" in usage or ("input_tokens" in usage and "total_tokens" in usage):
        return "responses"
    if not {"promptTokenCount", "prompt_token_count", "totalTokenCount", "total_token_count"}.isdisjoint(usage):
        return "gemini"
    if not {"prompt_tokens", "completion_tokens"}.isdisjoint(usage):
        return "openai"
    if {"input_tokens", "output_tokens"}.isdisjoint(usage):
        found = ", ".join(list(usage)[:5]) or "nothing"
        remedy = 'pass the usage of the response, or {"input_tokens": ..., "output_tokens": ...}'
        raise FormatError(f"a usage of no known kind: it has {found}", where="usage", remedy=remedy)
    return "anthropic"


T = TypeVar("T")

_SPEAKERS = ("user", "assistant")

_USAGES = (
    ("inputTokens", "outputTokens", "cacheWriteInputTokens", "cacheReadInputTokens"),  # Bedrock Converse
    ("prompt_eval_count", "eval_count"),  # Ollama's own API
)
"""Names of input, output, cache writes and reads in a usage that no format here has."""

_FIELDS = frozenset(
    {"role", "type", "parts", "messages", "contents", "input", "message", "choices", "candidates", "output"}
)
"""Fields of which a message, a reply or a request has one."""


class Added(msgspec.Struct, frozen=True):
    """Messages to add, with what the provider said it used."""

    messages: list[Message]
    usage: Usage | None = None
    model: str | None = None
    cleared: Cleared | None = None


def read_request(source: bytes | str | Mapping[str, Any] | Sequence[Any], *, format: str | None = None) -> Request:
    """Read a request body or a message list; without a format it is told from the content."""
    if isinstance(source, list | tuple) and any(frameworks.is_framework(each) for each in source):
        messages = read_added(source).messages
        known = next((each.format for each in messages if each.format != NEUTRAL), AMBIGUOUS)
        return Request(format=format or known, messages=tuple(messages), bare=True)
    return _mended(to_bytes(source), lambda body: get(format or detect_body(body)).read_body(body))


def _mended(body: bytes, read: Callable[[bytes], T]) -> T:
    """Read JSON; where it holds halves of surrogate pairs, which a model may write, with these escaped once more."""
    try:
        return read(body)
    except FormatError:
        if (mended := escape_lone(body)) == body:
            raise
    return read(mended)


def read_added(source: Any, *, format: str | None = None, default: str = AMBIGUOUS) -> Added:
    """Read what a program adds to a conversation: a message, a reply with usage, SDK objects, text, a list of these.

    `default` is the format of what could be of any, such as a role with plain text.
    """
    if isinstance(source, Message):
        return Added([_writable(source)])
    if isinstance(source, str):
        return Added([text_message("user", escape_halves(source))])
    if isinstance(source, bytes | bytearray | memoryview):
        return _mended(to_bytes(source), lambda body: _from_bytes(body, format, default))
    if isinstance(source, list | tuple):
        return _together([read_added(each, format=format, default=default) for each in source])
    if type(source) is dict and _is_ambiguous(source):
        return Added([get(format or default).read_message(encode(source), "")])
    if (found := frameworks.convert(source)) is not None:
        added = _together([read_added(each, default=default) for each in found.messages])
        usage = None if found.usage is None else read_usage(found.usage)
        return msgspec.structs.replace(added, usage=usage, model=found.model)
    if not isinstance(source, Mapping):
        made_for = sdk_format(type(source))
        if made_for not in DIALECTS:
            format = format or made_for
        elif default not in DIALECTS:
            # One package serves all dialects: which of them it is, the model tells.
            default = AMBIGUOUS
        source = _object(source)
    body = encode(dict(source))
    value = source if _is_plain(source) else decode(any_decoder, body)
    return _read(value, body, get(format or detect(value, default)))


def _writable(message: Message) -> Message:
    """Return a message of the program's own with nothing in it that cannot be stored, such as half characters."""
    if message.raw is not None:
        return message
    try:
        msgspec.json.encode(msgspec.structs.replace(message, metadata={}))
    except (UnicodeEncodeError, TypeError):
        kept = message.metadata
        plain = msgspec.json.decode(encode(msgspec.structs.replace(message, metadata={})), type=Message)
        return msgspec.structs.replace(plain, metadata=kept)
    return message


def _is_ambiguous(source: Any) -> bool:
    """Tell whether a message is roles and words, which is the same in every format: no need to look further."""
    return source.keys() == {"role", "content"} and source["role"] in _SPEAKERS and type(source["content"]) is str


def _is_plain(source: Any) -> bool:
    """Tell whether a message holds no objects of an SDK, so that it can be looked at as it is."""
    content = source.get("content")
    return (
        type(source) is dict
        and "tool_calls" not in source
        and (isinstance(content, str) or (type(content) is list and all(type(each) is dict for each in content)))
    )


def _from_bytes(body: bytes, format: str | None, default: str) -> Added:
    """Read JSON as it came: its own bytes are kept."""
    if body.lstrip()[:1] == b"[":
        return _together([_from_bytes(bytes(each), format, default) for each in decode(items_decoder, body)])
    value = decode(any_decoder, body)
    if not isinstance(value, dict):
        return read_added(value, format=format, default=default)
    return _read(value, body, get(format or detect(value, default)))


def _read(value: dict[str, Any], body: bytes, format: Format) -> Added:
    if "messages" in value or "contents" in value or ("input" in value and "type" not in value):
        request = format.read_body(body)
        return Added(list(request.messages), model=request.model)
    if isinstance(value.get("message"), dict):
        body = b'{"choices":[' + body + b"]}"
    elif not _is_reply(value, format):
        if value.keys().isdisjoint({"role", "type", "parts"}):
            raise FormatError("neither a message nor a reply", remedy="pass a message with `role` and `content`")
        return Added([format.read_message(body, "")])
    reply = format.read_reply(body)
    return Added([reply.message, *reply.more], reply.usage, reply.model, reply.cleared)


def _is_reply(value: dict[str, Any], format: Format) -> bool:
    """Tell whether it is a whole response rather than a message or an item of one."""
    if "choices" in value or "candidates" in value or ("output" in value and "type" not in value):
        return True
    # Where a turn is several items, a message is an item of the response, not the response.
    return (value.get("type") == "message" or _has_usage(value)) and not format.rules.in_items


def _has_usage(value: dict[str, Any]) -> bool:
    """Tell whether it is an answer of Anthropic's with its usage, whatever else a program left of the response."""
    usage = value.get("usage")
    return value.get("role") == "assistant" and isinstance(usage, dict) and "input_tokens" in usage


def _object(source: Any) -> dict[str, Any]:
    """Return the fields of an object: of an SDK, a program's own model or data class."""
    has_fields = isinstance(source, msgspec.Struct) or hasattr(source, "model_dump") or dataclasses.is_dataclass(source)
    value = plain(source) if has_fields else None
    if not isinstance(value, dict) or value.keys().isdisjoint(_FIELDS):
        remedy = f"pass text, a dictionary with role and content, {frameworks.KNOWN}, or a list of these"
        raise FormatError(f"{type_name(source)} is not a message", remedy=remedy)
    return value


def _together(parts: list[Added]) -> Added:
    return Added(
        [message for part in parts for message in part.messages],
        next((part.usage for part in reversed(parts) if part.usage is not None), None),
        next((part.model for part in reversed(parts) if part.model is not None), None),
    )


def read_tool(source: Any, where: str = "") -> Tool:
    """Read a tool definition in whatever format it is."""
    if isinstance(source, Tool):
        return source
    raw = to_bytes(source)
    value = decode(any_decoder, raw, where)
    if not isinstance(value, dict):
        raise FormatError("a tool definition is an object", where=where, remedy="pass the provider's own definition")
    return get(detect_tool(value)).read_tool(raw, where)


def read_tools(sources: Sequence[Any]) -> tuple[Tool, ...]:
    """Read tool definitions, each in whatever format it is; an entry that holds several gives one for each."""
    found: list[Tool] = []
    for index, source in enumerate(sources):
        tool = read_tool(source, f"tools[{index}]")
        found += (tool,) if tool.raw is None else get(tool.format).split_tool(tool, f"tools[{index}]")
    return tuple(found)


def read_usage(usage: Any) -> Usage:
    """Read what a provider reported, from its own usage object."""
    if isinstance(usage, Usage):
        return usage
    body = encode(usage)
    value = decode(any_decoder, body)
    if not isinstance(value, dict):
        raise FormatError(f"{type_name(usage)} is no usage", where="usage", remedy="pass the usage of the response")
    if isinstance(tokens := value.get("tokens"), dict):
        value, body = tokens, encode(tokens)  # Cohere's, beside the units it bills
    for fields in _USAGES:
        if fields[0] in value:
            counts = [each if isinstance(each := value.get(name), int) else 0 for name in fields]
            return Usage(**dict(zip(Usage.__struct_fields__, counts, strict=False)))
    return get(detect_usage(value)).read_usage(body)
