import pytest

from support.archives import Synonyms
from windowsill.search.ranking import relevance

pytestmark = pytest.mark.unit


def test_without_an_embedder_words_in_common_count():
    """The share of the goal's words that a text holds, whatever else it says."""
    assert relevance("mend the login page", ["The login page is broken", "login", "weather"]) == [
        pytest.approx(2 / 3),
        pytest.approx(1 / 3),
        0.0,
    ]


def test_japanese_words_in_common_count():
    """Pairs of characters stand in for words."""
    assert relevance("東京の天気", ["東京は晴れ", "大阪"]) == [0.25, 0.0]


def test_an_embedder_compares_meaning():
    """Texts that mean the same have all to do with each other."""
    embedder = Synonyms(("dog", "hound"), ("car", "lorry"))
    assert relevance("hound", ["dog", "lorry", "dog lorry"], embedder) == [1.0, 0.0, pytest.approx(0.7071, abs=1e-4)]


def test_nothing_has_nothing_to_do_with_anything():
    """Empty goals and no texts are answered."""
    assert relevance("", ["x"]) == [0.0]
    assert relevance("x", []) == []
