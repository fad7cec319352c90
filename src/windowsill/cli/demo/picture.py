"""What a person sees of the demo: the live picture of the window, and the report at the end."""

from __future__ import annotations

import shlex
import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from windowsill.budget import budget_for
from windowsill.cli.demo.agent import Run
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
            _facts(
                {
                    "messages in the window": f"{call.turn - report.hidden:,}",
                    "folded away": f"{report.hidden:,}",
                    "tool calls": f"{run.tools:,} of {run.calls:,}",
                }
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
        settings, view = session.settings, session.view
        task = view.task()
        fixed = sum(report.parts[part] for part in ("system", "tools", "framing"))
        fixed += view.tokens(view.items[task]) if task is not None else 0
        high, low = settings.high, settings.low
        budget = budget_for(session.model, budget=settings.budget, high=high, low=low, fixed=fixed)
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


def _facts(facts: dict[str, str]) -> Text:
    line = Text()
    for name, value in facts.items():
        line.append(f"{name} ", style="dim").append(value, style="bold").append("    ")
    return line


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


def print_report(data: dict[str, Any], run: Run, console: Console) -> None:
    """Print the report for a person."""
    folds, messages = run.folds, data["messages"]
    hidden = f"{messages['hidden']:,} of {messages['written']:,} messages are folded away and kept on disk"
    most = max(folds, key=lambda fold: fold.before - fold.after, default=None)
    some = [*([most] if most is not None and most not in folds[-3:] else []), *folds[-3:]]
    sections: dict[str, Sequence[Text | Table]] = {
        "What the agent found": [Text(f"  {line}") for line in data["answer"].splitlines()],
        f"What was folded: {len(folds)} folds, {hidden}": [_rows(("", describe(fold), fold.reason) for fold in some)],
        f"What it cost: {run.tools:,} tool calls through {data['window']:,} tokens of {data['model']}": [_costs(data)],
        "What was checked, on the session read back from disk": [
            _rows(("  ok" if check["ok"] else "  FAILED", check["name"], check["seen"]) for check in data["checks"])
        ],
        "Look closer": [Text(f"  {line}") for line in commands(data["session"], data["store"], folds)],
    }
    for heading, lines in sections.items():
        console.print()
        console.print(Text(heading, style="bold"))
        for line in lines:
            # Never wrapped: a command broken over two lines could not be copied.
            console.print(line, soft_wrap=isinstance(line, Text))


def commands(session: str, place: str, folds: Sequence[FoldMade]) -> list[str]:
    """Return the commands that show more of the session."""
    called = Path(sys.argv[0])
    found = shutil.which("windowsill") is not None or called.name != "windowsill"
    program = "windowsill" if found else shlex.quote(str(called))
    where, store = shlex.quote(session), f"--store {shlex.quote(place)}"
    unfold = [f"{program} sessions unfold {where} {folds[-1].id} {store}"] if folds else []
    return [*(f"{program} sessions {verb} {where} {store}" for verb in ("show", "verify")), *unfold]


def _costs(data: dict[str, Any]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("", min_width=30)
    sides = [data["with_windowsill"], data["sending_everything"]]
    for title in ("with Windowsill", "sending everything"):
        table.add_column(title, justify="right")
    table.add_row("  model calls", *[f"{data['model_calls']:,}"] * 2)
    table.add_row("  largest request, tokens", *[f"{side['peak_tokens']:,}" for side in sides])
    table.add_row("  tokens sent", *[f"{side['tokens_sent']:,}" for side in sides])
    table.add_row("  of them served by the cache", *[f"{side['cache_hits']:.1%}" for side in sides])
    table.add_row("  list price, answers included", *[f"${side['cost_dollars']:,.2f}" for side in sides])
    table.add_row("  cost against everything", f"{data['cost_ratio']:.2f}", "1.00", style="bold")
    return table


def _rows(rows: Iterable[tuple[str, str, str]]) -> Table:
    """Print three columns of plain text; the last one wraps."""
    table = Table(box=None, show_header=False, pad_edge=False)
    for wrapped in (False, False, True):
        table.add_column(no_wrap=not wrapped)
    for first, *others in rows:
        style = "green" if first == "  ok" else "bold red"
        table.add_row(Text(first, style=style), *map(Text, others))
    return table
