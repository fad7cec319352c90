"""What a turn costs does not depend on how long the session is."""

import pytest

from support.gemini_contents import answer, call, model, text, user
from support.sessions import opened
from support.step_counts import count_steps

pytestmark = pytest.mark.unit


def cost_of_a_turn(session, n, turn):
    """Count the steps of the last of `n` turns."""
    for number in range(n - 1):
        turn(session, number)
    # The first look at a new position may fill memories; the second turn after it is what every turn costs.
    return min(count_steps(lambda number=number: turn(session, number)) for number in (n, n + 1))


def plain(session, number):
    session.add({"role": "user", "content": f"question {number}"})
    session.compose_sync()
    session.add({"role": "assistant", "content": f"answer {number}"})


def repeated(session, number):
    session.add({"role": "user", "content": f"question {number}"})
    session.compose_sync()
    session.add({"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "read", "input": {}}]})
    session.add({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "done"}]})
    session.compose_sync()
    session.add({"role": "assistant", "content": f"answer {number}"})


def lost(session, number):
    """A call in the first turn that is never answered."""
    if not session.view.items:
        session.add({"role": "user", "content": "go"})
        session.add({"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "read", "input": {}}]})
    plain(session, number)


@pytest.mark.parametrize("turn", [plain, repeated, lost])
def test_a_later_turn_takes_as_many_steps_as_an_earlier_one(turn):
    """With plain words, with one call id in every turn, and behind a call that was never answered."""
    few, many = (cost_of_a_turn(opened(budget=1_000_000), n, turn) for n in (20, 160))
    assert many < 1.5 * few


@pytest.mark.parametrize("format", ["anthropic", "openai", "responses", "gemini"])
def test_a_turn_without_an_answer_takes_as_many_steps_as_an_earlier_one(format):
    """However many messages the user wrote in a row, each request renders only the new one."""

    def unanswered(session, number):
        session.add(f"question {number}")
        session.compose_sync()

    costs = [cost_of_a_turn(opened(format=format, budget=1_000_000), n, unanswered) for n in (40, 80, 160)]
    assert max(costs) < 1.5 * min(costs)


def test_a_later_response_in_a_row_takes_as_many_steps_as_an_earlier_one():
    """Gemini's responses without ids are tied to their calls without reading the turn again."""

    def respond(session, number):
        if not session.view.items:
            session.add(user(text("go")))
            session.add(model(*[call("read")] * 400))
        session.add(user(answer("read", out=number)))

    few, many = (cost_of_a_turn(opened(format="gemini", budget=1_000_000), n, respond) for n in (20, 160))
    assert many < 1.5 * few
