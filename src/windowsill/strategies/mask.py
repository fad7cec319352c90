"""Mask: old tool outputs become a line that says what was there; calls and words stay as they are.

It comes in batches, oldest first, and is sticky: what is masked stays so, and until the high mark is passed again the
request only grows at its end.
"""

from __future__ import annotations

import weakref
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache, cached_property, partial
from weakref import WeakKeyDictionary

import msgspec

from windowsill.budget import Budget, Size, tokens_of
from windowsill.history.folds import Part, Proposal
from windowsill.history.hiding import replace_block
from windowsill.history.survey import Survey, survey
from windowsill.history.view import Item, View
from windowsill.messages import Block, Document, Image, Message, Text, ToolResult, text_length
from windowsill.strategies import Plan
from windowsill.strategies.scoring import MEASURED, Memory, check_settings, check_words, key_of
from windowsill.strategies.sliding_window import LARGEST_KEEP
from windowsill.tokens import Weight

PREFIX = "[tool output hidden:"
"""How a placeholder begins; an output that begins so is masked already."""

UNNAMED = "a tool"
"""What a tool is called whose call is hidden."""

SMALLEST = 24
"""Tokens below which no placeholder is shorter than the output."""

LARGEST_PLACEHOLDER = 64
"""Tokens up to which an output that was replaced is taken for a placeholder without reading it."""


class Output(msgspec.Struct, frozen=True):
    """One tool output that can be masked."""

    part: Part
    placeholder: ToolResult
    saves: int
    """Tokens it is shorter by."""


