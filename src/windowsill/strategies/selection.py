"""Reduction by scores: the best units stay, the others go, and a notice, a marker or a summary tells of them."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property

import msgspec

from windowsill.budget import Budget, Size, tokens_of
from windowsill.history.folds import Brief, MessageSpan, Proposal
from windowsill.history.proposals import gather, hide, marker
from windowsill.history.view import View
from windowsill.messages import ORIGIN, WITHIN_REACH, Message, Origin, text_message
from windowsill.strategies.base import (
    MEASURED,
    OFFLINE,
    RECORD_SHARE,
    Plan,
    Strategy,
    check_count,
    check_range,
    foldable_units,
)
from windowsill.strategies.scores import ScoreMemory


class Candidate(msgspec.Struct, frozen=True):
    """A unit that may go, items `start` to `stop`, with its score and its tokens, not rounded."""

    start: int
    stop: int
    score: float
    tokens: float
    kind: str = ""
    """The origin of a stand-in, empty for other units. A stand-in goes when a neighbour goes, and what then stands
    there tells of both."""


class StandIns(msgspec.Struct, frozen=True, kw_only=True):
    """The size and kind of what stands where messages were."""

    gap: int
    """Hidden messages in a row from which on they get more than a notice."""
    share: float
    """The largest size of a stand-in, as a share of what it replaces."""
    least: int
    """Tokens that a stand-in may always have."""
    largest: int
    """Tokens that a stand-in has at most: what earlier ones told is told again up to this size."""
    brief: Brief | None = None
    """The request for a summary; without it a marker says what was there."""


class Stretch(msgspec.Struct, frozen=True):
    """Neighbours that go together, items `start` to `stop`."""

    start: int
    stop: int
    tokens: float
    room: int
    """Tokens of what will stand there, at most."""
    marker: bool = False
    """True for a marker, false for a notice."""
    summary: bool = False
    """True where a summary is worth writing."""


class Selection(msgspec.Struct, frozen=True):
    """The stretches that go, and what is then left."""

    stretches: tuple[Stretch, ...]
    kept: frozenset[int]
    """The candidates that were chosen to stay, by place."""
    after: int
    """Tokens of the whole request, with stand-ins of the largest size they may have."""


def candidates_of(view: View, keep: int, scores: Sequence[float], *, least: float = math.inf) -> list[Candidate]:
    """Return the units that may go, each worth as much as the best of its messages; none worth `least` or more."""
    tokens = view.estimates(item.weight for item in view.items)
    found: list[Candidate] = []
    for unit in foldable_units(view, keep):
        score, size = max(scores[unit.start : unit.stop]), 0.0
        for estimate in tokens[unit.start : unit.stop]:
            # One after the other: from Python 3.12 on `sum` rounds differently.
            size += estimate
        kind = ""
        if unit.stop - unit.start == 1 and view.items[unit.start].fold:
            stand_in = view.read(view.items[unit.start])
            kind = Origin.MARKER if stand_in.metadata.get("writer") == OFFLINE else stand_in.origin or Origin.MARKER
        if kind or score < least:
            found.append(Candidate(unit.start, unit.stop, score, size, kind))
    return found


class Selector:
    """Chooses what stays, best first.

    What is worth `forced` or more stays even beyond the target, though never beyond the limit.
    """

    def __init__(
        self,
        view: View,
        budget: Budget,
        candidates: Sequence[Candidate],
        stand_ins: StandIns,
        *,
        forced: float = math.inf,
    ) -> None:
        if stand_ins.brief is None:
            # What a model or a user wrote is not given up for a marker; what code wrote is written again.
            candidates = [each for each in candidates if each.kind != Origin.SUMMARY]
        self.view = view
        self.stand_ins = stand_ins
        self.candidates = candidates
        self.limit = budget.limit
        self.total = budget.fixed + view.estimates([view.weight])[0]
        places = [place for place, each in enumerate(candidates) if not each.kind]
        self.held = self.total - sum(candidates[place].tokens for place in places)
        # Of two that are worth the same, the newer one stays.
        self.ranked = sorted(places, key=lambda place: (-candidates[place].score, -place))
        self.forced = bisect_right(self.ranked, -forced, key=lambda place: -candidates[place].score)

    def select(self, target: int) -> Selection:
        """Keep the best that fit `target` together with what stands for the rest.

        What the stand-ins need is only known when it is known what goes: each try leaves more room for them.
        """
        room, most, step = target - self.held, self.limit - self.held, 1
        while True:
            kept = self._keep(room, most)
            chosen = self._settle(kept)
            if chosen.after <= target or not kept or (room < 0 and chosen.after <= self.limit):
                return chosen
            if chosen.after > self.limit:
                most -= (chosen.after - self.limit) * step
            room -= (chosen.after - target) * step
            step *= 2

    def _keep(self, room: float, most: float) -> frozenset[int]:
        """Choose the best that fit together, those that are forced first."""
        kept: set[int] = set()
        used = 0.0
        for limit, ranked in ((most, self.ranked[: self.forced]), (min(room, most), self.ranked[self.forced :])):
            for place in ranked:
                after = used + self.candidates[place].tokens
                if after <= limit:
                    kept.add(place)
                    used = after
        return frozenset(kept)

    def _settle(self, kept: frozenset[int]) -> Selection:
        # Where a notice would be longer than what it stands for, the messages stay.
        found = [self._stretch(row) for row in self._rows(kept)]
        stretches = tuple(each for each in found if each is not None and each.room < each.tokens)
        after = self.total - sum(each.tokens - each.room for each in stretches)
        return Selection(stretches, kept, math.ceil(after))

    def _rows(self, kept: frozenset[int]) -> Iterator[list[Candidate]]:
        """Return the neighbours that go together."""
        row: list[Candidate] = []
        for place, each in enumerate(self.candidates):
            if row and (place in kept or row[-1].stop != each.start):
                yield row
                row = []
            if place not in kept:
                row.append(each)
        if row:
            yield row

    def _stretch(self, row: Sequence[Candidate]) -> Stretch | None:
        """Return what goes in the place of neighbours; nothing when they all stand for others already."""
        kinds = [each.kind for each in row if each.kind]
        if len(kinds) == len(row):
            return None
        wanted, tokens = self.stand_ins, sum(each.tokens for each in row)
        start, stop = row[0].start, row[-1].stop
        items = self.view.items[start:stop]
        messages = sum(item.hides or 1 for item in items)
        short = self.view.tokens_of(self.view.weigh(notice(messages)))
        before = sum(each.tokens for each in row if each.kind)
        # What earlier stand-ins took is theirs still: with a share of all, each reduction would have to forget.
        room = max(wanted.least, short, min(wanted.largest, int(before + (tokens - before) * wanted.share)))
        long = messages >= wanted.gap
        if any(kind != Origin.NOTICE for kind in kinds):
            # What was told before is told again, however little room there is.
            room = max(short, min(room, math.ceil(tokens) - 1))
            return Stretch(start, stop, tokens, room, marker=True, summary=True)
        if room < tokens and (long or any(item.own for item in items)):
            return Stretch(start, stop, tokens, room, marker=True, summary=long)
        return Stretch(start, stop, tokens, short)

    def proposal(self, stretches: Sequence[Stretch], *, strategy: str, reason: str) -> Proposal | None:
        """Return the fold that hides these."""
        if not stretches:
            return None
        hidden = [self._hide(stretch) for stretch in stretches]
        brief = self.stand_ins.brief
        briefs = [
            msgspec.structs.replace(brief, room=stretch.room) if brief and stretch.summary else None
            for stretch in stretches
        ]
        return Proposal(
            kind="prune",
            reason=reason,
            strategy=strategy,
            spans=tuple(run for run, _ in hidden),
            stand_ins=tuple(stand_in for _, stand_in in hidden),
            briefs=tuple(briefs) if any(briefs) else (),
        )

    def _hide(self, stretch: Stretch) -> tuple[MessageSpan, Message]:
        view, items = self.view, self.view.items[stretch.start : stretch.stop]
        facts = gather(view, items)
        if stretch.marker:
            stand_in = marker(facts)
            run = hide(view, items, facts, stand_in)
            if view.tokens_of(run.weight) <= stretch.room:
                return run, stand_in
        stand_in = notice(facts.messages)
        return hide(view, items, facts, stand_in), stand_in


def notice(messages: int) -> Message:
    """Return a stand-in that says how many messages were there."""
    what = "1 earlier message is" if messages == 1 else f"{messages:,} earlier messages are"
    text = f"[Memory Summary] {what} left out here{WITHIN_REACH}."
    return text_message("user", text, metadata={ORIGIN: Origin.NOTICE})


class ScoreStrategy(Strategy, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A strategy that keeps the messages with the best scores, with the settings that all of these share.

    What goes, goes in whole units: each is worth as much as the best of its messages.
    """

    keep: int = 4
    """The latest messages that are never hidden."""
    target: Size | None = None
    """The size after a reduction, in tokens or as a share of what a request may have; `None` for the low mark."""
    worth: float = 0.05
    """The share of what a request may have that a reduction must free while the request still fits: each one breaks
    the cached prefix."""
    quote: float = RECORD_SHARE
    """The share of what a request may have, that one stand-in may take to tell what has to be carried over."""

    def __post_init__(self) -> None:
        check_count(self, "keep", "messages")
        check_range(self, ("worth", "quote"), 0, 1, "a number from 0 to 1")
        if self.target is not None:
            tokens_of(self.target, MEASURED, "target")

    def reduce(self, selector: Selector, budget: Budget, total: int, level: str = "") -> Plan:
        """Hide what is worth least until the target, or the low mark, is reached; `level` is part of the reason."""
        view = selector.view
        goal = self.goal(budget, total)
        chosen = selector.select(goal)
        middle = tuple(item for each in selector.candidates for item in view.items[each.start : each.stop])
        notes = self.describe(selector, chosen, goal)
        saved = total - chosen.after
        if total <= budget.limit and saved < self.worth * budget.limit:
            notes.append(f"{self.name}: {saved:,} tokens are not worth a reduction yet")
            return Plan(middle=middle, notes=tuple(notes))
        reason = f"{total:,} tokens passed {budget.high:,}" + (f" ({level})" if level else "")
        proposal = selector.proposal(chosen.stretches, strategy=self.name, reason=reason)
        if level:
            notes.insert(0, f"{self.name}: {level}, {total:,} tokens")
        return Plan(proposals=(proposal,) if proposal else (), middle=middle, notes=tuple(notes))

    def goal(self, budget: Budget, total: int) -> int:
        """Return the tokens of the request after a reduction: the target, or the low mark."""
        if self.target is not None:
            return min(budget.high, tokens_of(self.target, budget.limit, "target"))
        return total - budget.to_hide(total)

    def describe(self, selector: Selector, chosen: Selection, goal: int) -> list[str]:
        """Return notes about what was chosen to stay."""
        raise NotImplementedError

    @cached_property
    def memory(self) -> ScoreMemory:
        """The scores of visible messages, as far as they are known."""
        return ScoreMemory()
