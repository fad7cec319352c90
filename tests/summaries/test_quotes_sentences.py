"""Sentences, and those that tell the most."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.summaries.quotes import (
    LONGEST_REQUEST,
    find_decisions,
    find_quotes,
    find_rules,
    pick_telling,
    quote_request,
    split_sentences,
)

pytestmark = pytest.mark.unit


def test_sentences_end_where_they_end_in_either_language():
    """Not at an abbreviation, and without a space in Japanese."""
    assert split_sentences("Use e.g. this one. Then stop.\n1. 原因は設定です。直しました。") == [
        "Use e.g. this one.",
        "Then stop.",
        "原因は設定です。",
        "直しました。",
    ]


@given(st.text(max_size=200))
def test_every_sentence_stands_in_the_text(text):
    """Nothing is made up or joined together."""
    assert all(sentence in text for sentence in split_sentences(text))


def test_findings_come_before_announcements():
    """What was found out tells more than what comes next."""
    said = [
        ("m1", split_sentences("The lock in `store.py` is stale because close() fails.")),
        ("m2", split_sentences("Let me see why the lock in `store.py` is stale because close() fails.")),
    ]
    assert [one.id for one in pick_telling(said, 1)] == ["m1"]


def test_the_chosen_sentences_stand_in_their_order():
    """A reader can follow them."""
    said = [(f"m{number}", [f"Fixed the bug number {number} in file_{number}.py."]) for number in range(9)]
    assert [one.id for one in pick_telling(said, 3)] == ["m6", "m7", "m8"]


def test_a_fence_ends_with_its_own_sign():
    """What looks like the other fence inside code neither ends it nor swallows what follows."""
    assert split_sentences("```\n~~~\nnever in code\n```\nAlways answer in French.") == ["Always answer in French."]


def test_cues_are_found_in_the_right_sentences():
    """All sentences are searched at once, whatever their letters become in small ones."""
    spoken = ["Nothing here.", "İ must stay.", "Plain.", "必ず実行して。", "Never, never push.", "End."]
    assert [quote.text for quote in find_quotes(spoken, "rules", "m1")] == [spoken[1], spoken[3], spoken[4]]


@given(st.lists(st.text("aA mustnever\u0130必ず.,'", max_size=20), max_size=6))
def test_searching_at_once_finds_what_searching_one_by_one_finds(spoken):
    """The search over all sentences is only faster."""
    each = [text for text in spoken if find_quotes([text], "rules", "m1")]
    assert [quote.text for quote in find_quotes(spoken, "rules", "m1")] == each


@pytest.mark.parametrize(
    "sentence",
    [
        "You must run the linter before each commit.",
        "Never touch the billing table!",
        "Always answer in French.",
        "Please don't add dependencies.",
        "Only edit files under src/.",
        "Keep the public interface as it is.",
        "テストを必ず実行してください。",
        "本番のデータベースには絶対に触らないこと。",
        "新しいライブラリの追加は禁止です。",
        "このファイルは変更しないでください。",
    ],
)
def test_binding_sentences_are_kept_word_for_word(sentence):
    """English and Japanese, the whole sentence, from the middle of a message."""
    words = f"Hello there.\n- {sentence}\nThanks a lot."
    assert [quote.text for quote in find_rules(split_sentences(words), "m1")] == [sentence]


@pytest.mark.parametrize(
    "sentence", ["Why must it be so slow?", "Is it only in tests?", "必ず必要ですか\uff1f", "That is musty."]
)
def test_questions_and_other_words_bind_nothing(sentence):
    """A cue inside a question or another word is no rule."""
    assert find_rules(split_sentences(sentence), "m1") == []


def test_pasted_code_holds_no_rules():
    """What stands in a fence was not said by the user."""
    assert find_rules(split_sentences("```\nassert you must not\n```"), "m1") == []


@pytest.mark.parametrize(
    "sentence", ["We decided to keep SQLite.", "Let's use argparse.", "SQLiteを採用します。", "この方針で進める。"]
)
def test_decisions_are_known(sentence):
    """What was settled, in both languages."""
    assert [quote.text for quote in find_decisions(split_sentences(sentence), "m1")] == [sentence]


def test_a_very_long_request_keeps_its_ends():
    """A pasted log does not fill the digest."""
    words = "start " + "x" * 50_000 + " end"
    kept = quote_request(words, "m1").text
    assert kept.startswith("start ")
    assert kept.endswith(" end")
    assert len(kept) <= LONGEST_REQUEST + 10


@pytest.mark.parametrize("said", ["My messaging app says it cannot send MMS.", "I don't remember my user ID."])
def test_what_somebody_cannot_do_is_no_rule(said):
    """It binds nobody."""
    assert find_rules([said], "m1") == []


def test_a_question_is_no_decision():
    """Also without a sign at its end."""
    assert find_decisions(["why exactly didn't you go with the plan we agreed on"], "m1") == []
