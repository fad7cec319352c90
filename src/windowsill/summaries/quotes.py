"""Pick from texts what a digest quotes: sentences, excerpts of files and identifiers.

Sentences of any language are split, and those are picked that bind, that settle something, or that tell most; the
words that give one away are in `words.toml`. Excerpts are lines of files exactly as they stand, so that a later edit
can still quote them: taken without line numbers, and with the replacements that were made since. Identifiers are what
later calls may need: paths, addresses, hashes, ids, tickets, symbols, named numbers.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from windowsill.summaries.digest import CHARACTERS, Excerpt, Name, Quote, Sentence
from windowsill.summaries.tool_calls import Edit
from windowsill.text import load_table

MOST_LINES = 60
"""Lines of one excerpt. Of a longer text, only the lines around definitions are kept."""

MOST_CHARACTERS = 4_000
LONGEST_EXCERPT_LINE = 400
"""Characters of a line worth quoting: a longer one is data."""

BEFORE, AFTER = 2, 6
"""Lines kept around a definition: what is written above it, and how it starts."""

LARGEST_SOURCE = 60_000
"""Characters of a file that are looked at."""

REMINDER = "\n<system-reminder>"
"""The start of an agent's own words after the contents of a file."""

_NUMBERED = re.compile(r"^[ \t]*(\d{1,7})(?:→|\t|\||: ?| \| ?)", re.MULTILINE)
_NUMBER = re.compile(r"\n[ \t]*+\d{1,7}+(?:→|\t|\||: ?| \| ?)")
"""The same with the end of the line before it: where lines end is found faster than where they start."""

_DEFINITION_LINE = re.compile(
    r"\n[ \t]*+(?:\d{1,7}+(?:→|\t|\||: ?)[ \t]*+)?+"
    r"(?:(?:export|public|private|protected|static|async|abstract|pub|default) )*+"
    r"(?:def|class|func|function|fn|type|interface|struct|enum|trait|impl"
    r"|const|module|package|resource|namespace|@\w+|#{2,4}) "
)


def pick_shown(shown: Excerpt) -> list[Excerpt]:
    """Pick what is worth keeping of a file's lines as a tool showed them."""
    path, id = shown.path, shown.id
    text = shown.text[:LARGEST_SOURCE].partition(REMINDER)[0]
    number = _NUMBERED.match(text)
    if number and _numbered(text):
        return [
            Excerpt(path=path, text=_NUMBER.sub("\n", "\n" + one.text)[1:], first=one.first, id=id)
            for one in pick_excerpts(path, text, int(number[1]), id)
        ]
    return pick_excerpts(path, text, shown.first, id)


def pick_excerpts(path: str, text: str, first: int, id: str) -> list[Excerpt]:
    """Return a text as excerpts: all of a short one, the surroundings of definitions of a long one."""
    lines = text.split("\n")
    if len(lines) <= MOST_LINES and len(text) <= MOST_CHARACTERS:
        return [Excerpt(path=path, text=text.strip("\n"), first=max(first, 1), id=id)] if text.strip() else []
    runs: list[tuple[int, int]] = []
    place = searched = 0
    for match in _DEFINITION_LINE.finditer("\n" + text):
        place += text.count("\n", searched, match.start())
        searched = match.start()
        if len(lines[place]) > LONGEST_EXCERPT_LINE:
            continue
        start, stop = max(0, place - BEFORE), min(len(lines), place + AFTER + 1)
        if runs and start <= runs[-1][1] and stop - runs[-1][0] <= MOST_LINES:
            runs[-1] = (runs[-1][0], stop)
        else:
            runs.append((max(start, runs[-1][1]) if runs else start, stop))
    return [
        Excerpt(path=path, text="\n".join(lines[start:stop]), first=max(first, 1) + start, id=id)
        for start, stop in runs
        if any(line.strip() for line in lines[start:stop])
    ]


Held = dict[tuple[str, str], Excerpt]
"""Excerpts by path and text, oldest first."""


class Edited(msgspec.Struct, frozen=True):
    """A replacement that was made."""

    edit: Edit
    id: str


