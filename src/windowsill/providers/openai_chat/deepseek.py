"""What DeepSeek and Kimi refuse in a request, beyond what OpenAI does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from windowsill.history.repair import Rules
from windowsill.messages import Message, Reasoning, Reply, Request, Tool
from windowsill.providers import openai_chat
from windowsill.providers.base import Problem
from windowsill.providers.openai_chat import messages
from windowsill.providers.openai_chat.messages import DEEPSEEK, DIALECTS, REASONING_FIELDS
from windowsill.providers.openai_chat.rules import validate as validate_chat
from windowsill.providers.wire import decode, encode, fields_decoder

ROLES = frozenset({"system", "user", "assistant", "tool"})

_REMEDY = "send reasoning_content back as it came; where there was none, a space"


def validate(body: Any) -> list[Problem]:
    """Everything wrong with a request body or a list of messages, in order."""
    found = [_renamed(problem) for problem in validate_chat(body)]
    fields = body if isinstance(body, dict) else {}
    messages = fields.get("messages") if fields else body
    if isinstance(messages, list):
        where = "messages" if fields else ""
        found += _roles(messages, where)
        if not _is_off(fields.get("thinking")):
            found += _reasoning(messages, where, every=_wants_every(fields))
    return found


def _renamed(problem: Problem) -> Problem:
    return Problem(problem.rule.replace("openai.", "deepseek."), problem.where, problem.what, problem.remedy)


def _is_off(thinking: Any) -> bool:
    """Whether the request switches thinking off; then no reasoning is asked for."""
    return isinstance(thinking, dict) and thinking.get("type") == "disabled"


def _wants_every(body: dict[str, Any]) -> bool:
    """Whether messages without calls need it too: DeepSeek from version 4 on says so wherever there are tools."""
    return bool(body.get("tools")) and "deepseek-v4" in str(body.get("model"))


def _roles(messages: list[Any], where: str) -> Iterator[Problem]:
    for index, message in enumerate(messages):
        fields = message if isinstance(message, dict) else {}
        role = fields.get("role")
        if role in {"developer", "function"}:
            yield Problem(
                "deepseek.role", f"{where}[{index}]", f"role {role!r}", f"use one of {', '.join(sorted(ROLES))}"
            )
        elif fields.get("function_call"):
            yield Problem(
                "deepseek.function-call",
                f"{where}[{index}]",
                "function_call, which only OpenAI knows",
                "use tool_calls",
            )


def _reasoning(messages: list[Any], where: str, *, every: bool) -> Iterator[Problem]:
    for index, message in enumerate(messages):
        if not isinstance(message, dict) or message.get("role") != "assistant":
            continue
        if any(message.get(field) for field in REASONING_FIELDS):
            continue
        place = f"{where}[{index}]"
        if message.get("tool_calls"):
            yield Problem("deepseek.calls-carry-reasoning", place, "calls without the reasoning behind them", _REMEDY)
        elif every:
            yield Problem("deepseek.reasoning-is-sent-back", place, "no reasoning_content, beside tools", _REMEDY)


FIELD = "reasoning_content"

NOTHING = " "
"""Stands for reasoning that is not there: the models refuse a message without any, and to Kimi empty text is none."""

LEGACY = (b'"developer"', b'"function"', b'"function_call"')
"""Roles and fields that only OpenAI knows; without these words a message has none of them."""


def render_message(message: Message) -> list[bytes]:
    """The message as these models take it."""
    chunks = messages.render_chat(_modern(message))
    return [_reasoned(chunk, message) for chunk in chunks] if message.role == "assistant" else chunks


def render_system(systems: Sequence[Message]) -> bytes | None:
    """One system message."""
    return render_message(systems[0])[0] if len(systems) == 1 else messages.render_system(systems)


def _modern(message: Message) -> Message:
    """The message without what only OpenAI knows: the developer's role and calls by name become their successors."""
    raw = message.raw
    if raw is None or message.format not in DIALECTS or not any(word in raw for word in LEGACY):
        return message
    fields = decode(fields_decoder, raw)
    role = bytes(fields["role"])
    if role == b'"developer"':
        # Only the role is another one: where it stands in the text is not worth keeping.
        fields["role"] = Raw(b'"system"')
        return msgspec.structs.replace(message, raw=encode(fields))
    if role == b'"function"' or bytes(fields.get("function_call", Raw(b"null"))) != b"null":
        return msgspec.structs.replace(message, edited=True)
    return message


def _reasoned(chunk: bytes, message: Message) -> bytes:
    if message.format in DIALECTS and any(isinstance(block, Reasoning) for block in message.blocks):
        return chunk
    fields = {key: value for key, value in decode(fields_decoder, chunk).items() if key not in REASONING_FIELDS}
    return encode({**fields, FIELD: NOTHING})


SPEC = msgspec.structs.replace(
    openai_chat.SPEC,
    name=DEEPSEEK,
    aliases=("kimi", "moonshot"),
    vendor="",
    rules=Rules(format=DEEPSEEK, result_media=False, bare_results=False),
    counts_thoughts=False,
    api=None,
    routes=(),
    sdk_modules=(),
    sdk_error="",
)


class DeepSeek:
    """The format of `POST /chat/completions` with `reasoning_content`, for models that want it back."""

    name = DEEPSEEK
    spec = SPEC
    rules = SPEC.rules

    @staticmethod
    def read_message(raw: bytes, where: str) -> Message:
        """One message."""
        return _own(messages.read_message(raw, where))

    @staticmethod
    def read_body(body: bytes) -> Request:
        """A request body or a list of messages."""
        found = messages.read_body(body)
        tools = tuple(msgspec.structs.replace(tool, format=DEEPSEEK) for tool in found.tools)
        return msgspec.structs.replace(found, format=DEEPSEEK, messages=tuple(map(_own, found.messages)), tools=tools)

    @staticmethod
    def read_reply(body: bytes) -> Reply:
        """A response: its first choice."""
        found = messages.read_reply(body)
        return msgspec.structs.replace(found, message=_own(found.message))

    @staticmethod
    def read_system(value: Any) -> Message:
        """A system prompt: text, or a list of text parts."""
        return value if isinstance(value, Message) else _own(messages.read_system(value))

    @staticmethod
    def read_tool(raw: bytes, where: str) -> Tool:
        """A tool definition."""
        return msgspec.structs.replace(messages.read_tool(raw, where), format=DEEPSEEK)

    render_message = staticmethod(render_message)
    render_system = staticmethod(render_system)
    render_tool = staticmethod(messages.render_tool)
    render_body = staticmethod(messages.render_body)
    validate = staticmethod(validate)


def _own(message: Message) -> Message:
    return msgspec.structs.replace(message, format=DEEPSEEK)
