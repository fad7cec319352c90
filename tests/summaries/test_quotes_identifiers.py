"""Identifiers in outputs and messages."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.summaries.quotes import MOST_OF_AN_OUTPUT, Source, collect_names, find_identifiers

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("text", "name", "kind"),
    [
        ("see src/app/main.py:12 for it", "src/app/main.py", "path"),
        ("./pkg/x.go-431-// comment", "./pkg/x.go", "path"),
        ("open setup.cfg now", "setup.cfg", "path"),
        ("commit 1a2b3c4d is it", "1a2b3c4d", "id"),
        ("id 266b3f40-6f1d-491c-aeca-825cbb3fcbc5.", "266b3f40-6f1d-491c-aeca-825cbb3fcbc5", "id"),
        ("ticket ENT-221, please", "ENT-221", "id"),
        ("user amelia_davis_8890 called", "amelia_davis_8890", "symbol"),
        ("https://example.com/a?b=1.", "https://example.com/a?b=1", "url"),
        ("set max_tokens=4096 there", "max_tokens=4096", "value"),
        ("calls LoadState first", "LoadState", "symbol"),
        ("ファイルsrc/a.pyを読む", "src/a.py", "path"),
    ],
)
def test_names_are_found_with_their_kind(text, name, kind):
    """Paths, hashes, ids, tickets, addresses, named numbers and symbols, without the signs around them."""
    assert (name, kind) in [(found, its) for found, its, _ in find_identifiers(text)]


def test_plain_words_and_numbers_are_no_names():
    """Prose holds nothing to remember."""
    assert find_identifiers("Hello there, this is plain prose. It has 1234 words; really! 12:30 and 1.5 too.") == []


def test_one_listing_does_not_fill_the_digest():
    """Of a long listing only a few names are kept."""
    assert len(find_identifiers("\n".join(f"dir/file{number}.py" for number in range(200)))) == MOST_OF_AN_OUTPUT


def test_the_newest_texts_are_looked_at_first_and_names_stand_oldest_first():
    """When there is room for few names, those of the latest messages stay."""
    sources = [Source(text=f"a/old{number}.py", id=f"m{number}") for number in range(50)]
    assert [name.id for name in collect_names(sources, 8)] == ["m44", "m45", "m46", "m47", "m48", "m49"]


def test_an_unbroken_line_of_a_million_characters_takes_no_time():
    """A hostile output does not hang the writer."""
    assert find_identifiers("a/" * 500_000) == []
    assert find_identifiers("aB_" * 400_000) == []


def test_the_head_of_a_definition_is_kept_as_a_search_for_it_is_written():
    """With its keyword, whatever line numbers a reader puts before it."""
    text = "12:func LoadState(path string) error {\n   40\tclass OrderBook:\ncalls LoadState here\n"
    names = [name for name, _, _ in find_identifiers(text)]
    assert "func LoadState" in names
    assert "class OrderBook" in names


@given(st.text("aAbB19_./:=-?&% é(", max_size=14))
def test_passing_over_plain_words_misses_nothing(text):
    """The names of a text are those of its words, each looked at alone."""
    word = r"(?<![A-Za-z0-9_])[A-Z]?[a-z]*+[A-Z0-9_./@~#+:=-][A-Za-z0-9_./@~#+:=?&%-]{2,}+"
    alone = {name for one in re.findall(word, text) for name, _, _ in find_identifiers(one)}
    assert {name for name, _, _ in find_identifiers(text)} == alone
