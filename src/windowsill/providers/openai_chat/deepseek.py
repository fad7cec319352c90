"""OpenAI Chat Completions as DeepSeek and Kimi speak it: what the model thought stands beside what it said.

Every message of the assistant carries reasoning back. Whether one does depends on that message alone, never on what
follows: what was sent once is sent the same way in every later request, so prompt caches stay warm. Models that want it
only within a turn ignore the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from windowsill.messages import Message, Reasoning
from windowsill.providers.base import Problem
from windowsill.providers.openai_chat import DEEPSEEK, DIALECTS, REASONING_FIELDS, rules
from windowsill.providers.openai_chat import SPEC as CHAT
from windowsill.providers.openai_chat.messages import OpenAI, render_chat
from windowsill.providers.wire import NULL, decode, encode, fields_decoder

SPEC = msgspec.structs.replace(
    CHAT,
    name=DEEPSEEK,
    aliases=("kimi", "moonshot"),
    vendor="",
    rules=msgspec.structs.replace(CHAT.rules, format=DEEPSEEK),
    plain_reasoning=False,
    api=None,
    routes=(),
    sdk_modules=(),
    sdk_error="",
)

NOTHING = " "
"""Stands for reasoning that is not there: the models refuse a message without any, and to Kimi empty text is none."""

LEGACY = (b'"developer"', b'"function"', b'"function_call"')
"""Roles and fields that only OpenAI knows; without these words a message has none of them."""

ROLES = "assistant, system, tool, user"

_LIST = re.compile(rb'"content"\s*:\s*\[')


class _Part(msgspec.Struct, gc=False):
    type: str | None = None
    text: str | None = None


_parts = msgspec.json.Decoder(list[_Part])

_REMEDY = "send reasoning_content back as it came; where there was none, a space"


class DeepSeek(OpenAI):
    """The format of `POST /chat/completions` with `reasoning_content`, for models that want it back."""

    spec = SPEC

    def render_message(self, message: Message) -> list[bytes]:
        """Render a message as these models take it."""
        chunks = [_with_plain_text(chunk) for chunk in render_chat(_without_legacy(message))]
        return [_with_reasoning(chunk, message) for chunk in chunks] if message.role == "assistant" else chunks

    def check_messages(self, messages: Any, where: str, body: Mapping[str, Any]) -> Iterator[Problem]:
        """Find what is wrong with the messages, beyond what OpenAI refuses."""
        yield from rules.check_messages(messages, where, body)
        if isinstance(messages, list):
            yield from _check_roles(messages, where)
            thinking = body.get("thinking")
            if not (isinstance(thinking, dict) and thinking.get("type") == "disabled"):
                # DeepSeek from version 4 on asks for it in messages without calls too, wherever there are tools.
                every = bool(body.get("tools")) and "deepseek-v4" in str(body.get("model"))
                yield from _check_reasoning(messages, where, every=every)


def _without_legacy(message: Message) -> Message:
    """Return the message without what only OpenAI knows: the developer's role, and calls by name."""
    raw = message.raw
    if raw is None or message.format not in DIALECTS or not any(word in raw for word in LEGACY):
        return message
    fields = decode(fields_decoder, raw)
    role = bytes(fields["role"])
    if role == b'"developer"':
        fields["role"] = Raw(b'"system"')
        return msgspec.structs.replace(message, raw=encode(fields))
    if role == b'"function"' or bytes(fields.get("function_call", Raw(b"null"))) != b"null":
        return msgspec.structs.replace(message, edited=True)
    return message


def _with_plain_text(chunk: bytes) -> bytes:
    """Return the message with text for its content where its parts are nothing else: DeepSeek takes no list."""
    if not _LIST.search(chunk):
        return chunk
    fields = decode(fields_decoder, chunk)
    if bytes(fields.get("content", NULL))[:1] != b"[":
        return chunk
    parts = decode(_parts, fields["content"])
    if any(part.type != "text" for part in parts):
        return chunk
    return encode({**fields, "content": "\n\n".join(part.text or "" for part in parts)})


def _with_reasoning(chunk: bytes, message: Message) -> bytes:
    if message.format in DIALECTS and any(isinstance(block, Reasoning) for block in message.blocks):
        return chunk
    fields = {key: value for key, value in decode(fields_decoder, chunk).items() if key not in REASONING_FIELDS}
    return encode({**fields, "reasoning_content": NOTHING})


def _check_roles(messages: Sequence[Any], where: str) -> Iterator[Problem]:
    for index, message in enumerate(messages):
        fields = message if isinstance(message, dict) else {}
        role, place = fields.get("role"), f"{where}[{index}]"
        if role in {"developer", "function"}:
            yield Problem("role", place, f"role {role!r}", f"use one of {ROLES}")
        elif fields.get("function_call"):
            yield Problem("function-call", place, "function_call, which only OpenAI knows", "use tool_calls")


def _check_reasoning(messages: Sequence[Any], where: str, *, every: bool) -> Iterator[Problem]:
    for index, message in enumerate(messages):
        if not isinstance(message, dict) or message.get("role") != "assistant":
            continue
        if any(message.get(field) for field in REASONING_FIELDS):
            continue
        place = f"{where}[{index}]"
        if message.get("tool_calls"):
            yield Problem("calls-carry-reasoning", place, "calls without the reasoning behind them", _REMEDY)
        elif every:
            yield Problem("reasoning-is-sent-back", place, "no reasoning_content, beside tools", _REMEDY)
