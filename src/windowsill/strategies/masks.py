"""Mask: old tool outputs become a line that says what was there; calls and words stay as they are.

It comes in batches, oldest first, and is sticky: what is masked stays so, and until the high mark is passed again the
request only grows at its end. Other strategies use its masker.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TypeAlias

import msgspec

from windowsill.budget import Budget, Size, tokens_of
from windowsill.history.folds import BlockSpan, Proposal
from windowsill.history.proposals import replace_block
from windowsill.history.view import Item, View
from windowsill.messages import (
    Block,
    Document,
    Image,
    Message,
    OutputRef,
    Text,
    ToolResult,
    ToolUse,
    text_length,
    text_of,
)
from windowsill.outputs.parts import ref_at
from windowsill.outputs.show import TRIMMED, trimmed_note
from windowsill.strategies.base import MEASURED, Plan, Strategy, check_count, check_words
from windowsill.text import shorten, strings
from windowsill.tokens import Weight
from windowsill.tool_arguments import Arguments

EXEMPT = ("*plan*", "*todo*", "*skill*", "ask*", "*question*")
"""Tools whose outputs the model goes on working from: plans, skills, answers of the user."""

UNNAMED = "a tool"
"""The name of a tool whose call is hidden."""

LONGEST_ARGUMENT = 120
"""Characters up to which an argument stays: ids, paths and flags."""

SMALLEST = 24
"""Tokens below which no placeholder is shorter than the output."""

DESCRIBED = 20
"""The part of an output's length that its placeholder may take to say what it was,"""

LONGEST_PREVIEW = 240
"""up to so many characters."""

LONGEST_ABOUT = 80
"""Characters for the tool and its main argument; half of them even where the output is short."""

SHORTEST_FACTS = 20
"""Characters below which nothing is said of an output but its size: it is hardly longer than that."""

SHORTEST_WORDS = 30
"""Characters below which a preview would say nothing."""

LARGEST_PLACEHOLDER = 160
"""Tokens up to which an output that was replaced is taken for a placeholder without reading it."""

SHORTEST_QUOTE = 4
"""Characters below which a value stands in an output by chance,"""

LATEST_CALLS = 30
"""and the latest calls that are looked at: a long view costs no more than a short one."""

_SERIES = re.compile(r'(?:(?:"[^"]{0,24}"|-?\d[\d.eE+-]*)\s*,\s*){20,}')
"""Twenty values, names of at most 24 characters or numbers, one after the other."""


class Output(msgspec.Struct, frozen=True):
    """One tool output that can be masked, or the arguments of its call."""

    part: BlockSpan
    placeholder: ToolResult | ToolUse
    saves: int
    """Tokens it is shorter by."""


