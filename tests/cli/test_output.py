from __future__ import annotations

import io
from contextlib import redirect_stdout

import pytest

from support.cli_calls import Terminal
from windowsill.cli.output import print_bytes, print_table, print_text, short_ids

pytestmark = pytest.mark.unit

ROWS = [{"name": "a", "size": 1}, {"name": "long name", "size": 1_000}]


def printed(work, kind=io.TextIOWrapper):
    stream = kind(io.BytesIO(), encoding="utf-8")
    with redirect_stdout(stream):
        work()
    stream.flush()
    return stream.buffer.getvalue().decode()


def test_columns_are_aligned_in_a_pipe():
    """Words stand at the left, numbers at the right, the footer below."""
    out = printed(lambda: print_table([*ROWS, {"name": "total", "size": 1_001}], footer=True))
    assert out == "name        size\na              1\nlong name  1,000\ntotal      1,001\n"


def test_terminal_gets_a_drawn_table_without_markup():
    """What looks like markup is text, and control characters are gone."""
    out = printed(lambda: print_table([{"name": "[red]x\x1b[2J", "size": 1}]), Terminal)
    assert "[red]x [2J" in out
    assert "─" in out


def test_footer_is_apart_on_a_terminal():
    """The last row stands below a second line."""
    out = printed(lambda: print_table(ROWS, footer=True), Terminal)
    assert out.index("─") < out.index("a  ") < out.rindex("─") < out.index("long name")


def test_each_kind_of_value_is_written_in_its_way():
    """Whole numbers with separators, shares with three digits, nothing as a dash, money to the right."""
    row = {"count": 12_345, "share": 0.5, "none": None, "paid": "$1.50"}
    assert printed(lambda: print_table([row])) == " count  share  none   paid\n12,345  0.500     -  $1.50\n"


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


def test_words_are_not_broken_on_a_terminal(monkeypatch):
    """A long text is wrapped between words, below where it began; a pipe gets one line."""
    monkeypatch.setenv("COLUMNS", "40")
    text = "sending everything again would have cost twice as much"
    out = printed(lambda: print_text(text, begin="  cost  "), Terminal)
    assert out == "  cost  sending everything again would\n        have cost twice as much\n"
    assert printed(lambda: print_text(text)) == f"{text}\n"


def test_names_of_one_word_are_not_broken(monkeypatch):
    """A rule stays whole beside a long explanation."""
    monkeypatch.setenv("COLUMNS", "50")
    row = {"rule": "anthropic.tool-result-follows-call", "what": "the result stands before the call that it answers"}
    assert "anthropic.tool-result-follows-call" in printed(lambda: print_table([row]), Terminal)


def test_short_ids_stay_apart():
    """Two ids never look the same, however alike they begin or end."""
    ids = ["0c275b1b-9732-433e-1", "0c275b1b-9732-433e-2", "1", "0c275b1b-9732-433e-agent-1", "0c275b1b-0000-433e-1"]
    short = short_ids(ids, 12)
    assert len(set(short)) == len(ids)
    assert max(map(len, short[:3])) <= 12


def test_ids_that_begin_alike_are_all_shortened_alike():
    """The last of them too: a table in which one differs is hard to read."""
    assert short_ids(["tb-airline-14-0", "tb-airline-22-0", "tb-airline-36-0"], 12) == [
        "tb-ai…e-14-0",
        "tb-ai…e-22-0",
        "tb-ai…e-36-0",
    ]
