"""Importance: every message gets a score from 0 to 1, the best stay within the target, summaries tell of the rest."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Literal, TypeAlias

from windowsill.budget import Budget
from windowsill.history.folds import Brief
from windowsill.history.view import Item, View
from windowsill.messages import Message, text_of
from windowsill.strategies.base import MEASURED, Plan, check_count, check_range, check_words
from windowsill.strategies.scores import APPROVALS, FRAME_MARKS, KEYWORDS, TOOL_MARKS, Reason, Score, plain
from windowsill.strategies.selection import ScoreStrategy, Selection, Selector, StandIns, candidates_of

Level: TypeAlias = Literal["gentle", "aggressive", "emergency"]


class Importance(ScoreStrategy, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keeps the messages with the best scores; what goes, goes in whole units and is told of.

    From the high mark on only messages of low importance go, further up all but the best, with summaries; beyond the
    limit the same, but no model is asked for a summary.
    """

    recency: float = 0.3
    """The weight of the place: the oldest message has 0 of it, the newest all."""
    role: float = 0.3
    """The weight of the speaker."""
    content: float = 0.4
    """The weight of the content."""
    user: float = 1.0
    """Points of the user's own words."""
    assistant: float = 0.5
    system: float = 0.3
    other: float = 0.5
    """Points of tools, and of programs that speak under the user's name."""
    keyword: float = 0.3
    """Points for one of `keywords`."""
    tool: float = 0.25
    """Points for the result of a tool."""
    frame: float = 0.2
    """Points for one of `frame_marks`."""
    approval: float = 0.3
    """Points for one of `approvals`, or a tool that is called by such a name."""
    short: int = 20
    """Characters below which the content counts less."""
    penalty: float = 0.7
    """The factor by which short content counts less."""
    marked: float = 1.0
    """The least score of a message that is marked as important."""
    keywords: tuple[str, ...] = KEYWORDS
    tool_marks: tuple[str, ...] = TOOL_MARKS
    frame_marks: tuple[str, ...] = FRAME_MARKS
    approvals: tuple[str, ...] = APPROVALS
    look: int = 4_000
    """Characters of a message that are searched, half from its start and half from its end; 0 for all."""
    low: float = 0.35
    """Messages with a lower score are of low importance."""
    aggressive: float = 0.9
    """The share of what a request may have, from which on not only messages of low importance go; 0 for always.

    Where the high mark lies above it, half of the way from there to the limit."""
    summaries: bool = True
    """True to have summaries written of what goes."""
    gap: int = 5
    """Hidden messages in a row from which on a summary is written; fewer get a notice with their number."""
    summary: float = 0.15
    """The most that a summary may have, as a share of what it replaces."""
    summary_least: int = 150
    """Tokens that a summary may always have."""

    name = "importance"
    low_below_high = 0.1  # 70% under 80%: scores say what may go, so that less has to

    def __post_init__(self) -> None:
        super().__post_init__()
        shares = (
            *("recency", "role", "content", "user", "assistant", "system", "other", "keyword", "tool", "frame"),
            *("approval", "penalty", "marked", "low", "aggressive", "summary"),
        )
        check_range(self, shares, 0, 1, "a number from 0 to 1")
        check_range(self, ("short", "look", "summary_least"), 0, MEASURED, f"a number from 0 to {MEASURED:,}")
        check_count(self, "gap", "messages", low=1)
        check_words(self, "keywords", "tool_marks", "frame_marks", "approvals")

    def plan(self, view: View, budget: Budget) -> Plan:
        """Hide what is worth least until the target is reached."""
        total = budget.fixed + view.tokens()
        if total <= budget.high:
            return Plan()
        level = self.level(total, budget)
        stand_ins = StandIns(
            gap=self.gap,
            share=self.summary,
            least=self.summary_least,
            largest=int(self.quote * budget.limit),
            brief=Brief(style="summary", needed=level != "emergency") if self.summaries else None,
        )
        scores, goal = self._values(view), self.goal(budget, total)
        least = self.low if level == "gentle" else math.inf
        selector = Selector(view, budget, candidates_of(view, self.keep, scores, least=least), stand_ins)
        if level == "gentle" and selector.select(goal).after > goal:
            # Where messages of low importance do not suffice, the next ones go too: short steps break the cache often.
            selector = Selector(view, budget, candidates_of(view, self.keep, scores), stand_ins)
        return self.reduce(selector, budget, total, level)

    def describe(self, selector: Selector, chosen: Selection, goal: int) -> list[str]:
        """Say how many stay, and between which scores the line was drawn."""
        found, ranked = selector.candidates, selector.ranked
        gone = [place for place in ranked if place not in chosen.kept]
        if not gone:
            return []
        line = f"the best that goes has {found[gone[0]].score:.2f}"
        if chosen.kept:
            least = next(found[place].score for place in reversed(ranked) if place in chosen.kept)
            line += f", the least that stays {least:.2f}"
        free = sum(each.stop - each.start for each in found if not each.kind)
        units = f"{len(gone)} of {len(ranked)} units go"
        total = len(selector.view.items)
        return [f"importance: {units}, {total - free} of {total} messages may not; {line}"]

    def level(self, total: int, budget: Budget) -> Level:
        """Return how strongly a request of this size is to be reduced."""
        if total > budget.limit:
            return "emergency"
        mark = self.aggressive * budget.limit
        if 0 < mark < budget.high:
            mark = (budget.high + budget.limit) / 2
        return "aggressive" if total >= mark else "gentle"

    def score(self, view: View) -> list[Score]:
        """Score each visible message, in order, with the parts of its score."""
        last = max(1, len(view.items) - 1)
        return [self._score(item, view.read(item), index / last) for index, item in enumerate(view.items)]

    def _values(self, view: View) -> list[float]:
        """Return the scores alone."""
        step = self.recency / max(1, len(view.items) - 1)
        lasting = self.memory.values(
            view, lambda item: self.role * self._voice(item)[1] + self.content * self._content(item, view.read(item))[0]
        )
        found = [min(1.0, place * step + value) for place, value in enumerate(lasting)]
        for place, item in enumerate(view.items):
            if "important" in item.marks:
                found[place] = max(found[place], self.marked)
        return found

    def _score(self, item: Item, message: Message, place: float) -> Score:
        (speaker, weight), (content, words) = self._voice(item), self._content(item, message)
        reasons = [
            Reason("recency", self.recency * place),
            Reason(f"role: {speaker}", self.role * weight),
            Reason("content" + (": " + ", ".join(words) if words else ""), self.content * content),
        ]
        value = min(1.0, sum(reason.points for reason in reasons))
        if "important" in item.marks and value < self.marked:
            reasons.append(Reason("marked as important", self.marked - value))
            value = self.marked
        return Score(id=item.id, seq=item.seq, value=value, reasons=tuple(reasons))

    def _voice(self, item: Item) -> tuple[str, float]:
        """Return who speaks, and the weight of that."""
        speaker = item.role if item.role != "user" else "user" if item.own else "other"
        return speaker, float(getattr(self, speaker))

    def _content(self, item: Item, message: Message) -> tuple[float, tuple[str, ...]]:
        """Score the content of a message, from 0 to 1, and name what counted."""
        whole = text_of(message.blocks)
        half = self.look // 2
        searched = f"{whole[:half]}\n{whole[-half:]}" if self.look and len(whole) > self.look else whole
        text = plain("\n".join((searched, *item.tools)))
        keywords, tool_marks, frame_marks, approvals = self._plain_words
        points: dict[str, float] = {}
        if word := _first(keywords, text):
            points[f"keyword {word!r}"] = self.keyword
        if item.results or _first(tool_marks, text):
            points["tool result"] = self.tool
        if word := _first(frame_marks, text):
            points[f"mark {word!r}"] = self.frame
        if word := _first(approvals, text):
            points[f"approval {word!r}"] = self.approval
        value = sum(points.values())
        if len(whole) < self.short and not item.weight.media:
            value *= self.penalty
            points["short"] = 0.0
        return min(1.0, value), tuple(points)

    @cached_property
    def _plain_words(self) -> tuple[tuple[str, ...], ...]:
        lists = (self.keywords, self.tool_marks, self.frame_marks, self.approvals)
        return tuple(tuple(map(plain, words)) for words in lists)


def _first(words: tuple[str, ...], text: str) -> str:
    return next((word for word in words if word in text), "")
