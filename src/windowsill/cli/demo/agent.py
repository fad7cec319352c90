"""The demo's agent: a script instead of a model, so that every run over the same source is the same.

It works like a real one: it says a little, calls one to three real tools, looks at what they answered, and goes on.
"""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from windowsill import providers
from windowsill.compose.payload import FoldMade
from windowsill.replay.costs import CostSimulation
from windowsill.replay.evidence import KeptEvidence
from windowsill.replay.recordings import Recording
from windowsill.replay.report import Tally
from windowsill.replay.walk import ModelCall, Walk

FIRST_WISH, WISH_EVERY = 12, 40
"""Tool calls before the user first says something new, and between two such wishes."""

LINES, MOST_LISTED, MOST_HITS = 22, 5, 25
"""Lines read of a file at once, files that the answer lists, and hits that a search shows."""

MAX_TOKENS = 1_024
"""The provider wants a limit stated; the agent's answers are short."""


@cache
def request() -> dict[str, Any]:
    """Return what the agent is told: the system prompt, the task, the tools, and what the user adds on the way."""
    return tomllib.loads(resources.files(__package__).joinpath("request.toml").read_text("utf-8"))


class Outcome(NamedTuple):
    """The answer of a tool."""

    text: str
    failed: bool = False


class Workbench:
    """The tools over one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()

    @cached_property
    def files(self) -> dict[str, list[str]]:
        """The lines of each source file, in the order of their paths."""
        found = (path for path in self.folder.rglob("*") if path.suffix in {".py", ".sql", ".toml"} and path.is_file())
        texts = {path.relative_to(self.folder).as_posix(): path.read_text(encoding="utf-8") for path in found}
        return {path: texts[path].splitlines() for path in sorted(texts)}

    def use(self, tool: str, input: dict[str, Any]) -> Outcome:
        """Run a tool; what goes wrong is an answer too."""
        tools: dict[str, Callable[..., list[str]]]
        tools = {"list_files": self._list, "read_file": self._read, "grep": self._grep}
        try:
            return Outcome("\n".join(tools[tool](**input)) or "nothing found")
        except (KeyError, TypeError, re.error) as error:
            return Outcome(f"{tool} failed: {error}", failed=True)

    def _list(self, pattern: str) -> list[str]:
        wanted = {path.relative_to(self.folder).as_posix() for path in self.folder.glob(pattern)}
        return [f"{len(lines):>5}  {path}" for path, lines in self.files.items() if path in wanted]

    def _read(self, path: str, first: int = 1, last: int | None = None) -> list[str]:
        return [f"{number:>4}  {line}" for number, line in enumerate(self.files[path][first - 1 : last], first)]

    def _grep(self, pattern: str, path: str = "", limit: int = MOST_HITS) -> list[str]:
        wanted = re.compile(pattern)
        files = ((file, lines) for file, lines in self.files.items() if file.startswith(path))
        numbered = ((file, number, line) for file, lines in files for number, line in enumerate(lines, 1))
        hits = [f"{file}:{number}: {line.strip()}" for file, number, line in numbered if wanted.search(line)]
        return [*hits[:limit], *([f"... and {len(hits) - limit} more"] if len(hits) > limit else [])]


class Call(NamedTuple):
    """A tool the agent uses."""

    tool: str
    input: dict[str, Any]


class Turn(NamedTuple):
    """One answer of the agent: text and calls; without calls, `wish` is what the user says next."""

    text: str
    calls: tuple[Call, ...] = ()
    wish: str = ""


def script(files: dict[str, list[str]], calls: int) -> Generator[Turn, Sequence[Outcome], None]:
    """Yield the agent's turns over these files, with so many tool calls in all. Send in the outcomes of the tools."""
    raised: dict[str, list[str]] = {}
    work, wishes = _work(files), iter(request()["wishes"])
    done, due = 0, FIRST_WISH
    while done < calls:
        path, turn = next(work)
        turn = turn._replace(calls=turn.calls[: calls - done])
        outcomes = yield turn
        if path:
            raised[path] = re.findall(r":(\d+): raise ", outcomes[0].text)
        done += len(turn.calls)
        if due <= done < calls and (wish := next(wishes, "")):
            due += WISH_EVERY
            yield Turn(f"So far: {len(raised):,} files with {sum(map(len, raised.values())):,} errors.", wish=wish)
    yield Turn(_answer(raised))


