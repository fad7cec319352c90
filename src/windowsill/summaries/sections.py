"""Sections of a summary: each list of the digest as lines, the most useful first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from windowsill.history.folds import Style
from windowsill.summaries.digest import (
    WHOLE_FILE,
    Command,
    Digest,
    Entry,
    Failure,
    File,
    Quote,
    Sentence,
    Task,
    Value,
)
from windowsill.text import one_line

NAMES_A_LINE = 6
LONGEST_SAID = 160
"""Characters of what a command said, in its line."""


class Line(msgspec.Struct, frozen=True, gc=False):
    """One entry of a section; lines with a `group` are an excerpt that stands under this head."""

    text: str
    place: int
    """Its position in the section, once it is known which lines fit."""
    cuttable: bool = False
    """True if a part of it still tells something."""
    group: str = ""


class Section(msgspec.Struct, frozen=True):
    """A part of a summary."""

    title: str
    lines: Callable[[Digest], Iterable[Line]]
    """Makes the lines, the most useful first; those nobody takes need not be made."""
    share: float
    """The share of the room, before what others leave is given out."""


def _requests(digest: Digest) -> Iterator[Line]:
    """Put the last first, then the first, then the others from the newest on."""
    count = len(digest.requests)
    for place in sorted(range(count), key=lambda place: (min(place, count - 1 - place), -place)):
        quote = digest.requests[place]
        text = f"> ({one_line(quote.id)}) " + "\n> ".join(quote.text.splitlines())
        yield Line(text=text, place=place, cuttable=True)


def _tasks(digest: Digest) -> list[Line]:
    """Put open tasks first, then those done: a plan is often written again as a whole."""
    if not digest.tasks:
        # Worth saying where work was done: the model need not look for a plan.
        return [Line(text="- none recorded", place=0)] if digest.files or digest.commands else []
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
    return f"- $ {one_line(command.command)}{about} -> {end}{code}{times}{said}"


def _failure(failure: Failure) -> str:
    fix = f" -> {one_line(failure.fix)}" if failure.fix else " -> open"
    return f"- ({one_line(failure.id)}) {one_line(failure.text)} (from {one_line(failure.source)[:LONGEST_SAID]}){fix}"


REQUESTS = Section("What the user asked for (word for word)", _requests, 0.14)
RULES = Section("Rules the user gave (word for word)", lambda digest: _newest(digest.rules, _note), 0.10)
TASKS = Section("Tasks (pending, in_progress or completed)", _tasks, 0.08)
DECISIONS = Section("Decisions", lambda digest: _newest(digest.decisions, _note), 0.04)
ERRORS = Section("Errors and what fixed them", _errors, 0.04)
FILES = Section("Files read and changed", lambda digest: _newest(digest.files, _file), 0.16)
COMMANDS = Section("Commands and their outcome", lambda digest: _newest(digest.commands, _command), 0.10)
VALUES = Section("Arguments of earlier calls", _values, 0.06)
NAMES = Section("Identifiers, by the message they stand in", _names, 0.10)
SENTENCES = Section("What the assistant reported", _sentences, 0.05)
EXCERPTS = Section("Lines of files as they stood last", _excerpts, 0.15)

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
