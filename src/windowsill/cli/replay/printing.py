"""A replay's report for people."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import click

from windowsill.cli.output import Column, on_terminal, print_table, shorten
from windowsill.cli.replay.report import Figures, ReplayReport
from windowsill.cli.running import one_line

WIDE = 125
"""Characters that all columns need. A narrower terminal shows those that say whether it works."""

ID_WIDE, ID_NARROW, ID_PIPE = 24, 12, 500
"""Characters of a session's id; a pipe gets all of them."""

MOST_TROUBLES = 20
"""Troubles told one by one; the report holds all."""

CELLS: dict[str, Callable[[Figures], str]] = {
    "calls": lambda figures: f"{figures.calls:,}",
    "peak": lambda figures: f"{figures.peak_tokens:,}",
    "sent": lambda figures: f"{figures.tokens_sent:,}",
    "cached": lambda figures: _share(figures.cache_hit_share),
    "cost": lambda figures: _share(figures.cost_ratio),
    "kept": lambda figures: _share(figures.kept),
    "of outputs": lambda figures: _share(figures.kept_from_outputs),
    "folds": lambda figures: f"{figures.folds:,}",
    "repairs": lambda figures: f"{sum(figures.repairs.values()):,}",
    "invalid": lambda figures: f"{figures.invalid:,}",
    "over": lambda figures: f"{figures.over:,}",
    "lost": lambda figures: f"{figures.lost:,}",
}
ONLY_WIDE = frozenset({"sent", "of outputs", "repairs"})


def print_report(report: ReplayReport, total: Figures) -> None:
    """A row for each session, the total, and what went wrong."""
    narrow = on_terminal() and shutil.get_terminal_size().columns < WIDE
    length = ID_PIPE if not on_terminal() else ID_NARROW if narrow else ID_WIDE
    cells = {title: cell for title, cell in CELLS.items() if not (narrow and title in ONLY_WIDE)}
    print_table(
        [Column("session"), *(Column(title, right=True) for title in cells)],
        [(shorten(each.session, length), *(cell(each.figures) for cell in cells.values())) for each in report.sessions],
        footer=("total", *(cell(total) for cell in cells.values())),
    )
    if on_terminal() and total.dollars is not None and total.dollars_everything is not None:
        click.echo(f"cost at list prices: ${total.dollars:,.2f}; sending everything: ${total.dollars_everything:,.2f}")
    _print_troubles(report)


def _print_troubles(report: ReplayReport) -> None:
    troubles = [f"{each.session}: {each.error}" for each in report.sessions if each.error]
    troubles += [f"{each.where}: {each.why}" for each in report.broken]
    troubles += [f"{each.where}: {each.why}" for each in report.foreign]
    troubles += [
        f"{each.session} turn {defect.turn}: {'; '.join(defect.problems)}"
        for each in report.sessions
        for defect in each.defects
    ]
    for trouble in troubles[:MOST_TROUBLES]:
        click.echo(one_line(trouble))
    if len(troubles) > MOST_TROUBLES:
        click.echo(f"and {len(troubles) - MOST_TROUBLES:,} more; --report writes all of them")
    counts = {"broken lines": len(report.broken), "files without a recording": len(report.foreign)}
    told = [f"{what} {count:,}" for what, count in counts.items() if count]
    if report.skipped:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in report.skipped.items())
        told.append(f"besides the conversation {sum(report.skipped.values()):,} ({kinds})")
    if told:
        click.echo(one_line(f"not replayed: {'; '.join(told)}"))


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
