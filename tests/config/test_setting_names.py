"""How strategies with settings are written in one line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.config.settings import Stage, read_stages, read_strategies, with_tables, write_stages

pytestmark = pytest.mark.unit

NAMES = st.from_regex(r"[a-z][a-z-]{0,8}(\.[a-z]{1,5}:[A-Z][a-z]{0,5})?", fullmatch=True)
KEYS = st.from_regex(r"[a-z_]{1,8}", fullmatch=True)
VALUES = st.one_of(
    st.text(max_size=12),
    st.lists(st.text(max_size=6), max_size=3),
    st.dictionaries(KEYS, st.integers(-9, 9), max_size=2),
)


@pytest.mark.parametrize(
    ("text", "stages"),
    [
        ("mask", [Stage("mask")]),
        ("mask:keep=5+condense:keep=4", [Stage("mask", {"keep": "5"}), Stage("condense", {"keep": "4"})]),
        ("mask + condense", [Stage("mask"), Stage("condense")]),
        ("a.b:C:size=8,label=y", [Stage("a.b:C", {"size": "8", "label": "y"})]),
        ('mask:exempt=["read","a+b"],keep=2', [Stage("mask", {"exempt": ["read", "a+b"], "keep": "2"})]),
        ('x:say="one, two + three"', [Stage("x", {"say": "one, two + three"})]),
        ("x:share=1e+5", [Stage("x", {"share": "1e+5"})]),
        ("x:url=http://h/a=b", [Stage("x", {"url": "http://h/a=b"})]),
        ("x:list=[1", [Stage("x", {"list": "[1"})]),
    ],
)
def test_a_line_is_read_as_stages_with_settings(text, stages):
    """Commas, pluses and equal signs inside of JSON values separate nothing."""
    assert list(read_stages(text)) == stages


@given(st.lists(st.tuples(NAMES, st.dictionaries(KEYS, VALUES, max_size=3)), min_size=1, max_size=3))
def test_what_is_written_is_read_again(stages):
    """Whatever texts, lists and tables the settings hold."""
    made = tuple(Stage(name, settings) for name, settings in stages)
    assert read_stages(write_stages(made)) == made


def test_tables_fill_in_what_the_line_does_not_state():
    """Each stage from the table of its name; the line itself wins."""
    tables = {"mask": {"keep": 5, "batch": "5%"}, "other": {"keep": 1}}
    assert with_tables("mask:keep=2+condense", tables) == "mask:keep=2,batch=5%+condense"


def test_a_line_without_a_table_stays_as_it_was_typed():
    """Down to its spaces."""
    assert with_tables("a : keep = 2", {"b": {"x": 1}}) == "a : keep = 2"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("economy", ["economy"]),
        (" economy , mask ,", ["economy", "mask"]),
        ("condense:keep=20,room=0.15,mask", ["condense:keep=20,room=0.15", "mask"]),
        (
            'mask:exempt=["a","b"],keep=2+condense:keep=4,x.y:Z',
            ['mask:exempt=["a","b"],keep=2+condense:keep=4', "x.y:Z"],
        ),
    ],
)
def test_a_list_of_strategies_keeps_their_settings(text, found):
    """A comma separates strategies, and the settings of one: `key=value` belongs to the strategy before it."""
    assert read_strategies(text) == found
