"""Sentences: splits texts of any language into them, and picks those that tell the most."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Sequence

from windowsill.writers.cues import cues
from windowsill.writers.ledger import Quote, Sentence

LONGEST = 600
"""Characters of one sentence. What has no end for longer than this is a dump, not a sentence."""

SHORTEST_TELLING = 24
"""A shorter sentence of an assistant ("Done.", "All good!") tells nothing that the ledger does not."""

MOST_OF_A_MESSAGE = 4
"""Sentences looked at from each end of a message: what matters is said first or last."""

MOST_MESSAGES = 40
"""The assistant's latest messages, whose sentences are looked at. What it said before was said again, or is stale."""

CUE_SCORE = 1.0
NAME_SCORE = 0.5
"""A sentence with a name in it (a path, a symbol, a number) says something that can be checked."""
LAST_SCORE = 0.7
"""The end of a message is where an assistant concludes."""
IDLE_SCORE = -2.0
OPEN_SCORE = -1.0
"""A question, or the head of a list, says nothing by itself."""
RARE_SCORE = 1.0
"""The most that rare words add."""

_END = re.compile(r"[.!?。\uff01\uff1f](?:(?<=[。\uff01\uff1f])|\s++(?=[^a-z]))")
"""The sign that ends a sentence, and the space after it."""

_BULLET = re.compile(r"^[\s>#*•-]*+(?:\d{1,3}[.)]\s+)?(?:\[[ xX]\]\s+)?")
_WORD = re.compile(r"[A-Za-z_][\w./-]{2,40}|[\u3040-\u30ff\u4e00-\u9fff]{2}")
_NAME = re.compile(r"[`._/A-Z\d](?:(?<=`)[^`\n]+`|(?<=\w[._/])\w|(?<=[a-z][A-Z])|(?<=\d)\d)")
"""Something in quotation signs of code, a sign or a capital inside a word, a number. It starts with the signs, which
are found faster than words."""


def sentences(text: str) -> list[str]:
    """The sentences of a text as they stand, without list signs; fenced code and tables are left out."""
    found: list[str] = []
    fence = ""
    for line in text.splitlines():
        line = line.strip()  # noqa: PLW2901  a line's edges are no part of a sentence
        if line.startswith(("```", "~~~")):
            # Only its own sign ends a fence: another one inside is part of the code.
            fence = line[:3] if not fence else "" if line.startswith(fence) else fence
        elif line and not fence and line[0] != "|":
            body = line if line[0].isalpha() else line[_BULLET.match(line).end() :]  # type: ignore[union-attr]  # matches the empty string too
            start = 0
            for end in _END.finditer(body):
                found.append(body[start : end.start() + 1].strip()[:LONGEST])
                start = end.end()
            if rest := body[start:].strip():
                found.append(rest[:LONGEST])
    return found


def quotes(spoken: Sequence[str], kind: str, id: str) -> list[Quote]:
    """The sentences that hold a cue of this kind, word for word."""
    # All of them in one search: most hold none.
    lowered = "\n".join(spoken).lower()
    expression = cues(kind, lowered)
    held: list[Quote] = []
    place = stop = 0
    while found := expression.search(lowered, stop):
        place += lowered.count("\n", stop, found.start())
        stop = lowered.find("\n", found.start())
        held.append(Quote(text=spoken[place], id=id))
        if stop < 0:
            break
    return held


def telling(said: Sequence[tuple[str, list[str]]], most: int) -> list[Sentence]:
    """The most telling of `(message id, sentences)`, in their order: cue words, place, names and rare words."""
    found: list[tuple[str, str, bool]] = []
    for id, spoken in said:
        all_of_it = spoken
        if len(all_of_it) > 2 * MOST_OF_A_MESSAGE:
            all_of_it = all_of_it[:MOST_OF_A_MESSAGE] + all_of_it[-MOST_OF_A_MESSAGE:]
        found.extend((id, one, one is all_of_it[-1]) for one in all_of_it if len(one) >= SHORTEST_TELLING)
    words = [set(_WORD.findall(text)) for _, text, _ in found]
    total = math.log(len(found) + 1)
    counts = Counter(itertools.chain.from_iterable(words))
    rare = {count: (total - math.log(count)) / total for count in set(counts.values())}
    rarity = {word: rare[count] for word, count in counts.items()}
    scored = [
        Sentence(text=text, id=id, score=round(_score(text, last=last) + _rarity(each, rarity), 3))
        for (id, text, last), each in zip(found, words, strict=True)
    ]
    best = sorted(range(len(scored)), key=lambda place: (-scored[place].score, -place))[:most]
    return [scored[place] for place in sorted(best) if scored[place].score > 0]


def _score(text: str, *, last: bool) -> float:
    lowered = text.lower()
    score = CUE_SCORE if cues("telling", lowered).search(lowered) else 0.0
    score += NAME_SCORE if _NAME.search(text) else 0.0
    score += LAST_SCORE if last else 0.0
    score += OPEN_SCORE if text.endswith((":", "?", "\uff1a", "\uff1f")) else 0.0
    return score + (IDLE_SCORE if cues("idle", lowered).match(lowered) else 0.0)


def _rarity(words: set[str], rarity: dict[str, float]) -> float:
    """The mean rarity of a sentence's words, between 0 and `RARE_SCORE`."""
    # Summed exactly: the sum of floats depends on their order, and a set has none.
    return RARE_SCORE * math.fsum(map(rarity.__getitem__, words)) / len(words) if words else 0.0
