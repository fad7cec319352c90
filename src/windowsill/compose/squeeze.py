"""Cuts that cannot fail: media beyond a provider's limits, messages that are larger than the window, the last resort.

All of them take time in proportion to what they cut.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from windowsill.budget import Budget
from windowsill.history.folds import FoldKind, Proposal, Span, StandIn
from windowsill.history.proposals import gather, hide, replace_block
from windowsill.history.view import Item, View, sum_weights, units
from windowsill.messages import (
    ORIGIN,
    Block,
    Document,
    Image,
    Message,
    Origin,
    OutputRef,
    Reasoning,
    Text,
    ToolResult,
    ToolUse,
    text_message,
    text_of,
)
from windowsill.outputs.parts import ref_at
from windowsill.outputs.structure import share_room
from windowsill.strategies import foldable_units
from windowsill.strategies.base import held_places, join_neighbours
from windowsill.strategies.selection import notice
from windowsill.strategies.working_set import FACTS, list_lines, list_names, words_said
from windowsill.text import count_of, cut_middle, keep_ends
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

CLOSE = 0.9
"""A cut that leaves this share of what it may leave is close enough."""

BYTES_SAFETY = 0.8
"""Aims below the bytes wanted: head and tail of a text may take more bytes for each token than its middle."""

SQUEEZES = 4
"""Times that the level is lowered for those that still give way."""

SLACK = 3
"""Tokens that a cut may miss its aim by."""

KEPT_OF_PINS = 40
"""Tokens that a pin keeps at least, and the task, the request and instructions while others give way: cut in the middle
they still say what they are about, less would be a promise broken in silence."""

LOWEST_CAP = 12
"""Tokens a block keeps while there is another way: enough for a line that says how much was left out."""

LESSER_SHARE = 4
"""A quarter of the room is for what ranks lower, where that wants so much: a result that nobody can read is no use to
the request that asked for it."""

LEFT_SHARE = 12
"""A twelfth of the room for messages is left free where something has to be cut: what was just read is needed
now, and can be folded as soon as the model has seen it."""

NAMES_SHARE = 8
"""An eighth of what is left of an output names what was cut out of it: paths, ids and numbers that the next call may
need, where its ends are only its ends."""

ENDS_SHARE = 3
"""A third of the rest shows its ends; the others are passages that have words that were said: what is being worked
on. This and the shares above were tuned on the half of the recorded sessions that docs/strategies.md names."""

FEWEST_FOR_NAMES = 50
"""Tokens of a cut output below which it has none."""

MOST_BLOCKS = 200
"""Blocks of a message that are cut one by one; one of more becomes a single text."""

MOST_NAMED = 5
"""Messages that a reason names."""

MEDIA_BATCH = 0.3
"""The share of a provider's limit for media and bytes that goes at a time."""

LINE = 400
"""Characters of a call and of its result in a text that stands for both."""


def cut_block(block: Block, most: int, scale: Scale, said: Mapping[str, float] = MappingProxyType({})) -> Block | None:
    """Cut a block to `most` tokens, a result to passages with words that were `said`; `None` if it gets no smaller."""
    # Blocks are weighed as messages of their own: what frames them is not text that could be cut.
    words = max(1, most - weigh(Text(text=""), scale))
    match block:
        case Text():
            # White space at the end of a last answer is refused.
            shorter: Block = Text(text=cut_text(block.text, words, scale).rstrip())
        case ToolResult():
            shorter = _cut_result(block, most, scale, said)
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
    keep, best = int(len(text) * most / tokens * SAFETY), ""
    for _ in range(TRIES):
        if keep <= 0:
            break
        shorter = keep_ends(text, keep)
        size = scale.tokens(scale.weigh_text(shorter))
        if size <= most:
            best = shorter
            if size >= most * CLOSE:
                break
        elif best:
            break
        keep = int(keep * most / size * SAFETY) - 1
    if best:
        return best
    return f"[{len(text):,} characters omitted]" if most >= SHORTEST else "[...]"


