"""Fills an answer with as many passages as there is room for, the best first, each only once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from windowsill.archive.duplicates import Seen
from windowsill.archive.found import Found
from windowsill.archive.index import Index, Progress, session_key
from windowsill.archive.passages import Passage
from windowsill.archive.ranking import best_first
from windowsill.archive.searching import Ranked

MOST_MISSES = 20
"""Passages in a row that are too large for what is left of a budget, after which it counts as full."""

_FETCH = 64
"""Passages read at once."""


def fill(
    index: Index,
    ranked: Ranked,
    scope: Sequence[Progress],
    *,
    most: int | None,
    budget: int | None,
    count: Callable[[str], int],
    alike: float,
) -> list[Found]:
    """At most so many passages, of at most so many tokens; one that repeats a better one is only named there."""
    sessions = {each.key: each.id for each in scope}
    seen = Seen(alike)
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


def found_at(index: Index, scores: Mapping[int, float], scope: Sequence[Progress]) -> list[Found]:
    """These passages, by falling score."""
    sessions = {each.key: each.id for each in scope}
    return [
        _found(passage, sessions[session_key(key)], score=scores[key], neighbour=False)
        for key, passage in _passages(index, best_first(scores))
    ]


def _passages(index: Index, keys: Sequence[int]) -> Iterator[tuple[int, Passage]]:
    for start in range(0, len(keys), _FETCH):
        some = keys[start : start + _FETCH]
        found = index.passages(some)
        # What was deleted in the meantime is not there any more.
        yield from ((key, found[key]) for key in some if key in found)


def _found(passage: Passage, session: str, *, score: float, neighbour: bool) -> Found:
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
        **_origin(passage),
    )


def _origin(passage: Passage) -> dict[str, Any]:
    made = msgspec.json.decode(passage.sources) if passage.sources else []
    if made and passage.seq is not None:
        return {"covers": tuple(made)}
    return {"sources": tuple(made)}
