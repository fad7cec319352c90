"""Results that come after the conversation went on: background jobs, approvals, resumed agents."""

import json

import pytest

from support.sessions import opened
from windowsill import fit, providers, validate
from windowsill.messages import Message, Text, ToolResult, ToolUse

pytestmark = pytest.mark.unit

FORMATS = ["anthropic", "openai", "responses", "gemini"]
MODELS = {
    "anthropic": "claude-sonnet-4-5",
    "openai": "gpt-5",
    "responses": "gpt-5",
    "gemini": "gemini-2.5-flash",
}


def say(role, text):
    return Message(role=role, blocks=(Text(text=text),))


def asked(*ids):
    return Message(role="assistant", blocks=tuple(ToolUse(id=id, name="build") for id in ids))


def came(*ids):
    return Message(
        role="user", blocks=tuple(ToolResult(tool_use_id=id, content=(Text(text=f"built {id}"),)) for id in ids)
    )


def chat(count, start=0):
    """Questions and answers of about 50 tokens each."""
    return [
        say(role, f"{role} {number} " + "word " * 45)
        for number in range(start, start + count)
        for role in ("user", "assistant")
    ]


def session_of(format, budget=2_000):
    return opened(format=format, model=MODELS[format], budget=budget)


def sent(session):
    """The text of the request, which its provider takes."""
    payload = session.compose_sync()
    for format in FORMATS:
        body = {**payload.to(format), "max_tokens": 100} if format == "anthropic" else payload.to(format)
        assert not validate(body, format)
    return json.dumps(payload.to())


@pytest.mark.parametrize("format", FORMATS)
def test_a_history_that_is_loaded_with_a_late_result_is_cut_like_any_other(format):
    """As many messages stay as if the result had come in time; the task, the newest and the result are told."""
    late, in_time = session_of(format), session_of(format)
    start, talk = [say("user", "The task."), asked("job")], chat(60)
    for message in [*start, *talk, came("job")]:
        late.add(message)
    for message in [*start, came("job"), *talk]:
        in_time.add(message)
    text = sent(late)
    in_time.compose_sync()
    for words in ("The task.", "(result of tool call job)", "built job", "assistant 59"):
        assert words in text
    assert abs(len(late.view.items) - len(in_time.view.items)) < 4


@pytest.mark.parametrize("format", FORMATS)
def test_a_result_whose_call_was_folded_is_told(format):
    """The call left the window before its result came: the model reads the result, not that nothing was said."""
    session = session_of(format)
    session.add(say("user", "The task."))
    session.add(asked("job"))
    for number in range(60):
        for message in chat(1, number):
            session.add(message)
        session.compose_sync()
    assert not any("job" in item.calls for item in session.view.items)
    session.add(came("job"))
    text = sent(session)
    assert "(result of tool call job)" in text
    assert "built job" in text
    assert "no new message" not in text


@pytest.mark.parametrize("format", FORMATS)
def test_of_parallel_calls_each_late_result_is_told_at_its_own_place(format):
    """One result comes in time, one after the next answer, one later still."""
    session = session_of(format)
    for message in [say("user", "Go."), asked("a", "b", "c"), came("a"), say("assistant", "Two are running.")]:
        session.add(message)
    for message in [came("b"), say("assistant", "One is running."), came("c")]:
        session.add(message)
    text = sent(session)
    places = [text.index(word) for word in ("built a", "Two are", "built b", "One is", "built c")]
    assert places == sorted(places)
    assert text.count("no result was recorded") == 2
    assert text.count("(result of tool call") == 2


@pytest.mark.parametrize("format", FORMATS)
def test_a_late_result_only_lengthens_the_request(format):
    """What was sent while the job ran stays the beginning of every request after it."""
    session = session_of(format, budget=50_000)
    session.add(say("user", "Go."))
    session.add(asked("a", "b"))
    session.add(came("a"))
    field = providers.get(format).spec.messages_field
    before = []
    for message in [*chat(2), came("b"), say("user", "And now?"), say("assistant", "Done."), *chat(1)]:
        now = session.compose_sync().to(cache=False)[field]
        # The last message may have grown, where results and words of one turn are one message.
        if before:
            assert now[: len(before) - 1] == before[:-1]
            kept = json.dumps(before[-1])[:-40]
            assert json.dumps(now[len(before) - 1]).startswith(kept)
        before = now
        session.add(message)


def test_a_list_with_a_late_result_fits_as_if_it_had_come_in_time():
    """`fit` keeps as many messages as without the late result."""
    call = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "job", "type": "function", "function": {"name": "build", "arguments": "{}"}}],
    }
    talk = [
        {"role": role, "content": f"{role} {number} " + "word " * 40}
        for number in range(200)
        for role in ("user", "assistant")
    ]
    late = {"role": "tool", "tool_call_id": "job", "content": "built"}
    start, end = [{"role": "user", "content": "The task."}, call], [{"role": "user", "content": "Well?"}]
    in_time = fit([*start, late, *talk, *end], model="gpt-5", budget=8_000)
    too_late = fit([*start, *talk, late, *end], model="gpt-5", budget=8_000)
    assert abs(len(in_time.messages) - len(too_late.messages)) < 5
    assert too_late.messages[-2:] == [{"role": "user", "content": "(result of tool call job)\nbuilt"}, *end]
