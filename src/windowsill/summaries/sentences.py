"""Sentences: split texts of any language into them, and pick those that bind, that settle something, or that tell most.

The words that give such a sentence away are in `words.toml`.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
import tomllib
from collections import Counter
from collections.abc import Sequence
from importlib import resources

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
    r"\b.*\?\W*$|か[?\uff1f。]?$|^(?:why|how come)\b",
    re.IGNORECASE,
)
_STATEMENT = re.compile(
    r"(?:(?:well|but|and|so|no|yes|oh|ok|okay|sorry|actually|unfortunately|because|thanks)\b[,.!]? ?)*+"
    r"(?:i|my|mine|it|he|she|they|there|that|this|we|our|the)\b",
    re.IGNORECASE,
)
"""The beginning of a sentence that tells of somebody or something: "I don't remember", "my app says it cannot"."""

_BINDING = re.compile(
    r"\b(?:must|mustn.t|never|always|you|please|prefer|make sure|ensure|from now on|want|shall|should|shouldn.t"
    r"|required|mandatory|forbidden|prohibited|(?:not|isn.t|aren.t) allowed|may not|at (?:most|least)|no more than)\b",
    re.IGNORECASE,
)
"""Words that bind in such a sentence all the same."""


def split_sentences(text: str) -> list[str]:
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


def quote_request(words: str, id: str, answers: str = "") -> Quote:
    """Quote what the user asked for; the middle of something very long is left out."""
    if len(words) > LONGEST_REQUEST:
        half = LONGEST_REQUEST // 2
        words = f"{words[:half]} [...] {words[-half:]}"
    return Quote(text=words, id=id, answers=answers)


def find_rules(sentences: Sequence[str], id: str) -> list[Quote]:
    """Quote the sentences of the user that bind. A plain question binds nothing, nor does what somebody cannot do."""
    return [
        quote
        for quote in find_quotes(sentences, "rules", id)
        if not _ASKING.search(quote.text) and (not _STATEMENT.match(quote.text) or _BINDING.search(quote.text))
    ]


def find_decisions(sentences: Sequence[str], id: str) -> list[Quote]:
    """Quote the sentences that settle something."""
    return [quote for quote in find_quotes(sentences, "decisions", id) if not is_question(quote.text)]


def is_question(sentence: str) -> bool:
    """Tell whether a sentence asks something."""
    return sentence.endswith(("?", "\uff1f")) or _ASKING.search(sentence) is not None


def find_quotes(sentences: Sequence[str], kind: str, id: str) -> list[Quote]:
    """Quote the sentences that hold a cue of this kind."""
    # All of them in one search: most hold none.
    lowered = "\n".join(sentences).lower()
    expression = _cues(kind, lowered)
    held: list[Quote] = []
    place = stop = 0
    while found := expression.search(lowered, stop):
        place += lowered.count("\n", stop, found.start())
        stop = lowered.find("\n", found.start())
        held.append(Quote(text=sentences[place], id=id))
        if stop < 0:
            break
    return held


def pick_telling(messages: Sequence[tuple[str, list[str]]], most: int) -> list[Sentence]:
    """Pick the most telling of `(message id, sentences)`, in their order: by cue words, place, names and rare words."""
    found: list[tuple[str, str, bool]] = []
    for id, sentences in messages:
        ends = sentences
        if len(sentences) > 2 * MOST_OF_A_MESSAGE:
            ends = sentences[:MOST_OF_A_MESSAGE] + sentences[-MOST_OF_A_MESSAGE:]
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
