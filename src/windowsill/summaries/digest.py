"""The digest: facts that code collects from hidden messages, kept with each summary so that the next one updates it.

Lists stand oldest first. Merging joins what is the same, keeps the newest place of it, and caps every list, so that a
digest does not grow with the session.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from operator import attrgetter
from typing import Any, TypeVar

import msgspec

from windowsill.text import one_line

DIGEST = "ledger"
"""The key under which a span keeps the digest of the messages it hides; part of the stored format."""

FIRST_REQUESTS = 2
"""The requests at the start of a conversation say what it is about: they are never pushed out by later ones."""

CAPS = {
    "requests": 400,
    "rules": 200,
    "decisions": 100,
    "marked": 100,
    "errors": 40,
    "tasks": 60,
    "files": 120,
    "commands": 60,
    "calls": 60,
    "values": 120,
    "names": 500,
    "excerpts": 80,
    "sentences": 40,
}
"""The most entries of each list: several times what a summary has room for, and still small on disk."""

CHARACTERS = {"requests": 40_000, "rules": 20_000, "decisions": 10_000, "marked": 10_000, "excerpts": 20_000}
"""The most characters of lists whose entries may be long: about as much as the largest summary could show."""

RECORD = ("requests", "rules", "decisions", "marked", "errors", "tasks")
"""The lists that are carried over from fold to fold."""

MOST_RANGES = 8
"""Line ranges kept for one file."""

WHOLE_FILE = (1, 0)
"""The line range that stands for all lines of a file."""

DONE = frozenset({"completed", "complete", "done", "cancelled", "canceled", "closed", "deleted", "finished", "x"})

Entry = TypeVar("Entry")


class Quote(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Words exactly as they were said, and the message they stand in."""

    text: str
    id: str = ""
    answers: str = ""
    """The question that a short answer replies to: without it "yes, please do" says nothing."""


