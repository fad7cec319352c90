"""Which result answers which call: the pairing that repair rests on."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from collections.abc import Set as AbstractSet
from typing import Literal, TypeAlias

import msgspec

from windowsill.messages import ToolResult, ToolUse

Outcome: TypeAlias = Literal["paired", "again", "late", "orphan"]

DIGEST_CHARACTERS = 8
"""Enough to keep two ids apart that differ only in characters a provider refuses."""

MAX_ID_CHARACTERS = 64
"""What every provider takes as the length of an id."""


_NUMBERED = re.compile(r"(.+)#\d+", re.DOTALL)


class Call(msgspec.Struct):
    """A call that was not yet sent away, and the result it got so far."""

    id: str
    order: int
    source: int
    turn: int
    type: str = ""
    name: str = ""
    result: ToolResult | None = None


class Pairing:
    """Pairs results with the calls of the current turn, and remembers the ids of every turn before.

    A turn ends with `settle`: its calls were then sent to the model, answered or not, and what comes later for them is
    late. Ids are unique within a message always, and across turns when `unique` is true.
    """

    def __init__(self, used: AbstractSet[str], *, unique: bool, pattern: re.Pattern[str] | None) -> None:
        self.used: set[str] = set()
        self._before = used
        self.calls: list[Call] = []
        self._unique = unique
        self._pattern = pattern
        self._by_id: dict[str, list[Call]] = {}

    def call(self, block: ToolUse, *, source: int, turn: int, taken: Collection[str]) -> Call:
        """Open a call, under a new id where its own cannot be used; `taken` are the ids of the same message."""
        id = self.spelled(block.id)
        if id in taken or (self._unique and self._is_used(id)):
            count = 2
            while self._is_used(renamed := f"{id}_{count}") or renamed in taken:
                count += 1
            id = renamed
        self.used.add(id)
        call = Call(id, len(self.calls), source, turn, block.type, block.name)
        self.calls.append(call)
        self._by_id.setdefault(block.id, []).append(call)
        return call

    def answer(self, result: ToolResult) -> tuple[Outcome, Call | None]:
        """What a result is to the calls before it: the answer to one, another answer, a late one, or an orphan."""
        calls = self._by_id.get(result.tool_use_id, [])
        name = numbered_name(result.tool_use_id)
        # An id that was made here ties less than a name does: order decides between calls of the same tool.
        for call in calls if name is None else [*calls, *(call for call in self.calls if call.name == name)]:
            if call.result is None:
                return "paired", call
        if calls:
            return "again", calls[-1]
        return ("late" if self._is_used(self.spelled(result.tool_use_id)) else "orphan"), None

    def _is_used(self, id: str) -> bool:
        return id in self.used or id in self._before

    def settle(self) -> None:
        """End the turn."""
        self.calls = []
        self._by_id = {}

    def spelled(self, id: str) -> str:
        """The id in the characters this provider allows."""
        return id if self._pattern is None or self._pattern.fullmatch(id) else safe_id(id)


def numbered_id(name: str, number: int) -> str:
    """The id of a call, or of its result, that came without one: the tool's name, and which of its calls it is."""
    return f"{name}#{number}"


def numbered_name(id: str) -> str | None:
    """The tool's name in such an id; `None` when the id is somebody's own."""
    found = _NUMBERED.fullmatch(id)
    return found.group(1) if found else None


def safe_id(id: str) -> str:
    """An id of letters, digits, `_` and `-` only; different ids stay different."""
    digest = hashlib.sha256(id.encode()).hexdigest()[:DIGEST_CHARACTERS]
    plain = re.sub(r"[^a-zA-Z0-9_-]", "_", id)[: MAX_ID_CHARACTERS - DIGEST_CHARACTERS - 1]
    return f"{plain}_{digest}" if plain else f"call_{digest}"
