"""Patterns a model writes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.errors import InputError
from windowsill.outputs.grep import LinePattern, Query

pytestmark = pytest.mark.unit


def finds(pattern: str, text: str, **options) -> bool:
    made = LinePattern(Query(pattern=pattern, **options))
    data = text.encode()
    return made.search(data, 0, len(data)) is not None


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [
        ("", "some text"),
        ("(a", "missing )"),
        ("[z-a]", "z-a"),
        (r"(a)\1", "backreferences"),
        ("(?=a)b", "lookahead"),
        ("(?<!a)b", "lookahead"),
        ("a{1001}", "1,000"),
        ("(.?){900}z", "smaller repetitions"),
        ("x" * 1001, "at most 1,000"),
        ("a\nb", "one by one"),
        ("(?-m)^a", "leave that flag out"),
        ("a)|(b", "unexpected )"),
        ("\ud800", "surrogate"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_answered_with_a_hint(pattern: str, hint: str):
    """The error names the pattern, the reason and what to write instead."""
    with pytest.raises(InputError) as caught:
        LinePattern(Query(pattern=pattern))
    assert hint in str(caught.value)


@pytest.mark.parametrize("ignore_case", [False, True])
def test_fixed_text_that_is_not_text_is_answered_with_a_hint_too(ignore_case):
    """UTF-8 has no half of a surrogate pair."""
    with pytest.raises(InputError, match="leave out what UTF-8 cannot hold"):
        LinePattern(Query(pattern="a\ud800", fixed=True, ignore_case=ignore_case))


@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), min_size=1, max_size=20), st.booleans()
)
def test_any_fixed_text_finds_itself(text: str, ignore_case):
    """Whatever characters it is made of."""
    assert finds(text, f"before {text} after", fixed=True, ignore_case=ignore_case)


@pytest.mark.parametrize("pattern", [r"a\s+b", r"(?s)a.b", "a[^x]b", r"a\nb"])
def test_no_pattern_matches_across_lines(pattern: str):
    """A line end is never part of a match."""
    assert not finds(pattern, "a\nb")


@pytest.mark.parametrize(("pattern", "times"), [(r"\Ab", 1), (r"a\z", 1), (r"a\Z", 1), (r"\Q\A\Eb", 0)])
def test_the_ends_of_the_text_are_those_of_the_line(pattern: str, times: int):
    r"""`\A` and `\Z` mean the line; quoted they mean themselves."""
    assert finds(pattern, "a\nb") == bool(times)


@pytest.mark.parametrize(
    ("pattern", "count"),
    [("x*", 4), ("^$", 1), ("b*$", 4), (r"\b", 3), ("a|b", 3), (r"\Qb", 2), ("a.*", 2), ("[b", 0), ("b", 2)],
)
@pytest.mark.parametrize("end", ["", "\n"])
def test_lines_are_counted_once(pattern: str, count: int, end: str):
    """However often a line matches, were it by nothing at its end; nothing after the last line end counts."""
    data = f"ab\n\ncd a\nb{end}".encode()
    made = LinePattern(Query(pattern=pattern, fixed=pattern == "[b"))
    assert made.count(data, 0, len(data) - len(end)) == count


def test_fixed_text_has_no_special_characters():
    """With `fixed`, every character means itself, with and without regard to case."""
    assert finds("a.b", "axb")
    assert not finds("a.b", "axb", fixed=True)
    assert finds("A.(b", "xa.(b", fixed=True, ignore_case=True)
    assert finds("É", "é", ignore_case=True)


def test_a_line_that_is_no_text_is_counted_once():
    """Bytes between two matches that no dot matches make no second line of them."""
    data = b"ab\xffab \xc3\xa9 ab\n\xffab"
    assert LinePattern(Query(pattern="a(b|c)")).count(data, 0, len(data)) == 2
