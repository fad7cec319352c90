"""Recall: before a model is asked, what the archive holds for the step at hand is put at the end of the request.

The step says what it is about by the names it mentions: files, symbols, ids. Lines of hidden messages that hold them
come back word for word, with where they stand. What was brought back stays where it was put until a fold takes it away,
and nothing that is in view comes a second time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import msgspec

from windowsill.archive import Archive, Found
from windowsill.archive.passages import OURS, RECALLED
from windowsill.history.view import Item, View
from windowsill.messages import Message, text_message
from windowsill.writers.frame import recalled
from windowsill.writers.identifiers import identifiers
from windowsill.writers.transcript import told

LARGEST_STEP = 8_000
"""Characters of one message that are looked at for names, half from each end."""

MOST_PASSAGES = 60
"""Passages that are looked through for lines."""

AROUND = 2
"""Lines shown on each side of one that was found: a name alone seldom says what is needed of it."""

OWN_WORDS = 2.0
"""How much more a name counts that the user or the model itself mentions than one in an output."""

LEAST_SCORE = 0.6
"""What a line must score: a name of the step that few other lines have, or several."""

SHORTEST, LONGEST = 6, 400
"""Characters of a line that is worth showing: a bracket says nothing, and a very long line is data."""

CHARACTERS_PER_TOKEN = 3
"""Of lines of code, cautiously; the whole is weighed exactly when it is added."""

LEAST = 20
"""Tokens below which nothing is brought back: the frame alone would weigh more."""

_WORD = re.compile(r"\w{4,}")

Place = tuple[int, int]
"""The entry of a message, and a line of it."""


class Line(msgspec.Struct, frozen=True):
    """A line of a hidden message."""

    place: Place
    id: str
    text: str


class Recall(msgspec.Struct, frozen=True):
    """What is brought back for a step."""

    message: Message
    lines: int


class Recalling:
    """Finds what one session's next step needs of what is hidden."""

    def __init__(self, archive: Callable[[], Archive]) -> None:
        self._archive = archive
        self._texts: dict[object, str] = {}

    def recall(self, view: View, room: int) -> Recall | None:
        """What of the hidden messages the step at hand mentions, in at most `room` tokens; `None` when nothing."""
        hidden = [(item.first, item.last) for item in view.items if item.fold or item.cuts]
        if not hidden or _was_recalled(view):
            # A request that is composed again for the same step is the same request.
            return None
        cues = names(view)
        if not cues:
            return None
        found = self._archive().mentions(cues, MOST_PASSAGES, within=hidden)
        chosen = choose(found, cues, self._shown_by(view), room)
        if not chosen:
            return None
        text = recalled(_told(chosen))
        sources = list(dict.fromkeys(line.id for line in chosen))
        message = text_message("user", text, metadata={OURS: RECALLED, "sources": sources})
        return Recall(message, len(chosen))

    def _shown_by(self, view: View) -> Callable[[str], bool]:
        """Tells whether a text stands somewhere in view."""
        known, self._texts = self._texts, {}
        for item in view.items:
            key = (item.seq, item.span, item.cuts)
            self._texts[key] = known.get(key) or told(view.read(item))
        shown = "\n".join(self._texts.values())
        return lambda line: line in shown


def names(view: View) -> dict[str, float]:
    """The names that the step at hand mentions: what the model said last, and what came in answer to it."""
    found: dict[str, float] = {}
    for item in _step(view.items):
        if item.fold or _is_ours(view, item):
            continue
        text = told(view.read(item))
        if len(text) > LARGEST_STEP:
            half = LARGEST_STEP // 2
            text = f"{text[:half]}\n{text[-half:]}"
        weight = 1.0 if item.results else OWN_WORDS
        for name, _, _ in identifiers(text):
            for word in _WORD.findall(name):
                found[word] = found.get(word, 0.0) + weight
    return found


def _step(items: Sequence[Item]) -> Sequence[Item]:
    """The last answer of the model, which may be several messages, and everything after it."""
    start = len(items)
    while start and not _is_said(items[start - 1]):
        start -= 1
    while start and _is_said(items[start - 1]):
        start -= 1
    return items[start:]


def _is_said(item: Item) -> bool:
    return item.role == "assistant" and not item.fold


def _is_ours(view: View, item: Item) -> bool:
    return item.role == "user" and not item.own and not item.results and OURS in view.read(item).metadata


def _was_recalled(view: View) -> bool:
    """Whether nobody has said anything since the last recall; context for the step may have been added."""
    for item in reversed(view.items):
        if not _is_ours(view, item):
            return False
        if view.read(item).metadata[OURS] == RECALLED:
            return True
    return False


def choose(found: Sequence[Found], cues: dict[str, float], is_shown: Callable[[str], bool], room: int) -> list[Line]:
    """The lines to bring back, in the order they were said: the best first until the room is used."""
    lines = [line for passage in found for line in _lines(passage)]
    scores = _scores(lines, cues)
    ranked = sorted(
        (index for index, score in enumerate(scores) if score >= LEAST_SCORE), key=lambda i: (-scores[i], -i)
    )
    chosen: dict[Place, Line] = {}
    known: set[str] = set()
    used = 0
    for index in ranked:
        place = lines[index].place
        if place in chosen or _stripped(lines[index]) in known or is_shown(_stripped(lines[index])):
            continue
        near = [
            line
            for line in lines[max(0, index - AROUND) : index + AROUND + 1]
            if line.place[0] == place[0]
            and abs(line.place[1] - place[1]) <= AROUND
            and line.place not in chosen
            and _is_worth_showing(line)
            and _stripped(line) not in known
            and not is_shown(_stripped(line))
        ]
        # Where there is no room for what stands around it, the line itself may still fit.
        for some in (near, [lines[index]]):
            weight = sum(len(line.text) // CHARACTERS_PER_TOKEN + 2 for line in some)
            if used + weight <= room:
                used += weight
                chosen |= {line.place: line for line in some}
                known |= {_stripped(line) for line in some}
                break
    return [chosen[place] for place in sorted(chosen)] if used >= LEAST else []


def _lines(passage: Found) -> Iterator[Line]:
    if passage.seq is None:
        return
    for number, text in enumerate(passage.text.split("\n"), passage.lines[0]):
        yield Line((passage.seq, number), passage.message_id, text.rstrip())


def _stripped(line: Line) -> str:
    return line.text.strip()


def _is_worth_showing(line: Line) -> bool:
    return SHORTEST <= len(_stripped(line)) <= LONGEST


def _scores(lines: Sequence[Line], cues: dict[str, float]) -> list[float]:
    """What the names in each line say about the step: a name that few lines have says most."""
    held = [set(_WORD.findall(line.text)) & cues.keys() if _is_worth_showing(line) else set() for line in lines]
    spread = Counter(word for words in held for word in words)
    return [sum((1 + cues[word]) ** 0.5 / (1 + spread[word]) ** 0.5 for word in words) for words in held]


def _told(lines: Sequence[Line]) -> str:
    """The lines, under the messages they are from."""
    parts: list[str] = []
    before: Line | None = None
    for line in lines:
        if before is None or before.place[0] != line.place[0]:
            parts.append(f"[{line.id}, line {line.place[1]}]")
        elif line.place[1] > before.place[1] + 1:
            parts.append("...")
        parts.append(line.text)
        before = line
    return "\n".join(parts)
