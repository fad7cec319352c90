"""Rank passages for a question and fill an answer with them.

Candidates come by words and by meaning; neighbours share in a hit's score, both lists are fused, circumstances weigh,
and what repeats a better passage is left out.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING
from zlib import crc32

import msgspec

from windowsill.dates import TimeSpan, time_spans
from windowsill.search.embeddings import Embedder
from windowsill.search.query import (
    content_words,
    distinct_words,
    named_speaker,
    phrase_term,
    query_terms,
    shorten_question,
    valid_text,
)
from windowsill.store import SearchIndex
from windowsill.store.search_index import (
    APART,
    Filters,
    IndexedSession,
    Passage,
    PassageFacts,
    Source,
    passage_number,
    session_key,
)

if TYPE_CHECKING:
    from windowsill.search.similarity import Similarity


HOUR = 3_600.0
DAY = 24 * HOUR

SHORTEST_EXACT = 3
"""Characters from which on a question is also looked for letter for letter."""

MOST_MISSES = 20
"""Passages in a row that are too large for what is left of a budget, after which it counts as full."""

_FETCH = 64
"""Passages read at once."""

_WORD = re.compile(r"\w+")

LONGER = 0.01
"""The weight of a word of the longer of two texts, where one of the shorter weighs 1."""

_SAMPLES = (0, 1 << 30, 1 << 31, 3 << 30)
"""Places among all hashes at which a text's words are sampled. Texts with nine words of ten in common share the two
words that follow one of these places 999 times of 1,000; equal texts always do."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A passage that answers a question, with where it stands."""

    text: str
    message_id: str
    session: str
    role: str
    at: float
    score: float
    """Between 0 and 1 within one answer; scores of two questions say nothing about each other."""
    seq: int | None = None
    """The entry of the journal; `None` for what was stored by hand."""
    source: Source = "message"
    tool: str | None = None
    speaker: str | None = None
    lines: tuple[int, int] = (1, 1)
    """The first and last line within the words, the call or the result it is from."""
    neighbour: bool = False
    """It holds nothing that was asked for, but stands beside what does."""
    sources: tuple[str, ...] = ()
    """The ids of what it was made from, as they were given to `store`."""
    covers: tuple[int, int] | None = None
    """For a summary, the first and last entry it stands for."""
    also: tuple[str, ...] = ()
    """Messages that say the same and were left out."""
    abandoned: bool = False
    """It stands on a branch that was left by a rewind."""


class Ranking(msgspec.Struct, frozen=True, kw_only=True):
    """The weights of a search."""

    candidates: int = 200
    """Passages taken from each list; what lies further down has too little in common with the question."""
    near: tuple[float, ...] = (0.6, 0.4, 0.2, 0.1)
    """The share of a hit's score that the passage 1, 2, ... places away gets: an answer often repeats no word of what
    it answers."""
    gap: float = 6 * HOUR
    """Seconds of silence after which a conversation begins anew, and its passages are no neighbours."""
    fusion: int = 60
    """The constant of reciprocal rank fusion: the larger, the less the very first places count."""
    similar: float = 0.3
    """The weight of similarity in meaning, where matching words weigh 1."""
    similar_near: float = 0.3
    """The weight of that similarity shared among neighbours."""
    speaker: float = 0.3
    """The gain of a passage whose speaker the question names."""
    period: float = 0.5
    """The gain of a passage from the time that the question names."""
    told_later: float = 10 * DAY
    """Seconds after that time in which things are still told of it; half the gain."""
    recency: float = 0.05
    """The gain of a passage of this moment over an old one."""
    half_life: float = 7 * DAY
    """Seconds after which half of that is left."""
    alike: float = 0.9
    """The share of words in common from which two passages say the same."""


class Ranked(msgspec.Struct, frozen=True):
    """Passages by key with their scores, and which of them were hit themselves."""

    scores: Mapping[int, float]
    hits: frozenset[int]


def search(
    index: SearchIndex,
    scope: Sequence[IndexedSession],
    question: str,
    *,
    filters: Filters,
    ranking: Ranking,
    similar: Similarity | None,
    now: float | None,
) -> Ranked:
    """Score everything in scope that may answer a question."""
    exact_text = valid_text(question).strip()
    question = shorten_question(question)
    matched = _matched(index, scope, question, exact_text, filters, ranking.candidates)
    words = " ".join(content_words(question))
    meant = similar.top(words, scope, filters, ranking.candidates) if similar and words else {}
    facts = _facts(index, {*matched, *meant}, filters, len(ranking.near))
    scores = spread(matched, facts, ranking)
    if similar is not None:
        lists = (
            (1.0, scores),
            (ranking.similar, {key: score for key, score in meant.items() if key in facts}),
            (ranking.similar_near, spread(meant, facts, ranking)),
        )
        scores = fuse(lists, ranking.fusion)
    if now is None:
        # The time of the newest message: an archive reads no clock.
        now = max((at for session in scope if (at := index.newest(session)) is not None), default=0.0)
    named = named_speaker(question, facts.values())
    weighed = weigh(scores, facts, ranking, named=named, periods=time_spans(question, now), now=now)
    exact = index.verbatim(matched, exact_text) if len(exact_text) >= SHORTEST_EXACT else set()
    if exact:
        # Who asks for a path or a line means just that: it goes before everything that shares words with it.
        weighed = {key: (1 + score) / 2 if key in exact else score / 2 for key, score in weighed.items()}
    return Ranked(weighed, frozenset({*matched, *meant}))