def current_excerpts(before: Iterable[Excerpt], events: Sequence[Excerpt | Edited]) -> list[Excerpt]:
    """Return the excerpts after these events, oldest first. What later ones would push out is not looked at."""
    held: Held = {(one.path, one.text): one for one in before}
    start, room = len(events), CHARACTERS["excerpts"]
    while start and room > 0:
        start -= 1
        event = events[start]
        room -= min(MOST_CHARACTERS, len(event.text if isinstance(event, Excerpt) else event.edit.new))
    for event in events[start:]:
        if isinstance(event, Excerpt):
            _add(held, pick_shown(event))
        else:
            _replace(held, event.edit, event.id)
    return _distinct(list(held.values()))


def _distinct(found: list[Excerpt]) -> list[Excerpt]:
    """Leave out those whose lines stand in newer excerpts of the same file for the most part."""
    several = Counter(one.path for one in found)
    lines: dict[str, set[str]] = {}
    distinct: list[Excerpt] = []
    for one in reversed(found):
        if several[one.path] == 1:
            distinct.append(one)
            continue
        shown = set(one.text.split("\n"))
        known = lines.setdefault(one.path, set())
        if len(shown - known) * 2 >= len(shown):
            distinct.append(one)
            known |= shown
    return distinct[::-1]


def _replace(held: Held, edit: Edit, id: str) -> None:
    """Bring the excerpts of a file up to an edit; where none shows the place, what was written is a new one."""
    if not edit.old:
        for key in [key for key in held if key[0] == edit.path]:
            del held[key]
    found = False
    for key in [key for key in held if edit.old and key[0] == edit.path and edit.old in held[key].text]:
        old = held.pop(key)
        text = old.text.replace(edit.old, edit.new, 1)
        if text.strip() and len(text) <= 2 * MOST_CHARACTERS:
            held[(edit.path, text)] = Excerpt(path=edit.path, text=text, first=old.first, id=id)
            found = True
    if not found:
        for one in pick_excerpts(edit.path, edit.new, 0, id):
            held[(edit.path, one.text)] = Excerpt(path=one.path, text=one.text, id=id)


def _add(held: Held, new: list[Excerpt]) -> None:
    """Take in what was shown last; older excerpts of the same lines give way."""
    if not new:
        return
    path, first = new[0].path, new[0].first
    last = new[-1].first + new[-1].text.count("\n")
    for key in [key for key in held if key[0] == path]:
        old = held[key]
        if old.first and first <= old.first and old.first + old.text.count("\n") <= last:
            del held[key]
    for one in new:
        held.pop((one.path, one.text), None)
        held[(one.path, one.text)] = one


def _numbered(text: str) -> bool:
    """Tell whether most of the first lines start with a number."""
    head = text[:2_000].split("\n")[:10]
    return 2 * sum(1 for line in head if _NUMBERED.match(line)) > len(head)


MOST_OF_AN_OUTPUT = 40
"""Names kept of one output: a listing of a thousand files is read again, not remembered."""

LONGEST_TOKEN = 160
WEIGHTS = {"url": 3.0, "id": 2.5, "path": 3.0, "value": 1.5, "definition": 1.2, "symbol": 1.0}
"""The chance that a later call needs one of a kind, relative to the others."""

OFTEN = 5
"""Times after which one more mention tells nothing new."""

LARGEST_SCAN = 12_000
"""Characters of one output that are looked at, half from each end. What is larger is mostly the contents of a file, of
which excerpts are kept."""

REMEMBERED = 16_384
"""Tokens whose kind is remembered: a session shows the same ones again and again."""

_TOKEN = re.compile(
    r"""
    (?:(?:[a-z]*+[0-9.:=_-]{0,2}+ | [A-Z][a-z]*+[.:=]?+) [^A-Za-z0-9_./@~#+:=?&%-]++)*+
    (?:([A-Z]?[a-z]*+[A-Z0-9_./@~#+:=-][A-Za-z0-9_./@~#+:=?&%-]{2,}+)
        | [A-Za-z0-9_]++[^A-Za-z0-9_]?+ | [^A-Za-z0-9_] | \Z)
    """,
    re.VERBOSE,
)
"""A word with something in it that plain words do not have: a sign, a digit, a capital after the first letter.

The first line passes over plain words and what stands between them: to leave that to the search would take longer. The
last three ways pass over what turns out to be no such word, and give an empty one."""

