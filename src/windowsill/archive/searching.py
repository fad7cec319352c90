"""One search: candidates by words and by meaning, their neighbours, and the order of it all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from windowsill.archive.found import Filters
from windowsill.archive.index import Index, Progress, session_key
from windowsill.archive.ranking import Facts, Ranking, fuse, neighbours, spread, weigh
from windowsill.archive.speakers import named_in
from windowsill.archive.words import content_words, phrase, plain, query, shortened
from windowsill.dates import time_spans

SHORTEST_EXACT = 3
"""Characters from which on a question is also looked for letter for letter."""


class Similar(Protocol):
    """What finds passages by their meaning."""

    def top(self, question: str, scope: Sequence[Progress], filters: Filters, most: int) -> dict[int, float]:
        """The passages most similar to a question."""


class Ranked(msgspec.Struct, frozen=True):
    """Passages by key with their scores, and which of them were hit themselves."""

    scores: Mapping[int, float]
    hits: frozenset[int]


def search(
    index: Index,
    scope: Sequence[Progress],
    question: str,
    *,
    filters: Filters,
    ranking: Ranking,
    similar: Similar | None,
    now: float | None,
) -> Ranked:
    """Everything in scope that may answer a question."""
    sought = plain(question).strip()
    question = shortened(question)
    matched = _matched(index, scope, question, sought, filters, ranking.candidates)
    words = " ".join(content_words(question))
    meant = similar.top(words, scope, filters, ranking.candidates) if similar and words else {}
    facts = _facts(index, {*matched, *meant}, scope, filters, len(ranking.near))
    near = spread(matched, facts, ranking)
    if similar is None:
        scores = near
    else:
        lists = (
            (1.0, near),
            (ranking.similar, {key: score for key, score in meant.items() if key in facts}),
            (ranking.similar_near, spread(meant, facts, ranking)),
        )
        scores = fuse(lists, ranking.fusion)
    present = _now(index, scope) if now is None else now
    weighed = weigh(
        scores,
        facts,
        ranking,
        named=named_in(question, facts.values()),
        periods=time_spans(question, present),
        now=present,
    )
    exact = index.verbatim(matched, sought) if len(sought) >= SHORTEST_EXACT else set()
    # Who asks for a path or a line means just that: it goes before everything that shares words with it.
    lifted = (
        {key: (1 + score) / 2 if key in exact else score / 2 for key, score in weighed.items()} if exact else weighed
    )
    return Ranked(lifted, frozenset({*matched, *meant}))


def _matched(
    index: Index, scope: Sequence[Progress], question: str, sought: str, filters: Filters, most: int
) -> dict[int, float]:
    """Passages that share words with a question; what has no words, such as `=>` or an emoji, as it is written."""
    expression = query(question)
    if not expression:
        return dict.fromkeys(index.literal(sought, scope, filters, most), 1.0) if sought else {}
    found = dict(index.match(expression, scope, filters, most))
    if len(found) == most and (in_a_row := phrase(sought)):
        # Among many passages that have its words, those that have them in this order may be further down.
        lowest = min(found.values())
        found |= {key: lowest for key, _ in index.match(in_a_row, scope, filters, most) if key not in found}
    return found


def _facts(index: Index, hits: set[int], scope: Sequence[Progress], filters: Filters, reach: int) -> dict[int, Facts]:
    """What is known of the hits and of what stands around them; nothing outside the scope or the filters."""
    around = hits.union(*(neighbours(key, reach) for key in hits))
    sessions = {session.key for session in scope}
    found = {row[0]: Facts._make(row[1:]) for row in index.facts(around) if session_key(row[0]) in sessions}
    if not filters.any:
        return found
    allow = filters.allow
    return {key: about for key, about in found.items() if allow(about.role, about.tool, about.at, about.seq)}


def _now(index: Index, scope: Sequence[Progress]) -> float:
    """The time of the newest message: an archive reads no clock."""
    return max((at for session in scope if (at := index.newest(session)) is not None), default=0.0)
