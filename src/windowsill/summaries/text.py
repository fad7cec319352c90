"""Sentences: split texts of any language into them, and pick those that bind, that settle something, or that tell most.

The words that give such a sentence away are in `words.toml`.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
import tomllib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib import resources
from itertools import accumulate
from typing import NamedTuple

from windowsill.summaries.digest import Quote, Sentence

LONGEST = 600
"""Characters of one sentence. What has no end for longer than this is a dump, not a sentence."""

LONGEST_REQUEST = 6_000
"""Characters of one request that a digest keeps; a longer one is mostly something pasted in."""

SHORTEST_TELLING = 24
"""A shorter sentence of an assistant ("Done.", "All good!") tells nothing that the digest does not."""

MOST_OF_A_MESSAGE = 4
"""Sentences looked at from each end of a message: what matters is said first or last."""

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

_ASKING = re.compile(
    r"^(?:why|what|how|when|where|which|who|is|are|does|do|did|was|were|has|have|would|should|shouldn.t|don.t|isn.t|so|but)"
    r"\b.*\?\W*$|か[?\uff1f。]?$",
    re.IGNORECASE,
)


def sentences(text: str) -> list[str]:
    """Split a text into its sentences as they stand, without list signs; fenced code and tables are left out."""
    found: list[str] = []
    fence = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith(("```", "~~~")):
            # Only its own sign ends a fence: another one inside is part of the code.
            fence = line[:3] if not fence else "" if line.startswith(fence) else fence
        elif line and not fence and line[0] != "|":
            body = line if line[0].isalpha() else _BULLET.sub("", line, count=1)
            start = 0
            for end in _END.finditer(body):
                found.append(body[start : end.start() + 1].strip()[:LONGEST])
                start = end.end()
            if rest := body[start:].strip():
                found.append(rest[:LONGEST])
    return found


def request(words: str, id: str) -> Quote:
    """Quote what the user asked for; the middle of something very long is left out."""
    if len(words) > LONGEST_REQUEST:
        half = LONGEST_REQUEST // 2
        words = f"{words[:half]} [...] {words[-half:]}"
    return Quote(text=words, id=id)


def rules(spoken: Sequence[str], id: str) -> list[Quote]:
    """Quote the sentences of the user that bind. A plain question binds nothing."""
    return [quote for quote in quotes(spoken, "rules", id) if not _ASKING.search(quote.text)]


def decisions(spoken: Sequence[str], id: str) -> list[Quote]:
    """Quote the sentences that settle something."""
    return [quote for quote in quotes(spoken, "decisions", id) if not quote.text.endswith(("?", "\uff1f"))]


def quotes(spoken: Sequence[str], kind: str, id: str) -> list[Quote]:
    """Quote the sentences that hold a cue of this kind."""
    # All of them in one search: most hold none.
    lowered = "\n".join(spoken).lower()
    expression = _cues(kind, lowered)
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
    """Pick the most telling of `(message id, sentences)`, in their order: by cue words, place, names and rare words."""
    found: list[tuple[str, str, bool]] = []
    for id, spoken in said:
        ends = spoken
        if len(spoken) > 2 * MOST_OF_A_MESSAGE:
            ends = spoken[:MOST_OF_A_MESSAGE] + spoken[-MOST_OF_A_MESSAGE:]
        found.extend((id, one, one is ends[-1]) for one in ends if len(one) >= SHORTEST_TELLING)
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
    score = CUE_SCORE if _cues("telling", lowered).search(lowered) else 0.0
    score += NAME_SCORE if _NAME.search(text) else 0.0
    score += LAST_SCORE if last else 0.0
    score += OPEN_SCORE if text.endswith((":", "?", "\uff1a", "\uff1f")) else 0.0
    return score + (IDLE_SCORE if _cues("idle", lowered).match(lowered) else 0.0)


def _rarity(words: set[str], rarity: dict[str, float]) -> float:
    """Return the mean rarity of a sentence's words, between 0 and `RARE_SCORE`."""
    # Summed exactly: the sum of floats depends on their order, and a set has none.
    return RARE_SCORE * math.fsum(map(rarity.__getitem__, words)) / len(words) if words else 0.0


def _cues(kind: str, text: str) -> re.Pattern[str]:
    """Return one expression for the cues of a kind that may stand in this text, which is in lower case."""
    return _expression(kind, ascii=text.isascii())


@functools.cache
def _expression(kind: str, *, ascii: bool) -> re.Pattern[str]:
    words = [word for words in _word_lists()[kind].values() for word in words]
    whole = rf"\b(?:{_by_letter([word for word in words if word.isascii()])})\b"
    return re.compile(whole if ascii else f"{whole}|{_by_letter([word for word in words if not word.isascii()])}")


