"""The page about replays."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.cli_calls import anthropic_turns
from windowsill.replay import ReplayOptions, comparison_page, cross
from windowsill.replay.page import _Axis
from windowsill.replay.recordings import parse
from windowsill.replay.runs import run_variants

pytestmark = pytest.mark.unit

HOSTILE = "\"><script>alert(1)</script><img src=x onerror=alert(2)> & 'quoted' \u202e"


def page(*strategies, windows=(2_000,), id="caves", early="secret-of-the-first-cave"):
    """A page about a session whose last call needs what only the first output had shown."""
    messages = anthropic_turns(30)
    messages[2]["content"][0]["content"] += early
    messages[-3]["content"][0]["input"]["path"] = early
    found = [parse(json.dumps({"id": id, "model": "gpt-5", "messages": messages}).encode(), "x")]
    variants = cross(strategies or ("mask:keep=2",), windows, ReplayOptions(tokenizer="o200k_base"))
    return comparison_page(run_variants(found, variants))


class Tags(HTMLParser):
    """The elements of a page, and those that were left open."""

    VOID = frozenset({"meta", "line", "rect", "circle", "polyline"})

    def __init__(self, text):
        super().__init__()
        self.found, self.open, self.attributes = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


def test_page_has_headline_plots_table_and_legend():
    """Two strategies at two windows: a row and a point for each, a plot of tokens for each window, a dot for a fold."""
    text = page("mask:keep=2", "sliding-window", windows=(1_500, 3_000))
    tags = Tags(text)
    assert tags.open == []
    assert (tags.found.count("svg"), tags.found.count("tbody"), tags.found.count("details")) == (3, 1, 4)
    assert " costs least" in text
    assert "fold at call " in text
    assert "<dt>would pay</dt>" in text
    assert text.count('<th scope="row">') == 4


def test_page_of_one_replay_begins_with_its_headline():
    """As the command does."""
    assert "With mask:keep=2 at 2,000 tokens, 31 calls would cost " in page()


def test_page_loads_nothing_and_runs_nothing():
    """No address, no script, and a policy that forbids both."""
    text = page()
    assert not re.search(r"https?:|//|@import|url\(", text.replace("</", ""))
    assert "script" not in Tags(text).found
    assert "default-src 'none'; style-src 'unsafe-inline'" in text


def test_hostile_text_is_only_text():
    """Ids of sessions, and values that were lost, come from anywhere."""
    text = page(id=HOSTILE, early="<b>cave</b>")
    found = Tags(text)
    assert found.open == []
    assert not {"script", "img"} & set(found.found)
    assert not [name for name, _ in found.attributes if name.startswith("on")]
    assert "&lt;script&gt;" in text
    assert "&lt;b&gt;cave" in text


def test_page_can_be_read_without_seeing_the_plots():
    """Each picture has its figures as text, the table has headers, the page a language and both colour schemes."""
    text = page()
    labels = re.findall(r'role="img" aria-label="([^"]+)"', text)
    assert len(labels) == 2
    assert re.search(r"mask:keep=2 at 2,000: cost [\d.]+%, kept [\d.]+%", labels[0])
    assert "tokens, " in labels[1]
    assert '<html lang="en">' in text
    assert "prefers-color-scheme: dark" in text
    assert 'scope="col"' in text


def test_variants_at_the_same_place_are_one_mark():
    """Two that fold nothing cost and keep the same; both numbers are there."""
    text = page("mask:keep=2", "sliding-window", windows=(100_000,))
    assert ">1, 2</text>" in text


def test_recording_without_a_call_is_a_page_too():
    """There is nothing to draw."""
    found = [parse(json.dumps([{"role": "user", "content": "Hi"}]).encode(), "x")]
    text = comparison_page(run_variants(found, {"a": ReplayOptions(window=900)}))
    assert text.count("No call was replayed.") == 2


def test_same_reports_make_the_same_page():
    """Byte for byte: no time, no random id."""
    assert page() == page()


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=9))
def test_axis_holds_its_values_and_ticks(values):
    """Every value and every tick is inside the plot, in order."""
    axis = _Axis(values, 100, 500)
    assert all(100 <= axis.at(value) <= 500 for value in (*values, *axis.ticks))
    assert axis.ticks == sorted(set(axis.ticks))
    assert 1 <= len(axis.ticks) <= 9
