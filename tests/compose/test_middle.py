"""Cutting one block in the middle: both ends stay, a line says what is gone."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.examples import examples
from windowsill import tokens
from windowsill.compose.squeeze import cut_block, cut_text, note, weigh
from windowsill.messages import Document, Image, Reasoning, Text, ToolResult, ToolUse, Unknown
from windowsill.tokens import Scale

pytestmark = pytest.mark.unit

SCALE = Scale(tokens.counter("o200k_base"), framing=tokens.framing("generic"), images=tokens.image_rule("generic"))


def size_of(text):
    return SCALE.tokens(SCALE.weigh_text(text))


def test_a_text_keeps_its_beginning_and_its_end():
    """What stands between them is counted and told."""
    text = "\n".join(f"line {number}" for number in range(1_000))
    cut = cut_text(text, 200, SCALE)
    assert cut.startswith("line 0\nline 1\n")
    assert cut.endswith("\nline 998\nline 999")
    assert "lines" in cut
    assert "omitted here" in cut
    assert size_of(cut) <= 200


def test_a_text_that_fits_is_given_back():
    """The very same text."""
    assert cut_text("short", 10, SCALE) == "short"


@settings(max_examples=examples(0.6))
@given(st.text(min_size=1, max_size=400), st.integers(1, 60), st.integers(20, 400))
def test_a_cut_text_fits_or_is_only_a_note(text, times, most):
    """Whatever the text is made of."""
    cut = cut_text(text * times, most, SCALE)
    assert size_of(cut) <= most or "omitted" in cut


@settings(max_examples=examples(0.6))
@given(st.text(min_size=0, max_size=300), st.integers(1, 40), st.integers(1, 200))
def test_a_cut_block_is_always_smaller(text, times, most):
    """Or there is none: a cut that saves nothing is not made."""
    blocks = [
        Text(text=text * times),
        ToolResult(tool_use_id="a", content=(Text(text=text * times),)),
        ToolUse(id="a", name="f", arguments=json.dumps({"text": text * times})),
        Document(text=text * times),
    ]
    for block in blocks:
        cut = cut_block(block, most, SCALE)
        assert cut is None or weigh(cut, SCALE) < weigh(block, SCALE)


def test_a_result_gives_way_in_its_largest_piece():
    """A short exit status beside a long log survives."""
    block = ToolResult(tool_use_id="a", is_error=True, content=(Text(text="log " * 4_000), Text(text="exit status 3")))
    cut = cut_block(block, 300, SCALE)
    assert (cut.tool_use_id, cut.is_error) == ("a", True)
    assert cut.content[1] == Text(text="exit status 3")
    assert weigh(cut, SCALE) <= 300


def test_the_arguments_of_a_call_stay_json():
    """Long strings are cut inside; ids, paths and flags stay whole."""
    arguments = {
        "path": "src/app.py",
        "force": True,
        "lines": [1, 2],
        "text": "word " * 5_000,
        "deep": {"a": "b " * 900},
    }
    cut = cut_block(ToolUse(id="a", name="write", arguments=json.dumps(arguments)), 400, SCALE)
    assert (cut.id, cut.name) == ("a", "write")
    assert cut.input["path"] == "src/app.py"
    assert cut.input["force"] is True
    assert cut.input["lines"] == [1, 2]
    assert "omitted" in cut.input["text"]
    assert weigh(cut, SCALE) <= 400


def test_arguments_that_are_no_json_are_cut_as_text():
    """A model that wrote nonsense at length does not block the cut."""
    cut = cut_block(ToolUse(id="a", name="f", arguments="{'broken " + "word " * 5_000), 300, SCALE)
    assert weigh(cut, SCALE) <= 300
    assert json.loads(cut.arguments)


def test_one_line_of_several_million_characters_is_cut():
    """Without lines the cut falls between characters."""
    cut = cut_text("x" * 4_000_000, 500, SCALE)
    assert size_of(cut) <= 500
    assert "characters omitted here" in cut


def test_many_small_pieces_of_a_result_are_cut_too():
    """A thousand short lines as blocks are as large as one long text."""
    block = ToolResult(tool_use_id="a", content=tuple(Text(text=f"piece {number} of many") for number in range(1_000)))
    cut = cut_block(block, 2_000, SCALE)
    assert weigh(cut, SCALE) < weigh(block, SCALE)


@pytest.mark.parametrize(
    ("block", "words"),
    [
        (Image(media_type="image/png", data="AAAA"), "[image omitted: image/png, 3 bytes]"),
        (Image(url="https://example.com/a.png"), "[image omitted: by address]"),
        (Document(title="plan.pdf", data="AAAA"), "[document omitted: plan.pdf, 3 bytes]"),
        (Reasoning(text="hm"), "[reasoning omitted]"),
        (Unknown(type="hologram", raw=b'{"type":"hologram"}'), "[19 bytes of hologram omitted]"),
    ],
)
def test_what_cannot_be_cut_leaves_a_note_of_what_it_was(block, words):
    """A reader of the request knows that something stood there."""
    assert note(block) == words


def test_a_block_made_here_has_a_note_too():
    """Without bytes of its own there is nothing to count, and nothing to fail on."""
    assert "omitted" in note(Unknown(type="hologram"))
