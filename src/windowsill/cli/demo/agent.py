"""The demo's agent: a script instead of a model, so that every run over the same source says and does the same.

It works like a real one: it says a little, calls one to three tools, looks at what they answered, and goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, TypeAlias

import msgspec

from windowsill.cli.demo.notes import Notes, number_of
from windowsill.cli.demo.tools import Outcome

SYSTEM = """\
You review a Python package with four tools: list_files, read_file, grep and run_python. The package is the source of \
Windowsill, a library that keeps an agent inside its context window without losing anything.

How to work:
- Find out what there is before you read, and read ranges rather than whole files.
- Call several tools at once when they do not depend on each other.
- Believe what the tools say, not what you remember: line numbers change.
- Say in a sentence or two what you learned before you go on, so that the user can follow and can stop you.
- When the user says something new, it holds from then on, together with everything said before.
- Change nothing. The answer is a list of places with a verdict, and every place in it was read.

An error is worth raising only if the reader learns what went wrong, where, and what to do next. In this package the \
last of the three is the keyword argument `remedy`."""

TASK = (
    "Find every place in this package where an error is raised without a remedy, and tell me which file needs work "
    "first. Look at each file yourself, and check with a script rather than by eye."
)

WISHES = (
    "Leave errors.py itself out of the count: it only defines them.",
    "Sort the list by the number of cases, most first.",
    "Keep the answer under ten lines, please.",
    "For the worst file give me the line numbers too.",
    "Do not change any file, even if the fix is obvious.",
    "Say in one line how many files you looked at.",
)
"""What the user adds on the way. The last answer obeys all of it."""

FIRST_WISH = 12
WISH_EVERY = 40
"""Tool calls before the user first says something new, and between two such wishes."""

AUDIT = """\
import ast
path = {path!r}
with open(path, encoding="utf-8") as file:
    tree = ast.parse(file.read())
raised = [node for node in ast.walk(tree) if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)]
bare = [node.lineno for node in raised if all(word.arg != "remedy" for word in node.exc.keywords)]
print(path + ":", len(raised), "raised,", len(bare), "without a remedy", *sorted(bare))"""

COUNT = """\
from pathlib import Path
sizes = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in Path().rglob("*.py")}
print(len(sizes), "files,", sum(sizes.values()), "lines, the longest has", max(sizes.values()))"""

HEAD = 22
AROUND = 5
"""Lines read from the start of a file, and on each side of a place."""

LAST = 150
"""A line that few files go beyond: a longer run begins again from the top."""


class Call(msgspec.Struct, frozen=True):
    """A tool the agent uses."""

    tool: str
    input: dict[str, Any]

    def __str__(self) -> str:
        """One short line for a person."""
        script = f"({len(self.input.get('code', '').splitlines())} lines)"
        shown = self.input.get("path") or self.input.get("pattern") or script
        lines = f":{self.input['first']}-{self.input.get('last', '')}" if "first" in self.input else ""
        return f"{self.tool} {shown}{lines}"


class Turn(msgspec.Struct, frozen=True):
    """One answer of the agent: words and calls; without calls, `wish` is what the user says next."""

    says: str
    calls: tuple[Call, ...] = ()
    wish: str = ""


Script: TypeAlias = Generator[Turn, Sequence[Outcome], None]


def script(files: Sequence[str], size: Callable[[str], int], calls: int) -> Script:
    """The agent's turns over these files, with this many tool calls in all. Send it what the tools answered."""
    notes = Notes()
    work = _work(list(files), size, notes)
    wishes = iter(WISHES)
    done, due = 0, FIRST_WISH
    turn = next(work)
    while True:
        turn = msgspec.structs.replace(turn, calls=turn.calls[: calls - done])
        notes.take((yield turn))
        done += len(turn.calls)
        if done >= calls:
            break
        if done >= due and (wish := next(wishes, "")):
            due += WISH_EVERY
            yield Turn(notes.so_far(), wish=wish)
        turn = next(work)
    yield Turn(notes.answer())


def _work(files: list[str], size: Callable[[str], int], notes: Notes) -> Iterator[Turn]:
    """Turns without an end: a survey, then file after file, and again with other ranges."""
    yield from _survey(max(files, key=size))
    python = [path for path in files if path.endswith(".py")]
    start = HEAD + 1
    for number, path in enumerate(python):
        yield from _audit(number, path, notes)
    while True:
        for number, path in enumerate(python):
            yield _second_look(number, path, start)
        start = start + HEAD if start < LAST else 1


def _survey(largest: str) -> Iterator[Turn]:
    yield Turn(
        "I begin with what there is.",
        (Call("list_files", {"pattern": "**/*.py"}), Call("run_python", {"code": COUNT})),
    )
    yield Turn(
        "Errors are defined in one place; I expect the remedies next to them.",
        (
            Call("read_file", {"path": "errors.py", "first": 1, "last": 60}),
            Call("read_file", {"path": "errors/remedies.py"}),
        ),
    )
    yield Turn(
        "There is no file of remedies: each place states its own. Then I look for the places.",
        (Call("grep", {"pattern": r"\braise \w+\("}), Call("grep", {"pattern": r"remedy=", "limit": 12})),
    )
    yield Turn(
        f"Before the files one by one, the largest of all, {largest}: it may hide more than code.",
        (Call("read_file", {"path": largest}),),
    )


def _audit(number: int, path: str, notes: Notes) -> Iterator[Turn]:
    """One file: the script's verdict and its first lines; then the places it found, if any."""
    check = Call("run_python", {"code": AUDIT.format(path=path)})
    head = Call("read_file", {"path": path, "first": 1, "last": HEAD})
    users = Call("grep", {"pattern": rf"import .*\b{_module(path)}\b|{_module(path)} import", "limit": 8})
    # Every third file is asked about from three sides at once, as an agent does that has been told to.
    calls = (check, head, users) if number % 3 == 0 else (check, head)
    yield Turn(_opening(number, path), calls)
    lines = notes.bare.get(path, [])
    if lines:
        yield Turn(
            f"{path} has {number_of(len(lines), 'case')}: line {', '.join(map(str, lines))}. I read around them.",
            tuple(_around(path, line) for line in (lines[0], lines[-1])[: len(lines)]),
        )
    elif notes.raised.get(path, 0) > 1:
        yield Turn(
            f"{path} raises {notes.raised[path]} errors and states a remedy each time. I read one to be sure.",
            (Call("grep", {"pattern": "remedy=", "path": path, "limit": 6}),),
        )


def _second_look(number: int, path: str, start: int) -> Turn:
    read = Call("read_file", {"path": path, "first": start, "last": start + HEAD - 1})
    defined = Call("grep", {"pattern": r"^\s*(def|class) ", "path": path, "limit": 12})
    return Turn(f"A second look at {path}, from line {start}.", (read, defined) if number % 2 else (read,))


def _around(path: str, line: int) -> Call:
    return Call("read_file", {"path": path, "first": max(1, line - AROUND), "last": line + AROUND})


def _opening(number: int, path: str) -> str:
    openings = (
        f"Next is {path}. The script counts, and I read its beginning.",
        f"Now {path}: what does it raise?",
        f"{path} is next in the list; I check it in the same way.",
        f"On to {path}.",
    )
    return openings[number % len(openings)]


def _module(path: str) -> str:
    parts = path.removesuffix(".py").split("/")
    named = [part for part in ("windowsill", *parts) if part != "__init__"]
    return named[-1]
