"""How a view is reduced by scores: the best stay, the rest goes in whole units, and something tells of it."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, chain, pairwise

import msgspec

from windowsill.budget import Budget, Size, tokens_of
from windowsill.errors import WindowsillError
from windowsill.history.folds import Brief, Proposal, Run
from windowsill.history.hiding import hide_between
from windowsill.history.marker import gather_between, marker
from windowsill.history.survey import between, survey
from windowsill.history.view import Item, View
from windowsill.messages import Message, text_message
from windowsill.strategies.free import CHARACTERS_PER_TOKEN, free
from windowsill.strategies.scoring import Memory, key_of
from windowsill.tokens import Weight

NOTICE = "notice"
"""The metadata `windowsill` of a stand-in that tells nothing but how many messages were there."""


class Candidates(msgspec.Struct, kw_only=True):
    """The units that may go, oldest first, in columns: there are thousands of them, and a few are looked at."""

    starts: list[int]
    """Positions of their first items,"""
    stops: list[int]
    """and behind their last."""
    scores: list[float]
    tokens: list[float]
    kinds: dict[int, str]
    """Those that stand for hidden messages already, by place: they go when a neighbour goes, and what then stands there
    tells of both."""
    gaps: list[int]
    """Places of those that do not follow on the one before."""
    forced: float
    """What is worth so much stays even beyond the target, though never beyond the limit."""

    def only(self, places: Sequence[int]) -> Candidates:
        """Some of them."""
        starts, stops = [self.starts[place] for place in places], [self.stops[place] for place in places]
        return Candidates(
            starts=starts,
            stops=stops,
            scores=[self.scores[place] for place in places],
            tokens=[self.tokens[place] for place in places],
            kinds={new: self.kinds[old] for new, old in enumerate(places) if old in self.kinds},
            gaps=[place for place in range(1, len(starts)) if starts[place] != stops[place - 1]],
            forced=self.forced,
        )

    def items(self, view: View) -> tuple[Item, ...]:
        """All that could be hidden."""
        ends = [0, *self.gaps, len(self.starts)] if self.starts else []
        rows = (view.items[self.starts[first] : self.stops[last - 1]] for first, last in pairwise(ends))
        return tuple(chain.from_iterable(rows))


class StandIns(msgspec.Struct, frozen=True, kw_only=True):
    """What stands where messages were."""

    gap: int
    """Hidden messages in a row from which on they are told of in more than a notice."""
    share: float
    """Of what is hidden, the most that tells of it,"""
    least: int
    """but at least so many tokens."""
    quote: int
    """Tokens in which the user's hidden words are quoted, all together."""
    brief: Brief | None = None
    """What is to be written for them; without it a marker says what was there."""


class Stretch(msgspec.Struct, frozen=True):
    """Neighbours that go together, items `start` to `stop`."""

    start: int
    stop: int
    tokens: float
    messages: int
    room: int
    """Tokens of what will stand there, at most."""
    told: bool = False
    """Whether that is more than a notice."""
    written: bool = False
    """Whether it is worth a summary."""


class Selection(msgspec.Struct, frozen=True):
    """What goes, and what is then left."""

    stretches: tuple[Stretch, ...]
    kept: bytearray
    """For each candidate 1 when it was chosen to stay."""
    after: int
    """Tokens of the whole request, with stand-ins of the largest size they may have."""


def best_of_units(view: View, values: list[float]) -> list[float]:
    """What the best message of each unit is worth."""
    known = survey(view)
    ends = [*known.starts[1:], len(view.items)]
    return list(map(max, map(values.__getitem__, map(slice, known.starts, ends))))


def candidates_of(
    view: View, keep: int, best: Sequence[float], *, least: float = math.inf, forced: float = math.inf
) -> Candidates:
    """The units that may go, each worth as much as the best of its messages; what is worth `least` or more is none.

    Those worth `forced` or more stay beyond the target.
    """
    units = free(view, keep)
    known = units.known
    sizes = known.tally(view).sizes
    ends = [*known.starts, len(view.items)]
    starts, stops = units.of(ends), units.of(ends[1:])
    scores, tokens = units.of(best), units.of(sizes)
    found = Candidates(
        starts=starts,
        stops=stops,
        scores=scores,
        tokens=tokens,
        kinds={},
        gaps=list(accumulate(last - first for first, last in units.ranges[:-1])),
        forced=forced,
    )
    for position in known.folds:
        place = bisect_left(starts, position)
        if place < len(starts) and starts[place] == position == stops[place] - 1:
            found.kinds[place] = _kind(view, view.items[position])
    if least == math.inf:
        return found
    return found.only([place for place, score in enumerate(found.scores) if score < least or place in found.kinds])


