"""Priority: an additive score with its reasons and a class; the highest stay, the critical ones beyond the target."""

from __future__ import annotations

from functools import cached_property
from typing import Literal, TypeAlias

from windowsill.budget import Budget
from windowsill.errors import SettingError
from windowsill.history.view import Item, View
from windowsill.messages import Message
from windowsill.strategies.base import Plan, check_range, check_words
from windowsill.strategies.scores import DECISIONS, Reason, Score, plain, terms_of
from windowsill.strategies.selection import ScoreStrategy, Selection, Selector, StandIns, candidates_of
from windowsill.text import count_of

Category: TypeAlias = Literal["critical", "important", "normal", "low"]

MOST_POINTS = 1_000
"""Points that one reason may give: more would drown all others."""

MARKER_GAP = 2
"""Hidden messages in a row from which on a marker tells of them, where it is short enough."""

MARKER_LEAST = 150
"""Tokens in which a marker names the tools and quotes a line of the user's."""

MARKER_SHARE = 0.15
"""The largest size of a marker, as a share of what it replaces."""


class Priority(ScoreStrategy, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keeps the messages with the most points; critical ones stay even above the target, but never above the limit."""

    user: int = 10
    """Points of a message from the user."""
    assistant: int = 5
    recency: int = 20
    """Points of the newest message; each one before it has one less, down to 0."""
    tools: int = 15
    """Points of tool calls and their results."""
    relevant: int = 25
    """Points for words of the task."""
    important: int = 30
    """Points for the mark `important`."""
    decision: int = 20
    """Points for a decision or a commitment."""
    condensed: int = -10
    """Points of what was shortened, and of stand-ins."""
    keywords: tuple[str, ...] = ()
    """Words of the task: one of them makes a message part of it. Without any, the task's own words are taken."""
    overlap: float = 0.3
    """The share of the task's own words above which a message is part of it."""
    decisions: tuple[str, ...] = DECISIONS
    critical: int = 70
    """The least points of a critical message."""
    noted: int = 50
    """The least points of an important message."""
    normal: int = 30
    """The least points of a normal message; the others are low."""

    name = "priority"

    def __post_init__(self) -> None:
        super().__post_init__()
        points = ("user", "assistant", "recency", "tools", "relevant", "important", "decision")
        check_range(self, points, 0, MOST_POINTS, f"points from 0 to {MOST_POINTS:,}")
        check_range(self, "condensed", -MOST_POINTS, 0, f"points from -{MOST_POINTS:,} to 0")
        check_range(self, "overlap", 0, 1, "a number from 0 to 1")
        check_words(self, "keywords", "decisions")
        if not self.critical >= self.noted >= self.normal:
            raise SettingError("critical", self.critical, "at least `noted`, which is at least `normal`")

    def plan(self, view: View, budget: Budget) -> Plan:
        """Hide what has the fewest points until the target is reached."""
        total = budget.fixed + view.tokens()
        if total <= budget.high:
            return Plan()
        stand_ins = StandIns(
            gap=MARKER_GAP, share=MARKER_SHARE, least=MARKER_LEAST, largest=int(self.quote * budget.limit)
        )
        candidates = candidates_of(view, self.keep, self._values(view))
        selector = Selector(view, budget, candidates, stand_ins, forced=self.critical)
        return self.reduce(selector, budget, total)

    def describe(self, selector: Selector, chosen: Selection, goal: int) -> list[str]:
        """Say what critical messages did to the target."""
        forced = sorted(selector.ranked[: selector.forced])
        stay = [selector.candidates[place].tokens for place in forced if place in chosen.kept]
        gone = [selector.candidates[place].tokens for place in forced if place not in chosen.kept]
        notes = []
        if stay and chosen.after > goal:
            notes.append(f"priority: {_count(stay)} stay: {chosen.after:,} tokens, above the target of {goal:,}")
        if gone:
            notes.append(
                f"priority: {_count(gone)} with {self.critical} points or more go: they alone would pass the limit"
            )
        return notes

    def score(self, view: View) -> list[Score]:
        """Score each visible message, in order, with its reasons and its class."""
        names = (
            *("{role} message", "contains tools", "task relevant", "contains decision", "already condensed"),
            *("recency", "marked as important"),
        )
        found = []
        newest = len(view.items) - 1
        words, least = self._task_words(view)
        for index, item in enumerate(view.items):
            points = (
                *self._lasting(item, view.read(item), words, least),
                max(0, self.recency - (newest - index)),
                self.important if "important" in item.marks else 0,
            )
            reasons = tuple(
                Reason(name.format(role=item.role), point)
                for name, point in zip(names, points, strict=True)
                if point or name == "recency"
            )
            value = sum(points)
            found.append(Score(id=item.id, seq=item.seq, value=value, reasons=reasons, category=self.category(value)))
        return found

    def category(self, points: float) -> Category:
        """Return the class of so many points."""
        if points >= self.critical:
            return "critical"
        if points >= self.noted:
            return "important"
        return "normal" if points >= self.normal else "low"

    def _values(self, view: View) -> list[float]:
        """Return the scores alone."""
        words, least = self._task_words(view)
        lasting = self.memory.values(
            view, lambda item: sum(self._lasting(item, view.read(item), words, least)), under=(words, least)
        )
        oldest = self.recency - (len(view.items) - 1)
        return [
            value + max(0, oldest + place) + (self.important if "important" in item.marks else 0)
            for place, (item, value) in enumerate(zip(view.items, lasting, strict=True))
        ]

    @cached_property
    def _phrases(self) -> tuple[str, ...]:
        return tuple(plain(phrase) for phrase in self.decisions)

    def _lasting(self, item: Item, message: Message, words: tuple[str, ...], least: float) -> tuple[int, ...]:
        """Return the points for role, tools, relevance, decisions and shortening."""
        # What stands in for others quotes them, and decides nothing itself.
        text = "" if item.fold else plain(message.text)
        return (
            {"user": self.user, "assistant": self.assistant, "system": 0}[item.role],
            self.tools if item.calls or item.results else 0,
            self.relevant if text and sum(word in text for word in words) > least else 0,
            self.decision if text and any(phrase in text for phrase in self._phrases) else 0,
            self.condensed if item.fold or item.cuts else 0,
        )

    def _task_words(self, view: View) -> tuple[tuple[str, ...], float]:
        """Return the words that make a message part of the task, and how many of them it needs."""
        if self.keywords:
            return tuple(plain(word) for word in self.keywords), 0
        task = view.task()
        words = terms_of(view.read(view.items[task]).text) if task is not None else ()
        return words, self.overlap * len(words)


def _count(units: list[float]) -> str:
    return f"{count_of(len(units), 'critical unit')} ({round(sum(units)):,} tokens)"
