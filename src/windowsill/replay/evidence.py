"""Kept evidence: of the values and lines that later calls needed, how many were still in the request.

A *value* stands in the arguments of a recorded call: a number or a word of some length as it is, and of a longer text,
such as a command, the paths, names and ids in it. Arguments that the model composes itself hold none. It is needed if
an earlier message shows it literally, and kept if the request that produced the call shows it. Values that only
messages with tool outputs had shown are counted apart: nothing else could have told the model.

A *line* is what an edit quotes from a file to say where it applies: to quote it right the model must see it, names
alone do not help.

The rules are those of the measure, not of a strategy: what a strategy takes for a name plays no part here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

import msgspec

from windowsill.messages import Message, ToolResult, ToolUse, texts_in
from windowsill.providers import Format
from windowsill.text import strings

SHORTEST = 4
LONGEST = 120
"""Characters of a value that is taken as it is. Shorter ones occur everywhere by chance; longer ones are texts."""

SHORTEST_NAME = 5
"""Characters of a name in a longer text."""

SHORTEST_LINE = 12
"""Characters of a quoted line: shorter ones, such as a lone `return`, stand everywhere."""

COMPOSED = frozenset(
    re.findall(
        r"\S+",
        "content new_string new_str description thought todos prompt summary text reason explanation subject plan "
        "activeForm output_mode timeout status subagent_type model type glob head_limit limit offset -A -B -C "
        "run_in_background multiline operation cabin flight_type insurance addBlockedBy",
    )
)
"""Arguments that the model composes itself or picks from a fixed list: the history need not hold their values."""

QUOTES = frozenset({"old_string", "old_str", "old_text", "oldText", "oldString", "search", "find", "original"})
"""Arguments in which an edit quotes, word for word, what it replaces."""

PATCHES = frozenset({"patch", "diff"})
"""Arguments that hold a patch."""

BETWEEN = "\n"

_WORD = re.compile(rf"[A-Za-z0-9_./:@#-]{{{SHORTEST_NAME},}}")
_NAME = re.compile(r"[0-9/_.#@]|[a-z][A-Z]")


class KeptEvidence(msgspec.Struct):
    """The number of values and lines that calls needed, and of those among them that were in the request."""

    needed: int = 0
    kept: int = 0
    needed_from_outputs: int = 0
    """Values that only messages with tool outputs had shown,"""
    kept_from_outputs: int = 0
    """and those of them that were in the request."""
    needed_lines: int = 0
    """Lines that edits quoted and that were seen before,"""
    kept_lines: int = 0
    """and those of them that were in the request."""
    reachable: int = 0
    """Values that were not in the request, and that one search of the history finds."""


class Need(NamedTuple):
    """A value or a line that a call needs, and the tool that it calls."""

    kind: Literal["value", "line"]
    text: str
    needed_by: str


class Loss(msgspec.Struct, frozen=True):
    """A value or a line that a call needed and that was not in its request."""

    kind: Literal["value", "line"]
    text: str
    needed_by: str
    """The tool whose call needed it,"""
    needed_in: int
    """and the index of the recorded answer that makes the call."""
    stood_in: int | None
    """The index of the newest message before the call that shows it; `null` for the system prompt."""
    stood_as: str
    """The place that showed it: `output of TOOL`, `call of TOOL`, or the role of the message."""
    reachable: bool
    """One search of the history finds it."""


class _Body(msgspec.Struct, rename="camel"):
    """A request of any format: each has its own fields for the messages and the system prompt."""

    messages: list[msgspec.Raw] = []
    input: list[msgspec.Raw] = []
    contents: list[msgspec.Raw] = []
    system: msgspec.Raw = msgspec.Raw(b"null")
    instructions: msgspec.Raw = msgspec.Raw(b"null")
    system_instruction: msgspec.Raw = msgspec.Raw(b"null")


_body_decoder = msgspec.json.Decoder(_Body)


class _Shown(NamedTuple):
    """A message of the recorded history, with its place there and its text."""

    place: int | None
    message: Message
    text: str


class Evidence:
    """The texts that one recording has shown so far, and what its requests lacked of them."""

    def __init__(self, format: Format) -> None:
        self.losses: list[Loss] = []
        self._format = format
        self._shown: list[_Shown] = []
        self._tools: dict[str, str] = {}
        self._texts: dict[bytes, str] = {}

    def show(self, message: Message, index: int | None = None) -> None:
        """Add a message of the recorded history, with its place there; the system prompt has none."""
        self._tools.update((call.id, call.name) for call in message.calls)
        self._shown.append(_Shown(index, message, text_of_message(message)))

    def measure(
        self, answer: Message, body: bytes, index: int = 0, reaches: Callable[[str], bool] = lambda _: False
    ) -> KeptEvidence:
        """Count what the calls of an answer needed, and what of it the request had or a search finds.

        `index` is the place of the answer in the recording. What the request lacked is added to `losses`.
        """
        count = KeptEvidence()
        needs = [*needed_values(answer), *quoted_lines(answer)]
        sent = self._text_of_request(body) if needs else ""
        for need in needs:
            newest, only_outputs = self._find(need.text)
            if newest is None:
                continue
            kept = need.text in sent
            found = not kept and reaches(need.text)
            if not kept:
                stood_as = self._source(newest.message, need.text)
                loss = Loss(*need, stood_in=newest.place, stood_as=stood_as, needed_in=index, reachable=found)
                self.losses.append(loss)
            if need.kind == "line":
                count.needed_lines += 1
                count.kept_lines += kept
                continue
            count.needed += 1
            count.kept += kept
            count.reachable += found
            count.needed_from_outputs += only_outputs
            count.kept_from_outputs += kept and only_outputs
        return count

    def _find(self, text: str) -> tuple[_Shown | None, bool]:
        """Return the newest message that shows a text, and whether only messages with tool outputs do."""
        newest: _Shown | None = None
        for shown in reversed(self._shown):
            if text in shown.text:
                newest = newest or shown
                if not shown.message.results:
                    return newest, False
        return newest, True

    def _source(self, message: Message, text: str) -> str:
        """Name what shows a text in a message."""
        for block in message.blocks:
            if isinstance(block, ToolUse) and text in BETWEEN.join(texts_in(block)):
                return f"call of {block.name}"
            if isinstance(block, ToolResult) and text in BETWEEN.join(texts_in(block)):
                return f"output of {block.name or self._tools.get(block.tool_use_id, 'a tool')}"
        return message.role

    def _text_of_request(self, body: bytes) -> str:
        parts = _body_decoder.decode(body)
        known, self._texts = self._texts, {}
        for raw in map(bytes, (*parts.messages, *parts.input, *parts.contents)):
            # A request mostly repeats the one before: only new messages are read.
            self._texts[raw] = known.get(raw) or text_of_message(self._format.read_message(raw, ""))
        prompts = (parts.system, parts.instructions, parts.system_instruction)
        system = [text for prompt in prompts for text in strings(msgspec.json.decode(prompt))]
        return BETWEEN.join([*system, *self._texts.values()])


def needed_values(answer: Message) -> Iterator[Need]:
    """Find the values that the calls of an answer may have taken from the request, each once."""
    found: set[str] = set()
    for call in answer.calls:
        # A stack of our own: values may be nested as deeply as the JSON reader allows.
        waiting: list[Any] = [call.input]
        while waiting:
            value = waiting.pop()
            if isinstance(value, dict):
                waiting.extend(each for key, each in reversed(value.items()) if key not in COMPOSED)
            elif isinstance(value, list):
                waiting.extend(reversed(value))
            else:
                new = [each for text in strings(value) for each in _values_in(text) if each not in found]
                found.update(new)
                yield from (Need("value", each, call.name) for each in dict.fromkeys(new))


def _values_in(text: str) -> Iterator[str]:
    text = text.strip()
    if len(text) > LONGEST or any(map(str.isspace, text)):
        words = (word.strip(".:-/#@") for word in _WORD.findall(text))
        yield from (word for word in words if len(word) >= SHORTEST_NAME and _NAME.search(word))
    elif len(text) >= SHORTEST:
        yield text


def quoted_lines(answer: Message) -> Iterator[Need]:
    """Find the lines that the edits among an answer's calls quote from what they change."""
    for call in answer.calls:
        lines: list[str] = []
        for key, value in call.input.items():
            if isinstance(value, str) and key in QUOTES:
                lines += value.splitlines()
            elif isinstance(value, str) and key in PATCHES:
                # What a patch removes or shows as context was there before; what it adds was not.
                lines += [line[1:] for line in value.splitlines() if line[:1] in {"-", " "} and line[:3] != "---"]
        for line in dict.fromkeys(map(str.strip, lines)):
            if len(line) >= SHORTEST_LINE:
                yield Need("line", line, call.name)


def text_of_message(message: Message) -> str:
    """Return all text of a message, that of calls and their outputs included."""
    return BETWEEN.join(text for block in message.blocks for text in texts_in(block))
