"""What commands print: JSON for machines, tables for people, plain columns for pipes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TextIO

import click
import msgspec

from windowsill.text import printable_line

INDENT = 2


class Column(NamedTuple):
    """A column of a table."""

    title: str
    right: bool = False
    """Numbers stand at the right."""


def on_terminal(stream: TextIO | None = None) -> bool:
    """Whether a person looks at standard output (or another stream), rather than a program."""
    return (stream or sys.stdout).isatty()


def print_bytes(line: bytes) -> None:
    """Bytes and a line end to standard output, all of them."""
    sys.stdout.flush()
    rest = memoryview(line + b"\n")
    while rest:
        # Where Python runs unbuffered, a pipe takes a part and says how much; the next write says if it was closed.
        rest = rest[sys.stdout.buffer.write(rest) :]
    sys.stdout.buffer.flush()


def print_json(value: Any) -> None:
    """A value as JSON for people and machines alike."""
    print_bytes(msgspec.json.format(msgspec.json.encode(value), indent=INDENT))


def print_table(columns: Sequence[Column], rows: Iterable[Sequence[str]], *, footer: Sequence[str] = ()) -> None:
    """Rows in columns; the footer is a last row apart from the others."""
    clean = [[printable_line(cell) for cell in row] for row in rows]
    if on_terminal():
        _draw(columns, clean, footer)
        return
    lines = [[column.title for column in columns], *clean, *([list(footer)] if footer else [])]
    widths = [max(len(line[index]) for line in lines) for index in range(len(columns))]
    for line in lines:
        cells = zip(line, widths, columns, strict=True)
        text = "  ".join(cell.rjust(width) if column.right else cell.ljust(width) for cell, width, column in cells)
        click.echo(text.rstrip())


def _draw(columns: Sequence[Column], rows: Sequence[Sequence[str]], footer: Sequence[str]) -> None:
    # rich takes longer to import than most commands take to run.
    from rich.box import SIMPLE  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415  as above
    from rich.table import Table  # noqa: PLC0415  as above
    from rich.text import Text  # noqa: PLC0415  as above

    table = Table(box=SIMPLE, show_footer=bool(footer), header_style="bold", footer_style="bold", padding=0)
    for index, column in enumerate(columns):
        table.add_column(
            column.title,
            Text(footer[index]) if footer else "",
            justify="right" if column.right else "left",
            no_wrap=column.right,
            overflow="ellipsis" if column.right else "fold",
        )
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)