_URL = re.compile(r"https?://[^\s\"'<>)\]}]{4,200}")
_KINDS = re.compile(
    r"""
    (?P<id>[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12} | (?=[a-f]*\d)[0-9a-f]{7,64} | [A-Z]{2,10}-\d{1,6}
        | [A-Z]{2,5}\d{2,8} | \#\d{1,7} | (?=[A-Za-z_]*\d)[A-Za-z]+_[A-Za-z0-9]{8,64})
    | (?P<path>(?:[\w.@~+-]*/)+[\w.@~+-]*[A-Za-z][\w.@~+-]* | [\w-]{2,60}\.(?:[a-z]{1,4}|ipynb))(?::\d+)*
    | (?P<value>[A-Za-z_][\w.-]{1,40}[=:]-?\d[\w.,:-]{0,30})
    | (?P<symbol>[A-Za-z]+[a-z0-9][A-Z]\w+ | [A-Za-z]\w*_\w+ | [A-Za-z]\w+(?:\.[A-Za-z]\w+)+)
    """,
    re.VERBOSE,
)
_DEFINITION = re.compile(
    r"\n[^\w\n]*+(?:\d++[^\w\n]++)?+((?:func|def|class|fn|function|interface|struct|enum|trait) [A-Za-z_]\w{3,60})"
)
"""The head of a definition: what a search for it is made of. Line numbers may stand before it."""

LINE_OF = re.compile(r"(\.[A-Za-z]\w{0,9})[:-]\d+(?:[:-].*)?$")
"""The line number that search tools put behind a path."""

_ENDS = ".,:;=-?&%+"
_STARTS = ",:;=-?&%+"


class Source(msgspec.Struct, frozen=True, gc=False):
    """A text that may hold identifiers, and the message it stands in."""

    text: str
    id: str
    contents: bool = False
    """True for the contents of a file: listings, messages and outputs of programs are looked at first."""


