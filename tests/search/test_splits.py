import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.search import passages
from windowsill.search.passages import OVERLAP_BYTES, PIECE_BYTES, split

pytestmark = pytest.mark.unit


def test_a_short_text_is_one_piece():
    """What is small enough is not cut."""
    assert split("one\ntwo") == [(1, 2, "one\ntwo")]


def test_nothing_but_space_is_no_piece():
    """An empty text has nothing to be found."""
    assert split(" \n ") == []


def test_a_long_text_is_cut_between_lines():
    """Each piece knows its lines, and begins with the line the one before ended with."""
    lines = [f"line {number} " + "word " * 12 for number in range(1, 101)]
    found = split("\n".join(lines))
    assert all(piece.text == "\n".join(lines[piece.first - 1 : piece.last]) for piece in found)
    assert [piece.first for piece in found[1:]] == [piece.last for piece in found[:-1]]
    assert (found[0].first, found[-1].last) == (1, 100)


def test_a_long_last_line_is_not_repeated():
    """The overlap stays small."""
    lines = ["x" * (OVERLAP_BYTES + 1) for _ in range(20)]
    found = split("\n".join(lines))
    assert [piece.first for piece in found[1:]] == [piece.last + 1 for piece in found[:-1]]


def test_a_single_giant_line_is_cut_too():
    """A line without an end is several pieces of the same line."""
    found = split("word " * 10_000)
    assert {(piece.first, piece.last) for piece in found} == {(1, 1)}
    assert all(piece.text.endswith(" ") for piece in found)


def test_a_word_at_a_cut_of_a_giant_line_stands_whole_in_one_piece():
    """Whoever looks for a value finds it, wherever in the line it stands."""
    values = [f"src/module-{number}/file {number}.py" for number in range(2_000)]
    found = split(",".join(values))
    assert all(any(value in piece.text for piece in found) for value in values)


def test_a_line_without_an_end_keeps_its_ends(monkeypatch):
    """A single enormous line is cut anywhere; both its ends are looked at."""
    monkeypatch.setattr(passages, "END", 10)
    assert passages.ends("a" * 20) == [(1, "a" * 20)]
    assert passages.ends("a" * 15 + "b" * 15) == [(1, "a" * 10), (1, "b" * 10)]


@given(st.text(alphabet="ab東\n ", max_size=6_000))
def test_no_letter_is_lost_and_no_piece_too_large(text):
    """Everything but space is in some piece, and a piece is never much larger than it should be."""
    found = split(text)
    letters = sum(not letter.isspace() for letter in text)
    assert sum(not letter.isspace() for piece in found for letter in piece.text) >= letters
    assert all(len(piece.text.encode()) <= PIECE_BYTES + OVERLAP_BYTES for piece in found)
