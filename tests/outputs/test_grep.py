"""Searching an output: what is shown of what was found."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.errors import InputError
from windowsill.outputs.grep import Query, grep
from windowsill.outputs.parts import MessageOutput
from windowsill.outputs.show import Limits

pytestmark = pytest.mark.unit

LOG = "start\nread a\nfail: one\nread b\nread c\nread d\nfail: two\nfail: three\nend\n"


def search(
    content: str | bytes, pattern: str, *, part_bytes: int = 64, seconds: float = 10, timer=lambda: 0.0, **query
):
    data = content.encode() if isinstance(content, str) else content
    limits = Limits(**{name: query.pop(name) for name in ("line", "bytes") if name in query})
    output = MessageOutput("o1", [data], part_bytes=part_bytes)
    return grep(output, Query(pattern=pattern, **query), limits, timer, seconds)


def test_matching_lines_have_their_numbers():
    """As `grep -n` shows them, then how many there are."""
    assert search(LOG, "^fail") == "3:fail: one\n7:fail: two\n8:fail: three\n[3 matching lines]"


def test_context_is_shown_as_grep_does():
    """Context lines have a dash, groups are apart, and what touches is one group."""
    assert search(LOG, "fail", before=1, after=1).split("\n") == [
        "2-read a",
        "3:fail: one",
        "4-read b",
        "--",
        "6-read d",
        "7:fail: two",
        "8:fail: three",
        "9-end",
        "[3 matching lines]",
    ]


def test_groups_that_touch_are_one():
    """No line is between them, so nothing stands between them."""
    assert search("hit\na\nb\nhit\n", "hit", before=1, after=1) == "1:hit\n2-a\n3-b\n4:hit\n[2 matching lines]"


def test_a_page_says_how_to_go_on():
    """The next page begins after the last line that was shown."""
    assert search(LOG, "fail", limit=2) == "3:fail: one\n7:fail: two\n[2 of 3 matching lines; offset=8 goes on]"
    assert search(LOG, "fail", limit=2, offset=8) == "8:fail: three\n[1 matching line from line 8 on]"


def test_nothing_found_says_so():
    """The answer tells how much was searched."""
    assert search(LOG, "nothing") == "[no line matches, of 9 lines]"
    assert search(LOG, "start", offset=2) == "[no line matches from line 2 on, of 9 lines]"


def test_line_ends_of_either_kind_are_the_end():
    """`$` stands before a carriage return and line feed, which is not shown."""
    assert search("one\r\ntwo\r\n", "o$") == "2:two\n[1 matching line]"


def test_bytes_that_are_not_text():
    """Binary output is searched and says so; what cannot be shown is replaced."""
    assert search(b"\xff\0key\n", "key") == (
        "1:\ufffd\ufffdkey\n[1 matching line]\n"
        "[the output is binary: searched byte by byte, shown as far as it is text]"
    )


def test_a_long_line_is_shown_around_its_match():
    """Where it matches is told, so that it can be read there."""
    line = "x" * 1000 + "key" + "y" * 1000 + "key" + "z" * 1000
    answer = search(line, "key", line=200)
    assert answer == (
        "1:..." + "x" * 50 + "key" + "y" * 147 + "... [3,006 characters; matches at column 1001, then 2004]\n"
        "[1 matching line]"
    )


def test_a_match_at_the_beginning_of_a_long_line():
    """Nothing stands before it, and many matches are not all told."""
    answer = search("key " * 100, "key", line=200)
    assert answer.startswith("1:key key")
    assert "matches at column 1, then 5, 9, 13, 17, 21, 25, 29, 33, 37 and further]" in answer


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({"offset": 0}, "offset is 0"),
        ({"limit": 0}, "limit is 0"),
        ({"before": -1}, "before is -1"),
        ({"after": 101}, "after is 101"),
        ({"offset": 10}, "offset 10 is beyond the end of o1; it has 9 lines"),
    ],
)
def test_a_place_that_is_not_there_is_a_clear_error(query: dict, names: str):
    """The error names the argument."""
    with pytest.raises(InputError, match=names):
        search(LOG, "a", **query)


def test_time_is_over():
    """The answer has what was found, and where to go on."""
    ticks = iter(range(100))
    answer = search(LOG * 20, "fail: one", seconds=7, timer=lambda: next(ticks))
    assert answer.startswith("3:fail: one\n")
    on = re.search(r"\[time is over, not everything was searched; offset=(\d+) goes on\]$", answer)
    assert 9 < int(on[1]) < 180


def test_a_very_long_line_says_what_it_may_hide(monkeypatch):
    """Nobody takes a match that was out of reach for one that is not there."""
    monkeypatch.setattr("windowsill.outputs.grep.OVERLAP", 1024)
    line = "a" + "x" * 5000 + "b"
    assert search(line, "a.*b", part_bytes=2048) == (
        "[no line matches, of 1 line]\n[line 1 is very long: a match of more than 1 KiB in it may be missed]"
    )
    assert search(line, "a.*b", part_bytes=8192).endswith("[1 matching line]")


TEXT = st.lists(st.sampled_from(["a", "b\n", "漢字" * 40, "\n", "\r\n", "😀" * 300, "ab" * 200])).map("".join)


@given(TEXT, st.integers(0, 3), st.integers(1, 5), st.integers(9, 100))
def test_paging_shows_each_match_once_within_the_limits(text: str, context: int, limit: int, part_bytes: int):
    """Whoever goes on sees every matching line, and no answer is above its limit."""
    lines = text.removesuffix("\n").split("\n") if text else []
    expected = [number for number, line in enumerate(lines, 1) if "a" in line]
    seen: list[int] = []
    offset = 1
    while offset <= len(lines):
        answer = search(
            text,
            "a",
            before=context,
            after=context,
            limit=limit,
            offset=offset,
            part_bytes=part_bytes,
            line=200,
            bytes=1024,
        )
        assert len(answer.encode()) <= 1024
        seen += [int(number) for number in re.findall(r"^(\d+):", answer, re.MULTILINE)]
        on = re.search(r"offset=(\d+) goes on\]$", answer)
        if on is None:
            break
        offset = int(on[1])
    assert seen == expected