def fill_answer(
    index: SearchIndex,
    ranked: Ranked,
    scope: Sequence[IndexedSession],
    *,
    most: int | None,
    budget: int | None,
    count: Callable[[str], int],
    alike: float,
) -> list[Found]:
    """Take the best passages, at most so many and so many tokens; one that repeats a better one is only named there."""
    sessions = {each.key: each.id for each in scope}
    seen = Duplicates(alike)
    taken: dict[int, Found] = {}
    also: dict[int, list[str]] = {}
    left, misses = budget, 0
    for place, (key, passage) in enumerate(_passages(index, best_first(ranked.scores))):
        if misses >= MOST_MISSES or (most is not None and len(taken) >= most):
            break
        repeated = seen.repeats(passage.text, place)
        if repeated is not None:
            also.setdefault(repeated, []).append(passage.id)
            continue
        if left is not None:
            weight = count(passage.text)
            if weight > left:
                misses += 1
                continue
            left, misses = left - weight, 0
        hit = key in ranked.hits
        taken[place] = _found(passage, sessions[session_key(key)], score=ranked.scores[key], neighbour=not hit)
    return [
        msgspec.structs.replace(found, also=tuple(dict.fromkeys(also[place]))) if place in also else found
        for place, found in taken.items()
    ]


def load_found(index: SearchIndex, scores: Mapping[int, float], scope: Sequence[IndexedSession]) -> list[Found]:
    """Return these passages, by falling score."""
    sessions = {each.key: each.id for each in scope}
    return [
        _found(passage, sessions[session_key(key)], score=scores[key], neighbour=False)
        for key, passage in _passages(index, best_first(scores))
    ]


def neighbours(key: int, reach: int) -> range:
    """Return the keys around a passage and its own, if it stands in a row."""
    place = passage_number(key)
    if place >= APART:
        return range(0)
    return range(key - min(reach, place - 1), key + min(reach, APART - 1 - place) + 1)


def spread(scores: Mapping[int, float], facts: Mapping[int, PassageFacts], ranking: Ranking) -> dict[int, float]:
    """Add to scores what neighbours gain from each other; only passages in `facts` exist."""
    total = {key: score for key, score in scores.items() if key in facts}
    for key, score in scores.items():
        if key not in facts or score <= 0:
            continue
        at = facts[key].at
        for other in neighbours(key, len(ranking.near)):
            about = facts.get(other)
            if about is not None and other != key and abs(about.at - at) <= ranking.gap:
                total[other] = total.get(other, 0.0) + ranking.near[abs(other - key) - 1] * score
    return total


def best_first(scores: Mapping[int, float]) -> list[int]:
    """Sort keys by falling score; of equals, the one said first."""
    return sorted(sorted(scores), key=scores.__getitem__, reverse=True)


def fuse(lists: Sequence[tuple[float, Mapping[int, float]]], constant: int) -> dict[int, float]:
    """Join weighted lists by reciprocal rank: their scores need have nothing in common."""
    total: dict[int, float] = {}
    for weight, scores in lists:
        for place, key in enumerate(best_first(scores), 1):
            total[key] = total.get(key, 0.0) + weight / (constant + place)
    return total


def weigh(
    scores: Mapping[int, float],
    facts: Mapping[int, PassageFacts],
    ranking: Ranking,
    *,
    named: Callable[[PassageFacts], bool],
    periods: Collection[TimeSpan],
    now: float,
) -> dict[int, float]:
    """Add to scores what the circumstances of each passage are worth, and scale them to between 0 and 1."""
    weighed = {}
    for key, score in scores.items():
        about = facts[key]
        factor = 1 + ranking.recency * 0.5 ** (max(now - about.at, 0.0) / ranking.half_life)
        if named(about):
            factor += ranking.speaker
        if periods:
            factor += ranking.period * max(_within(about.at, period, ranking.told_later) for period in periods)
        weighed[key] = score * factor
    highest = max(weighed.values(), default=0.0)
    return {key: score / highest for key, score in weighed.items() if score > 0} if highest > 0 else {}


