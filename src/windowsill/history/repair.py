"""Mend a conversation where a provider would refuse it; most need nothing, and are only looked through.

What is shared with the mender, which is loaded for those that do: ids, and the pairs of calls and results.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, deque
from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from typing import Literal, TypeAlias

import msgspec

from windowsill.history.repair_rules import Repair, Repaired, Rules
from windowsill.messages import Block, Document, Image, Message, Reasoning, Text, ToolResult, ToolUse


def is_blank(text: str) -> bool:
    """Tell whether a text is empty or white space."""
    return not text or text.isspace()


def is_media(block: Block) -> bool:
    """Tell whether it is a picture or a file."""
    return isinstance(block, Image | Document)


Words: TypeAlias = tuple[bool, tuple[Block, ...]]
"""The content of a result, whatever bytes it came as."""

Outcome: TypeAlias = Literal["paired", "again", "late", "orphan"]

DIGEST_CHARACTERS = 8
"""Enough to keep two ids apart that differ only in characters a provider refuses."""

MAX_ID_CHARACTERS = 64
"""The longest id that every provider takes."""

MAX_NAME_CHARACTERS = 64
"""The shortest of the providers' limits for a tool's name."""


class Answer(msgspec.Struct):
    """A result at its place after a turn; without a source it is a stand-in."""

    source: int | None
    block: ToolResult
    order: int
    more: list[ToolResult] = []
    """Further results for the same call that say something else."""
    words: set[Words] = set()
    """The content so far, once there was a second result."""

    def whole(self) -> ToolResult:
        """Join all results for the call into one, in order."""
        if not self.more:
            return self.block
        every = [self.block, *self.more]
        return msgspec.structs.replace(
            self.block,
            content=tuple(inner for each in every for inner in each.content),
            is_error=any(each.is_error for each in every),
            ref=next((each.ref for each in every if each.ref), None),
            raw=None,
        )


class Call(msgspec.Struct):
    """A call that was not yet sent away, and the result it got so far."""

    id: str
    order: int
    source: int
    turn: int
    type: str = ""
    name: str = ""
    answer: Answer | None = None


class Pairing:
    """Pairs results with the calls of the current turn, and remembers the ids of every turn before.

    A turn ends with `settle`: its calls were then sent to the model, answered or not, and what comes later for them is
    late. Ids are unique within a message always, and across turns when `unique` is true.
    """

    def __init__(self, used: AbstractSet[str], *, unique: bool, pattern: re.Pattern[str] | None) -> None:
        self.used: set[str] = set()
        self._before = used
        self._unique = unique
        self._pattern = pattern
        self.settle()

    def settle(self) -> None:
        """End the turn."""
        self.calls: list[Call] = []
        self._by_id: dict[str, Call] = {}
        self._waiting: dict[tuple[str, str], deque[Call]] = {}
        """The calls that may still be unanswered, oldest first, by id and by the name of their tool."""

    def call(self, block: ToolUse, *, source: int, turn: int, taken: Collection[str]) -> Call:
        """Open a call, under a new id where its own cannot be used; `taken` are the ids of the same message."""
        id = self._spell(block.id)
        if id in taken or (self._unique and self._is_used(id)):
            id = self._number(id, taken)
        self.used.add(id)
        call = Call(id, len(self.calls), source, turn, block.type, block.name)
        self.calls.append(call)
        self._by_id[block.id] = call
        for key in (("id", block.id), ("name", block.name)):
            self._waiting.setdefault(key, deque()).append(call)
        return call

    def _number(self, id: str, taken: Collection[str]) -> str:
        """Return the id with the next number that is free, in few steps however many are taken."""

        def numbered(count: int) -> str:
            end = f"_{count}"
            return id[: MAX_ID_CHARACTERS - len(end)] + end

        def is_free(count: int) -> bool:
            return not self._is_used(numbered(count)) and numbered(count) not in taken

        low, high = 1, 2
        while not is_free(high):
            low, high = high, high * 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if is_free(middle) else (middle, high)
        return numbered(high)

    def answer(self, result: ToolResult) -> tuple[Outcome, Call | None]:
        """Classify a result: the answer to a call, another answer, a late one, or an orphan."""
        name = numbered_name(result.tool_use_id)
        # An id that was made here ties less than a name does: order decides between calls of the same tool.
        call = self._first_waiting("id", result.tool_use_id) or (name and self._first_waiting("name", name))
        if call:
            return "paired", call
        if result.tool_use_id in self._by_id:
            return "again", self._by_id[result.tool_use_id]
        return ("late" if self._is_used(self._spell(result.tool_use_id)) else "orphan"), None

    def _first_waiting(self, kind: str, value: str) -> Call | None:
        calls = self._waiting.get((kind, value))
        while calls and calls[0].answer is not None:
            calls.popleft()
        return calls[0] if calls else None

    def _is_used(self, id: str) -> bool:
        return id in self.used or id in self._before

    def _spell(self, id: str) -> str:
        """Spell an id in the characters this provider allows."""
        return id if self._pattern is None or self._pattern.fullmatch(id) else safe_id(id)


def numbered_id(name: str, number: int) -> str:
    """Make the id of a call, or a result, that came without one: the tool's name and the number of the call."""
    return f"{name}#{number}"


