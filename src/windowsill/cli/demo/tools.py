"""The four tools of the demo's agent. They are real: they read a folder of source files and run Python."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

SOURCE = (".py", ".sql", ".toml")

MOST_HITS = 25
"""Lines a search gives back when nobody says how many: what a careful tool does."""

LONGEST_RUN = 10
"""Seconds a script may take: the ones of the demo take a fiftieth of one."""


def _definition(name: str, description: str, required: list[str], **properties: dict[str, str]) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": required}
    return {"name": name, "description": description, "input_schema": schema}


DEFINITIONS = (
    _definition(
        "list_files",
        "List the files of the project whose path matches a pattern, with the number of lines of each. Use it first, "
        "to learn what there is, and again when a path that you expected does not exist. Paths are relative to the "
        "root of the project and use forward slashes.",
        ["pattern"],
        pattern={"type": "string", "description": "A glob such as **/*.py, store/*.py or **/*.sql"},
    ),
    _definition(
        "read_file",
        "Read a text file of the project, whole or a range of its lines. Each line comes with its number. Prefer a "
        "range of 20 to 60 lines around the place you care about: a whole file may be long, and what you do not need "
        "is in the way of what you do.",
        ["path"],
        path={"type": "string", "description": "The file, relative to the root of the project"},
        first={
            "type": "integer",
            "description": "The first line to read, counted from 1; from the start when left out",
        },
        last={"type": "integer", "description": "The last line to read; to the end when left out"},
    ),
    _definition(
        "grep",
        "Search the files of the project for lines that match a regular expression. The answer has one line for each "
        "hit, with path, line number and text, in the order of the paths, and says when there were "
        "more hits than it shows.",
        ["pattern"],
        pattern={"type": "string", "description": "A regular expression in Python's syntax"},
        path={"type": "string", "description": "Only files whose path begins with this; all of them when left out"},
        limit={"type": "integer", "description": f"The most hits to show, {MOST_HITS} when left out"},
    ),
    _definition(
        "run_python",
        "Run a short Python script in the root of the project and get what it prints. Only the standard library is "
        "there. Use it for what reading cannot tell reliably: to count, to parse, to compare many files. A script "
        "that fails gives back its traceback.",
        ["code"],
        code={"type": "string", "description": "The script"},
    ),
)


class Outcome(msgspec.Struct, frozen=True):
    """What a tool answered."""

    text: str
    failed: bool = False


class Workbench:
    """The tools over one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()

    @cached_property
    def files(self) -> list[str]:
        """The source files of the folder in the order of their paths."""
        found = (path for path in self.folder.rglob("*") if path.suffix in SOURCE and path.is_file())
        return sorted(path.relative_to(self.folder).as_posix() for path in found)

    def size(self, path: str) -> int:
        """The bytes of a file."""
        return (self.folder / path).stat().st_size

    def use(self, tool: str, input: dict[str, Any]) -> Outcome:
        """The answer of a tool; what goes wrong is an answer too."""
        try:
            match tool:
                case "list_files":
                    return self._list(**input)
                case "read_file":
                    return self._read(**input)
                case "grep":
                    return self._grep(**input)
                case "run_python":
                    return self._run(**input)
        except (OSError, TypeError, re.error) as error:
            return Outcome(f"{tool} failed: {error}", failed=True)
        return Outcome(f"there is no tool {tool!r}", failed=True)

    def _lines(self, path: str) -> list[str]:
        return (self.folder / path).read_text(encoding="utf-8").splitlines()

    def _list(self, pattern: str) -> Outcome:
        # The folder's own listing decides: a glob alone would also find compiled files.
        wanted = {path.relative_to(self.folder).as_posix() for path in self.folder.glob(pattern)}
        found = [path for path in self.files if path in wanted]
        return Outcome("\n".join(f"{len(self._lines(path)):>5}  {path}" for path in found) or "no files match")

    def _read(self, path: str, first: int = 1, last: int | None = None) -> Outcome:
        if path not in self.files:
            return Outcome(f"{path}: no such file; use list_files to see what there is", failed=True)
        lines = self._lines(path)[first - 1 : last]
        return Outcome("\n".join(f"{number:>4}  {line}" for number, line in enumerate(lines, first)) or "no such lines")

    def _grep(self, pattern: str, path: str = "", limit: int = MOST_HITS) -> Outcome:
        hits = list(self._hits(re.compile(pattern), path))
        more = [f"... and {len(hits) - limit} more"] if len(hits) > limit else []
        return Outcome("\n".join([*hits[:limit], *more]) or "no hits")

    def _hits(self, pattern: re.Pattern[str], start: str) -> Iterator[str]:
        for path in self.files:
            if path.startswith(start):
                for number, line in enumerate(self._lines(path), 1):
                    if pattern.search(line):
                        yield f"{path}:{number}: {line.strip()}"

    def _run(self, code: str) -> Outcome:
        # Isolated and without site packages: a script starts in a fifth of the time and prints the same everywhere.
        command = [sys.executable, "-I", "-S", "-X", "utf8", "-c", code]
        try:
            done = subprocess.run(  # noqa: S603 - the script comes from the demo's own agent, not from outside
                command,
                cwd=self.folder,
                capture_output=True,
                text=True,
                encoding="utf-8",
                timeout=LONGEST_RUN,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Outcome(f"the script took longer than {LONGEST_RUN} seconds", failed=True)
        return Outcome((done.stdout + done.stderr).strip() or "(no output)", failed=done.returncode != 0)
