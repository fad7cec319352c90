import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.archives import Synonyms
from windowsill.dates import TimeSpan
from windowsill.search.rank import Duplicates, Ranking, best_first, fuse, neighbours, relevance, spread, weigh
from windowsill.store.search_index import APART, PassageFacts

pytestmark = pytest.mark.unit


SESSION = 3 << 32


RANKING = Ranking(near=(0.5, 0.25), gap=100.0, recency=0.0, speaker=0.5, period=1.0, told_later=10.0)


def facts(*times: float) -> dict[int, PassageFacts]:
    return {SESSION + place: PassageFacts(at, "user", None, "Ann") for place, at in enumerate(times, 1)}


def weighed(at: float, *, named: bool = False, ranking: Ranking = RANKING, now: float = 0.0) -> float:
    scores = {1: 1.0, 2: 1.0}
    about = {1: PassageFacts(at, "user", None, None), 2: PassageFacts(-1e9, "tool", None, None)}
    period = [TimeSpan(100.0, 200.0)] if not named and ranking is RANKING else []
    found = weigh(scores, about, ranking, named=lambda each: named and each.role == "user", periods=period, now=now)
    return found[1] / found[2]


def test_neighbours_share_in_a_hit():
    """The passage beside a hit gets half of its score here, the one after that a quarter."""
    found = spread({SESSION + 3: 1.0}, facts(1, 2, 3, 4, 5, 6), RANKING)
    assert [found.get(SESSION + place, 0.0) for place in range(1, 7)] == [0.25, 0.5, 1.0, 0.5, 0.25, 0.0]


def test_hits_beside_each_other_strengthen_each_other():
    """What one gives another is a share of its own score, not of what it was given."""
    found = spread({SESSION + 1: 1.0, SESSION + 2: 2.0}, facts(1, 2), RANKING)
    assert (found[SESSION + 1], found[SESSION + 2]) == (2.0, 2.5)


def test_a_long_silence_parts_neighbours():
    """What was said on another day does not belong to a hit."""
    assert SESSION + 2 not in spread({SESSION + 1: 1.0}, facts(1, 500), RANKING)


def test_passages_apart_and_other_sessions_are_no_neighbours():
    """Stored things have none, and the first passage of a session has none before it."""
    assert list(neighbours(SESSION + APART + 5, 2)) == []
    assert list(neighbours(SESSION + 1, 2)) == [SESSION + 1, SESSION + 2, SESSION + 3]
    assert max(neighbours(SESSION + APART - 1, 2)) == SESSION + APART - 1


def test_what_is_gone_is_not_ranked():
    """A hit without a passage is left out."""
    assert spread({SESSION + 9: 1.0}, facts(1), RANKING) == {}


def test_two_lists_are_fused_by_rank():
    """Being second in both lists beats being first in one."""
    found = fuse([(1.0, {1: 9.0, 2: 8.0}), (1.0, {3: 0.9, 2: 0.8})], 60)
    assert best_first(found) == [2, 1, 3]


@given(st.dictionaries(st.integers(1, 50), st.floats(0.1, 1e6)), st.floats(1e-3, 1e3))
def test_the_scale_of_a_list_means_nothing(scores, scale):
    """Only the order of a list counts in the fusion, as long as it stays the same."""
    scaled = {key: score * scale for key, score in scores.items()}
    if best_first(scaled) == best_first(scores):
        assert fuse([(1.0, scores)], 60) == fuse([(1.0, scaled)], 60)


def test_equals_stand_in_the_order_they_were_said():
    """The same question gets the same answer every time."""
    assert best_first({5: 1.0, 3: 1.0, 4: 2.0}) == [4, 3, 5]


def test_the_time_a_question_speaks_of_weighs():
    """What was said then gains all, what was said soon after half, the rest nothing."""
    assert (weighed(150.0), weighed(205.0), weighed(50.0)) == (2.0, 1.5, 1.0)


def test_the_one_a_question_names_weighs():
    """A passage of the one who is asked about gains."""
    assert weighed(0.0, named=True) == 1.5


def test_the_recent_weighs_more():
    """A passage loses half of what recency gave it after each half-life."""
    ranking = Ranking(recency=0.5, half_life=100.0)
    assert weighed(0.0, ranking=ranking, now=100.0) == pytest.approx(1.25)


def test_the_best_has_score_one():
    """Scores lie between 0 and 1."""
    about = {1: PassageFacts(0.0, "user", None, None), 2: PassageFacts(0.0, "user", None, None)}
    found = weigh({1: 8.0, 2: 2.0}, about, RANKING, named=lambda _: False, periods=[], now=0.0)
    assert found == {1: 1.0, 2: 0.25}


LONG = " ".join(f"word{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")


def places(*texts: str) -> list[int | None]:
    seen = Duplicates(0.9)
    return [seen.repeats(text, place) for place, text in enumerate(texts)]


def test_a_text_said_again_is_a_repetition():
    """The same words, however spaced and capitalised, repeat the first."""
    assert places("All tests pass.", "other", "all  tests pass") == [None, None, 0]


def test_one_changed_word_of_many_is_a_repetition():
    """Nine words of ten in common are enough."""
    assert places(LONG, LONG.replace("wordm", "wordy")) == [None, 0]


def test_a_changed_number_is_news():
    """A balance that changed is not what was said before, however many words are the same."""
    assert places(f"{LONG} balance 120", f"{LONG} balance 95") == [None, None]


def test_different_texts_are_kept():
    """Half of the words in common is another text."""
    assert places("the red fox runs", "the red hen sleeps") == [None, None]


def test_texts_without_words_do_not_fail():
    """Punctuation repeats punctuation."""
    assert places("---", "***") == [None, 0]


def test_without_an_embedder_words_in_common_count():
    """As a share of the shorter text's words; what says more of the goal is nearer."""
    assert relevance("mend the login page", ["The login page is broken", "login", "weather"]) == [
        pytest.approx(2 / 3),
        pytest.approx(1 / 1.02),
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
