"""Long runs of an engine over the network, in a small window, with every provider's protocol."""

import pytest

from windowsill import Engine, Session, tool
from windowsill.testing import Answer, Call, Server

pytestmark = pytest.mark.end_to_end

WINDOW = 12_000
TURNS = 60


def answers():
    """A model that plans, reads files in parallel, remembers, and is done after many turns."""
    number = 0

    def answer(body):
        nonlocal number
        del body
        number += 1
        if number == 1:
            return Answer(calls=(Call("update_plan", {"steps": [{"description": f"step {each}"} for each in "abc"]}),))
        if number == 2:
            return Answer(text="There is a plan.")
        if number >= TURNS:
            return Answer(text="All done.")
        if number % 7 == 0:
            fact = {"kind": "fact", "text": f"file {number} holds {number * 3} lines", "source": f"f{number}"}
            return Answer(text="I note that.", calls=(Call("remember", fact),))
        return Answer(calls=tuple(Call("look", {"path": f"f{number}_{each}"}) for each in range(1 + number % 3)))

    return answer


@tool(category="read", repeatable=True, parallel=True)
def look(path: str) -> str:
    """Read a file."""
    if path.endswith("_2"):
        raise FileNotFoundError(path)
    return f"contents of {path}: " + "word " * 150


@pytest.mark.parametrize(
    ("provider", "model", "path"),
    [
        ("anthropic", "claude-sonnet-4-5", ""),
        ("openai", "gpt-4o", "/v1"),
        ("responses", "gpt-4o", "/v1"),
        ("gemini", "gemini-2.5-pro", ""),
    ],
)
def test_no_request_of_a_long_run_is_refused_and_most_of_each_is_cached(provider, model, path):
    """State, folds, failures and parallel calls together; the model still knows its goal and its facts at the end."""
    with Server(answers(), window=WINDOW) as server:
        session = Session.open("s", model=model, window=WINDOW, strategy="layered", store=":memory:")
        result = Engine(session, model=f"{provider}:{model}@{server.url}{path}", tools=[look]).run_sync(
            "Read every file, and count the lines of each."
        )
        assert [seen.problems for seen in server.seen if seen.problems] == []
        assert max(seen.tokens for seen in server.seen) <= WINDOW
        last = str(server.seen[-1].body)
    assert (result.status, result.text) == ("completed", "All done.")
    assert len(session.folds) > 3
    assert result.used.cached > 0.8 * (result.used.input + result.used.cached)
    assert "count the lines of each" in last
    assert f"file {TURNS // 7 * 7} holds" in last
    assert "file 7 holds 21 lines" in last
    assert session.verify() == []