def _cut_result(block: ToolResult, most: int, scale: Scale, said: Mapping[str, float]) -> ToolResult:
    sizes = [weigh(inner, scale) for inner in block.content]
    room = most - weigh(block, scale) + sum(sizes)
    if len(sizes) > 1 and (len(sizes) > MOST_BLOCKS or len(sizes) * LOWEST_CAP > room):
        joined = Text(text="\n".join(inner.text if isinstance(inner, Text) else note(inner) for inner in block.content))
        return _cut_result(_with(block, [joined]), most, scale, said)
    # The largest pieces give way first, so that a short exit status beside a long log survives.
    share = max(1, share_room(sizes, max(0, room)))
    return _with(
        block,
        [
            (_cut_inner(inner, share, scale, said) if size > share else None) or inner
            for inner, size in zip(block.content, sizes, strict=True)
        ],
    )


def _cut_inner(inner: Block, most: int, scale: Scale, said: Mapping[str, float]) -> Block | None:
    """Cut a part of an output to its ends, passages about what was said, and the names of the rest."""
    if not isinstance(inner, Text) or most < FEWEST_FOR_NAMES:
        return cut_block(inner, most, scale)
    room, count = most // NAMES_SHARE - LOWEST_CAP, scale.counter.count
    lines = most - most // NAMES_SHARE
    passages = lines - lines // ENDS_SHARE if said else 0
    ends = cut_block(inner, lines - passages, scale)
    if not isinstance(ends, Text):
        return ends
    shown = ends.text
    if found := list_lines(inner.text, shown, said, passages - LOWEST_CAP, count):
        shown += "\n[lines of what was omitted:]\n" + "\n".join(found)
    if names := list_names(inner.text, shown, room, count):
        shown += f"\n[names in what was omitted: {' '.join(names)}]"
    return Text(text=shown)


def _with(block: ToolResult, content: list[Block]) -> ToolResult:
    return msgspec.structs.replace(block, raw=None, content=tuple(content))


def _cut_call(block: ToolUse, most: int, scale: Scale) -> ToolUse:
    if most >= LOWEST_CAP and len(block.arguments) <= SMALLEST_STRING:
        return block
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


def squeeze(view: View, budget: Budget, *, hard: bool = False) -> Proposal | None:
    """Cut what must stay so that it fits: the largest first, and what ranks higher as late and as little as possible.

    The whole view then has about as many tokens as `aim` allows. What turns out not to give way so far is taken as it
    is, and the others give way further. `hard` leaves of each block, but of no pin, as little as a sign.
    """
    items = [item for item in view.items[view.leading() :] if not item.is_empty]
    sizes = dict(zip((item.first for item in items), view.each(items), strict=True))
    excess = budget.fixed + view.tokens() - _aim(view, budget, list(sizes.values()))
    if excess <= 0:
        return None
    ranks = _ranks(view, items)
    lowest = 1 if hard else LOWEST_CAP
    stubborn: dict[int, int] = {}
    found: dict[int, list[_Cut]] = {}
    # Where every request is made anew, one text has to do for many turns, whatever is said meanwhile.
    said = {} if budget.step else words_said(view, view.items)
    for _ in range(SQUEEZES):
        caps = _caps(sizes, ranks, max(0, sum(sizes.values()) - excess), stubborn)
        left = dict(sizes)
        for item in items:
            seq, rank = item.first, ranks[item.first]
            cap = max(caps.get(seq, sizes[seq]), KEPT_OF_PINS if rank == PINNED or (rank and not hard) else lowest)
            if seq in stubborn or sizes[seq] <= cap:
                continue
            found[seq] = _cut_item(view, item, cap, lowest, said)
            left[seq] -= view.tokens_of(view.weight - view.after([cut.span for cut in found[seq]]))
        more = {seq: size for seq, size in left.items() if seq in caps and size > caps[seq] + SLACK}
        if not more or sum(left.values()) <= sum(sizes.values()) - excess:
            break
        stubborn |= more
    written = [item for item in items if found.get(item.first) and (item.own or item.role == "system")]
    return _proposal("truncate", _reason(written), [cut for cuts in found.values() for cut in cuts])


