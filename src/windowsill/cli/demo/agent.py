"""The demo's agent: a script instead of a model, so that every run over the same source says and does the same.

It works like a real one: it says a little, calls one to three tools, looks at what they answered, and goes on.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from windowsill import providers
from windowsill.budget import budget_for
from windowsill.compose.payload import FoldMade, Payload, Report
from windowsill.models import Model
from windowsill.models.prices import prices
from windowsill.replay.costs import request_cost
from windowsill.session import Session
from windowsill.tokens import Weight

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


class Side(msgspec.Struct):
    """The requests of one way to work, added up."""

    peak: int = 0
    sent: int = 0
    cached: int = 0
    cost: float = 0.0

    def add(self, tokens: int, cached: int, cost: float) -> None:
        """One more request, of which a prompt cache can serve `cached` tokens."""
        self.peak = max(self.peak, tokens)
        self.sent += tokens
        self.cached += cached
        self.cost += cost

    @property
    def hits(self) -> float:
        """The share of all tokens that a prompt cache can serve."""
        return self.cached / self.sent if self.sent else 0.0


class Tally:
    """The running totals of a demo."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.price = prices(model)
        self.fitted = Side()
        self.whole = Side()
        self.requests = 0
        self.tools = 0
        self.sizes: list[int] = []
        self.folds: list[FoldMade] = []
        self.problems: list[str] = []
        """What a provider would have refused."""
        self._whole_before = 0

    def request(self, report: Report, whole: int) -> None:
        """Count a request, and the one with everything in it that would have been sent instead."""
        self.requests += 1
        self.sizes.append(report.tokens)
        self.folds += report.folds
        self._add(self.fitted, report.tokens, report.stable)
        self._add(self.whole, whole, self._whole_before)
        self._whole_before = whole

    def _add(self, side: Side, tokens: int, stable: int) -> None:
        # A provider caches no prefix shorter than this.
        cached = stable if stable >= self.model.cache_minimum else 0
        side.add(tokens, cached, request_cost(self.price, self.model, tokens, cached))

    def answered(self, tokens: int) -> None:
        """Count an answer: it costs the same both ways."""
        for side in (self.fitted, self.whole):
            side.cost += tokens * self.price.output

    @property
    def ratio(self) -> float:
        """The cost against that of sending everything."""
        return self.fitted.cost / self.whole.cost if self.whole.cost else 1.0


def in_words(fold: FoldMade) -> str:
    """A fold as a person reads it."""
    messages = "1 message" if fold.messages == 1 else f"{fold.messages:,} messages"
    return f"{fold.id} {fold.kind}: {messages}, {fold.before:,} -> {fold.after:,} tokens"


_AUDITED = re.compile(r"(\S+): (\d+) raised, (\d+) without a remedy(.*)")

MOST_LISTED = 5
"""Files the answer lists: with its other lines it stays under ten, as the user wished."""


class Notes:
    """What the agent has found: for each file the errors it raises and the lines of those without a remedy."""

    def __init__(self) -> None:
        self.raised: dict[str, int] = {}
        self.bare: dict[str, list[int]] = {}

    def take(self, outcomes: Sequence[Outcome]) -> None:
        """Learn from what the audit script printed."""
        for outcome in outcomes:
            if (found := _AUDITED.fullmatch(outcome.text)) is not None:
                self.raised[found[1]] = int(found[2])
                self.bare[found[1]] = [int(line) for line in found[4].split()]

    def ranked(self) -> list[tuple[str, list[int]]]:
        """The files with cases, most first; the one that only defines errors is left out, as the user wished."""
        cases = [(path, lines) for path, lines in self.bare.items() if lines and path != "errors.py"]
        return sorted(cases, key=lambda case: (-len(case[1]), case[0]))

    def so_far(self) -> str:
        """An interim report."""
        cases = sum(len(lines) for _, lines in self.ranked())
        return f"So far: {number_of(len(self.bare), 'file')} checked, {number_of(cases, 'error')} without a remedy."

    def answer(self) -> str:
        """The last words: where the cases are and what comes first, in fewer than ten lines."""
        ranked = self.ranked()
        raised = number_of(sum(self.raised.values()), "raised error")
        looked = f"I looked at {number_of(len(self.bare), 'file')} with {raised}."
        if not ranked:
            return f"{looked} Every one of them states a remedy; no file needs work."
        worst, lines = ranked[0]
        listed = [f"- {path}: {len(found)}" for path, found in ranked[:MOST_LISTED]]
        rest = ranked[MOST_LISTED:]
        more = [f"- {number_of(len(rest), 'other file')}: {sum(len(found) for _, found in rest)}"] if rest else []
        where = ("lines " if len(lines) > 1 else "line ") + ", ".join(map(str, lines))
        return "\n".join([f"{worst} needs work first: {where}.", *listed, *more, looked])


