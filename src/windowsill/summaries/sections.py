"""Sections of a summary: each list of the digest as lines, the most useful first."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from windowsill.history.folds import Style
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
)
from windowsill.text import cut_middle, one_line

NAMES_A_LINE = 6
LONGEST_SAID = 160
"""Characters of what a command said, in its line."""

LONGEST_COMMAND = 240
"""Characters of a command, in its line: of a script that was piped in the beginning and the end tell enough."""

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
        text = f"> ({one_line(quote.id)}) " + "\n> ".join(quote.text.splitlines())
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
    fix = f" -> {one_line(failure.fix)}" if failure.fix else " -> open"
    return f"- ({one_line(failure.id)}) {one_line(failure.text)} (from {one_line(failure.source)[:LONGEST_SAID]}){fix}"


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
