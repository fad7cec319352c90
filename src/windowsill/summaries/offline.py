"""The offline writer: a summary built from the messages by code alone, the same bytes each time.

Sections share the room by importance, and what one leaves the others take.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from windowsill.history.folds import Brief, Style
from windowsill.summaries import Material, Writer, Written
from windowsill.summaries.collect import collect
from windowsill.summaries.digest import Digest, dump, load
from windowsill.summaries.frame import frame
from windowsill.summaries.schema_fill import fill
from windowsill.summaries.sections import DETAILS, RECORD, STYLES, Line, Section
from windowsill.text import cut_middle

NAME = "offline"

SHARE = 0.25
"""The room as a share of what is hidden, when none is given: identifiers and quotations that later calls need fit."""

LARGEST = 6_000
"""Tokens of a summary when no room is given. More of it keeps hardly more of what later calls need."""

SMALLEST_CUT = 24
"""Tokens below which part of a quotation or excerpt is not worth its place."""

DETAILS_SHARE = 5
"""One part in so many of a small room is kept free of the record, for what the work needs to go on."""

LATE_SHARE = 10
"""One part in so many of the room is for requests much like a later one, before details take what is left."""

LINE_COST = 1
"""Tokens for the end of a line."""

FENCE_COST = 6
"""Tokens of the signs around an excerpt."""

MOST_TRIES = 3
"""Lines of a section that may turn out too long before its turn is over: the room is nearly used up then."""


class Offline:
    """Writes summaries with code alone: no network, no model, English and Japanese."""

    name = NAME

    def write(self, brief: Brief, material: Material) -> Written:
        """Write a text that with its frame is smaller than what it replaces and within the room; else an empty one.

        The digest is complete whether or not the text fits.
        """
        wished = material.tokens if brief.style == "state" else min(int(material.tokens * SHARE), LARGEST)
        details = min(brief.room or wished, material.tokens - 1)
        most = min(details + brief.record, material.tokens - 1)
        room = most - material.count(frame("\n", source=NAME)) - 1

        def fits(text: str) -> bool:
            return material.count(frame(text, source=NAME)) <= most

        digest = collect(material.messages, load(material.digest))
        left_out: list[str] = []
        if brief.style == "state":
            digest = msgspec.structs.replace(digest, state=fill(brief.schema or {}, material.messages, digest.state))
            text, left_out = _state_text(digest.state, fits)
            text = add_record(text, digest, room, material.count, fits)
        else:
            text = lay_out(brief.style, digest, room, material.count, fits, details=details)
        notes = [] if text else ["nothing to tell, or no room to tell it in"]
        if text and left_out:
            notes.append(f"no room for {', '.join(left_out)}")
        if brief.instructions or brief.directives:
            notes.append("written with code alone, which cannot follow instructions or directives")
        return Written(text=text, digest=dump(digest), writer=NAME, notes=tuple(notes))


def write_by_code(writer: Writer, brief: Brief, material: Material) -> Written:
    """Let a writer without a model write; nothing, and a note, when it fails."""
    try:
        written = writer.write(brief, material)
        return written if isinstance(writer, Offline) else storable(written)
    except Exception as error:  # noqa: BLE001 whatever a writer raises, a turn goes on
        why = f"failed: the {writer.name} writer raised {type(error).__name__}"
        return Written(text="", writer=str(writer.name), notes=(why,))


def storable(written: Written) -> Written:
    """Return the same as it will be read again; half letters, which no store takes, are replaced."""
    whole = msgspec.structs.replace(written, text=written.text.encode("utf-8", "replace").decode())
    return msgspec.msgpack.decode(msgspec.msgpack.encode(whole), type=Written)


def _state_text(state: dict[str, Any], fits: Callable[[str], bool]) -> tuple[str, list[str]]:
    """Return the state as JSON, and the names of the values left out of it: the largest go first."""
    shown = dict(state)
    left_out: list[str] = []
    while shown:
        text = json.dumps(shown, ensure_ascii=False)
        if fits(text):
            return text, left_out
        left_out.append(max(shown, key=lambda name: len(json.dumps(shown[name], ensure_ascii=False))))
        del shown[left_out[-1]]
    return "", left_out


def add_record(
    text: str, digest: Digest, room: int, count: Callable[[str], int], fits: Callable[[str], bool] | None = None
) -> str:
    """Put the record behind a text, as much of it as fits into `room` tokens together with the text."""
    head = f"{text}\n\n" if text else ""
    fits = fits or (lambda whole: count(whole) <= room)
    left = room - count(head)
    return (
        head + lay_out("summary", digest, left, count, lambda record: fits(head + record), details=0)
        if left > 0
        else text
    )


def lay_out(
    style: Style,
    digest: Digest,
    room: int,
    count: Callable[[str], int],
    fits: Callable[[str], bool] | None = None,
    *,
    details: int | None = None,
) -> str:
    """Write a digest as text within `room` tokens, and such that it `fits`; empty when nothing does.

    What is not part of the record has at most `details` tokens.
    """
    parts = STYLES.get(style, STYLES["summary"])
    room -= sum(count(f"# {name}\n\n") for name, _ in parts if name)
    layout = _Layout(digest, room, room if details is None else details, count)
    while True:
        written: list[str] = []
        for name, sections in parts:
            inside = [layout.text(section) for section in sections if section.title in layout.chosen]
            if inside:
                written += [f"# {name}", *inside] if name else inside
        text = "\n\n".join(written)
        if not layout.chosen or (fits(text) if fits else count(text) <= room):
            return text
        layout.drop_last()


class _Layout:
    """Chooses the lines of each section: the record, a few of its late lines, details, then the rest of the record."""

    def __init__(self, digest: Digest, room: int, details: int, count: Callable[[str], int]) -> None:
        self._count = count
        self._empty = count("")
        """What the count adds to each text for the message around it."""
        self._left = room
        self.chosen: dict[str, list[Line]] = {}
        self._order: list[tuple[str, Line]] = []
        self._costs: dict[str, int] = {}
        reserved = min(details, room // DETAILS_SHARE)
        record = self._choose(RECORD, [section.lines(digest) for section in RECORD], room - reserved)
        record = self._choose(RECORD, record, min(self._left, room // LATE_SHARE), late=True)
        details = min(details, self._left)
        self._choose(DETAILS, [section.lines(digest) for section in DETAILS] if details > 0 else [], details)
        self._choose(RECORD, record, self._left, late=True)

    def _choose(
        self, sections: Sequence[Section], waiting: Sequence[Iterable[Line]], room: int, *, late: bool = False
    ) -> list[Iterable[Line]]:
        """Take lines of these sections within `room`; return those that found no place."""
        end = self._left - room
        lines = [
            self._take(section, lines, int(room * section.share), late=late)
            for section, lines in zip(sections, waiting, strict=bool(waiting))
        ]
        # What is left goes by halves first: the most important section shall not have all of a small room.
        for portion in (2, 1):
            lines = [
                self._take(section, rest, (self._left - end) // portion, late=late)
                for section, rest in zip(sections, lines, strict=bool(lines))
            ]
        return lines

    def text(self, section: Section) -> str:
        """Return a section with its chosen lines in order."""
        ordered = sorted(self.chosen[section.title], key=lambda line: line.place)
        shown = [f"{line.group}\n{fenced(line.text)}" if line.group else line.text for line in ordered]
        return "\n".join([f"## {section.title}", *shown])

    def drop_last(self) -> None:
        """Give up what was chosen last: the least important."""
        title, line = self._order.pop()
        self.chosen[title].remove(line)
        if not self.chosen[title]:
            del self.chosen[title]

    def _take(self, section: Section, lines: Iterable[Line], room: int, *, late: bool) -> Iterable[Line]:
        """Take lines within `room`; return those that found no place."""
        room = min(room, self._left)
        head = 0 if section.title in self.chosen else self._cost_of(f"## {section.title}\n\n")
        waiting: list[Line] = []
        lines = iter(lines)
        for line in lines:
            if line.late and not late:
                waiting.append(line)
                break
            taken = line if self._cost(line) <= room - head else self._cut(line, room - head)
            if taken is None:
                waiting.append(line)
                if len(waiting) >= MOST_TRIES:
                    break
                continue
            self.chosen.setdefault(section.title, []).append(taken)
            self._order.append((section.title, taken))
            cost = self._cost(taken) + head
            room -= cost
            self._left -= cost
            head = 0
        return itertools.chain(waiting, lines)

    def _cost(self, line: Line) -> int:
        group = self._cost_of(line.group) + FENCE_COST if line.group else 0
        return self._cost_of(line.text) + LINE_COST + group

    def _cost_of(self, text: str) -> int:
        if text not in self._costs:
            self._costs[text] = max(0, self._count(text) - self._empty)
        return self._costs[text]

    def _cut(self, line: Line, room: int) -> Line | None:
        """Return as much of a line as fits; `None` when that would tell nothing."""
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


def fenced(text: str) -> str:
    """Put a text between signs that it cannot close."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"
