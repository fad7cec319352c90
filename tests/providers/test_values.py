"""Any value that a model can write is recorded and sent back byte for byte."""

from __future__ import annotations

import enum
import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.sessions import opened
from windowsill import Session, fit, providers
from windowsill.compose.render import mark_message
from windowsill.errors import FormatError, InputError
from windowsill.history import entries
from windowsill.messages import Message, Text, ToolResult, ToolUse, json_value, text_message

pytestmark = pytest.mark.unit

NUMBERS = (
    "1000000000000000000000",
    "-99999999999999999999999",
    "1" * 5_000,
    "1e999",
    "-1E+999",
    "1e99999999999999999999",
    "0.1000000000000000055511151231257827021181",
    "1.0",
    "1E5",
    "-0",
)


def call(format: str, arguments: str) -> bytes:
    """A call with these arguments, as each provider sends it."""
    text = json.dumps(arguments)
    return {
        "anthropic": '{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"f",'
        f'"input":{arguments}}}]}}',
        "openai": '{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function",'
        f'"function":{{"name":"f","arguments":{text}}}}}]}}',
        "responses": f'{{"type":"function_call","call_id":"c1","name":"f","arguments":{text}}}',
        "gemini": f'{{"role":"model","parts":[{{"functionCall":{{"name":"f","args":{arguments}}}}}]}}',
    }[format].encode()


def written(format: str, arguments: str) -> bytes:
    """The arguments as they stand in a request of this format."""
    return (json.dumps(arguments) if format in {"openai", "deepseek", "responses"} else arguments).encode()


@pytest.mark.parametrize("number", NUMBERS, ids=lambda text: text[:12])
@pytest.mark.parametrize("format", ["anthropic", "openai", "responses", "gemini"])
def test_number_of_any_size_is_recorded_and_sent_as_it_came(format, number):
    """A number that no machine word and no double holds is stored, and stands in every provider's request."""
    session = opened(budget=100_000, format=format)
    session.add("word " * 3_000)
    arguments = f'{{"wei": {number}}}'
    session.add(call(format, arguments))
    session.compose_sync()
    session.add("go on")
    payload = session.compose_sync(system="Be brief. " * 2_000)
    for target in providers.names():
        assert written(target, arguments) in payload.body(target), target
        assert payload.to(target)
    assert session.verify() == []


@pytest.mark.parametrize("number", NUMBERS, ids=lambda text: text[:12])
def test_breakpoint_of_a_prompt_cache_leaves_numbers_as_they_came(number):
    """The message that carries a breakpoint keeps every byte of its arguments."""
    chunk = call("anthropic", f'{{"wei":{number}}}')
    assert f'{{"wei":{number}}}'.encode() in mark_message(chunk)
    assert b'"cache_control":{"type":"ephemeral"}' in mark_message(chunk)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e999", 10**999),
        ("-15e999", -15 * 10**999),
        ("1e99999", "1e99999"),
        ("1" * 5_000, "1" * 5_000),
        ("[1e999, 0.5, 7]", [10**999, 0.5, 7]),
    ],
    ids=["large", "negative", "too-large", "long", "list"],
)
def test_number_that_no_double_holds_has_the_same_value(text, value):
    """It is read as the integer of the same value, or as its text where Python would not write that integer."""
    assert json_value(text) == value
    assert ToolUse(id="c", name="f", arguments=f'{{"a":{text}}}').input == {"a": value}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES)
def test_arguments_of_any_shape_have_a_fingerprint(value):
    """Every JSON that a model may write can be hashed, the same way each time."""
    arguments = json.dumps({"a": value})
    message = Message(role="assistant", blocks=(ToolUse(id="c", name="f", arguments=arguments),))
    assert entries.pieces(message) == entries.pieces(message)
    assert entries.extend_exactly(b"", message) == entries.extend_exactly(b"", message)


def test_fingerprints_of_ordinary_arguments_are_as_they_were():
    """Histories that were recorded before are still known by their fingerprints."""
    message = Message(role="assistant", blocks=(ToolUse(id="c", name="f", arguments='{"b": 1.5, "a": [2, 1e999]}'),))
    plain = Message(role="assistant", blocks=(ToolUse(id="c", name="f", arguments='{"b": 1.5, "a": [2]}'),))
    assert entries.extend_exactly(b"", plain).hex() == "bb0f7da83bb05272a04ef8ea3a7cc504"
    assert entries.extend_exactly(b"", message).hex() == "f3e1439f4b14e98ed3709a712432baf7"


