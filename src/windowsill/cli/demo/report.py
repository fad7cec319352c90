"""The demo's last words: what it cost, what was checked, and how to look closer."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from windowsill.cli.demo.checks import Check
from windowsill.cli.demo.running import Run
from windowsill.cli.demo.tally import Side, in_words
from windowsill.compose.payload import FoldMade

FOLDS_TOLD = 3
"""Folds told in words; the rest is one command away."""


class Result(msgspec.Struct, frozen=True):
    """A finished demo."""

    run: Run
    checks: tuple[Check, ...]
    place: str
    window: int
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether every promise was kept."""
        return all(check.ok for check in self.checks)

    @property
    def hidden(self) -> int:
        """Messages that the last request does not show."""
        return self.run.last.report.hidden if self.run.last is not None else 0


def as_data(result: Result) -> dict[str, Any]:
    """The report for a program."""
    run, tally = result.run, result.run.tally
    return {
        "session": run.session.id,
        "store": result.place,
        "model": run.session.settings.model,
        "window": result.window,
        "model_calls": tally.requests,
        "tool_calls": tally.tools,
        "with_windowsill": _side(tally.fitted),
        "sending_everything": _side(tally.whole),
        "cost_ratio": round(tally.ratio, 4),
        "messages": {"written": len(run.added), "hidden": result.hidden},
        "folds": [msgspec.to_builtins(fold) for fold in tally.folds],
        "answer": run.answer,
        "checks": [msgspec.to_builtins(check) for check in result.checks],
        "ok": result.ok,
        "seconds": round(result.seconds, 2),
    }


def _side(side: Side) -> dict[str, Any]:
    return {
        "peak_tokens": side.peak,
        "tokens_sent": side.sent,
        "cache_hits": round(side.hits, 4),
        "cost_dollars": round(side.cost, 6),
    }


def tell(result: Result, console: Console) -> None:
    """The report for a person."""
    run = result.run
    _heading(console, "What the agent found")
    _lines(console, run.answer.splitlines())
    folds = run.tally.folds
    hidden = f"{result.hidden:,} of {len(run.added):,} messages are folded away and kept on disk"
    _heading(console, f"What was folded: {len(folds)} folds, {hidden}")
    console.print(_rows(("", in_words(fold), fold.reason) for fold in _telling(folds)))
    through = f"through {result.window:,} tokens of {run.session.settings.model}"
    _heading(console, f"What it cost: {run.tally.tools:,} tool calls {through}")
    console.print(_costs(run))
    _heading(console, "What was checked, on the session read back from disk")
    console.print(_rows((_verdict(check), check.name, check.seen) for check in result.checks))
    _heading(console, "Look closer")
    _lines(console, closer(run.session.id, result.place, folds[-1].id if folds else None))


def _telling(folds: Sequence[FoldMade]) -> list[FoldMade]:
    """The fold that saved most, and the last ones, in their order."""
    most = max(folds, key=lambda fold: fold.before - fold.after, default=None)
    last = folds[-FOLDS_TOLD:]
    return [*([most] if most is not None and most not in last else []), *last]


def closer(session: str, place: str, fold: str | None) -> list[str]:
    """The commands that show more of the session."""
    program = _program()
    where = f"{shlex.quote(session)} --store {shlex.quote(place)}"
    unfold = [f"{program} sessions unfold {shlex.quote(session)} {fold} --store {shlex.quote(place)}"] if fold else []
    return [f"{program} sessions show {where}", f"{program} sessions verify {where}", *unfold]


def _program() -> str:
    """How this program is called from here: by its name when it is found, else by where it lies."""
    called = Path(sys.argv[0])
    if shutil.which("windowsill") is not None or called.name != "windowsill":
        return "windowsill"
    return shlex.quote(str(called))


def _heading(console: Console, words: str) -> None:
    console.print()
    console.print(Text(words, style="bold"))


def _lines(console: Console, lines: Sequence[str]) -> None:
    # Never wrapped: a command broken over two lines could not be copied.
    for line in lines:
        console.print(Text(f"  {line}"), soft_wrap=True)


def _costs(run: Run) -> Table:
    tally = run.tally
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("", min_width=30)
    table.add_column("with Windowsill", justify="right")
    table.add_column("sending everything", justify="right")
    sides = (tally.fitted, tally.whole)
    table.add_row("  model calls", *[f"{tally.requests:,}"] * 2)
    table.add_row("  largest request, tokens", *[f"{side.peak:,}" for side in sides])
    table.add_row("  tokens sent", *[f"{side.sent:,}" for side in sides])
    table.add_row("  of them served by the cache", *[f"{side.hits:.1%}" for side in sides])
    table.add_row("  list price, answers included", *[f"${side.cost:,.2f}" for side in sides])
    table.add_row("  cost against everything", f"{tally.ratio:.2f}", "1.00", style="bold")
    return table


def _rows(rows: Iterable[tuple[str | Text, str, str]]) -> Table:
    """Three columns of plain text; the last one wraps."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column()
    for first, second, third in rows:
        table.add_row(first, Text(second), Text(third))
    return table


def _verdict(check: Check) -> Text:
    return Text("  ok", style="green") if check.ok else Text("  FAILED", style="bold red")