class _Cut(NamedTuple):
    """A part of the view with what is to stand there instead."""

    span: Span
    shown: StandIn


PINNED, HELD = 2, 1
"""Ranks: what a pin holds, and what is held as long as others can give way; anything else has none."""


def _ranks(view: View, items: Iterable[Item]) -> dict[int, int]:
    # A text that stands for many messages says more for its tokens than one of them.
    held = {view.items[place].first for place in held_places(view)} | {item.first for item in items if item.hides > 1}
    return {item.first: PINNED if item.pinned else HELD if item.first in held else 0 for item in items}


def _aim(view: View, budget: Budget, sizes: Sequence[int]) -> int:
    """Return the tokens to cut to.

    In a session a cut stays, so it leaves a part of the room for messages: the next turns need not cut again, and the
    ends of something larger than the window are worth less than they cost. A caller who sends the whole list again has
    the budget filled, less what else is in the list, in steps: so many calls cut alike.
    """
    if not budget.step:
        systems = view.tokens_of(sum_weights(item.weight for item in view.items[: view.leading()]))
        return budget.limit - max(0, budget.limit - budget.fixed - systems) // LEFT_SHARE
    others = view.tokens() - max(sizes, default=0)
    return min(budget.limit, max(budget.limit - (-others % budget.step), budget.fixed + others))