class Mask(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Masks the oldest tool outputs; the latest `keep` and those of exempt tools stay."""

    keep: int = 3
    """The latest outputs that are never masked; those the model has not answered to yet stay as well."""
    exempt: tuple[str, ...] = ("*plan*", "*todo*", "*skill*", "ask*", "*question*")
    """Tools whose outputs are never masked, by name or pattern (`*` for anything), in lower or upper case."""
    batch: Size = "5%"
    """What a batch must free, in tokens or as a share of what a request may have; less is not worth the cached prefix
    while the request still fits."""

    name = "mask"

    def __post_init__(self) -> None:
        check_settings(self, ("keep",), 0, LARGEST_KEEP, f"a number of outputs from 0 to {LARGEST_KEEP:,}")
        check_words(self, ("exempt",))
        tokens_of(self.batch, MEASURED, "batch")

    def plan(self, view: View, budget: Budget) -> Plan:
        """Mask the oldest outputs until the low mark is reached."""
        total = budget.fixed + view.tokens()
        wanted = budget.to_hide(total)
        if wanted <= 0:
            return Plan()
        batch = tokens_of(self.batch, budget.limit, "batch")
        masker = self._masker(view)
        latest = masker.latest(self.keep)
        old = masker.old(latest)
        chosen = masker.oldest(max(wanted, batch), latest)
        if chosen.saved < batch and total <= budget.limit:
            notes = (f"mask: {chosen.saved:,} tokens are no batch of {batch:,}",) if chosen.saved else ()
            return Plan(middle=old, notes=notes)
        return Plan(proposals=chosen.proposals(f"{total:,} tokens passed {budget.high:,}"), middle=old)

    def _masker(self, view: View) -> Masker:
        """The masker of a view, with what it found before as long as that is still true."""
        known = survey(view)
        under = (known.renamed, known.tally(view).ratios)
        before = self._maskers.get(known)
        if before is None or before.under != under or before.is_stale:
            before = self._maskers[known] = Masker(
                view, known, cache(partial(_is_exempt, self.exempt)), self._memory.of(view)
            )
            before.under = under
        return before

    @cached_property
    def _maskers(self) -> WeakKeyDictionary[Survey, Masker]:
        return WeakKeyDictionary()

    @cached_property
    def _memory(self) -> Memory[bool]:
        """Messages in which nothing is left to mask."""
        return Memory()


class Chosen(msgspec.Struct, frozen=True):
    """Outputs that are to be masked, and what that saves."""

    parts: list[Part]
    placeholders: list[ToolResult]
    saved: int

    def proposals(self, reason: str) -> tuple[Proposal, ...]:
        """The fold that masks them."""
        if not self.parts:
            return ()
        spans, stand_ins = tuple(self.parts), tuple(self.placeholders)
        return (Proposal(kind="mask", reason=reason, strategy=Mask.name, spans=spans, stand_ins=stand_ins),)


class Row:
    """Outputs of one item after the other, and what masking all up to each item saves."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.placeholders: list[ToolResult] = []
        self.ends = [0]
        """How many outputs there are up to each item,"""
        self.sums = [0]
        """and what they save."""

    def put(self, outputs: Iterable[Output]) -> None:
        """The outputs of the next item."""
        saved = self.sums[-1]
        for output in outputs:
            self.parts.append(output.part)
            self.placeholders.append(output.placeholder)
            saved += output.saves
        self.ends.append(len(self.parts))
        self.sums.append(saved)

    def until(self, wanted: int) -> Chosen:
        """Those of as few items as save `wanted`; all when they do not."""
        items = min(bisect_left(self.sums, wanted), len(self.sums) - 1)
        end = self.ends[items]
        return Chosen(self.parts[:end], self.placeholders[:end], self.sums[items])


class Masker:
    """Finds what can be masked in one view, oldest first, and goes on where it stopped when the view has grown."""

    def __init__(
        self, view: View, known: Survey, is_exempt: Callable[[str], bool], spent: dict[Hashable, bool]
    ) -> None:
        # Kept for as long as the survey lives, so it must not be what keeps it alive.
        self.view = weakref.proxy(view)
        self.known = weakref.proxy(known)
        self.is_exempt = is_exempt
        self.spent = spent
        self.under: object = None
        """What all this depends on beside the view."""
        self.is_stale = False
        self.weights: dict[tuple[str, int, int], Weight] = {}
        self._row = Row()
        self._looked = 0
        self._large: list[int] = []
        """Positions of results that may be masked, as far as can be told without reading them,"""
        self._judged = 0
        """among so many of the survey's."""

    def latest(self, keep: int) -> frozenset[str]:
        """The calls whose outputs stay: the latest `keep`, and all that the model has not answered to yet."""
        names = self.known.names
        stay: set[str] = set()
        answered = False
        for item in reversed(self.view.items):
            for id in reversed(item.results):
                if (not answered or len(stay) < keep) and not self.is_exempt(names.get(id, UNNAMED)):
                    stay.add(id)
            answered = answered or item.role == "assistant"
            if answered and len(stay) >= keep:
                break
        return frozenset(stay)

    def old(self, latest: frozenset[str]) -> tuple[Item, ...]:
        """The items whose outputs may be masked."""
        items, known, large = self.view.items, self.known, self._judge()
        places = {place for id in latest for place in (known.answered[id], *known.again.get(id, ()))}
        held = sorted(place for place in places if latest.issuperset(items[place].results))
        found: list[int] = []
        start = 0
        for place in held:
            stop = bisect_left(large, place)
            found += large[start:stop]
            start = stop + (stop < len(large) and large[stop] == place)
        found += large[start:]
        return tuple(map(items.__getitem__, found))

    def _judge(self) -> list[int]:
        answers, items = self.known.answers, self.view.items
        if self._judged < len(answers):
            each = self.known.tally(self.view).each
            self._large += [place for place in answers[self._judged :] if _is_old(items[place], each[place])]
            self._judged = len(answers)
        return self._large

    def oldest(self, wanted: int, latest: frozenset[str]) -> Chosen:
        """The oldest outputs that save `wanted` tokens together, without those of the latest calls."""
        # What stays for now has been kept out of the row: the rest of it begins there.
        answered = self.known.answered
        until = min((answered[id] for id in latest), default=len(self.view.items))
        large, row = self._judge(), self._row
        end = bisect_left(large, until)
        if end < self._looked:
            self._forget()
            row = self._row
        while self._looked < end and row.sums[-1] < wanted:
            row.put(self._found(self.view.items[large[self._looked]]))
            self._looked += 1
        chosen = row.until(wanted)
        if chosen.saved >= wanted or end == len(large):
            return chosen
        return self._and_among(large[end:], wanted, latest, chosen)

    def _and_among(self, places: Sequence[int], wanted: int, latest: frozenset[str], chosen: Chosen) -> Chosen:
        """More of them, from where some have to stay."""
        items, row = self.view.items, Row()
        weights = self.weights
        self.weights = dict(weights)
        for place in places:
            if chosen.saved + row.sums[-1] >= wanted:
                break
            if not latest.issuperset(items[place].results):
                row.put(output for output in self._found(items[place]) if output.placeholder.tool_use_id not in latest)
        self.weights = weights
        return Chosen(
            [*chosen.parts, *row.parts], [*chosen.placeholders, *row.placeholders], chosen.saved + row.sums[-1]
        )

    def _forget(self) -> None:
        self._row, self._looked, self.weights = Row(), 0, {}

    def _found(self, item: Item) -> list[Output]:
        """What can be masked in an item; one in which nothing can is not read again."""
        if key_of(item) in self.spent:
            return []
        before = len(self.weights)
        found = list(self.outputs(item))
        if not found:
            self.spent[key_of(item)] = True
            # What an item weighs that is passed over from now on is not what others are weighed by.
            self.is_stale = self.is_stale or len(self.weights) > before
        return found

    def outputs(self, item: Item) -> Iterator[Output]:
        """What can be masked in an item, and what that saves."""
        view, names = self.view, self.known.names
        blocks = view.read(item).blocks
        for number, block in enumerate(blocks):
            if not isinstance(block, ToolResult) or _is_masked(block):
                continue
            name = names.get(block.tool_use_id) or block.name or UNNAMED
            if self.is_exempt(name):
                continue
            # A message that is nothing but this output was weighed before, and is not weighed again.
            size = item.weight if len(blocks) == 1 else view.weigh(Message(role="user", blocks=(block,)))
            taken = next((cut.saves for cut in item.cuts if cut.block == number), None) if item.cuts else None
            original = view.whole(item).blocks[number] if item.cuts else block
            tokens = view.tokens_of(size)
            line = placeholder(name, original, tokens if taken is None else view.tokens_of(size + taken))
            masked = msgspec.structs.replace(block, raw=None, content=(Text(text=line),))
            left = self._weigh(name, line, masked)
            saves = tokens - view.tokens_of(left)
            if saves <= 0 or (len(line) >= text_length(block.content) and not _media(block.content)):
                continue
            if len(blocks) == 1:
                freed = size - left
                part = Part(message=item.seq, block=number, saves=freed if taken is None else taken + freed)
                yield Output(part, masked, saves)
            else:
                yield Output(replace_block(view, item, number, block, masked), masked, saves)

    def _weigh(self, name: str, line: str, masked: ToolResult) -> Weight:
        """What a placeholder weighs; those of one tool differ by a few digits, and are counted again when folded."""
        key = (name, len(line), len(masked.tool_use_id))
        if key not in self.weights:
            self.weights[key] = self.view.weigh(Message(role="user", blocks=(masked,)))
        return self.weights[key]


def _is_exempt(patterns: tuple[str, ...], name: str) -> bool:
    return any(fnmatchcase(name.lower(), pattern.lower()) for pattern in patterns)


def _is_old(item: Item, tokens: int) -> bool:
    """Whether an item has outputs that may be masked, as far as can be told without reading it."""
    if tokens <= SMALLEST or item.pinned:
        return False
    return len(item.cuts) < len(item.results) or tokens > LARGEST_PLACEHOLDER * len(item.results)


def placeholder(name: str, output: Block, tokens: int) -> str:
    """The line that stands for an output: which tool, how much, of what."""
    content = output.content if isinstance(output, ToolResult) else ()
    lines = sum(block.text.count("\n") + 1 for block in content if isinstance(block, Text) and block.text)
    media = _media(content)
    images = sum(isinstance(block, Image) for block in media)
    sizes = {"line": lines, "image": images, "document": len(media) - images, "token": tokens}
    said = ", ".join(f"{count:,} {what}{'' if count == 1 else 's'}" for what, count in sizes.items() if count)
    return f"{PREFIX} {name}, {said}]"


def _media(content: tuple[Block, ...]) -> list[Block]:
    return [block for block in content if isinstance(block, (Image, Document))]


def _is_masked(block: ToolResult) -> bool:
    first = block.content[0] if len(block.content) == 1 else None
    return isinstance(first, Text) and first.text.startswith(PREFIX)
