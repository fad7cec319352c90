"""Lines that were shown before become pointers, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.pointers import expand
from windowsill.outputs import SeenLines

pytestmark = pytest.mark.unit

FILE = "\n".join(f"def function_{number}(argument): return argument * {number}" for number in range(1, 61))


def seen(**texts: str) -> SeenLines:
    made = SeenLines()
    for ref, text in texts.items():
        made.add(ref, text)
    return made


def test_a_run_that_was_shown_is_pointed_to():
    """Where it stands here, where it stood, and everything else as it is."""
    lines = FILE.split("\n")
    text = "\n".join(["new", *lines[9:39], "end", ""])
    collapsed = seen(o7=FILE).collapse(text)
    assert collapsed == "new\n[lines 2-31 as in o7 lines 10-39]\nend\n"
    assert expand(collapsed, {"o7": FILE}) == text


def test_the_longest_and_then_the_latest_is_taken():
    """Of two places the longer run wins, of equal ones the later output."""
    half = "\n".join(FILE.split("\n")[:30])
    assert seen(o1=FILE, o2=half).collapse(FILE) == "[lines 1-60 as in o1 lines 1-60]"
    assert seen(o1=FILE, o2=FILE).collapse(FILE) == "[lines 1-60 as in o2 lines 1-60]"


@pytest.mark.parametrize("text", ["", "a\nb\nc\nd", "\n" * 20, "something new\n" * 9])
def test_what_saves_nothing_is_left_alone(text: str):
    """Short runs, empty lines and new text have no pointer."""
    assert seen(o1="a\nb\nc\nd\n" + "\n" * 20).collapse(text) is None


def test_a_text_that_looks_like_a_pointer_is_left_alone():
    """It cannot be told from a real one, so nothing in it is replaced."""
    text = FILE + "\n[lines 61-62 as in o7 lines 1-2]"
    assert seen(o7=FILE).collapse(text) is None


@pytest.mark.parametrize(
    "pointer",
    [
        "[lines 1-2 as in o9 lines 1-2]",
        "[lines 2-3 as in o7 lines 1-2]",
        "[lines 1-2 as in o7 lines 1-3]",
        "[lines 1-2 as in o7 lines 60-61]",
        "[lines 1-1 as in o7 lines 0-0]",
    ],
)
def test_a_pointer_that_cannot_be_real_stays(pointer: str):
    """An unknown ref, another place, another length, or lines that are not there."""
    assert expand(pointer, {"o7": FILE}) == pointer


LINES = st.lists(
    st.sampled_from(["", "}", "a", "x" * 60, "y" * 60, "z" * 60, "w" * 60, "\r", "[lines 1-3 as in o1 lines 1-3]"]),
    max_size=30,
).map("\n".join)


@given(LINES, LINES, LINES)
def test_expanding_gives_back_every_character(first: str, second: str, text: str):
    """A collapsed text is shorter and expands to what it was."""
    collapsed = seen(o1=first, o2=second).collapse(text)
    if collapsed is not None:
        assert len(collapsed) < len(text)
        assert expand(collapsed, {"o1": first, "o2": second}) == text


def test_many_equal_lines_take_no_time():
    """A hundred thousand equal lines are one run; what it costs is bounded."""
    text = "the same line again and again\n" * 100_000
    assert seen(o1=text).collapse(text) == "[lines 1-100001 as in o1 lines 1-100001]"
