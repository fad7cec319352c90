"""Gemini CLI chats (`~/.gemini/tmp/*/chats/session-*`) and checkpoints, converted to OpenAI's chat form.

A chat is one JSON object, or lines of changes to one: a message of the same id replaces the one before, `$set` sets
fields, `$rewindTo` takes away a message and what follows. A checkpoint is a list of contents as the API takes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from windowsill.formats.transcripts import gemini_parts
from windowsill.formats.transcripts.chat import Course, Turn
from windowsill.formats.transcripts.lines import objects
from windowsill.formats.transcripts.transcript import Line, Notes, Reader, Recorded

AGENT = "gemini-cli"

SET, REWIND = "$set", "$rewindTo"


def _knows(line: Mapping[str, object]) -> bool:
    return _is_head(line) or SET in line or REWIND in line


def _is_head(value: Mapping[str, object]) -> bool:
    return "sessionId" in value and ("projectHash" in value or "startTime" in value)


class _Chat:
    """A chat, change by change."""

    def __init__(self, notes: Notes) -> None:
        self.id: str | None = None
        self._notes = notes
        self._messages: dict[str, Mapping[str, Any]] = {}
        self._stretches: list[tuple[bool, list[Mapping[str, Any]]]] = []
        """What was left behind: by a compaction, or by going back."""

    def take(self, value: Mapping[str, Any], number: int) -> None:
        """One more change."""
        if isinstance(value.get(REWIND), str):
            self._rewind(value[REWIND])
        elif isinstance(value.get(SET), dict):
            self._set(value[SET])
        elif _is_head(value):
            self._set(value)
        elif isinstance(value.get("id"), str) and "type" in value:
            self._messages[value["id"]] = value
        else:
            self._notes.trouble(number, "neither a message nor a change of one")

    def _set(self, fields: Mapping[str, Any]) -> None:
        if isinstance(fields.get("sessionId"), str):
            self.id = self.id or fields["sessionId"]
        if not isinstance(fields.get("messages"), list):
            return
        told = [each for each in fields["messages"] if isinstance(each, dict)]
        messages: dict[str, Mapping[str, Any]] = {str(each.get("id", index)): each for index, each in enumerate(told)}
        kept = list(messages)[: len(self._messages)]
        if self._messages and kept != list(self._messages):
            self._stretches.append((True, list(self._messages.values())))
        self._messages = messages

    def _rewind(self, id: str) -> None:
        ids = list(self._messages)
        # The CLI takes away everything when it does not find the message.
        length = ids.index(id) if id in self._messages else 0
        self._stretches.append((False, list(self._messages.values())))
        self._messages = {each: self._messages[each] for each in ids[:length]}

    def sessions(self, name: str) -> list[Recorded]:
        """All stretches, in the order they came to be."""
        course = Course()
        for index, (compacted, messages) in enumerate(self._stretches):
            course.turns = self._turns(messages)
            following = self._stretches[index + 1][1] if index + 1 < len(self._stretches) else self._messages.values()
            if compacted:
                course.begin_again([])
            else:
                shared = _shared(messages, list(following))
                course.rewind(len(self._turns(messages[:shared])))
        course.turns = self._turns(list(self._messages.values()), last=True)
        return course.sessions(self.id or name)

    def _turns(self, messages: Sequence[Mapping[str, Any]], *, last: bool = False) -> list[Turn]:
        notes = self._notes if last else Notes()
        return [turn for message in messages for turn in gemini_parts.turns(message, notes)]


def _shared(one: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]]) -> int:
    """How many messages both begin with."""
    pairs = zip(one, other, strict=False)
    return next((index for index, (a, b) in enumerate(pairs) if a.get("id") != b.get("id")), min(len(one), len(other)))


def read_document(value: Any, name: str, notes: Notes) -> Sequence[Recorded] | None:
    """The sessions of a chat or a checkpoint that is one JSON document; `None` when it is neither."""
    if isinstance(value, dict) and _is_head(value):
        chat = _Chat(notes)
        chat.take(value, 0)
        return chat.sessions(name)
    contents = value.get("history") if isinstance(value, dict) else value
    if not isinstance(contents, list) or not contents or not all(map(_is_content, contents)):
        return None
    course = Course()
    course.turns = gemini_parts.checkpoint(contents, notes)
    return course.sessions(name)


def _is_content(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("parts"), list) and value.get("role") in {"user", "model"}


def _read(lines: Iterable[Line], name: str, notes: Notes) -> Sequence[Recorded]:
    chat = _Chat(notes)
    for line, value in objects(lines, notes):
        chat.take(value, line.number)
    return chat.sessions(name)


READER = Reader(agent=AGENT, knows=_knows, read=_read)