class Masker:
    """Finds what can be masked in a view: not the latest `keep` outputs, nor those of exempt tools.

    With `inputs`, long arguments of the calls go along with their outputs.
    """

    def __init__(self, view: View, keep: int, exempt: tuple[str, ...], *, inputs: bool = False) -> None:
        self.view = view
        self._inputs = inputs
        self._names = tool_names(view)
        self._exempt = exempt
        self._latest = self._latest_results(keep)
        self.items = self._maskable()
        """The items whose outputs may be masked, as far as can be told without reading them."""

    def _latest_results(self, keep: int) -> set[ResultKey]:
        """Return the results that stay: the latest `keep`, and all that the model has not answered to yet."""
        stay: set[ResultKey] = set()
        answered = False
        for item in reversed(self.view.items):
            for key in reversed(result_keys(item)):
                if (not answered or len(stay) < keep) and not is_exempt(self._exempt, self._names.get(key, UNNAMED)):
                    stay.add(key)
            answered = answered or item.role == "assistant"
            if answered and len(stay) >= keep:
                break
        return stay

    def _maskable(self) -> tuple[Item, ...]:
        found = []
        outputs = output_items(self.view)
        for item, tokens in zip(outputs, self.view.each(outputs), strict=True):
            if tokens <= SMALLEST or item.pinned or self._latest.issuperset(result_keys(item)):
                continue
            if len(item.cuts) < len(item.results) or tokens > LARGEST_PLACEHOLDER * len(item.results):
                found.append(item)
        return tuple(found)

    def oldest(self, wanted: int) -> list[Output]:
        """Return outputs that save `wanted` tokens together, or all: reads that an edit made stale, then the oldest."""
        found: list[Output] = []
        saved = 0
        stale = stale_reads(self.view)
        for item in sorted(self.items, key=lambda item: stale.isdisjoint(result_keys(item))):
            if saved >= wanted:
                break
            outputs = list(self._outputs(item))
            saved += sum(output.saves for output in outputs)
            found += outputs
        return found

    def outputs_of(self, items: Sequence[Item]) -> list[Output]:
        """Return the outputs of these items that a placeholder is shorter than."""
        return [output for item in items for output in self._outputs(item)]

    def _outputs(self, item: Item) -> Iterator[Output]:
        view, alone = self.view, len(self.view.read(item).blocks) == 1
        for place, block, original, ref in results_of(view, item, self._names, self._exempt):
            if _is_masked(block) or (item.seq, block.tool_use_id) in self._latest:
                continue
            if self._inputs:
                yield from self._arguments(item, block.tool_use_id)
            # A message that is nothing but this output was weighed before, and is not weighed again.
            size = item.weight if alone else view.weigh(Message(role="user", blocks=(block,)))
            masked = placeholder(original, block, ref, call_of(view, item, block.tool_use_id))
            left = view.weigh(Message(role="user", blocks=(masked,)))
            saves = view.tokens_of(size) - view.tokens_of(left)
            if saves <= 0 or (text_length(masked.content) >= text_length(block.content) and not _media(block.content)):
                continue
            if alone:
                taken = next((cut.saves for cut in item.cuts if cut.block == place), Weight())
                yield Output(BlockSpan(message=item.seq, block=place, saves=taken + (size - left)), masked, saves)
            else:
                yield Output(replace_block(view, item, place, block, masked), masked, saves)

    def _arguments(self, item: Item, id: str) -> Iterator[Output]:
        """Yield the call of an output without its long arguments, if that is shorter."""
        view, caller = self.view, item_of_call(self.view, item, id)
        if caller is None or caller.pinned:
            return
        for place, block in enumerate(view.read(caller).blocks):
            if isinstance(block, ToolUse) and block.id == id and (caller.seq, place) not in view.restored:
                shorter = without_long_arguments(block)
                part = replace_block(view, caller, place, block, shorter)
                if (saves := view.tokens() - view.tokens_of(view.after([part]))) > 0:
                    yield Output(part, shorter, saves)


def quoted_later(view: View, outputs: Sequence[Item], keep: int) -> set[int]:
    """Return the entry numbers of outputs that one of the latest calls quoted more than `keep` messages later.

    A quote is a value, or a line of one, that neither the user nor a call shortly before had said.
    """
    found: set[int] = set()
    said: set[str] = set()
    calls = [place for place, item in enumerate(view.items) if item.calls and not item.fold][-LATEST_CALLS:]
    words = [view.read(item).text for item in view.items if item.own and not item.fold]
    texts = [(view.position(item.seq) or 0, item.seq, text_of(view.read(item).blocks)) for item in outputs]
    for place in calls:
        given = itertools.chain.from_iterable(strings(call.input) for call in view.read(view.items[place]).calls)
        values = {line.strip() for value in given for line in value.splitlines()} - said
        said |= values
        for value in values:
            if len(value) >= SHORTEST_QUOTE and not any(value in text for text in words):
                found.update(seq for at, seq, text in texts if at < place - keep and value in text)
    return found


def spent_outputs(view: View, outputs: Sequence[Item]) -> list[Item]:
    """Return those of these outputs that have little left to give.

    The same call gave a newer one, or most of it is a series: a long list of short values.
    """
    calls: dict[str, tuple[str, str]] = {}
    asked: dict[ResultKey, tuple[str, str]] = {}
    newest: dict[tuple[str, str], int] = {}
    for item in view.items:
        asked.update((key, calls[key[1]]) for key in result_keys(item) if key[1] in calls)
        for call in view.read(item).calls if item.calls and not item.fold else ():
            calls[call.id] = (call.name, call.arguments)
            newest[calls[call.id]] = item.seq
    return [
        item
        for item in outputs
        if all(newest.get(asked.get(key, ("", "")), 0) > item.seq for key in result_keys(item))
        or _is_series(text_of(view.read(item).blocks))
    ]


@lru_cache(1_000)
def _is_series(text: str) -> bool:
    return 2 * sum(len(found[0]) for found in _SERIES.finditer(text)) >= len(text)


