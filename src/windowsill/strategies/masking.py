"""Finds tool outputs that can be masked, oldest first, and the lines that stand for them."""

from __future__ import annotations

import math
import weakref
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache, cached_property, partial
from weakref import WeakKeyDictionary

import msgspec

from windowsill.history.folds import Part, Proposal
from windowsill.history.hiding import replace_block
from windowsill.history.survey import Survey, survey
from windowsill.history.view import Item, View
from windowsill.messages import Block, Document, Image, Message, OutputRef, Text, ToolResult, text_length
from windowsill.outputs.refs import ref_at
from windowsill.outputs.wording import TRIMMED, trimmed
from windowsill.strategies.scoring import Memory, key_of
from windowsill.tokens import Weight

EXEMPT = ("*plan*", "*todo*", "*skill*", "ask*", "*question*")
"""Tools whose outputs the model goes on working from: plans, skills, answers of the user."""

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


class Maskers:
    """The maskers of the views that a strategy plans for, each with what it found before while that is still true."""

    def __init__(self, exempt: tuple[str, ...]) -> None:
        self._exempt = exempt

    def of(self, view: View) -> Masker:
        """The masker of a view."""
        known = survey(view)
        under = (known.renamed, known.tally(view).ratios)
        before = self._maskers.get(known)
        if before is None or before.under != under or before.is_stale:
            before = self._maskers[known] = Masker(
                view, known, cache(partial(is_exempt, self._exempt)), self._memory.of(view)
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

    def proposals(self, strategy: str, reason: str) -> tuple[Proposal, ...]:
        """The fold that masks them."""
        if not self.parts:
            return ()
        spans, stand_ins = tuple(self.parts), tuple(self.placeholders)
        return (Proposal(kind="mask", reason=reason, strategy=strategy, spans=spans, stand_ins=stand_ins),)


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
        self.weights: dict[tuple[int, int], Weight] = {}
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
        self._look(end, wanted)
        chosen = row.until(wanted)
        if chosen.saved >= wanted or end == len(large):
            return chosen
        return self._and_among(large[end:], wanted, latest, chosen)

    def follow(self, keep: int) -> None:
        """Look at all that could be masked now, so that a plan finds it done."""
        answered = self.known.answered
        until = min((answered[id] for id in self.latest(keep)), default=len(self.view.items))
        self._look(bisect_left(self._judge(), until), math.inf)

    def _look(self, end: int, wanted: float) -> None:
        """Go on until `end`, or until so much can be saved."""
        large, row = self._large, self._row
        while self._looked < end and row.sums[-1] < wanted:
            row.put(self._found(self.view.items[large[self._looked]]))
            self._looked += 1

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
        number = 0
        for place, block in enumerate(blocks):
            if not isinstance(block, ToolResult):
                continue
            number += 1
            name = names.get(block.tool_use_id) or block.name or UNNAMED
            if (item.seq, place) in view.restored or _is_masked(block) or self.is_exempt(name):
                continue
            # A message that is nothing but this output was weighed before, and is not weighed again.
            size = item.weight if len(blocks) == 1 else view.weigh(Message(role="user", blocks=(block,)))
            taken = next((cut.saves for cut in item.cuts if cut.block == place), None) if item.cuts else None
            original = view.whole(item).blocks[place] if item.cuts else block
            masked = placeholder(original, block, ref_at(item.seq, number, of=len(item.results)))
            left = self._weigh(masked)
            saves = view.tokens_of(size) - view.tokens_of(left)
            if saves <= 0 or (text_length(masked.content) >= text_length(block.content) and not _media(block.content)):
                continue
            if len(blocks) == 1:
                freed = size - left
                part = Part(message=item.seq, block=place, saves=freed if taken is None else taken + freed)
                yield Output(part, masked, saves)
            else:
                yield Output(replace_block(view, item, place, block, masked), masked, saves)

    def _weigh(self, masked: ToolResult) -> Weight:
        """What a placeholder weighs; those of one length differ by a few digits, and are counted again when folded."""
        key = (text_length(masked.content), len(masked.tool_use_id))
        if key not in self.weights:
            self.weights[key] = self.view.weigh(Message(role="user", blocks=(masked,)))
        return self.weights[key]


def is_exempt(patterns: tuple[str, ...], name: str) -> bool:
    """Whether the outputs of a tool with this name always stay."""
    return any(fnmatchcase(name.lower(), pattern.lower()) for pattern in patterns)


def _is_old(item: Item, tokens: int) -> bool:
    """Whether an item has outputs that may be masked, as far as can be told without reading it."""
    if tokens <= SMALLEST or item.pinned:
        return False
    return len(item.cuts) < len(item.results) or tokens > LARGEST_PLACEHOLDER * len(item.results)


def placeholder(original: Block, shown: ToolResult, ref: str) -> ToolResult:
    """The result that stands for an output: how much of what was there, and the ref under which it is read."""
    content = original.content if isinstance(original, ToolResult) else ()
    lines = sum(block.text.count("\n") + 1 for block in content if isinstance(block, Text) and block.text)
    media = _media(content)
    images = sum(isinstance(block, Image) for block in media)
    sizes = {"line": lines, "image": images, "document": len(media) - images}
    said = ", ".join(f"{count:,} {what}{'' if count == 1 else 's'}" for what, count in sizes.items() if count)
    line = Text(text=trimmed(ref, said))
    return msgspec.structs.replace(shown, raw=None, content=(line,), ref=OutputRef(id=ref, lines=lines))


def _media(content: tuple[Block, ...]) -> list[Block]:
    return [block for block in content if isinstance(block, (Image, Document))]


def _is_masked(block: ToolResult) -> bool:
    first = block.content[0] if len(block.content) == 1 else None
    return isinstance(first, Text) and first.text.startswith(TRIMMED)
