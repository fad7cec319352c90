"""A tool loop in a small window, in each format: valid, within budget, nothing lost, no repair of our own making."""

import pytest

import windowsill
from support.sessions import opened
from windowsill import providers

pytestmark = pytest.mark.unit

BUDGET = 1_500
TURNS = 40
OUTPUT = "line of the file\n" * 25


def anthropic(turn):
    calls = [{"type": "tool_use", "id": f"t{turn}_{n}", "name": "read", "input": {"n": n}} for n in range(1 + turn % 3)]
    results = [{"type": "tool_result", "tool_use_id": call["id"], "content": OUTPUT} for call in calls]
    return [{"role": "assistant", "content": calls}, {"role": "user", "content": results}]


def openai(turn):
    ids = [f"c{turn}_{n}" for n in range(1 + turn % 3)]
    calls = [{"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}} for id in ids]
    results = [{"role": "tool", "tool_call_id": id, "content": OUTPUT} for id in ids]
    return [{"role": "assistant", "content": None, "tool_calls": calls}, *results]


def deepseek(turn):
    asked, *results = openai(turn)
    return [{**asked, "reasoning_content": f"I read {turn} now."}, *results]


def gemini(turn):
    calls = [{"functionCall": {"name": "read", "args": {"n": n}}} for n in range(1 + turn % 3)]
    calls[0]["thoughtSignature"] = "c2ln"
    results = [{"functionResponse": {"name": "read", "response": {"output": OUTPUT}}} for _ in calls]
    return [{"role": "model", "parts": calls}, {"role": "user", "parts": results}]


def responses(turn):
    ids = [f"call_{turn}_{n}" for n in range(1 + turn % 3)]
    reasoning = {"type": "reasoning", "id": f"rs_{turn}", "summary": [], "encrypted_content": "abc"}
    calls = [{"type": "function_call", "call_id": id, "name": "read", "arguments": "{}"} for id in ids]
    results = [{"type": "function_call_output", "call_id": id, "output": OUTPUT} for id in ids]
    return [reasoning, *calls, *results]


TASKS = {
    "anthropic": {"role": "user", "content": "Read everything."},
    "deepseek": {"role": "user", "content": "Read everything."},
    "gemini": {"role": "user", "parts": [{"text": "Read everything."}]},
    "openai": {"role": "user", "content": "Read everything."},
    "responses": {"type": "message", "role": "user", "content": "Read everything."},
}
TURN = {"anthropic": anthropic, "deepseek": deepseek, "gemini": gemini, "openai": openai, "responses": responses}


@pytest.mark.parametrize("name", providers.names())
def test_a_tool_loop_in_a_small_window(name):
    """Calls and results are folded together, reasoning with what it led to."""
    session = opened(budget=BUDGET, format=name)
    added = [session.add(TASKS[name])]
    for turn in range(TURNS):
        payload = session.compose_sync(
            system="You read files.", params={"max_tokens": 9} if name == "anthropic" else {}
        )
        assert payload.tokens <= BUDGET
        assert windowsill.validate(payload.to(), name) == []
        assert payload.report.repairs == ()
        added += session.extend(TURN[name](turn))
    assert session.folds
    assert [message.id for message in session.messages()] == added
    assert "Read everything." in payload.body().decode()
    assert session.verify() == []


@pytest.mark.parametrize("source", providers.names())
@pytest.mark.parametrize("target", providers.names())
def test_what_one_provider_recorded_another_can_go_on_with(source, target):
    """The same session, composed for any of them, is valid there."""
    session = opened(budget=BUDGET, format=source)
    session.add(TASKS[source])
    for turn in range(12):
        session.extend(TURN[source](turn))
    body = session.compose_sync(system="You read files.").to(target)
    assert windowsill.validate({"max_tokens": 9, **body} if target == "anthropic" else body, target) == []
    assert "Read everything." in str(body)


@pytest.mark.parametrize("name", providers.names())
def test_the_format_of_a_list_is_told_from_its_content(name):
    """Whoever wrote it."""
    messages = [TASKS[name], *TURN[name](1)]
    assert providers.read_request(messages).format == name
    assert windowsill.fit(messages, budget=5_000).messages == messages
