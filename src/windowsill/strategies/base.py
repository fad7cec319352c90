"""The base class of strategies, and what they share: units that may go, turns, folds, checks of settings."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import chain, pairwise
from typing import Any, ClassVar

import msgspec

from windowsill.budget import LOW_BELOW_HIGH, Budget
from windowsill.errors import SettingError, WindowsillError
from windowsill.history.folds import BlockSpan, Brief, FoldKind, MessageSpan, Proposal, Style
from windowsill.history.proposals import gather, hide, marker
from windowsill.history.view import Item, Unit, View, sum_weights, units
from windowsill.messages import ORIGIN, Block, Message, Origin
from windowsill.tokens import Weight

MARKER_TOKENS = 120
"""The size of a marker without the record."""

RECORD_SHARE = 0.25
"""The share of the limit that a strategy leaves for the record of what it hides, where there is so much to record."""

LARGEST_COUNT = 10_000
"""The most turns, messages or outputs a setting may name."""

MEASURED = 1_000_000
"""The window on which sizes in settings are tried."""

LEAST_OF_STEP = 4
"""A rewriting must newly hide a quarter of what lies between the marks while the request still fits: for less it would
cost the cached prefix, and a model's work, at every turn."""

OFFLINE = "offline"
"""The name of the writer that uses code alone, as a stand-in's metadata has it."""

MARKED = "marked"
"""Metadata of a stand-in whose last block is a marker, after the texts that were written before."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The folds that a strategy wants, and notes for the report."""

    proposals: tuple[Proposal, ...] = ()
    middle: tuple[Item, ...] = ()
    """The items that could have been hidden, for the report of what each weighs."""
    notes: tuple[str, ...] = ()
    at_once: bool = False
    """True when the folds belong to this request, so that texts are waited for although it would fit without them."""
    decision: dict[str, float | str] = {}
    """The decision and the figures it was made from, for the report and for telemetry."""


class ProviderRequestFields(msgspec.Struct, frozen=True, kw_only=True):
    """Fields and headers of a request that make its provider do the work."""

    fields: dict[str, Any]
    """Fields of the body."""
    headers: dict[str, str] = {}


class Strategy:
    """Plan what to fold: a pure planner that calls no model, touches no store and reads no clock.

    A subclass has a `name` and overrides `plan`; the other methods have defaults that suit most strategies. As a
    msgspec Struct (`class Mine(Strategy, msgspec.Struct)`) its fields are its settings.
    """

    name: str = ""
    priced: bool = False
    """True for a strategy that decides by `budget.cache`."""
    low_below_high: ClassVar[float] = LOW_BELOW_HIGH
    """The share of what a request may have that the low mark lies below the high one where none is stated."""

    def plan(self, view: View, budget: Budget) -> Plan:
        """Return the folds that make the request fit; called when the high mark is passed or `due` says so."""
        raise NotImplementedError

    def due(self, view: View, budget: Budget) -> bool:
        """Tell whether to plan now although the high mark is not passed."""
        return False

    def explain(self, view: View, budget: Budget) -> dict[str, float | str]:
        """Return what it does now and the figures that say so, for the report and for telemetry.

        It is asked when somebody looks, and not on the way of a turn.
        """
        return {}

    def instead(self, view: View, budget: Budget) -> Plan:
        """Return the folds to make where a summary could not be written; none when the marker is as good."""
        return Plan()

    def ask(self, format: str, budget: Budget) -> ProviderRequestFields | None:
        """Return what a request of this format says to make its provider act; `None` where it does nothing."""
        return None

    def layers(self, budget: Budget) -> int:
        """Return the tokens in which a request may tell the layered state; 0 for not at all."""
        return 0

    @property
    def delegates(self) -> bool:
        """True for a strategy that leaves the work to the provider: one that overrides `ask`."""
        return type(self).ask is not Strategy.ask


# Units


