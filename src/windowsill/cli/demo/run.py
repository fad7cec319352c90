"""The demo's run: a scripted agent works through a small window; then the checks of its session, and the report.

The script stands for a model, so that every run over the same source is the same. It works like a real one: it says a
little, calls one to three real tools, looks at what they answered, and goes on.
"""

from __future__ import annotations

import fnmatch
import itertools
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec

import windowsill
from windowsill import providers
from windowsill.compose.payload import FoldMade
from windowsill.errors import InputError
from windowsill.replay.costs import CostSimulation
from windowsill.replay.evidence import KeptEvidence
from windowsill.replay.recordings import Recording
from windowsill.replay.report import Tally, share
from windowsill.replay.walk import ModelCall, ReplayOptions, Walk
from windowsill.session import Session
from windowsill.store import Store, database_file, server_address
from windowsill.text import load_table

MODEL = "claude-sonnet-5"
MAX_TOKENS = 1_024
"""The provider wants a limit stated; the agent's answers are short."""

FIRST_WISH, WISH_EVERY = 12, 40
"""Tool calls before the user first says something new, and between two such wishes."""

LINES, MOST_LISTED, MOST_HITS = 22, 5, 25
"""Lines read of a file at once, files that the answer lists, and hits that a search shows."""


def request() -> dict[str, Any]:
    """Return what the agent is told: the system prompt, the task, the tools, and what the user adds on the way."""
    return load_table("windowsill.cli.demo", "request.toml")


class Workbench:
    """The tools over the source files of one folder."""

    def __init__(self, folder: Path) -> None:
        found = (path for path in folder.rglob("*") if path.suffix in {".py", ".sql", ".toml"} and path.is_file())
        texts = {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in found}
        self.files = {path: texts[path].splitlines() for path in sorted(texts)}

    def answer(self, use: dict[str, Any]) -> dict[str, Any]:
        """Run a tool and return its result; what goes wrong is a result too."""
        tools: Any = {"list_files": self._list, "read_file": self._read, "grep": self._grep}
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
    found = sorted((-len(lines), path) for path, lines in raised.items() if lines and path != "errors.py")
    first = [f"{path} comes first: lines {', '.join(raised[path])}." for _, path in found[:1]]
    return "\n".join([*first, *(f"- {path}: {-count}" for count, path in found[:MOST_LISTED]), looked])


class Run:
    """The agent's work, sent through a window, and what it adds up to so far."""

    def __init__(self, calls: int, window: int, *, id: str = "demo", store: Store | None = None) -> None:
        given = {"system": request()["system"], "tools": request()["tools"]}
        messages = conversation(Workbench(Path(windowsill.__file__).resolve().parent), calls)
        body = {"model": MODEL, "max_tokens": MAX_TOKENS, **given, "messages": messages}
        made = Recording(id=id, request=providers.read_request(body, format="anthropic"))
        self.walk = Walk(made, ReplayOptions(window=window), store=store, clock=time.time)
        self.window, self.calls, self.tools, self.body = window, calls, 0, b""
        """The most tokens of a request, the tool calls in all and so far, and the last request."""
        self.messages = made.request.messages
        self.tally, self.folds = Tally(), list[FoldMade]()
        self._simulation = CostSimulation(self.walk.model)

    def moments(self) -> Iterator[ModelCall]:
        """Work to the end; yield each request with the agent's answer to it."""
        for call in self.walk.calls():
            self.tally.count(call, self._simulation.cost(call), KeptEvidence())
            self.folds += call.report.folds
            self.body = call.body
            yield call
            self.tools += len(call.answer.calls)

    def finish(self) -> None:
        """Work to the end."""
        for _ in self.moments():
            pass


def run_demo(
    *, calls: int, window: int, store: str | None, watch: Callable[[Run], None] = Run.finish
) -> tuple[dict[str, Any], Run]:
    """Run the agent, then close the session, open it again and check it; return the report, and the run."""
    started = time.monotonic()
    kept = choose_place(store, Path.cwd())
    with tempfile.TemporaryDirectory(prefix="windowsill-demo-") if kept is None else nullcontext(kept) as place:
        opened = windowsill.open_store(place)
        names = ("demo" if number == 1 else f"demo-{number}" for number in itertools.count(1))
        # Taken in the same step as found free: two demos at once never share a session.
        name = next(name for name in names if opened.create(name, at=time.time()))
        run = Run(calls, window, id=name, store=opened)
        with run.walk.session:
            watch(run)
        opened.close()
        with Session.open(name, store=place) as again:
            return report(run, again, kept, started), run


