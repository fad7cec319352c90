"""The window now: what fills it, the items as the model sees them, and what it costs to bring folds back."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import msgspec

from windowsill.compose.composition import part_of
from windowsill.errors import InputError, NotFoundError
from windowsill.history.entries import Entry, on_path
from windowsill.history.folds import Fold, Span
from windowsill.history.view import Item, fold_meta, message_meta
from windowsill.inspector.ledger import CLIENT
from windowsill.inspector.opened import OpenSession
from windowsill.messages import (
    Block,
    Document,
    Image,
    Message,
    Reasoning,
    Text,
    ToolResult,
    ToolUse,
    text_of,
)
from windowsill.models import known_prices
from windowsill.session.branches import branch_heads
from windowsill.session.edits import BY_HAND, PROVIDER
from windowsill.text import one_line
from windowsill.tokens import Weight

PAGE = 100
"""Items of one answer."""

SHOWN = 4_000
"""Characters of a block that a list shows."""

SLICE = 65_536
"""Characters of a long text in one answer."""

PREVIEW = 200
"""Characters of a message in a list of what is hidden."""

MOST_TOOLS = 8
"""Tools whose outputs are listed by what they fill."""

_DECIDED = {CLIENT: "client", BY_HAND: "user", "unfold": "user", PROVIDER: "provider"}


def window(opened: OpenSession) -> dict[str, Any]:
    """Say what fills the window now, with the budget and the marks on it."""
    session = opened.session
    view, context = session.view, session.composer.context
    made, fixed = opened.composition()
    opened.ledger.catch_up(opened.version)
    sums = opened.sums
    marks = {"low": made.low, "high": made.high, "limit": made.limit}
    return {
        "session": session.id,
        "version": opened.version,
        "model": session.settings.model,
        "strategy": session.settings.strategy,
        "updated": session.journal.entry(opened.version).at if opened.version else None,
        "branches": len(branch_heads(session.journal)),
        "items": len(view.items),
        "page_size": PAGE,
        "messages": sums.hidden + len(view.items) - sums.stand_ins,
        "hidden": sums.hidden,
        "tokens": made.tokens,
        "limit": made.limit,
        "window": made.window,
        "parts": [{"name": name, "tokens": tokens} for name, tokens in made.parts.items()],
        "marks": [{"name": name, "tokens": tokens} for name, tokens in marks.items() if 0 < tokens < made.window],
        "over": made.over,
        "exact": context.exact,
        "error_percent": context.error,
        "next": _next_request(opened, made.tokens),
        "folds": len(sums.folds),
        "compactions": opened.ledger.totals.compactions,
        "outputs": _largest_outputs(opened),
        "last_call": fixed.call or None,
        "notes": [opened.note] if opened.note else [],
    }


def _next_request(opened: OpenSession, tokens: int) -> dict[str, Any]:
    """Say what the next request would cost, where a cache still has what the last one sent."""
    last = opened.ledger.calls[-1] if opened.ledger.calls else None
    cached = min(tokens, last.tokens) if last is not None and opened.session.model.cache != "none" else 0
    price = known_prices(opened.session.settings.model)
    return {
        "tokens": tokens,
        "cached": cached,
        "cost": None if price is None else cached * price.cache_read + (tokens - cached) * price.cache_write,
        "known": price is not None,
    }


def _largest_outputs(opened: OpenSession) -> list[dict[str, Any]]:
    """List the tools whose visible outputs fill most of the window."""
    sums = opened.sums
    sizes = {name: opened.session.view.tokens_of(weight) for name, weight in sums.outputs.items()}
    largest = sorted(sizes, key=lambda name: -sizes[name])[:MOST_TOOLS]
    return [{"tool": name, "tokens": sizes[name], "results": sums.results[name]} for name in largest]


# The price of unfolding


def price(opened: OpenSession, back: Weight, index: int) -> dict[str, Any]:
    """Say what it costs to bring something back: once, as a cache writes again what stands behind it, and always."""
    session = opened.session
    made, _ = opened.composition()
    scale = session.view.scale
    tokens = scale.tokens(back)
    cached = session.model.cache != "none"
    rewritten = opened.behind(index) if cached else 0
    known = known_prices(session.settings.model)
    once = each = None
    if known is not None and cached:
        once = (tokens + rewritten) * known.cache_write - rewritten * known.cache_read
        each = tokens * known.cache_read
    elif known is not None:
        once = each = tokens * known.input
    return {
        "tokens": tokens,
        "total": made.tokens + tokens,
        "limit": made.limit,
        "fits": made.tokens + tokens <= made.limit,
        "rewritten": rewritten,
        "dollars": once,
        "each_call": each,
        "known": known is not None,
    }


def describe_fold(entry: Entry, fold: Fold) -> dict[str, Any]:
    """Say what a fold is and why, and who decided it: we, the client, the provider, or somebody by hand."""
    by = _DECIDED.get(fold.strategy, "windowsill")
    told = {"id": entry.id, "kind": fold.kind, "strategy": fold.strategy, "by": by}
    return told | {"reason": fold.reason, "at": entry.at}


class _Folds:
    """The folds that items of a page show, each read once."""

    def __init__(self, opened: OpenSession) -> None:
        self._journal = opened.session.journal
        self._read: dict[int, tuple[Entry, Fold]] = {}

    def find(self, seq: int) -> tuple[Entry, Fold]:
        if seq not in self._read:
            entry = self._journal.entry(seq)
            self._read[seq] = (entry, fold_meta(entry.meta))
        return self._read[seq]

    def describe(self, seq: int, span: int) -> tuple[dict[str, Any], Span]:
        entry, fold = self.find(seq)
        return describe_fold(entry, fold) | {"span": span}, fold.spans[span]


# Items


def items(opened: OpenSession, page: int = 0) -> dict[str, Any]:
    """Return one page of the items as the model sees them."""
    session = opened.session
    view = session.view
    last = max(0, math.ceil(len(view.items) / PAGE) - 1)
    if not 0 <= page <= last:
        raise NotFoundError(f"there is no page {page}", remedy=f"give 0 to {last}")
    start = page * PAGE
    listed = view.items[start : start + PAGE]
    session.journal.load_items(listed)
    return {
        "session": session.id,
        "version": opened.version,
        "page": page,
        "items": describe_items(opened, listed, start),
    }


def describe_items(opened: OpenSession, listed: Sequence[Item], start: int) -> list[dict[str, Any]]:
    """Describe items of the view, which begin at a position."""
    view, journal = opened.session.view, opened.session.journal
    task, tokens = view.task_seq(), view.each(listed)
    folds = _Folds(opened)
    opened.composition()
    names = opened.sums.tools
    found = []
    for index, (item, weight) in enumerate(zip(listed, tokens, strict=True), start):
        message = journal.show(item)
        told: dict[str, Any] = {
            "index": index,
            "id": item.id,
            "seq": item.seq,
            "role": item.role,
            "part": part_of(item, task),
            "tokens": weight,
            "at": folds.find(item.fold)[0].at if item.fold else message.at,
            "marks": list(item.marks),
            "origin": message.origin or None,
            "blocks": [describe_block(block, names) for block in message.blocks],
            "fold": None,
            "cuts": [],
        }
        if item.fold:
            fold, span = folds.describe(item.fold, item.span)
            fold |= {"messages": item.hides, "first": _id(opened, item.first), "last": _id(opened, item.last)}
            told["fold"] = fold | _sizes(opened, span, item.weight, index)
        for cut in item.cuts:
            fold, span = folds.describe(cut.fold, cut.span)
            told["blocks"][cut.block]["folded"] = True
            told["cuts"].append({"block": cut.block, **fold, **_sizes(opened, span, item.weight, index)})
        found.append(told)
    return found


def _sizes(opened: OpenSession, span: Span, shown: Weight, index: int) -> dict[str, Any]:
    view = opened.session.view
    after = view.tokens_of(shown)
    return {"before": after + view.tokens_of(span.saves), "after": after, "price": price(opened, span.saves, index)}


def _id(opened: OpenSession, seq: int) -> str:
    return opened.session.journal.entry(seq).id


def describe_block(block: Block, names: dict[str, str]) -> dict[str, Any]:
    """Describe one block of a message; long texts are cut."""
    match block:
        case Text():
            return {"kind": "text", **cut_text(block.text)}
        case Reasoning():
            return {"kind": "reasoning", "opaque": not block.text, **cut_text(block.text)}
        case ToolUse():
            return {"kind": "call", "name": block.name, "call": block.id, **cut_text(block.arguments)}
        case ToolResult():
            return {
                "kind": "result",
                "name": block.name or names.get(block.tool_use_id),
                "call": block.tool_use_id,
                "error": block.is_error,
                **cut_text(full_text(block)),
            }
        case Image():
            return {"kind": "image", "media": block.media_type, "bytes": _decoded(block.data), "name": block.url}
        case Document():
            told = {"kind": "document", "media": block.media_type, "bytes": _decoded(block.data)}
            return {**told, "name": block.title or block.url, **cut_text(block.text or "")}
        case _:
            return {"kind": "other", "name": block.type, **cut_text(full_text(block))}


def _decoded(data: str | None) -> int | None:
    return None if data is None else len(data) * 3 // 4


def full_text(block: Block) -> str:
    """Return the whole text of a block, as its slices are read."""
    match block:
        case Text() | Reasoning():
            return block.text
        case ToolUse():
            return block.arguments
        case ToolResult():
            media = ("\n[image]" for inner in block.content if isinstance(inner, Image))
            return text_of(block.content) + "".join(media)
        case Document():
            return block.text or ""
        case Image():
            return ""
        case _:
            return (block.raw or b"").decode(errors="replace")


def cut_text(text: str, most: int = SHOWN) -> dict[str, Any]:
    """Return the beginning of a text, and how long it is where that is not all."""
    return {"text": text} if len(text) <= most else {"text": text[:most], "cut": True, "length": len(text)}


def slice_of(text: str, offset: int) -> dict[str, Any]:
    """Return a slice of a long text, and where the next one begins."""
    if offset < 0:
        raise InputError(f"{offset} is no place in a text", remedy="give 0 or more")
    end = offset + SLICE
    return {
        "text": text[offset:end],
        "offset": offset,
        "next": end if end < len(text) else None,
        "length": len(text),
    }


def preview(message: Message, most: int = PREVIEW) -> str:
    """Return the beginning of what a message says, in one line."""
    words = message.text if message.text.strip() else " ".join(full_text(block) for block in message.blocks)
    return one_line(words[: 4 * most])[:most]


# Single entries


def index_of(opened: OpenSession, item: Item) -> int:
    """Return the position of an item of the view."""
    return bisect_left(opened.session.view.items, item.last, key=lambda each: each.last)


def place(opened: OpenSession, id: str) -> dict[str, Any]:
    """Say where an entry is shown now: by itself, or behind the fold that covers it."""
    journal = opened.session.journal
    view = journal.view
    fold, _, span = id.partition(":")
    seq = journal.seq_of(fold)
    current = on_path(journal.path(journal.version), seq)
    item = None
    if current and journal.entry(seq).kind == "fold":
        item = next((each for each in view.items if each.fold == seq and span in ("", str(each.span))), None)
        item = item or next((each for each in view.items if any(cut.fold == seq for cut in each.cuts)), None)
    if item is None and current:
        item = view.cover(seq)
    index = None if item is None else index_of(opened, item)
    return {
        "id": id,
        "seq": seq,
        "visible": item is not None and not (item.fold and item.seq != seq),
        "index": index,
        "page": None if index is None else index // PAGE,
        "item": None if item is None else item.id,
        "branch": "current" if current else "left",
    }


def message(opened: OpenSession, id: str) -> dict[str, Any]:
    """Return one message as it was added, and why the model sees it or does not."""
    session = opened.session
    entry = session.journal.find(id, "message")
    meta = message_meta(entry.meta)
    found = session.message(id)
    return {
        "id": id,
        "seq": entry.seq,
        "role": found.role,
        "tokens": session.view.tokens_of(meta.weight),
        "at": entry.at,
        "marks": sorted(found.marks),
        "origin": found.origin or None,
        "blocks": [describe_block(block, {}) for block in found.blocks],
        "why": msgspec.to_builtins(session.explain(id)),
    }


def text(opened: OpenSession, id: str, block: int = 0, offset: int = 0, *, shown: bool = False) -> dict[str, Any]:
    """Return a slice of one block: of a message as it was added, or of what an item shows."""
    session = opened.session
    if shown:
        index = place(opened, id)["index"]
        blocks = session.journal.show(session.view.items[index]).blocks if index is not None else ()
    else:
        blocks = session.message(id).blocks
    if not 0 <= block < len(blocks):
        raise NotFoundError(f"{id!r} has no block {block}", remedy=f"give 0 to {len(blocks) - 1}")
    return slice_of(full_text(blocks[block]), offset)
