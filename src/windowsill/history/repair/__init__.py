"""Mends a broken conversation in the view, never in the history, and says what it did."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet

import msgspec

from windowsill.history.repair.mending import Mender
from windowsill.history.repair.rules import Repair, Repaired, RepairKind, Rules
from windowsill.history.repair.sound import ids_if_sound
from windowsill.messages import Message, ToolUse

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
    """The messages without calls that are still running at the end: what is left of such a message are its words."""
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
