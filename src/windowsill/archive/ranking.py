"""Puts passages in order: neighbours share in a hit's score, lists of two kinds are fused, circumstances weigh."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec

from windowsill.archive.index import APART, number
from windowsill.dates import TimeSpan

HOUR = 3_600.0
DAY = 24 * HOUR


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
    """What a passage gains if the question names who said it."""
    period: float = 0.5
    """What a passage gains if it was said in the time that the question speaks of."""
    told_later: float = 10 * DAY
    """Seconds after that time in which things are still told of it; half the gain."""
    recency: float = 0.05
    """What a passage of this moment gains over an old one."""
    half_life: float = 7 * DAY
    """Seconds after which half of that is left."""
    alike: float = 0.9
    """The share of words in common from which two passages say the same."""


class Facts(NamedTuple):
    """What of a passage weighs beside its words."""

    at: float
    role: str
    tool: str | None
    speaker: str | None
    seq: int | None = None


def neighbours(key: int, reach: int) -> range:
    """The keys around a passage and its own, if it stands in a row."""
    place = number(key)
    if place >= APART:
        return range(0)
    return range(key - min(reach, place - 1), key + min(reach, APART - 1 - place) + 1)


def spread(scores: Mapping[int, float], facts: Mapping[int, Facts], ranking: Ranking) -> dict[int, float]:
    """Scores with what neighbours gain from each other; `facts` says which passages there are."""
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
    """Keys by falling score; of equals, the one said first."""
    return sorted(scores, key=lambda key: (-scores[key], key))


def fuse(lists: Sequence[tuple[float, Mapping[int, float]]], constant: int) -> dict[int, float]:
    """Weighted lists as one, by reciprocal rank: their scores need have nothing in common."""
    total: dict[int, float] = {}
    for weight, scores in lists:
        for place, key in enumerate(best_first(scores), 1):
            total[key] = total.get(key, 0.0) + weight / (constant + place)
    return total


def weigh(
    scores: Mapping[int, float],
    facts: Mapping[int, Facts],
    ranking: Ranking,
    *,
    named: Callable[[Facts], bool],
    periods: Collection[TimeSpan],
    now: float,
) -> dict[int, float]:
    """Scores between 0 and 1, with what the circumstances of each passage add to them."""
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


def _within(at: float, period: TimeSpan, later: float) -> float:
    if period.start <= at < period.stop:
        return 1.0
    return 0.5 if period.stop <= at < period.stop + later else 0.0
