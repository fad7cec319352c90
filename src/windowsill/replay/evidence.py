"""Kept evidence: of the values that later tool calls needed, how many were still in the request.

A value is needed if it is a string in the arguments of a recorded call and occurs literally in an earlier message. It
is kept if it occurs in the request that produced the call. Values that only tool outputs had shown are counted apart:
nothing else could have told the model. So are the lines that an edit quotes from a file to say where it applies: to
quote them right the model must see them, their names alone do not help.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from windowsill.messages import Block, Document, Message, Reasoning, Text, ToolResult, ToolUse
from windowsill.providers import Format

SHORTEST = 4
LONGEST = 200
"""Shorter values occur everywhere by chance; longer ones are texts that the model wrote itself."""

QUOTES = frozenset({"old_string", "old_str", "old_text", "oldText", "oldString", "search", "find", "original"})
"""Arguments in which an edit quotes, word for word, what it replaces."""

PATCHES = frozenset({"patch", "diff"})
"""Arguments that hold a patch."""

BETWEEN = "\n"


class KeptEvidence(msgspec.Struct):
    """The number of values that calls needed, and of those among them that were in the request."""

    needed: int = 0
    kept: int = 0
    needed_from_outputs: int = 0
    """Values that occurred in tool outputs and nowhere else,"""
    kept_from_outputs: int = 0
    """and those of them that were in the request."""
    needed_lines: int = 0
    """Lines that edits quoted and that were seen before,"""
    kept_lines: int = 0
    """and those of them that were in the request."""
    reachable: int = 0
    """Values that were not in the request, and that one search of the history finds."""


class _Body(msgspec.Struct, rename="camel"):
    """A request of any format: each has its own fields for the messages and the system prompt."""

    messages: list[msgspec.Raw] = []
    input: list[msgspec.Raw] = []
    contents: list[msgspec.Raw] = []
    system: msgspec.Raw = msgspec.Raw(b"null")
    instructions: msgspec.Raw = msgspec.Raw(b"null")
    system_instruction: msgspec.Raw = msgspec.Raw(b"null")


_body_decoder = msgspec.json.Decoder(_Body)


class Evidence:
    """The texts that one recording has shown so far."""

    def __init__(self, format: Format) -> None:
        self._format = format
        self._outputs: list[str] = []
        self._others: list[str] = []
        self._texts: dict[bytes, str] = {}

    def show(self, message: Message) -> None:
        """Add a message of the recorded history."""
        outputs, others = texts_of(message)
        if outputs:
            self._outputs.append(outputs)
        if others:
            self._others.append(others)

    def measure(self, answer: Message, body: bytes, reaches: Callable[[str], bool] = lambda _: False) -> KeptEvidence:
        """Count what the calls of an answer needed, and what of it the request had or a search finds."""
        count = KeptEvidence()
        values, lines = list(needed_values(answer)), list(quoted_lines(answer))
        if not values and not lines:
            return count
        sent = self._text_of_request(body)
        for value in values:
            elsewhere = _occurs_in(value, self._others)
            if not elsewhere and not _occurs_in(value, self._outputs):
                continue
            kept = value in sent
            count.needed += 1
            count.kept += kept
            count.reachable += not kept and reaches(value)
            count.needed_from_outputs += not elsewhere
            count.kept_from_outputs += kept and not elsewhere
        for line in lines:
            if _occurs_in(line, self._outputs) or _occurs_in(line, self._others):
                count.needed_lines += 1
                count.kept_lines += line in sent
        return count

    def _text_of_request(self, body: bytes) -> str:
        parts = _body_decoder.decode(body)
        known, self._texts = self._texts, {}
        for raw in map(bytes, (*parts.messages, *parts.input, *parts.contents)):
            # A request mostly repeats the one before: only new messages are read.
            self._texts[raw] = known.get(raw) or BETWEEN.join(texts_of(self._format.read_message(raw, "")))
        prompts = (parts.system, parts.instructions, parts.system_instruction)
        system = [text for prompt in prompts for text in strings(msgspec.json.decode(prompt))]
        return BETWEEN.join([*system, *self._texts.values()])


def needed_values(answer: Message) -> Iterator[str]:
    """Find the values in the arguments of an answer's calls that it may have taken from the request."""
    for call in answer.calls:
        for value in strings(call.input):
            if SHORTEST <= len(value) <= LONGEST and any(map(str.isalnum, value)):
                yield value


def quoted_lines(answer: Message) -> Iterator[str]:
    """Find the lines that the edits among an answer's calls quote from what they change."""
    for call in answer.calls:
        for key, value in call.input.items():
            if not isinstance(value, str):
                continue
            lines: list[str] = []
            if key in QUOTES:
                lines = value.splitlines()
            elif key in PATCHES:
                # What a patch removes or shows as context was there before; what it adds was not.
                lines = [line[1:] for line in value.splitlines() if line[:1] in {"-", " "} and line[:3] != "---"]
            for line in map(str.strip, lines):
                if len(line) >= SHORTEST and any(map(str.isalnum, line)):
                    yield line


def texts_of(message: Message) -> tuple[str, str]:
    """Return the text of a message: that of tool outputs, and all other."""
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
            try:
                yield from strings(msgspec.json.decode(block.raw))
            except (msgspec.DecodeError, RecursionError):
                return  # A block of an unknown kind may be nested too deeply to look into.


def strings(value: Any) -> Iterator[str]:
    """Find every string in a JSON value, in order, keys left out."""
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


def _occurs_in(value: str, texts: list[str]) -> bool:
    # The newest first: most values were shown a moment ago.
    return any(value in text for text in reversed(texts))
