"""Cuts that cannot fail: giant messages, media beyond a provider's limits, and the last resort."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from windowsill.budget import Budget
from windowsill.history.folds import BlockSpan, FoldKind, Proposal
from windowsill.history.marker import replace_block
from windowsill.history.view import Item, View, sum_weights
from windowsill.messages import Block, Document, Image, Message, OutputRef, Reasoning, Text, ToolResult, ToolUse
from windowsill.outputs.parts import ref_at
from windowsill.text import keep_ends
from windowsill.tokens import Scale, Weight

TRIES = 8
"""Each try comes closer to the size wanted; text is so uneven that one seldom suffices."""

SAFETY = 0.95
"""Aims a little below the size wanted, because head and tail may be denser than the whole."""

SHORTEST = 16
"""Tokens below which nothing useful is left of a text: a note of what it was stands there instead."""

SMALLEST_STRING = 120
"""Characters below which an argument of a call is left alone: ids, paths and flags stay whole."""

DEEPEST = 50
"""Levels of arguments that are looked into: what is nested further is left as it is."""

STRATEGY = "composer"

_OMITTED = re.compile(r"(\[\.\.\. data truncated: [\d,]+ [^\n\]]* omitted here) \.\.\.\]")
"""The note that `text.keep_ends` leaves where it cut."""

GIANT_SHARE = 0.5
"""A single message that takes more than half of what is left for messages is cut in the middle first."""

GIANT_TARGET = 0.8
"""Of that half, what a giant is cut to: well below, so that it is no giant again when there is a little less room."""

BYTES_SAFETY = 0.8
"""Aims below the bytes wanted: head and tail of a text may take more bytes for each token than its middle."""

SQUEEZES = 6
"""Times that the level is lowered for those that still give way."""

SLACK = 3
"""Tokens that a cut may miss its aim by."""

KEPT_OF_PINS = 40
"""Tokens that a pin and the task keep at least: cut in the middle they still say what they are about, less would be a
promise broken in silence. Where even that does not fit, it is an error."""

LOWEST_CAP = 12
"""Tokens a block keeps in the last resort: enough for a line that says how much was left out."""


def cut_block(block: Block, most: int, scale: Scale) -> Block | None:
    """Cut a block to `most` tokens; `None` when it cannot be made smaller."""
    # Blocks are weighed as messages of their own: what frames them is not text that could be cut.
    words = max(1, most - weigh(Text(text=""), scale))
    match block:
        case Text():
            shorter: Block = Text(text=cut_text(block.text, words, scale))
        case ToolResult():
            shorter = _cut_result(block, most, scale)
        case ToolUse():
            shorter = _cut_call(block, most, scale)
        case Document() if block.text:
            shorter = msgspec.structs.replace(block, raw=None, text=cut_text(block.text, words, scale))
        case _:
            shorter = Text(text=note(block))
    return shorter if weigh(shorter, scale) < weigh(block, scale) else None


def can_be_cut(block: Block) -> bool:
    """Tell whether a block may be shown in part; the others are there or not."""
    return isinstance(block, (Text, ToolResult, ToolUse)) or (isinstance(block, Document) and bool(block.text))


def weigh(block: Block, scale: Scale) -> int:
    """Count the tokens of one block."""
    return scale.tokens(scale.weigh(Message(role="user", blocks=(block,))))


def note(block: Block) -> str:
    """Describe in one line a block that is left out."""
    match block:
        case Image():
            return f"[image omitted: {block.media_type or 'by address'}{_size(block)}]"
        case Document():
            return f"[document omitted: {block.title or block.media_type or 'untitled'}{_size(block)}]"
        case Reasoning():
            return "[reasoning omitted]"
        case _:
            return f"[{len(block.raw or b''):,} bytes of {getattr(block, 'type', '') or 'content'} omitted]"


def _size(block: Image | Document) -> str:
    return f", {_bytes(block):,} bytes" if block.data else ""


def cut_text(text: str, most: int, scale: Scale) -> str:
    """Cut a text to `most` tokens."""
    tokens = scale.tokens(scale.weigh_text(text))
    if tokens <= most:
        return text
    keep = int(len(text) * most / tokens * SAFETY)
    for _ in range(TRIES):
        shorter = keep_ends(text, keep)
        size = scale.tokens(scale.weigh_text(shorter))
        if size <= most:
            return shorter
        keep = int(keep * most / size * SAFETY) - 1
        if keep <= 0:
            break
    return f"[{len(text):,} characters omitted]" if most >= SHORTEST else "[...]"


def _cut_result(block: ToolResult, most: int, scale: Scale) -> ToolResult:
    content = list(block.content)
    # The largest pieces give way first, so that a short exit status beside a long log survives.
    for index in sorted(range(len(content)), key=lambda each: -weigh(content[each], scale)):
        excess = weigh(_with(block, content), scale) - most
        if excess <= 0:
            break
        room = max(1, weigh(content[index], scale) - excess)
        content[index] = cut_block(content[index], room, scale) or content[index]
    return _with(block, content)


def _with(block: ToolResult, content: list[Block]) -> ToolResult:
    return msgspec.structs.replace(block, raw=None, content=tuple(content))


def _cut_call(block: ToolUse, most: int, scale: Scale) -> ToolUse:
    share = 1.0
    shorter = block
    for _ in range(TRIES):
        size = weigh(shorter, scale)
        if size <= most:
            return shorter
        share *= most / size * SAFETY
        shorter = _call(block, {key: _cut_value(value, share) for key, value in block.input.items()})
    return (
        shorter if weigh(shorter, scale) <= most else _call(block, {"_omitted": f"{len(block.arguments):,} characters"})
    )


def _call(block: ToolUse, input: dict[str, Any]) -> ToolUse:
    return msgspec.structs.replace(block, arguments=msgspec.json.encode(input).decode(), raw=None)


def _cut_value(value: Any, share: float) -> Any:
    """Cut an argument to a share of its length: strings wherever they stand, anything else as JSON text."""
    if isinstance(value, str):
        return _cut_string(value, share)
    try:
        text = msgspec.json.encode(value).decode()
    except RecursionError:
        return "[omitted: nested too deeply]"
    limit = max(SMALLEST_STRING, int(len(text) * share))
    if len(text) <= limit:
        return value
    smaller = _cut_strings(value, share)
    return smaller if len(msgspec.json.encode(smaller)) <= limit else keep_ends(text, limit)


def _cut_string(text: str, share: float) -> str:
    return keep_ends(text, max(SMALLEST_STRING, int(len(text) * share))) if len(text) > SMALLEST_STRING else text


def _cut_strings(value: Any, share: float, depth: int = 0) -> Any:
    if isinstance(value, str):
        return _cut_string(value, share)
    if depth >= DEEPEST:
        return value
    if isinstance(value, dict):
        return {key: _cut_strings(inner, share, depth + 1) for key, inner in value.items()}
    if isinstance(value, list):
        return [_cut_strings(inner, share, depth + 1) for inner in value]
    return value


def cut_giants(view: View, budget: Budget) -> Proposal | None:
    """Cut messages that alone would fill the window."""
    most = int((budget.limit - budget.fixed) * GIANT_SHARE)
    giants = [item for item in _cuttable(view) if view.tokens(item) > most]
    target = int(most * GIANT_TARGET)
    return _cut_to(
        view, [(item, target) for item in giants], reason=f"one message is larger than {most:,} tokens", refs=True
    )


def squeeze(view: View, budget: Budget) -> Proposal | None:
    """Cut the largest blocks of what is left to one size at which everything fits: the last resort.

    What turns out not to give way so far is taken as it is, and the others give way further.
    """
    items = _cuttable(view)
    excess = budget.fixed + view.tokens() - budget.limit
    if excess <= 0 or not items:
        return None
    room = max(0, view.tokens(*items) - excess)
    task = view.task_seq()
    caps: dict[int, int] = {}
    proposal = None
    for _ in range(SQUEEZES):
        held = sum(caps.values())
        free = [item for item in items if item.seq not in caps]
        cap = _level([view.tokens(item) for item in free], max(0, room - held))
        wanted = [
            (item, max(caps.get(item.seq, cap), KEPT_OF_PINS if item.pinned or item.seq == task else 0))
            for item in items
        ]
        proposal = _cut_to(view, wanted, reason="what must stay is larger than the window")
        saved: Counter[int] = Counter()
        for span in proposal.spans if proposal is not None else ():
            if isinstance(span, BlockSpan):
                saved[span.message] += view.tokens_of(view.weight - view.after([span]))
        left = {item.seq: view.tokens(item) - saved[item.seq] for item in free}
        stubborn = {seq: tokens for seq, tokens in left.items() if tokens > max(cap, LOWEST_CAP) + SLACK}
        if not stubborn or sum(left.values()) + held <= room:
            break
        caps |= stubborn
    return proposal


def cut_bytes(view: View, budget: Budget) -> Proposal | None:
    """Cut the largest messages so that the request has no more bytes on the wire than its provider takes."""
    items = _cuttable(view)
    excess = view.weight.bytes - (budget.room_bytes or 0)
    if excess <= 0 or not items or budget.room_bytes is None:
        return None
    sizes = [item.weight.bytes for item in items]
    cap = _level(sizes, max(0, sum(sizes) - excess))
    # Tokens are what can be cut to: the share of the bytes that may stay is the share of the tokens.
    caps = [(item, int(view.tokens(item) * cap * BYTES_SAFETY / item.weight.bytes)) for item in items]
    heavy = [(item, most) for item, most in caps if item.weight.bytes > cap]
    return _cut_to(view, heavy, reason=f"the request is larger than {budget.limits.bytes:,} bytes")


def _cuttable(view: View) -> list[Item]:
    """Return what may be cut when there is no other way: all but leading system messages and stand-ins."""
    return [item for item in view.items[view.leading() :] if not item.fold]


def _level(sizes: list[int], room: int) -> int:
    """Return the largest size at which cutting everything above it makes the sum fit `room`."""
    left = room
    for place, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - place)
        if size > share:
            return share
        left -= size
    return max(sizes, default=0)


def _cut_to(view: View, caps: Iterable[tuple[Item, int]], *, reason: str, refs: bool = False) -> Proposal | None:
    """Cut each item to about so many tokens; with `refs` say where the whole of an output is read, if there is room."""
    scale = view.scale
    spans: list[BlockSpan] = []
    blocks: list[Block] = []
    for item, most in caps:
        shown, whole = view.read(item).blocks, view.whole(item).blocks
        for number, shorter in _shorten(shown, whole, view.tokens(item) - max(LOWEST_CAP, most), scale):
            shortened = _with_ref(shorter, item, whole[: number + 1]) if refs else shorter
            spans.append(replace_block(view, item, number, shown[number], shortened))
            blocks.append(shortened)
    return _proposal("truncate", reason, spans, blocks)


def _with_ref(shorter: Block, item: Item, blocks: Sequence[Block]) -> Block:
    """Make a shorter result say under which ref the whole is read; `blocks` are those of its message up to it."""
    if not isinstance(shorter, ToolResult):
        return shorter
    number = sum(isinstance(block, ToolResult) for block in blocks)
    ref = OutputRef(id=ref_at(item.seq, number, of=len(item.results)))
    content = tuple(
        Text(text=_OMITTED.sub(rf"\1; ref={ref.id}]", inner.text, count=1)) if isinstance(inner, Text) else inner
        for inner in shorter.content
    )
    return msgspec.structs.replace(shorter, content=content, ref=ref)


def _shorten(shown: Sequence[Block], whole: Sequence[Block], excess: int, scale: Scale) -> Iterator[tuple[int, Block]]:
    """Shorten blocks so that `excess` tokens are gone.

    What can only go whole, such as a picture, goes first where it is larger than its share; texts share what is left.
    What was cut before is cut anew from the whole, so that no cut is cut again.
    """
    sizes = [weigh(block, scale) for block in shown]
    room = max(0, sum(sizes) - excess)
    share = _level(sizes, room)
    texts = [number for number, block in enumerate(whole) if can_be_cut(block)]
    for number in sorted(set(range(len(whole))) - set(texts)):
        if sizes[number] > share and (noted := cut_block(whole[number], LOWEST_CAP, scale)) is not None:
            yield number, noted
            sizes[number] = weigh(noted, scale)
    left = room - sum(size for number, size in enumerate(sizes) if number not in texts)
    share = max(LOWEST_CAP, _level([sizes[number] for number in texts], max(0, left)))
    for number in texts:
        shorter = cut_block(whole[number], share, scale) if sizes[number] > share else None
        if shorter is not None and weigh(shorter, scale) < sizes[number]:
            yield number, shorter


def drop_media(view: View, budget: Budget) -> Proposal | None:
    """Replace the oldest images and documents by notes until their number, size and the request's bytes fit."""
    limits = budget.limits
    count, size = view.weight.media, view.weight.bytes
    spans: list[BlockSpan] = []
    blocks: list[Block] = []
    for item in view.items:
        if item.fold or not item.weight.media:
            continue
        for number, block in enumerate(view.read(item).blocks):
            media = list(_media(block))
            too_many = limits.media is not None and count > limits.media
            too_heavy = budget.room_bytes is not None and size > budget.room_bytes
            too_large = limits.media_bytes is not None and any(_bytes(each) > limits.media_bytes for each in media)
            if not media or not (too_many or too_heavy or too_large):
                continue
            stand_in = _without_media(block)
            spans.append(replace_block(view, item, number, block, stand_in))
            blocks.append(stand_in)
            count -= spans[-1].saves.media
            size -= spans[-1].saves.bytes
    return _proposal("mask", "more or larger media than the provider accepts", spans, blocks)


