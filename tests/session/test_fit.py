"""One call, no session: a conversation in any format, fitted to a budget."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windowsill
from support.conversations import PNG, broken_anthropic, broken_openai, call, sound_anthropic, sound_openai, tool
from support.sessions import TASK, turn
from windowsill import BudgetError, FormatError, InputError, NotFoundError, UnknownModelError, fit
from windowsill.compose.render import same_start

pytestmark = pytest.mark.unit

COUNTING = {"tokenizer": "o200k_base"}


def anthropic_list(turns, words=30):
    return [{"role": "user", "content": TASK}, *(message for number in range(turns) for message in turn(number, words))]


def openai_list(turns):
    messages = [{"role": "system", "content": "You mend."}, {"role": "user", "content": TASK}]
    for number in range(turns):
        messages.append({"role": "assistant", "content": None, "tool_calls": [call(f"t{number}")]})
        messages.append(tool(f"t{number}", f"line {number} " + "word " * 30))
    return messages


def anthropic_body(turns, **more):
    return {
        "model": "claude-sonnet-4-5",
        "max_tokens": 64,
        "system": "You mend.",
        "messages": anthropic_list(turns),
        "tools": [{"name": "read", "input_schema": {"type": "object", "properties": {}}}],
        "temperature": 0.5,
        **more,
    }


def chunks_of(payload):
    """The messages of a request, as bytes, in order."""
    return msgspec.json.decode(payload.body(cache=False), type=dict[str, msgspec.Raw])["messages"]


def raw_messages(body):
    return [bytes(raw) for raw in msgspec.json.decode(bytes(body), type=list[msgspec.Raw])]


# What fits


@given(sound_anthropic())
def test_what_fits_comes_back_as_it_was_for_anthropic(messages):
    """Message for message, byte for byte."""
    raw = [msgspec.json.encode(message) for message in messages]
    payload = fit(b"[" + b" , ".join(raw) + b"]", budget=100_000, format="anthropic", **COUNTING)
    assert raw_messages(chunks_of(payload)) == raw
    assert payload.report.folds == payload.report.repairs == ()


@given(sound_openai())
def test_what_fits_comes_back_as_it_was_for_openai(messages):
    """Message for message, byte for byte."""
    raw = [msgspec.json.encode(message) for message in messages]
    payload = fit(b"[" + b",".join(raw) + b"]", budget=100_000, format="openai", **COUNTING)
    assert raw_messages(chunks_of(payload)) == raw


def test_the_spelling_of_a_message_is_kept():
    """Spaces, key order, escapes and unknown fields: signatures and caches depend on them."""
    odd = b'{ "content" : "caf\\u00e9" , "role":"user", "x-mine" : [1.0, 1e3] }'
    payload = fit(b'{"messages": [' + odd + b'], "model": "claude-sonnet-4-5", "max_tokens": 5}')
    assert raw_messages(chunks_of(payload)) == [odd]


@pytest.mark.parametrize(
    "spell",
    [
        lambda value: value,
        json.dumps,
        lambda value: json.dumps(value).encode(),
        lambda value: json.dumps(value, indent=2),
        lambda value: bytearray(json.dumps(value), "utf-8"),
        tuple,
    ],
    ids=["list", "text", "bytes", "indented text", "bytearray", "tuple"],
)
def test_a_list_may_come_in_any_form(spell):
    """And is the same conversation."""
    messages = anthropic_list(3)
    assert fit(spell(messages), budget=10_000, **COUNTING).messages == messages


def test_every_field_of_a_body_comes_back():
    """The model, the system prompt, the tools and what this version does not know."""
    body = anthropic_body(2, metadata={"user_id": "u"}, novelty=[1])
    assert fit(body).to(cache=False) == body
    assert fit(json.dumps(body)).to(cache=False) == body


def test_the_model_is_taken_from_the_body():
    """It decides the room and the format."""
    payload = fit(anthropic_body(2))
    assert payload.model.name == "claude-sonnet-4-5"
    assert (payload.format, payload.report.window) == ("anthropic", 200_000)
    assert fit({"model": "gpt-4o", "messages": openai_list(2)}).report.window == 128_000


def test_the_model_in_the_body_decides_the_room_beside_a_stated_budget():
    """A budget says how much is wanted; what the provider takes still holds."""
    payload = fit(anthropic_body(2), budget=1_000)
    assert payload.model.name == "claude-sonnet-4-5"
    assert payload.report.limit == 1_000


def test_a_stated_model_wins_over_the_one_in_the_body():
    """The caller knows where it goes."""
    payload = fit(anthropic_body(2), model="claude-haiku-4-5")
    assert payload.to()["model"] == "claude-haiku-4-5"


def test_a_system_prompt_and_tools_may_be_given_beside_a_list():
    """They are counted, and stand in the request."""
    tools = [{"name": "read", "description": "word " * 50, "input_schema": {"type": "object"}}]
    payload = fit(anthropic_list(1), budget=10_000, system="rule " * 50, tools=tools, format="anthropic", **COUNTING)
    assert payload.to(cache=False)["system"] == "rule " * 50
    assert payload.to()["tools"] == tools
    assert payload.report.parts["system"] >= 50
    assert payload.report.parts["tools"] >= 50


# What does not fit


@pytest.mark.parametrize("budget", [400, 700, 1_500, 4_000])
@pytest.mark.parametrize(
    ("format", "messages"),
    [("anthropic", anthropic_list(80)), ("openai", openai_list(80))],
    ids=["anthropic", "openai"],
)
def test_what_does_not_fit_is_made_to_fit_and_stays_valid(format, messages, budget):
    """The task stays, the last message stays, and the provider would take it."""
    payload = fit(messages, budget=budget, format=format, **COUNTING)
    assert payload.tokens <= budget
    assert payload.report.folds
    assert windowsill.validate({"model": "m", "max_tokens": 5, **payload.to()}, format) == []
    assert TASK.encode() in payload.body()
    assert payload.messages[-1] == messages[-1]


def is_said(case):
    """Tell whether anybody but the system speaks."""
    return any(message["role"] not in ("system", "developer") for message in case[1])


broken = st.one_of(st.tuples(st.just("anthropic"), broken_anthropic), st.tuples(st.just("openai"), broken_openai))


@given(broken.filter(is_said))
def test_a_broken_conversation_is_fitted_too(case):
    """Whatever it holds, what comes out is valid and within the budget."""
    format, messages = case
    payload = fit(messages, budget=600, format=format, **COUNTING)
    assert payload.tokens <= 600
    assert windowsill.validate({"model": "m", "max_tokens": 5, **payload.to()}, format) == []


def test_everything_that_can_give_way_does_before_a_request_is_refused():
    """Two pictures beside calls that need repair: at 302 tokens they become notes, so at 300 they can."""
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "low"}}
    calls = {"role": "assistant", "content": None, "tool_calls": [call("c0")] * 3}
    messages = [{"role": "user", "content": [picture, picture, {"type": "text", "text": "0ĒĠᎀ"}]}, calls, calls]
    assert fit(messages, budget=300, format="openai", **COUNTING).tokens <= 300


def test_a_system_prompt_alone_is_nothing_to_send():
    """A provider that keeps it apart would get no message at all."""
    with pytest.raises(InputError, match="nothing to send"):
        fit([{"role": "system", "content": "You mend."}], budget=300, format="anthropic", **COUNTING)


def test_the_input_is_not_changed():
    """The caller's list is the caller's."""
    messages = anthropic_list(40)
    before = json.dumps(messages)
    fit(messages, budget=700, **COUNTING)
    assert json.dumps(messages) == before


def test_the_same_list_gives_the_same_bytes():
    """Nothing depends on a clock or on chance."""
    messages = anthropic_list(40)
    assert fit(messages, budget=700, **COUNTING).body() == fit(messages, budget=700, **COUNTING).body()


def test_a_loop_over_a_growing_list_keeps_its_prefix():
    """A caller without a session still has a warm cache: the cut moves rarely, in big steps."""
    messages, before, moved, folded = anthropic_list(0), [], 0, 0
    for number in range(100):
        messages += turn(number)
        payload = fit(messages, budget=3_000, format="anthropic", **COUNTING)
        chunks = raw_messages(chunks_of(payload))
        assert payload.tokens <= 3_000
        folded += bool(payload.report.folds)
        moved += same_start(before, chunks) < len(before)
        before = chunks
    assert folded > 60
    assert 3 <= moved <= 13


def test_stated_overhead_takes_its_room():
    """For a system prompt and tools that the list lacks."""
    messages = anthropic_list(20)
    free = fit(messages, budget=1_500, **COUNTING)
    tight = fit(messages, budget=1_500, overhead=700, **COUNTING)
    assert tight.tokens <= 1_500
    assert tight.report.messages < free.report.messages


def test_a_limit_on_the_answer_leaves_more_room():
    """Without a budget the model's window less the answer decides."""
    short = fit(anthropic_list(1), model="claude-sonnet-4-5", max_output=1_000)
    long = fit(anthropic_list(1), model="claude-sonnet-4-5", max_output=60_000)
    assert short.report.limit > long.report.limit


