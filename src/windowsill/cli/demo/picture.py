"""The demo on a terminal: the live picture of the window, and the report at the end."""

from __future__ import annotations

import shlex
import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console, Group
from rich.text import Text

from windowsill.cli.demo.agent import Run
from windowsill.cli.output import print_table
from windowsill.compose.payload import FoldMade, Report
from windowsill.messages import ToolUse
from windowsill.replay.walk import ModelCall

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

LEVELS = "▁▂▃▄▅▆▇█"


def describe(fold: FoldMade) -> str:
    """Describe a fold in one line."""
    messages = "1 message" if fold.messages == 1 else f"{fold.messages:,} messages"
    return f"{fold.id} {fold.kind}: {messages}, {fold.before:,} -> {fold.after:,} tokens"


class Picture:
    """Paints the requests of a run."""

    def __init__(self, console: Console, run: Run) -> None:
        self._console = console
        self._run = run
        self._blocks = console.encoding.startswith("utf") and not console.no_color

    def pause(self, call: ModelCall) -> None:
        """Give the eye time for a request."""
        pause = min(LONGEST_PAUSE, SHOWTIME / self._run.calls) * (FOLD_PAUSE if call.report.folds else 1)
        time.sleep(pause * max(1, len(call.answer.calls)))

    def paint(self, call: ModelCall) -> Group:
        """Paint the window at a request, what came before it, and what the agent answered to it."""
        width = min(WIDEST, self._console.width) - 2 * MARGIN
        report, run = call.report, self._run
        sizes, ratio = [each.tokens for each in run.tally.calls], run.tally.figures().cost_ratio or 1.0
        shares = {"free": report.limit - report.tokens, **report.parts}
        # Framing is what the provider puts around the tools.
        shares["tools"] += shares.pop("framing", 0)
        # The reason speaks of tokens already, and the line is short.
        folds = [
            Text(f"  {describe(fold).removesuffix(' tokens')}", style="magenta").append(f"  {fold.reason}", style="dim")
            for fold in run.folds
        ]
        lines = [
            _ends("windowsill demo", "a scripted agent reads Windowsill's own source", width),
            Text(),
            _ends(f"the window: {report.tokens:,} of {report.limit:,} tokens", f"request {len(sizes):,}", width),
            *[self._bar(shares, report.limit, width)] * 2,
            _marks(*self._water_marks(report), report.limit, width),
            self._legend(shares),
            Text(),
            _ends("size of each request", f"{ratio:.2f} of the cost of sending everything", width, style=""),
            self._history(sizes[-width:], report.limit),
            Text(),
            Text.assemble(
                *_fact("messages in the window", f"{call.turn - report.hidden:,}"),
                *_fact("folded away", f"{report.hidden:,}"),
                *_fact("tool calls", f"{run.tools:,} of {run.calls:,}"),
            ),
            Text(),
            Text("folded, and kept on disk", style="bold"),
            *_last(folds, FOLDS_SHOWN),
            Text(),
            Text(call.answer.text.partition("\n")[0], style="italic"),
            *_last([Text(f"  {_described(use)}", style="yellow") for use in call.answer.calls], CALLS_SHOWN),
        ]
        return Group(*[_fit(line, width) for line in lines])

    def _water_marks(self, report: Report) -> tuple[int, int]:
        """Return the marks of this request; they leave room above what is never folded, the task included."""
        session = self._run.walk.session
        view = session.view
        task = view.task()
        fixed = sum(report.parts[part] for part in ("system", "tools", "framing"))
        fixed += view.tokens(view.items[task]) if task is not None else 0
        budget = session.composer.budget(fixed)
        return budget.low, budget.high

    def _ink(self, part: str) -> str:
        if not self._blocks:
            return PARTS[part][1]
        return "░" if part == "free" else "█"

    def _bar(self, shares: dict[str, int], limit: int, width: int) -> Text:
        bar = Text()
        filled = reached = 0
        for part, (color, _) in PARTS.items():
            reached += shares[part]
            stop = min(width, round(reached / limit * width))
            bar.append(self._ink(part) * (stop - filled), style=color)
            filled = max(filled, stop)
        return bar

    def _legend(self, shares: dict[str, int]) -> Text:
        legend = Text()
        for part, (color, _) in PARTS.items():
            legend.append(self._ink(part), style=color).append(f" {part} {shares[part]:,}  ")
        return legend

    def _history(self, sizes: Sequence[int], limit: int) -> Text:
        levels = LEVELS if self._blocks else "12345678"
        return Text("".join(levels[min(7, size * 8 // limit)] for size in sizes), style="green")


def _ends(left: str, right: str, width: int, style: str = "bold") -> Text:
    """Put two texts at the two ends of a line."""
    line = Text(left, style=style).append(" " * max(2, width - len(left) - len(right)))
    return line.append(right, style="dim")


def _marks(low: int, high: int, limit: int, width: int) -> Text:
    """Put the low and the high mark under the bar, each label on its outer side."""
    lower, upper = (min(width - 1, mark * width // limit) for mark in (low, high))
    left = f"low {low:,} ^".rjust(lower + 1)
    return Text(left + " " * max(1, upper - len(left)) + f"^ high {high:,}", style="dim")


def _fact(name: str, value: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return (f"{name} ", "dim"), (f"{value}    ", "bold")


def _described(use: ToolUse) -> str:
    input = use.input
    lines = f":{input['first']}-{input['last']}" if "first" in input else ""
    return f"{use.name} {input.get('path') or input.get('pattern')}{lines}"


def _last(lines: Sequence[Text], count: int) -> list[Text]:
    """Return the last lines, and empty ones where there are fewer."""
    return [*lines[-count:], *[Text()] * (count - len(lines))]


def _fit(line: Text, width: int) -> Text:
    fitted = Text(" " * MARGIN, no_wrap=True, overflow="ellipsis").append_text(line)
    fitted.truncate(width + MARGIN, overflow="ellipsis")
    return fitted


def print_report(data: dict[str, Any], run: Run) -> None:
    """Print the report for a person."""
    folds, messages, sides = run.folds, data["messages"], (data["with_windowsill"], data["sending_everything"])
    hidden = f"{messages['hidden']:,} of {messages['written']:,} messages are folded away and kept on disk"
    most = max(folds, key=lambda fold: fold.before - fold.after, default=None)
    some = [*([most] if most is not None and most not in folds[-3:] else []), *folds[-3:]]
    _heading("What the agent found")
    _print_lines(data["answer"].splitlines())
    _heading(f"What was folded: {len(folds)} folds, {hidden}")
    _print_lines([f"{describe(fold)}; {fold.reason}" for fold in some])
    _heading(f"What it cost: {run.tools:,} tool calls through {data['window']:,} tokens of {data['model']}")
    costs: dict[str, Sequence[object]] = {
        "model calls": [data["model_calls"]] * 2,
        "largest request, tokens": [side["peak_tokens"] for side in sides],
        "tokens sent": [side["tokens_sent"] for side in sides],
        "of them served by the cache": [f"{side['cache_hits']:.1%}" for side in sides],
        "list price, answers included": [f"${side['cost_dollars']:,.2f}" for side in sides],
        "cost against everything": [data["cost_ratio"], 1.0],
    }
    print_table([{"": name, "with Windowsill": ours, "everything": other} for name, (ours, other) in costs.items()])
    _heading("What was checked, on the session read back from disk")
    verdicts = ((check, "ok" if check["ok"] else "FAILED") for check in data["checks"])
    print_table([{"": verdict, "check": check["name"], "seen": check["seen"]} for check, verdict in verdicts])
    _heading("Look closer")
    _print_lines(commands(data["session"], data["store"], folds))


def _heading(text: str) -> None:
    click.secho(f"\n{text}", bold=True)


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(f"  {line}")


def commands(session: str, place: str | None, folds: Sequence[FoldMade]) -> list[str]:
    """Return the commands that show more of the session, or the one that keeps it."""
    script = Path(sys.argv[0])
    found = shutil.which("windowsill") is not None or script.name != "windowsill"
    program = "windowsill" if found else shlex.quote(str(script))
    if place is None:
        return [f"{program} demo --store demo-sessions    # keeps the session in that folder"]
    where, store = shlex.quote(session), f"--store {shlex.quote(place)}"
    unfold = [f"{program} sessions unfold {where} {folds[-1].id} {store}"] if folds else []
    return [*(f"{program} sessions {verb} {where} {store}" for verb in ("show", "verify")), *unfold]
