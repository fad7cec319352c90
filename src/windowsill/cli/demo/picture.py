"""The demo on a terminal: the live picture of the window, and the report at the end."""

from __future__ import annotations

import shlex
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.live import Live
from rich.table import Column, Table
from rich.text import Text

from windowsill.cli.demo.run import MAX_TOKENS, Run
from windowsill.cli.output import on_terminal, print_table
from windowsill.compose.payload import FoldMade, Report
from windowsill.messages import ToolUse
from windowsill.replay.walk import ModelCall
from windowsill.text import count_of

WIDEST, MARGIN = 100, 1
"""Columns beyond which a bar is no easier to read, and those left free at each side."""

FOLDS_SHOWN, CALLS_SHOWN = 4, 3
"""Lines kept for folds and calls, also while there are fewer: a picture that jumps is hard to follow."""

SHOWTIME, LONGEST_PAUSE, FOLD_PAUSE = 2.5, 0.05, 3
"""Seconds all pauses take together, the longest after one tool call, and how much longer it is after a fold."""

PARTS = {
    "system": ("blue", "S"),
    "tools": ("cyan", "T"),
    "summaries": ("magenta", "~"),
    "messages": ("green", "#"),
    "free": ("bright_black", "."),
}
"""The colour of each part of the window, and its letter where there is no colour, or no block characters."""


def watch(run: Run) -> None:
    """Let a run work with the picture on a terminal, and silently in a pipe."""
    console = Console(highlight=False)
    if not on_terminal() or console.is_dumb_terminal:
        run.finish()
        return
    with Live(console=console, refresh_per_second=15, transient=True) as live:
        for call in run.moments():
            live.update(paint(console, run, call))
            pause = min(LONGEST_PAUSE, SHOWTIME / run.calls) * (FOLD_PAUSE if call.report.folds else 1)
            time.sleep(pause * max(1, len(call.answer.calls)))


