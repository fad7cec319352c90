"""Folds: what is hidden, what stands in its place, who decided it, and what it saved.

A fold hides runs of messages or parts of one message. It changes nothing that was added: removing it, or one of its
spans, shows again exactly what was there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from windowsill.history.entries import reader
from windowsill.messages import Block, Message, Role
from windowsill.tokens import Weight

FoldKind: TypeAlias = Literal["condense", "truncate", "prune", "mask"]


class MessageSpan(msgspec.Struct, frozen=True, array_like=True, tag="run"):
    """Messages `first` to `last` (entry numbers) are hidden; a stand-in of `weight` is shown instead."""

    first: int
    last: int
    hides: int
    """The number of hidden messages, those inside inner folds included."""
    saves: Weight
    """The weight of what was visible there before, less the stand-in."""
    weight: Weight
    role: Role = "user"
    calls: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    facts: dict[str, Any] = {}
    """The facts about the hidden messages (see `history.proposals`), so that the next fold need not read them again."""


class BlockSpan(msgspec.Struct, frozen=True, array_like=True, tag="part"):
    """Block number `block` of message `message` is replaced; `saves` is the weight of the original less the new one."""

    message: int
    block: int
    saves: Weight


Span: TypeAlias = MessageSpan | BlockSpan


def ends(span: Span) -> tuple[int, int]:
    """Return the first and the last message that a span touches."""
    return (span.first, span.last) if isinstance(span, MessageSpan) else (span.message, span.message)


def count_touched(spans: tuple[Span, ...]) -> int:
    """Count the messages that these spans hide or cut, those inside inner folds included."""
    cut = {span.message for span in spans if isinstance(span, BlockSpan)}
    return len(cut) + sum(span.hides for span in spans if isinstance(span, MessageSpan))


class Fold(msgspec.Struct, frozen=True, array_like=True):
    """One reduction, as the journal keeps it. The stand-ins, which may be large, are in the entry's body."""

    kind: FoldKind
    strategy: str
    reason: str
    spans: tuple[Span, ...]
    before: int
    """Tokens of the view before."""
    after: int
    """Tokens of the view after."""


class Unfold(msgspec.Struct, frozen=True, array_like=True):
    """Spans of a fold that no longer apply."""

    fold: int
    fold_id: str
    spans: tuple[int, ...]
    reason: str = ""


StandIn: TypeAlias = Message | Block | None


Style: TypeAlias = Literal["summary", "compact", "condense", "state"]
"""The kind of text to write: a running summary, retain and summary, a summary in sections, or a JSON object."""


class Brief(msgspec.Struct, frozen=True, kw_only=True):
    """The request to a writer for a text that stands for a run of messages."""

    style: Style = "summary"
    room: int = 0
    """The most tokens it may have; 0 leaves that to the writer, who always stays below what is hidden."""
    record: int = 0
    """The tokens beyond `room` that the record may take: rules, words and decisions of the user, marks, failures, open
    questions. The composer sets it, from what is free below the low mark."""
    instructions: str = ""
    """The user's own prompt in the place of the style's."""
    directives: tuple[str, ...] = ()
    """Further wishes, which follow the prompt one by one."""
    schema: dict[str, Any] | None = None
    """The schema of the object, for `state`."""
    model: str | None = None
    """The model that writes it, where that is not the writer's own."""
    beside: bool = False
    """True for words of a model beside a stand-in that is whole without them, with the record and the details."""
    needed: bool = True
    """False when code alone shall write it: in an emergency no model is asked."""


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A fold as a strategy proposes it: spans with what should stand in their place."""

    kind: FoldKind
    reason: str
    strategy: str
    spans: tuple[Span, ...]
    stand_ins: tuple[StandIn, ...]
    briefs: tuple[Brief | None, ...] = ()
    """For each span the text to write, if any; its stand-in remains when that fails."""


_encode = msgspec.msgpack.Encoder().encode


def pack_stand_ins(stand_ins: tuple[StandIn, ...]) -> bytes:
    """Encode stand-ins as the body of a fold's entry. A block travels inside a message of its own."""
    return _encode(
        tuple(
            item if item is None or isinstance(item, Message) else Message(role="user", blocks=(item,))
            for item in stand_ins
        )
    )


unpack_stand_ins = reader(tuple[Message | None, ...])
"""Decode the stand-ins of all spans. That of a `BlockSpan` is a message with one block."""


class PastEdit(msgspec.Struct, frozen=True, array_like=True):
    """An edit of the history before the messages between these two entries.

    Some models take their signed reasoning back only with the past it was written after. A fold edits the past of what
    was said before it was made; removing it gives that past back, and edits that of what was said while it applied.
    """

    after: int
    before: int


def edits_by(seq: int, fold: Fold) -> list[PastEdit]:
    """Return the edits of a fold made at `seq`, while it applies."""
    return [PastEdit(span.first if isinstance(span, MessageSpan) else span.message, seq) for span in fold.spans]


def edits_of_past(folds: Mapping[int, Fold], undone: Mapping[int, Unfold]) -> tuple[PastEdit, ...]:
    """Return the edits that the folds and unfolds of a path (by entry number) leave behind."""
    removed = {(each.fold, number): seq for seq, each in undone.items() for number in each.spans}
    found = []
    for seq, fold in folds.items():
        for number, edit in enumerate(edits_by(seq, fold)):
            gone = removed.get((seq, number))
            found.append(edit if gone is None else PastEdit(seq, gone))
    return without_nested(found)


def without_nested(found: Iterable[PastEdit]) -> tuple[PastEdit, ...]:
    """Leave out edits that lie within another: folds widen each other, so few are left."""
    kept: list[PastEdit] = []
    for edit in sorted(set(found), key=lambda each: (each.after, -each.before)):
        if not kept or edit.before > kept[-1].before:
            kept.append(edit)
    return tuple(kept)
