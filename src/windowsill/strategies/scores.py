"""Scores of messages with their reasons, and a memory of them: what a message says is looked at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from weakref import WeakKeyDictionary

import msgspec

from windowsill.history.view import Item, View
from windowsill.strategies.base import key_of


class Reason(msgspec.Struct, frozen=True):
    """One part of a score."""

    what: str
    points: float

    def __str__(self) -> str:
        return f"{self.what} ({self.points:+.3g})"


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """The worth of a message, with its reasons."""

    id: str
    seq: int
    value: float
    reasons: tuple[Reason, ...]
    """Their points add up to the value, before it is kept within its range."""
    category: str = ""


class ScoreMemory:
    """The scores of the visible messages of each view, for as long as the view lives."""

    def __init__(self) -> None:
        self._views: WeakKeyDictionary[View, tuple[Hashable, dict[Hashable, float]]] = WeakKeyDictionary()

    def values(self, view: View, find: Callable[[Item], float], under: Hashable = None) -> list[float]:
        """Return what `find` says of each item; each is asked for once as long as `under` stays the same."""
        before, known = self._views.get(view, (under, {}))
        if before != under:
            known = {}
        found = {}
        for item in view.items:
            key = key_of(item)
            found[key] = known[key] if key in known else find(item)
        self._views[view] = (under, found)
        return list(found.values())


KEYWORDS = (
    *("error", "success", "plan", "task", "approval", "denied", "completed", "failed", "warning"),
    "exception",
    *("エラー", "成功", "計画", "タスク", "承認", "拒否", "却下", "完了", "失敗", "警告", "例外"),
)
"""Words for outcomes, plans and tasks."""

TOOL_MARKS = ("[tool:", "[ツール:", "[ツール：")  # noqa: RUF001 - the full-width colon is how Japanese text has it
"""The beginnings of a tool's result that an agent writes as text."""

FRAME_MARKS = ("[system:", "[user", "[task", "[システム", "[ユーザー", "[タスク")
"""The signs by which an agent sets notices, the user's words and tasks apart inside a text."""

APPROVALS = ("agent_call", "approval", "承認", "許可", "エージェント呼び出し")
"""Approvals, and calls from one agent to another."""

DECISIONS = (
    *("we will", "we'll", "we should", "we must", "will do", "decided", "agreed", "let's", "plan is"),
    *("ことにし", "ことに決", "決定", "決めま", "決まり", "合意", "方針", "しましょう"),
)
"""Phrases that commit somebody to something: for every strategy that leaves decisions where they are."""

_STOP_WORDS = frozenset(
    (
        *("about", "above", "after", "again", "also", "always", "because", "been", "before", "being", "below"),
        *("between", "both", "cannot", "could", "does", "doing", "down", "during", "each", "from", "further", "have"),
        *("having", "here", "into", "just", "like", "make", "more", "most", "must", "need", "once", "only", "other"),
        *("over", "please", "same", "should", "some", "such", "than", "that", "their", "them", "then", "there"),
        *("these", "they", "this", "those", "through", "under", "until", "using", "very", "want", "were", "what"),
        *("when", "where", "which", "while", "will", "with", "would", "your"),
    )
)
"""English words as long as others that say nothing of a task."""

_TERM = re.compile(r"[a-z][\w./-]*\w|[\u4e00-\u9fff\u3005]{2,}|[\u30a1-\u30fa\u30fc]{3,}", re.ASCII)

SHORTEST_TERM = 4
"""Letters of a Latin word that says something; Japanese ones say it in two."""

MOST_TERMS = 24
"""Words of a task that stand for it: the first ones say what it is about."""


def terms_of(task: str) -> tuple[str, ...]:
    """Return the words of a task by which other messages are recognised as part of it."""
    found: dict[str, None] = {}
    for match in _TERM.finditer(plain(task)):
        word = match[0]
        if word.isascii() and (len(word) < SHORTEST_TERM or word in _STOP_WORDS):
            continue
        found[word] = None
        if len(found) == MOST_TERMS:
            break
    return tuple(found)


def plain(text: str) -> str:
    """Normalise text for the search of words: lower case, straight apostrophes."""
    return text.lower() if text.isascii() else text.lower().replace("\u2019", "'")
