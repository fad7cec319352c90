"""The offline writer: a summary built from the messages by code alone, the same bytes each time."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec

from windowsill.history.folds import Brief
from windowsill.writers import Material, Written
from windowsill.writers.frame import framed
from windowsill.writers.gathering import gather
from windowsill.writers.layout import lay_out
from windowsill.writers.ledger import read, written
from windowsill.writers.state import fill

NAME = "offline"

SHARE = 0.25
"""Of what is hidden, when no room is given: identifiers and quotations that later calls need fit in there."""

LARGEST = 6_000
"""Tokens of a summary when no room is given. More of it keeps hardly more of what later calls need."""


class Offline:
    """Writes summaries with code alone: no network, no model, English and Japanese."""

    name = NAME

    def write(self, brief: Brief, material: Material) -> Written:
        """The text, smaller with its frame than what it replaces and within the room; empty when that cannot be.

        The room counts the frame too (see `writers.frame`). The ledger is complete whether or not the text fits.
        """
        wished = material.tokens if brief.style == "state" else min(int(material.tokens * SHARE), LARGEST)
        most = min(brief.room or wished, material.tokens - 1)
        room = most - material.count(framed("\n", source=NAME)) - 1

        def fits(text: str) -> bool:
            return material.count(framed(text, source=NAME)) <= most

        ledger = gather(material.messages, read(material.ledger))
        if brief.style == "state":
            state = fill(brief.schema or {}, material.messages, ledger.state)
            ledger = msgspec.structs.replace(ledger, state=state)
            text, left_out = _as_object(state, fits)
        else:
            text, left_out = lay_out(brief.style, ledger, room, material.count, fits), ()
        notes = [] if text else ["nothing to tell, or no room to tell it in"]
        if text and left_out:
            notes.append(f"no room for {', '.join(left_out)}")
        if brief.instructions or brief.directives:
            notes.append("written with code alone, which cannot follow instructions or directives")
        return Written(text=text, ledger=written(ledger), writer=NAME, notes=tuple(notes))


def _as_object(state: dict[str, Any], fits: Callable[[str], bool]) -> tuple[str, tuple[str, ...]]:
    """The state as JSON, and the names of the values that had to be left out of it: the largest go first."""
    shown = dict(state)
    left_out: list[str] = []
    while shown:
        text = json.dumps(shown, ensure_ascii=False)
        if fits(text):
            return text, tuple(left_out)
        left_out.append(max(shown, key=lambda name: len(json.dumps(shown[name], ensure_ascii=False))))
        del shown[left_out[-1]]
    return "", tuple(left_out)
