import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.text import cut_between_words, cut_middle, keep_ends, one_line, printable_line, shorten, type_name

pytestmark = pytest.mark.unit


@given(st.text(max_size=200), st.integers(0, 100))
def test_cut_middle_never_exceeds_its_limit(text, most):
    """A cut text is never longer than asked for, and a short one is left alone."""
    cut = cut_middle(text, most)
    assert len(cut) <= most
    assert cut == text or len(text) > most


def test_cut_middle_keeps_both_ends():
    """A sign stands in the place of the middle."""
    assert cut_middle("0123456789 abcdefghij klm", 17) == "01234 [...] j klm"


def test_keep_ends_keeps_whole_lines():
    """No line is cut in two when a line break is near."""
    text = "\n".join(f"<{number}>" for number in range(2_000))
    lines = [line for line in keep_ends(text, 400).split("\n") if "omitted" not in line]
    assert all(line.startswith("<") and line.endswith(">") for line in lines)


def test_keep_ends_counts_what_is_missing():
    """The count is exact: head, tail and the number add up."""
    text = "x" * 5_000
    cut = keep_ends(text, 100)
    assert f"{5_000 - cut.count('x') + 'data truncated: '.count('x'):,} characters" in cut


def test_one_line_keeps_every_word():
    """Line breaks and runs of blanks become one blank."""
    assert one_line(" a\n# b\t c ") == "a # b c"


def test_a_printable_line_has_no_control_characters():
    """What came from a file is shown on one line without escape sequences."""
    assert printable_line("a\x1b[31mb\r\nc\x00d\te") == "a [31mb c d e"


def test_shorten_keeps_one_line():
    """Long text is cut with an ellipsis, line breaks become spaces."""
    assert shorten("one\ntwo three", 8) == "one two…"
    assert shorten("short", 8) == "short"


def test_type_is_named_with_its_article():
    """Errors read as English."""
    assert [type_name(value) for value in (1, [], object(), "")] == ["an int", "a list", "an object", "a str"]


@given(st.text(), st.integers(0, 60))
def test_a_cut_between_words_never_exceeds_its_limit(text, most):
    """What fits is as it was; what does not is shorter than asked for at most."""
    cut = cut_between_words(text, most)
    assert cut == text if len(text) <= most else len(cut) <= most


def test_a_cut_falls_between_sentences_or_words():
    """No half word stands beside the sign; a language without spaces is cut all the same."""
    text = "Change it to business. I want the cheapest option for all of us. If anything is missing, let me know."
    assert cut_between_words(text, 60) == "Change it to business. [...] is missing, let me know."
    assert cut_between_words("本番には触れないこと。" * 6, 30) == "本番には触れないこと。 [...] 本番には触れないこと。"