def held_places(view: View) -> frozenset[int]:
    """Return the positions of what no strategy hides while anything else could go.

    They are the task, the request that is being worked on (the latest message in the user's own words), instructions
    given in the middle (system and developer messages), and pins. They stay where they are, word for word.
    """
    first = view.leading()
    found = {
        place
        for place, item in enumerate(view.items[first:], first)
        if item.role == "system" or (item.marks and item.pinned)
    }
    return frozenset(found | {place for place in (view.task(), latest_words(view)) if place is not None})


def foldable_units(view: View, keep: int = 1) -> list[Unit]:
    """Return the units that may go: not leading system messages, what `held_places` names, running calls, the latest.

    The last `keep` items stay, and always the last unit: a request without it would ask for nothing.
    """
    items, held = view.items, held_places(view)
    first, last = view.leading(), len(items) - max(keep, 1)
    return [
        unit
        for unit in units(items)
        if first <= unit.start and unit.stop <= last and not unit.open and held.isdisjoint(range(unit.start, unit.stop))
    ]


def units_after_task(view: View, keep: int = 1) -> list[Unit]:
    """Return the foldable units behind the task: those that one text may stand for."""
    task = view.task()
    return foldable_units(view, keep) if task is None else units_after(foldable_units(view, keep), task)


def units_after(listed: Iterable[Unit], position: int) -> list[Unit]:
    """Return the units that begin after a position."""
    return [unit for unit in listed if unit.start > position]


def units_before(listed: Iterable[Unit], position: int) -> list[Unit]:
    """Return the units that end at a position or before."""
    return [unit for unit in listed if unit.stop <= position]


def items_of(view: View, listed: Iterable[Unit]) -> tuple[Item, ...]:
    """Return the items of these units, in order."""
    return tuple(chain.from_iterable(view.items[unit.start : unit.stop] for unit in listed))


def join_neighbours(listed: Iterable[Unit]) -> list[Unit]:
    """Join units that follow on each other."""
    found: list[Unit] = []
    for unit in listed:
        if found and found[-1].stop == unit.start:
            found[-1] = Unit(found[-1].start, unit.stop)
        else:
            found.append(unit)
    return found


def oldest_until_free(view: View, listed: Sequence[Unit], wanted: int, record: int) -> Sequence[Unit]:
    """Return the oldest units until `wanted` tokens are free; up to `record` tokens of what was said stay as record."""
    each = view.each(view.items)
    wanted += MARKER_TOKENS
    for count, unit in enumerate(listed):
        if wanted <= 0:
            return listed[:count]
        for place in range(unit.start, unit.stop):
            item, tokens = view.items[place], each[place]
            if item.own or item.fold or item.marks:
                kept = min(tokens, record)
                record -= kept
                tokens -= kept
            wanted -= tokens
    return listed


def oldest_units(view: View, listed: Sequence[Unit], *, cut: int, wanted: int, room: int = 0) -> list[Unit]:
    """Return the units that end at `cut` or before, and more until `wanted` tokens and `room` for a text are free."""
    chosen = units_before(listed, cut)
    if wanted > 0:
        missing = wanted - view.tokens_of(sum_weights(unit.weight(view.items) for unit in chosen)) + room
        for unit in listed[len(chosen) :]:
            if missing <= 0:
                break
            missing -= view.tokens_of(unit.weight(view.items))
            chosen.append(unit)
    return chosen


def new_tokens(view: View, listed: Iterable[Unit]) -> int:
    """Count the tokens of these units without the stand-ins among them: what is new to a text that is written again."""
    return view.tokens_of(sum_weights(item.weight for item in items_of(view, listed) if not item.fold))


