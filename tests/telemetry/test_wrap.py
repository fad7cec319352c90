"""Wrapped clients: the official SDKs, a strict server, and a span for every call."""

import asyncio
import json
from contextlib import contextmanager

import openai
import pytest

import windowsill
from support.telemetry import listening
from support.wrapped_clients import SPEAKERS, close
from windowsill import Session
from windowsill.clients.exchange import Exchange, Route
from windowsill.telemetry.spans import SWITCH
from windowsill.testing import Answer, Server

pytestmark = pytest.mark.integration

PROVIDERS = {"anthropic": "anthropic", "chat": "openai", "responses": "openai", "gemini": "gcp.gemini"}


@pytest.fixture
def heard():
    with listening() as found:
        yield found


def ask(name, server, *texts, stream=False, **settings):
    """Ask a wrapped client, one question after the other, and close it."""
    speaker, later = SPEAKERS[name]

    async def main(session):
        client = windowsill.wrap(speaker.client(server.url, later=later), session, resends=False)
        try:
            for text in texts:
                await speaker.ask(client, [speaker.user(text)], stream=stream)
        finally:
            await close(client)

    with Session.open("s", model=speaker.model, store=":memory:", **{"budget": 20_000, **settings}) as session:
        asyncio.run(main(session))


@contextmanager
def chat(url):
    """A client of OpenAI's chat, wrapped."""
    speaker, _ = SPEAKERS["chat"]
    with (
        Session.open("s", model=speaker.model, store=":memory:") as session,
        windowsill.wrap(speaker.client(url, later=False), session) as client,
    ):
        yield client


def the_call(heard):
    """The only span of a model call."""
    (found,) = [span for span in heard.spans if span.attributes.get("gen_ai.operation.name")]
    return found


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", list(SPEAKERS))
def test_every_call_of_a_client_is_a_span(heard, name, stream):
    """Whole or streamed, with its model, its usage, and why it ended."""
    with Server(lambda _: Answer(text="hello")) as server:
        ask(name, server, "hi", stream=stream)
    call, speaker = the_call(heard), SPEAKERS[name][0]
    operation = "generate_content" if name.startswith("gemini") else "chat"
    assert call.name == f"{operation} {speaker.model}"
    told = call.attributes
    assert told["gen_ai.provider.name"] == PROVIDERS[name.removesuffix("-async")]
    assert (told["gen_ai.conversation.id"], told["server.address"]) == ("s", "127.0.0.1")
    assert told.get("gen_ai.request.stream") is (True if stream else None)
    assert ("gen_ai.response.time_to_first_chunk" in told) is stream
    # OpenAI's chat tells the usage of a stream only to those who ask for it.
    assert ("gen_ai.usage.input_tokens" in told) is not (stream and name.startswith("chat"))
    assert len(told["gen_ai.response.finish_reasons"]) == 1
    assert "gen_ai.conversation.compacted" not in told
    assert heard.names == ["compose", call.name]


def test_tokens_are_counted_once(heard):
    """By the session that takes the answer in."""
    with Server() as server:
        ask("anthropic", server, "hi")
    used = the_call(heard).attributes["gen_ai.usage.input_tokens"]
    sums = {point.attributes["gen_ai.token.type"]: point.sum for point in heard.points("gen_ai.client.token.usage")}
    assert sums["input"] == used
    (taken,) = heard.points("gen_ai.client.operation.duration")
    assert taken.count == 1


def test_what_the_cache_served_is_told(heard):
    """From the second call on, of a prompt that is long enough."""
    with Server(cache_minimum=100) as server:
        ask("anthropic", server, "hi " * 800, "and now?")
    second = heard.spans[-1].attributes
    assert second["gen_ai.usage.cache_read.input_tokens"] > 100
    assert second["gen_ai.usage.input_tokens"] > second["gen_ai.usage.cache_read.input_tokens"]


def test_a_call_of_a_compacted_conversation_says_so(heard):
    """It reads a view of what was said."""
    with Server() as server:
        ask("anthropic", server, *(f"{number} " + "word " * 60 for number in range(8)), budget=600)
    calls = [span for span in heard.spans if span.name.startswith("chat")]
    assert calls[0].attributes.get("gen_ai.conversation.compacted") is None
    assert calls[-1].attributes["gen_ai.conversation.compacted"] is True


