"""Turns, and the stretch of a conversation that one text may stand for.

A turn begins with a message of the user's own words and ends before the next one. An agent that works on one task for
hours has a single turn: strategies that keep whole turns go into it, unit by unit, when nothing else is left to hide.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import msgspec

from windowsill.errors import WindowsillError
from windowsill.history.folds import Part, Proposal, Run
from windowsill.history.units import Unit
from windowsill.history.view import Item, View, sum_weights
from windowsill.messages import Message
from windowsill.strategies.sliding_window import free_units
from windowsill.tokens import Weight


class Turn(msgspec.Struct, frozen=True):
    """Items `start` to `stop` (exclusive) of a view."""

    start: int
    stop: int


def turns(view: View) -> list[Turn]:
    """The turns that still hold something that can be hidden, oldest first.

    Of a turn that was hidden, the task, a pin or a stand-in may remain: that is no turn any more.
    """
    found: list[Turn] = []
    items = view.items
    task, live = view.task(), False
    start = view.leading() if task is None else task
    for index in range(start, len(items)):
        item = items[index]
        if item.own and not item.fold and index > start:
            if live:
                found.append(Turn(start, index))
            start, live = index, False
        live = live or not (item.fold or item.pinned or index == task)
    if live:
        found.append(Turn(start, len(items)))
    return found


def latest_words(view: View) -> int | None:
    """The position of the user's latest own words; `None` while there are none but the task."""
    task = view.task()
    for index in range(len(view.items) - 1, -1 if task is None else task, -1):
        if view.items[index].own and not view.items[index].fold:
            return index
    return None


def replaceable(view: View, keep: int = 1) -> list[Unit]:
    """The units after the task that a text may stand for, oldest first, without the latest `keep` messages."""
    task = view.task()
    after = -1 if task is None else task
    return [unit for unit in free_units(view, keep) if unit.start > after]


def without(units: Sequence[Unit], position: int | None) -> list[Unit]:
    """The units but for the one that holds this position."""
    return [unit for unit in units if position is None or not unit.start <= position < unit.stop]


def oldest(view: View, units: Sequence[Unit], *, cut: int, wanted: int, room: int) -> list[Unit]:
    """The units that end at `cut` or before, and more until `wanted` tokens and `room` for the text are free."""
    first = bisect_right(units, cut, key=lambda unit: unit.stop)
    chosen = list(units[:first])
    if wanted <= 0 or first == len(units):
        return chosen
    hidden = view.tokens_of(weight_of(view, chosen)) - room
    for unit in units[first:]:
        if hidden >= wanted:
            break
        chosen.append(unit)
        hidden += view.tokens_of(unit.weight(view.items))
    return chosen


def weight_of(view: View, units: Sequence[Unit]) -> Weight:
    """What units, given in order, weigh together; where they are most of the view, counted from what is left."""
    inside = stretches(units)
    if 2 * sum(stop - start for start, stop in inside) <= len(view.items):
        return sum_weights(item.weight for start, stop in inside for item in view.items[start:stop])
    ends = [0, *(end for stretch in inside for end in stretch), len(view.items)]
    gaps = zip(ends[::2], ends[1::2], strict=True)
    return view.weight - sum_weights(item.weight for start, stop in gaps for item in view.items[start:stop])


def live_tokens(view: View, units: Sequence[Unit]) -> int:
    """What these units weigh without the stand-ins among them: what is new to a text that is written again."""
    told = sum_weights(item.weight for start, stop in stretches(units) for item in view.items[start:stop] if item.fold)
    return view.tokens_of(weight_of(view, units) - told)


def items_of(view: View, units: Sequence[Unit]) -> tuple[Item, ...]:
    """The items of these units, in order."""
    return tuple(item for start, stop in stretches(units) for item in view.items[start:stop])


def stretches(units: Sequence[Unit]) -> list[tuple[int, int]]:
    """Neighbouring units joined: `(start, stop)` of each stretch."""
    found: list[tuple[int, int]] = []
    for unit in units:
        if found and found[-1][1] == unit.start:
            found[-1] = (found[-1][0], unit.stop)
        else:
            found.append((unit.start, unit.stop))
    return found


def freed_by(view: View, proposals: Sequence[Proposal]) -> int:
    """The tokens that proposals free if nothing is written for them; 0 when one does not fit the view."""
    saved = Weight()
    parts: list[Part] = []
    try:
        for proposal in proposals:
            for span, stand_in in zip(proposal.spans, proposal.stand_ins, strict=True):
                if isinstance(span, Run):
                    hidden = sum_weights(item.weight for item in view.items[view.slice_of(span.first, span.last)])
                    saved = saved + hidden - (view.weigh(stand_in) if isinstance(stand_in, Message) else Weight())
                else:
                    parts.append(span)
        return view.tokens() - view.tokens_of(view.after(parts) - saved)
    except (WindowsillError, ValueError, TypeError, AttributeError):
        # A plug-in may propose anything: what cannot be folded frees nothing.
        return 0
