"""Record folds that no strategy planned: those made by hand, and what a provider did to a conversation by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from windowsill.compose.summaries import write_records
from windowsill.errors import FoldError
from windowsill.history.folds import FoldKind, Proposal, Span, StandIn
from windowsill.history.proposals import check_fold, gather, hide, marker, replace_block
from windowsill.history.view import Item
from windowsill.journal.writer import JournalWriter
from windowsill.messages import ORIGIN, Block, Cleared, Message, Origin, Text, ToolResult, Unknown, text_message
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


PROVIDER = "provider"
"""The name under which these folds stand in the audit."""

CLEARED = "[old tool output, cleared]"


def record(
    journal: JournalWriter, messages: Sequence[Message], cleared: Cleared | None, fields: Mapping[str, msgspec.Raw]
) -> bool:
    """Fold what the provider hid before it gave this answer; true when it did. `fields` are those of the request."""
    compacted = next((place for place, each in enumerate(messages) if any(map(_is_compaction, each.blocks))), None)
    done = False
    if cleared is not None and cleared.uses:
        done = _clear(journal, cleared, _excluded(fields), before=len(messages))
    if compacted is not None:
        done = _compact(journal, before=len(messages) - compacted) or done
    return done


def _is_compaction(block: Block) -> bool:
    """Tell whether a block is a compaction that holds anything: one that failed changes nothing."""
    if not isinstance(block, Unknown) or block.type != "compaction":
        return False
    wire = msgspec.json.decode(block.raw or b"{}", type=_Compaction)
    return bool(wire.content or wire.encrypted_content)


class _Compaction(msgspec.Struct):
    content: str | None = None
    encrypted_content: str | None = None


class _Edit(msgspec.Struct):
    type: str = ""
    exclude_tools: tuple[str, ...] | None = None


class _Edits(msgspec.Struct):
    edits: tuple[_Edit, ...] = ()


def _excluded(fields: Mapping[str, msgspec.Raw]) -> frozenset[str]:
    """Return the tools that the request kept from clearing."""
    try:
        wire = msgspec.json.decode(fields.get("context_management", b"{}"), type=_Edits)
    except msgspec.DecodeError:
        return frozenset()
    return frozenset(name for edit in wire.edits for name in edit.exclude_tools or ())


def _clear(journal: JournalWriter, cleared: Cleared, exclude: frozenset[str], *, before: int) -> bool:
    """Mask the oldest results: as many as the provider says, those that were cleared earlier among them."""
    view = journal.view
    names: dict[str, str] = {}
    left = cleared.uses
    spans: list[Span] = []
    blocks: list[StandIn] = []
    for item in view.items[: len(view.items) - before]:
        # A stand-in has calls without tools.
        names.update(zip(item.calls, item.tools, strict=False))
        if not item.results or item.fold:
            continue
        for number, block in enumerate(view.read(item).blocks):
            if not isinstance(block, ToolResult) or names.get(block.tool_use_id) in exclude or not left:
                continue
            left -= 1
            shorter = msgspec.structs.replace(block, raw=None, content=(Text(text=CLEARED),))
            part = replace_block(view, item, number, block, shorter)
            if block.content != shorter.content and view.tokens_of(view.after([part])) < view.tokens():
                spans.append(part)
                blocks.append(shorter)
    reason = f"the provider cleared {cleared.uses} tool results ({cleared.tokens:,} tokens)"
    return _fold(journal, "mask", reason, spans, blocks)


def _compact(journal: JournalWriter, *, before: int) -> bool:
    """Hide everything before a compaction: its provider does not read it any more."""
    view = journal.view
    items: list[Item] = view.items[view.leading() : len(view.items) - before]
    if not items:
        return False
    facts = gather(view, items)
    stand_in = marker(facts)
    run = hide(view, items, facts, stand_in)
    return _fold(journal, "condense", "the provider compacted the conversation", [run], [stand_in])


def _fold(journal: JournalWriter, kind: FoldKind, reason: str, spans: list[Span], stand_ins: list[StandIn]) -> bool:
    if spans:
        proposal = Proposal(kind=kind, reason=reason, strategy=PROVIDER, spans=tuple(spans), stand_ins=tuple(stand_ins))
        journal.fold(write_records(journal.view, proposal))
    return bool(spans)