def test_a_request_that_is_sent_again_smaller_is_one_call(heard):
    """What it does to fit stands under it, and it says that the conversation is compacted from then on."""
    with Server(window=2_000) as server:
        ask("anthropic", server, *(f"{number} " + "word " * 200 for number in range(12)), tokenizer="o200k_base")
    calls = [span for span in heard.spans if span.name.startswith("chat")]
    again = next(span for span in calls if "gen_ai.conversation.compacted" in span.attributes)
    inside = [span.name for span in heard.spans if span.parent and span.parent.span_id == again.context.span_id]
    assert len(calls) == 12
    assert [each.status for each in server.seen].count(400) == 1
    assert inside == ["compose"]
    assert "error.type" not in again.attributes


def test_a_call_that_is_passed_on_as_it_came_is_told_and_counted(heard):
    """No session takes its answer in, so its tokens are counted here."""
    body = {"model": "gpt-5", "input": "hi", "conversation": "conv_1"}
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hello"}]}
    answer = {"id": "r", "model": "gpt-5", "output": [said], "usage": {"input_tokens": 7, "output_tokens": 2}}
    with Session.open("s", model="gpt-5", store=":memory:") as session:
        exchange = Exchange(session, Route("responses"), json.dumps(body).encode())
        exchange.request()
        with exchange.call("api.openai.com", 443):
            exchange.answer(200, json.dumps(answer).encode())
    assert heard.said("chat gpt-5")["gen_ai.usage.input_tokens"] == 7
    sums = {point.attributes["gen_ai.token.type"]: point.sum for point in heard.points("gen_ai.client.token.usage")}
    assert sums == {"input": 7, "output": 2}


def test_a_refused_call_tells_its_status(heard):
    """And the caller gets the provider's error."""
    with Server() as server:
        server.fail(503, "busy")
        with pytest.raises(openai.InternalServerError, match="busy"):
            ask("chat", server, "hi")
    assert the_call(heard).attributes["error.type"] == "503"


def test_a_server_that_is_gone_is_an_error_of_the_call(heard):
    """By the class of what was raised."""
    with Server() as server:
        url = server.url
    with chat(url) as client, pytest.raises(openai.APIConnectionError):
        client.chat.completions.create(model="gpt-5", messages=[{"role": "user", "content": "hi"}])
    assert the_call(heard).attributes["error.type"] == "httpx2.ConnectError"


def test_a_stream_that_nobody_reads_on_ends_its_span(heard):
    """As one that broke off."""
    with Server(lambda _: Answer(text="a long answer " * 2_000)) as server, chat(server.url) as client:
        stream = client.chat.completions.create(
            model="gpt-5", messages=[{"role": "user", "content": "hi"}], stream=True
        )
        next(iter(stream))
        assert heard.names == ["compose"]
        stream.close()
    assert the_call(heard).attributes["gen_ai.response.finish_reasons"] == ("error",)


def test_what_is_sent_and_said_is_told_where_it_is_asked_for(heard, monkeypatch):
    """With the system prompt apart, as the provider has it."""
    monkeypatch.setenv(SWITCH, "SPAN_ONLY")
    with Server(lambda _: Answer(text="hello")) as server:
        ask("anthropic", server, "hi there")
    told = the_call(heard).attributes
    assert json.loads(told["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [{"type": "text", "content": "hi there"}]}
    ]
    assert json.loads(told["gen_ai.system_instructions"]) == [{"type": "text", "content": "You read files."}]
    (said,) = json.loads(told["gen_ai.output.messages"])
    assert said["parts"] == [{"type": "text", "content": "hello"}]


def test_settings_of_a_request_are_told(heard):
    """Those that the conventions have a name for."""
    with Server() as server, chat(server.url) as client:
        client.chat.completions.create(
            model="gpt-5",
            messages=[{"role": "user", "content": "hi"}],
            temperature=0.5,
            max_completion_tokens=99,
        )
    told = the_call(heard).attributes
    assert (told["gen_ai.request.temperature"], told["gen_ai.request.max_tokens"]) == (0.5, 99)