def test_another_strategy_may_be_named():
    """With its settings."""
    payload = fit(anthropic_list(40), budget=1_500, strategy="sliding-window:keep=20", **COUNTING)
    assert payload.messages[-20:] == anthropic_list(40)[-20:]


def test_what_was_hidden_is_told():
    """How many messages, by which strategy and why."""
    report = fit(anthropic_list(40), budget=700, **COUNTING).report
    assert report.hidden == sum(fold.messages for fold in report.folds if fold.strategy == "economy") > 0
    assert "passed 700" in report.folds[0].reason
    assert report.folds[0].strategy == "economy"


# Errors


def test_without_any_room_stated_the_error_says_what_to_give():
    """No silent default."""
    with pytest.raises(InputError, match=r"give model=, budget= or window="):
        fit(anthropic_list(1))


def test_an_unknown_model_without_a_window_is_refused():
    """With how to state one."""
    with pytest.raises(UnknownModelError, match="nobody-9"):
        fit(anthropic_list(1), model="nobody-9")
    assert fit(anthropic_list(1), model="nobody-9", window=10_000).report.window == 10_000


@pytest.mark.parametrize(
    ("messages", "error"),
    [
        ("not json", FormatError),
        (b"\xff\xfe", FormatError),
        (7, FormatError),
        (None, FormatError),
        ({"no": "messages"}, FormatError),
        ([{"role": "martian", "content": "x"}], FormatError),
        ([1, 2], FormatError),
        ([], InputError),
    ],
)
def test_what_is_no_conversation_is_refused(messages, error):
    """With an error of ours."""
    with pytest.raises(error):
        fit(messages, budget=1_000)


