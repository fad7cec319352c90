"""A replay's report for people."""

from __future__ import annotations

import click

from windowsill.cli.output import Column, on_terminal, print_table, shorten
from windowsill.cli.replay.report import Figures, ReplayReport
from windowsill.cli.running import one_line

ID_LENGTH = 24
"""Characters of a session's id on a terminal; a pipe gets all of them."""

MOST_DEFECTS = 20
"""Defects told one by one; the report holds all."""

COLUMNS = [
    Column("session"),
    *(
        Column(title, right=True)
        for title in (
            "calls",
            "peak",
            "sent",
            "cached",
            "cost",
            "kept",
            "kept (outputs)",
            "folds",
            "repairs",
            "invalid",
            "over",
            "lost",
        )
    ),
]


def print_report(report: ReplayReport, total: Figures) -> None:
    """A row for each session, the total, and what went wrong."""
    length = ID_LENGTH if on_terminal() else 500
    rows = [(shorten(each.session, length), *_cells(each.figures)) for each in report.sessions]
    print_table(COLUMNS, rows, footer=("total", *_cells(total)))
    troubles = [f"{each.session}: {each.error}" for each in report.sessions if each.error]
    troubles += [f"{each.where}: {each.why}" for each in report.broken]
    troubles += [
        f"{each.session} turn {defect.turn}: {'; '.join(defect.problems)}"
        for each in report.sessions
        for defect in each.defects
    ]
    for trouble in troubles[:MOST_DEFECTS]:
        click.echo(one_line(trouble))
    if len(troubles) > MOST_DEFECTS:
        click.echo(f"and {len(troubles) - MOST_DEFECTS:,} more; --report writes all of them")


def _cells(figures: Figures) -> tuple[str, ...]:
    return (
        f"{figures.calls:,}",
        f"{figures.peak_tokens:,}",
        f"{figures.tokens_sent:,}",
        _share(figures.cache_hit_share),
        _share(figures.cost_ratio),
        _share(figures.kept),
        _share(figures.kept_from_outputs),
        f"{figures.folds:,}",
        f"{sum(figures.repairs.values()):,}",
        f"{figures.invalid:,}",
        f"{figures.over:,}",
        f"{figures.lost:,}",
    )


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
