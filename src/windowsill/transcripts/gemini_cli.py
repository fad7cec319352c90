"""Gemini CLI chats (`~/.gemini/tmp/*/chats/session-*`) and checkpoints, converted to OpenAI's chat form.

A chat is one JSON object, or lines of changes to one: a message of the same id replaces the one before, `$set` sets
fields, `$rewindTo` removes a message and what follows. A checkpoint is a list of contents as the API takes them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from windowsill.messages import Block, Image, Text, ToolResult, ToolUse
from windowsill.providers.wire import encode
from windowsill.transcripts.base import (
    Conversation,
    Line,
    Notes,
    Reader,
    RecordedSession,
    Turn,
    decode_objects,
    text_or_none,
    timestamp,
    usage_of,
)

SET, REWIND = "$set", "$rewindTo"
_ROLES = frozenset({"user", "model"})


def _is_head(value: Mapping[str, object]) -> bool:
    return "sessionId" in value and ("projectHash" in value or "startTime" in value)


class _Chat:
    def __init__(self, notes: Notes) -> None:
        self.id: str | None = None
        self._notes = notes
        self._messages: dict[str, Mapping[str, Any]] = {}
        self._left: list[tuple[bool, list[Mapping[str, Any]]]] = []
        """The messages that were left behind, each time by a compaction (true) or by going back."""

    def take(self, value: Mapping[str, Any], number: int) -> None:
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
        self.id = self.id or text_or_none(fields.get("sessionId"))
        if not isinstance(fields.get("messages"), list):
            return
        items = [each for each in fields["messages"] if isinstance(each, dict)]
        messages: dict[str, Mapping[str, Any]] = {str(each.get("id", index)): each for index, each in enumerate(items)}
        if self._messages and list(messages)[: len(self._messages)] != list(self._messages):
            self._left.append((True, list(self._messages.values())))
        self._messages = messages

    def _rewind(self, id: str) -> None:
        ids = list(self._messages)
        # The CLI removes everything when it does not find the message.
        length = ids.index(id) if id in self._messages else 0
        self._left.append((False, list(self._messages.values())))
        self._messages = {each: self._messages[each] for each in ids[:length]}

    def sessions(self, name: str) -> list[RecordedSession]:
        conversation = Conversation()
        current = list(self._messages.values())
        stretches = [*self._left, (False, current)]
        for (compacted, messages), (_, after) in itertools.pairwise(stretches):
            conversation.turns = _turns(messages, Notes())
            if compacted:
                conversation.begin_again([])
            else:
                conversation.rewind(len(_turns(messages[: _shared(messages, after)], Notes())))
        conversation.turns = _turns(current, self._notes)
        return conversation.sessions(self.id or name)


def _turns(messages: Sequence[Mapping[str, Any]], notes: Notes) -> list[Turn]:
    return [turn for message in messages for turn in _message(message, notes)]


def _shared(one: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]]) -> int:
    """Count the messages that both begin with."""
    pairs = zip(one, other, strict=False)
    return next((index for index, (a, b) in enumerate(pairs) if a.get("id") != b.get("id")), min(len(one), len(other)))


def _message(message: Mapping[str, Any], notes: Notes) -> Iterator[Turn]:
    """Read one record of a chat: its message, then the results of its calls."""
    kind, at = message.get("type"), timestamp(message.get("timestamp"))
    content = _blocks(message.get("content"), notes)
    if kind == "user":
        if content:
            yield Turn(role="user", blocks=content, at=at, prompt=True)
        return
    if kind != "gemini":
        notes.skip(str(kind))
        return
    thoughts = message.get("thoughts")
    if isinstance(thoughts, list) and thoughts:
        notes.skip("thought", len(thoughts))
    calls = [each for each in message.get("toolCalls") or () if isinstance(each, dict)]
    uses = [_use(each, str(index)) for index, each in enumerate(calls)]
    tokens = message.get("tokens")
    usage = None
    if isinstance(tokens, dict):
        usage = usage_of(tokens, prompt=["input", "tool"], answer=["output", "thoughts"], cached="cached")
    if content or uses or usage is not None:
        yield Turn(
            role="assistant",
            blocks=[*content, *uses],
            at=at,
            usage=usage,
            key=str(message["id"]) if "id" in message else None,
            model=text_or_none(message.get("model")),
        )
    results: list[Block] = [
        _result(use.id, each.get("result"), notes, failed=each.get("status") == "error")
        for use, each in zip(uses, calls, strict=True)
        if each.get("result") is not None
    ]
    if results:
        ends = [ended for each in calls if (ended := timestamp(each.get("timestamp"))) is not None]
        yield Turn(role="user", blocks=results, at=max(ends, default=at))


def _checkpoint(contents: Sequence[Mapping[str, Any]], notes: Notes) -> list[Turn]:
    """Read a list of contents as the API takes them; results answer the calls of the same name, in their order."""
    turns: list[Turn] = []
    waiting: list[ToolUse] = []
    for place, content in enumerate(contents):
        blocks: list[Block] = []
        for index, part in enumerate(content["parts"]):
            fields = part if isinstance(part, dict) else {}
            if isinstance(call := fields.get("functionCall"), dict):
                waiting.append(_use(call, f"{place}-{index}"))
                blocks.append(waiting[-1])
            elif isinstance(response := fields.get("functionResponse"), dict):
                blocks.append(_result(_answered(response, waiting), [part], notes, failed=False))
            else:
                blocks += _blocks([part], notes)
        if blocks:
            model = content["role"] == "model"
            turns.append(Turn(role="assistant" if model else "user", blocks=blocks, prompt=not model))
    return turns


def _answered(response: Mapping[str, Any], waiting: list[ToolUse]) -> str:
    name, id = response.get("name"), response.get("id")
    found = next((use for use in waiting if use.id == id or (id is None and use.name == name)), None)
    if found is None:
        return str(id or name or "unknown")
    waiting.remove(found)
    return found.id


def _blocks(content: Any, notes: Notes) -> list[Block]:
    """Read the text and the pictures of a content; other parts are counted."""
    if isinstance(content, str):
        return [Text(text=content)] if content else []
    found: list[Block] = []
    for part in content if isinstance(content, list) else [content]:
        fields = {"text": part} if isinstance(part, str) else part if isinstance(part, dict) else {}
        inline = fields.get("inlineData")
        if fields.get("thought"):
            notes.skip("thought")
        elif isinstance(fields.get("text"), str):
            found.append(Text(text=fields["text"]))
        elif isinstance(inline, dict) and str(inline.get("mimeType")).startswith("image/"):
            found.append(Image(media_type=str(inline["mimeType"]), data=str(inline.get("data", ""))))
        elif part is not None:
            notes.skip(next(iter(fields), "untyped"))
    return found


def _use(call: Mapping[str, Any], number: str) -> ToolUse:
    name, args = text_or_none(call.get("name")) or "unknown", call.get("args")
    return ToolUse(
        id=text_or_none(call.get("id")) or f"{name}-{number}",
        name=name,
        arguments=encode(args if isinstance(args, dict) else {}).decode(),
    )


def _result(id: str, result: Any, notes: Notes, *, failed: bool) -> ToolResult:
    found: list[Block] = []
    for part in result if isinstance(result, list) else [result]:
        response = part.get("functionResponse") if isinstance(part, dict) else None
        if not isinstance(response, dict):
            found += _blocks(part, notes)
            continue
        output = response.get("response")
        failed = failed or (isinstance(output, dict) and "error" in output)
        found.append(Text(text=_text_of(output)))
        found += _blocks(response.get("parts") or [], notes)
    return ToolResult(tool_use_id=id, content=tuple(found), is_error=failed)


def _text_of(output: Any) -> str:
    values = list(output.values()) if isinstance(output, dict) else []
    return values[0] if len(values) == 1 and isinstance(values[0], str) else encode(output).decode()


def read_document(value: Any, name: str, notes: Notes) -> Sequence[RecordedSession] | None:
    """Read the sessions of a chat or a checkpoint that is one JSON document; `None` if it is neither."""
    if isinstance(value, dict) and _is_head(value):
        chat = _Chat(notes)
        chat.take(value, 0)
        return chat.sessions(name)
    contents = value.get("history") if isinstance(value, dict) else value
    if not isinstance(contents, list) or not contents:
        return None
    for each in contents:
        if not isinstance(each, dict) or not isinstance(each.get("parts"), list) or each.get("role") not in _ROLES:
            return None
    conversation = Conversation()
    conversation.turns = _checkpoint(contents, notes)
    return conversation.sessions(name)


def _read(lines: Iterable[Line], name: str, notes: Notes) -> Sequence[RecordedSession]:
    chat = _Chat(notes)
    for line, value in decode_objects(lines, notes):
        chat.take(value, line.number)
    return chat.sessions(name)


READER = Reader(agent="gemini-cli", knows=lambda line: _is_head(line) or SET in line or REWIND in line, read=_read)
