"""The payload: one request, any provider, and a report that adds up."""

import itertools
import json

import pytest

import windowsill
from support.conversations import result, text_block, use
from windowsill import Session
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.unit

TOOLS = [{"name": "read", "description": "Read a file", "input_schema": {"type": "object", "properties": {}}}]


def opened(**settings):
    ticks = itertools.count(1)
    return Session.open(
        "s", store=MemoryStore(), clock=lambda: float(next(ticks)), **{"model": "claude-sonnet-4-5", **settings}
    )


def talk(session, turns):
    session.add({"role": "user", "content": "the task"})
    for turn in range(turns):
        session.add({"role": "assistant", "content": [text_block("looking"), use(f"t{turn}"), use(f"u{turn}")]})
        session.add({"role": "user", "content": [result(f"t{turn}", "word " * 30), result(f"u{turn}")]})


def test_the_same_payload_is_valid_for_the_other_provider():
    """Folded or not, its meaning is the same in both formats."""
    session = opened(budget=1_500)
    talk(session, 30)
    payload = session.compose_sync(system="mend it", tools=TOOLS, params={"max_tokens": 9})
    assert payload.report.hidden > 0
    assert windowsill.validate(payload.to("anthropic"), "anthropic") == []
    other = payload.to("openai")
    assert windowsill.validate(other, "openai") == []
    assert other["messages"][0] == {"role": "system", "content": "mend it"}
    assert other["tools"][0]["function"]["name"] == "read"


def test_fields_that_only_one_provider_knows_stay_behind():
    """A request rendered for Anthropic carries nothing of OpenAI's own, and what means the same is translated."""
    body = {
        "model": "gpt-5",
        "messages": [{"role": "user", "content": "hi"}],
        "max_completion_tokens": 100,
        "stream_options": {"include_usage": True},
        "temperature": 0.5,
    }
    other = windowsill.fit(body, model="gpt-5").to("anthropic")
    assert "stream_options" not in other
    assert "max_completion_tokens" not in other
    assert (other["max_tokens"], other["temperature"]) == (100, 0.5)


def test_a_payload_stays_what_it_was_when_the_session_moves_on():
    """Also in a format that is asked for later, after more turns and folds."""
    session = opened(budget=1_500)
    talk(session, 5)
    payload = session.compose_sync()
    expected = session.compose_sync().to("openai")
    for turn in range(30):
        session.add({"role": "assistant", "content": [use(f"w{turn}")]})
        session.add({"role": "user", "content": [result(f"w{turn}", "word " * 60)]})
        session.compose_sync()
    assert payload.to("openai") == expected


def test_the_dictionary_belongs_to_the_caller():
    """Changing it changes nothing here."""
    session = opened()
    talk(session, 1)
    payload = session.compose_sync()
    payload.to()["messages"].clear()
    assert len(payload.to()["messages"]) == 3


def test_the_parts_of_the_report_add_up():
    """To the tokens of the whole request."""
    session = opened(budget=1_500)
    talk(session, 30)
    report = session.compose_sync(system="mend it", tools=TOOLS).report
    assert sum(report.parts.values()) == report.tokens
    assert min(report.parts.values()) > 0
    assert report.hidden + report.messages >= 61


def test_stable_is_what_the_request_before_began_with():
    """Nothing the first time; then everything that was sent before."""
    session = opened()
    talk(session, 5)
    first = session.compose_sync(system="mend it")
    session.add({"role": "assistant", "content": "done"})
    session.add({"role": "user", "content": "thanks"})
    second = session.compose_sync(system="mend it")
    assert first.report.stable == 0
    assert second.report.stable == pytest.approx(first.tokens, abs=2)
    assert second.body(cache=False).startswith(first.body(cache=False)[:-2])


@pytest.mark.parametrize(
    ("field", "one", "other", "same"),
    [("max_tokens", 500, 900, True), ("stream", True, False, True), ("tool_choice", "auto", "none", False)],
)
def test_a_field_that_no_cache_looks_at_leaves_everything_stable(field, one, other, same):
    """A limit of the answer or a stream is not what the model reads; a choice of tools is."""
    session = opened()
    talk(session, 5)
    first = session.compose_sync(system="mend it", params={field: one})
    session.add({"role": "assistant", "content": "done"})
    session.add({"role": "user", "content": "thanks"})
    stable = session.compose_sync(system="mend it", params={field: other}).report.stable
    assert stable == pytest.approx(first.tokens if same else 0, abs=2)