def test_an_unknown_format_or_strategy_is_refused():
    """By name."""
    with pytest.raises(InputError, match="morse"):
        fit(anthropic_list(1), budget=1_000, format="morse")
    with pytest.raises(NotFoundError, match="wish"):
        fit(anthropic_list(1), budget=1_000, strategy="wish")


def test_a_system_prompt_that_does_not_fit_is_an_error_with_its_size():
    """It is never cut."""
    with pytest.raises(BudgetError, match="system prompt"):
        fit(anthropic_list(1), budget=200, system="rule " * 500, format="anthropic", **COUNTING)


def test_a_system_prompt_alone_is_a_request_where_it_is_a_message():
    """OpenAI's format takes it: recorded service agents begin so."""
    messages = [{"role": "system", "content": "You help."}]
    assert fit(messages, budget=300, format="openai", **COUNTING).messages == messages


@pytest.mark.parametrize("field", ["previous_response_id", "conversation"])
def test_a_request_whose_past_is_at_the_provider_comes_back_as_it_was(field):
    """The call that an output answers is there, not in the list."""
    output = {"type": "function_call_output", "call_id": "c1", "output": "42"}
    body = {"model": "gpt-5", "input": [output, {"role": "user", "content": "And?"}], field: "kept_1"}
    payload = fit(body, budget=8_000)
    assert payload.to() == body
    assert payload.report.repairs == ()


def test_of_a_long_request_whose_past_is_at_the_provider_the_output_stays_an_output():
    """What is cut is its text, not that it is the output of a call."""
    output = {"type": "function_call_output", "call_id": "c1", "output": "word " * 20_000}
    payload = fit({"model": "gpt-5", "input": [output], "previous_response_id": "resp_1"}, budget=4_000)
    (sent,) = payload.to()["input"]
    assert (sent["type"], sent["call_id"]) == ("function_call_output", "c1")
    assert payload.tokens <= 4_000


@pytest.mark.parametrize("stated", [{"max_tokens": 64_000}, {"max_tokens": 300_000}, {}])
def test_room_is_left_for_the_answer_that_the_body_allows(stated):
    """A window is for both; a limit as large as the window is none."""
    body = {"model": "claude-sonnet-4-5", **stated, "messages": [{"role": "user", "content": "word " * 190_000}]}
    fitted = windowsill.fit(body)
    session = windowsill.Session.open("s", model="claude-sonnet-4-5", store=":memory:")
    session.add("hi")
    reports = (fitted.report, session.compose_sync(params=stated).report)
    if stated.get("max_tokens") == 64_000:
        assert [report.limit + 64_000 <= 200_000 for report in reports] == [True, True]
        assert 0.9 * fitted.report.limit < fitted.tokens <= fitted.report.limit
    else:
        assert [report.limit for report in reports] == [174_436, 174_436]
