"""The marker that stands where messages were hidden."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.sessions import plain_view
from windowsill.history.entries import is_own, own_words
from windowsill.history.proposals import Facts, gather, marker
from windowsill.history.view import Item
from windowsill.messages import Message, Text, ToolResult, text_message
from windowsill.tokens import Weight

pytestmark = pytest.mark.unit


def item(id, *, own=False, tools=(), fold=0, facts=None, hides=0):
    return Item(
        seq=1,
        first=1,
        last=1,
        id=id,
        role="user",
        weight=Weight(prose=10),
        own=own,
        tools=tools,
        fold=fold,
        facts=facts or {},
        hides=hides,
    )


def gathered(items):
    return gather(plain_view(items, lambda each: text_message("user", each.id)), items)


def test_tool_calls_are_counted_by_name():
    """A reader sees which tools were used how often."""
    facts = gathered([item("m1", tools=("grep", "read")), item("m2", tools=("grep",))])
    assert "grep x2, read x1" in marker(facts).text


def test_a_wider_fold_repeats_what_the_inner_marker_said():
    """Facts add up over nested folds without reading what is hidden."""
    inner = gathered([item("m3", tools=("run",))])
    outer = gathered([item("f9:0", fold=9, facts=msgspec.to_builtins(inner), hides=1), item("m5", tools=("run",))])
    assert (outer.messages, outer.calls) == (2, {"run": 2})


@given(st.text(min_size=1))
def test_a_tool_name_adds_no_line_to_the_marker(name):
    """A model may call a tool by any text: it cannot pose as words of the marker."""
    plain = marker(gathered([item("m1", tools=("run",))])).text
    assert len(marker(gathered([item("m1", tools=(name,))])).text.splitlines()) == len(plain.splitlines())


def test_text_that_a_program_put_under_the_user_role_is_not_the_users_own():
    """Reminders, command output and tool results are told apart from what was typed."""
    assert is_own("Please mend the login page")
    assert not is_own("<system-reminder>do not forget</system-reminder>")
    assert not is_own("  [Request interrupted by user]")
    results = Message(role="user", blocks=(ToolResult(tool_use_id="a"), Text(text="done")))
    assert own_words(results) == ""


def test_a_marker_says_that_it_is_no_instruction():
    """Models must not obey what only reports."""
    assert "not an instruction" in marker(Facts(messages=3)).text