_KINDS: Memory[str] = Memory()


def _kind(view: View, item: Item) -> str:
    """What kind of stand-in an item is."""
    known, key = _KINDS.of(view), key_of(item)
    if key not in known:
        known[key] = str(view.read(item).metadata.get("windowsill", "marker"))
    return known[key]


def measure(view: View) -> Callable[[Weight], float]:
    """What a weight is in tokens, not rounded: sums of many stay exact."""
    if view.scale is None:
        raise WindowsillError("this view has no scale", remedy="take the view from a session")
    return view.scale.calibration.estimate


class Selector:
    """Chooses what stays, best first."""

    def __init__(self, view: View, budget: Budget, candidates: Candidates, stand_ins: StandIns) -> None:
        self.view = view
        self.known = survey(view)
        self.stand_ins = stand_ins
        self.limit = budget.limit
        self.total = budget.fixed + measure(view)(view.weight)
        summaries = {place for place, kind in candidates.kinds.items() if kind == "summary"}
        if stand_ins.brief is None and summaries:
            # What a summary says is not given up for a marker.
            candidates = candidates.only([place for place in range(len(candidates.starts)) if place not in summaries])
        self.candidates = candidates
        self.stand_in_places = sorted(candidates.kinds)
        tokens, scores, kinds = candidates.tokens, candidates.scores, candidates.kinds
        # Of two that are worth the same, the newer one stays.
        newest_first: Sequence[int] = range(len(tokens) - 1, -1, -1)
        if kinds:
            newest_first = [place for place in newest_first if place not in kinds]
        self.ranked = sorted(newest_first, key=scores.__getitem__, reverse=True)
        self.sizes = list(map(tokens.__getitem__, self.ranked))
        self.smallest = min(self.sizes, default=0.0)
        self.forced = bisect_right(self.ranked, -candidates.forced, key=lambda place: -scores[place])
        self.held = self.total - sum(map(tokens.__getitem__, reversed(newest_first)))
        self.notices: dict[int, int] = {}
        self.tried: dict[tuple[int, int], Stretch | None] = {}

    def select(self, target: int) -> Selection:
        """Keep the best that fit `target` together with what stands for the rest.

        What the stand-ins need is only known when it is known what goes: each try leaves more room for them.
        """
        room, most, step = target - self.held, self.limit - self.held, 1
        while True:
            kept = self._keep(room, most)
            chosen = self._settle(kept)
            if chosen.after <= target or 1 not in kept or (room < 0 and chosen.after <= self.limit):
                return chosen
            if chosen.after > self.limit:
                most -= (chosen.after - self.limit) * step
            room -= (chosen.after - target) * step
            step *= 2

    def _keep(self, room: float, most: float) -> bytearray:
        kept = bytearray(len(self.candidates.starts))
        used = self._fill(kept, range(self.forced), most, 0.0)
        self._fill(kept, range(self.forced, len(self.ranked)), min(room, most), used)
        return kept

    def _fill(self, kept: bytearray, ranks: range, most: float, used: float) -> float:
        """Keep what still fits, best first; gives what is used then."""
        ranked, sizes, smallest = self.ranked, self.sizes, self.smallest
        for rank in ranks:
            after = used + sizes[rank]
            if after <= most:
                kept[ranked[rank]] = 1
                used = after
            elif used + smallest > most:
                # Where the smallest does not fit, nothing does.
                break
        return used

    def _settle(self, kept: bytearray) -> Selection:
        # Where a notice would be longer than what it stands for, the messages stay.
        tried = self.tried
        found = [tried[row] if row in tried else self._stretch(*row) for row in self._rows(kept)]
        stretches = tuple(each for each in found if each is not None and each.room < each.tokens)
        after = self.total - sum(each.tokens - each.room for each in stretches)
        return Selection(stretches, kept, math.ceil(after))

    def _rows(self, kept: bytearray) -> Iterator[tuple[int, int]]:
        """The places of neighbours that go together, the last exclusive."""
        gaps, place = self.candidates.gaps, kept.find(0)
        while place >= 0:
            stop = kept.find(1, place)
            stop = len(kept) if stop < 0 else stop
            for gap in between(gaps, place + 1, stop):
                yield place, gap
                place = gap
            yield place, stop
            place = kept.find(0, stop)

    def _stretch(self, first: int, last: int) -> Stretch | None:
        """What goes in the place of neighbours; nothing when they all stand for others already."""
        # One try differs little from the next.
        self.tried[first, last] = made = self._made(first, last)
        return made

    def _made(self, first: int, last: int) -> Stretch | None:
        found, known, wanted = self.candidates, self.known, self.stand_ins
        before = between(self.stand_in_places, first, last)
        if len(before) == last - first:
            return None
        tokens = sum(found.tokens[first:last])
        start, stop = found.starts[first], found.stops[last - 1]
        messages = known.messages[stop] - known.messages[start]
        short = self._notice(messages)
        room = max(wanted.least, short, int(tokens * wanted.share))
        long = messages >= wanted.gap
        if any(found.kinds[place] != NOTICE for place in before):
            # What was told before is told again, however little room there is.
            room = max(short, min(room, math.ceil(tokens) - 1))
            return Stretch(start, stop, tokens, messages, room, told=True, written=True)
        if room < tokens and (long or between(known.own, start, stop)):
            return Stretch(start, stop, tokens, messages, room, told=True, written=long)
        return Stretch(start, stop, tokens, messages, short)

    def _notice(self, messages: int) -> int:
        if messages not in self.notices:
            self.notices[messages] = self.view.tokens_of(self.view.weigh(notice(messages)))
        return self.notices[messages]

    def proposal(self, stretches: Sequence[Stretch], *, strategy: str, reason: str) -> Proposal | None:
        """The fold that hides these."""
        told = sum(stretch.told for stretch in stretches)
        quote = self.stand_ins.quote // max(1, told)
        spans: list[Run] = []
        shown: list[Message] = []
        briefs: list[Brief | None] = []
        brief = self.stand_ins.brief
        for stretch in stretches:
            run, stand_in = self._run(stretch, quote)
            spans.append(run)
            shown.append(stand_in)
            wanted = brief is not None and stretch.written
            briefs.append(msgspec.structs.replace(brief, room=stretch.room) if brief and wanted else None)
        if not spans:
            return None
        return Proposal(
            kind="prune",
            reason=reason,
            strategy=strategy,
            spans=tuple(spans),
            stand_ins=tuple(shown),
            briefs=tuple(briefs) if any(briefs) else (),
        )

    def _run(self, stretch: Stretch, quote: int) -> tuple[Run, Message]:
        view = self.view
        start, stop = stretch.start, stretch.stop
        facts = gather_between(view, self.known, start, stop, min(quote, stretch.room // 2) * CHARACTERS_PER_TOKEN)
        if stretch.told:
            stand_in = marker(facts)
            run = hide_between(view, self.known, start, stop, facts, stand_in)
            if view.tokens_of(run.weight) <= stretch.room:
                return run, stand_in
        stand_in = notice(facts.messages)
        return hide_between(view, self.known, start, stop, facts, stand_in), stand_in


def notice(messages: int) -> Message:
    """A stand-in that says how many messages were there."""
    what = "1 earlier message is" if messages == 1 else f"{messages:,} earlier messages are"
    text = f"[Memory Summary] {what} left out here, and kept in full outside this window."
    return text_message("user", text, metadata={"windowsill": NOTICE})


def goal_of(target: Size | None, total: int, budget: Budget) -> int:
    """The tokens that a request of `total` is reduced to: a stated target, or what the low mark asks for."""
    if target is None:
        return total - budget.to_hide(total)
    return min(budget.high, tokens_of(target, budget.limit, "target"))
