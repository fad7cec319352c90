import pytest

from support.archives import asked, said
from windowsill.errors import InputError
from windowsill.search import Archive

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"k": 0}, "k is 0"),
        ({"budget": -1}, "budget is -1"),
        ({"roles": ["nobody"]}, "no role 'nobody'"),
        ({"after": float("nan")}, "after is nan"),
        ({"now": float("nan")}, "now is nan"),
    ],
)
def test_what_cannot_be_meant_is_named(options, named):
    """A mistake is an error that says what it is, instead of nothing found."""
    with pytest.raises(InputError, match=named):
        asked(said("one apple"), "apple", **options)


@pytest.mark.parametrize(
    "options",
    [
        {"k": 10**30},
        {"roles": "user"},
        {"within": [(1, 10**30)]},
        {"after": -(10**400)},
        {"before": float("inf")},
        {"now": float("inf")},
        {"now": -1e20},
        {"sessions": "s"},
    ],
)
def test_numbers_and_names_may_be_at_the_edges(options):
    """What is larger than anything there is limits nothing, and one name need not be in a list."""
    assert asked(said("one apple"), "apple last week", **options) == ["one apple"]


@pytest.mark.parametrize("options", [{"budget": 0}, {"roles": []}, {"tools": ["\ud800"]}, {"within": [(5, 1)]}])
def test_limits_that_leave_nothing_find_nothing(options):
    """They are no mistake."""
    assert asked(said("one apple"), "apple", **options) == []


@pytest.mark.parametrize("question", ["=>", "😀", "?!\x00", "👩‍👩‍👧"])
def test_what_has_no_letters_is_found_as_it_is_written(question):
    """Operators and emoji are no words, and still stand somewhere."""
    assert asked(said(f"x {question} y", "other"), question, 1) == [f"x {question} y"]


@pytest.mark.parametrize(
    "question",
    ["NEAR(apple tree, 5)", "app* OR apple", "^apple", "words: apple", '"apple', "apple\ud800", "-apple AND NOT"],
)
def test_nothing_of_a_question_is_syntax(question):
    """What the full-text index would take for its own language are words or nothing."""
    assert asked(said("one apple", "one pear"), question, 1) == ["one apple"]


def test_a_program_that_looks_for_words_says_how_many():
    """The same rules hold for `mentions`."""
    with Archive(said("one apple"), "s") as archive:
        assert [found.text for found in archive.mentions(["apple"], 10**30)] == ["one apple"]
        with pytest.raises(InputError, match="k is -1"):
            archive.mentions(["apple"], -1)
