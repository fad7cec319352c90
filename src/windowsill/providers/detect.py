"""Tells which provider's format a request, a message, a reply, a tool definition or a usage is in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from windowsill.errors import FormatError
from windowsill.models import wants_reasoning
from windowsill.providers.lookup import all_formats, names
from windowsill.providers.openai_chat import DEEPSEEK, DIALECTS
from windowsill.providers.wire import any_decoder, decode

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
    return _dialect(fields.get("model"), fields.get("messages") or ())


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
    if (found := next((format.name for format in all_formats() if format.detects(value)), None)) is not None:
        return found
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
    if value.get("type") == "message":
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