def _by_letter(words: list[str]) -> str:
    """Write words with the same first letter as one branch: the search is several times faster that way."""
    letters: dict[str, list[str]] = {}
    for word in words:
        letters.setdefault(word[0], []).append(word[1:])
    return "|".join(f"{first}(?:{'|'.join(rest)})" for first, rest in letters.items())


@functools.cache
def _word_lists() -> dict[str, dict[str, list[str]]]:
    text = resources.files(__package__).joinpath("words.toml").read_text("utf-8")
    lists: dict[str, dict[str, list[str]]] = tomllib.loads(text)
    return lists


SCRIPTS = (
    ("Latin", 1, ((0x41, 0x5A), (0x61, 0x7A), (0xC0, 0x24F), (0x1E00, 0x1EFF))),
    ("Greek", 2, ((0x370, 0x3FF),)),
    ("Cyrillic", 2, ((0x400, 0x52F),)),
    ("Hebrew", 2, ((0x590, 0x5FF),)),
    ("Arabic", 2, ((0x600, 0x6FF), (0x750, 0x77F))),
    ("Devanagari", 2, ((0x900, 0x97F),)),
    ("Thai", 2, ((0xE00, 0xE7F),)),
    ("Kana", 4, ((0x3041, 0x30FF),)),
    ("Hangul", 4, ((0xAC00, 0xD7A3),)),
    ("Han", 4, ((0x3400, 0x4DBF), (0x4E00, 0x9FFF))),
)
"""Name, weight and ranges. Code, paths and names are Latin in every language, so other letters weigh more; a syllable
or an ideogram says as much as several letters."""

KANA_SHARE = 0.1
"""Japanese is ideograms with at least so many syllables between them; Chinese has none."""

ENOUGH = 12
"""Below this weight a text is too short to tell."""

READ = 20_000
"""Characters that are looked at."""


def script_of(texts: Iterable[str]) -> str:
    """The script of most of these texts: one of `SCRIPTS`, or Japanese; empty when there is too little to tell."""
    weights: dict[str, int] = {}
    for letter in _letters(texts):
        for name, weight, ranges in SCRIPTS:
            if any(low <= letter <= high for low, high in ranges):
                weights[name] = weights.get(name, 0) + weight
                break
    kana, han = weights.get("Kana", 0), weights.get("Han", 0)
    if kana and kana >= KANA_SHARE * (kana + han):
        weights["Japanese"] = weights.pop("Kana") + weights.pop("Han", 0)
    best = max(weights, key=lambda name: weights[name], default="")
    return best if weights.get(best, 0) >= ENOUGH else ""


def _letters(texts: Iterable[str]) -> Iterable[int]:
    """Code points of letters, up to a limit."""
    kept = list(texts)
    ends = accumulate(len(text) for text in kept)
    for text, end in zip(kept, ends, strict=True):
        yield from (ord(letter) for letter in text[:READ] if letter.isalpha())
        if end >= READ:
            return


SHORTEST = 3
"""Characters of the line that opens or closes a fence."""


class Fence(NamedTuple):
    """Where a fence stands, and what is inside of it."""

    start: int
    inner: int
    """Behind the line that opens it,"""
    close: int
    """before the line that closes it,"""
    end: int
    """and behind that line, without its line break."""


class _Line(NamedTuple):
    start: int
    end: int
    mark: str
    """The backticks or tildes it begins with; empty where it opens and closes nothing."""
    bare: bool
    """Whether nothing else stands in it, so that it can close."""


def fences(text: str) -> list[Fence]:
    """The fences of a text, one after the other: a line of backticks or tildes, up to the next one that is the same."""
    lines = _lines(text)
    closing: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        if line.bare:
            closing.setdefault(line.mark, []).append(number)
    found: list[Fence] = []
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        closers = closing.get(line.mark, []) if line.mark else []
        place = bisect_right(closers, number - 1)
        if place < len(closers):
            last = lines[closers[place]]
            found.append(Fence(line.start, min(line.end + 1, last.start), last.start, last.end))
            number = closers[place] + 1
    return found


def _lines(text: str) -> list[_Line]:
    found: list[_Line] = []
    start = 0
    for line in text.split("\n"):
        words = line.strip(" \t")
        first = words[:1]
        mark = words[: len(words) - len(words.lstrip(first))] if first in ("`", "~") and first else ""
        mark = mark if len(mark) >= SHORTEST else ""
        found.append(_Line(start, start + len(line), mark, bool(mark) and mark == words))
        start += len(line) + 1
    return found
