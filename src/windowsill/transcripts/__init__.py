"""Transcripts of known agents: bytes in, recorded sessions out. They are recognised by content, not by file name.

Claude Code sessions, Codex rollouts, Gemini CLI chats and checkpoints, logs of OpenAI and Anthropic requests, and plain
messages line by line.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from windowsill.providers.wire import BOM, any_decoder
from windowsill.transcripts import claude_code, codex, gemini_cli, request_logs
from windowsill.transcripts.base import (
    Charge,
    Notes,
    RecordedSession,
    Transcript,
    Trouble,
    number_lines,
    without_half_characters,
)

__all__ = ["Charge", "RecordedSession", "Transcript", "Trouble", "read", "read_lines", "recognise"]

READERS = (claude_code.READER, codex.READER, gemini_cli.READER, request_logs.READER, request_logs.MESSAGES_READER)

FIRST_LINES = 50
"""Lines looked at before a file counts as unknown: some agents write notes before the first line that says enough."""


def recognise(lines: Iterable[bytes]) -> str | None:
    """Name the agent whose transcript these lines are; `None` if the first lines do not say."""
    for line in itertools.islice(number_lines(lines), FIRST_LINES):
        value = _value(line.raw)
        if isinstance(value, dict):
            found = next((reader.agent for reader in READERS if reader.knows(value)), None)
            if found is not None or isinstance(value.get("messages"), list):
                return found
    return None


def read_lines(agent: str, lines: Iterable[bytes], name: str) -> Transcript:
    """Read the sessions of a transcript; `name` is the id of what states none."""
    notes = Notes()
    reader = next(reader for reader in READERS if reader.agent == agent)
    return _transcript(agent, reader.read(number_lines(lines), name, notes), notes)


def read(data: bytes, name: str) -> Transcript | None:
    """Read the sessions of a whole file; `None` if it is of no known agent."""
    body = data.removeprefix(BOM).strip()
    document = _value(without_half_characters(body))
    notes = Notes()
    sessions = gemini_cli.read_document(document, name, notes)
    if sessions is not None:
        return _transcript(gemini_cli.READER.agent, sessions, notes)
    if isinstance(document, dict) and ("messages" in document or "input" in document):
        return None
    lines = body.split(b"\n") if document is None else [body]
    agent = recognise(lines)
    return None if agent is None else read_lines(agent, lines, name)


def _transcript(agent: str, sessions: Sequence[RecordedSession], notes: Notes) -> Transcript:
    return Transcript(
        agent=agent,
        sessions=tuple(each for each in sessions if each.messages),
        troubles=tuple(notes.troubles),
        skipped=dict(sorted(notes.skipped.items())),
    )


def _value(raw: bytes) -> Any:
    try:
        return any_decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
