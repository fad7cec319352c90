import pytest

from windowsill.messages import Document, Image, Message, Reasoning, Text, ToolResult, ToolUse
from windowsill.search import passages
from windowsill.search.passages import OMITTED, of_message

pytestmark = pytest.mark.unit


def texts(*blocks, role="assistant", **fields):
    message = Message(role=role, blocks=blocks, id="m", **fields)
    found = of_message(message, seq=1, tools={"c1": "grep"})
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
    found = of_message(
        Message(role="user", blocks=(ToolResult(tool_use_id="c1", content=(Text(text=output),)),), id="m"),
        seq=1,
        tools={},
    )
    lines = {each.first: each.text.split("\n")[0] for each in found}
    assert all(text == f"row {first}" for first, text in lines.items())
    assert (found[0].first, found[-1].last) == (1, 5_000)
    assert sum(len(each.text) for each in found) < 5_000
