"""Outputs: the tool output cache. What a tool gave is kept whole; what is shown of it stays within limits and a budget.

Where the model is offered the tools that read outputs, one above the limits is shown in part from the first time on, so
that no cached prefix breaks; when all outputs together pass their budget, the oldest become a line with the ref under
which they are read, a batch at a time. Without the tools nothing is cut while there is room: what is cut then is out of
the model's reach.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property
from typing import Literal
from weakref import WeakKeyDictionary

import msgspec

from windowsill.budget import Budget, Size, tokens_of
from windowsill.errors import SettingError
from windowsill.history.folds import BlockSpan, Proposal, StandIn
from windowsill.history.proposals import replace_block
from windowsill.history.view import Item, View, sum_weights
from windowsill.messages import (
    OWN_TOOLS,
    Block,
    Image,
    OutputRef,
    Text,
    ToolResult,
)
from windowsill.outputs.parts import ref_at
from windowsill.outputs.repeated_lines import SeenLines
from windowsill.outputs.show import (
    LEAST_BYTES,
    Limits,
    Preview,
    byte_size,
    count_lines,
    head_and_tail,
    preview,
    result_text,
)
from windowsill.outputs.structure import ENDS, outline
from windowsill.strategies.base import MEASURED, Plan, Strategy, check_count, check_range, check_words, key_of
from windowsill.strategies.masks import (
    EXEMPT,
    Masker,
    ResultKey,
    mask_outputs,
    note_tools,
    results_of,
)
from windowsill.text import count_of
from windowsill.tokens import Weight

SHARE, LEAST, MOST = 0.25, 20_000, 60_000
"""The budget of all outputs together: a quarter of the window, in tokens not below and not above these."""

BATCH = 0.1
"""The least share of that budget that trimming frees: less is not worth the cached prefix."""

BYTES_PER_TOKEN = 4
"""Bytes of a token of text, roughly."""

LARGEST_PLACEHOLDER_BYTES = 640
"""Bytes up to which an output is as good as trimmed: those of the longest placeholder."""

SHORTEST_REPEAT = 200
"""Bytes of a message below which no pointer is worth its place."""

LARGEST_ENDS = 100_000
"""The most lines that head and tail may have."""


class Outputs(Strategy, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Shows at most so much of each tool output, and trims the oldest when all together pass their budget.

    The latest `keep` outputs and those of exempt tools are not trimmed.
    """

    budget: Size | None = None
    """The tokens of all outputs in the request together; without it a quarter of the window, 20,000 to 60,000."""
    low: float = 0.7
    """The share of that budget that is left after trimming, so that it is seldom needed."""
    at_high: bool = True
    """True to trim outputs also when the whole request passes the high mark; false leaves that to the next strategy of
    a pipeline."""
    keep: int = 3
    """The latest outputs that are never trimmed; those the model has not answered to yet stay as well."""
    exempt: tuple[str, ...] = EXEMPT
    """Tools whose outputs are neither cut nor trimmed, by name or pattern (`*` for anything)."""
    line: int = 2_000
    """Characters of a line that are shown."""
    bytes: int = 50 * 1024
    """Bytes of an output that are shown."""
    view: Literal["structure", "start", "ends"] = "structure"
    """The part of an output above the limits that is shown: by its structure (keys and first rows of JSON, the ends and
    the errors of a log or a table, both ends of a text), its beginning, or its first and last lines."""
    repeats: bool = False
    """True to replace lines that an earlier output in view shows by a pointer to them, where that is shorter;
    only worth it for agents that read the same files again and again, and are offered the tools."""
    head: int = ENDS
    """First lines that are shown of a log or a table, and first rows of a list; with `ends`, of any output."""
    tail: int = ENDS
    """Last lines that are shown of these."""

    name = "outputs"

    def __post_init__(self) -> None:
        check_count(self, "keep", "outputs")
        check_range(self, ("head", "tail"), 0, LARGEST_ENDS, f"a number of lines from 0 to {LARGEST_ENDS:,}")
        check_words(self, "exempt")
        if not 0 < self.low <= 1:
            raise SettingError("low", self.low, "a share of the budget above 0, up to 1")
        if self.budget is not None:
            tokens_of(self.budget, MEASURED, "budget")
        Limits(line=self.line, bytes=self.bytes)

    def due(self, view: View, budget: Budget) -> bool:
        """Tell whether an output is above the limits, or all together are above their budget."""
        if not budget.refs and budget.fixed + view.tokens() <= budget.high:
            return False
        return bool(self._cuts(view, budget)) or (budget.refs and self._excess(view, budget) > 0)

    def plan(self, view: View, budget: Budget) -> Plan:
        """Show less of what is above the limits; then trim the oldest outputs."""
        total = budget.fixed + view.tokens()
        if cuts := self._cuts(view, budget) if budget.refs or total > budget.high else []:
            parts, stand_ins = zip(*cuts, strict=True)
            limits = self._limits(budget)
            line = f" or {limits.line:,} characters a line" if budget.refs else ""
            reason = f"{count_of(len(cuts), 'output')} above {limits.bytes:,} bytes{line}"
            cut = Proposal(kind="mask", reason=reason, strategy=self.name, spans=parts, stand_ins=stand_ins)
            return Plan(proposals=(cut,))
        excess = self._excess(view, budget) if budget.refs else 0
        wanted = max(excess, budget.to_hide(total) if self.at_high else 0)
        if wanted <= 0:
            return Plan()
        reason = (
            f"{view.tokens_of(self._memo(view).weight):,} tokens of outputs passed {self._room(budget):,}"
            if excess > 0
            else f"{total:,} tokens passed {budget.high:,}"
        )
        masker = Masker(view, self.keep, self.exempt)
        chosen = masker.oldest(wanted)
        if total <= budget.high and sum(output.saves for output in chosen) < self._batch(budget):
            return Plan(middle=masker.items)
        return Plan(proposals=mask_outputs(chosen, strategy=self.name, reason=reason), middle=masker.items)

    def _room(self, budget: Budget) -> int:
        """Return the tokens that all outputs together may have."""
        if self.budget is None:
            return int(min(max(budget.window * SHARE, LEAST), MOST))
        return tokens_of(self.budget, budget.window, "budget")

    def _batch(self, budget: Budget) -> int:
        return int(self._room(budget) * BATCH)

    def _excess(self, view: View, budget: Budget) -> int:
        """Return the tokens to trim; 0 while outputs are within their budget, or too few of them can be trimmed."""
        memo, room = self._memo(view), self._room(budget)
        used = view.tokens_of(memo.weight)
        if used <= room:
            return 0
        latest = sum_weights(memo.heavy[-self.keep :] if self.keep else ())
        can_go = view.tokens_of(memo.heavy_weight - latest)
        return used - int(room * self.low) if can_go >= self._batch(budget) else 0

    def _limits(self, budget: Budget) -> Limits:
        """Return the limits of one output; without the tools, what all together may have.

        A request that may have less than the window holds shows a quarter of its own size of what is larger than it.
        """
        if budget.refs:
            return Limits(line=self.line, bytes=self.bytes)
        whole = max(self.bytes, self._room(budget) * BYTES_PER_TOKEN)
        request = max(budget.limit, LEAST_BYTES) * BYTES_PER_TOKEN
        return Limits(line=min(whole, request), bytes=min(whole, int(request * SHARE)))

    def _cuts(self, view: View, budget: Budget) -> list[tuple[BlockSpan, StandIn]]:
        """Return what is to be shown of outputs above the limits; one that is within them is looked at once."""
        limits = self._limits(budget)
        memo = self._memo(view, limits)
        cuts: list[tuple[BlockSpan, StandIn]] = []
        above: list[int] = []
        seen = self._seen(view, memo) if self.repeats and memo.unread else None
        answered = 0 if budget.refs else _answered(view)
        for place in memo.unread:
            item = view.items[place]
            if place < answered and view.tokens(item) <= budget.limit:
                # The model has read it, and the provider cached it: what becomes of it is the strategy's to decide.
                # What is larger than a request it cannot have read.
                above.append(place)
                continue
            # What is pinned stays as it is, and a message as short as a line has no line above the limit. What was cut
            # points nowhere, but may be above the limits: a giant is cut before any strategy is asked.
            own = limits if budget.refs else _of_records(limits, view, item)
            is_short = item.weight.bytes <= (SHORTEST_REPEAT if self.repeats and not item.cuts else own.line)
            earlier = None if item.cuts else seen
            if not item.pinned and not is_short and (found := self._cut(view, item, memo.names, earlier, own)):
                cuts += found
                above.append(place)
            else:
                memo.within.add(key_of(item))
        memo.unread = above
        return cuts

    def _memo(self, view: View, limits: Limits | None = None) -> _Memo:
        memo = self._memos.setdefault(view, _Memo())
        memo.update(view, limits)
        return memo

    @cached_property
    def _memos(self) -> WeakKeyDictionary[View, _Memo]:
        return WeakKeyDictionary()

    def _seen(self, view: View, memo: _Memo) -> SeenLines:
        """Return the outputs that stand in view as they came, for later ones to point to."""
        seen = SeenLines()
        for place in memo.places:
            item = view.items[place]
            if not item.cuts and key_of(item) in memo.within:
                for number, result in enumerate(view.read(item).results, 1):
                    seen.add(ref_at(item.seq, number, of=len(item.results)), result_text(result))
        return seen

    def _cut(
        self, view: View, item: Item, names: dict[ResultKey, str], seen: SeenLines | None, limits: Limits
    ) -> list[tuple[BlockSpan, StandIn]]:
        cuts: list[tuple[BlockSpan, StandIn]] = []
        # Our tools answer within limits of their own: cut again, what the model reads on would never be seen.
        for place, block, original, ref in results_of(view, item, names, (*self.exempt, *sorted(OWN_TOOLS))):
            less = self._less(block, original, ref, seen, limits)
            if less is not None:
                cuts.append((replace_block(view, item, place, block, less), less))
            elif seen is not None:
                seen.add(ref, result_text(block))
        return cuts

    def _less(
        self, block: ToolResult, came: Block, ref: str, seen: SeenLines | None, limits: Limits
    ) -> ToolResult | None:
        """Return the result, of which `came` is the original, cut to the limits; `None` when it is within them."""
        if came is not block and byte_size(_words(block)) <= limits.bytes:
            return None
        whole = _words(came)
        pointing = seen.collapse(whole) if seen is not None else None
        view = self._preview(pointing or whole, ref, limits)
        if view is None and pointing is None:
            return None
        text = view.text if view is not None else pointing or whole
        # Pictures and documents have limits of their own, and stay.
        rest = tuple(inner for inner in block.content if not isinstance(inner, Text))
        about = OutputRef(id=ref, bytes=len(whole.encode(errors="replace")), lines=count_lines(whole))
        return msgspec.structs.replace(block, raw=None, content=(Text(text=text), *rest), ref=about)

    def _preview(self, text: str, ref: str, limits: Limits) -> Preview | None:
        if self.view == "structure":
            return outline(text, limits, ref=ref, head=self.head, tail=self.tail, fill=limits.line >= limits.bytes)
        start = preview(text, limits, ref=ref)
        if start is None or self.view == "start":
            return start
        ends = head_and_tail(text, self.head, self.tail, ref=ref)
        # Lines may be so long that even the ends of an output are above the limits.
        return start if ends is None else preview(ends.text, limits, ref=ref) or ends


