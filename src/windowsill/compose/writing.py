"""Lets a writer fill in what a strategy wants written, and accepts it only if that makes the view smaller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from windowsill.history.folds import Brief, Proposal, Run, StandIn
from windowsill.history.hiding import hide
from windowsill.history.marker import Facts
from windowsill.history.redacting import told
from windowsill.history.view import Item, View
from windowsill.messages import Message, text_message
from windowsill.writers import Material, Written

# ruff: noqa: PLC0415 - the writers and their word lists are loaded when something is to be written

LEDGER = "ledger"
"""The key under which a run keeps what code knows of the messages it hides."""


class Filled(msgspec.Struct, frozen=True):
    """A proposal with its texts, and what is to be told about them."""

    proposal: Proposal
    notes: tuple[str, ...] = ()
    whole: bool = True
    """Whether everything that was to be written was written; else markers stand in its place."""


def wants_writing(proposal: Proposal) -> bool:
    """Whether something is to be written for it."""
    return any(brief is not None for brief in proposal.briefs)


def materials(view: View, proposal: Proposal, load: Callable[[Sequence[Item]], None]) -> list[Material | None]:
    """For each span what its text is written of; `None` where nothing is to be written."""
    from windowsill.writers.ledger import merged

    found: list[Material | None] = []
    for span, brief in zip(proposal.spans, proposal.briefs, strict=True):
        if brief is None or not isinstance(span, Run):
            found.append(None)
            continue
        items = view.items[view.slice_of(span.first, span.last)]
        load(items)
        found.append(
            Material(
                # A writer sees what a mask hid: once the message is gone, its summary is all that is left in view.
                # It sees no secret: what it never read it cannot tell, nor send to another provider.
                messages=tuple(told(view.whole(item) if item.cuts else view.read(item)) for item in items),
                tokens=view.tokens(*items),
                count=lambda text: view.tokens_of(view.weigh(text_message("user", text))),
                ledger=merged([item.facts[LEDGER] for item in items if item.fold and LEDGER in item.facts]),
            )
        )
    return found


def fill(view: View, proposal: Proposal, texts: Sequence[Written | None]) -> Filled:
    """The proposal with these texts where they are good; elsewhere its own stand-ins stay."""
    spans = list(proposal.spans)
    stand_ins: list[StandIn] = list(proposal.stand_ins)
    notes: list[str] = []
    whole = True
    for place, (span, written) in enumerate(zip(proposal.spans, texts, strict=True)):
        if written is None or not isinstance(span, Run):
            continue
        notes += [f"{proposal.strategy}: {note}" for note in (*written.notes, *_cost(written))]
        items = view.items[view.slice_of(span.first, span.last)]
        stand_in = _stand_in(written)
        facts = msgspec.convert(span.facts, Facts) if span.facts else Facts(messages=span.hides)
        run = hide(view, items, facts, stand_in)
        good = bool(written.text.strip()) and view.tokens_of(run.saves) > 0
        whole = whole and good
        shown = run if good else span
        # What code knows is kept even where a marker stands: the next summary is written from it.
        ledger: dict[str, Any] = {LEDGER: written.ledger} if written.ledger else {}
        spans[place] = msgspec.structs.replace(shown, facts={**shown.facts, **ledger})
        if not written.text.strip():
            notes.append(f"{proposal.strategy}: {written.writer} wrote nothing; a marker stands there")
        elif not good:
            notes.append(f"{proposal.strategy}: what {written.writer} wrote is no shorter than what it replaces")
        else:
            stand_ins[place] = stand_in
    replaced = msgspec.structs.replace(proposal, spans=tuple(spans), stand_ins=tuple(stand_ins), briefs=())
    return Filled(replaced, tuple(notes), whole)


def _cost(written: Written) -> tuple[str, ...]:
    """What a model was paid for, whether its text was of use or not."""
    if written.usage is None:
        return ()
    cached = f", {written.usage.cache_read:,} of them from its cache" if written.usage.cache_read else ""
    return (f"the model read {written.usage.prompt:,} tokens{cached}, and wrote {written.usage.output:,}",)


def _stand_in(written: Written) -> Message:
    from windowsill.writers.frame import framed

    return text_message(
        "user",
        framed(written.text, source=written.writer),
        metadata={"windowsill": "summary", "writer": written.writer},
    )


def without_model(brief: Brief | None) -> bool:
    """Whether code alone writes it."""
    return brief is None or not brief.needed