def test_infinity_from_an_sdk_is_not_written_as_null():
    """An SDK reads 1e999 as infinity: it goes back as a number that every reader takes for infinity."""
    assert providers.encode({"a": float("inf"), "b": [-float("inf"), None]}) == b'{"a":1e999,"b":[-1e999,null]}'
    with pytest.raises(FormatError, match="NaN"):
        providers.encode({"a": float("nan")})


@pytest.mark.parametrize("at", [5, 5.0, True])
def test_time_of_a_message_may_be_an_integer(tmp_path, at):
    """Seconds without a fraction are a time; the entry is whole when it is read back."""
    with Session.open("s", model="gpt-5", store=tmp_path / "s.db") as session:
        id = session.add("hi", at=at)
    with Session.open("s", model="gpt-5", store=tmp_path / "s.db") as session:
        assert session.message(id).at == float(at)
        assert session.verify() == []


HALF = "caf\udce9 \ud83d\ude00 \ud800"
ESCAPED = "caf\\udce9 😀 \\ud800"


@pytest.mark.parametrize(
    "source",
    [
        HALF,
        text_message("user", HALF),
        {"role": "user", "content": HALF},
        {"role": "user", "content": [{"type": "text", "text": HALF}]},
        {"role": "tool", "tool_call_id": "c", "content": HALF},
        Message(role="user", blocks=(ToolResult(tool_use_id="c", content=(Text(text=HALF),)),)),
        json.dumps({"role": "user", "content": HALF}).encode(),
    ],
    ids=["text", "message", "dict", "part", "tool", "result", "bytes"],
)
def test_half_characters_are_escaped_rather_than_refused(source):
    """A tool output that was read with `surrogateescape` does not cost the turn: each half is told as its escape."""
    session = opened()
    session.add("begin")
    message = session.message(session.add(source))
    blocks = message.results[0].content if message.results else message.blocks
    assert [block.text for block in blocks] == [ESCAPED]


def test_request_with_half_characters_is_read():
    """A body whose escapes are halves of surrogate pairs is read with the escapes as text."""
    body = json.dumps({"messages": [{"role": "user", "content": HALF}]}).encode()
    assert providers.read_request(body).messages[0].text == ESCAPED
    assert providers.read_request(body.decode()).messages[0].text == ESCAPED


class Words(str):
    """As some frameworks give text."""

    __slots__ = ()


class Choice(str, enum.Enum):  # noqa: UP042 - as programs have them
    """As programs name their constants."""

    HI = "hi"


@pytest.mark.parametrize("text", [Words("hi"), Choice.HI])
def test_subclass_of_text_is_text(text):
    """Whatever is a `str` is taken as one: as a message, its content, a system prompt, an argument, a key."""
    session = opened(format="openai")
    session.add(text)
    session.add({"role": "user", "content": text})
    session.add({"role": "user", "content": [{"type": "text", "text": text}]})
    session.add(text_message("user", text))
    function = {"name": text, "arguments": text}
    session.add({"role": "assistant", "tool_calls": [{"id": text, "type": "function", "function": function}]})
    messages = list(session.messages())
    assert [message.text for message in messages] == ["hi", "hi", "hi", "hi", ""]
    assert messages[-1].calls[0].name == "hi"
    assert session.compose_sync(system=text).to("openai")["messages"][0] == {"role": "system", "content": "hi"}
    assert fit([{"role": "user", "content": text}], budget=1_000).messages == [{"role": "user", "content": "hi"}]


@pytest.mark.parametrize("value", [10**30, object(), "\udc80"], ids=["integer", "object", "half"])
def test_metadata_that_cannot_be_stored_is_refused_by_name(value):
    """The error says that it is the metadata, and what may be in it."""
    with pytest.raises(InputError, match="metadata that cannot be stored"):
        opened().add("hi", metadata={"a": value})


def test_metadata_nested_too_deeply_is_refused():
    """A deep nest is an error of ours, and nothing is recorded."""
    deep: dict = {}
    inner = deep
    # Other packages raise the limit.
    for _ in range(sys.getrecursionlimit() + 500):
        inner["a"] = inner = {}
    session = opened()
    with pytest.raises(InputError, match="nested too deeply"):
        session.add("hi", metadata=deep)
    assert list(session.messages()) == []