def _caps(sizes: Mapping[int, int], ranks: Mapping[int, int], room: int, stubborn: Mapping[int, int]) -> dict[int, int]:
    """Return the most tokens of each that can give way: one level for a rank, the highest rank served first."""
    caps: dict[int, int] = {}
    room -= sum(stubborn.values())
    for rank in (PINNED, HELD, 0):
        group = [size for seq, size in sizes.items() if ranks[seq] == rank and seq not in stubborn]
        below = sum(size for seq, size in sizes.items() if ranks[seq] < rank and seq not in stubborn)
        cap = share_room(group, max(0, room - min(below, room // LESSER_SHARE)))
        caps |= {seq: cap for seq in sizes if ranks[seq] == rank and seq not in stubborn}
        room -= sum(min(size, cap) for size in group)
    return caps


def _reason(written: Sequence[Item]) -> str:
    """Say why there is a cut, and which messages that somebody wrote it shortens."""
    reason = "what must stay is larger than the window"
    if written:
        reason += "; shown in part: " + ", ".join(
            f"{'instruction' if item.role == 'system' else 'user message'} {item.id}" for item in written[:MOST_NAMED]
        )
        if len(written) > MOST_NAMED:
            reason += f" and {len(written) - MOST_NAMED} more"
    return reason


def collapse(view: View, budget: Budget) -> Proposal | None:
    """Hide all that may go behind one line, or without any where even that does not fit."""
    del budget
    runs = [view.items[unit.start : unit.stop] for unit in join_neighbours(foldable_units(view))]
    runs = [run for run in runs if not all(item.is_empty for item in run)]
    if not runs:
        return None
    line = notice(sum(item.hides or 1 for run in runs for item in run))
    worth = view.tokens_of(sum_weights(item.weight for item in runs[0])) > view.tokens_of(view.weigh(line))
    shown = [line if worth and not number else None for number in range(len(runs))]
    return _proposal(
        "truncate",
        "what may go was hidden to the last message: the rest alone is larger than the window",
        [_hidden(view, run, stand_in) for run, stand_in in zip(runs, shown, strict=True)],
    )


def hide_held(view: View, budget: Budget) -> Proposal | None:
    """Hide instructions, then the task and the request, oldest first, until the rest fits: the last but one resort."""
    last = units(view.items)[-1].start
    places = [place for place in held_places(view) if place < last and not view.items[place].pinned]
    excess = budget.fixed + view.tokens() - min(budget.high, budget.limit)
    runs: list[_Cut] = []
    for place in sorted(places, key=lambda each: (view.items[each].role != "system", each)):
        if excess <= 0:
            break
        item = view.items[place]
        excess -= view.tokens(item)
        runs.append(_hidden(view, [item], None))
    reason = f"{count_of(len(runs), 'message')} with instructions or requests did not fit the window at all"
    return _proposal("truncate", reason, runs)


def hide_passing(view: View, items: Sequence[Item]) -> Proposal | None:
    """Hide context whose turn is over; nothing stands in its place."""
    return _proposal("truncate", "context of an earlier step", [_hidden(view, [item], None) for item in items])


def tell_in_words(view: View, budget: Budget) -> Proposal | None:
    """Let one text stand for the calls and results at the end: all of them have frames, which cannot be cut."""
    last = units(view.items)[-1]
    items = view.items[last.start : last.stop]
    calls = sum(len(item.calls) for item in items)
    if not calls or any(item.pinned for item in items):
        return None
    room = min(budget.high, budget.limit) - budget.fixed - view.tokens() + view.tokens(*items)
    lines = [f"[{calls:,} tool calls and their results, told in short:]"]
    for message in map(view.whole, items):
        for block in message.blocks:
            words = text_of((block,)).strip()
            if isinstance(block, ToolUse):
                words = f"{block.name}({block.arguments})"
            lines.append(cut_middle(words, LINE))
    text = "\n".join(line for line in lines if line)
    frame = weigh(Text(text=""), view.scale)
    stand_in = text_message("user", cut_text(text, max(1, room - frame), view.scale), metadata={ORIGIN: Origin.MARKER})
    return _proposal(
        "truncate", f"{calls:,} calls of one answer do not fit the window", [_hidden(view, items, stand_in)]
    )


def _hidden(view: View, items: Sequence[Item], stand_in: Message | None) -> _Cut:
    """Hide neighbours behind a message, or behind nothing."""
    return _Cut(hide(view, items, gather(view, items), stand_in), stand_in)


def cut_bytes(view: View, budget: Budget) -> Proposal | None:
    """Cut the largest messages so that the request has no more bytes on the wire than its provider takes."""
    items = [item for item in view.items[view.leading() :] if not item.is_empty]
    excess = view.weight.bytes - (budget.room_bytes or 0)
    if excess <= 0 or not items or budget.room_bytes is None:
        return None
    sizes = [item.weight.bytes for item in items]
    cap = share_room(sizes, max(0, sum(sizes) - excess))
    # Tokens are what can be cut to: the share of the bytes that may stay is the share of the tokens.
    caps = [(item, int(view.tokens(item) * cap * BYTES_SAFETY / item.weight.bytes)) for item in items]
    cuts = [
        cut for item, most in caps if item.weight.bytes > cap for cut in _cut_item(view, item, most, LOWEST_CAP, {})
    ]
    return _proposal("truncate", f"the request is larger than {budget.limits.bytes:,} bytes", cuts)


def _cut_item(view: View, item: Item, most: int, lowest: int, said: Mapping[str, float]) -> list[_Cut]:
    """Cut an item to about so many tokens: block by block, or as one text where it is a stand-in or has many blocks."""
    scale, shown = view.scale, view.read(item)
    if item.fold or (len(shown.blocks) > MOST_BLOCKS and not item.calls and not item.results):
        text = "\n".join(block.text if isinstance(block, Text) else note(block) for block in shown.blocks)
        words = cut_text(text, max(1, most - weigh(Text(text=""), scale)), scale)
        origin = shown.origin or Origin.MARKER
        cut = _hidden(view, [item], text_message(item.role, words, metadata={**shown.metadata, ORIGIN: origin}))
        if item.fold:
            # The numbers of a working set say where its lines stood in the whole text.
            facts = {name: value for name, value in item.facts.items() if name != FACTS}
            cut = _Cut(msgspec.structs.replace(cut.span, facts=facts), cut.shown)
        return [cut] if view.tokens_of(view.weight) > view.tokens_of(view.weight - cut.span.saves) else []
    whole = view.whole(item).blocks
    cuts: list[_Cut] = []
    for number, shorter in _shorten(shown.blocks, whole, view.tokens(item) - most, lowest, scale, said):
        block = _with_ref(shorter, item, whole[: number + 1])
        if weigh(block, scale) >= weigh(shown.blocks[number], scale):
            block = shorter
        cuts.append(_Cut(replace_block(view, item, number, shown.blocks[number], block), block))
    return cuts


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


def _shorten(
    shown: Sequence[Block],
    whole: Sequence[Block],
    excess: int,
    lowest: int,
    scale: Scale,
    said: Mapping[str, float],
) -> Iterator[tuple[int, Block]]:
    """Shorten blocks so that `excess` tokens are gone.

    What can only go whole, such as a picture, goes first where it is larger than its share; texts share what is left.
    What was cut before is cut anew from the whole, so that no cut is cut again.
    """
    sizes = [weigh(block, scale) for block in shown]
    room = max(0, sum(sizes) - excess)
    share = share_room(sizes, room)
    texts = [number for number, block in enumerate(whole) if can_be_cut(block)]
    for number in sorted(set(range(len(whole))) - set(texts)):
        if sizes[number] > share and (noted := cut_block(whole[number], LOWEST_CAP, scale)) is not None:
            yield number, noted
            sizes[number] = weigh(noted, scale)
    left = room - sum(size for number, size in enumerate(sizes) if not can_be_cut(whole[number]))
    share = max(lowest, share_room([sizes[number] for number in texts], max(0, left)))
    for number in texts:
        shorter = cut_block(whole[number], share, scale, said) if sizes[number] > share else None
        if shorter is not None and weigh(shorter, scale) < sizes[number]:
            yield number, shorter


def drop_media(view: View, budget: Budget) -> Proposal | None:
    """Replace the oldest images and documents by notes until their number, size and the request's bytes fit.

    They go in batches, so that an agent that adds a picture at every turn keeps its cached prefix for many of them.
    """
    limits = budget.limits
    count, size = view.weight.media, view.weight.bytes
    most, largest = _below(count, limits.media), _below(size, budget.room_bytes)
    cuts: list[_Cut] = []
    for item in view.items:
        if item.fold or not item.weight.media:
            continue
        for number, block in enumerate(view.read(item).blocks):
            media = list(_media(block))
            too_large = limits.media_bytes is not None and any(_bytes(each) > limits.media_bytes for each in media)
            if not media or not (count > most or size > largest or too_large):
                continue
            stand_in = _without_media(block)
            span = replace_block(view, item, number, block, stand_in)
            cuts.append(_Cut(span, stand_in))
            count -= span.saves.media
            size -= span.saves.bytes
    return _proposal("mask", "more or larger media than the provider accepts", cuts)


def _below(value: int, limit: int | None) -> float:
    """Return how much may stay: what is within the limit, of what is beyond it whole batches less."""
    if limit is None or value <= limit:
        return math.inf if limit is None else limit
    batch = max(1, int(limit * MEDIA_BATCH))
    return value - math.ceil((value - limit) / batch) * batch


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


def _proposal(kind: FoldKind, reason: str, cuts: Sequence[_Cut]) -> Proposal | None:
    if not cuts or sum_weights(cut.span.saves for cut in cuts) == Weight():
        return None
    spans, stand_ins = zip(*cuts, strict=True)
    return Proposal(kind=kind, reason=reason, strategy=STRATEGY, spans=spans, stand_ins=stand_ins)
