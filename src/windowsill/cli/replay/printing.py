"""A replay's report for people."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

import click

from windowsill.cli.output import Column, on_terminal, print_table
from windowsill.cli.recordings import Broken
from windowsill.cli.replay.report import Figures, ReplayReport
from windowsill.cli.replay.spending import Comparison, Spending
from windowsill.cli.replay.wording import sentences
from windowsill.text import printable_line, shorten

WIDE = 125
"""Characters that all columns need. A narrower terminal shows those that say whether it works."""

ID_WIDE, ID_NARROW, ID_PIPE = 24, 12, 500
"""Characters of a session's id; a pipe gets all of them."""

MOST_TROUBLES = 20
"""Troubles told one by one; the report holds all."""

MOST_FOREIGN = 3
"""Files without a recording told by name: a folder of an agent has many."""

LEGEND = (
    "peak: the largest request in tokens; cached: share of the tokens that a prompt cache serves; cost: against "
    "sending everything; kept: share of the values that later calls needed and that still stood in the request"
)
"""For a terminal: a pipe gets nothing but the figures and what is wrong."""

CELLS: dict[str, Callable[[Figures], str]] = {
    "calls": lambda figures: f"{figures.calls:,}",
    "peak": lambda figures: f"{figures.peak_tokens:,}",
    "sent": lambda figures: f"{figures.tokens_sent:,}",
    "cached": lambda figures: _share(figures.cache_hit_share),
    "cost": lambda figures: _share(figures.cost_ratio),
    "kept": lambda figures: _share(figures.kept),
    "of outputs": lambda figures: _share(figures.kept_from_outputs),
    "of lines": lambda figures: _share(figures.kept_lines),
    "folds": lambda figures: f"{figures.folds:,}",
    "repairs": lambda figures: f"{sum(figures.repairs.values()):,}",
    "invalid": lambda figures: f"{figures.invalid:,}",
    "over": lambda figures: f"{figures.over:,}",
    "lost": lambda figures: f"{figures.lost:,}",
}
ONLY_WIDE = frozenset({"sent", "of outputs", "of lines", "repairs"})

PAID = ("paid", "would pay")
"""Columns for recordings that say what was paid: where they need the room, so many characters,"""
PAID_WIDE = 20
BEFORE_PAID = frozenset({"folds", "over"})
"""they take that of these."""


def print_report(
    report: ReplayReport, total: Figures, recorded: Spending | None = None, compared: Comparison | None = None
) -> None:
    """A row for each session, the total, what was paid and would have been, and what went wrong."""
    paid = PAID if recorded is not None else ()
    narrow = on_terminal() and shutil.get_terminal_size().columns < WIDE + (PAID_WIDE if paid else 0)
    length = ID_PIPE if not on_terminal() else ID_NARROW if narrow else ID_WIDE
    hidden = (ONLY_WIDE | BEFORE_PAID if paid else ONLY_WIDE) if narrow else frozenset()
    cells = {title: cell for title, cell in CELLS.items() if title not in hidden}
    print_table(
        [Column("session"), *(Column(title, right=True) for title in [*cells, *paid])],
        [
            (
                shorten(each.session, length),
                *(cell(each.figures) for cell in cells.values()),
                *_paid(each.recorded, each.compared)[: len(paid)],
            )
            for each in report.sessions
        ],
        footer=("total", *(cell(total) for cell in cells.values()), *_paid(recorded, compared)[: len(paid)]),
    )
    if on_terminal():
        click.echo(LEGEND)
        if total.dollars is not None and total.dollars_everything is not None:
            everything = f"sending everything: ${total.dollars_everything:,.2f}"
            click.echo(f"cost at list prices: ${total.dollars:,.2f}; {everything}")
    for sentence in sentences(recorded, compared, report.options.window):
        click.echo(printable_line(sentence))
    _print_troubles(report)


def _paid(recorded: Spending | None, compared: Comparison | None) -> tuple[str, str]:
    """What was paid for a session; a branch repeats calls that another session has paid for."""
    return (
        "-" if recorded is None or recorded.dollars is None else f"${recorded.dollars:,.2f}",
        "-" if compared is None or compared.dollars is None else f"${compared.dollars:,.2f}",
    )


def _print_troubles(report: ReplayReport) -> None:
    troubles = [f"{each.session}: {each.error}" for each in report.sessions if each.error]
    troubles += _by_file(report.broken)
    troubles += [f"{each.where}: {each.why}" for each in report.foreign[:MOST_FOREIGN]]
    troubles += [
        f"{each.session} turn {defect.turn}: {'; '.join(defect.problems)}"
        for each in report.sessions
        for defect in each.defects
    ]
    for trouble in troubles[:MOST_TROUBLES]:
        click.echo(printable_line(trouble))
    if len(troubles) > MOST_TROUBLES:
        click.echo(f"and {len(troubles) - MOST_TROUBLES:,} more; --report writes all of them")
    counts = {"broken lines": len(report.broken), "files without a recording": len(report.foreign)}
    told = [f"{what} {count:,}" for what, count in counts.items() if count]
    if report.skipped:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in report.skipped.items())
        told.append(f"besides the conversation {sum(report.skipped.values()):,} ({kinds})")
    if told:
        click.echo(printable_line(f"not replayed: {'; '.join(told)}"))


def _by_file(broken: tuple[Broken, ...]) -> Iterator[str]:
    """For each file the first line that is broken, and how many more there are."""
    files: dict[str, list[Broken]] = {}
    for each in broken:
        files.setdefault(each.file or each.where, []).append(each)
    for first, *others in files.values():
        more = f" (and {len(others):,} more broken in this file)" if others else ""
        yield f"{first.where}: {first.why}{more}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
