"""What of an output is shown in the context."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.kept_outputs import outputs
from windowsill.errors import InputError, SettingError
from windowsill.outputs import Limits, head_and_tail, preview, trimmed_note
from windowsill.outputs.show import byte_size
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.unit

SMALL = Limits(line=200, bytes=1024)
TEXT = st.lists(
    st.sampled_from(
        ["a", "\n", "\r\n", "\r", "e\u0301", "漢" * 90, "x" * 199, "y" * 250, "😀" * 120, "\0", "\ud800", " "]
    )
).map("".join)
REF = st.sampled_from([None, "o12"])


def test_what_fits_is_shown_as_it_is():
    """A text within the limits has no other view."""
    assert preview("x" * 200 + "\n" + "y" * 200, SMALL) is None
    assert preview("", SMALL) is None


def test_a_long_output_says_how_to_read_on():
    """The last line names the tool, the ref and the line to go on at; without a ref it only says what is missing."""
    text = "line\n" * 1000
    view = preview(text, SMALL, ref="o12")
    on = view.lines + 1
    assert view.text.endswith(
        f'line\n[lines {on}-1,000 are not shown; tool_output_cache(ref_id="o12", offset={on}) reads on]'
    )
    bare = preview(text, SMALL)
    assert bare.text.endswith(f"line\n[lines {bare.lines + 1}-1,000 are not shown]")


def test_a_long_line_is_cut():
    """The line says how much is missing, and the last line where to read it."""
    view = preview("a\n" + "x" * 1000 + "\nb\n", SMALL, ref="o12")
    assert view.text.split("\n") == [
        "a",
        "x" * 177 + "... [+823 characters]",
        "b",
        '[1 line is cut; tool_output_cache(ref_id="o12", offset=2, column=178) reads on]',
    ]
    assert (view.lines, view.cut) == (3, 1)


def test_the_note_is_left_out_where_it_would_undo_the_cut():
    """A line that is a little too long is still cut, and the view is not longer than what it shows."""
    text = "x" * 201
    view = preview(text, SMALL, ref="o12")
    assert view.text == "x" * 179 + "... [+22 characters]"


def test_no_cut_within_a_composed_character():
    """A base letter and its accent stay together."""
    for before in ("", "a"):
        view = preview(before + "e\u0301" * 500, SMALL)
        assert "\u0301... [" in view.text


@given(TEXT, REF)
def test_a_view_is_short_and_stays_as_it_is(text: str, ref: str | None):
    """Within both limits, shorter than the output, and its own view."""
    view = preview(text, SMALL, ref=ref)
    seen = text if view is None else view.text
    assert byte_size(seen) <= SMALL.bytes
    assert all(len(line) <= SMALL.line + 1 for line in seen.split("\n"))
    assert view is None or byte_size(seen) < byte_size(text)
    assert preview(seen, SMALL, ref=ref) is None


@given(TEXT, st.integers(0, 4), st.integers(0, 4), REF)
def test_head_and_tail_are_short_and_stay_as_they_are(text: str, head: int, tail: int, ref: str | None):
    """Shorter than the output, its first and last lines unchanged, and reduced only once."""
    view = head_and_tail(text, head, tail, ref=ref)
    if view is not None:
        assert byte_size(view.text) < byte_size(text)
        assert head_and_tail(view.text, head, tail, ref=ref) is None
        assert view.text.split("\n")[:head] == text.split("\n")[:head]
        assert text.endswith(view.text.split("reads them]" if ref else "omitted]")[-1].lstrip("\r").removeprefix("\n"))


def test_the_middle_is_omitted():
    """First lines, how many are missing and how to read them, last lines."""
    text = "".join(f"line {number}\n" for number in range(1, 201))
    view = head_and_tail(text, ref="o7")
    assert view.text.split("\n")[49:52] == [
        "line 50",
        '[reduced: 100 lines omitted; tool_output_cache(ref_id="o7", offset=51) reads them]',
        "line 151",
    ]
    assert head_and_tail(view.text, ref="o7") is None
    assert head_and_tail(text, 150, 50) is None
    assert "[reduced: 100 lines omitted]" in head_and_tail(text).text


def test_line_ends_are_kept():
    """The note ends as the lines around it do."""
    assert head_and_tail("aaaaaaaaaaaaaaaaaaaaa\r\n" * 9, 1, 1).text == (
        "aaaaaaaaaaaaaaaaaaaaa\r\n[reduced: 7 lines omitted]\r\naaaaaaaaaaaaaaaaaaaaa\r\n"
    )


def test_what_cannot_be_set_is_refused():
    """Limits that leave no room, and negative numbers of lines."""
    with pytest.raises(SettingError):
        Limits(line=10)
    with pytest.raises(SettingError):
        Limits(bytes=10)
    with pytest.raises(InputError):
        head_and_tail("a", -1)


def test_an_output_that_is_no_longer_shown():
    """The ref is named only where its tool is offered."""
    assert trimmed_note("o12") == "[tool output trimmed; ref=o12]"
    assert trimmed_note(None) == "[tool output trimmed]"


@given(TEXT, REF)
def test_a_kept_output_is_shown_like_its_text(text: str, ref: str | None):
    """Only what is shown is read, and it is the same, line ends aside."""
    kept = outputs(MemoryStore(), limits=SMALL)
    text = text.replace("\ud800", "?").replace("\0", "?").replace("\r", "")
    made = kept.keep([text])
    view = preview(text, SMALL, ref=made.id if ref else None)
    seen = text if view is None else view.text
    answer = kept.preview(made.id, with_ref=ref is not None)
    assert byte_size(answer) <= SMALL.bytes
    if view is None or len(text) > len(seen) + 200:
        assert answer.rstrip("\n") == seen.rstrip("\n")
