"""The live picture of the window: what fills it, when it is folded, and what the agent does meanwhile."""

from __future__ import annotations

import shlex
import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from windowsill.cli.demo.agent import Added, Moment, Run, Side, Tally, in_words
from windowsill.compose.payload import FoldMade
from windowsill.messages import Message
from windowsill.session import Session

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


class Check(msgspec.Struct, frozen=True):
    """One promise, whether it was kept, and what was seen."""

    name: str
    ok: bool
    seen: str


def check(run: Run, session: Session, window: int) -> tuple[Check, ...]:
    """Every promise of a finished run; `session` is the same session, opened again."""
    body = run.last.body().decode() if run.last is not None else ""
    return (
        fits(run.tally, window),
        valid(run.tally),
        read_back(run.added, session.messages()),
        whole(session.verify()),
        quoted(run.words, body),
        explained(run.added, session),
    )


def fits(tally: Tally, window: int) -> Check:
    """No request was larger than the window."""
    peak = tally.fitted.peak
    return Check("every request fits", peak <= window, f"the largest had {peak:,} of {window:,} tokens")


def valid(tally: Tally) -> Check:
    """The validator of the wire format found nothing."""
    first = f"; {tally.problems[0]}" if tally.problems else ""
    return Check(
        "every request is valid",
        not tally.problems,
        f"{tally.requests:,} checked, {len(tally.problems)} problems{first}",
    )


def read_back(added: Sequence[Added], found: Iterable[Message]) -> Check:
    """Every message is on disk as it was added, byte for byte, in its order, and there is no other."""
    stored = [(message.id, message.raw) for message in found]
    given = [(message.id, message.raw) for message in added]
    same = sum(a == b for a, b in zip(given, stored, strict=False))
    return Check(
        "nothing is lost",
        given == stored,
        f"{len(given):,} messages written, {same:,} read back equal"
        + (f", {len(stored):,} found" if given != stored else ""),
    )


def whole(problems: Sequence[str]) -> Check:
    """The hash chain of the journal holds."""
    return Check(
        "the journal is whole", not problems, problems[0] if problems else "every entry has the hash it was sealed with"
    )


def quoted(words: Sequence[str], body: str) -> Check:
    """What the user said is in the last request, word for word, however much was folded."""
    there = sum(msgspec.json.encode(each).decode().strip('"') in body for each in words)
    return Check(
        "the user's words stay", there == len(words), f"{there} of {len(words)} are in the last request word for word"
    )


def explained(added: Sequence[Added], session: Session) -> Check:
    """One message that the window does not show can be read, and the session says why it is hidden."""
    name = "what is hidden is explained"
    shown = {item.id for item in session.items()}
    hidden = [message for message in added if message.id not in shown]
    if not hidden:
        return Check(name, ok=True, seen="nothing had to be hidden")
    one = hidden[len(hidden) // 2]
    told = session.explain(one.id)
    same = session.message(one.id).raw == one.raw
    return Check(name, same and not told.visible and bool(told.folds), f"{one.id} {told.why}")


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
