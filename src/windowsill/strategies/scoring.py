"""Scores with their reasons, and how a view is reduced by them: the best stay, the rest goes in whole units.

What a message says is looked at once: planning again costs no more than walking over the items.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

import msgspec

from windowsill.budget import Budget, Size, tokens_of
from windowsill.errors import SettingError, WindowsillError
from windowsill.history.folds import Brief, Proposal, Run
from windowsill.history.hiding import hide
from windowsill.history.marker import gather, marker
from windowsill.history.units import Unit
from windowsill.history.view import Item, View
from windowsill.messages import Message, text_message
from windowsill.strategies.sliding_window import CHARACTERS_PER_TOKEN, free_units
from windowsill.tokens import Weight

T = TypeVar("T")

MEASURED = 1_000_000
"""A window that sizes are tried on when they are stated."""

NOTICE = "notice"
"""The metadata `windowsill` of a stand-in that tells nothing but how many messages were there."""

FORGET_AFTER = 1_000
"""Messages remembered beyond twice those visible, before the hidden ones are forgotten."""


class Reason(msgspec.Struct, frozen=True):
    """One part of a score."""

    what: str
    points: float

    def __str__(self) -> str:
        return f"{self.what} ({self.points:+.3g})"


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """What a message is worth, and why."""

    id: str
    seq: int
    value: float
    reasons: tuple[Reason, ...]
    """Their points add up to the value, before it is kept within its range."""
    category: str = ""


class Memory(Generic[T]):
    """What was found out about the messages of a view, for as long as the view lives."""

    def __init__(self) -> None:
        self._views: WeakKeyDictionary[View, tuple[Hashable, dict[Hashable, T]]] = WeakKeyDictionary()

    def of(self, view: View, under: Hashable = None) -> dict[Hashable, T]:
        """What is known of a view's items by their keys; nothing when it was found out `under` something else."""
        before, known = self._views.get(view, (under, {}))
        if before != under:
            known = {}
        if len(known) > 2 * len(view.items) + FORGET_AFTER:
            visible = {key_of(item) for item in view.items}
            known = {key: value for key, value in known.items() if key in visible}
        self._views[view] = (under, known)
        return known

    def recall(self, view: View, find: Callable[[Item], T], under: Hashable = None) -> list[T]:
        """For each item what `find` says of it; asked once for each as long as `under` stays the same."""
        known = self.of(view, under)
        found = []
        for item in view.items:
            # Spelled out for the common case: this runs for every message each time.
            key = key_of(item) if item.cuts or item.fold else item.seq
            value = known.get(key)
            if value is None:
                value = known[key] = find(item)
            found.append(value)
        return found


def key_of(item: Item) -> Hashable:
    """What tells an item apart, as it is shown now, from all others of its session."""
    if not item.cuts and not item.fold:
        return item.seq
    return (item.seq, item.span, *((cut.block, cut.fold, cut.span) for cut in item.cuts))


class Candidate(msgspec.Struct, frozen=True):
    """A unit that may go."""

    unit: Unit
    score: float
    tokens: float
    messages: int
    """How many it shows or stands for."""
    own: bool = False
    """Some of it are the user's own words."""
    forced: bool = False
    """Stays even beyond the target, though never beyond the limit."""
    stand_in: str = ""
    """Set when it stands for hidden messages already: it goes when a neighbour goes, and what then stands there tells
    of both."""


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
    kept: frozenset[int]
    """Places of the candidates that were chosen to stay."""
    after: int
    """Tokens of the whole request, with stand-ins of the largest size they may have."""


