import pytest

from windowsill.search.ranking import Duplicates

pytestmark = pytest.mark.unit

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