def paint(console: Console, run: Run, call: ModelCall) -> Table:
    """Paint the window at a request, what came before it, and what the agent answered to it."""
    width, report, answer = min(WIDEST, console.width) - 2 * MARGIN, call.report, call.answer
    coloured = console.encoding.startswith("utf") and not console.no_color
    sizes, ratio = [each.tokens for each in run.tally.calls], run.tally.figures().cost_ratio or 1.0
    parts = report.parts
    # Framing is what the provider puts around the tools.
    shares = {**parts, "tools": parts["tools"] + parts["framing"], "free": report.limit - report.tokens}
    bar, legend, reached = Text(), Text(), 0
    for part, (colour, letter) in PARTS.items():
        ink = letter if not coloured else "░" if part == "free" else "█"
        reached += shares[part]
        bar.append(ink * (round(reached / report.limit * width) - len(bar)), colour)
        legend.append(ink, colour).append(f" {part} {shares[part]:,}  ")
    levels = "▁▂▃▄▅▆▇█" if coloured else "12345678"
    history = "".join(levels[min(7, size * 8 // report.limit)] for size in sizes[-width:])
    counts = f"messages in the window {call.turn - report.hidden:,}    folded away {report.hidden:,}"
    facts = Text(f"{counts}    tool calls {run.tools:,} of {run.calls:,}", "dim")
    facts.highlight_regex(r"[\d,]+( of [\d,]+)?", "bold not dim")
    # The reason speaks of tokens already, and the line is short.
    latest = ((describe(fold).removesuffix(" tokens"), fold.reason) for fold in run.folds[-FOLDS_SHOWN:])
    folds = [Text(f"  {fold}", "magenta").append(f"  {reason}", "dim") for fold, reason in latest]
    uses = [Text(f"  {_describe_use(use)}", "yellow") for use in answer.calls]
    picture = Table.grid(Column(width=MARGIN), Column(width=width, no_wrap=True, overflow="ellipsis"))
    lines: list[Text | str] = [
        _ends("windowsill demo", "a scripted agent reads Windowsill's own source", width),
        "",
        _ends(f"the window: {report.tokens:,} of {report.limit:,} tokens", f"request {len(sizes):,}", width),
        *(bar, bar, _marks(run, report, width), legend, ""),
        _ends("size of each request", f"{ratio:.2f} of the cost of sending everything", width, style=""),
        *(Text(history, "green"), "", facts, "", Text("folded, and kept on disk", "bold")),
        *folds,
        *[""] * (FOLDS_SHOWN + 1 - len(folds)),
        Text(answer.text.partition("\n")[0], "italic"),
        *uses,
        *[""] * (CALLS_SHOWN - len(uses)),
    ]
    for line in lines:
        picture.add_row("", line)
    return picture


def _marks(run: Run, report: Report, width: int) -> Text:
    """Put the marks of a request under the bar: they leave room above what is never folded, the task included."""
    session = run.walk.session
    view, task = session.view, session.view.task()
    fixed = sum(report.parts[part] for part in ("system", "tools", "framing"))
    fixed += view.tokens(view.items[task]) if task is not None else 0
    budget = session.composer.budget(fixed, max_output=MAX_TOKENS)
    lower, upper = (min(width - 1, mark * width // report.limit) for mark in (budget.low, budget.high))
    left = f"low {budget.low:,} ^".rjust(lower + 1)
    return Text(left + f" high {budget.high:,} ^".rjust(upper + 1 - len(left)), "dim")


def _ends(left: str, right: str, width: int, style: str = "bold") -> Text:
    """Put two texts at the two ends of a line."""
    return Text(left, style).append(" " * max(2, width - len(left) - len(right))).append(right, style="dim")


def _describe_use(use: ToolUse) -> str:
    lines = f":{use.input['first']}-{use.input['last']}" if "first" in use.input else ""
    return f"{use.name} {use.input.get('path') or use.input.get('pattern')}{lines}"


def describe(fold: FoldMade) -> str:
    """Describe a fold in one line."""
    return f"{fold.id} {fold.kind}: {count_of(fold.messages, 'message')}, {fold.before:,} -> {fold.after:,} tokens"


def print_report(data: dict[str, Any], run: Run) -> None:
    """Print the report for a person."""
    folds, messages, sides = run.folds, data["messages"], (data["with_windowsill"], data["sending_everything"])
    hidden = f"{messages['hidden']:,} of {messages['written']:,} messages are folded away and kept on disk"
    largest = max(folds, key=lambda fold: fold.before - fold.after, default=None)
    some = [f"{describe(fold)}; {fold.reason}" for fold in folds if fold is largest or fold in folds[-3:]]
    _print_part("What the agent found", data["answer"].splitlines())
    _print_part(f"What was folded: {len(folds)} folds, {hidden}", some)
    _print_part(f"What it cost: {run.tools:,} tool calls through {data['window']:,} tokens of {data['model']}")
    costs = {
        "model calls": [data["model_calls"]] * 2,
        "largest request, tokens": [side["peak_tokens"] for side in sides],
        "tokens sent": [side["tokens_sent"] for side in sides],
        "of them served by the cache": [f"{side['cache_hits']:.1%}" for side in sides],
        "list price, answers included": [f"${side['cost_dollars']:,.2f}" for side in sides],
        "cost against everything": [data["cost_ratio"], 1.0],
    }
    print_table([{"": name, "with Windowsill": ours, "everything": other} for name, (ours, other) in costs.items()])
    _print_part("What was checked, on the session read back from disk")
    verdicts = [("ok" if each["ok"] else "FAILED", each) for each in data["checks"]]
    print_table([{"": verdict, "check": each["name"], "seen": each["seen"]} for verdict, each in verdicts])
    _print_part("Look closer", commands(data["session"], data["store"], folds))


def _print_part(title: str, lines: Sequence[str] = ()) -> None:
    click.secho(f"\n{title}", bold=True)
    for line in lines:
        click.echo(f"  {line}")


def commands(session: str, place: str | None, folds: Sequence[FoldMade]) -> list[str]:
    """Return the commands that show more of the session, or the one that keeps it."""
    found = shutil.which("windowsill") is not None or Path(sys.argv[0]).name != "windowsill"
    program = "windowsill" if found else shlex.quote(sys.argv[0])
    if place is None:
        return [f"{program} demo --store demo-sessions    # keeps the session in that folder"]
    where, store = shlex.quote(session), f"--store {shlex.quote(place)}"
    unfold = [f"{program} sessions unfold {where} {folds[-1].id} {store}"] if folds else []
    return [*(f"{program} sessions {verb} {where} {store}" for verb in ("show", "verify")), *unfold]