def _work(files: dict[str, list[str]]) -> Iterator[tuple[str, Turn]]:
    """Make turns without an end: a survey, then file after file; each with the path that its first call searches."""
    largest = max(files, key=lambda path: sum(map(len, files[path])))
    first = Call("list_files", {"pattern": "**/*.py"})
    yield "", Turn("I begin with what there is.", (first, Call("grep", {"pattern": "^import", "limit": 12})))
    errors, missing = _read("errors.py", 1, 60), Call("read_file", {"path": "errors/remedies.py"})
    yield "", Turn("Errors are defined in one place; I expect their remedies next to them.", (errors, missing))
    yield "", Turn("There is no such file. I look for the places.", (Call("grep", {"pattern": r"\braise \w+\("}),))
    whole = Call("read_file", {"path": largest})
    yield "", Turn(f"Before the files one by one, the largest of all, {largest}: it may hide more than code.", (whole,))
    python = [path for path in files if path.endswith(".py")]
    for start, (number, path) in itertools.product(range(1, 200, LINES), enumerate(python)):
        search = Call("grep", {"pattern": r"^\s*raise \w+", "path": path, "limit": 40})
        users = Call("grep", {"pattern": rf"import .*{Path(path).stem}", "limit": 8})
        # Every third file is asked about from three sides at once, as an agent does that has been told to.
        calls = (search, _read(path, start, start + LINES - 1), users)[: 3 if number % 3 == 0 else 2]
        yield path, Turn(f"Next is {path}: what does it raise? I read from line {start}.", calls)
    yield from _work(files)


def _read(path: str, first: int, last: int) -> Call:
    return Call("read_file", {"path": path, "first": first, "last": last})


def _answer(raised: dict[str, list[str]]) -> str:
    looked = f"I looked at {len(raised):,} files with {sum(map(len, raised.values())):,} raised errors."
    ranked = sorted(raised.items(), key=lambda case: (-len(case[1]), case[0]))
    ranked = [(path, lines) for path, lines in ranked if lines and path != "errors.py"]
    if not ranked:
        return looked
    worst, lines = ranked[0]
    listed = [f"- {path}: {len(found)}" for path, found in ranked[:MOST_LISTED]]
    return "\n".join([f"{worst} comes first: lines {', '.join(lines)}.", *listed, looked])


def conversation(bench: Workbench, calls: int) -> list[dict[str, Any]]:
    """Let the agent work with so many tool calls; return the messages in Anthropic's form."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": request()["task"]}]
    ids = (f"toolu_demo_{number:05d}" for number in itertools.count(1))
    turns = script(bench.files, calls)
    turn = next(turns)
    while True:
        uses = [{"type": "tool_use", "id": next(ids), "name": call.tool, "input": call.input} for call in turn.calls]
        messages.append({"role": "assistant", "content": [{"type": "text", "text": turn.text}, *uses]})
        outcomes = [bench.use(call.tool, call.input) for call in turn.calls]
        results = [
            {"type": "tool_result", "tool_use_id": use["id"], "content": text, **({"is_error": True} if failed else {})}
            for use, (text, failed) in zip(uses, outcomes, strict=True)
        ]
        if not results and not turn.wish:
            return messages
        messages.append({"role": "user", "content": results or turn.wish})
        turn = turns.send(outcomes)


def recording(id: str, model: str, messages: list[dict[str, Any]]) -> Recording:
    """Make a recording of the agent's work, to be walked through as it would have sent it."""
    given = {"system": request()["system"], "tools": request()["tools"]}
    body = {"model": model, "max_tokens": MAX_TOKENS, **given, "messages": messages}
    return Recording(id=id, request=providers.read_request(body, format="anthropic"))


class Run:
    """A walk through the agent's work, and what it adds up to so far."""

    def __init__(self, walk: Walk, calls: int) -> None:
        self.walk = walk
        self.calls = calls
        """Tool calls in all,"""
        self.tools = 0
        """and so far."""
        self.tally = Tally()
        self.folds: list[FoldMade] = []
        self.everything: list[int] = []
        """Tokens of each request with everything in it."""
        self.body = b""
        """The last request."""
        self._simulation = CostSimulation(walk.model)

    def moments(self) -> Iterator[ModelCall]:
        """Work to the end; yield each request with the agent's answer to it."""
        for call in self.walk.calls():
            self.tally.count(call, self._simulation.cost(call), KeptEvidence())
            self.folds += call.report.folds
            self.everything.append(call.everything)
            self.body = call.body
            yield call
            self.tools += len(call.answer.calls)
