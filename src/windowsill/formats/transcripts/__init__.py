"""Transcripts of known agents: bytes in, recorded sessions out. They are known by their content, not by their name.

Claude Code sessions, Codex rollouts, Gemini CLI chats and checkpoints, logs of OpenAI and Anthropic requests (HAR files
too), and plain messages line by line.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from windowsill.formats.transcripts.charges import Charge
from windowsill.formats.transcripts.claude_code import READER as CLAUDE_CODE
from windowsill.formats.transcripts.codex import READER as CODEX
from windowsill.formats.transcripts.gemini import READER as GEMINI
from windowsill.formats.transcripts.gemini import read_document
from windowsill.formats.transcripts.lines import numbered, whole
from windowsill.formats.transcripts.plain import READER as PLAIN
from windowsill.formats.transcripts.requests import READER as REQUESTS
from windowsill.formats.transcripts.requests import entries
from windowsill.formats.transcripts.transcript import Notes, Reader, Recorded, Transcript, Trouble
from windowsill.formats.wire import BOM, any_decoder

__all__ = ["Charge", "Recorded", "Transcript", "Trouble", "read", "read_lines", "recognise"]

READERS: tuple[Reader, ...] = (CLAUDE_CODE, CODEX, GEMINI, REQUESTS, PLAIN)

TELLING_LINES = 50
"""Lines looked at before a file counts as unknown: some agents write notes before the first line that tells."""


def recognise(lines: Iterable[bytes]) -> str | None:
    """The agent whose transcript these lines are, from the first that tells; `None` when none does."""
    for line in itertools.islice(numbered(lines), TELLING_LINES):
        value = _value(line.raw)
        if isinstance(value, dict):
            found = next((reader.agent for reader in READERS if reader.knows(value)), None)
            if found is not None or isinstance(value.get("messages"), list):
                return found
    return None


def read_lines(agent: str, lines: Iterable[bytes], name: str) -> Transcript:
    """The sessions of a transcript; `name` is the id of what says none."""
    notes = Notes()
    reader = next(reader for reader in READERS if reader.agent == agent)
    return _transcript(agent, reader.read(numbered(lines), name, notes), notes)


def read(data: bytes, name: str) -> Transcript | None:
    """The sessions of a whole file; `None` when it is of no known agent."""
    body = data.removeprefix(BOM).strip()
    document = _value(whole(body))
    notes = Notes()
    sessions = read_document(document, name, notes)
    if sessions is not None:
        return _transcript(GEMINI.agent, sessions, notes)
    logged = entries(document)
    if logged is not None:
        return read_lines(REQUESTS.agent, logged, name)
    if isinstance(document, dict) and ("messages" in document or "input" in document):
        return None
    lines = body.split(b"\n") if document is None else [body]
    agent = recognise(lines)
    return None if agent is None else read_lines(agent, lines, name)


def _transcript(agent: str, sessions: Sequence[Recorded], notes: Notes) -> Transcript:
    told = tuple(each for each in sessions if each.messages)
    return Transcript(
        agent=agent, sessions=told, troubles=tuple(notes.troubles), skipped=dict(sorted(notes.skipped.items()))
    )


def _value(raw: bytes) -> Any:
    try:
        return any_decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
