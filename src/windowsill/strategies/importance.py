"""Importance: every message gets a score from 0 to 1, the best stay within the target, summaries tell of the rest."""

from __future__ import annotations

from functools import cached_property
from typing import Literal, TypeAlias

import msgspec

from windowsill.budget import Budget, Size, tokens_of
from windowsill.history.folds import Brief
from windowsill.history.view import Item, View
from windowsill.messages import Message, text_of
from windowsill.strategies.base import MEASURED, Plan, Strategy, check_count, check_range, check_words
from windowsill.strategies.scoring import (
    APPROVALS,
    FRAME_MARKS,
    KEYWORDS,
    TOOL_MARKS,
    Reason,
    Score,
    ScoreMemory,
    plain,
)
from windowsill.strategies.selection import Selection, Selector, StandIns, candidates_of, goal_of

Level: TypeAlias = Literal["gentle", "aggressive", "emergency"]

Words: TypeAlias = tuple[tuple[str, ...], str]


class Content(msgspec.Struct, frozen=True):
    """What the words of a message are worth, and which of them."""

    value: float
    found: tuple[str, ...] = ()


class Importance(Strategy, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keeps the messages with the best scores; what goes, goes in whole units and is told of.

    From the high mark on only messages of low importance go, further up all but the best, with summaries; beyond the
    limit the same, but no model is asked for a summary.
    """

    recency: float = 0.3
    """What the place counts: the oldest message has 0 of it, the newest all."""
    role: float = 0.3
    """What it counts who speaks."""
    content: float = 0.4
    """What it counts what is said."""
    user: float = 1.0
    """For the user's own words."""
    assistant: float = 0.5
    system: float = 0.3
    other: float = 0.5
    """For tools, and programs that speak under the user's name."""
    keyword: float = 0.3
    """When one of `keywords` is said."""
    tool: float = 0.25
    """For the result of a tool."""
    frame: float = 0.2
    """When one of `frame_marks` is there."""
    approval: float = 0.3
    """When one of `approvals` is said, or a tool is called by such a name."""
    short: int = 20
    """Characters below which the content counts less,"""
    penalty: float = 0.7
    """by this factor."""
    marked: float = 1.0
    """The least score of a message that is marked as important."""
    keywords: tuple[str, ...] = KEYWORDS
    tool_marks: tuple[str, ...] = TOOL_MARKS
    frame_marks: tuple[str, ...] = FRAME_MARKS
    approvals: tuple[str, ...] = APPROVALS
    look: int = 4_000
    """Characters of a message that are searched, half from its start and half from its end; 0 for all."""
    keep: int = 4
    """The latest messages that are never hidden."""
    target: Size | None = None
    """What is left after a reduction, in tokens or as a share of what a request may have; `None` for the low mark."""
    low: float = 0.35
    """Messages with a lower score are of low importance."""
    aggressive: float = 0.9
    """The share of what a request may have, from which on not only messages of low importance go; 0 for always.

    Where the high mark lies above it, half of the way from there to the limit."""
    worth: float = 0.05
    """The share of what a request may have that a reduction must free while the request still fits: each one breaks
    the cached prefix."""
    summaries: bool = True
    """Whether summaries are written of what goes."""
    gap: int = 5
    """Hidden messages in a row from which on a summary is written; fewer get a notice with their number."""
    summary: float = 0.15
    """The most that a summary may have, as a share of what it tells of,"""
    summary_least: int = 150
    """but at least so many tokens."""
    quote: float = 0.05
    """The share of what a request may have, in which the user's hidden words are quoted where no summary is written."""

    name = "importance"

    def __post_init__(self) -> None:
        shares = (
            *("recency", "role", "content", "user", "assistant", "system", "other", "keyword", "tool", "frame"),
            *("approval", "penalty", "marked", "low", "aggressive", "worth", "summary", "quote"),
        )
        check_range(self, shares, 0, 1, "a number from 0 to 1")
        check_range(self, ("short", "look", "summary_least"), 0, MEASURED, f"a number from 0 to {MEASURED:,}")
        check_count(self, "keep", "messages")
        check_count(self, "gap", "messages", low=1)
        check_words(self, "keywords", "tool_marks", "frame_marks", "approvals")
        if self.target is not None:
            tokens_of(self.target, MEASURED, "target")

    def plan(self, view: View, budget: Budget) -> Plan:
        """Hide what is worth least until the target is reached."""
        total = budget.fixed + view.tokens()
        if total <= budget.high:
            return Plan()
        level = self.level(total, budget)
        least = {"least": self.low} if level == "gentle" else {}
        candidates = candidates_of(view, self.keep, self._values(view), **least)
        selector = Selector(view, budget, candidates, self._stand_ins(level, budget))
        chosen = selector.select(goal_of(self.target, total, budget))
        middle = tuple(item for each in candidates for item in each.items(view))
        saved = total - chosen.after
        if total <= budget.limit and saved < self.worth * budget.limit:
            return Plan(middle=middle, notes=(f"importance: {saved:,} tokens are not worth a reduction yet",))
        reason = f"{total:,} tokens passed {budget.high:,}"
        proposal = selector.proposal(chosen.stretches, strategy=self.name, reason=f"{reason} ({level})")
        return Plan(
            proposals=(proposal,) if proposal else (),
            middle=middle,
            notes=(f"importance: {level}, {total:,} tokens", *_notes(view, selector, chosen)),
        )

    def level(self, total: int, budget: Budget) -> Level:
        """How much a request of this size calls for."""
        if total > budget.limit:
            return "emergency"
        mark = self.aggressive * budget.limit
        if 0 < mark < budget.high:
            mark = (budget.high + budget.limit) / 2
        return "aggressive" if total >= mark else "gentle"

    def score(self, view: View) -> list[Score]:
        """What each visible message is worth, in order, with its parts."""
        last = max(1, len(view.items) - 1)
        return [self._score(item, view.read(item), index / last) for index, item in enumerate(view.items)]

    def _values(self, view: View) -> list[float]:
        """Return the scores alone."""
        step = self.recency / max(1, len(view.items) - 1)
        lasting = self._memory.values(view, lambda item: self._lasting(item, view.read(item)))
        found = [min(1.0, place * step + value) for place, value in enumerate(lasting)]
        for place, item in enumerate(view.items):
            if "important" in item.marks:
                found[place] = max(found[place], self.marked)
        return found

    def _lasting(self, item: Item, message: Message) -> float:
        """Return the part of a score that does not change with the place of the message."""
        return self.role * float(getattr(self, _speaker(item))) + self.content * self.worth_of(item, message).value

    @cached_property
    def _memory(self) -> ScoreMemory:
        return ScoreMemory()

    def _score(self, item: Item, message: Message, place: float) -> Score:
        who, said = _speaker(item), self.worth_of(item, message)
        reasons = [
            Reason("recency", self.recency * place),
            Reason(f"role: {who}", self.role * getattr(self, who)),
            Reason("content" + (": " + ", ".join(said.found) if said.found else ""), self.content * said.value),
        ]
        value = min(1.0, sum(reason.points for reason in reasons))
        if "important" in item.marks and value < self.marked:
            reasons.append(Reason("marked as important", self.marked - value))
            value = self.marked
        return Score(id=item.id, seq=item.seq, value=value, reasons=tuple(reasons))

    def worth_of(self, item: Item, message: Message) -> Content:
        """What the content of a message counts, from 0 to 1."""
        said = text_of(message.blocks)
        text = plain("\n".join((self._searched(said), *item.tools)) if item.tools else self._searched(said))
        keywords, tool_marks, frame_marks, approvals, others = self._lists[text.isascii()]
        points: dict[str, float] = {}
        if word := _first(keywords, text):
            points[f"keyword {word!r}"] = self.keyword
        else:
            approvals = others
        if item.results or _first(tool_marks, text):
            points["tool result"] = self.tool
        if word := _first(frame_marks, text):
            points[f"mark {word!r}"] = self.frame
        if word := _first(approvals, text):
            points[f"approval {word!r}"] = self.approval
        value = sum(points.values())
        if len(said) < self.short and not item.weight.media:
            value *= self.penalty
            points["short"] = 0.0
        return Content(min(1.0, value), tuple(points))

    @cached_property
    def _lists(self) -> tuple[tuple[Words, ...], ...]:
        """The lists as they are looked for, and those of their words that can stand in a text without other letters.

        The last are the approvals where no keyword is said, without those that are keywords.
        """
        said = (self.keywords, self.tool_marks, self.frame_marks, self.approvals)
        keywords, tool_marks, frame_marks, approvals = (tuple(map(plain, words)) for words in said)
        others = tuple(word for word in approvals if word not in keywords)
        whole = (keywords, tool_marks, frame_marks, approvals, others)
        plainer = (tuple(filter(str.isascii, words)) for words in whole)
        return tuple(map(_begun, whole)), tuple(map(_begun, plainer))

    def _searched(self, said: str) -> str:
        if not self.look or len(said) <= self.look:
            return said
        half = self.look // 2
        return f"{said[:half]}\n{said[-half:]}"

    def _stand_ins(self, level: Level, budget: Budget) -> StandIns:
        return StandIns(
            gap=self.gap,
            share=self.summary,
            least=self.summary_least,
            quote=int(self.quote * budget.limit),
            brief=Brief(style="summary", needed=level != "emergency") if self.summaries else None,
        )


def _notes(view: View, selector: Selector, chosen: Selection) -> tuple[str, ...]:
    """Say how many stay, and between which scores the line was drawn."""
    found, ranked = selector.candidates, selector.ranked
    gone = [place for place in ranked if place not in chosen.kept]
    if not gone:
        return ()
    line = f"the best that goes has {found[gone[0]].score:.2f}"
    if chosen.kept:
        least = next(found[place].score for place in reversed(ranked) if place in chosen.kept)
        line += f", the least that stays {least:.2f}"
    free = sum(each.stop - each.start for each in found if not each.kind)
    units = f"{len(gone)} of {len(ranked)} units go"
    held = len(view.items) - free
    return (f"importance: {units}, {held} of {len(view.items)} messages may not; {line}",)


def _speaker(item: Item) -> str:
    if item.role != "user":
        return item.role
    return "user" if item.own else "other"


def _begun(words: tuple[str, ...]) -> Words:
    """Words, and the letter that all of them begin with: a text without it is looked through once."""
    letters = {word[0] for word in words}
    return words, letters.pop() if len(letters) == 1 else ""


def _first(words: Words, text: str) -> str:
    """The first of these words that is said."""
    listed, letter = words
    if letter in text:
        for word in listed:
            if word in text:
                return word
    return ""
