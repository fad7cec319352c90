"""Mends a broken conversation in the view, never in the history, and says what it did."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet

import msgspec

from windowsill.history.repair.mend import Mender, is_blank
from windowsill.history.repair.rules import Repair, Repaired, RepairKind, Rules
from windowsill.messages import Message, Reasoning, Text, ToolResult, ToolUse


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
            elif (before == "user" and rules.alternate) or not _is_plain(message, rules):
                return None
        else:
            return None
        before = message.role
    return None if waiting else ids


def _calls(message: Message, rules: Rules, ids: set[str], used: AbstractSet[str]) -> list[str] | None:
    calls: list[str] = []
    for block in message.blocks:
        if isinstance(block, ToolUse):
            id = block.id
            if (
                block.type
                or id in calls
                or (rules.unique_ids and (id in used or id in ids))
                or not _is_spelled(id, rules)
            ):
                return None
            calls.append(id)
        elif not (isinstance(block, Text) and (rules.blank_text or not is_blank(block.text))) and not (
            isinstance(block, Reasoning) and (block.signature or block.data or not rules.signed_reasoning)
        ):
            return None
    if isinstance(message.blocks[-1], Reasoning):
        return None
    ids.update(calls)
    return calls


def _is_spelled(id: str, rules: Rules) -> bool:
    return rules.id_pattern is None or re.fullmatch(rules.id_pattern, id) is not None


def _answers(message: Message, waiting: list[str], rules: Rules) -> bool:
    """Tell whether a message is nothing but results for the calls that wait, in order; takes them off the list."""
    if rules.alternate and len(message.blocks) != len(waiting):
        return False
    for block in message.blocks:
        if not waiting or not isinstance(block, ToolResult) or block.tool_use_id != waiting[0] or not block.content:
            return False
        if block.type:
            return False
        if not all(
            isinstance(inner, Text) and (rules.blank_text or not is_blank(inner.text)) for inner in block.content
        ):
            return False
        waiting.pop(0)
    return True


def _is_plain(message: Message, rules: Rules) -> bool:
    return all(isinstance(block, Text) and (rules.blank_text or not is_blank(block.text)) for block in message.blocks)


__all__ = ["Repair", "RepairKind", "Repaired", "Rules", "repair", "without_open_calls"]


def repair(
    messages: Sequence[Message],
    rules: Rules,
    *,
    sent: Collection[int] = (),
    used: AbstractSet[str] = frozenset(),
    first: bool = True,
) -> Repaired:
    """Mend a conversation; a message that needs nothing comes out as the same object.

    `sent` holds each index before which a request was sent although the messages alone do not show it. A conversation
    may be mended in parts: cut it before an assistant message that follows another role and where every earlier call
    has a result, and pass for the later part `first=False` and the `ids` of all earlier ones as `used`. A result for
    an id in `used` counts as late.
    """
    ids = ids_if_sound(messages, rules, sent=sent, used=used, first=first)
    if ids is not None:
        return Repaired(tuple(messages), (), tuple((index,) for index in range(len(messages))), frozenset(ids))
    return mend(messages, rules, sent=sent, used=used, first=first)


def mend(
    messages: Sequence[Message],
    rules: Rules,
    *,
    sent: Collection[int],
    used: AbstractSet[str],
    first: bool,
) -> Repaired:
    """Mend a conversation that may need it; see `repair`."""
    mender = Mender(messages, rules, used, first=first)
    cuts = frozenset(sent)
    before = "assistant"
    for index, message in enumerate(messages):
        if index in cuts or (message.role == "assistant" and before != "assistant"):
            mender.settle(index)
        mender.take(index, message)
        before = message.role
    return mender.finish()


def without_open_calls(messages: Sequence[Message]) -> list[Message]:
    """Leave out calls that are still running at the end: what is left of such a message are its words."""
    start = len(messages)
    while start and messages[start - 1].role == "assistant":
        start -= 1
    kept = list(messages[:start])
    for message in messages[start:]:
        if not message.calls:
            kept.append(message)
        elif message.text.strip():
            blocks = tuple(block for block in message.blocks if not isinstance(block, ToolUse))
            kept.append(msgspec.structs.replace(message, blocks=blocks, edited=True))
    return kept
