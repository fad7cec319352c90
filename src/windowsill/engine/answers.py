"""Tells an answer from what only looks like one: broken off, cut, empty, refused."""

from __future__ import annotations

from windowsill.engine.words import BROKEN, CUT, EMPTY, LENGTH, REFUSED, STOP_REASON
from windowsill.formats.streaming import PARTIAL
from windowsill.messages import Message, Unknown


def nudge(last: Message) -> str:
    """What the model is told when its last answer was none."""
    if PARTIAL in last.metadata:
        return BROKEN
    if last.metadata.get(STOP_REASON) in LENGTH:
        return CUT
    return "" if last.text.strip() else EMPTY


def refusal(last: Message) -> str:
    """Why the model, or its provider, would not answer; empty when it did."""
    stop = last.metadata.get(STOP_REASON)
    if stop in REFUSED:
        return str(stop)
    return "refusal" if any(isinstance(block, Unknown) and block.type == "refusal" for block in last.blocks) else ""
