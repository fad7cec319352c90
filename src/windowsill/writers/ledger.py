"""The ledger: what code knows of hidden messages, kept beside every summary so that the next one is an update of it.

Lists stand oldest first. Merging joins what is the same, keeps the newest place of it, and caps every list, so that a
ledger does not grow with the session.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

import msgspec

FIRST_REQUESTS = 2
"""The requests at the start of a conversation say what it is about: they are never pushed out by later ones."""

CAPS = {
    "requests": 24,
    "rules": 60,
    "files": 120,
    "commands": 60,
    "errors": 24,
    "decisions": 24,
    "tasks": 60,
    "values": 120,
    "names": 500,
    "excerpts": 80,
    "sentences": 40,
}
"""The most entries of each list: several times what a summary has room for, and still small on disk."""

MOST_RANGES = 8
"""Line ranges kept for one file."""

MOST_EXCERPT_CHARACTERS = 20_000
"""All excerpts together: about as much as a large summary could show."""


class Quote(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Words exactly as they were said, and the message they stand in."""

    text: str
    id: str = ""


class File(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file that was read or changed."""

    path: str
    read: tuple[tuple[int, int], ...] = ()
    """Line ranges; `(1, 0)` is the whole file."""
    changes: int = 0
    id: str = ""
    """The message of the latest call."""


class Command(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A command that was run, with how it ended the last time."""

    command: str
    failed: bool | None = None
    """`None` where no result was seen."""
    exit: int | None = None
    said: str = ""
    """The most telling line of its output."""
    about: str = ""
    """What the caller said it is for."""
    times: int = 1
    id: str = ""


class Trouble(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """An error, and what came right after it."""

    text: str
    source: str = ""
    """The command or path it came from."""
    fix: str = ""
    id: str = ""


class Task(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One entry of a plan."""

    text: str
    status: str = ""
    key: str = ""
    """The id its tool gave it."""
    note: str = ""

    @property
    def done(self) -> bool:
        """Whether nothing is left to do."""
        return self.status.lower() in DONE


DONE = frozenset({"completed", "complete", "done", "cancelled", "canceled", "closed", "deleted", "finished", "x"})


class Value(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A short argument of an earlier call: agents use the same ones again."""

    text: str
    key: str = ""
    tool: str = ""
    id: str = ""


class Name(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """An identifier that a tool output or a message showed."""

    text: str
    kind: str = ""
    count: int = 1
    id: str = ""


class Excerpt(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Lines of a file exactly as they stand in it."""

    path: str
    text: str
    first: int = 0
    """Their line number; 0 where it is not known."""
    id: str = ""


class Sentence(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A telling sentence of the assistant."""

    text: str
    score: float = 0.0
    id: str = ""


class Ledger(msgspec.Struct, omit_defaults=True):
    """What code knows of hidden messages."""

    messages: int = 0
    requests: list[Quote] = []
    rules: list[Quote] = []
    files: list[File] = []
    commands: list[Command] = []
    errors: list[Trouble] = []
    decisions: list[Quote] = []
    tasks: list[Task] = []
    values: list[Value] = []
    names: list[Name] = []
    excerpts: list[Excerpt] = []
    sentences: list[Sentence] = []
    state: dict[str, Any] = {}


Entry = TypeVar("Entry")


def merge(older: Ledger, newer: Ledger) -> Ledger:
    """Both as one: the same entries joined, the newest last, every list within its cap."""
    return capped(
        Ledger(
            messages=older.messages + newer.messages,
            requests=joined([*older.requests, *newer.requests], lambda item: (item.id, item.text)),
            rules=joined([*older.rules, *newer.rules], lambda item: item.text),
            files=joined([*older.files, *newer.files], lambda item: item.path, _same_file),
            commands=joined([*older.commands, *newer.commands], lambda item: item.command, same_command),
            errors=joined([*older.errors, *newer.errors], lambda item: (item.source, item.text), _same_trouble),
            decisions=joined([*older.decisions, *newer.decisions], lambda item: item.text),
            tasks=joined([*older.tasks, *newer.tasks], task_key),
            values=joined([*older.values, *newer.values], lambda item: item.text),
            names=joined([*older.names, *newer.names], lambda item: item.text, _same_name),
            excerpts=joined([*older.excerpts, *newer.excerpts], lambda item: (item.path, item.text)),
            sentences=joined([*older.sentences, *newer.sentences], lambda item: item.text),
            state={**older.state, **newer.state},
        )
    )


def merged(kept: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Ledgers as folds keep them, oldest first, as one in the same form."""
    whole = Ledger()
    for one in kept:
        whole = merge(whole, read(one))
    return written(whole)


def read(kept: dict[str, Any]) -> Ledger:
    """A ledger as a fold keeps it; empty when it is none of ours."""
    try:
        return msgspec.convert(kept, Ledger)
    except msgspec.ValidationError:
        return Ledger()


def written(ledger: Ledger) -> dict[str, Any]:
    """A ledger in the form a fold keeps it."""
    built: dict[str, Any] = msgspec.to_builtins(ledger)
    for file in built.get("files", ()):
        if "read" in file:
            file["read"] = _as_json(file["read"])
    if "state" in built:
        built["state"] = _as_json(built["state"])
    return built


def _as_json(value: Any) -> Any:
    """The value as it comes back from the journal: with lists for tuples."""
    if isinstance(value, dict):
        return {key: _as_json(each) for key, each in value.items()}
    return [_as_json(each) for each in value] if isinstance(value, (list, tuple)) else value


def capped(ledger: Ledger) -> Ledger:
    """The ledger with every list within its cap: the oldest go, except the first requests and the best sentences."""
    kept = {name: getattr(ledger, name)[-most:] for name, most in CAPS.items()}
    kept["requests"] = _ends(ledger.requests, CAPS["requests"])
    kept["sentences"] = _best(ledger.sentences, CAPS["sentences"])
    kept["tasks"] = _open_first(ledger.tasks, CAPS["tasks"])
    kept["excerpts"] = _within(ledger.excerpts[-CAPS["excerpts"] :], MOST_EXCERPT_CHARACTERS)
    return msgspec.structs.replace(ledger, **kept)


def joined(
    items: Sequence[Entry],
    key: Callable[[Entry], Hashable],
    join: Callable[[Entry, Entry], Entry] | None = None,
) -> list[Entry]:
    """Each key once, at its newest place; `join(older, newer)` says what two entries become, else the newer stays."""
    found: dict[Hashable, Entry] = {}
    for item in items:
        before = found.pop(key(item), None)
        found[key(item)] = item if before is None or join is None else join(before, item)
    return list(found.values())


def task_key(task: Task) -> Hashable:
    """What makes two entries the same task: the id its tool gave it, else its words."""
    return ("key", task.key) if task.key else ("text", task.text)


def add_range(ranges: tuple[tuple[int, int], ...], new: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    """Ranges with one more, touching ones joined; a whole file takes all others in."""
    if (1, 0) in ranges or new == (1, 0):
        return ((1, 0),)
    found: list[tuple[int, int]] = []
    for first, last in sorted((*ranges, new)):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return tuple(found[-MOST_RANGES:])


def _same_file(older: File, newer: File) -> File:
    ranges = older.read
    for one in newer.read:
        ranges = add_range(ranges, one)
    return File(path=newer.path, read=ranges, changes=older.changes + newer.changes, id=newer.id or older.id)


def same_command(older: Command, newer: Command) -> Command:
    """A command that ran again: its newest end counts."""
    return msgspec.structs.replace(newer, times=older.times + newer.times, about=newer.about or older.about)


def _same_trouble(older: Trouble, newer: Trouble) -> Trouble:
    return newer if newer.fix or not older.fix else older


def _same_name(older: Name, newer: Name) -> Name:
    return msgspec.structs.replace(newer, count=older.count + newer.count)


def _ends(items: list[Quote], most: int) -> list[Quote]:
    return items if len(items) <= most else items[:FIRST_REQUESTS] + items[FIRST_REQUESTS - most :]


def _best(items: list[Sentence], most: int) -> list[Sentence]:
    order = sorted(range(len(items)), key=lambda place: (-items[place].score, -place))[:most]
    return [items[place] for place in sorted(order)]


def _open_first(items: list[Task], most: int) -> list[Task]:
    order = sorted(range(len(items)), key=lambda place: (items[place].done, -place))[:most]
    return [items[place] for place in sorted(order)]


def _within(items: list[Excerpt], most: int) -> list[Excerpt]:
    kept: list[Excerpt] = []
    for item in reversed(items):
        most -= len(item.text)
        if most < 0:
            break
        kept.append(item)
    return kept[::-1]
