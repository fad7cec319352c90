"""Which calls of a message were run, wherever the session has been since."""

import pytest

from support.sessions import opened
from windowsill.session.audit import RUNS, begun_calls, open_calls, run_key

pytestmark = pytest.mark.integration


def call(id, name="put"):
    return {"type": "tool_use", "id": id, "name": name, "input": {}}


def result(id):
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "done"}]}


@pytest.fixture
def session():
    """A session whose last message makes three calls."""
    made = opened(budget=20_000)
    made.add("Go.")
    made.add({"role": "assistant", "content": [call("a"), call("b"), call("c")]})
    return made


def test_calls_that_were_answered_or_begun_on_a_branch_that_was_left_are_known(session):
    """A result there, or a note that it began, is enough; the third was never run."""
    asked = session.view.items[-1].id
    assert begun_calls(session.journal, asked) == frozenset()
    session.add(result("a"))
    session.state.put(RUNS, {"id": run_key(asked, "b"), "tool": "put"})
    session.rewind(asked)
    assert [each.id for _, each in open_calls(session.journal)] == ["a", "b", "c"]
    assert begun_calls(session.journal, asked) == {"a", "b"}


def test_runs_of_other_messages_with_the_same_call_ids_do_not_count(session):
    """Models give the same ids again and again."""
    asked = session.view.items[-1].id
    session.state.put(RUNS, {"id": run_key("m99", "a"), "tool": "put"})
    assert begun_calls(session.journal, asked) == frozenset()


def test_of_two_calls_with_one_id_the_second_is_open_until_it_is_answered_too():
    """The first result is the first call's."""
    session = opened(budget=20_000, model="gpt-4o", format="openai")
    made = [{"id": "x", "type": "function", "function": {"name": name, "arguments": "{}"}} for name in ("one", "two")]
    session.add("Go.")
    session.add({"role": "assistant", "content": None, "tool_calls": made})
    session.add({"role": "tool", "tool_call_id": "x", "content": "done"})
    assert [each.name for _, each in open_calls(session.journal)] == ["two"]
    session.add({"role": "tool", "tool_call_id": "x", "content": "done too"})
    assert open_calls(session.journal) == []
