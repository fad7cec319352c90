"""The lines of a Claude Code file: what each of them says, whatever newer versions write beside it."""

from __future__ import annotations

from typing import Any

import msgspec

from windowsill.errors import FormatError
from windowsill.formats.transcripts.claude_tree import Said
from windowsill.formats.transcripts.transcript import Notes
from windowsill.formats.wire import any_decoder, decode

SPEAKERS = frozenset({"user", "assistant"})

SYNTHETIC = "<synthetic>"
"""The model of answers that the agent wrote itself, such as errors of the API."""

BOUNDARY = "compact_boundary"

QUEUED = "queued_command"
"""A prompt that was typed while the model worked: an attachment, and seldom a line of the user."""


class Written(msgspec.Struct, rename="camel", kw_only=True):
    """The fields of a line that say what it is and where it belongs."""

    type: str | None = None
    subtype: str | None = None
    uuid: str | None = None
    parent_uuid: str | msgspec.UnsetType | None = msgspec.UNSET
    """`None` begins a conversation; what is printed for a program, rather than kept in a file, has no parents."""
    logical_parent_uuid: str | None = None
    is_sidechain: bool | None = None
    is_compact_summary: bool | None = None
    is_api_error_message: bool | None = None
    agent_id: str | None = None
    parent_tool_use_id: str | None = msgspec.field(default=None, name="parent_tool_use_id")
    """The call that started the sub-agent, in what is printed for a program."""
    session_id: str | None = None
    printed_session: str | None = msgspec.field(default=None, name="session_id")
    timestamp: str | float | None = None
    message: msgspec.Raw = msgspec.Raw(b"null")
    attachment: msgspec.Raw = msgspec.Raw(b"null")
    compact_metadata: msgspec.Raw = msgspec.Raw(b"null")

    @property
    def starts_over(self) -> bool:
        """Whether the agent compacted here."""
        return self.subtype == BOUNDARY or bool(self.is_compact_summary)

    @property
    def is_loose(self) -> bool:
        """Whether it stands in no chain: earlier versions wrote attachments so."""
        return self.type not in SPEAKERS and self.uuid is None and not self.parent_uuid

    @property
    def agent(self) -> str | None:
        """The sub-agent that says it, where the line names one."""
        return (self.agent_id if self.is_sidechain else None) or self.parent_tool_use_id


class Preserved(msgspec.Struct, frozen=True):
    """The lines that a compaction kept after its summary: all of them, or the first and the last."""

    uuids: tuple[str, ...] = ()
    head: str | None = None
    tail: str | None = None


class _Block(msgspec.Struct):
    type: str = ""
    tool_use_id: str | None = None


class _Attachment(msgspec.Struct):
    type: str = ""
    prompt: msgspec.Raw = msgspec.Raw(b"null")


line_decoder = msgspec.json.Decoder(Written)
_said = msgspec.json.Decoder(Said)
_block = msgspec.json.Decoder(_Block)
_attachment = msgspec.json.Decoder(_Attachment)


def said(line: Written, number: int, notes: Notes) -> Said | None:
    """What a line says; `None`, and a note, when it is no part of the conversation."""
    if line.type not in SPEAKERS:
        queued = _queued(line)
        if queued is None:
            notes.skip(line.type or "untyped")
        return queued
    try:
        found = decode(_said, line.message)
    except FormatError as error:
        notes.trouble(number, f"message: {error.what}")
        return None
    found.role = found.role or line.type or ""
    if found.role not in SPEAKERS:
        notes.trouble(number, f"message: the role {found.role!r} is none of a conversation")
        return None
    if line.is_api_error_message or found.model == SYNTHETIC:
        notes.skip("synthetic")
        return None
    return found


def _queued(line: Written) -> Said | None:
    if line.type != "attachment":
        return None
    try:
        attached = _attachment.decode(line.attachment)
        found = _said.decode(b'{"role":"user","content":' + bytes(attached.prompt) + b"}")
    except msgspec.ValidationError:
        return None
    return found if attached.type == QUEUED and found.content else None


def results(found: Said) -> tuple[str, ...]:
    """The calls a message answers; nothing when it says anything else."""
    if found.role != "user" or isinstance(found.content, str):
        return ()
    try:
        blocks = [_block.decode(block) for block in found.content]
    except msgspec.ValidationError:
        return ()
    ids = [block.tool_use_id for block in blocks if block.type == "tool_result" and block.tool_use_id is not None]
    return tuple(ids) if len(ids) == len(blocks) else ()


def preserved(line: Written) -> Preserved | None:
    """What a compaction kept; `None` where it says nothing of it."""
    told = any_decoder.decode(line.compact_metadata)
    messages, segment = (_inner(told, key) for key in ("preservedMessages", "preservedSegment"))
    uuids = messages.get("uuids")
    if isinstance(uuids, list) and uuids:
        return Preserved(uuids=tuple(each for each in uuids if isinstance(each, str)))
    head, tail = segment.get("headUuid"), segment.get("tailUuid")
    return Preserved(head=head, tail=tail) if isinstance(head, str) and isinstance(tail, str) else None


def _inner(value: Any, key: str) -> dict[str, Any]:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}
