"""The demo's agent: a script instead of a model, so that every run over the same source is the same.

It works like a real one: it says a little, calls one to three real tools, looks at what they answered, and goes on.
"""

from __future__ import annotations

import fnmatch
import itertools
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

FIRST_WISH, WISH_EVERY = 12, 40
"""Tool calls before the user first says something new, and between two such wishes."""

LINES, MOST_LISTED, MOST_HITS = 22, 5, 25
"""Lines read of a file at once, files that the answer lists, and hits that a search shows."""


@cache
def request() -> dict[str, Any]:
    """Return what the agent is told: the system prompt, the task, the tools, and what the user adds on the way."""
    return tomllib.loads(resources.files(__package__).joinpath("request.toml").read_text("utf-8"))


class Workbench:
    """The tools over the source files of one folder."""

    def __init__(self, folder: Path) -> None:
        found = (path for path in folder.rglob("*") if path.suffix in {".py", ".sql", ".toml"} and path.is_file())
        texts = {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in found}
        self.files = {path: texts[path].splitlines() for path in sorted(texts)}

    def answer(self, use: dict[str, Any]) -> dict[str, Any]:
        """Run a tool and return its result; what goes wrong is a result too."""
        tools: dict[str, Callable[..., list[str]]]
        tools = {"list_files": self._list, "read_file": self._read, "grep": self._grep}
        result = {"type": "tool_result", "tool_use_id": use["id"]}
        try:
            return result | {"content": "\n".join(tools[use["name"]](**use["input"])) or "nothing found"}
        except (KeyError, TypeError, re.error) as error:
            return result | {"content": f"{use['name']} failed: {error}", "is_error": True}

    def _list(self, pattern: str) -> list[str]:
        return [f"{len(self.files[path]):>5}  {path}" for path in fnmatch.filter(self.files, pattern)]

    def _read(self, path: str, first: int = 1, last: int | None = None) -> list[str]:
        return [f"{number:>4}  {line}" for number, line in enumerate(self.files[path][first - 1 : last], first)]

    def _grep(self, pattern: str, path: str = "", limit: int = MOST_HITS) -> list[str]:
        wanted = re.compile(pattern)
        files = ((file, lines) for file, lines in self.files.items() if file.startswith(path))
        numbered = ((file, number, line) for file, lines in files for number, line in enumerate(lines, 1))
        hits = [f"{file}:{number}: {line.strip()}" for file, number, line in numbered if wanted.search(line)]
        return [*hits[:limit], *([f"... and {len(hits) - limit} more"] if len(hits) > limit else [])]


def conversation(bench: Workbench, calls: int) -> list[dict[str, Any]]:
    """Let the agent work with so many tool calls; return the messages in Anthropic's form."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": request()["task"]}]
    raised: dict[str, list[str]] = {}
    wishes, due, done = iter(request()["wishes"]), FIRST_WISH, 0
    for path, text, wanted in _work(bench.files):
        numbered = enumerate(wanted[: calls - done], done + 1)
        uses = [{"type": "tool_use", "id": f"toolu_demo_{number:05d}", **call} for number, call in numbered]
        results = [bench.answer(use) for use in uses]
        messages += [_say(text, uses), {"role": "user", "content": results}]
        if path:
            raised[path] = re.findall(r":(\d+): raise ", results[0]["content"])
        done += len(uses)
        if done == calls:
            break
        if done >= due and (wish := next(wishes, "")):
            due += WISH_EVERY
            so_far = f"So far: {len(raised):,} files with {sum(map(len, raised.values())):,} errors."
            messages += [_say(so_far), {"role": "user", "content": wish}]
    return [*messages, _say(_verdict(raised))]


def _say(text: str, uses: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "text", "text": text}, *uses]}


def _call(name: str, **input: object) -> dict[str, Any]:
    return {"name": name, "input": input}


def _work(files: dict[str, list[str]]) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """Yield words and calls without an end: a survey, then each file, with the path that its first call searches."""
    largest = max(files, key=lambda path: sum(map(len, files[path])))
    survey = [_call("list_files", pattern="*.py"), _call("grep", pattern="^import", limit=12)]
    errors = [_call("read_file", path="errors.py", first=1, last=60), _call("read_file", path="errors/remedies.py")]
    yield "", "I begin with what there is.", survey
    yield "", "Errors are defined in one place; I expect their remedies next to them.", errors
    yield "", "There is no such file. I look for the places.", [_call("grep", pattern=r"\braise \w+\(")]
    first_of_all = f"Before the files one by one, the largest of all, {largest}: it may hide more than code."
    yield "", first_of_all, [_call("read_file", path=largest)]
    python = [path for path in files if path.endswith(".py")]
    for start, (number, path) in itertools.product(range(1, 200, LINES), enumerate(python)):
        search = _call("grep", pattern=r"^\s*raise \w+", path=path, limit=40)
        read = _call("read_file", path=path, first=start, last=start + LINES - 1)
        users = _call("grep", pattern=rf"import .*{Path(path).stem}", limit=8)
        # Every third file is asked about from three sides at once, as an agent does that has been told to.
        calls = [search, read, users][: 3 if number % 3 == 0 else 2]
        yield path, f"Next is {path}: what does it raise? I read from line {start}.", calls
    yield from _work(files)


def _verdict(raised: dict[str, list[str]]) -> str:
    looked = f"I looked at {len(raised):,} files with {sum(map(len, raised.values())):,} raised errors."
    ranked = sorted(raised.items(), key=lambda case: (-len(case[1]), case[0]))
    ranked = [(path, lines) for path, lines in ranked if lines and path != "errors.py"]
    if not ranked:
        return looked
    worst, lines = ranked[0]
    listed = [f"- {path}: {len(found)}" for path, found in ranked[:MOST_LISTED]]
    return "\n".join([f"{worst} comes first: lines {', '.join(lines)}.", *listed, looked])
