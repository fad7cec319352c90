import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.messages import Document, Image, Message, Reasoning, Text, ToolResult, ToolUse
from windowsill.search import passages
from windowsill.search.passages import OMITTED, OVERLAP_BYTES, PIECE_BYTES, message_passages, split

pytestmark = pytest.mark.unit


def texts(*blocks, role="assistant", **fields):
    message = Message(role=role, blocks=blocks, id="m", **fields)
    found = message_passages(message, seq=1, tools={"c1": "grep"})
    return [(each.role, each.tool, each.text) for each in found]


def test_words_calls_and_results_are_passages_of_their_own():
    """A result belongs to the tool that was called, whether or not it names it."""
    blocks = (
        Text(text="Looking."),
        ToolUse(id="c1", name="grep", arguments='{"pattern": "a\\nb", "flags": ["i", 3]}'),
        ToolResult(tool_use_id="c1", content=(Text(text="found"),)),
        ToolResult(tool_use_id="c2", name="read", content=(Text(text="text"),)),
    )
    assert texts(*blocks) == [
        ("assistant", None, "Looking."),
        ("assistant", "grep", "grep\npattern: a\nb\nflags: i\nflags: 3"),
        ("tool", "grep", "found"),
        ("tool", "read", "text"),
    ]


def test_what_is_not_words_is_left_out():
    """The proof of reasoning, pictures and encoded data are not searched."""
    data = "QUJD" * 200
    blocks = (Reasoning(data=data, signature="sig"), Image(data=data), Text(text=f"see {data} there"))
    assert texts(*blocks) == [("assistant", None, f"see {OMITTED} there")]


def test_a_long_ordinary_text_is_left_as_it_is():
    """Only unbroken data is left out, not words between spaces."""
    text = "word " * 100
    assert texts(Text(text=text)) == [("assistant", None, text)]


def test_a_document_is_searched_by_title_and_text():
    """A file's text is part of the message."""
    assert texts(Document(title="Plan", text="Step one"), role="user") == [("user", None, "Plan\nStep one")]


def test_a_speaker_stands_before_the_words():
    """Who said it is part of what is found."""
    assert texts(Text(text="Hi"), role="user", metadata={"speaker": "Ann"}) == [("user", None, "Ann: Hi")]


def test_arguments_that_are_no_object_are_searched_as_they_are():
    """A broken call is found by what the model wrote."""
    assert texts(ToolUse(id="c", name="run", arguments="{oops")) == [("assistant", "run", "run\n_text: {oops")]


def test_an_empty_message_has_no_passages():
    """There is nothing to find in it."""
    assert texts(Text(text="  "), ToolResult(tool_use_id="x")) == []


def test_what_the_model_thought_is_searched():
    """A name that stood only in reasoning is within reach once the reasoning is gone."""
    blocks = (Reasoning(text="try git stash", signature="sig"), Text(text="Done."))
    assert texts(*blocks) == [("assistant", None, "try git stash"), ("assistant", None, "Done.")]


def test_of_an_enormous_output_both_ends_are_searched(monkeypatch):
    """What lies between them is left to a search of the output itself, and lines keep their numbers."""
    monkeypatch.setattr(passages, "END", 2_000)
    output = "\n".join(f"row {number}" for number in range(1, 5_001))
    found = message_passages(
        Message(role="user", blocks=(ToolResult(tool_use_id="c1", content=(Text(text=output),)),), id="m"),
        seq=1,
        tools={},
    )
    lines = {each.first: each.text.split("\n")[0] for each in found}
    assert all(text == f"row {first}" for first, text in lines.items())
    assert (found[0].first, found[-1].last) == (1, 5_000)
    assert sum(len(each.text) for each in found) < 5_000


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
