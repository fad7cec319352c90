from __future__ import annotations

import io
from contextlib import redirect_stdout

import pytest

from support.cli_calls import Terminal
from windowsill.cli.output import Column, print_bytes, print_table

pytestmark = pytest.mark.unit

COLUMNS = [Column("name"), Column("size", right=True)]


def printed(work, kind=io.TextIOWrapper):
    stream = kind(io.BytesIO(), encoding="utf-8")
    with redirect_stdout(stream):
        work()
    stream.flush()
    return stream.buffer.getvalue().decode()


def test_columns_are_aligned_in_a_pipe():
    """Words stand at the left, numbers at the right, the footer below."""
    out = printed(lambda: print_table(COLUMNS, [("a", "1"), ("long name", "1,000")], footer=("total", "1,001")))
    assert out == "name        size\na              1\nlong name  1,000\ntotal      1,001\n"


def test_terminal_gets_a_drawn_table_without_markup():
    """What looks like markup is text, and control characters are gone."""
    out = printed(lambda: print_table(COLUMNS, [("[red]x\x1b[2J", "1")]), Terminal)
    assert "[red]x [2J" in out
    assert "─" in out


def test_no_rows_leave_the_header():
    """A table without rows is its header."""
    assert printed(lambda: print_table(COLUMNS, [])) == "name  size\n"


def test_stream_that_takes_a_part_gets_all():
    """Bytes that a stream did not take at once are written again from there."""

    class Slow(io.BytesIO):
        def write(self, data):
            return super().write(bytes(data)[:3])

    slow = Slow()
    stream = type("Stream", (), {"buffer": slow, "flush": lambda _: None})()
    with redirect_stdout(stream):
        print_bytes(b"0123456789")
    assert slow.getvalue() == b"0123456789\n"
