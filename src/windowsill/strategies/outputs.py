"""Outputs: the tool output cache. What a tool gave is kept whole; what is shown of it stays within limits and a budget.

An output above the limits is shown in part from the first time on, so that no cached prefix breaks. When all outputs
together pass their budget, the oldest become a line with the ref under which they are read, a batch at a time.
"""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import msgspec

from windowsill.budget import Budget, Size, tokens_of
from windowsill.errors import SettingError
from windowsill.history.folds import Part, Proposal, StandIn
from windowsill.history.hiding import replace_block
from windowsill.history.survey import Survey, survey
from windowsill.history.view import Item, View
from windowsill.messages import Block, Image, OutputRef, Text, ToolResult
from windowsill.outputs.limits import Limits
from windowsill.outputs.refs import ref_at
from windowsill.outputs.repeats import Seen
from windowsill.outputs.said import text_of
from windowsill.outputs.views import Shown, count_lines, middle, shown
from windowsill.strategies import Plan, Strategy
from windowsill.strategies.masking import EXEMPT, Maskers
from windowsill.strategies.scoring import MEASURED, Memory, check_settings, check_words, key_of
from windowsill.strategies.sliding_window import LARGEST_KEEP

SHARE, LEAST, MOST = 0.25, 20_000, 60_000
"""The budget of all outputs together: a quarter of the window, in tokens not below and not above these."""

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
    """Whether outputs are also trimmed when the whole request passes the high mark; false leaves that to the next
    strategy of a pipeline."""
    keep: int = 3
    """The latest outputs that are never trimmed; those the model has not answered to yet stay as well."""
    exempt: tuple[str, ...] = EXEMPT
    """Tools whose outputs are neither cut nor trimmed, by name or pattern (`*` for anything)."""
    line: int = 2_000
    """Characters of a line that are shown,"""
    bytes: int = 50 * 1024
    """and bytes of an output."""
    view: Literal["start", "ends"] = "start"
    """What is shown of an output above the limits: its beginning, or its first and last lines."""
    repeats: bool = False
    """Whether lines that an earlier output in view shows already are replaced by a pointer to them, where that is
    shorter; only worth it for agents that read the same files again and again, and are offered the tools."""
    head: int = 50
    """First lines that `ends` shows,"""
    tail: int = 50
    """and last lines."""

    name = "outputs"

    def __post_init__(self) -> None:
        check_settings(self, ("keep",), 0, LARGEST_KEEP, f"a number of outputs from 0 to {LARGEST_KEEP:,}")
        check_settings(self, ("head", "tail"), 0, LARGEST_ENDS, f"a number of lines from 0 to {LARGEST_ENDS:,}")
        check_words(self, ("exempt",))
        if not 0 < self.low <= 1:
            raise SettingError("low", self.low, "a share of the budget above 0, up to 1")
        if self.budget is not None:
            tokens_of(self.budget, MEASURED, "budget")
        Limits(line=self.line, bytes=self.bytes)

    def due(self, view: View, budget: Budget) -> bool:
        """Whether an output is above the limits, or all together are above their budget."""
        return bool(self._cuts(view)) or self._used(view) > self._room(budget)

    def plan(self, view: View, budget: Budget) -> Plan:
        """Show less of what is above the limits; then trim the oldest outputs."""
        cuts = self._cuts(view)
        if cuts:
            parts, stand_ins = zip(*cuts, strict=True)
            reason = (
                f"{len(cuts)} output{'' if len(cuts) == 1 else 's'} above {self.bytes:,} bytes or {self.line:,} a line"
            )
            return Plan(proposals=(_proposal(reason, parts, stand_ins),))
        masker = self._maskers.of(view)
        latest = masker.latest(self.keep)
        room, used = self._room(budget), self._used(view)
        total = budget.fixed + view.tokens()
        too_much = budget.to_hide(total) if self.at_high else 0
        wanted = max(used - int(room * self.low) if used > room else 0, too_much)
        if wanted <= 0:
            return Plan()
        reason = (
            f"{used:,} tokens of outputs passed {room:,}" if used > room else f"{total:,} tokens passed {budget.high:,}"
        )
        chosen = masker.oldest(wanted, latest)
        return Plan(proposals=chosen.proposals(self.name, reason), middle=masker.old(latest))

    def _room(self, budget: Budget) -> int:
        if self.budget is None:
            return int(min(max(budget.window * SHARE, LEAST), MOST))
        return tokens_of(self.budget, budget.window, "budget")

    def _used(self, view: View) -> int:
        known = survey(view)
        each = known.tally(view).each
        return sum(each[place] for place in known.answers)

    def _cuts(self, view: View) -> list[tuple[Part, StandIn]]:
        """What is to be shown of outputs above the limits; one that is within them is looked at once."""
        known, looked = survey(view), self._looked.of(view)
        cuts: list[tuple[Part, StandIn]] = []
        new = [item for place in known.answers if key_of(item := view.items[place]) not in looked]
        seen = self._seen(view, known) if self.repeats and new else None
        for item in new:
            key = key_of(item)
            # What is pinned stays as it is, and a message as short as a line has no line above the limit. What was cut
            # points nowhere, but may be above the limits: a giant is cut before any strategy is asked.
            is_short = item.weight.bytes <= (SHORTEST_REPEAT if self.repeats and not item.cuts else self.line)
            earlier = None if item.cuts else seen
            found = [] if item.pinned or is_short else self._cut(view, item, known, earlier)
            cuts += found
            if not found:
                looked[key] = True
        return cuts

    def _seen(self, view: View, known: Survey) -> Seen:
        """The outputs that stand in view as they came, for later ones to point to."""
        looked, seen = self._looked.of(view), Seen()
        for place in known.answers:
            item = view.items[place]
            if not item.cuts and key_of(item) in looked:
                for number, result in enumerate(view.read(item).results, 1):
                    seen.add(ref_at(item.seq, number, of=len(item.results)), text_of(result))
        return seen

    def _cut(self, view: View, item: Item, known: Survey, seen: Seen | None) -> list[tuple[Part, StandIn]]:
        cuts: list[tuple[Part, StandIn]] = []
        number = 0
        masker = self._maskers.of(view)
        whole = view.whole(item).blocks if item.cuts else view.read(item).blocks
        for place, block in enumerate(view.read(item).blocks):
            if not isinstance(block, ToolResult):
                continue
            number += 1
            name = known.names.get(block.tool_use_id) or block.name or ""
            if (item.seq, place) in view.restored or masker.is_exempt(name):
                continue
            ref = ref_at(item.seq, number, of=len(item.results))
            less = self._less(block, whole[place], ref, seen)
            if less is not None:
                cuts.append((replace_block(view, item, place, block, less), less))
            elif seen is not None:
                seen.add(ref, text_of(block))
        return cuts

    def _less(self, block: ToolResult, came: Block, ref: str, seen: Seen | None) -> ToolResult | None:
        """The result, of which `came` is the original, with no more text than the limits allow; `None` within them."""
        if came is not block and self._shown(_words(block), ref) is None:
            return None
        whole = _words(came)
        pointing = seen.collapse(whole) if seen is not None else None
        view = self._shown(pointing or whole, ref)
        if view is None and pointing is None:
            return None
        text = view.text if view is not None else pointing or whole
        # Pictures and documents have limits of their own, and stay.
        rest = tuple(inner for inner in block.content if not isinstance(inner, Text))
        about = OutputRef(id=ref, bytes=len(whole.encode(errors="replace")), lines=count_lines(whole))
        return msgspec.structs.replace(block, raw=None, content=(Text(text=text), *rest), ref=about)

    def _shown(self, text: str, ref: str) -> Shown | None:
        limits = Limits(line=self.line, bytes=self.bytes)
        start = shown(text, limits, ref=ref)
        if start is None or self.view == "start":
            return start
        ends = middle(text, self.head, self.tail, ref=ref)
        # Lines may be so long that even the ends of an output are above the limits.
        return start if ends is None else shown(ends.text, limits, ref=ref) or ends

    @cached_property
    def _maskers(self) -> Maskers:
        return Maskers(self.exempt)

    @cached_property
    def _looked(self) -> Memory[bool]:
        """Messages in which nothing is above the limits."""
        return Memory()


def _words(block: Block) -> str:
    """The text of a result, its lines counted as they are read under its ref: each picture is a line in its place."""
    content = block.content if isinstance(block, ToolResult) else ()
    if isinstance(block, ToolResult) and all(isinstance(inner, (Text, Image)) for inner in content):
        return text_of(block)
    # A document that stays would be told twice.
    return "\n".join(inner.text for inner in content if isinstance(inner, Text))


def _proposal(reason: str, parts: tuple[Part, ...], stand_ins: tuple[StandIn, ...]) -> Proposal:
    return Proposal(kind="mask", reason=reason, strategy=Outputs.name, spans=parts, stand_ins=stand_ins)
