"""Check a fold before it is written: a plug-in may propose anything, but not everything gets into the journal.

What a fold weighs and saves is counted here, not believed.
"""

from __future__ import annotations

import itertools
from typing import get_args

import msgspec

from windowsill.errors import FoldError
from windowsill.history.folds import (
    BlockSpan,
    FoldKind,
    MessageSpan,
    Proposal,
    Span,
    StandIn,
    pack_stand_ins,
    unpack_stand_ins,
)
from windowsill.history.marker import Facts, replace_block
from windowsill.history.units import units
from windowsill.history.view import View, sum_weights
from windowsill.messages import Block, Message, ToolResult, ToolUse
from windowsill.secrets.documents import redact_for_reading, redact_value
from windowsill.text import type_name
from windowsill.tokens import Weight


def check_fold(view: View, proposal: Proposal) -> Proposal:
    """Return the fold as it may be written: checked as a plan is, and without secrets."""
    _check_form(proposal)
    return _check_places(view, _without_secrets(proposal))


def check_plan(view: View, proposal: Proposal) -> Proposal:
    """Return the proposal with its true weights; `FoldError` when it would break something or save nothing."""
    _check_form(proposal)
    return _check_places(view, proposal)


def _check_places(view: View, proposal: Proposal) -> Proposal:
    spans = tuple(_span(view, span, stand) for span, stand in zip(proposal.spans, proposal.stand_ins, strict=True))
    _check_apart(spans)
    runs = [span for span in spans if isinstance(span, MessageSpan)]
    if runs:
        _check_runs(view, runs)
    after = view.after(spans)
    if view.tokens_of(after) >= view.tokens() and after.bytes >= view.weight.bytes:
        raise FoldError(f"{proposal.kind} does not make the view smaller", remedy="fold more, or write less")
    return msgspec.structs.replace(proposal, spans=spans)


def _check_form(proposal: Proposal) -> None:
    if not isinstance(proposal, Proposal) or proposal.kind not in get_args(FoldKind):
        raise FoldError("not a fold", remedy="propose a Proposal of kind " + ", ".join(get_args(FoldKind)))
    if not proposal.spans or len(proposal.spans) != len(proposal.stand_ins):
        raise FoldError("a fold needs spans, and one stand-in for each", remedy="give None where nothing stands in")
    if proposal.briefs and len(proposal.briefs) != len(proposal.spans):
        raise FoldError("a fold needs one brief for each span, or none", remedy="give None where nothing is written")
    _check_words(proposal)


def _check_words(proposal: Proposal) -> None:
    """Refuse what the journal could write but not read again: a session that cannot be opened is a session lost."""
    for name in ("strategy", "reason"):
        text = getattr(proposal, name)
        if not isinstance(text, str) or (not text.isascii() and any("\ud800" <= sign <= "\udfff" for sign in text)):
            raise FoldError(f"the {name} of a fold is not a text", remedy="give a str that UTF-8 can hold")
    for span in proposal.spans:
        if isinstance(span, MessageSpan) and span.facts:
            try:
                msgspec.convert(span.facts, Facts)
                msgspec.json.encode(span.facts)
            except (msgspec.ValidationError, TypeError, ValueError) as error:
                raise FoldError(f"invalid facts of a fold: {error}", remedy="leave them out") from None
    try:
        unpack_stand_ins(pack_stand_ins(proposal.stand_ins))
    except Exception as error:  # noqa: BLE001 - a plug-in may put anything into a message
        what = f"what stands in cannot be kept: {type(error).__name__}: {error}"
        raise FoldError(what, remedy="give sound messages") from None


def _without_secrets(proposal: Proposal) -> Proposal:
    """Take secrets out of what stands for messages: every summary comes through here, whoever wrote it.

    What stands for a part of a message is left alone: it shows words of a message that is visible.
    """
    stand_ins = tuple(
        redact_for_reading(stand) if isinstance(span, MessageSpan) and isinstance(stand, Message) else stand
        for span, stand in zip(proposal.spans, proposal.stand_ins, strict=True)
    )
    spans = tuple(
        msgspec.structs.replace(span, facts=redact_value(span.facts)) if isinstance(span, MessageSpan) else span
        for span in proposal.spans
    )
    return msgspec.structs.replace(proposal, spans=spans, stand_ins=stand_ins)


