"""Bring back what the step at hand needs of the hidden messages, at the end of the request.

The step says what it is about by the names it mentions: files, symbols, ids. Lines of hidden messages that hold them
come back word for word, with where they stand. What was brought back stays where it was put until a fold takes it away,
and nothing that is in view comes a second time.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from windowsill.history.proposals import frame_recalled
from windowsill.history.view import Item, View
from windowsill.messages import ORIGIN, Message, Origin, text_message
from windowsill.providers.convert import message_text
from windowsill.search import Archive, Found
from windowsill.summaries.quotes import find_identifiers

LARGEST_STEP = 8_000
"""Characters of one message that are looked at for names, half from each end."""

MOST_PASSAGES = 60
"""Passages that are looked through for lines."""

AROUND = 2
"""Lines shown on each side of one that was found: a name alone seldom says what is needed of it."""

OWN_WORDS = 2.0
"""The weight of a name that the user or the model itself mentions; one in an output has 1."""

LEAST_SCORE = 0.6
"""The least score of a line that is shown: a name of the step that few other lines have, or several."""

SHORTEST, LONGEST = 6, 400
"""Bytes and characters of a line that is worth showing: a bracket says nothing, and a very long line is data."""

BYTES_PER_TOKEN = 3
"""Of lines of code, cautiously, and of Japanese; the whole is weighed exactly when it is added."""

SOURCE = 8
"""Tokens that say which message lines are from."""

FOUND = -1
"""In the place of how many texts were looked through for a line: it stands in one of them."""

LEAST = 20
"""Tokens below which nothing is brought back: the frame alone would weigh more."""

_WORD = re.compile(r"\w{4,}")
_WORD_OR_END = re.compile(r"\w{4,}|\n")

MOST_UNSPACED = 40
"""Names of one message that are taken from text without blanks between its words."""

UNSPACED_SHARE = 0.5
"""The weight of such a name, in parts of a name that is known to be one: it may be any word."""

_PAIRED = re.compile("[々〇\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]{2,}|[\uac00-\ud7af]{2,}")
_KATAKANA = re.compile("[\u30a1-\u30fa\u30fc-\u30ff]{2,}")
"""Pairs of its letters stand in too many words to tell anything."""

Place = tuple[int, int]
"""The entry of a message, and a line of it."""


class Line(msgspec.Struct, frozen=True):
    """A line of a hidden message."""

    place: Place
    id: str
    text: str

    @property
    def stripped(self) -> str:
        """The line without the blanks around it."""
        return self.text.strip()


class Recall:
    """Finds what one session's next step needs of what is hidden."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._texts: dict[object, str] = {}
        self._looked: dict[str, int] = {}

    def recall(self, view: View, room: int) -> tuple[Message, int] | None:
        """Return a message with what the step mentions of the hidden ones, in at most `room` tokens, and its lines."""
        hidden = [(item.first, item.last) for item in view.items if item.fold or item.cuts]
        if not hidden or not is_asked(view) or _was_recalled(view):
            # A request that is composed again for the same step is the same request.
            return None
        cues = names(view)
        found = self._archive.mentions(cues, MOST_PASSAGES, within=hidden) if cues else []
        chosen = choose(found, cues, self._shown_by(view), room) if found else []
        if not chosen:
            return None
        text = frame_recalled(_with_sources(chosen))
        sources = list(dict.fromkeys(line.id for line in chosen))
        return text_message("user", text, metadata={ORIGIN: Origin.RECALLED, "sources": sources}), len(chosen)

    def _shown_by(self, view: View) -> Callable[[str], bool]:
        """Return a function that tells whether a text stands somewhere in view."""
        known, self._texts = self._texts, {}
        for item in view.items:
            key = (item.seq, item.span, item.cuts)
            text = known.get(key)
            self._texts[key] = message_text(view.read(item)) if text is None else text
        texts = list(self._texts.values())
        if list(self._texts)[: len(known)] != list(known):
            self._looked.clear()
        looked = self._looked

        def is_shown(line: str) -> bool:
            # The same lines come up at step after step: what was looked through for one is not looked through again.
            start = looked.get(line, 0)
            if start != FOUND:
                start = looked[line] = FOUND if any(line in text for text in texts[start:]) else len(texts)
            return start == FOUND

        return is_shown


def names(view: View) -> dict[str, float]:
    """Weigh the names that the step at hand mentions: what the model said last, and what came in answer to it."""
    found: dict[str, float] = {}
    for item in _step(view.items):
        if item.fold or _is_ours(view, item):
            continue
        text = message_text(view.read(item))
        if len(text) > LARGEST_STEP:
            half = LARGEST_STEP // 2
            text = f"{text[:half]}\n{text[-half:]}"
        weight = 1.0 if item.results else OWN_WORDS
        for name, _, _ in find_identifiers(text):
            for word in _WORD.findall(name):
                found[word] = found.get(word, 0.0) + weight
        for word in unspaced(text)[:MOST_UNSPACED]:
            found[word] = found.get(word, 0.0) + weight * UNSPACED_SHARE
    return found