def without_long_arguments(call: ToolUse) -> ToolUse:
    """Return a call whose long arguments say how long they were; paths, flags and numbers stay."""
    shown = {
        key: value
        if len(text := json.dumps(value, ensure_ascii=False)) <= LONGEST_ARGUMENT
        else f"[{len(text):,} characters omitted]"
        for key, value in call.input.items()
    }
    return (
        msgspec.structs.replace(call, arguments=json.dumps(shown, ensure_ascii=False), raw=None)
        if shown != call.input
        else call
    )


def stale_reads(view: View) -> set[ResultKey]:
    """Return the outputs of reads whose file a later call changed."""
    from windowsill.summaries.tool_calls import recognise  # noqa: PLC0415 - as below

    reading: dict[str, str] = {}
    reads: dict[str, list[ResultKey]] = {}
    stale: set[ResultKey] = set()
    for item in view.items:
        for key in result_keys(item):
            if path := reading.pop(key[1], ""):
                reads.setdefault(path, []).append(key)
        for call in view.read(item).calls if item.calls and not item.fold else ():
            action = recognise(call.input)
            for file in action.touched:
                if file.changed:
                    stale.update(reads.pop(file.path, ()))
                elif action.kind == "read":
                    reading[call.id] = file.path
    return stale


ResultKey: TypeAlias = tuple[int, str]
"""The entry number of a message and the call id of a result in it: many servers use the same ids in every turn."""


def result_keys(item: Item) -> list[ResultKey]:
    """Return the keys of the results of an item."""
    return [(item.seq, id) for id in item.results]


def tool_names(view: View) -> dict[ResultKey, str]:
    """Return the tool of each result whose call is visible."""
    names: dict[ResultKey, str] = {}
    calls: dict[str, str] = {}
    for item in view.items:
        note_tools(item, calls, names)
    return names


def note_tools(item: Item, calls: dict[str, str], names: dict[ResultKey, str]) -> None:
    """Note the tools of an item's results, which are those of the latest calls of their ids, and its own calls."""
    names.update((key, calls[key[1]]) for key in result_keys(item) if key[1] in calls)
    # A stand-in has calls without tools.
    calls.update(zip(item.calls, item.tools, strict=False))


def output_items(view: View) -> list[Item]:
    """Return the items with tool results that are not hidden."""
    return [item for item in view.items if item.results and not item.fold]


def mask_outputs(outputs: Sequence[Output], *, strategy: str, reason: str) -> tuple[Proposal, ...]:
    """Return the fold that masks these outputs; none without any."""
    if not outputs:
        return ()
    spans, stand_ins = tuple(each.part for each in outputs), tuple(each.placeholder for each in outputs)
    return (Proposal(kind="mask", reason=reason, strategy=strategy, spans=spans, stand_ins=stand_ins),)


def results_of(
    view: View, item: Item, names: Mapping[ResultKey, str], exempt: tuple[str, ...]
) -> Iterator[tuple[int, ToolResult, Block, str]]:
    """Yield the results of an item that may be replaced: block number, as shown, as it came, and its ref.

    Those of exempt tools, and those that somebody had shown again, are passed over.
    """
    blocks = view.read(item).blocks
    whole = view.whole(item).blocks if item.cuts else blocks
    number = 0
    for place, block in enumerate(blocks):
        if isinstance(block, ToolResult):
            number += 1
            name = names.get((item.seq, block.tool_use_id)) or block.name or UNNAMED
            if (item.seq, place) not in view.restored and not is_exempt(exempt, name):
                yield place, block, whole[place], ref_at(item.seq, number, of=len(item.results))


@lru_cache(1_000)
def is_exempt(patterns: tuple[str, ...], name: str) -> bool:
    """Tell whether the outputs of a tool with this name always stay."""
    return any(fnmatchcase(name.lower(), pattern.lower()) for pattern in patterns)


def item_of_call(view: View, item: Item, id: str) -> Item | None:
    """Return the item with the call that a result of this item answers; `None` when it is hidden."""
    place = view.position(item.seq) or 0
    earlier = (view.items[at] for at in range(place - 1, -1, -1))
    return next((each for each in earlier if id in each.calls and not each.fold), None)


def call_of(view: View, item: Item, id: str) -> ToolUse | None:
    """Return the call that a result of this item answers; `None` when it is hidden."""
    caller = item_of_call(view, item, id)
    return next((call for call in view.whole(caller).calls if call.id == id), None) if caller is not None else None