def candidates_of(
    view: View, keep: int, values: Sequence[float], *, least: float = math.inf, forced: float = math.inf
) -> list[Candidate]:
    """The units that may go, each worth as much as the best of its messages; what is worth `least` or more is none.

    Those worth `forced` or more stay beyond the target.
    """
    tokens = measure(view)
    found = []
    for unit in free_units(view, keep):
        items = view.items[unit.start : unit.stop]
        kind = _kind(view, items[0]) if items[0].fold and len(items) == 1 else ""
        score = max(values[unit.start : unit.stop])
        if kind or score < least:
            size, own, messages = 0.0, False, 0
            for item in items:
                size += tokens(item.weight)
                own = own or item.own
                messages += item.hides or 1
            found.append(Candidate(unit, score, size, messages, own, not kind and score >= forced, kind))
    return found


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

    def __init__(self, view: View, budget: Budget, candidates: Sequence[Candidate], stand_ins: StandIns) -> None:
        self.view = view
        self.stand_ins = stand_ins
        self.limit = budget.limit
        self.total = budget.fixed + measure(view)(view.weight)
        # What a summary says is not given up for a marker.
        self.candidates = [each for each in candidates if stand_ins.brief is not None or each.stand_in != "summary"]
        ranked = [place for place, each in enumerate(self.candidates) if not each.stand_in]
        # Of two that are worth the same, the newer one stays.
        self.ranked = sorted(ranked, key=lambda place: (-self.candidates[place].score, -place))
        self.held = self.total - sum(self.candidates[place].tokens for place in ranked)
        self.notices: dict[int, int] = {}

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
        kept = set()
        used = 0.0
        ordinary = min(room, most)
        for place in self.ranked:
            candidate = self.candidates[place]
            if used + candidate.tokens <= (most if candidate.forced else ordinary):
                kept.add(place)
                used += candidate.tokens
        return frozenset(kept)

    def _settle(self, kept: frozenset[int]) -> Selection:
        # Where a notice would be longer than what it stands for, the messages stay.
        stretches = tuple(each for each in self._stretches(kept) if each.room < each.tokens)
        after = self.total - sum(each.tokens - each.room for each in stretches)
        return Selection(stretches, kept, math.ceil(after))

    def _stretches(self, kept: frozenset[int]) -> Iterator[Stretch]:
        row: list[Candidate] = []
        for place, candidate in enumerate(self.candidates):
            if row and (place in kept or row[-1].unit.stop != candidate.unit.start):
                yield from self._stretch(row)
                row = []
            if place not in kept:
                row.append(candidate)
        yield from self._stretch(row)

    def _stretch(self, row: Sequence[Candidate]) -> Iterator[Stretch]:
        if all(each.stand_in for each in row):
            return
        tokens = sum(each.tokens for each in row)
        messages = sum(each.messages for each in row)
        start, stop = row[0].unit.start, row[-1].unit.stop
        short = self._notice(messages)
        room = max(self.stand_ins.least, short, int(tokens * self.stand_ins.share))
        long = messages >= self.stand_ins.gap
        if any(each.stand_in not in {"", NOTICE} for each in row):
            # What was told before is told again, however little room there is.
            room = max(short, min(room, math.ceil(tokens) - 1))
            yield Stretch(start, stop, tokens, messages, room, told=True, written=True)
        elif room < tokens and (long or any(each.own for each in row)):
            yield Stretch(start, stop, tokens, messages, room, told=True, written=long)
        else:
            yield Stretch(start, stop, tokens, messages, short)

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
        items = view.items[stretch.start : stretch.stop]
        room = min(quote, stretch.room // 2) * CHARACTERS_PER_TOKEN
        facts = gather(items, tokens=view.each, read=view.read, room=room)
        if stretch.told:
            stand_in = marker(facts)
            run = hide(view, items, facts, stand_in)
            if view.tokens_of(run.weight) <= stretch.room:
                return run, stand_in
        stand_in = notice(facts.messages)
        return hide(view, items, facts, stand_in), stand_in


def notice(messages: int) -> Message:
    """A stand-in that says how many messages were there."""
    what = "1 earlier message is" if messages == 1 else f"{messages:,} earlier messages are"
    text = f"[Memory Summary] {what} left out here, and kept in full outside this window."
    return text_message("user", text, metadata={"windowsill": NOTICE})


def items_of(view: View, candidates: Iterable[Candidate]) -> tuple[Item, ...]:
    """All that could have been hidden."""
    return tuple(item for each in candidates for item in view.items[each.unit.start : each.unit.stop])


def goal_of(target: Size | None, total: int, budget: Budget) -> int:
    """The tokens that a request of `total` is reduced to: a stated target, or what the low mark asks for."""
    if target is None:
        return total - budget.to_hide(total)
    return min(budget.high, tokens_of(target, budget.limit, "target"))


def check_settings(strategy: object, names: Iterable[str], low: float, high: float, what: str) -> None:
    """Refuse settings that are not between `low` and `high`."""
    for name in names:
        value = getattr(strategy, name)
        if not low <= value <= high:
            raise SettingError(name, value, what)


def check_words(strategy: object, names: Iterable[str]) -> None:
    """Refuse lists in which a word is empty: it would be found everywhere."""
    for name in names:
        if not all(word.strip() for word in getattr(strategy, name)):
            raise SettingError(name, getattr(strategy, name), "words that are not empty")