def numbered_name(id: str) -> str | None:
    """Return the tool's name in such an id; `None` when the id is somebody's own."""
    name, _, number = id.rpartition("#")
    return name if name and number.isdecimal() else None


def safe_name(name: str, pattern: str | None = None) -> str:
    """Return a tool's name in characters that every provider takes; one that fits the pattern stays as it is."""
    if pattern is not None and re.fullmatch(pattern, name):
        return name
    safe = re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:MAX_NAME_CHARACTERS] or "tool"
    return safe if pattern is None or re.fullmatch(pattern, safe) else f"_{safe}"[:MAX_NAME_CHARACTERS]


def safe_id(id: str) -> str:
    """Spell an id with letters, digits, `_` and `-` only; different ids stay different."""
    digest = hashlib.sha256(id.encode()).hexdigest()[:DIGEST_CHARACTERS]
    plain = re.sub(r"[^a-zA-Z0-9_-]", "_", id)[: MAX_ID_CHARACTERS - DIGEST_CHARACTERS - 1]
    return f"{plain}_{digest}" if plain else f"call_{digest}"


def ids_if_sound(
    messages: Sequence[Message],
    rules: Rules,
    *,
    sent: Collection[int],
    used: AbstractSet[str],
    first: bool,
) -> set[str] | None:
    """Return the ids of its calls when mending would change nothing; `None` when that is not certain.

    Certain are plain turns in the provider's own format: words, calls of functions, and right after them their results,
    in order.
    """
    ids: set[str] = set()
    waiting: list[str] = []
    before = "assistant"
    for index, message in enumerate(messages):
        if message.format != rules.format or message.edited or not message.blocks:
            return None
        if message.role == "assistant":
            if waiting or (before == "assistant" and (index or (first and rules.user_first))):
                return None
            found = _calls(message, rules, ids, used)
            if found is None:
                return None
            waiting = found
        elif message.role == "user":
            if waiting:
                if index in sent or not _answers(message, waiting, rules):
                    return None
            elif (before == "user" and rules.alternate and not rules.takes_neighbours) or not _is_plain(
                message.blocks, rules
            ):
                return None
        else:
            return None
        before = message.role
    return None if waiting else ids


def _calls(message: Message, rules: Rules, ids: set[str], used: AbstractSet[str]) -> list[str] | None:
    calls: dict[str, None] = {}
    for block in message.blocks:
        if isinstance(block, ToolUse):
            id = block.id
            if (
                block.type
                or id in calls
                or (rules.unique_ids and (id in used or id in ids))
                or not _is_spelled(block, rules)
            ):
                return None
            calls[id] = None
        elif not (isinstance(block, Text) and (rules.blank_text or not is_blank(block.text))) and not (
            isinstance(block, Reasoning) and (block.signature or block.data or not rules.signed_reasoning)
        ):
            return None
    if isinstance(message.blocks[-1], Reasoning):
        return None
    ids.update(calls)
    return list(calls)