def over_limits(view: View, budget: Budget) -> bool:
    """Tell whether bytes or media pass a provider's limit."""
    weight, limits = view.weight, budget.limits
    return bool(
        (budget.room_bytes is not None and weight.bytes > budget.room_bytes)
        or (limits.media is not None and weight.media > limits.media)
        or (limits.media_bytes is not None and weight.media_bytes > limits.media_bytes and drop_media(view, budget))
    )


def _media(block: Block) -> Iterator[Image | Document]:
    if isinstance(block, (Image, Document)):
        yield block
    elif isinstance(block, ToolResult):
        for inner in block.content:
            yield from _media(inner)


def _bytes(block: Image | Document) -> int:
    return len(block.data or "") * 3 // 4


def _without_media(block: Block) -> Block:
    if isinstance(block, (Image, Document)):
        return Text(text=note(block))
    if isinstance(block, ToolResult):
        return msgspec.structs.replace(block, raw=None, content=tuple(_without_media(inner) for inner in block.content))
    return block


def _proposal(kind: FoldKind, reason: str, spans: list[BlockSpan], blocks: list[Block]) -> Proposal | None:
    if not spans or sum_weights(span.saves for span in spans) == Weight():
        return None
    return Proposal(kind=kind, reason=reason, strategy=STRATEGY, spans=tuple(spans), stand_ins=tuple(blocks))
