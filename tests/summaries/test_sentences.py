"""Sentences, and those that tell the most."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.summaries.sentences import quotes, sentences, telling

pytestmark = pytest.mark.unit


def test_sentences_end_where_they_end_in_either_language():
    """Not at an abbreviation, and without a space in Japanese."""
    assert sentences("Use e.g. this one. Then stop.\n1. 原因は設定です。直しました。") == [
        "Use e.g. this one.",
        "Then stop.",
        "原因は設定です。",
        "直しました。",
    ]


@given(st.text(max_size=200))
def test_every_sentence_stands_in_the_text(text):
    """Nothing is made up or joined together."""
    assert all(sentence in text for sentence in sentences(text))


def test_findings_come_before_announcements():
    """What was found out tells more than what comes next."""
    said = [
        ("m1", sentences("The lock in `store.py` is stale because close() fails.")),
        ("m2", sentences("Let me see why the lock in `store.py` is stale because close() fails.")),
    ]
    assert [one.id for one in telling(said, 1)] == ["m1"]


def test_the_chosen_sentences_stand_in_their_order():
    """A reader can follow them."""
    said = [(f"m{number}", [f"Fixed the bug number {number} in file_{number}.py."]) for number in range(9)]
    assert [one.id for one in telling(said, 3)] == ["m6", "m7", "m8"]


def test_a_fence_ends_with_its_own_sign():
    """What looks like the other fence inside code neither ends it nor swallows what follows."""
    assert sentences("```\n~~~\nnever in code\n```\nAlways answer in French.") == ["Always answer in French."]


def test_cues_are_found_in_the_right_sentences():
    """All sentences are searched at once, whatever their letters become in small ones."""
    spoken = ["Nothing here.", "İ must stay.", "Plain.", "必ず実行して。", "Never, never push.", "End."]
    assert [quote.text for quote in quotes(spoken, "rules", "m1")] == [spoken[1], spoken[3], spoken[4]]


@given(st.lists(st.text("aA mustnever\u0130必ず.,'", max_size=20), max_size=6))
def test_searching_at_once_finds_what_searching_one_by_one_finds(spoken):
    """The search over all sentences is only faster."""
    each = [text for text in spoken if quotes([text], "rules", "m1")]
    assert [quote.text for quote in quotes(spoken, "rules", "m1")] == each
