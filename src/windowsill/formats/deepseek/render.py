"""Renders for models that want back what they thought: every message of the assistant carries it.

Whether a message carries reasoning depends on that message alone, never on what follows: what was sent once is sent the
same way in every later request, so prompt caches stay warm. Models that want it only within a turn ignore the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Raw

from windowsill.formats.openai import render
from windowsill.formats.openai.read import DIALECTS, REASONING_FIELDS
from windowsill.formats.wire import decode, encode, fields_decoder
from windowsill.messages import Message, Reasoning

FIELD = "reasoning_content"

NOTHING = " "
"""Stands for reasoning that is not there: the models refuse a message without any, and to Kimi empty text is none."""

LEGACY = (b'"developer"', b'"function"', b'"function_call"')
"""Roles and fields that only OpenAI knows; without these words a message has none of them."""


def render_message(message: Message) -> list[bytes]:
    """The message as these models take it."""
    chunks = render.render_chat(_modern(message))
    return [_reasoned(chunk, message) for chunk in chunks] if message.role == "assistant" else chunks


def render_system(systems: Sequence[Message]) -> bytes | None:
    """One system message."""
    return render_message(systems[0])[0] if len(systems) == 1 else render.render_system(systems)


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
