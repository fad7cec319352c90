"""The offline writer: a summary built from the messages by code alone, the same bytes each time.

Each list of the digest is a section of lines, the most useful first. Sections share the room by importance, and what
one leaves the others take.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from windowsill.history.folds import Brief, Style
from windowsill.history.proposals import frame
from windowsill.summaries import Material, Writer, Written
from windowsill.summaries.collect import REJECTED, collect
from windowsill.summaries.digest import (
    WHOLE_FILE,
    CallRecord,
    Command,
    Digest,
    Entry,
    Failure,
    File,
    Quote,
    Sentence,
    Task,
    Value,
    dump,
    load,
)
from windowsill.summaries.schema_fill import fill
from windowsill.text import cut_between_words, cut_middle, one_line

NAMES_A_LINE = 6
LONGEST_SAID = 160
"""Characters of what a command said, in its line."""

LONGEST_COMMAND = 240
"""Characters of a command, in its line: of a script that was piped in the beginning and the end tell enough."""

SHORT_CALL = 80
"""Characters of a call, and of its result, where only what came of it is told."""

DONE_TITLE = "Done last, and what was reported"
MOST_DONE = 4
"""Calls and commands that are told there."""

LATEST = 3
"""Sentences of the assistant that come before more telling ones: they say where the work stands."""

LONGEST_ROUTINE = 240
"""Characters up to which requests that differ in numbers and signs alone are told after all others."""

_SIGNS = re.compile(r"[\W\d_]+")


class Line(msgspec.Struct, frozen=True, gc=False):
    """One entry of a section; lines with a `group` are an excerpt that stands under this head."""

    text: str
    place: int
    """Its position in the section, once it is known which lines fit."""
    cuttable: bool = False
    """True if a part of it still tells something."""
    group: str = ""
    late: bool = False
    """True for what is told only when everything else was."""


class Section(msgspec.Struct, frozen=True):
    """A part of a summary."""

    title: str
    lines: Callable[[Digest], Iterable[Line]]
    """Makes the lines, the most useful first; those nobody takes need not be made."""
    share: float
    """The share of the room, before what others leave is given out."""


def _requests(digest: Digest) -> Iterator[Line]:
    """Put the last first, then the first, then the others from the newest on; what is told anyway comes last."""
    count = len(digest.requests)
    told: dict[str, list[str]] = {}
    for quote in (*digest.rules, *digest.decisions, *digest.marked):
        told.setdefault(quote.id, []).append(quote.text)
    keys = [_routine(quote.text, told.get(quote.id, ())) for quote in digest.requests]
    latest = {key: place for place, key in enumerate(keys)}
    late = [not key or latest[key] != place for place, key in enumerate(keys)]
    for place in sorted(range(count), key=lambda place: (late[place], min(place, count - 1 - place), -place)):
        quote = digest.requests[place]
        text = f"> ({one_line(quote.id)}) " + "\n> ".join(line for line in quote.text.splitlines() if line.strip())
        answers = f' [in answer to: "{one_line(quote.answers)}"]' if quote.answers else ""
        yield Line(text=text + answers, place=place, cuttable=True, late=late[place])


def _routine(words: str, told: Iterable[str]) -> str:
    """Return what tells a request apart from others: its letters, without the sentences that are told elsewhere.

    A long one is as it is.
    """
    if len(words) > LONGEST_ROUTINE:
        return words
    for sentence in told:
        words = words.replace(sentence, "")
    return _SIGNS.sub(" ", words).lower().strip()


def _tasks(digest: Digest) -> list[Line]:
    """Put open tasks first, then those done: a plan is often written again as a whole."""
    lines = [Line(text=_task(task), place=place) for place, task in enumerate(digest.tasks)]
    return sorted(lines, key=lambda line: (digest.tasks[line.place].done, -line.place))


def _errors(digest: Digest) -> list[Line]:
    """Put open errors first."""
    return sorted(_newest(digest.errors, _failure), key=lambda line: bool(digest.errors[line.place].fix))


def _sentences(digest: Digest) -> list[Line]:
    """Put the most telling sentences first."""
    return sorted(_newest(digest.sentences, _note), key=lambda line: -digest.sentences[line.place].score)


def _values(digest: Digest) -> Iterator[Line]:
    """Group values by tool and key, the latest first."""
    groups: dict[tuple[str, str], list[Value]] = {}
    for value in reversed(digest.values):
        groups.setdefault((value.tool, value.key), []).append(value)
    return _lists([(f"{tool} {key}", [one.text for one in group]) for (tool, key), group in groups.items()])


def _names(digest: Digest) -> Iterator[Line]:
    """Group names by the message where they stand last: the latest first, mere symbols after all others."""
    groups: dict[tuple[bool, str], list[str]] = {}
    for name in reversed(digest.names):
        groups.setdefault((name.kind in ("symbol", "definition"), name.id), []).append(name.text)
    ordered = sorted(groups.items(), key=lambda pair: pair[0][0])
    return _lists([(f"({id})", texts) for (_, id), texts in ordered])


def _excerpts(digest: Digest) -> Iterator[Line]:
    """Put the latest first."""
    for place, excerpt in reversed(list(enumerate(digest.excerpts))):
        head = f"- {one_line(excerpt.path)}{f':{excerpt.first}' if excerpt.first else ''}"
        yield Line(text=excerpt.text, place=place, cuttable=True, group=head)


def _newest(entries: Sequence[Entry], write: Callable[[Entry], str]) -> Iterator[Line]:
    return (Line(text=write(entries[place]), place=place) for place in reversed(range(len(entries))))


def _lists(groups: list[tuple[str, list[str]]]) -> Iterator[Line]:
    """Write short lines of a few texts each, so that a part of a long list still fits."""
    place = 0
    for head, texts in groups:
        for start in range(0, len(texts), NAMES_A_LINE):
            some = ", ".join(f"`{one_line(text)}`" for text in texts[start : start + NAMES_A_LINE])
            yield Line(text=f"- {one_line(head)}: {some}", place=place)
            place += 1


def _note(quote: Quote | Sentence) -> str:
    return one_line(f"- ({quote.id}) {quote.text}")


def _task(task: Task) -> str:
    sign = "-" if task.status == "said" else "- [x]" if task.done else "- [ ]"
    # The status as its tool spells it: the next update of the plan has to use the same word.
    status = f" ({one_line(task.status)})" if task.status not in ("said", "") else ""
    note = f" / {one_line(task.note)}" if task.note else ""
    return f"{sign} {one_line(task.key) + ': ' if task.key else ''}{one_line(task.text)}{note}{status}"


def _file(file: File) -> str:
    parts = []
    if file.read:
        ranges = ", ".join(f"{first}-{last or ''}" for first, last in file.read if (first, last) != WHOLE_FILE)
        parts.append(f"read {ranges}".rstrip())
    if file.changes:
        parts.append(f"changed {file.changes}x" if file.changes > 1 else "changed")
    return f"- {one_line(file.path)} ({'; '.join(parts)})"


def _command(command: Command) -> str:
    end = {None: "no result seen", True: "failed", False: "ok"}[command.failed]
    code = f" (exit {command.exit})" if command.exit is not None else ""
    times = f" x{command.times}" if command.times > 1 else ""
    said = f": {one_line(command.said)[:LONGEST_SAID]}" if command.said else ""
    about = f" [{one_line(command.about)}]" if command.about else ""
    ran = cut_middle(one_line(command.command), LONGEST_COMMAND)
    return f"- $ {ran}{about} -> {end}{code}{times}{said}"


def _failure(failure: Failure) -> str:
    # What the user refused is an answer, and nothing to mend.
    fix = f" -> {one_line(failure.fix)}" if failure.fix else "" if failure.text.startswith(REJECTED) else " -> open"
    return f"- ({one_line(failure.id)}) {one_line(failure.text)} (from {one_line(failure.source)[:LONGEST_SAID]}){fix}"


def _outcome(call: CallRecord) -> str:
    called, result = cut_between_words(one_line(call.call), SHORT_CALL), one_line(call.result)
    return f"- {called} -> {result if len(result) <= SHORT_CALL else result[:SHORT_CALL].rpartition(' ')[0] + ' ...'}"


def _call(call: CallRecord) -> str:
    return f"- ({one_line(call.id)}) {one_line(call.call)} -> {one_line(call.result)}"


RULES = Section("Rules the user gave (word for word)", lambda digest: _newest(digest.rules, _note), 0.45)
REQUESTS = Section("What the user asked for (word for word)", _requests, 0.20)
DECISIONS = Section("Decisions", lambda digest: _newest(digest.decisions, _note), 0.12)
MARKED = Section("Marked as important", lambda digest: _newest(digest.marked, _note), 0.09)
ERRORS = Section("Errors and what fixed them", _errors, 0.07)
TASKS = Section("Tasks and open questions", _tasks, 0.07)

RECORD = (RULES, REQUESTS, DECISIONS, MARKED, ERRORS, TASKS)
"""Sections that are carried over from fold to fold, by importance, with its shares of the room."""

FILES = Section("Files read and changed", lambda digest: _newest(digest.files, _file), 0.22)
COMMANDS = Section("Commands and their outcome", lambda digest: _newest(digest.commands, _command), 0.14)
CALLS = Section("Other calls and what they gave", lambda digest: _newest(digest.calls, _call), 0.16)
VALUES = Section("Arguments of earlier calls", _values, 0.08)
EXCERPTS = Section("Lines of files as they stood last", _excerpts, 0.20)
NAMES = Section("Identifiers, by the message they stand in", _names, 0.12)
SENTENCES = Section("What the assistant reported", _sentences, 0.08)

DETAILS = (FILES, CALLS, COMMANDS, SENTENCES, VALUES, EXCERPTS, NAMES)
"""Sections that the work may need again, by importance, with its shares of what the record leaves."""

STYLES: dict[Style, tuple[tuple[str, tuple[Section, ...]], ...]] = {
    "summary": (("", (RULES, REQUESTS, DECISIONS, MARKED, TASKS, ERRORS, FILES, COMMANDS, CALLS, VALUES, NAMES,
                      SENTENCES, EXCERPTS)),),
    "compact": (
        ("Retained facts", (RULES, MARKED, TASKS, FILES, VALUES, NAMES, EXCERPTS)),
        ("Summary", (REQUESTS, DECISIONS, ERRORS, COMMANDS, CALLS, SENTENCES)),
    ),
    "condense": (
        ("Previous conversation", (RULES, REQUESTS, MARKED)),
        ("Current work", (SENTENCES, COMMANDS, CALLS)),
        ("Key technical concepts", (NAMES, VALUES)),
        ("Relevant files and code", (FILES, EXCERPTS)),
        ("Problem solving", (ERRORS, DECISIONS)),
        ("Pending tasks", (TASKS,)),
    ),
}  # fmt: skip
"""The parts of each style with their sections in order."""


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
    if left <= 0:
        return text
    return head + lay_out("summary", digest, left, count, lambda record: fits(head + record), details=0)


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


def write_work(digest: Digest, room: int, count: Callable[[str], int]) -> str:
    """Write what was done last and what came of it, within `room` tokens.

    The latest calls or commands have half of it, then the latest sentences of the assistant and the most telling ones;
    those that differ from a later one in numbers and signs alone come last.
    """
    done = [_outcome(one) for one in digest.calls] + [_command(one) for one in digest.commands]
    said, count_said = digest.sentences, len(digest.sentences)
    latest = set({_routine(one.text, ()): place for place, one in enumerate(said)}.values())
    order = sorted(
        range(count_said), key=lambda place: (place not in latest, place < count_said - LATEST, -said[place].score)
    )
    reported = [_note(said[place]) for place in order]
    left = room - count(f"## {DONE_TITLE}\n")
    chosen: dict[str, tuple[int, int]] = {}
    for part, (lines, least) in enumerate(((done[-MOST_DONE:][::-1], left // 2), (reported, 0))):
        for place, line in enumerate(lines):
            cost = count(line) + LINE_COST
            if left - cost < least:
                continue
            chosen[line] = (part, order[place] if part else -place)
            left -= cost
    return "\n".join((f"## {DONE_TITLE}", *sorted(chosen, key=chosen.__getitem__))) if chosen else ""


class _Layout:
    """Chooses the lines of each section: the record, a few of its late lines, details, then the rest of the record."""

    def __init__(self, digest: Digest, room: int, details: int, count: Callable[[str], int]) -> None:
        self._count = count
        self._empty = count("")
        """Tokens that the count adds to each text for the message around it."""
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
            text = text[:most].rpartition("\n")[0] if line.group else cut_between_words(text, most)
            cost = self._cost(msgspec.structs.replace(line, text=text)) if text else 0
        return msgspec.structs.replace(line, text=text) if text.strip() else None


def fenced(text: str) -> str:
    """Put a text between signs that it cannot close."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"