def _span(view: View, span: Span, stand_in: StandIn) -> Span:
    if isinstance(span, MessageSpan):
        return _run(view, span, stand_in)
    if isinstance(span, BlockSpan):
        return _part(view, span, stand_in)
    raise FoldError(f"{type_name(span)} is not a span", remedy="use MessageSpan or BlockSpan")


def _run(view: View, run: MessageSpan, stand_in: StandIn) -> MessageSpan:
    if stand_in is not None and not isinstance(stand_in, Message):
        raise FoldError("what stands in for messages is not a message", remedy="give a Message or None")
    items = view.items[view.slice_of(run.first, run.last)]
    weight = view.weigh(stand_in) if stand_in is not None else Weight()
    return msgspec.structs.replace(
        run,
        hides=sum(item.hides if item.fold else 1 for item in items),
        saves=sum_weights(item.weight for item in items) - weight,
        weight=weight,
        role=stand_in.role if stand_in is not None else "user",
        calls=tuple(call.id for call in stand_in.calls) if stand_in is not None else (),
        results=tuple(result.tool_use_id for result in stand_in.results) if stand_in is not None else (),
    )


def _part(view: View, part: BlockSpan, stand_in: StandIn) -> BlockSpan:
    index = view.position(part.message)
    if index is None:
        raise FoldError(f"message {part.message} is not visible", remedy="fold what the view shows")
    item = view.items[index]
    if item.pinned:
        raise FoldError("a fold may not hide what is pinned", remedy="leave it out, or take the pin off")
    blocks = view.read(item).blocks
    if not 0 <= part.block < len(blocks):
        raise FoldError(f"message {item.id!r} has no block {part.block}", remedy=f"give 0 to {len(blocks) - 1}")
    if stand_in is None or isinstance(stand_in, Message) or not isinstance(stand_in, get_args(Block)):
        raise FoldError("what stands in for a block is not a block", remedy="give a Text, a ToolResult or the like")
    shown = blocks[part.block]
    if _pair(shown) != _pair(stand_in):
        raise FoldError(
            "a fold may not break a call from its result", remedy="replace it by one of the same kind and id"
        )
    return replace_block(view, item, part.block, shown, stand_in)


def _pair(block: Block) -> tuple[str, str]:
    if isinstance(block, ToolUse):
        return "call", block.id
    return ("result", block.tool_use_id) if isinstance(block, ToolResult) else ("", "")


def _check_apart(spans: tuple[Span, ...]) -> None:
    """Refuse two spans of one fold that touch the same thing."""
    taken: set[tuple[int, int]] = set()
    runs = sorted((span.first, span.last) for span in spans if isinstance(span, MessageSpan))
    overlap = any(later[0] <= earlier[1] for earlier, later in itertools.pairwise(runs))
    for span in spans:
        if isinstance(span, BlockSpan):
            overlap = overlap or (span.message, span.block) in taken
            overlap = overlap or any(first <= span.message <= last for first, last in runs)
            taken.add((span.message, span.block))
    if overlap:
        raise FoldError("spans of one fold overlap", remedy="give each message to one span")


def _check_runs(view: View, runs: list[MessageSpan]) -> None:
    found = units(view.items)
    starts = {unit.start for unit in found}
    task = view.task()
    for run in runs:
        where = view.slice_of(run.first, run.last)
        if any(unit.open and where.start < unit.stop and unit.start < where.stop for unit in found):
            raise FoldError("a fold may not hide a call that is still running", remedy="wait for its result")
        if where.start not in starts or (where.stop not in starts and where.stop != len(view.items)):
            raise FoldError(
                f"messages {run.first} to {run.last} split a tool call from its result",
                remedy="take calls with all their results; windowsill.strategies.foldable_units names what may go",
            )
        if task is not None and where.start <= task < where.stop:
            raise FoldError("a fold may not hide the task", remedy="leave the first user message out of it")
        if any(item.pinned for item in view.items[where]):
            raise FoldError("a fold may not hide what is pinned", remedy="leave it out, or take the pin off")