def collect_names(sources: Sequence[Source], most: int) -> list[Name]:
    """Return at most `most` names, oldest first. The newest texts are looked at first: others would be pushed out."""
    found: dict[str, Name] = {}
    for contents, enough in ((False, most * 3 // 4), (True, most)):
        for source in reversed(sources):
            if len(found) >= enough:
                break
            if source.contents is contents:
                for name, kind, count in find_identifiers(source.text):
                    if name not in found:
                        found[name] = Name(text=name, kind=kind, count=count, id=source.id)
    order = {source.id: place for place, source in enumerate(sources)}
    return sorted(found.values(), key=lambda name: order[name.id])


def find_identifiers(text: str) -> list[tuple[str, str, int]]:
    """Return `(name, kind, how often)` of the identifiers in a text that are worth keeping, the best first."""
    if len(text) > LARGEST_SCAN:
        half = LARGEST_SCAN // 2
        text = f"{text[:half]}\n{text[-half:]}"
    found: dict[str, tuple[str, int]] = {}
    counts = Counter(_TOKEN.findall(text))
    for token, count in counts.items():
        if (named := _named(token)) is not None and named[0] not in found:
            found[named[0]] = (named[1], count)
    for head in _DEFINITION.findall("\n" + text):
        # The head says the name too.
        found.pop(head.rpartition(" ")[2], None)
        found[head] = ("definition", 1)
    if "://" in text:
        for address in _URL.findall(text):
            found[address.rstrip(".,;:")] = ("url", 1)
    if len(found) > MOST_OF_AN_OUTPUT:
        # What a later call most likely needs comes first, equals by the alphabet.
        needs = ((-(WEIGHTS[kind] + min(count, OFTEN) / OFTEN), name) for name, (kind, count) in found.items())
        found = {name: found[name] for _, name in heapq.nsmallest(MOST_OF_AN_OUTPUT, needs)}
    return [(name, kind, count) for name, (kind, count) in found.items()]


@functools.lru_cache(maxsize=REMEMBERED)
def _named(token: str) -> tuple[str, str] | None:
    """Return the name in a token and its kind; `None` for an ordinary word."""
    if len(token) > LONGEST_TOKEN or "://" in token:
        return None
    match = _KINDS.fullmatch(LINE_OF.sub(r"\1", token).rstrip(_ENDS).lstrip(_STARTS))
    if match is None or match.lastgroup is None:
        return None
    name = match[match.lastgroup]
    return None if name.isdigit() else (name, match.lastgroup)


LONGEST_SENTENCE = 600
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
                found.append(body[start : end.start() + 1].strip()[:LONGEST_SENTENCE])
                start = end.end()
            if rest := body[start:].strip():
                found.append(rest[:LONGEST_SENTENCE])
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
    lowered = "\n".join(sentences).lower()
    return [Quote(text=sentences[place], id=id) for place in _lines_with(_cues(kind, lowered), lowered)]


def _lines_with(expression: re.Pattern[str], text: str) -> list[int]:
    """Return the numbers of the lines that hold what is looked for: all in one search, as most hold nothing."""
    held: list[int] = []
    place = stop = 0
    while found := expression.search(text, stop):
        place += text.count("\n", stop, found.start())
        stop = text.find("\n", found.start())
        held.append(place)
        if stop < 0:
            break
    return held


def has_cue(text: str, kind: str) -> bool:
    """Tell whether a cue of this kind stands anywhere in a text: faster than splitting it into sentences."""
    lowered = text.lower()
    return _cues(kind, lowered).search(lowered) is not None


def pick_telling(messages: Sequence[tuple[str, list[str]]], most: int) -> list[Sentence]:
    """Pick the most telling of `(message id, sentences)`, in their order: by cue words, place, names and rare words."""
    found: list[tuple[str, str, bool]] = []
    for id, sentences in messages:
        ends = sentences
        if len(sentences) > 2 * MOST_OF_A_MESSAGE:
            ends = sentences[:MOST_OF_A_MESSAGE] + sentences[-MOST_OF_A_MESSAGE:]
        found.extend((id, one, one is ends[-1]) for one in ends if len(one) >= SHORTEST_TELLING)
    words = [set(_WORD.findall(text)) for _, text, _ in found]
    scores = _scores([(text, last) for _, text, last in found])
    total = math.log(len(found) + 1)
    counts = Counter(itertools.chain.from_iterable(words))
    rare = {count: (total - math.log(count)) / total for count in set(counts.values())}
    rarity = {word: rare[count] for word, count in counts.items()}
    scored = [round(score + _rarity(each, rarity), 3) for score, each in zip(scores, words, strict=True)]
    best = sorted(range(len(scored)), key=lambda place: (-scored[place], -place))[:most]
    return [
        Sentence(text=found[place][1], id=found[place][0], score=scored[place])
        for place in sorted(best)
        if scored[place] > 0
    ]


def _scores(sentences: Sequence[tuple[str, bool]]) -> Iterator[float]:
    """Yield the score of each sentence, by whether it is the last of its message, before its rare words count."""
    text = "\n".join(one for one, _ in sentences)
    lowered = text.lower()
    cued, named = set(_lines_with(_cues("telling", lowered), lowered)), set(_lines_with(_NAME, text))
    idle = _cues("idle", lowered)
    for place, ((one, last), low) in enumerate(zip(sentences, lowered.split("\n"), strict=bool(sentences))):
        score = CUE_SCORE if place in cued else 0.0
        score += NAME_SCORE if place in named else 0.0
        score += LAST_SCORE if last else 0.0
        score += OPEN_SCORE if one.endswith((":", "?", "\uff1a", "\uff1f")) else 0.0
        yield score + (IDLE_SCORE if idle.match(low) else 0.0)


def _rarity(words: set[str], rarity: dict[str, float]) -> float:
    """Return the mean rarity of a sentence's words, between 0 and `RARE_SCORE`."""
    # Summed exactly: the sum of floats depends on their order, and a set has none.
    return RARE_SCORE * math.fsum(map(rarity.__getitem__, words)) / len(words) if words else 0.0


def _cues(kind: str, text: str) -> re.Pattern[str]:
    """Return one expression for the cues of a kind that may stand in this text, which is in lower case."""
    return _expression(kind, ascii=text.isascii())


@functools.cache
def _expression(kind: str, *, ascii: bool) -> re.Pattern[str]:
    lists = load_table("windowsill.summaries", "words.toml")[kind]
    words: list[str] = list(itertools.chain.from_iterable(lists.values()))
    whole = rf"\b(?:{_by_letter([word for word in words if word.isascii()])})\b"
    if ascii:
        return re.compile(whole, re.ASCII)
    return re.compile(f"{whole}|{_by_letter([word for word in words if not word.isascii()])}")


def _by_letter(words: list[str]) -> str:
    """Write words with the same first letter as one branch: the search is several times faster that way."""
    letters: dict[str, list[str]] = {}
    for word in words:
        letters.setdefault(word[0], []).append(word[1:])
    return "|".join(f"{first}(?:{'|'.join(rest)})" for first, rest in letters.items())
