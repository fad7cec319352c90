"""Sliding window: the oldest units go first, whole, and a marker stands where they were."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from windowsill.budget import Budget
from windowsill.errors import SettingError
from windowsill.history.folds import Brief, FoldKind, Proposal, Run
from windowsill.history.hiding import hide
from windowsill.history.marker import gather, marker
from windowsill.history.units import Unit, units
from windowsill.history.view import View
from windowsill.messages import Message
from windowsill.strategies import Plan

CHARACTERS_PER_TOKEN = 4
"""Turns a token budget for quotations into characters; the marker itself is weighed exactly."""

MARKER_TOKENS = 120
"""What a marker weighs without its quotations."""

LARGEST_KEEP = 10_000


class SlidingWindow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keeps the system prompt, the task, the pins and the latest `keep` messages; hides the oldest of the rest."""

    keep: int = 4
    """The latest messages that are never hidden while anything else can be."""
    quote: float = 0.05
    """The share of the window in which the user's hidden words are quoted word for word."""

    name = "sliding-window"

    def __post_init__(self) -> None:
        if not 0 <= self.keep <= LARGEST_KEEP:
            raise SettingError("keep", self.keep, f"a number of messages from 0 to {LARGEST_KEEP:,}")
        if not 0 <= self.quote <= 1:
            raise SettingError("quote", self.quote, "a share of the window from 0 to 1")

    def plan(self, view: View, budget: Budget) -> Plan:
        """Hide the oldest units until the low mark is reached."""
        total = budget.fixed + view.tokens()
        wanted = budget.to_hide(total)
        if wanted <= 0:
            return Plan()
        quote = int(self.quote * budget.limit)
        middle = free_units(view, self.keep)
        chosen: list[Unit] = []
        hidden, quotable = -MARKER_TOKENS, quote
        weights = view.each(view.items)
        for unit in middle:
            if hidden >= wanted:
                break
            chosen.append(unit)
            for item, tokens in zip(view.items[unit.start : unit.stop], weights[unit.start : unit.stop], strict=True):
                kept = min(tokens, quotable) if item.own or item.fold else 0
                quotable -= kept
                hidden += tokens - kept
        proposal = fold_units(
            view, chosen, strategy=self.name, reason=f"{total:,} tokens passed {budget.high:,}", quote=quote
        )
        items = tuple(item for unit in middle for item in view.items[unit.start : unit.stop])
        return Plan(proposals=(proposal,) if proposal else (), middle=items)


def free_units(view: View, keep: int) -> list[Unit]:
    """The units that may go: not the system messages that lead, the task, pins, running calls, or the latest `keep`.

    The last unit always stays: a request without it would ask for nothing.
    """
    items = view.items
    task = view.task()
    leading = view.leading()
    return [
        unit
        for unit in units(items)
        if not unit.open
        and unit.start >= leading
        and unit.stop <= len(items) - max(keep, 1)
        and not (task is not None and unit.start <= task < unit.stop)
        and not any(item.pinned for item in items[unit.start : unit.stop])
    ]


def fold_units(
    view: View,
    chosen: Sequence[Unit],
    *,
    strategy: str,
    reason: str,
    quote: int,
    kind: FoldKind = "truncate",
    brief: Brief | None = None,
) -> Proposal | None:
    """A fold of these units: neighbours become one run, each run gets a marker if that makes it smaller.

    With a `brief` a summary is to be written for each run; the marker remains where that fails.
    """
    spans: list[Run] = []
    markers: list[Message] = []
    for start, stop in _runs(chosen):
        items = view.items[start:stop]
        if all(item.fold for item in items):
            continue
        facts = gather(
            items, tokens=view.each, read=view.read, room=quote * CHARACTERS_PER_TOKEN // max(1, len(spans) + 1)
        )
        stand_in = marker(facts)
        run = hide(view, items, facts, stand_in)
        if view.tokens_of(run.saves + run.weight) <= view.tokens_of(run.weight):
            continue
        spans.append(run)
        markers.append(stand_in)
    if not spans:
        return None
    return Proposal(
        kind=kind,
        reason=reason,
        strategy=strategy,
        spans=tuple(spans),
        stand_ins=tuple(markers),
        briefs=() if brief is None else (brief,) * len(spans),
    )


def _runs(chosen: Sequence[Unit]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for unit in chosen:
        if runs and runs[-1][1] == unit.start:
            runs[-1] = (runs[-1][0], unit.stop)
        else:
            runs.append((unit.start, unit.stop))
    return runs
