"""Searching in parts finds what searching line by line would."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.outputs.grep import LinePattern, Query, Search
from windowsill.outputs.parts import MessageOutput
from windowsill.outputs.show import Limits

pytestmark = pytest.mark.unit

PATTERNS = ["b", "ab", "^a", "b$", "a.*b", "^$", "x*", r"\bab\b", "é", r"\xff", "[^a]b", "(a|b){2}", r"^(a|b|c)+$"]
PATTERNS += ["$", r"\b", r"\B", "b*$", "a|$"]
CONTENT = st.lists(st.sampled_from([b"a", b"b", b"ab", b" ", b"\n", b"\r\n", "é".encode(), b"\xff", b"c" * 9])).map(
    b"".join
)


def never() -> bool:
    return False


def find(output, pattern: str, *, late=never, line: int = 200, bytes: int = 10**9, **query) -> Search:
    """A search that has been run."""
    limits = Limits(line=line, bytes=bytes)
    search = Search(output, Query(pattern=pattern, **{"limit": 10**6, **query}), limits, late)
    search.run()
    return search


@given(CONTENT, st.sampled_from(PATTERNS), st.integers(1, 4))
def test_parts_are_searched_like_lines(content: bytes, pattern: str, first: int):
    """The matching lines are those that match by themselves, wherever parts were cut and lines end."""
    made = LinePattern(Query(pattern=pattern))
    lines = content.removesuffix(b"\n").split(b"\n") if content else []
    lines = [line.removesuffix(b"\r") if content.count(b"\n") > place else line for place, line in enumerate(lines)]
    expected = [
        number
        for number, line in enumerate(lines, 1)
        if number >= first and made.search(line, 0, len(line)) is not None
    ]
    output = MessageOutput("o1", [content], part_bytes=8)
    # An output ends where its lines do: who begins beyond finds nothing.
    found = find(output, pattern, offset=first) if first <= output.lines else None
    assert ([hit.line for hit in found.hits] if found else []) == expected
    assert (found.count if found else 0) == len(expected)
    # What is not told is counted in another way.
    counted = find(output, pattern, offset=first, limit=1) if first <= output.lines else None
    assert (counted.count if counted else 0) == len(expected)


LINES = st.lists(st.sampled_from(["a", "B", "ab", "Ä", "ß", "漢", "😀", " ", ".", "\n", "\r\n", "c" * 9])).map("".join)
EXPRESSIONS = ["a", "AB", "ä", "漢.", "😀$", "^a", "b$", "^$", "[^a]b", "c{9}", "(a|ä)+ ", "x*$", r"\."]
EXPRESSIONS += ["c" * 9, "ab" + "c" * 9]


@given(
    LINES, st.sampled_from(EXPRESSIONS), st.sets(st.sampled_from(["fixed", "ignore_case"])), st.sampled_from([8, 99])
)
def test_a_search_finds_what_a_loop_over_the_lines_finds(text: str, pattern: str, flags: set[str], part_bytes: int):
    """Python's own expressions, applied to each line of the text, match the same lines."""
    source = re.escape(pattern) if "fixed" in flags else pattern
    reference = re.compile(source, re.IGNORECASE if "ignore_case" in flags else 0)
    lines = text.removesuffix("\n").split("\n") if text else []
    lines = [line.removesuffix("\r") for line in lines]
    expected = [number for number, line in enumerate(lines, 1) if reference.search(line)]
    output = MessageOutput("o1", [text.encode()], part_bytes=part_bytes)
    settings = dict.fromkeys(flags, True)
    assert [hit.line for hit in find(output, pattern, **settings).hits] == expected
    assert find(output, pattern, limit=1, **settings).count == len(expected)


def test_only_so_many_are_told_and_all_are_counted():
    """The first lines are told, the number is that of all."""
    found = find(MessageOutput("o1", [b"a\n" * 100], part_bytes=8), "a", limit=3)
    assert ([hit.line for hit in found.hits], found.count) == ([1, 2, 3], 100)


def test_no_more_is_told_than_can_be_shown():
    """Lines that no answer has room for are only counted."""
    found = find(MessageOutput("o1", [b"aaaa\n" * 1000]), "a", bytes=1024)
    assert 1024 // 8 < len(found.hits) < 1024 // 6
    assert found.count == 1000


def test_counting_ends_within_a_part(monkeypatch):
    """Enough is enough, however much of the part is left."""
    monkeypatch.setattr("windowsill.outputs.grep.COUNTED", 10)
    monkeypatch.setattr("windowsill.outputs.grep.WINDOW", 8)
    found = find(MessageOutput("o1", [b"a\n" * 1000]), "a", limit=3)
    assert 10 < found.count < 20


