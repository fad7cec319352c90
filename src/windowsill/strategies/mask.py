"""Mask: old tool outputs become a line that says what was there; calls and words stay as they are.

It comes in batches, oldest first, and is sticky: what is masked stays so, and until the high mark is passed again the
request only grows at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import cache, cached_property

import msgspec

from windowsill.budget import Budget, Size, tokens_of
from windowsill.history.folds import Part, Proposal
from windowsill.history.hiding import replace_block
from windowsill.history.view import Item, View
from windowsill.messages import Block, Document, Image, Message, Text, ToolResult, text_length
from windowsill.strategies import Plan
from windowsill.strategies.scoring import MEASURED, Memory, check_settings, check_words, key_of
from windowsill.strategies.sliding_window import LARGEST_KEEP
from windowsill.tokens import Weight

PREFIX = "[tool output hidden:"
"""How a placeholder begins; an output that begins so is masked already."""

NOTHING = Weight()

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
        masker = Masker(view, cache(self._is_exempt))
        latest = masker.latest(self.keep)
        old = [item for item in view.items if _is_old(view, item, latest)]
        spent = self._memory.of(view)
        chosen: list[Output] = []
        saved = 0
        for item in old:
            if saved >= max(wanted, batch):
                break
            if key_of(item) in spent:
                continue
            found = list(masker.outputs(item))
            if not found:
                spent[key_of(item)] = True
            may_go = [output for output in found if output.placeholder.tool_use_id not in latest]
            chosen += may_go
            saved += sum(output.saves for output in may_go)
        if saved < batch and total <= budget.limit:
            notes = (f"mask: {saved:,} tokens are no batch of {batch:,}",) if saved else ()
            return Plan(middle=tuple(old), notes=notes)
        return Plan(proposals=_proposals(chosen, f"{total:,} tokens passed {budget.high:,}"), middle=tuple(old))

    @cached_property
    def _memory(self) -> Memory[bool]:
        """Messages in which nothing is left to mask."""
        return Memory()

    def _is_exempt(self, name: str) -> bool:
        return any(fnmatchcase(name.lower(), pattern.lower()) for pattern in self.exempt)


class Masker:
    """Finds what can be masked in one view."""

    def __init__(self, view: View, is_exempt: Callable[[str], bool]) -> None:
        self.view = view
        self.is_exempt = is_exempt
        self.names = {id: name for item in view.items for id, name in zip(item.calls, item.tools, strict=False)}
        self.weights: dict[tuple[str, int, int], Weight] = {}

    def latest(self, keep: int) -> frozenset[str]:
        """The calls whose outputs stay: the latest `keep`, and all that the model has not answered to yet."""
        stay: set[str] = set()
        answered = False
        for item in reversed(self.view.items):
            for id in reversed(item.results):
                if (not answered or len(stay) < keep) and not self.is_exempt(self.names.get(id, UNNAMED)):
                    stay.add(id)
            answered = answered or item.role == "assistant"
            if answered and len(stay) >= keep:
                break
        return frozenset(stay)

    def outputs(self, item: Item) -> Iterator[Output]:
        """What can be masked in an item, and what that saves."""
        view = self.view
        blocks = view.read(item).blocks
        for number, block in enumerate(blocks):
            if not isinstance(block, ToolResult) or _is_masked(block):
                continue
            name = self.names.get(block.tool_use_id) or block.name or UNNAMED
            if self.is_exempt(name):
                continue
            # A message that is nothing but this output was weighed before, and is not weighed again.
            size = item.weight if len(blocks) == 1 else view.weigh(Message(role="user", blocks=(block,)))
            taken = next((cut.saves for cut in item.cuts if cut.block == number), NOTHING)
            original = view.whole(item).blocks[number] if item.cuts else block
            line = placeholder(name, original, view.tokens_of(size + taken))
            masked = msgspec.structs.replace(block, raw=None, content=(Text(text=line),))
            left = self._weigh(name, line, masked)
            saves = view.tokens_of(size) - view.tokens_of(left)
            if saves <= 0 or (len(line) >= text_length(block.content) and not _media(block.content)):
                continue
            if len(blocks) == 1:
                yield Output(Part(message=item.seq, block=number, saves=taken + size - left), masked, saves)
            else:
                yield Output(replace_block(view, item, number, block, masked), masked, saves)

    def _weigh(self, name: str, line: str, masked: ToolResult) -> Weight:
        """What a placeholder weighs; those of one tool differ by a few digits, and are counted again when folded."""
        key = (name, len(line), len(masked.tool_use_id))
        if key not in self.weights:
            self.weights[key] = self.view.weigh(Message(role="user", blocks=(masked,)))
        return self.weights[key]


def _is_old(view: View, item: Item, latest: frozenset[str]) -> bool:
    """Whether an item has outputs that may be masked, as far as can be told without reading it."""
    if not item.results or item.fold or item.pinned or latest.issuperset(item.results):
        return False
    tokens = view.tokens(item)
    if len(item.cuts) >= len(item.results) and tokens <= LARGEST_PLACEHOLDER * len(item.results):
        return False
    return tokens > SMALLEST


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


def _proposals(chosen: list[Output], reason: str) -> tuple[Proposal, ...]:
    if not chosen:
        return ()
    spans = tuple(output.part for output in chosen)
    stand_ins = tuple(output.placeholder for output in chosen)
    return (Proposal(kind="mask", reason=reason, strategy=Mask.name, spans=spans, stand_ins=stand_ins),)