def _is_spelled(call: ToolUse, rules: Rules) -> bool:
    return (rules.id_pattern is None or re.fullmatch(rules.id_pattern, call.id) is not None) and (
        rules.name_pattern is None or re.fullmatch(rules.name_pattern, call.name) is not None
    )


def _answers(message: Message, waiting: list[str], rules: Rules) -> bool:
    """Tell whether a message is nothing but results for the calls that wait, in order; takes them off the list."""
    if rules.alternate and len(message.blocks) != len(waiting):
        return False
    for block in message.blocks:
        if not waiting or not isinstance(block, ToolResult) or block.tool_use_id != waiting[0] or not block.content:
            return False
        if block.type or not _is_plain(block.content, rules):
            return False
        waiting.pop(0)
    return True


def _is_plain(blocks: Sequence[Block], rules: Rules) -> bool:
    return all(isinstance(block, Text) and (rules.blank_text or not is_blank(block.text)) for block in blocks)


def repair(
    messages: Sequence[Message],
    rules: Rules,
    *,
    sent: Collection[int] = (),
    used: AbstractSet[str] = frozenset(),
    first: bool = True,
    continued: bool = False,
) -> Repaired:
    """Mend a conversation; a message that needs nothing comes out as the same object.

    With `continued` the provider keeps what came before: a result without a call here answers one there.

    `sent` holds each index before which a request was sent although the messages alone do not show it. A conversation
    may be mended in parts: cut it before an assistant message that follows another role, and pass for the later part
    `first=False` and the `ids` of all earlier ones as `used`. A result for an id in `used` counts as late.
    """
    ids = ids_if_sound(messages, rules, sent=sent, used=used, first=first)
    if ids is not None:
        places = tuple((index,) for index in range(len(messages)))
        return _with_end_trimmed(Repaired(tuple(messages), (), places, frozenset(ids)), rules)
    from windowsill.history.mender import mend  # noqa: PLC0415 - most conversations need nothing

    return _with_end_trimmed(mend(messages, rules, sent=sent, used=used, first=first, continued=continued), rules)


def _with_end_trimmed(repaired: Repaired, rules: Rules) -> Repaired:
    """Take white space off the end of the words that the model is to go on from, where the provider refuses it."""
    last = repaired.messages[-1] if repaired.messages else None
    end = last.blocks[-1] if last is not None and last.role == "assistant" and last.blocks else None
    if rules.trailing_space or last is None or not isinstance(end, Text) or end.text == (text := end.text.rstrip()):
        return repaired
    trimmed = msgspec.structs.replace(last, blocks=(*last.blocks[:-1], Text(text=text)), edited=True)
    report = Repair("end_trimmed", repaired.sources[-1][-1], "", "white space at the end was left out")
    return msgspec.structs.replace(
        repaired, messages=(*repaired.messages[:-1], trimmed), repairs=(*repaired.repairs, report)
    )


def without_open_calls(messages: Sequence[Message]) -> list[Message]:
    """Leave out calls that are still running at the end: what is left of such a message are its words."""
    return [message for message in drop_open_calls(messages) if message is not None]


def drop_open_calls(messages: Sequence[Message]) -> list[Message | None]:
    """Take the calls without a result out of the last answer; `None` stands for a message that says nothing then."""
    stop = len(messages)
    while stop and messages[stop - 1].role != "assistant":
        stop -= 1
    start = stop
    while start and messages[start - 1].role == "assistant":
        start -= 1
    answered = Counter(result.tool_use_id for message in messages[start:] for result in message.results)
    kept: list[Message | None] = list(messages)
    for index in range(start, stop):
        message = messages[index]
        open_calls = [call for call in message.calls if not _take(answered, call.id)]
        if open_calls:
            blocks = tuple(block for block in message.blocks if not any(block is call for call in open_calls))
            says = any(
                isinstance(block, ToolUse) or (isinstance(block, Text) and block.text.strip()) for block in blocks
            )
            kept[index] = msgspec.structs.replace(message, blocks=blocks, edited=True) if says else None
    return kept


def _take(counts: Counter[str], key: str) -> bool:
    """Take one of a key, if there is one."""
    counts[key] -= 1
    return counts[key] >= 0