def test_another_system_prompt_leaves_nothing_stable():
    """It stands at the start: a cache has nothing to serve after it."""
    session = opened()
    talk(session, 5)
    session.compose_sync(system="mend it")
    assert session.compose_sync(system="break it").report.stable == 0


def test_a_cached_prefix_costs_less():
    """The same request again is billed at the cache's price."""
    session = opened()
    talk(session, 50)
    first, second = session.compose_sync(), session.compose_sync()
    assert 0 < second.cost < first.cost


def test_without_breakpoints_no_byte_speaks_of_them():
    """`cache=False` gives the messages exactly as they came."""
    session = opened()
    talk(session, 100)
    payload = session.compose_sync(system="rule " * 2_000)
    assert b"cache_control" in payload.body()
    assert b"cache_control" not in payload.body(cache=False)
    assert json.loads(payload.body(cache=False))["messages"] == payload.messages


def test_parameters_are_passed_on_in_their_own_bytes():
    """Further fields of the body come out as they went in."""
    session = opened()
    talk(session, 1)
    payload = session.compose_sync(params={"max_tokens": 7, "metadata": {"user_id": "u"}, "temperature": 0.10})
    assert payload.to() | {"max_tokens": 7, "metadata": {"user_id": "u"}, "temperature": 0.1} == payload.to()


@pytest.mark.parametrize("target", ["anthropic", "gemini", "openai", "responses"])
def test_a_view_of_system_messages_alone_is_valid_in_every_format(target):
    """Where they stand apart, a message of the user says that nothing was said yet."""
    session = Session.open("s", model="gpt-5", format="openai", store=MemoryStore())
    session.add({"role": "system", "content": "Be brief."})
    body = {**session.compose_sync().to(target), **({"max_tokens": 9} if target == "anthropic" else {})}
    assert windowsill.validate(body, target) == []


@pytest.mark.parametrize("system", ["", " \n", [{"type": "text", "text": ""}]], ids=["empty", "blank", "empty block"])
@pytest.mark.parametrize("target", ["anthropic", "gemini", "openai", "responses"])
def test_an_empty_system_prompt_is_none(system, target):
    """Providers refuse an empty part."""
    session = Session.open("s", model="claude-sonnet-4-5", format="anthropic", store=MemoryStore())
    session.add({"role": "user", "content": "hello"})
    assert session.compose_sync(system=system).to(target) == session.compose_sync().to(target)


@pytest.mark.parametrize("model", ["gpt-5", "claude-sonnet-4-5", "claude-sonnet-5"])
def test_the_parts_are_never_negative_and_add_up(model):
    """Each is rounded up by itself, the whole is not the sum of that."""
    session = Session.open("s", model=model, store=MemoryStore())
    for number in range(7):
        session.add({"role": ("user", "assistant")[number % 2], "content": "日本語 and words " * number + "."})
    payload = session.compose_sync(system="Be brief.", tools=[{"name": "read", "input_schema": {"type": "object"}}])
    assert min(payload.report.parts.values()) >= 0
    assert sum(payload.report.parts.values()) == payload.tokens


def test_sessions_and_payloads_say_what_they_hold():
    """For whoever prints them: the model, the messages, and the tokens of those there may be."""
    session = Session.open("chat", model="gpt-5", budget=4_000, store=MemoryStore())
    session.add("hello")
    payload = session.compose_sync()
    assert (
        repr(session)
        == f"<Session 'chat' for gpt-5: 1 messages in view, 0 hidden, {session.view.tokens()} of 400,000 tokens>"
    )
    assert repr(payload) == f"<Payload for gpt-5: 1 messages, {payload.tokens} of 4,000 tokens>"


def test_a_report_is_printed_in_a_few_lines():
    """What is in the request, what was folded for it and why; without a fold, what was decided."""
    session = opened(budget=1_500)
    talk(session, 30)
    folded = str(session.compose_sync(system="mend it").report).splitlines()
    assert folded[0].startswith(f"{session.calls[-1].tokens:,} of 1,500 tokens (system ")
    assert [line.split(": ")[0].split()[0] for line in folded[2:]] == ["fold"]
    assert "tokens passed" in folded[2]
    assert str(session.compose_sync(system="mend it").report).splitlines()[-1].startswith("wait: ")