def least_gain(budget: Budget) -> int:
    """Return the tokens that a rewriting must newly hide while the request still fits."""
    return max(1, (budget.high - budget.low) // LEAST_OF_STEP)


# Turns: one begins with a message of the user's own words and ends before the next one. An agent that works on one task
# for hours has a single turn: strategies that keep whole turns go into it, unit by unit, when nothing else is left.


def turns(view: View) -> list[Unit]:
    """Return the turns that still hold something that can be hidden, oldest first.

    Of a turn that was hidden, the task, a pin or a stand-in may remain: that is no turn any more.
    """
    items, task = view.items, view.task()
    first = view.leading() if task is None else task
    ends = [first, *(place for place in range(first + 1, len(items)) if items[place].own), len(items)]
    return [
        Unit(start, stop)
        for start, stop in pairwise(ends)
        if any(not (item.fold or item.pinned or place == task) for place, item in enumerate(items[start:stop], start))
    ]


def latest_words(view: View) -> int | None:
    """Return the position of the user's latest own words; `None` while there are none but the task."""
    task = view.task()
    places = range(len(view.items) - 1, -1 if task is None else task, -1)
    return next((place for place in places if view.items[place].own), None)


# Folds


def fold_units(
    view: View,
    chosen: Sequence[Unit],
    *,
    strategy: str,
    reason: str,
    kind: FoldKind = "truncate",
    brief: Brief | None = None,
) -> Proposal | None:
    """Fold these units: neighbours become one run, each run gets a marker if that makes it smaller.

    The composer puts the record of what is hidden into the marker. With a `brief` a summary is to be written for each
    run; the marker remains where that fails.
    """
    return _fold_stretches(view, chosen, lambda _: brief, texts=False, strategy=strategy, reason=reason, kind=kind)


def _fold_stretches(
    view: View,
    chosen: Sequence[Unit],
    brief_of: Callable[[Sequence[Item]], Brief | None],
    *,
    texts: bool,
    strategy: str,
    reason: str,
    kind: FoldKind,
) -> Proposal | None:
    """Fold each stretch of neighbours behind what `_hide` puts there; `brief_of` says what is to be written of it."""
    hidden: list[tuple[MessageSpan, Message]] = []
    briefs: list[Brief | None] = []
    for stretch in join_neighbours(chosen):
        items = view.items[stretch.start : stretch.stop]
        if (found := _hide(view, items, texts=texts)) is not None:
            hidden.append(found)
            briefs.append(brief_of(items))
    if not hidden:
        return None
    spans, stand_ins = zip(*hidden, strict=True)
    written = tuple(briefs) if any(briefs) else ()
    return Proposal(kind=kind, reason=reason, strategy=strategy, spans=spans, stand_ins=stand_ins, briefs=written)


def tokens_freed(view: View, proposals: Sequence[Proposal]) -> int:
    """Count the tokens that proposals free if nothing is written for them; 0 when one does not fit the view."""
    saved = Weight()
    parts: list[BlockSpan] = []
    try:
        for proposal in proposals:
            for span, stand_in in zip(proposal.spans, proposal.stand_ins, strict=True):
                if isinstance(span, MessageSpan):
                    hidden = sum_weights(item.weight for item in view.items[view.slice_of(span.first, span.last)])
                    saved = saved + hidden - (view.weigh(stand_in) if isinstance(stand_in, Message) else Weight())
                else:
                    parts.append(span)
        return view.tokens() - view.tokens_of(view.after(parts) - saved)
    except (WindowsillError, ValueError, TypeError, AttributeError):
        # A plug-in may propose anything: what cannot be folded frees nothing.
        return 0


def _with_room(view: View, items: Sequence[Item], brief: Brief) -> Brief:
    """Return the brief with no more room than this stretch warrants.

    What earlier texts took is theirs still, and half of what is new comes on top: with half of all, a text that is
    brought up to date would have to forget. An object cannot be cut short, so it may take all but what it must save.
    """
    before = view.tokens_of(sum_weights(item.weight for item in items if item.fold))
    new = view.tokens_of(sum_weights(item.weight for item in items)) - before
    most = before + (new - 1 if brief.style == "state" else new // 2)
    return msgspec.structs.replace(brief, room=min(brief.room or most, most))


def _hide(view: View, items: Sequence[Item], *, texts: bool) -> tuple[MessageSpan, Message] | None:
    """Return the span and the marker that stands there, behind the earlier `texts`; `None` when it saves nothing."""
    folds = [item for item in items if item.fold]
    if len(folds) == len(items):
        return None
    earlier: list[Block] = []
    for message in map(view.read, folds if texts else ()):
        # What code wrote is written again from the record that travels with the fold.
        if message.origin == Origin.SUMMARY and message.metadata.get("writer") != OFFLINE:
            earlier += message.blocks[:-1] if message.metadata.get(MARKED) else message.blocks
    facts = gather(view, items)
    stand_in = marker(facts)
    if earlier:
        stand_in = Message(
            role="user", blocks=(*earlier, *stand_in.blocks), metadata={ORIGIN: Origin.SUMMARY, MARKED: True}
        )
    run = hide(view, items, facts, stand_in)
    return (run, stand_in) if view.tokens_of(run.saves + run.weight) > view.tokens_of(run.weight) else None


# Settings


def check_range(strategy: object, names: str | Iterable[str], low: float, high: float, allowed: str) -> None:
    """Refuse settings that are not between `low` and `high`."""
    for name in (names,) if isinstance(names, str) else names:
        value = getattr(strategy, name)
        if not low <= value <= high:
            raise SettingError(name, value, allowed)


def check_count(strategy: object, name: str, what: str, *, low: int = 0, high: int = LARGEST_COUNT) -> None:
    """Refuse a number of turns, messages or outputs that is out of range."""
    check_range(strategy, name, low, high, f"a number of {what} from {low} to {high:,}")


def check_words(strategy: object, *names: str) -> None:
    """Refuse lists in which a word is empty: it would be found everywhere."""
    for name in names:
        if not all(word.strip() for word in getattr(strategy, name)):
            raise SettingError(name, getattr(strategy, name), "words that are not empty")


class SummaryStrategy(Strategy, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A strategy that has texts written, with the settings that all of these share."""

    model: str | None = None
    """The model that writes it (such as `anthropic:claude-haiku-4-5`), where that is not the session's writer."""
    instructions: str = ""
    """Your own prompt in the place of the shipped one."""
    directives: str | tuple[str, ...] = ()
    """Further wishes, which follow the prompt one by one."""
    room: float = 0.1
    """The share of the request's limit that the text may have. It gets no more than the texts before it had and half of
    what is new; an object (`extract`) always less than what it replaces. The record (rules, words and decisions of the
    user, marks, failures, open questions) may take more, up to the low mark."""

    def __post_init__(self) -> None:
        check_range(self, "room", 0, 1, "a share of the request's limit from 0 to 1")

    def brief(self, style: Style, budget: Budget, *, schema: dict[str, Any] | None = None) -> Brief:
        """Return what a writer is asked for."""
        return Brief(
            style=style,
            room=int(self.room * budget.limit),
            instructions=self.instructions,
            directives=split_directives(self.directives),
            schema=schema,
            model=self.model,
        )

    def rewrite(
        self,
        view: View,
        chosen: Sequence[Unit],
        *,
        reason: str,
        brief: Brief | None,
        kind: FoldKind = "condense",
    ) -> Proposal | None:
        """Fold these units so that a text stands for each stretch, stand-ins of earlier folds included.

        When nothing can be written, the earlier texts stay word for word and a marker tells of the rest: so what a
        stretch newly hides has to weigh more than its marker.
        """

        def in_room(items: Sequence[Item]) -> Brief | None:
            return brief and _with_room(view, items, brief)

        return _fold_stretches(view, chosen, in_room, texts=True, strategy=self.name, reason=reason, kind=kind)


def split_directives(directives: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return directives one by one, without empty ones."""
    several = (directives,) if isinstance(directives, str) else directives
    return tuple(each.strip() for each in several if each.strip())


def key_of(item: Item) -> Hashable:
    """Return what tells an item apart, as it is shown now, from all others of its session."""
    if not item.cuts and not item.fold:
        return item.seq
    return (item.seq, item.span, *((cut.block, cut.fold, cut.span) for cut in item.cuts))
