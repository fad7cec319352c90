"""Economy: fold when that costs less than carrying on, and keep what later calls need.

A provider reads a cached prefix for a fraction of the price and charges more than the price to write one. So a fold
pays when what it takes out of the later requests is worth more than writing what stands behind it again. Earlier
stand-ins stay byte for byte, and with them the cache: a fold adds one behind them. They are joined into one when the
cache has gone cold, as everything is written again then anyway, or when they take too much room.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

import msgspec

from windowsill.budget import Budget
from windowsill.history.folds import MessageSpan, Proposal
from windowsill.history.marker import gather, hide
from windowsill.history.units import Unit
from windowsill.history.view import Item, View
from windowsill.messages import ORIGIN, Message, Origin, Text, ToolResult, ToolUse, text_message, text_of
from windowsill.strategies.base import (
    Plan,
    Strategy,
    check_count,
    check_range,
    held_places,
    items_of,
    join_neighbours,
    oldest_units,
    units_after_task,
)
from windowsill.strategies.working_set import FACTS, calls_before, collect, strings, touched_files, write
from windowsill.summaries.collect import collect_hidden
from windowsill.summaries.frame import frame
from windowsill.summaries.offline import lay_out

Action: TypeAlias = Literal["wait", "add", "join"]

TAIL = (0.10, 3_000)
"""The latest messages that stay as they are: the share of the room for messages, and the most tokens."""

LINES = (0.32, 7_500)
NAMES = (0.22, 3_500)
RECORD = (0.20, 2_000)
"""Lines, names and the record (words of the user, decisions, failures) in a stand-in that is made anew."""

MORE_LINES = (0.10, 3_000)
MORE_NAMES = (0.10, 2_000)
MORE_RECORD = (0.06, 1_000)
"""The same in a stand-in that is added behind others."""

MOST_STAND_INS = 0.6
"""The share of the room that stand-ins may take before they are joined."""

LEAST_SAVED = 10
"""Joining stand-ins must save one part in so many: for less they stay as they are."""

FRAME = 100
"""Tokens of the frame around a text."""

HALF = 0.5
"""The share of the limit up to which nothing is folded, whatever it would save: what has room is worth having."""

FEWEST_CALLS = 5
MOST_CALLS = 15
"""Calls that are expected to follow at least, and at most. In between: half as many as were made without a pause."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """A decision with the figures it was made from. Prices are in tokens of fresh input."""

    action: Action
    why: str = ""
    cut: int = 0
    """The position up to which messages would be hidden."""
    hidden: int = 0
    """Tokens that would be hidden."""
    written: int = 0
    """Tokens of the text in their place, at most."""
    rest: int = 0
    """Tokens behind it, which have to be cached again."""
    saves: float = 0.0
    costs: float = 0.0
    calls: float = 0.0
    """Calls that are expected before the cache goes cold."""
    idle: float = 0.0
    """Seconds since the model last answered."""


WAIT = Decision(action="wait")


class Economy(Strategy, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Folds when it saves money or room, and keeps the lines and names that later calls may need."""

    keep: int = 12
    """The latest messages that stay while the request fits: what was just read is about to be used."""
    lines: float = 1.0
    """Lines of files and outputs that stand-ins keep, as a multiple of the usual."""
    names: float = 1.0
    """Names, paths and ids that stand-ins keep, as a multiple of the usual."""

    name = "economy"
    priced = True

    def __post_init__(self) -> None:
        check_count(self, "keep", "messages")
        check_range(self, ("lines", "names"), 0, 10, "a number from 0 to 10")

    def due(self, view: View, budget: Budget) -> bool:
        """Tell whether a fold pays, or joins stand-ins for nothing because the cache is cold."""
        return self.decide(view, budget).action != "wait"

    def decide(self, view: View, budget: Budget) -> Decision:
        """Decide what to do now, from sizes, prices, pauses and the calls that are expected."""
        total = budget.fixed + view.tokens()
        if (total <= budget.high and total <= HALF * budget.limit) or budget.step:
            return WAIT
        room = _room(view, budget)
        start = _behind_stand_ins(view)
        each = view.each(view.items[start:])
        must = total > budget.high
        idle = _idle(view)
        cold = idle > budget.cache.lifetime
        calls = max(FEWEST_CALLS, min(MOST_CALLS, _calls_in_a_row(view, view.items, budget.cache.lifetime) / 2))
        cut = _cut(each, _size(TAIL, room), 0 if must or cold else self.keep)
        stays = sum(each[place - start] for place in held_places(view) if start <= place < start + cut)
        hidden, rest = sum(each[:cut]) - stays, sum(each[cut:]) + stays
        standing = total - budget.fixed - hidden - rest - _first_tokens(view)
        pieces = sum(_size(size, room) for size in (MORE_LINES, MORE_NAMES, MORE_RECORD))
        written = min(hidden, pieces)
        action: Action = "add" if standing < MOST_STAND_INS * room else "join"
        figures = Decision(
            action=action, cut=start + cut, hidden=hidden, written=written, rest=rest, calls=calls, idle=idle
        )
        if must:
            why = f"{total:,} tokens passed {budget.high:,}"
            return msgspec.structs.replace(figures, why=why)
        whole = sum(_size(size, room) for size in (LINES, NAMES, RECORD))
        if cold:
            if standing + hidden <= whole // 2:
                return WAIT
            why = f"the cache is cold after {idle:,.0f} seconds: the request is written again anyway"
            return msgspec.structs.replace(figures, action="join", why=why)
        saves = budget.cache.read * (hidden - written) * calls
        costs = budget.cache.write * (rest + written)
        if saves <= costs:
            return WAIT
        why = f"hiding {hidden:,} tokens saves {saves:,.0f} over {calls:.0f} calls, writing {costs:,.0f}"
        return msgspec.structs.replace(figures, why=why, saves=saves, costs=costs)

    def plan(self, view: View, budget: Budget) -> Plan:
        """Fold as decided; where every request is made anew, the oldest that do not fit."""
        middle = units_after_task(view)
        if budget.step:
            # What stands in has the room above the high mark, whatever was said since: the cut stays for many turns.
            wanted = budget.to_hide(budget.fixed + view.tokens())
            chosen = oldest_units(view, middle, cut=0, wanted=wanted) if wanted > 0 else []
            why = f"{budget.fixed + view.tokens():,} tokens passed {budget.high:,}"
            decision = Decision(action="join", why=why)
        else:
            decision = self.decide(view, budget)
            if decision.action == "wait":
                return Plan(middle=items_of(view, middle))
            first = _behind_stand_ins(view) if decision.action == "add" else 0
            chosen = [unit for unit in middle if first <= unit.start and unit.stop <= decision.cut]
            if decision.action == "add" and not chosen:
                chosen = [unit for unit in middle if unit.stop <= decision.cut]
        proposal = self._fold(view, budget, chosen, decision)
        return Plan(proposals=(proposal,) if proposal else (), middle=items_of(view, middle))

    def _fold(self, view: View, budget: Budget, chosen: Sequence[Unit], decision: Decision) -> Proposal | None:
        stretches = [
            stretch
            for stretch in join_neighbours(chosen)
            if not all(item.fold for item in view.items[stretch.start : stretch.stop]) or decision.action == "join"
        ]
        sizes = [view.tokens(*view.items[stretch.start : stretch.stop]) for stretch in stretches]
        room = _room(view, budget)
        added = decision.action == "add" and any(item.fold for item in view.items)
        hidden = {place for stretch in stretches for place in range(stretch.start, stretch.stop)}
        outside = [item for place, item in enumerate(view.items) if place not in hidden]
        shown_text = "\n".join(text for item in outside for text in _texts(view.read(item)))
        shown = {line.strip() for line in shown_text.split("\n")}
        touched = touched_files(view, view.items)
        spans: list[MessageSpan] = []
        stand_ins = []
        ratio = max(1.0, view.scale.calibration.code)
        if budget.step:
            whole = sum(_size(size, room) for size in (LINES, NAMES, RECORD))
            ratio *= max(1.0, whole / max(1, budget.limit - budget.high - FRAME))
        cold = decision.idle > budget.cache.lifetime
        for stretch, size in zip(stretches, sizes, strict=True):
            items = view.items[stretch.start : stretch.stop]
            share = size / max(1, sum(sizes)) / ratio
            facts = gather(view, items)
            count = view.scale.counter.count
            record = lay_out(
                "summary",
                collect_hidden(view, items),
                int(_size(MORE_RECORD if added else RECORD, room) * share),
                count,
                details=0,
            )
            written = write(
                collect(view, items),
                now=view.items[-1].seq,
                shown=shown,
                shown_text=shown_text,
                touched=touched,
                lines=int(_size(MORE_LINES if added else LINES, room) * share * self.lines),
                names=int(_size(MORE_NAMES if added else NAMES, room) * share * self.names),
                count=count,
                calls=0 if cold else _calls_in_a_row(view, view.items[: stretch.stop], budget.cache.lifetime),
            )
            body = "\n\n".join(part for part in (record, written.text) if part)
            stand_in = text_message("user", frame(body, source=self.name), metadata={ORIGIN: Origin.SUMMARY})
            run = hide(view, items, facts, stand_in)
            if view.tokens_of(run.saves) > (size // LEAST_SAVED if cold else 0):
                spans.append(msgspec.structs.replace(run, facts={**run.facts, FACTS: written.facts}))
                stand_ins.append(stand_in)
        if not spans:
            return None
        return Proposal(
            kind="condense",
            reason=decision.why,
            strategy=self.name,
            spans=tuple(spans),
            stand_ins=tuple(stand_ins),
        )


def _size(size: tuple[float, int], room: int) -> int:
    share, most = size
    return min(most, int(share * room))


def _room(view: View, budget: Budget) -> int:
    """Count the tokens that messages behind the task may have."""
    return max(0, budget.limit - budget.fixed - _first_tokens(view))


def _first_tokens(view: View) -> int:
    """Count the tokens of the system messages and the task, which always stay."""
    task = view.task()
    first = view.leading() if task is None else task + 1
    return view.tokens(*view.items[:first]) if first else 0


def _behind_stand_ins(view: View) -> int:
    """Return the position behind the last stand-in, or behind the task."""
    items = view.items
    last = next((place for place in range(len(items) - 1, -1, -1) if items[place].fold), None)
    if last is not None:
        return last + 1
    task = view.task()
    return view.leading() if task is None else task + 1


def _cut(each: Sequence[int], tail: int, keep: int) -> int:
    """Return how many of these stand before the tail: within its tokens, and at least `keep` behind it."""
    place, left = len(each), tail
    while place and left >= each[place - 1]:
        left -= each[place - 1]
        place -= 1
    return max(0, min(place, len(each) - keep))


def _idle(view: View) -> float:
    """Return the seconds between the model's last answer and the newest message."""
    last = next((item for item in reversed(view.items) if item.role == "assistant" and not item.fold), None)
    return 0.0 if last is None else view.read(view.items[-1]).at - view.read(last).at


def _calls_in_a_row(view: View, items: Sequence[Item], lifetime: float) -> int:
    """Count the calls before the end of these items that were made without a pause longer than the cache lives."""
    later: float | None = None
    count = 0
    for item in reversed(items):
        if item.fold:
            return count + calls_before(item)
        at = view.read(item).at
        if later is not None and later - at > lifetime:
            break
        count += item.role == "assistant"
        later = at
    return count


def _texts(message: Message) -> Iterator[str]:
    """Yield what a message says: its words, the arguments of its calls, and what tools answered."""
    for block in message.blocks:
        if isinstance(block, ToolUse):
            yield from strings(block.input)
        elif isinstance(block, ToolResult):
            yield text_of(block.content)
        elif isinstance(block, Text):
            yield block.text
