"""What holds for every provider: its spec, and what its format renders can be read again."""

from __future__ import annotations

import re

import msgspec
import pytest

from windowsill import providers
from windowsill.messages import Message, Reasoning, Text, Tool, ToolUse, Usage, text_message

pytestmark = pytest.mark.contract

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
READ = Tool(name="read", description="Reads a file.", schema=SCHEMA)
CALL = ToolUse(id="call_1", name="read", arguments='{"path":"a.py"}')


@pytest.fixture(params=providers.names())
def format(request):
    return providers.get(request.param)


def test_names_lead_to_the_format(format):
    """Its own name and every alias; nothing else is called so."""
    assert all(providers.get(name) is format for name in (format.name, *format.spec.aliases))
    assert format.rules.format == format.name


def test_limit_of_an_answer_is_known_under_each_of_its_names(format):
    """In the place where a body of this format states it."""
    spec = format.spec
    for name in spec.limit_fields:
        stated = {spec.config_field: {name: 7}} if spec.config_field else {name: 7}
        assert (
            providers.answer_limit({key: msgspec.Raw(msgspec.json.encode(each)) for key, each in stated.items()}) == 7
        )


def test_stop_reasons_have_their_kind(format):
    """What ends an answer as it should is none of the kinds that do not."""
    stops = format.spec.stops
    assert {providers.stop_kind(each) for each in (stops.done, stops.calls)} == {"other"}
    for kind in ("length", "refused", "paused", "unfinished"):
        assert {providers.stop_kind(each) for each in getattr(stops, kind)} <= {kind}


def test_path_of_the_api_is_a_model_call(format):
    """`wrap` takes over the calls that the HTTP client makes."""
    spec = format.spec
    if spec.api is None:
        assert spec.routes == ()
        return
    for path in filter(None, (spec.api.path, spec.api.stream_path.partition("?")[0])):
        assert any(re.search(route, path.replace("{model}", "some-model")) for route in spec.routes)


@pytest.mark.parametrize(
    "blocks", [(Text(text="I look."),), (CALL,), (Text(text="I look."), CALL)], ids=["text", "call", "both"]
)
def test_rendered_reply_is_read_as_the_message_it_holds(format, blocks):
    """With its model, its usage and a stop reason; one that broke off does not say that it ended."""
    message, usage = Message(role="assistant", blocks=blocks), Usage(input=5, output=3, cache_read=2)
    reply = format.read_reply(format.render_reply(message, model="some-model", usage=usage))
    found = [block for each in (reply.message, *reply.more) for block in each.blocks]
    said = [block for block in found if not isinstance(block, Reasoning)]
    assert [msgspec.structs.replace(block, raw=None) for block in said] == list(blocks)
    assert (reply.model, reply.usage, providers.stop_kind(reply.stop_reason)) == ("some-model", usage, "other")
    broken = format.read_reply(format.render_reply(message, model="some-model", whole=False))
    assert broken.usage is None
    assert broken.stop_reason != reply.stop_reason


def test_rendered_usage_is_read_as_it_was(format):
    """Input, output and what came from a cache."""
    usage = Usage(input=11, output=7, cache_read=5)
    assert format.read_usage(msgspec.json.encode(format.render_usage(usage, 2))) == usage


def test_rendered_tool_is_read_as_it_was(format):
    """Name, description and schema; an own definition goes out byte for byte, also with another schema."""
    raw = format.render_tool(READ)
    read = format.read_tool(raw, "")
    assert (read.name, read.description, read.schema) == ("read", "Reads a file.", SCHEMA)
    assert format.render_tool(read) == raw
    other = providers.with_schema(read, {"type": "object"})
    assert format.read_tool(format.render_tool(other), "").schema == {"type": "object"}


def test_body_goes_out_as_it_was_read(format):
    """System prompt, tools, messages and every other field."""
    system = format.render_system([text_message("system", "be brief")])
    (message,) = format.render_message(text_message("user", "hi"))
    rest = {"temperature": msgspec.Raw(b"1"), "x_unknown": msgspec.Raw(b'{"a":1}')}
    body = format.render_body(
        messages=[message], system=system, tools=[format.render_tool(READ)], model="some-model", rest=rest
    )
    request = format.read_body(body)
    assert [each.text for each in (*([request.system] if request.system else ()), *request.messages)] == [
        "be brief",
        "hi",
    ]
    assert providers.render_request(request) == body