class File(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file that was read or changed; `id` is the message of the latest call."""

    path: str
    read: tuple[tuple[int, int], ...] = ()
    changes: int = 0
    id: str = ""


class Command(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A command that was run, with how it ended the last time."""

    command: str
    failed: bool | None = None
    """`None` where no result was seen."""
    exit: int | None = None
    said: str = ""
    """The most telling line of its output."""
    about: str = ""
    """Its purpose, in the words of the caller."""
    times: int = 1
    id: str = ""


class Failure(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """An error, the command or path it came from, and what came right after it."""

    text: str
    source: str = ""
    fix: str = ""
    id: str = ""


class Task(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One entry of a plan; `key` is the id its tool gave it."""

    text: str
    status: str = ""
    key: str = ""
    note: str = ""

    @property
    def done(self) -> bool:
        """True if nothing is left to do."""
        return self.status.lower() in DONE


class CallRecord(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A call of a tool that is about no file and no command: what it was given, and the values that it gave back."""

    call: str
    result: str = ""
    id: str = ""


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
    """Lines of a file exactly as they stand in it; `first` is their line number, 0 where it is not known."""

    path: str
    text: str
    first: int = 0
    id: str = ""


class Sentence(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A telling sentence of the assistant."""

    text: str
    score: float = 0.0
    id: str = ""


class Digest(msgspec.Struct, omit_defaults=True):
    """The facts that code collected from hidden messages; the names of the fields are stored.

    Requests, rules, decisions, marked, errors and tasks are the record: what has to be carried over.
    """

    messages: int = 0
    requests: list[Quote] = []
    rules: list[Quote] = []
    marked: list[Quote] = []
    """Messages that were marked as important, and summaries written by hand."""
    files: list[File] = []
    commands: list[Command] = []
    errors: list[Failure] = []
    decisions: list[Quote] = []
    tasks: list[Task] = []
    replans: bool = False
    """True when a whole plan was written, which takes the place of any before."""
    calls: list[CallRecord] = []
    values: list[Value] = []
    names: list[Name] = []
    excerpts: list[Excerpt] = []
    sentences: list[Sentence] = []
    state: dict[str, Any] = {}


def merge(older: Digest, newer: Digest) -> Digest:
    """Merge two digests: the same entries joined, the newest last, every list within its cap."""
    if newer.replans:
        older = msgspec.structs.replace(older, tasks=[task for task in older.tasks if task.status == "said"])
    lists = {
        name: join([*getattr(older, name), *getattr(newer, name)], KEYS[name], _COMBINE.get(name)) for name in CAPS
    }
    messages = older.messages + newer.messages
    replans = older.replans or newer.replans
    return cap(Digest(messages=messages, replans=replans, state={**older.state, **newer.state}, **lists))


def merge_all(digests: Iterable[Digest]) -> Digest:
    """Merge digests, oldest first."""
    whole = Digest()
    for one in digests:
        whole = merge(whole, one)
    return whole


def merge_stored(stored: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Merge digests as folds keep them, oldest first, into one of the same form."""
    return dump(merge_all(map(load, stored)))


def only_record(digest: Digest) -> Digest:
    """Return what has to be carried over of a digest, without the details of the work."""
    return Digest(replans=digest.replans, **{name: getattr(digest, name) for name in RECORD})


def without_told(digest: Digest, shown: str) -> Digest:
    """Return the digest without what a text tells of its record already."""
    shown = one_line(shown)
    left = {
        # Of words that were told line by line the first line is enough to know them.
        name: [one for one in getattr(digest, name) if one_line(one.text.strip().partition("\n")[0]) not in shown]
        for name in RECORD
    }
    return msgspec.structs.replace(digest, **left)


def load(stored: dict[str, Any]) -> Digest:
    """Read a digest as a fold keeps it; one that is not valid is empty."""
    try:
        return msgspec.convert(stored, Digest)
    except msgspec.ValidationError:
        return Digest()


def dump(digest: Digest) -> dict[str, Any]:
    """Return a digest in the form a fold keeps it."""
    built: dict[str, Any] = msgspec.to_builtins(digest)
    for file in built.get("files", ()):
        if "read" in file:
            file["read"] = [list(lines) for lines in file["read"]]
    if "state" in built:
        built["state"] = _as_json(built["state"])
    return built


def cap(digest: Digest) -> Digest:
    """Bring every list within its cap: the oldest go, except the first requests and the best sentences."""
    kept = {name: getattr(digest, name)[-most:] for name, most in CAPS.items()}
    first, later = digest.requests[:FIRST_REQUESTS], digest.requests[FIRST_REQUESTS:]
    kept["requests"] = later[FIRST_REQUESTS - CAPS["requests"] :]
    kept["sentences"] = _first_by(digest.sentences, CAPS["sentences"], lambda one: -one.score)
    kept["tasks"] = _first_by(digest.tasks, CAPS["tasks"], lambda one: one.done)
    for name, most in CHARACTERS.items():
        kept[name] = _within(kept[name], most)
    kept["requests"] = first + kept["requests"]
    return msgspec.structs.replace(digest, **kept)


def join(
    items: Sequence[Entry],
    key: Callable[[Entry], Hashable],
    combine: Callable[[Entry, Entry], Entry] | None = None,
) -> list[Entry]:
    """Keep each key once, at its newest place; of two entries the newer stays, unless `combine` makes one of them."""
    found: dict[Hashable, Entry] = {}
    for item in items:
        name = key(item)
        before = found.pop(name, None)
        found[name] = item if before is None or combine is None else combine(before, item)
    return list(found.values())


def task_key(task: Task) -> Hashable:
    """Return the key of a task: the id its tool gave it, else its words."""
    return ("key", task.key) if task.key else ("text", task.text)


def add_range(ranges: tuple[tuple[int, int], ...], new: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    """Add a line range and join touching ones; a whole file takes all others in."""
    if WHOLE_FILE in (*ranges, new):
        return (WHOLE_FILE,)
    found: list[tuple[int, int]] = []
    for first, last in sorted((*ranges, new)):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return tuple(found[-MOST_RANGES:])


def combine_commands(older: Command, newer: Command) -> Command:
    """Make one of two runs of a command: the newest end counts."""
    return msgspec.structs.replace(newer, times=older.times + newer.times, about=newer.about or older.about)


def combine_files(older: File, newer: File) -> File:
    """Make one of two entries of a file: all lines that were read, all changes."""
    ranges = older.read
    for one in newer.read:
        ranges = add_range(ranges, one)
    return File(path=newer.path, read=ranges, changes=older.changes + newer.changes, id=newer.id or older.id)


KEYS: dict[str, Callable[[Any], Hashable]] = {
    **dict.fromkeys(("rules", "decisions", "values", "names", "sentences"), attrgetter("text")),
    **dict.fromkeys(("requests", "marked"), attrgetter("id", "text")),
    "calls": attrgetter("call"),
    "files": attrgetter("path"),
    "commands": attrgetter("command"),
    "errors": attrgetter("source", "text"),
    "tasks": task_key,
    "excerpts": attrgetter("path", "text"),
}
"""The key of an entry in each list: entries with the same key are the same."""

_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "files": combine_files,
    "commands": combine_commands,
    "errors": lambda older, newer: newer if newer.fix or not older.fix else older,
    "names": lambda older, newer: msgspec.structs.replace(newer, count=older.count + newer.count),
}


def _as_json(value: Any) -> Any:
    """Return a value as it comes back from the journal: with lists for tuples."""
    if isinstance(value, dict):
        return {key: _as_json(each) for key, each in value.items()}
    return [_as_json(each) for each in value] if isinstance(value, (list, tuple)) else value


def _first_by(items: list[Entry], most: int, rank: Callable[[Entry], float]) -> list[Entry]:
    """Keep the entries of the lowest rank, of equals the newest, in their order."""
    order = sorted(range(len(items)), key=lambda place: (rank(items[place]), -place))[:most]
    return [items[place] for place in sorted(order)]


def _within(items: list[Any], most: int) -> list[Any]:
    """Keep the newest entries that have at most so many characters together."""
    kept: list[Any] = []
    for item in reversed(items):
        most -= len(item.text)
        if most < 0:
            break
        kept.append(item)
    return kept[::-1]
