"""The output of commands: JSON for machines, tables for people, plain columns for pipes."""

# ruff: noqa: PLC0415 - rich and msgspec take longer to import than `windowsill --help` takes to run

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

import click

from windowsill.text import printable_line, shorten, table_cell, time_text

if TYPE_CHECKING:
    from windowsill.compose.composition import Composition

NARROWEST = 40
"""Characters of a line, however narrow the terminal says it is."""


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


def print_line(text: str, *, colour: str | None = None) -> None:
    """Print a line without control characters, in a colour on a terminal."""
    click.secho("".join([each if each.isprintable() else " " for each in text]), fg=colour)


def print_text(text: str, *, begin: str = "") -> None:
    """Print a text without control characters: one line in a pipe, wrapped between words on a terminal.

    `begin` stands before it, and further lines begin below it, unless that would leave them little room.
    """
    line = printable_line(text)
    if not on_terminal():
        click.echo((begin + line).rstrip())
        return
    import textwrap

    width = max(NARROWEST, shutil.get_terminal_size().columns)
    indent = " " * (len(begin) if len(begin) <= width // 2 else 4 if begin else 0)
    filled = textwrap.fill(
        line,
        width,
        initial_indent=begin,
        subsequent_indent=indent,
        break_on_hyphens=False,
        break_long_words=False,
    )
    click.echo(filled or begin.rstrip())


def short_ids(ids: Sequence[str], length: int) -> list[str]:
    """Shorten ids for a table, each to a text that no other one has."""
    found = [shorten(id, length) for id in ids]
    tail = length // 2
    alike = {short for short, count in Counter(found).items() if count > 1}
    for number, id in enumerate(ids):
        if found[number] in alike and len(id) > length:
            # Ids of one agent often differ only at the end.
            found[number] = printable_line(f"{id[: length - tail - 1]}…{id[-tail:]}")
    return [printable_line(id) if found.count(short) > 1 else short for id, short in zip(ids, found, strict=True)]


def print_warning(text: str) -> None:
    """Print a line without control characters to standard error."""
    click.echo(printable_line(text), err=True)


def print_result(value: object, text: str, *, as_json: bool) -> None:
    """Print a value as JSON, or in words."""
    if as_json:
        print_json(value)
        return
    for line in text.split("\n") if text else ():
        print_line(line)


def moment(at: float) -> str:
    """Return a time for people, in UTC."""
    return time_text(at, "%Y-%m-%d %H:%M:%SZ")


def print_list(found: object, rows: Sequence[Mapping[str, object]], *, empty: str, as_json: bool) -> None:
    """Print what was found as JSON, or as a table of these rows."""
    if as_json:
        print_json(found)
    else:
        print_rows(rows, empty=empty)


def print_rows(rows: Sequence[Mapping[str, object]], *, empty: str = "", apart: bool = False) -> None:
    """Print a table, if it has rows, else say on standard error that it is empty; `apart` puts a line before it."""
    if rows:
        if apart:
            click.echo()
        print_table(rows)
    elif empty:
        print_warning(empty)


def print_table(rows: Sequence[Mapping[str, object]], *, footer: bool = False) -> None:
    """Print rows in columns, with the keys as titles; as footer, the last row is apart from the others.

    Numbers, shares and sums of money are aligned to the right; `None` is a dash.
    """
    lines = [[printable_line(table_cell(value)) for value in row.values()] for row in rows]
    right = [not any(map(_is_text, column)) for column in zip(*(row.values() for row in rows), strict=True)]
    titles = list(rows[0])
    if on_terminal():
        _draw(titles, lines, right, footer=footer)
        return
    widths = [max(map(len, column)) for column in zip(titles, *lines, strict=True)]
    for line in [titles, *lines]:
        cells = zip(line, widths, right, strict=True)
        text = "  ".join(cell.rjust(width) if to_right else cell.ljust(width) for cell, width, to_right in cells)
        click.echo(text.rstrip())


def print_bar(made: Composition) -> None:
    """Draw what fills a window as a bar with its legend; in a pipe, as one line of figures."""
    filled = {name: tokens for name, tokens in made.parts.items() if tokens}
    if not on_terminal():
        click.echo("filled with: " + ", ".join(f"{name} {tokens:,}" for name, tokens in filled.items()))
        return
    from rich.console import Console
    from rich.text import Text

    from windowsill.compose.composition import COLOURS

    width = max(NARROWEST, shutil.get_terminal_size().columns) - 1
    bar, legend, whole, drawn = Text(), Text(), max(made.window, made.tokens), 0.0
    for name, tokens in filled.items():
        # Ends are rounded, not widths: so the parts add up to the whole.
        cells = round((drawn + tokens) * width / whole) - round(drawn * width / whole)
        drawn += tokens
        sign = {"free": "░", "reserve": "▒"}.get(name, "█")
        bar.append(sign * cells, COLOURS[name])
        legend.append("■ " if name != "free" else "□ ", COLOURS[name]).append(f"{name} {tokens:,}  ")
    Console().print(bar, legend, sep="\n")


def _is_text(value: object) -> bool:
    return isinstance(value, str) and not value.startswith("$") and not value.endswith("%")


def _draw(titles: Sequence[str], lines: Sequence[Sequence[str]], right: Sequence[bool], *, footer: bool) -> None:
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE, show_footer=footer, header_style="bold", footer_style="bold", padding=0)
    for place, (title, last, to_right) in enumerate(zip(titles, lines[-1], right, strict=True)):
        table.add_column(
            title,
            Text(last) if footer else "",
            justify="right" if to_right else "left",
            # Names of one word, such as rules and ids, are not broken: they are copied.
            no_wrap=to_right or all(" " not in line[place] for line in lines),
            overflow="ellipsis" if to_right else "fold",
        )
    for line in lines[:-1] if footer else lines:
        table.add_row(*map(Text, line))
    Console().print(table)
