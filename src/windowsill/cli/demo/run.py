"""The demo's run: the agent's work through a small window, the checks of the session it left, and the report."""

from __future__ import annotations

import itertools
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec

import windowsill
from windowsill import providers
from windowsill.cli.demo.agent import Workbench, conversation, request
from windowsill.compose.payload import FoldMade
from windowsill.errors import InputError
from windowsill.replay.costs import CostSimulation
from windowsill.replay.evidence import KeptEvidence
from windowsill.replay.recordings import Recording
from windowsill.replay.report import Tally, share
from windowsill.replay.walk import ModelCall, ReplayOptions, Walk
from windowsill.session import Session
from windowsill.store import Store, database_file, server_address

MODEL = "claude-sonnet-5"
MAX_TOKENS = 1_024
"""The provider wants a limit stated; the agent's answers are short."""

SOURCE = Path(windowsill.__file__).resolve().parent


class Run:
    """The agent's work, sent through a window, and what it adds up to so far."""

    def __init__(self, calls: int, window: int, *, id: str = "demo", store: Store | None = None) -> None:
        given = {"system": request()["system"], "tools": request()["tools"]}
        messages = conversation(Workbench(SOURCE), calls)
        body = {"model": MODEL, "max_tokens": MAX_TOKENS, **given, "messages": messages}
        made = Recording(id=id, request=providers.read_request(body, format="anthropic"))
        self.walk = Walk(made, ReplayOptions(window=window), store=store, clock=time.time)
        self.window, self.calls, self.tools = window, calls, 0
        """The most tokens of a request, the tool calls in all, and those so far."""
        self.messages = made.request.messages
        self.tally, self.folds = Tally(), list[FoldMade]()
        self.body = b""
        """The last request."""
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