class _Memo:
    """The outputs of one view, brought up to date at every turn while the view only grows."""

    def __init__(self) -> None:
        self.places: list[int] = []
        """Positions of the tool results that are not hidden."""
        self.unread: list[int] = []
        """Positions of those not known to be within the limits."""
        self.within: set[Hashable] = set()
        """Keys of those within the limits."""
        self.names: dict[ResultKey, str] = {}
        self._calls: dict[str, str] = {}
        self.weight = self.heavy_weight = Weight()
        """The weight of all of them, and of those that are no placeholders."""
        self.heavy: list[Weight] = []
        """The weight of each that is no placeholder."""
        self._limits: Limits | None = None
        self._edits = -1
        self._count = 0

    def update(self, view: View, limits: Limits | None = None) -> None:
        """Take in what was added; a view that was changed otherwise is gone through again."""
        if limits is not None and limits != self._limits:
            self._limits, self._edits = limits, -1
            self.within.clear()
        if self._edits != view.edits:
            self._edits, self._count = view.edits, 0
            self.places, self.unread, self.names, self.heavy = [], [], {}, []
            self._calls = {}
            self.weight = self.heavy_weight = Weight()
            self.within.intersection_update(map(key_of, view.items))
        for place in range(self._count, len(view.items)):
            item = view.items[place]
            note_tools(item, self._calls, self.names)
            if item.results and not item.fold:
                self.places.append(place)
                self.weight = self.weight + item.weight
                if not item.pinned and item.weight.bytes > LARGEST_PLACEHOLDER_BYTES * len(item.results):
                    self.heavy.append(item.weight)
                    self.heavy_weight = self.heavy_weight + item.weight
                if key_of(item) not in self.within:
                    self.unread.append(place)
        self._count = len(view.items)


def _answered(view: View) -> int:
    """Return the position of the model's latest answer, or of the first message."""
    return next((place for place in range(len(view.items) - 1, 0, -1) if view.items[place].role == "assistant"), 0)


def _of_records(limits: Limits, view: View, item: Item) -> Limits:
    """Return limits for an output of records that stand for as many tokens as they do for a text.

    Records have few bytes a token; shown are the first of them, and how many there are. A text, which may be quoted
    word for word, is left as it is while it fits.
    """
    tokens = view.tokens(item)
    if 2 * item.weight.json <= tokens:
        return limits
    most = max(LEAST_BYTES, min(limits.bytes, limits.bytes * item.weight.bytes // (BYTES_PER_TOKEN * tokens)))
    return Limits(line=min(limits.line, most), bytes=most)


def _words(block: Block) -> str:
    """Return the text of a result, with the lines that are read under its ref: each picture is one in its place."""
    content = block.content if isinstance(block, ToolResult) else ()
    if isinstance(block, ToolResult) and all(isinstance(inner, (Text, Image)) for inner in content):
        return result_text(block)
    # A document that stays would be told twice.
    return "\n".join(inner.text for inner in content if isinstance(inner, Text))