def placeholder(original: Block, shown: ToolResult, ref: str, call: ToolUse | None = None) -> ToolResult:
    """Return the result that stands for an output: its ref, its size, the call and how it ended, some of its words."""
    content = original.content if isinstance(original, ToolResult) else ()
    texts = [block.text for block in content if isinstance(block, Text) and block.text]
    lines = sum(text.count("\n") + 1 for text in texts)
    media = _media(content)
    images = sum(isinstance(block, Image) for block in media)
    sizes = {"line": lines, "image": images, "document": len(media) - images}
    size = ", ".join(f"{count:,} {what}{'' if count == 1 else 's'}" for what, count in sizes.items() if count)
    facts, preview = _describe("\n".join(texts), shown, call)
    line = Text(text=trimmed_note(ref, size, *facts) + preview)
    return msgspec.structs.replace(shown, raw=None, content=(line,), ref=OutputRef(id=ref, lines=lines))


def _describe(text: str, result: ToolResult, call: ToolUse | None) -> tuple[list[str], str]:
    """Return facts about an output, and a preview of it, in a small share of its length."""
    from windowsill.summaries.collect import read_outcome  # noqa: PLC0415 - word lists that most requests do not need

    room = min(len(text) // DESCRIBED, LONGEST_PREVIEW)
    if room < SHORTEST_FACTS and not _media(result.content):
        return [], ""
    arguments = Arguments(call.input) if call is not None else Arguments({})
    command, path = arguments.text("command"), arguments.text("path")
    about = command or path or arguments.text("pattern")
    name = call.name if call is not None else result.name or ""
    outcome = read_outcome(text, is_error=result.is_error, shows_files=bool(path) and not command)
    facts = [shorten(f"{name} {about}".strip(), max(LONGEST_ABOUT // 2, min(room, LONGEST_ABOUT)))] if name else []
    if outcome.exit is not None:
        facts.append(f"exit code {outcome.exit}")
    elif outcome.failed:
        facts.append("failed")
    first = text.strip().partition("\n")[0]
    # Of one long line, what was said last is a piece of its middle.
    words = [first] if outcome.said.strip("… ") in first else [first, outcome.said]
    half = room // 2
    return facts, "\n" + " ... ".join(shorten(each, half) for each in words) if half >= SHORTEST_WORDS else ""


def _media(content: tuple[Block, ...]) -> list[Block]:
    return [block for block in content if isinstance(block, (Image, Document))]


def _is_masked(block: ToolResult) -> bool:
    first = block.content[0] if len(block.content) == 1 else None
    return isinstance(first, Text) and first.text.startswith(TRIMMED)


class Mask(Strategy, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Masks the oldest tool outputs; the latest `keep` and those of exempt tools stay."""

    keep: int = 3
    """The latest outputs that are never masked; those the model has not answered to yet stay as well."""
    exempt: tuple[str, ...] = EXEMPT
    """Tools whose outputs are never masked, by name or pattern (`*` for anything), in lower or upper case."""
    inputs: bool = False
    """True to clear long arguments, such as the text of a written file, of the calls whose outputs are masked."""
    batch: Size = "20%"
    """The least that a batch frees, in tokens or as a share of what a request may have; less is not worth the cached
    prefix: the request grows to its limit, where the oldest messages are cut down to the low mark."""

    name = "mask"

    def __post_init__(self) -> None:
        check_count(self, "keep", "outputs")
        check_words(self, "exempt")
        tokens_of(self.batch, MEASURED, "batch")

    def plan(self, view: View, budget: Budget) -> Plan:
        """Mask the oldest outputs until the low mark is reached."""
        total = budget.fixed + view.tokens()
        wanted = budget.to_hide(total)
        if wanted <= 0:
            return Plan()
        batch = tokens_of(self.batch, budget.limit, "batch")
        masker = Masker(view, self.keep, self.exempt, inputs=self.inputs)
        chosen = masker.oldest(max(wanted, batch))
        saved = sum(output.saves for output in chosen)
        if saved < batch:
            notes = (f"mask: {saved:,} tokens are no batch of {batch:,}",) if saved else ()
            return Plan(middle=masker.items, notes=notes)
        reason = f"{total:,} tokens passed {budget.high:,}"
        return Plan(proposals=mask_outputs(chosen, strategy=self.name, reason=reason), middle=masker.items)