def unspaced(text: str) -> list[str]:
    """Find names in Chinese, Japanese and Korean: pairs of characters as in the archive, words in katakana."""
    if text.isascii():
        return []
    plain = unicodedata.normalize("NFKC", text)
    pairs = [run[place : place + 2] for run in _PAIRED.findall(plain) for place in range(len(run) - 1)]
    return list(dict.fromkeys([*_KATAKANA.findall(plain), *pairs]))


def _step(items: Sequence[Item]) -> Sequence[Item]:
    """Return the last answer of the model, which may be several messages, and everything after it."""
    start = len(items)
    while start and not _is_said(items[start - 1]):
        start -= 1
    while start and _is_said(items[start - 1]):
        start -= 1
    return items[start:]


def _is_said(item: Item) -> bool:
    return item.role == "assistant" and not item.fold


def _is_ours(view: View, item: Item) -> bool:
    return item.role == "user" and not item.own and not item.results and bool(view.read(item).origin)


def is_asked(view: View) -> bool:
    """Tell whether the model speaks next: no answer is begun, and no call waits for its result."""
    step = [item for item in _step(view.items) if not item.fold]
    answered = {id for item in step for id in item.results}
    return bool(step) and step[-1].role != "assistant" and all(answered.issuperset(item.calls) for item in step)


def _was_recalled(view: View) -> bool:
    """Tell whether nothing but context for the step was added since the last recall."""
    for item in reversed(view.items):
        if not _is_ours(view, item):
            return False
        if view.read(item).origin == Origin.RECALLED:
            return True
    return False


def choose(found: Sequence[Found], cues: dict[str, float], is_shown: Callable[[str], bool], room: int) -> list[Line]:
    """Choose the best lines to bring back until the room is used; return them in the order they were said."""
    lines = [
        Line((passage.seq, number), passage.message_id, text.rstrip())
        for passage in found
        if passage.seq is not None
        for number, text in enumerate(passage.text.split("\n"), passage.lines[0])
    ]
    scores = _scores(lines, cues)
    ranked = sorted(
        (index for index, score in enumerate(scores) if score >= LEAST_SCORE), key=lambda i: (-scores[i], -i)
    )
    chosen: dict[Place, Line] = {}
    known: set[str] = set()
    sources: set[int] = set()
    used = 0
    for index in ranked:
        place = lines[index].place
        source = SOURCE if place[0] not in sources else 0
        if used + _weight(lines[index]) + source > room or place in chosen:
            # Asked first, as it is so for most lines, and what follows takes longer.
            continue
        if lines[index].stripped in known or is_shown(lines[index].stripped):
            continue
        near = [
            line
            for line in lines[max(0, index - AROUND) : index + AROUND + 1]
            if line.place[0] == place[0]
            and abs(line.place[1] - place[1]) <= AROUND
            and line.place not in chosen
            and _is_worth_showing(line)
            and line.stripped not in known
            and not is_shown(line.stripped)
        ]
        # Where there is no room for what stands around it, the line itself may still fit.
        for some in (near, [lines[index]]):
            weight = sum(map(_weight, some)) + source
            if used + weight <= room:
                used += weight
                sources.add(place[0])
                chosen |= {line.place: line for line in some}
                known |= {line.stripped for line in some}
                break
    return [chosen[place] for place in sorted(chosen)] if used >= LEAST else []


def _weight(line: Line) -> int:
    return len(line.text.encode(errors="replace")) // BYTES_PER_TOKEN + 2


def _is_worth_showing(line: Line) -> bool:
    return len(line.stripped) <= LONGEST and len(line.stripped.encode(errors="replace")) >= SHORTEST


def _scores(lines: Sequence[Line], cues: dict[str, float]) -> list[float]:
    """Score each line by its names: one that few lines have counts most."""
    held = _held(lines, cues)
    spread = Counter(word for words in held for word in words)
    says = {word: (1 + cues[word]) ** 0.5 / (1 + count) ** 0.5 for word, count in spread.items()}
    return [sum(says[word] for word in words) for words in held]


def _held(lines: Sequence[Line], cues: dict[str, float]) -> list[list[str]]:
    """Find the names of the step in each line, in the order of the line, so that sums are the same in every process."""
    found: dict[int, dict[str, None]] = {}
    place = 0
    # One search through all lines takes a fraction of the time of one for each.
    for word in _WORD_OR_END.findall("\n".join([line.text for line in lines])):
        if word == "\n":
            place += 1
        elif word in cues:
            found.setdefault(place, {})[word] = None
    if not all(map(str.isascii, cues)):
        for place, line in enumerate(lines):
            for word in unspaced(line.text):
                if word in cues:
                    found.setdefault(place, {})[word] = None
    return [
        list(found[place]) if place in found and _is_worth_showing(line) else [] for place, line in enumerate(lines)
    ]


def _with_sources(lines: Sequence[Line]) -> str:
    parts: list[str] = []
    before: Line | None = None
    for line in lines:
        if before is None or before.place[0] != line.place[0]:
            parts.append(f"[{line.id}, line {line.place[1]}]")
        elif line.place[1] > before.place[1] + 1:
            parts.append("...")
        # Marked as quoted, and on one line: what a page said cannot pass for the line that names another message.
        parts.append(f"> {' '.join(line.text.splitlines())}")
        before = line
    return "\n".join(parts)