def test_counting_ends_somewhere(monkeypatch):
    """A pattern that matches almost everywhere is not counted to the end."""
    monkeypatch.setattr("windowsill.outputs.grep.COUNTED", 10)
    found = find(MessageOutput("o1", [b"a\n" * 1000], part_bytes=8), "a", limit=3)
    assert 10 < found.count < 100


def test_a_search_stops_when_time_is_over():
    """What was found is told, with the line to go on at."""
    asked = iter([False] * 3 + [True] * 100)
    found = find(MessageOutput("o1", [b"aaaaaa\n" * 4], part_bytes=8), "a", late=lambda: next(asked))
    assert [hit.line for hit in found.hits] == [1, 2, 3]
    assert found.late_at == 4


def test_time_is_looked_at_within_a_part(monkeypatch):
    """A part full of matches is left when time is over, and the next search goes on there."""
    monkeypatch.setattr("windowsill.outputs.grep.WINDOW", 8)
    asked = iter([False] * 2 + [True] * 100)
    found = find(MessageOutput("o1", [b"a\n" * 100]), "a", limit=3, late=lambda: next(asked))
    assert (found.count, found.late_at) == (8, 9)


@pytest.mark.parametrize(
    ("pattern", "unsure"), [("a.*b", 2), ("ax{0,9}b", None), ("xyz", None), ("^c.*", None), (r"a\{2,}b", 2)]
)
def test_a_match_that_may_be_missed_is_told(monkeypatch, pattern: str, unsure: int | None):
    """In a line longer than a part a match longer than the overlap can be missed, where one can be so long."""
    monkeypatch.setattr("windowsill.outputs.grep.OVERLAP", 60)
    content = b"short\nca" + b"x" * 600 + b"b\n"
    assert find(MessageOutput("o1", [content], part_bytes=100), pattern).unsure == unsure


@pytest.mark.parametrize("gap", [10, 1500, 5000])
def test_close_and_distant_places_of_a_text_are_counted_alike(gap: int):
    """Each line that holds the text counts once, however often it does."""
    line = b"ab ab" + b"." * gap + b"\n"
    data = (line + b"\n" + b"b" * gap + b"\n") * 50
    assert find(MessageOutput("o1", [data]), "ab", limit=1).count == 50


def test_a_long_line_tells_where_it_matches():
    """Each place counts characters from 1, across the parts of the line, and no place is told twice."""
    found = find(MessageOutput("o1", ["éé ab cccccccccc ab\nab".encode()], part_bytes=8), "ab")
    assert [(hit.line, hit.columns) for hit in found.hits] == [(1, (4, 18)), (2, ())]


@pytest.mark.parametrize(
    ("line", "pattern", "columns"),
    [
        ("xxxxxxxbcccc", "b$", ()),
        ("xxxxxxxxaaaaaaaaaaaa", "^a", ()),
        ("xxxxxxaxaaaaaaaaaaaa", r"\ba", ()),
        ("xxxxxxabcdxxxxxxxxxx", "abcd", (7,)),
        ("xxxxxxxxxxxxxxxxxxxb", "xb$", (19,)),
        ("abababababababababab", "^ab", (1,)),
    ],
)
def test_the_borders_of_parts_mean_nothing(monkeypatch, line: str, pattern: str, columns: tuple[int, ...]):
    """A part of a long line neither begins nor ends it, and what stands across two parts is found."""
    monkeypatch.setattr("windowsill.outputs.grep.OVERLAP", 4)
    found = find(MessageOutput("o1", [line.encode()], part_bytes=8), pattern)
    assert [hit.columns for hit in found.hits] == ([columns] if columns else [])


def test_nothing_stands_after_the_last_line_end():
    """An empty match there is in no line; one in an empty line is."""
    assert find(MessageOutput("o1", [b"a\nb\n"]), "^$").count == 0
    assert [hit.line for hit in find(MessageOutput("o1", [b"a\n\nb\n"]), "^$").hits] == [2]


def test_a_large_pattern_in_a_long_line():
    """A pattern searched in small stretches finds what stands on the border of two."""
    line = b"x" * 40_000 + b"abcabcabc" + b"x" * 40_000
    pattern = "(?:a|b|c|d){3}" + "(?:[a-c][a-d]|[e-z]{2}){0,40}cx"
    assert LinePattern(Query(pattern=pattern)).window < 50_000
    found = find(MessageOutput("o1", [line], part_bytes=50_000), pattern)
    assert found.count == 1


def test_a_search_without_any_time_goes_on_at_its_first_line():
    """Nothing was searched."""
    found = find(MessageOutput("o1", [b"aaaaaa\n" * 100], part_bytes=8), "a", late=lambda: True)
    assert (found.late_at, found.count) == (1, 0)
