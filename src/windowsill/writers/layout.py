"""Lays a ledger out as text within a room: sections share it by importance, and what one leaves the others take."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence

import msgspec

from windowsill.history.folds import Style
from windowsill.text import cut_middle
from windowsill.writers import sections
from windowsill.writers.ledger import Ledger
from windowsill.writers.sections import Line, Maker

SMALLEST_CUT = 24
"""Tokens below which part of a quotation or excerpt is not worth its place."""

LINE_COST = 1
"""Tokens for the end of a line."""

MOST_TRIES = 3
"""Lines of a section that may turn out too long before its turn is over: the room is nearly used up then."""

FENCE_COST = 6
"""Tokens of the signs around an excerpt."""


class Section(msgspec.Struct, frozen=True):
    """A part of a summary."""

    title: str
    make: Maker
    share: float
    """Of the room, before what others leave is given out."""


REQUESTS = Section("What the user asked for (word for word)", sections.requests, 0.14)
RULES = Section("Rules the user gave (word for word)", sections.rules, 0.10)
TASKS = Section("Tasks (pending, in_progress or completed)", sections.tasks, 0.08)
DECISIONS = Section("Decisions", sections.decisions, 0.04)
ERRORS = Section("Errors and what fixed them", sections.errors, 0.04)
FILES = Section("Files read and changed", sections.files, 0.16)
COMMANDS = Section("Commands and their outcome", sections.commands, 0.10)
VALUES = Section("Arguments of earlier calls", sections.values, 0.06)
NAMES = Section("Identifiers, by the message they stand in", sections.names, 0.10)
SENTENCES = Section("What the assistant reported", sections.sentences, 0.05)
EXCERPTS = Section("Lines of files as they stood last", sections.excerpts, 0.15)

BY_IMPORTANCE = (
    REQUESTS, RULES, TASKS, FILES, ERRORS, DECISIONS, COMMANDS, VALUES, EXCERPTS, NAMES, SENTENCES,
)  # fmt: skip

STYLES: dict[Style, tuple[tuple[str, tuple[Section, ...]], ...]] = {
    "summary": (
        ("", (REQUESTS, RULES, TASKS, DECISIONS, ERRORS, FILES, COMMANDS, VALUES, NAMES, SENTENCES, EXCERPTS)),
    ),
    "compact": (
        ("Retained facts", (RULES, TASKS, FILES, VALUES, NAMES, EXCERPTS)),
        ("Summary", (REQUESTS, DECISIONS, ERRORS, COMMANDS, SENTENCES)),
    ),
    "condense": (
        ("1. Previous conversation", (REQUESTS, RULES)),
        ("2. Current work", (SENTENCES, COMMANDS)),
        ("3. Key technical concepts", (NAMES, VALUES)),
        ("4. Relevant files and code", (FILES, EXCERPTS)),
        ("5. Problem solving", (ERRORS, DECISIONS)),
        ("6. Pending tasks", (TASKS,)),
    ),
}
"""The parts of each style with their sections in order."""


def lay_out(
    style: Style, ledger: Ledger, room: int, count: Callable[[str], int], fits: Callable[[str], bool] | None = None
) -> str:
    """The text of a ledger within `room` tokens, and such that it `fits`; empty when nothing does."""
    parts = STYLES.get(style, STYLES["summary"])
    room -= sum(count(f"# {name}\n\n") for name, _ in parts if name)
    fill = _Fill(ledger, room, count)
    while True:
        text = _text(parts, fill.chosen)
        if not fill.chosen or (fits(text) if fits else count(text) <= room):
            return text
        fill.drop_last()


class _Fill:
    """Chooses the lines."""

    def __init__(self, ledger: Ledger, room: int, count: Callable[[str], int]) -> None:
        self._count = count
        self._left = room
        self.chosen: dict[str, list[Line]] = {}
        self._order: list[tuple[str, Line]] = []
        self._costs: dict[str, int] = {}
        self._heads: dict[str, int] = {}
        waiting = [self._take(section, section.make(ledger), int(room * section.share)) for section in BY_IMPORTANCE]
        # What is left goes by halves first: the most important section shall not have all of a small room.
        for portion in (2, 1):
            waiting = [
                self._take(section, lines, self._left // portion)
                for section, lines in zip(BY_IMPORTANCE, waiting, strict=True)
            ]

    def drop_last(self) -> None:
        """Give up what was chosen last: the least important."""
        title, line = self._order.pop()
        self.chosen[title].remove(line)
        if not self.chosen[title]:
            del self.chosen[title]

    def _take(self, section: Section, lines: Iterable[Line], room: int) -> Iterable[Line]:
        """Take lines within `room`; gives back those that found no place."""
        room = min(room, self._left)
        head = 0 if section.title in self.chosen else self._head(section)
        waiting: list[Line] = []
        lines = iter(lines)
        for line in lines:
            cost = self._cost(line)
            if cost > room - head:
                shorter = self._cut(line, room - head)
                if shorter is None:
                    waiting.append(line)
                    if len(waiting) >= MOST_TRIES:
                        break
                    continue
                line, cost = shorter, self._cost(shorter)  # noqa: PLW2901  the line goes on in its shorter form
            self.chosen.setdefault(section.title, []).append(line)
            self._order.append((section.title, line))
            room -= cost + head
            self._left -= cost + head
            head = 0
        return itertools.chain(waiting, lines)

    def _head(self, section: Section) -> int:
        if section.title not in self._heads:
            self._heads[section.title] = self._count(f"## {section.title}\n\n")
        return self._heads[section.title]

    def _cost(self, line: Line) -> int:
        if line.text not in self._costs:
            more = self._count(line.group) + FENCE_COST if line.group else 0
            self._costs[line.text] = self._count(line.text) + LINE_COST + more
        return self._costs[line.text]

    def _cut(self, line: Line, room: int) -> Line | None:
        """As much of a line as fits; `None` when that would tell nothing."""
        if not line.cuttable or room < SMALLEST_CUT:
            return None
        text, cost = line.text, self._cost(line)
        while cost > room:
            most = len(text) * room // cost - 8
            if most <= SMALLEST_CUT:
                return None
            text = text[:most].rpartition("\n")[0] if line.group else cut_middle(text, most)
            cost = self._cost(msgspec.structs.replace(line, text=text)) if text else 0
        return msgspec.structs.replace(line, text=text) if text.strip() else None


def _text(parts: Sequence[tuple[str, tuple[Section, ...]]], chosen: dict[str, list[Line]]) -> str:
    written: list[str] = []
    for name, members in parts:
        inside = [_section(section, chosen[section.title]) for section in members if section.title in chosen]
        if inside:
            written += [f"# {name}", *inside] if name else inside
    return "\n\n".join(written)


def _section(section: Section, lines: list[Line]) -> str:
    ordered = sorted(lines, key=lambda line: line.place)
    shown = [f"{line.group}\n{sections.fenced(line.text)}" if line.group else line.text for line in ordered]
    return "\n".join([f"## {section.title}", *shown])
