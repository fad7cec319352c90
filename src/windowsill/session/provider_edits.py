"""Record what a provider did to a conversation by itself, so that the view shows what its model saw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from windowsill.compose.summaries import write_records
from windowsill.history.folds import FoldKind, Proposal, Span, StandIn
from windowsill.history.marker import gather, hide, marker, replace_block
from windowsill.history.view import Item
from windowsill.journal.writer import JournalWriter
from windowsill.messages import Block, Cleared, Message, Text, ToolResult, Unknown

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
