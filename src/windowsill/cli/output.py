"""What commands print: JSON for machines, tables for people, plain columns for pipes."""

# ruff: noqa: PLC0415 - rich and msgspec take longer to import than `windowsill --help` takes to run

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TextIO

import click

from windowsill.text import printable_line


class Column(NamedTuple):
    """A column of a table; numbers are aligned to the right."""

    title: str
    right: bool = False


def on_terminal(stream: TextIO | None = None) -> bool:
    """Tell whether standard output (or another stream) goes to a person rather than a program."""
    return (stream or sys.stdout).isatty()


def print_bytes(line: bytes) -> None:
    """Write all of these bytes and a line end to standard output."""
    sys.stdout.flush()
    rest = memoryview(line + b"\n")
    while rest:
        # Where Python runs unbuffered, a pipe takes a part and says how much; the next write says if it was closed.
        rest = rest[sys.stdout.buffer.write(rest) :]
    sys.stdout.buffer.flush()


def pretty_json(value: Any) -> bytes:
    """Return a value as indented JSON."""
    import msgspec

    return msgspec.json.format(msgspec.json.encode(value), indent=2)


def print_json(value: Any) -> None:
    """Print a value as JSON for people and machines alike."""
    print_bytes(pretty_json(value))


def print_table(columns: Sequence[Column], rows: Iterable[Sequence[str]], *, footer: Sequence[str] = ()) -> None:
    """Print rows in columns; the footer is a last row apart from the others."""
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
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

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
