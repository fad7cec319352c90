"""Summarize: a running summary after the task, rewritten together with the oldest turns."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any

import msgspec

from windowsill.budget import Budget
from windowsill.errors import SettingError
from windowsill.history.folds import Brief, FoldKind, Proposal, Run, Style
from windowsill.history.hiding import hide_between
from windowsill.history.marker import Facts, gather_between, marker
from windowsill.history.survey import Survey, between
from windowsill.history.view import View, sum_weights
from windowsill.messages import Block, Message
from windowsill.strategies import Plan, Strategy
from windowsill.strategies.free import CHARACTERS_PER_TOKEN, Free
from windowsill.strategies.sliding_window import MARKER_TOKENS
from windowsill.strategies.turns import latest_words, live_tokens, oldest, replaceable, turns

LEAST_OF_STEP = 4
"""A rewriting must newly hide a quarter of what lies between the marks while the request still fits: for less it would
cost the cached prefix, and a model's work, at every turn."""

LARGEST_COUNT = 10_000
"""The most turns or messages a setting may name."""

MARKED = "marked"
"""Metadata of a stand-in whose last block is a marker, after the texts that were written before."""


class Wishes(Strategy, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a user may state for every strategy that has a text written."""

    model: str | None = None
    """The model that writes it (such as `anthropic:claude-haiku-4-5`), where that is not the session's writer."""
    instructions: str = ""
    """Your own prompt in the place of the shipped one."""
    directives: str | tuple[str, ...] = ()
    """Further wishes, which follow the prompt one by one."""
    room: float = 0.1
    """The share of the request's limit that the text may have. It gets no more than the texts before it had and half of
    what is new; an object (`extract`) always less than what it replaces."""
    quote: float = 0.05
    """The share of the limit in which the user's hidden words are quoted when nothing could be written."""

    def __post_init__(self) -> None:
        for name in ("room", "quote"):
            if not 0 <= getattr(self, name) <= 1:
                raise SettingError(name, getattr(self, name), "a share of the request's limit from 0 to 1")

    def brief(self, style: Style, budget: Budget, *, schema: dict[str, Any] | None = None) -> Brief:
        """What a writer is asked for."""
        return Brief(
            style=style,
            room=int(self.room * budget.limit),
            instructions=self.instructions,
            directives=listed(self.directives),
            schema=schema,
            model=self.model,
        )


class Summarize(Wishes, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keeps a running summary after the task; past `threshold` turns the oldest `batch` of them are worked into it.

    Past the high mark it works in as many of the oldest units as it takes to reach the low mark. The task, pins,
    running calls, the user's latest words and the last unit stay.
    """

    threshold: int = 10
    """The turns that may stand in full; a turn begins with a message of the user's own words."""
    batch: int = 5
    """How many turns are worked into the summary at a time, or a multiple of it after a long absence."""

    name = "summarize"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.threshold <= LARGEST_COUNT:
            raise SettingError("threshold", self.threshold, f"a number of turns from 1 to {LARGEST_COUNT:,}")
        if not 1 <= self.batch <= self.threshold:
            raise SettingError("batch", self.batch, f"a number of turns from 1 to the threshold, {self.threshold:,}")

    def due(self, view: View, budget: Budget) -> bool:
        """Whether the history has passed so many turns that a batch is worth a summary."""
        cut = self._cut(view)
        return cut > 0 and self._is_worth_it(view, budget, _middle(view).before(cut))

    def plan(self, view: View, budget: Budget) -> Plan:
        """Work the oldest turns, and the summary before them, into a new summary."""
        total = budget.fixed + view.tokens()
        brief = self.brief("summary", budget)
        middle = _middle(view)
        cut = self._cut(view)
        if cut and not self._is_worth_it(view, budget, middle.before(cut)):
            cut = 0
        chosen = oldest(view, middle, cut=cut, wanted=budget.to_hide(total), room=brief.room)
        if not cut and total <= budget.limit and live_tokens(view, chosen) < least(budget):
            return Plan(middle=middle.items)
        reason = (
            f"{total:,} tokens passed {budget.high:,}"
            if total > budget.high
            else f"more than {self.threshold} turns stood in full"
        )
        proposal = rewrite(
            view,
            chosen,
            strategy=self.name,
            reason=reason,
            quote=int(self.quote * budget.limit),
            brief=brief,
        )
        return Plan(proposals=(proposal,) if proposal else (), middle=middle.items)

    def _cut(self, view: View) -> int:
        """Where the turns end that have to go because there are too many; 0 while there are not."""
        found = turns(view)
        over = len(found) - self.threshold
        return found[min(len(found), self.batch * ceil(over / self.batch)) - 1].stop if over > 0 else 0

    def _is_worth_it(self, view: View, budget: Budget, chosen: Free) -> bool:
        """Whether these weigh more than the marker that would stand there."""
        return live_tokens(view, chosen) >= min(MARKER_TOKENS, least(budget))


def _middle(view: View) -> Free:
    return replaceable(view).without(latest_words(view))


def listed(directives: str | tuple[str, ...]) -> tuple[str, ...]:
    """Directives one by one, without empty ones."""
    several = (directives,) if isinstance(directives, str) else directives
    return tuple(each.strip() for each in several if each.strip())


def least(budget: Budget) -> int:
    """The tokens that a rewriting must newly hide while the request still fits."""
    return max(1, (budget.high - budget.low) // LEAST_OF_STEP)


def rewrite(
    view: View,
    chosen: Free,
    *,
    strategy: str,
    reason: str,
    quote: int,
    brief: Brief | None,
    kind: FoldKind = "condense",
) -> Proposal | None:
    """A fold of these units in which a text is to stand for each stretch, stand-ins of earlier folds included.

    When nothing can be written, the earlier texts stay word for word and a marker tells of the rest: so what a stretch
    newly hides has to weigh more than its marker.
    """
    spans: list[Run] = []
    stand_ins: list[Message] = []
    briefs: list[Brief | None] = []
    found = chosen.stretches
    for start, stop in found:
        made = _hidden(view, chosen.known, (start, stop), quote // len(found))
        if made is None:
            continue
        run, stand_in = made
        spans.append(run)
        stand_ins.append(stand_in)
        briefs.append(None if brief is None else _fitted(view, chosen.known, (start, stop), brief))
    if not spans:
        return None
    return Proposal(
        kind=kind,
        reason=reason,
        strategy=strategy,
        spans=tuple(spans),
        stand_ins=tuple(stand_ins),
        briefs=() if brief is None else tuple(briefs),
    )


def _fitted(view: View, known: Survey, ends: tuple[int, int], brief: Brief) -> Brief:
    """The brief with no more room than this stretch warrants.

    What earlier texts took is theirs still, and half of what is new comes on top: with half of all, a text that is
    brought up to date would have to forget. An object cannot be cut short, so it may take all but what it must save.
    """
    told = view.tokens_of(sum_weights(view.items[place].weight for place in between(known.folds, *ends)))
    new = view.tokens_of(known.weight(*ends)) - told
    most = told + (new - 1 if brief.style == "state" else new // 2)
    return msgspec.structs.replace(brief, room=min(brief.room or most, most))


def _hidden(view: View, known: Survey, ends: tuple[int, int], quote: int) -> tuple[Run, Message] | None:
    """The span and what stands there if nothing is written; `None` when that would save nothing."""
    folds = [view.items[place] for place in between(known.folds, *ends)]
    if len(folds) == ends[1] - ends[0]:
        return None
    before = [view.read(item) for item in folds]
    told = {key: value for item in folds for key, value in item.facts.items() if key not in _FACTS}
    for room in (quote, 0):
        facts = gather_between(view, known, *ends, room * CHARACTERS_PER_TOKEN)
        stand_in = _fallback(before, marker(facts))
        run = hide_between(view, known, *ends, facts, stand_in)
        if view.tokens_of(run.saves + run.weight) > view.tokens_of(run.weight):
            return msgspec.structs.replace(run, facts={**told, **run.facts}), stand_in
    return None


_FACTS = frozenset(Facts.__struct_fields__)


def _fallback(before: Sequence[Message], made: Message) -> Message:
    """The texts of earlier folds, and one marker for everything that is hidden."""
    texts: list[Block] = []
    for message in before:
        if message.metadata.get("windowsill") == "summary":
            texts += message.blocks[:-1] if message.metadata.get(MARKED) else message.blocks
    if not texts:
        return made
    return Message(role="user", blocks=(*texts, *made.blocks), metadata={"windowsill": "summary", MARKED: True})
