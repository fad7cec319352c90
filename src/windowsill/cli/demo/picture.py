"""The live picture of the window: what fills it, when it is folded, and what the agent does meanwhile."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType

import msgspec
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from windowsill.cli.demo.running import Moment
from windowsill.cli.demo.tally import in_words
from windowsill.compose.payload import FoldMade

WIDEST = 100
"""Columns beyond which a bar is no easier to read."""

MARGIN = 1
FOLDS_SHOWN = 4
CALLS_SHOWN = 3
"""Lines kept for folds and calls, also while there are fewer: a picture that jumps is hard to follow."""

FRAMES = 15
"""Frames a second: smooth to the eye, and cheap."""

SHOWTIME = 2.5
LONGEST_PAUSE = 0.05
"""Seconds all pauses take together, and the longest after one tool call: slow enough to follow."""

FOLD_PAUSE = 3
"""How much longer it waits after a fold."""


class Brush(msgspec.Struct, frozen=True):
    """How a part of the window is painted."""

    part: str
    color: str
    plain: str
    """The letter where there is no colour, or no block characters."""


BRUSHES = (
    Brush("system", "blue", "S"),
    Brush("tools", "cyan", "T"),
    Brush("summaries", "magenta", "~"),
    Brush("messages", "green", "#"),
    Brush("free", "bright_black", "."),
)

LEVELS = "▁▂▃▄▅▆▇█"


class Picture:
    """Paints moments on a terminal; enter it first."""

    def __init__(self, console: Console, calls: int) -> None:
        self.console = console
        self.calls = calls
        self.blocks = console.encoding.startswith("utf") and not console.no_color
        self._pause = min(LONGEST_PAUSE, SHOWTIME / calls)
        self._live = Live(console=console, refresh_per_second=FRAMES, transient=True)

    def __enter__(self) -> Picture:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def show(self, moment: Moment) -> None:
        """Paint a moment and give the eye time for it."""
        self._live.update(self.paint(moment))
        time.sleep(self._pause * (FOLD_PAUSE if moment.report.folds else 1) * max(1, len(moment.turn.calls)))

    def paint(self, moment: Moment) -> Group:
        """The picture of a moment."""
        width = min(WIDEST, self.console.width) - 2 * MARGIN
        report, tally = moment.report, moment.tally
        shares = {"free": report.limit - report.tokens, **report.parts}
        # Framing is what the provider puts around the tools.
        shares["tools"] += shares.pop("framing", 0)
        lines = [
            _pair("windowsill demo", "a scripted agent reads Windowsill's own source", width),
            Text(),
            _pair(f"the window: {report.tokens:,} of {report.limit:,} tokens", f"request {tally.requests:,}", width),
            *[self._bar(shares, report.limit, width)] * 2,
            _marks(moment.low, moment.high, report.limit, width),
            self._legend(shares),
            Text(),
            _pair("size of each request", f"{tally.ratio:.2f} of the cost of sending everything", width, dim=True),
            self._history(tally.sizes, report.limit, width),
            Text(),
            _facts(moment, self.calls),
            Text(),
            Text("folded, and kept on disk", style="bold"),
            *_padded([_fold_line(fold) for fold in tally.folds], FOLDS_SHOWN),
            Text(),
            Text(moment.turn.says.splitlines()[0], style="italic"),
            *_padded([Text(f"  {call}", style="yellow") for call in moment.turn.calls], CALLS_SHOWN),
        ]
        return Group(*[_fit(line, width) for line in lines])

    def _bar(self, shares: dict[str, int], limit: int, width: int) -> Text:
        bar = Text()
        filled = reached = 0
        for brush in BRUSHES:
            reached += shares[brush.part]
            stop = min(width, round(reached / limit * width))
            bar.append(self._ink(brush) * (stop - filled), style=brush.color)
            filled = max(filled, stop)
        return bar

    def _ink(self, brush: Brush) -> str:
        if not self.blocks:
            return brush.plain
        return "░" if brush.part == "free" else "█"

    def _legend(self, shares: dict[str, int]) -> Text:
        legend = Text()
        for brush in BRUSHES:
            legend.append(self._ink(brush), style=brush.color)
            legend.append(f" {brush.part} {shares[brush.part]:,}  ")
        return legend

    def _history(self, sizes: Sequence[int], limit: int, width: int) -> Text:
        levels = LEVELS if self.blocks else "12345678"
        top = len(levels) - 1
        line = "".join(levels[min(top, size * len(levels) // limit)] for size in sizes[-width:])
        return Text(line, style="green")


def _pair(left: str, right: str, width: int, *, dim: bool = False) -> Text:
    """Two texts at the two ends of a line."""
    line = Text(left, style="" if dim else "bold")
    line.append(" " * max(2, width - len(left) - len(right)))
    line.append(right, style="dim")
    return line


def _marks(low: int, high: int, limit: int, width: int) -> Text:
    """The low and the high mark under the bar, each label on its outer side."""
    lower, upper = (min(width - 1, mark * width // limit) for mark in (low, high))
    left = f"low {low:,} ^".rjust(lower + 1)
    return Text(left + " " * max(1, upper - len(left)) + f"^ high {high:,}", style="dim")


def _facts(moment: Moment, calls: int) -> Text:
    report, tally = moment.report, moment.tally
    line = Text()
    for name, value in (
        ("messages in the window", f"{moment.written - report.hidden:,}"),
        ("folded away", f"{report.hidden:,}"),
        ("tool calls", f"{tally.tools:,} of {calls:,}"),
    ):
        line.append(f"{name} ", style="dim").append(value, style="bold").append("    ")
    return line


def _fold_line(fold: FoldMade) -> Text:
    # The reason speaks of tokens already, and the line is short.
    words = in_words(fold).removesuffix(" tokens")
    return Text(f"  {words}", style="magenta").append(f"  {fold.reason}", style="dim")


def _padded(lines: Sequence[Text], count: int) -> list[Text]:
    """The last `count` lines, with empty ones where there are fewer."""
    last = list(lines[-count:])
    return last + [Text()] * (count - len(last))


def _fit(line: Text, width: int) -> Text:
    fitted = Text(" " * MARGIN, no_wrap=True, overflow="ellipsis").append_text(line)
    fitted.truncate(width + MARGIN, overflow="ellipsis")
    return fitted