def number_of(count: int, noun: str) -> str:
    """A count with its noun."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


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


Native: TypeAlias = dict[str, Any]


def said_by_user(words: str) -> Native:
    """What the user types."""
    return {"role": "user", "content": words}


def answer_of(turn: Turn, first: int) -> Native:
    """The agent's turn; its calls are numbered on from `first`."""
    text = {"type": "text", "text": turn.says}
    calls = [
        {"type": "tool_use", "id": _call_id(number), "name": call.tool, "input": call.input}
        for number, call in enumerate(turn.calls, first)
    ]
    return {"role": "assistant", "content": [text, *calls]}


def results_of(outcomes: Sequence[Outcome], first: int) -> Native:
    """What the tools answered to the calls from `first` on."""
    return {"role": "user", "content": [_result(outcome, number) for number, outcome in enumerate(outcomes, first)]}


def _result(outcome: Outcome, number: int) -> Native:
    result = {"type": "tool_result", "tool_use_id": _call_id(number), "content": outcome.text}
    return {**result, "is_error": True} if outcome.failed else result


def _call_id(number: int) -> str:
    return f"toolu_demo_{number:05d}"


FORMAT = "anthropic"

LONGEST_ANSWER = 1_024
"""The provider wants a limit stated; the agent's answers are short."""


class Moment(msgspec.Struct, frozen=True):
    """What there is to see after a request was composed."""

    report: Report
    turn: Turn
    """What the agent answered to it."""
    tally: Tally
    written: int
    """Messages in the session so far."""
    low: int
    high: int
    """The marks between which the window fills."""


class Added(msgspec.Struct, frozen=True):
    """A message as it was handed to the session: the bytes to compare with later."""

    id: str
    raw: bytes


class Run:
    """One agent at work in one session."""

    def __init__(self, session: Session, workbench: Workbench, calls: int) -> None:
        self.session = session
        self.workbench = workbench
        self.calls = calls
        self.tally = Tally(session.model)
        self.added: list[Added] = []
        self.words: list[str] = []
        """Everything the user said."""
        self.last: Payload | None = None
        self.answer = ""
        self._weight = Weight()

    def go(self, watch: Callable[[Moment], None]) -> None:
        """Work to the end; `watch` sees every request."""
        self._hear(TASK)
        turns = script(self.workbench.files, self.workbench.size, self.calls)
        turn = next(turns)
        while True:
            report = self._compose()
            watch(Moment(report, turn, self.tally, len(self.added), *self._marks(report)))
            first = self.tally.tools + 1
            self._add(answer_of(turn, first))
            self.tally.answered(self.session.view.tokens(self.session.view.items[-1]))
            outcomes = [self.workbench.use(call.tool, call.input) for call in turn.calls]
            self.tally.tools += len(outcomes)
            if outcomes:
                self._add(results_of(outcomes, first))
            elif turn.wish:
                self._hear(turn.wish)
            else:
                self.answer = turn.says
                return
            turn = turns.send(outcomes)

    def _compose(self) -> Report:
        payload = self.session.compose_sync(system=SYSTEM, tools=DEFINITIONS, params={"max_tokens": LONGEST_ANSWER})
        report = payload.report
        self.tally.request(report, _fixed(report) + self.session.view.tokens_of(self._weight))
        found = providers.get(FORMAT).validate(msgspec.json.decode(payload.body(FORMAT)))
        self.tally.problems += [f"request {self.tally.requests}: {problem}" for problem in found]
        self.last = payload
        return report

    def _marks(self, report: Report) -> tuple[int, int]:
        """The marks of this request; they leave room above what is never folded, the task included."""
        settings, view = self.session.settings, self.session.view
        task = view.task()
        held = view.tokens(view.items[task]) if task is not None else 0
        budget = budget_for(
            self.session.model,
            budget=settings.budget,
            high=settings.high,
            low=settings.low,
            fixed=_fixed(report) + held,
        )
        return budget.low, budget.high

    def _hear(self, words: str) -> None:
        self.words.append(words)
        self._add(said_by_user(words))

    def _add(self, message: Native) -> None:
        id = self.session.add(message)
        self.added.append(Added(id, msgspec.json.encode(message)))
        # The newest item is the message whole: the same scale then weighs both ways to work.
        self._weight = self._weight + self.session.view.items[-1].weight


def _fixed(report: Report) -> int:
    """Tokens of what every request has: system prompt, tools, and the framing around them."""
    return sum(report.parts[part] for part in ("system", "tools", "framing"))
