"""A plain list of messages, one on each line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from windowsill.formats.transcripts.lines import objects
from windowsill.formats.transcripts.times import timestamp
from windowsill.formats.transcripts.transcript import Line, Notes, Reader, Recorded

AGENT = "messages"

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})

SAYING = frozenset({"content", "tool_calls", "function_call"})
"""Fields of which a message has at least one."""


def _knows(line: Mapping[str, object]) -> bool:
    return line.get("role") in ROLES and not SAYING.isdisjoint(line)


def _read(lines: Iterable[Line], name: str, notes: Notes) -> Sequence[Recorded]:
    messages: list[bytes] = []
    times: list[float | None] = []
    for line, value in objects(lines, notes):
        if _knows(value):
            messages.append(line.raw)
            times.append(timestamp(value.get("timestamp")))
        else:
            notes.trouble(line.number, "not a message: it has no role, or nothing to say")
    return [Recorded(id=name, format=None, messages=tuple(messages), times=tuple(times), named=False)]


READER = Reader(agent=AGENT, knows=_knows, read=_read)