def relevance(goal: str, texts: Sequence[str], embedder: Embedder | None = None) -> list[float]:
    """Return for each text a number from 0 to 1: likeness in meaning, or without embedder the words in common.

    Their number is a share of the shorter text's words: a short fact can be all about one word of a long goal. The
    longer text counts a little, so that of two such facts the one that says more of the goal is nearer.
    """
    if not texts:
        return []
    if embedder is not None:
        from windowsill.search.similarity import normalize  # noqa: PLC0415 - brings numpy, which is an extra

        rows = normalize(embedder.embed([goal, *texts]))
        return [min(max(float(score), 0.0), 1.0) for score in rows[1:] @ rows[0]]
    wanted = distinct_words(goal)
    return [_overlap(wanted, distinct_words(text)) for text in texts]


def _overlap(some: Collection[str], others: Collection[str]) -> float:
    shorter, longer = sorted((len(some), len(others)))
    return len({*some} & {*others}) / (shorter + LONGER * (longer - shorter)) if shorter else 0.0


class Duplicates:
    """Remembers texts and finds the earlier one that a new one repeats, such as the output of a command run again.

    Two texts repeat each other when their numbers are the same and nearly all their words: a changed number is news.
    """

    def __init__(self, alike: float) -> None:
        self._alike = alike
        self._by_sample: dict[tuple[int, ...], list[int]] = {}
        self._known: dict[int, tuple[frozenset[str], frozenset[str]]] = {}

    def repeats(self, text: str, place: int) -> int | None:
        """Return the place of the earlier text that this one repeats; one that repeats none is kept as `place`."""
        words = frozenset(_WORD.findall(text.casefold()))
        numbers = frozenset([word for word in words if not word.isalpha()])
        samples = _samples(words)
        for sample in samples:
            for earlier in self._by_sample.get(sample, ()):
                others, their_numbers = self._known[earlier]
                if numbers == their_numbers and len(words & others) >= self._alike * len(words | others):
                    return earlier
        for sample in samples:
            self._by_sample.setdefault(sample, []).append(place)
        self._known[place] = words, numbers
        return None


def _samples(words: frozenset[str]) -> list[tuple[int, ...]]:
    """Return a few pairs of a text's words, chosen by nothing but the words themselves."""
    hashes = sorted([crc32(word.encode("utf-8", "replace")) for word in words])
    round_again = hashes + hashes[:2]
    return [tuple(round_again[place : place + 2]) for place in [bisect(hashes, start) for start in _SAMPLES]]


def _matched(
    index: SearchIndex, scope: Sequence[IndexedSession], question: str, exact: str, filters: Filters, most: int
) -> dict[int, float]:
    """Return passages that share words with a question; what has no words, such as `=>`, is found as it is written."""
    terms = query_terms(question)
    if not terms:
        return dict.fromkeys(index.literal(exact, scope, filters, most), 1.0) if exact else {}
    found = dict(index.match(terms, scope, filters, most))
    if len(found) == most and (in_a_row := phrase_term(exact)):
        # Among many passages that have its words, those that have them in this order may be further down.
        lowest = min(found.values())
        found |= {key: lowest for key, _ in index.match([in_a_row], scope, filters, most) if key not in found}
    return found


def _facts(index: SearchIndex, hits: set[int], filters: Filters, reach: int) -> dict[int, PassageFacts]:
    """Return the facts of the hits and their neighbours, all of one session; nothing outside the filters."""
    found = index.facts(hits.union(*(neighbours(key, reach) for key in hits)))
    return {key: about for key, about in found.items() if filters.allow(about)} if filters else found


def _within(at: float, period: TimeSpan, later: float) -> float:
    if period.start <= at < period.stop:
        return 1.0
    return 0.5 if period.stop <= at < period.stop + later else 0.0


def _passages(index: SearchIndex, keys: Sequence[int]) -> Iterator[tuple[int, Passage]]:
    for start in range(0, len(keys), _FETCH):
        some = keys[start : start + _FETCH]
        found = index.passages(some)
        # What was deleted in the meantime is not there any more.
        yield from ((key, found[key]) for key in some if key in found)


def _found(passage: Passage, session: str, *, score: float, neighbour: bool) -> Found:
    made = tuple(msgspec.json.decode(passage.sources)) if passage.sources else ()
    covers = made if made and passage.seq is not None else None
    return Found(
        text=passage.text,
        message_id=passage.id,
        session=session,
        role=passage.role,
        at=passage.at,
        score=score,
        seq=passage.seq,
        source=passage.source,
        tool=passage.tool,
        speaker=passage.speaker,
        lines=(passage.first, passage.last),
        neighbour=neighbour,
        sources=() if covers else made,
        covers=covers,
    )
