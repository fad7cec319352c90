"""Rules and decisions, word for word."""

import pytest

from windowsill.summaries.sentences import LONGEST_REQUEST, decisions, request, rules, sentences

pytestmark = pytest.mark.unit


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
    assert [quote.text for quote in rules(sentences(words), "m1")] == [sentence]


@pytest.mark.parametrize(
    "sentence", ["Why must it be so slow?", "Is it only in tests?", "必ず必要ですか\uff1f", "That is musty."]
)
def test_questions_and_other_words_bind_nothing(sentence):
    """A cue inside a question or another word is no rule."""
    assert rules(sentences(sentence), "m1") == []


def test_pasted_code_holds_no_rules():
    """What stands in a fence was not said by the user."""
    assert rules(sentences("```\nassert you must not\n```"), "m1") == []


@pytest.mark.parametrize(
    "sentence", ["We decided to keep SQLite.", "Let's use argparse.", "SQLiteを採用します。", "この方針で進める。"]
)
def test_decisions_are_known(sentence):
    """What was settled, in both languages."""
    assert [quote.text for quote in decisions(sentences(sentence), "m1")] == [sentence]


def test_a_very_long_request_keeps_its_ends():
    """A pasted log does not fill the digest."""
    words = "start " + "x" * 50_000 + " end"
    kept = request(words, "m1").text
    assert kept.startswith("start ")
    assert kept.endswith(" end")
    assert len(kept) <= LONGEST_REQUEST + 10
