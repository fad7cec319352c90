"""Kept evidence: of the values a later tool call needed, how many still stood in the request.

A value is needed when it is a string in the arguments of a recorded call and stands literally in an earlier message. It
is kept when it stands in the request that produced the call. Values that only tool outputs had shown are counted apart:
nobody else could have told the model. So are the lines that an edit quotes from a file to say where it applies: to
quote them right the model must see them, their names alone do not help.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from windowsill.formats import Format
from windowsill.messages import Block, Document, Message, Reasoning, Text, ToolResult, ToolUse

SHORTEST = 4
LONGEST = 200
"""Shorter values stand everywhere by chance; longer ones are texts that the model wrote itself."""

QUOTES = frozenset({"old_string", "old_str", "old_text", "oldText", "oldString", "search", "find", "original"})
"""Arguments in which an edit says, word for word, what it replaces."""

PATCHES = frozenset({"patch", "diff"})
"""Arguments that hold a patch."""

BETWEEN = "\n"


class Kept(msgspec.Struct):
    """How many values were needed, and how many of them stood in the request."""

    needed: int = 0
    kept: int = 0
    needed_from_outputs: int = 0
    """Values that stood in tool outputs and nowhere else,"""
    kept_from_outputs: int = 0
    """and those of them that stood in the request."""
    needed_lines: int = 0
    """Lines that edits quoted and that were seen before,"""
    kept_lines: int = 0
    """and those of them that stood in the request."""
    reachable: int = 0
    """Values that did not stand in the request, and that one search of the history shows."""

    def add(self, other: Kept) -> None:
        """Count the other's values too."""
        self.needed += other.needed
        self.kept += other.kept
        self.needed_from_outputs += other.needed_from_outputs
        self.kept_from_outputs += other.kept_from_outputs
        self.needed_lines += other.needed_lines
        self.kept_lines += other.kept_lines
        self.reachable += other.reachable


class _Body(msgspec.Struct, rename="camel"):
    """A request of any format: each has its own words for what was said, and for the system prompt."""

    messages: list[msgspec.Raw] = []
    input: list[msgspec.Raw] = []
    contents: list[msgspec.Raw] = []
    system: msgspec.Raw = msgspec.Raw(b"null")
    instructions: msgspec.Raw = msgspec.Raw(b"null")
    system_instruction: msgspec.Raw = msgspec.Raw(b"null")


_body = msgspec.json.Decoder(_Body)


class Evidence:
    """What one recording has shown so far."""

    def __init__(self, format: Format) -> None:
        self._format = format
        self._outputs: list[str] = []
        self._others: list[str] = []
        self._words: dict[bytes, str] = {}

    def show(self, message: Message) -> None:
        """Take in a message of the recorded history."""
        outputs, others = words(message)
        if outputs:
            self._outputs.append(outputs)
        if others:
            self._others.append(others)

    def measure(self, answer: Message, body: bytes, reaches: Callable[[str], bool] = lambda _: False) -> Kept:
        """What the calls of an answer needed, and whether the request that led to it had it, or a search shows it."""
        found = Kept()
        values, lines = list(needed(answer)), list(quoted(answer))
        if not values and not lines:
            return found
        sent = self._sent(body)
        for value in values:
            told = _stands_in(value, self._others)
            if not told and not _stands_in(value, self._outputs):
                continue
            kept = value in sent
            found.needed += 1
            found.kept += kept
            found.reachable += not kept and reaches(value)
            found.needed_from_outputs += not told
            found.kept_from_outputs += kept and not told
        for line in lines:
            if _stands_in(line, self._outputs) or _stands_in(line, self._others):
                found.needed_lines += 1
                found.kept_lines += line in sent
        return found

    def _sent(self, body: bytes) -> str:
        """All words of a request."""
        parts = _body.decode(body)
        known, self._words = self._words, {}
        for raw in map(bytes, (*parts.messages, *parts.input, *parts.contents)):
            # A request mostly repeats the one before: only what is new is read.
            self._words[raw] = known.get(raw) or BETWEEN.join(words(self._format.read_message(raw, "")))
        prompts = (parts.system, parts.instructions, parts.system_instruction)
        told = [words for prompt in prompts for words in strings(msgspec.json.decode(prompt))]
        return BETWEEN.join([*told, *self._words.values()])


def needed(answer: Message) -> Iterator[str]:
    """The values in the arguments of an answer's calls that it may have taken from the request."""
    for call in answer.calls:
        for value in strings(call.input):
            if SHORTEST <= len(value) <= LONGEST and any(character.isalnum() for character in value):
                yield value


def quoted(answer: Message) -> Iterator[str]:
    """The lines that the edits among an answer's calls quote from what they change."""
    for call in answer.calls:
        for key, value in call.input.items():
            if not isinstance(value, str):
                continue
            if key in QUOTES:
                lines = value.splitlines()
            elif key in PATCHES:
                # What a patch takes away or shows around it was there; what it adds was not.
                lines = [line[1:] for line in value.splitlines() if line[:1] in {"-", " "} and line[:3] != "---"]
            else:
                continue
            for line in lines:
                if len(line.strip()) >= SHORTEST and any(character.isalnum() for character in line):
                    yield line.strip()


def words(message: Message) -> tuple[str, str]:
    """The words of a message: those of tool outputs, and all others."""
    outputs: list[str] = []
    others: list[str] = []
    for block in message.blocks:
        (outputs if isinstance(block, ToolResult) else others).extend(_texts(block))
    return BETWEEN.join(outputs), BETWEEN.join(others)


def _texts(block: Block) -> Iterator[str]:
    match block:
        case Text() | Reasoning():
            yield block.text
        case ToolUse():
            yield from strings(block.input)
        case ToolResult():
            for inner in block.content:
                yield from _texts(inner)
        case Document():
            yield block.text or ""
        case _ if block.raw is not None:
            yield from strings(_decoded(block.raw))


def _decoded(raw: bytes) -> Any:
    """What a block of an unknown kind holds; nothing where it is nested too deeply to look into."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None


def strings(value: Any) -> Iterator[str]:
    """Every string in a JSON value, in order, keys left out."""
    # A stack of our own: values may be nested as deeply as the JSON reader allows.
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting.extend(reversed(value.values()))
        elif isinstance(value, list):
            waiting.extend(reversed(value))


def _stands_in(value: str, texts: list[str]) -> bool:
    # The newest first: most values were shown a moment ago.
    return any(value in text for text in reversed(texts))