def choose_place(stated: str | None, cwd: Path) -> str | None:
    """Return where the session is kept: the stated place, or `.windowsill/` here; `None` if it is not to stay."""
    if stated is None:
        local = cwd / ".windowsill"
        return str(local) if local.is_dir() else None
    if not server_address(stated, os.environ) and database_file(stated, os.environ, cwd) is None:
        raise InputError(
            "the demo reads its session back from disk, and this store is in memory only",
            remedy="give --store a folder, or leave it out",
        )
    return stated


def check(run: Run, session: Session) -> list[dict[str, Any]]:
    """Check every promise of a finished run; `session` is the same session, opened again."""
    figures, defects = run.tally.figures(), run.tally.defects
    first = f"; {defects[0].problems[0]}" if defects else ""
    added, stored = [message.raw for message in run.messages], [message.raw for message in session.messages()]
    same = sum(one == other for one, other in zip(added, stored, strict=False))
    other = f", {len(stored):,} found" if added != stored else ""
    broken = session.verify()
    requests = [message.text for message in run.messages if message.role == "user" and message.text]
    quoted = sum(msgspec.json.encode(text).strip(b'"') in run.body for text in requests)
    peak = figures.peak_tokens
    checks = [
        ("every request fits", peak <= run.window, f"the largest had {peak:,} of {run.window:,} tokens"),
        ("every request is valid", not defects, f"{figures.calls:,} checked, {len(defects)} problems{first}"),
        ("nothing is lost", added == stored, f"{len(added):,} messages written, {same:,} read back equal{other}"),
        ("the journal is whole", not broken, broken[0] if broken else "every entry has the hash it was sealed with"),
        ("the user's words stay", quoted == len(requests), f"{quoted} of {len(requests)} are in the last request"),
        ("what is hidden is explained", *_explain(added, session)),
    ]
    return [{"name": name, "ok": ok, "seen": seen} for name, ok, seen in checks]


def _explain(added: Sequence[bytes | None], session: Session) -> tuple[bool, str]:
    """Check one message that the window does not show: it can be read, and the session says why it is hidden."""
    visible = {item.id for item in session.view.items}
    ids = [message.id for message in session.messages()]
    hidden = [(id, raw) for id, raw in zip(ids, added, strict=False) if id not in visible]
    if not hidden:
        return True, "nothing had to be hidden"
    id, raw = hidden[len(hidden) // 2]
    found = session.explain(id)
    return session.message(id).raw == raw and not found.visible and bool(found.folds), f"{id} {found.why}"


def report(run: Run, session: Session, place: str | None, started: float) -> dict[str, Any]:
    """Return the report for a program."""
    figures, checks = run.tally.figures(), check(run, session)
    every = [call.everything for call in run.tally.calls]
    ours = (figures.peak_tokens, figures.tokens_sent, figures.cache_hit_share, figures.dollars)
    everything = (max(every), sum(every), share(sum(every[:-1]), sum(every)), figures.dollars_everything)
    names = ("peak_tokens", "tokens_sent", "cache_hits", "cost_dollars")
    return {
        "session": session.id,
        "store": place,
        "model": MODEL,
        "window": run.window,
        "model_calls": figures.calls,
        "tool_calls": run.tools,
        "with_windowsill": dict(zip(names, ours, strict=True)),
        "sending_everything": dict(zip(names, everything, strict=True)),
        "cost_ratio": figures.cost_ratio,
        "messages": {"written": len(run.messages), "hidden": sum(item.hides for item in session.view.items)},
        "folds": msgspec.to_builtins(run.folds),
        "answer": run.messages[-1].text,
        "checks": checks,
        "ok": all(each["ok"] for each in checks),
        "seconds": round(time.monotonic() - started, 2),
    }
