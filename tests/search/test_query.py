# ruff: noqa: RUF001 - full-width forms are what is tested
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.search.query import (
    MOST_TERMS,
    content_words,
    index_words,
    named_speaker,
    phrase_term,
    query_terms,
    valid_text,
)
from windowsill.store.search_index import PassageFacts
from windowsill.store.sqlite.fts import match_expression

pytestmark = pytest.mark.unit


def finds(text: str, question: str) -> bool:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE t USING fts5 (words, tokenize = 'porter unicode61 remove_diacritics 2')")
    db.execute("INSERT INTO t VALUES (?)", (index_words(text),))
    found = db.execute("SELECT count(*) FROM t WHERE t MATCH ?", (match_expression(query_terms(question)),)).fetchone()
    db.close()
    return found == (1,)


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("去年、東京へ行きました", "東京"),
        ("うちの犬が吠えた", "犬"),
        ("散歩する犬", "犬"),
        ("GPT-5で要約する", "要約"),
        ("GPT-5で要約する", "GPT-5"),
        ("型番はＡＢＣ１２３です", "ABC123"),
        ("型番はABC123です", "ＡＢＣ１２３"),
        ("ｻｰﾊﾞｰが落ちた", "サーバー"),
        ("東京タワーに登った", "タワーはどこ？"),
        ("りんごを食べた", "何を食べましたか"),
        ("ひらがなだけ", "ひらがな"),
        ("안녕하세요 세계", "세계"),
        ("我住在北京市", "北京"),
        ("read getUserName first", "get_user_name"),
        ("see get_user_name there", "getUserName"),
        ("open src/app/main_window.py", "main_window.py"),
        ("HTTPServerError was raised", "server error"),
        ("she was running home", "who runs?"),
        ("un café noir", "cafe"),
        ("Straße", "STRASSE"),
    ],
)
def test_a_word_is_found_in_each_way_it_is_written(text, question):
    """Two-character words, mixed text, full-width forms, identifiers and bent words are found."""
    assert finds(text, question)


@pytest.mark.parametrize(
    ("text", "question"), [("京都へ行く", "東京"), ("名古屋の天気", "東京の天気図は"[:2]), ("user name", "usern")]
)
def test_what_is_not_there_is_not_found(text, question):
    """A pair that stands in no text matches nothing."""
    assert not finds(text, question)


def test_words_that_only_ask_are_left_out():
    """A question's own words match nothing as long as it has others."""
    assert query_terms("What did the user say about zebras?") == ["user", "say", "zebras"]


def test_a_question_of_nothing_but_such_words_uses_them():
    """Nothing is left out of a question that would then be empty."""
    assert query_terms("who was it") == ["who", "was", "it"]


def test_an_identifier_is_looked_for_by_its_parts_and_in_a_row():
    """An exact use of an identifier ranks above texts that hold its parts."""
    assert query_terms("max_retries") == ["max", "retries", "max retries"]


def test_a_question_without_words_asks_for_nothing():
    """Punctuation alone is no query."""
    assert query_terms(' "*^() - : ') == []


def test_a_long_question_keeps_its_longest_words():
    """A whole message as a question stays a query of a bounded size."""
    words = [f"word{'x' * number}" for number in range(100)]
    assert len(query_terms(" ".join(words))) == MOST_TERMS
    assert words[-1] in query_terms(" ".join(words))
    assert words[0] not in query_terms(" ".join(words))


@given(st.text(), st.text())
def test_no_question_is_ever_syntax(text, question):
    """Whatever is asked, FTS5 takes it as words: it never fails."""
    if query_terms(question):
        finds(valid_text(text), question)


@given(st.text(alphabet="東京犬はがGPT5でねこ 、ＡＢ１ア", min_size=1))
def test_a_text_is_found_by_itself(text):
    """Any text with a word in it answers the question that repeats it."""
    assert not query_terms(text) or finds(text, text)


def test_half_a_surrogate_pair_becomes_a_question_mark():
    """Text that UTF-8 cannot hold is indexed without it."""
    assert valid_text("a\ud800b") == "a?b"


def test_ascii_text_without_humps_is_its_own_words():
    """Most text need not be kept twice."""
    assert index_words("the quick brown fox") == "the quick brown fox"


def test_content_words_keep_their_spelling():
    """What is embedded of a question is what it is about."""
    assert content_words("Where did Ann buy the Volvo?") == ["Ann", "buy", "Volvo"]


@pytest.mark.parametrize("piece", ["a-", "x_", "aB", "東京都", "w ", '" OR ', ".", "\ufdfa"])
def test_a_question_as_long_as_a_file_is_a_small_query(piece):
    """Whatever it repeats, what the index is asked stays short."""
    assert len(match_expression(query_terms(piece * (1_000_000 // len(piece))))) < 20_000


def test_of_a_long_question_both_ends_count():
    """What is asked stands at the beginning or at the end of a text."""
    asked = query_terms("firstword " + "! " * 500_000 + "lastword")
    assert asked == ["firstword", "lastword"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("git status", "git status"),
        ("status", ""),
        ("a " * 30, ""),
        ("東京 大阪", ""),
        ('say "x" now', "say x now"),
    ],
)
def test_a_few_words_are_also_a_phrase(text, expected):
    """One word is no phrase, and a long text none that anybody repeats."""
    assert phrase_term(text) == expected


ANN = PassageFacts(0.0, "user", None, "Ann")


BOB = PassageFacts(0.0, "assistant", None, "Bob")


TARO = PassageFacts(0.0, "user", None, "太郎")


USER = PassageFacts(0.0, "user", None, None)


MODEL = PassageFacts(0.0, "assistant", None, None)


TOOL = PassageFacts(0.0, "tool", "run", None)


ALL = (ANN, BOB, TARO, USER, MODEL, TOOL)


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("What did Ann buy?", [ANN]),
        ("what is ann's car?", [ANN]),
        ("What did Ann tell Bob?", []),
        ("Is Annabel here?", []),
        ("太郎は何を買った", [TARO]),
        ("What did I say?", [USER]),
        ("what did you answer", [MODEL]),
        ("what was in the output?", [TOOL]),
        ("what did I tell you?", []),
        ("zebras", []),
    ],
)
def test_a_question_names_who_it_asks_about(question, named):
    """A name, or a word for a role, chooses its passages; two of them choose none."""
    choose = named_speaker(question, ALL)
    assert [each for each in ALL if choose(each)] == named
