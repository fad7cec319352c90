"""Turns, and the stretch of a conversation that one text may stand for.

A turn begins with a message of the user's own words and ends before the next one. An agent that works on one task for
hours has a single turn: strategies that keep whole turns go into it, unit by unit, when nothing else is left to hide.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import msgspec

from windowsill.errors import WindowsillError
from windowsill.history.folds import Part, Proposal, Run
from windowsill.history.survey import between, survey
from windowsill.history.units import Unit
from windowsill.history.view import Item, View
from windowsill.messages import Message
from windowsill.strategies.free import Free, free, joined
from windowsill.tokens import Weight


class Turn(msgspec.Struct, frozen=True):
    """Items `start` to `stop` (exclusive) of a view."""

    start: int
    stop: int


def turns(view: View) -> list[Turn]:
    """The turns that still hold something that can be hidden, oldest first.

    Of a turn that was hidden, the task, a pin or a stand-in may remain: that is no turn any more.
    """
    known = survey(view)
    task = view.task()
    first = view.leading() if task is None else task
    ends = [first, *between(known.own, first + 1, len(view.items)), len(view.items)]
    stay = {*known.folds, *known.pinned, *(() if task is None else (task,))}
    # Only where something stays for ever can nothing else be left.
    kept = Counter(bisect_right(ends, place) - 1 for place in stay if place >= first)
    return [Turn(start, stop) for number, (start, stop) in enumerate(pairwise(ends)) if stop - start > kept[number]]


def latest_words(view: View) -> int | None:
    """The position of the user's latest own words; `None` while there are none but the task."""
    own, task = survey(view).own, view.task()
    return own[-1] if own and own[-1] > (-1 if task is None else task) else None


def replaceable(view: View, keep: int = 1) -> Free:
    """The units after the task that a text may stand for, oldest first, without the latest `keep` messages."""
    task = view.task()
    return free(view, keep).after(-1 if task is None else task)


def items_of(view: View, units: Sequence[Unit]) -> tuple[Item, ...]:
    """The items of these units, in order."""
    return joined(view, units).items


def oldest(view: View, units: Sequence[Unit], *, cut: int, wanted: int, room: int) -> Free:
    """The units that end at `cut` or before, and more until `wanted` tokens and `room` for the text are free."""
    units = joined(view, units)
    chosen = units.before(cut)
    if wanted <= 0 or len(chosen) == len(units):
        return chosen
    missing = wanted - view.tokens_of(chosen.weight) + room
    sums = units.known.tally(view).units
    count = len(chosen)
    for first, last in units[count:].ranges:
        if missing <= 0:
            break
        reached = bisect_left(sums, sums[first] + missing, first, last)
        missing -= sums[reached] - sums[first]
        count += reached - first
    return units[:count]


def live_tokens(view: View, units: Free) -> int:
    """What these units weigh without the stand-ins among them: what is new to a text that is written again."""
    return view.tokens_of(units.weight - units.told)


def freed_by(view: View, proposals: Sequence[Proposal]) -> int:
    """The tokens that proposals free if nothing is written for them; 0 when one does not fit the view."""
    saved = Weight()
    parts: list[Part] = []
    try:
        for proposal in proposals:
            for span, stand_in in zip(proposal.spans, proposal.stand_ins, strict=True):
                if isinstance(span, Run):
                    where = view.slice_of(span.first, span.last)
                    hidden = survey(view).weight(where.start, where.stop)
                    saved = saved + hidden - (view.weigh(stand_in) if isinstance(stand_in, Message) else Weight())
                else:
                    parts.append(span)
        return view.tokens() - view.tokens_of(view.after(parts) - saved)
    except (WindowsillError, ValueError, TypeError, AttributeError):
        # A plug-in may propose anything: what cannot be folded frees nothing.
        return 0
