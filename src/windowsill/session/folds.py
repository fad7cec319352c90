"""Fold and mask by hand."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from windowsill.compose.check import check_fold
from windowsill.compose.summaries import write_records
from windowsill.errors import FoldError
from windowsill.history.folds import FoldKind, Proposal, Span, StandIn
from windowsill.history.marker import gather, hide, marker, replace_block
from windowsill.journal.writer import JournalWriter
from windowsill.messages import ORIGIN, Origin, Text, ToolResult, text_message
from windowsill.outputs.parts import ref_at
from windowsill.strategies.masks import call_of, placeholder

BY_HAND = "by hand"


def commit_fold(journal: JournalWriter, proposal: Proposal) -> str:
    """Check a proposal, write it, apply it; return the id of the fold."""
    return journal.fold(check_fold(journal.view, write_records(journal.view, proposal))).id


def fold_run(journal: JournalWriter, first: str, last: str, text: str | None, kind: FoldKind, reason: str) -> str:
    """Hide the messages `first` to `last`; `text` stands in for them, or a marker that says what was there."""
    view = journal.view
    start, stop = _place(journal, first), _place(journal, last)
    if start > stop:
        raise FoldError(f"message {first!r} comes after {last!r}", remedy="name the older one first")
    items = view.items[start : stop + 1]
    facts = gather(view, items)
    stand_in = text_message("user", text, metadata={ORIGIN: Origin.SUMMARY}) if text else marker(facts)
    return commit_fold(journal, _proposal(kind, reason, (hide(view, items, facts, stand_in),), (stand_in,)))


def mask_results(journal: JournalWriter, message_ids: Sequence[str], text: str | None, reason: str) -> str:
    """Show a placeholder in the place of the tool outputs of these messages."""
    view = journal.view
    spans: list[Span] = []
    blocks: list[StandIn] = []
    for id in message_ids:
        item = view.items[_place(journal, id)]
        found = [(place, block) for place, block in enumerate(view.read(item).blocks) if isinstance(block, ToolResult)]
        whole = view.whole(item).blocks
        if not found:
            raise FoldError(f"message {id!r} holds no tool output", remedy="name messages with tool results")
        for number, (place, block) in enumerate(found, 1):
            ref = ref_at(item.seq, number, of=len(found))
            shorter = placeholder(whole[place], block, ref, call_of(view, item, block.tool_use_id))
            if text:
                shorter = msgspec.structs.replace(shorter, content=(Text(text=text),))
            part = replace_block(view, item, place, block, shorter)
            if view.tokens_of(view.after([part])) < view.tokens():
                spans.append(part)
                blocks.append(shorter)
    if not spans:
        raise FoldError("a mask does not make the view smaller", remedy="name longer outputs, or a shorter text")
    return commit_fold(journal, _proposal("mask", reason, tuple(spans), tuple(blocks)))


def _proposal(kind: FoldKind, reason: str, spans: tuple[Span, ...], stand_ins: tuple[StandIn, ...]) -> Proposal:
    return Proposal(kind=kind, reason=reason or BY_HAND, strategy=BY_HAND, spans=spans, stand_ins=stand_ins)


def _place(journal: JournalWriter, message_id: str) -> int:
    for index, item in enumerate(journal.view.items):
        if item.id == message_id:
            return index
    journal.find(message_id, "message")
    raise FoldError(f"message {message_id!r} is not visible", remedy="fold what the view shows")
