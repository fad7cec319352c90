"""Recognise what a tool call did by the shape of its arguments, never by the name of one agent's tool."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

import msgspec

from windowsill import shell
from windowsill.shell import TouchedFile
from windowsill.summaries.digest import WHOLE_FILE, Task
from windowsill.tool_arguments import Arguments

Kind: TypeAlias = Literal["read", "change", "command", "search", "plan", "other"]

MOST_EDITS = 40
"""Replacements taken from one call."""

LONGEST_PATH = 400
LONGEST_TASK = 1_000
LONGEST_STATUS = 80
"""Characters kept of a plan's entry, and of its status and key: a digest shall not grow with what a tool is given."""

MOST_TASKS = 500
"""Entries taken from one call; a digest keeps fewer."""

LARGEST_LINE = 2**31
"""No file has more lines; larger numbers are not line numbers, and could not be stored."""

PAIR = 2


class Edit(msgspec.Struct, frozen=True, gc=False):
    """One replacement in a file."""

    path: str
    old: str
    new: str


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of a call: files it touched, edits, the command it ran, tasks it planned."""

    kind: Kind
    touched: tuple[TouchedFile, ...] = ()
    edits: tuple[Edit, ...] = ()
    command: str = ""
    about: str = ""
    tasks: tuple[Task, ...] = ()
    replaces: bool = False
    """True when the tasks are the whole plan."""


def recognise(given: dict[str, Any]) -> Action:
    """Return what a call with these arguments does."""
    if tasks := tuple(_tasks(given)):
        return Action(kind="plan", tasks=tasks, replaces=any(isinstance(value, list) for value in given.values()))
    arguments = Arguments(given)
    about = arguments.text("about")
    path = _path(arguments)
    if patched := shell.patched_files(arguments.text("patch")):
        return Action(kind="change", touched=tuple(patched), about=about)
    command = _command(arguments)
    # A bare word beside a path ("view", "create") names what an editor shall do; it is not a command.
    if command and not (path and len(command.split()) == 1):
        return Action(kind="command", command=command, touched=tuple(shell.files_of(command)), about=about)
    if path and (edits := tuple(_edits(path, arguments))):
        return Action(kind="change", touched=(TouchedFile(path=path, changed=True),), edits=edits, about=about)
    if arguments.text("pattern"):
        return Action(kind="search", about=about)
    if path:
        return Action(
            kind="read", touched=(TouchedFile(path=path, changed=False, range=_range(arguments)),), about=about
        )
    return Action(kind="other", about=about)


def _path(arguments: Arguments) -> str:
    """Return the file a call is about: on one line, not a whole text, and not a web address."""
    path = arguments.text("path").removeprefix("file://")
    named = "/" in path or "." in path or "\\" in path
    return path if named and len(path) <= LONGEST_PATH and "\n" not in path and "://" not in path else ""


def _command(arguments: Arguments) -> str:
    if text := arguments.text("command"):
        return text if text.strip() else ""
    words = arguments.value("command")
    if not (isinstance(words, list) and words and all(isinstance(word, str) for word in words)):
        return ""
    # ["bash", "-lc", "..."]: the last word is the script.
    scripted = len(words) > PAIR and words[1].startswith("-") and words[1].endswith("c")
    return words[-1] if scripted else " ".join(words)


def _edits(path: str, arguments: Arguments) -> Iterator[Edit]:
    several = next((value for key in ("edits", "changes") if isinstance(value := arguments.given.get(key), list)), None)
    sources = [Arguments(one) for one in several[:MOST_EDITS] if isinstance(one, dict)] if several else [arguments]
    for source in sources:
        if source.has("new"):
            yield Edit(path=path, old=source.text("old"), new=source.text("new"))


def _range(arguments: Arguments) -> tuple[int, int]:
    """Return the lines a read asked for."""
    for value in arguments.given.values():
        if isinstance(value, list) and len(value) == PAIR and all(_line_number(number) for number in value):
            return (max(value[0], 1), max(value[1], 0))
    first, last, limit = arguments.number("first"), arguments.number("last"), arguments.number("limit")
    if last is None and limit is not None:
        last = max(first or 1, 1) + limit - 1
    return WHOLE_FILE if first is None and last is None else (max(first or 1, 1), last or 0)


def _line_number(value: Any) -> bool:
    return type(value) is int and -LARGEST_LINE < value < LARGEST_LINE


def _tasks(given: dict[str, Any]) -> Iterator[Task]:
    """Yield the entries of a plan: objects in a list with words and a status, or one object that names its task."""
    for value in given.values():
        if isinstance(value, list):
            entries = (one for one in value[-MOST_TASKS:] if isinstance(one, dict))
            yield from (task for one in entries if (task := _task(one)))
    if ("taskId" in given or "task_id" in given or "subject" in given) and (task := _task(given)):
        yield task


def _task(given: dict[str, Any]) -> Task | None:
    source = Arguments(given)
    words, note = source.text("words")[:LONGEST_TASK], source.text("note")[:LONGEST_TASK]
    state, key = source.value("state"), source.value("key")
    key = str(key)[:LONGEST_STATUS] if isinstance(key, str | int) else ""
    if not isinstance(state, str | bool):
        # One that is made has no status yet.
        return Task(text=words, status="pending", note=note) if "subject" in given and words else None
    if not (words or key):
        return None
    status = state if isinstance(state, str) else "completed" if state else "pending"
    return Task(text=words, status=status[:LONGEST_STATUS], key=key, note=note)
