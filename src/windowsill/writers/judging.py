"""Decides whether an answer can be used: how it ended, what it says, how large it is, and in which language."""

from __future__ import annotations

from typing import Any

import msgspec

from windowsill import formats
from windowsill.errors import FormatError
from windowsill.history.folds import Brief
from windowsill.history.voice import own_words
from windowsill.messages import Message, Reply, Unknown, Usage
from windowsill.writers import Material
from windowsill.writers.errors import UnusableError, note
from windowsill.writers.objects import state
from windowsill.writers.parsing import Parsed, compact, summary
from windowsill.writers.scripts import script_of


class Judged(msgspec.Struct, frozen=True):
    """A text that can be used; `state` is the object it spells, where one was asked for."""

    text: str
    notes: tuple[str, ...] = ()
    state: dict[str, Any] | None = None


class Said(msgspec.Struct, frozen=True):
    """The words of an answer that ended as it should, and what they cost."""

    text: str
    usage: Usage | None = None


def said(format: str, body: bytes) -> Said:
    """The words of a provider's response; `UnusableError` when it is anything else than a whole text."""
    try:
        reply = formats.get(format).read_reply(body)
    except FormatError:
        if _blocked(body):
            raise UnusableError("refusal", "the provider blocked the request", remedy="use another model") from None
        what = "the answer is not in the provider's format"
        raise UnusableError("unreadable", what, remedy="check the address") from None
    try:
        return Said(_words(reply), reply.usage)
    except UnusableError as fault:
        fault.usage = reply.usage
        raise


def _words(reply: Reply) -> str:
    messages = (reply.message, *reply.more)
    reason = formats.stop_kind(reply.stop_reason)
    if reason == "refused" or any(_declines(message) for message in messages):
        raise UnusableError("refusal", "the model refused", remedy="use another model for summaries")
    if reason in {"length", "unfinished"}:
        raise UnusableError("truncated", "the answer was cut off", remedy="give more room, or a model that writes less")
    if any(message.calls for message in messages):
        raise UnusableError("tool-calls", "the model called tools in the place of answering", remedy="ask again")
    return "\n".join(message.text for message in messages if message.text)


def _declines(message: Message) -> bool:
    return any(isinstance(block, Unknown) and block.type == "refusal" for block in message.blocks)


def _blocked(body: bytes) -> bool:
    """Whether Gemini gave no answer because of the question."""
    try:
        return bool((msgspec.json.decode(body, type=_Blocked).promptFeedback or {}).get("blockReason"))
    except (msgspec.DecodeError, RecursionError):
        return False


class _Blocked(msgspec.Struct):
    promptFeedback: dict[str, Any] | None = None  # noqa: N815 Google's spelling


def judge(text: str, brief: Brief, material: Material, *, tags: bool) -> Judged:
    """What can be used of an answer; `tags` says whether a summary has to stand between its tags."""
    value: dict[str, Any] | None = None
    if brief.style == "state":
        value, parsed = state(text, brief.schema)
    else:
        parsed = compact(text) if brief.style == "compact" else summary(text, tags=tags)
    _demand_size(parsed, brief, material)
    return Judged(parsed.text, (*parsed.notes, *_language(parsed, brief, material)), value)


def _demand_size(parsed: Parsed, brief: Brief, material: Material) -> None:
    size = material.count(parsed.text)
    if size >= material.tokens:
        what = f"the answer has {size:,} tokens, what it replaces {material.tokens:,}"
        raise UnusableError("larger", what, remedy="fold more at a time")
    if brief.room and size > brief.room:
        what = f"the answer has {size:,} tokens, there is room for {brief.room:,}"
        raise UnusableError("over-room", what, remedy="give more room")


def _language(parsed: Parsed, brief: Brief, material: Material) -> tuple[str, ...]:
    if brief.style == "state":
        return ()
    wanted = script_of(own_words(message) for message in material.messages)
    found = script_of([parsed.text])
    if not wanted or not found or wanted == found:
        return ()
    return (note("", "language", f"the answer is in {found} script, the user writes {wanted}"),)
