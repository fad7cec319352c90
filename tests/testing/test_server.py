"""The local server speaks the providers' protocols, judged by their own clients."""

from threading import Event

import anthropic
import openai
import pytest

from support.conversations import result, use
from windowsill.testing import Answer, Call, Server
from windowsill.testing.server import public

pytestmark = pytest.mark.integration

ASKED = [{"role": "user", "content": "How many files are there?"}]
CALLING = Answer(reasoning="hm, files", text="I look. " * 5, calls=(Call("count", {"path": '日本 "x"'}), Call("stat")))


OPENED = []


@pytest.fixture(autouse=True)
def _close_clients():
    yield
    while OPENED:
        OPENED.pop().close()


def claude(server, **options):
    OPENED.append(anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0, **options))
    return OPENED[-1]


def gpt(server, **options):
    OPENED.append(openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0, **options))
    return OPENED[-1]


def ask(client, messages=ASKED, **options):
    return client.messages.create(model="claude-sonnet-5", max_tokens=64, messages=messages, **options)


def complete(client, messages=ASKED, **options):
    return client.chat.completions.create(model="gpt-5", messages=messages, **options)


def test_anthropics_client_reads_the_answer():
    """Words, reasoning, parallel calls, usage."""
    with Server(lambda _: CALLING) as server:
        reply = ask(claude(server))
    assert [block.type for block in reply.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert reply.content[2].input == {"path": '日本 "x"'}
    assert reply.stop_reason == "tool_use"
    assert reply.usage.cache_creation_input_tokens == server.seen[0].tokens > 0


def test_openais_client_reads_the_answer():
    """Words, parallel calls, usage."""
    with Server(lambda _: CALLING) as server:
        reply = complete(gpt(server))
    choice = reply.choices[0]
    assert choice.message.content == CALLING.text
    assert [call.function.name for call in choice.message.tool_calls] == ["count", "stat"]
    assert choice.finish_reason == "tool_calls"
    assert reply.usage.prompt_tokens == server.seen[0].tokens


def test_a_streamed_answer_is_the_same_answer():
    """Both clients put it together to what the whole one says."""
    with Server(lambda _: CALLING) as server:
        whole = ask(claude(server))
        with claude(server).messages.stream(model="claude-sonnet-5", max_tokens=64, messages=ASKED) as stream:
            streamed = stream.get_final_message()
        assert [block.to_dict() for block in streamed.content if block.type != "tool_use"] == [
            block.to_dict() for block in whole.content if block.type != "tool_use"
        ]
        assert [block.input for block in streamed.content[2:]] == [block.input for block in whole.content[2:]]
        with gpt(server).chat.completions.stream(model="gpt-5", messages=ASKED) as stream:
            final = stream.get_final_completion()
    assert final.choices[0].message.content == CALLING.text
    assert [call.function.arguments for call in final.choices[0].message.tool_calls] == [
        '{"path":"日本 \\"x\\""}',
        "{}",
    ]


def test_a_broken_rule_is_a_bad_request_that_names_the_block():
    """With the provider's kind of error."""
    orphan = [{"role": "user", "content": [result("ghost")]}]
    with Server() as server:
        with pytest.raises(anthropic.BadRequestError, match=r"messages\[0\]"):
            ask(claude(server), orphan)
        with pytest.raises(openai.BadRequestError, match=r"messages\[0\]"):
            complete(gpt(server), [{"role": "tool", "tool_call_id": "ghost", "content": "x"}])
    assert [each.problems[0].rule.partition(".")[0] for each in server.refused] == ["anthropic", "openai"]


def test_a_request_above_the_window_is_refused_in_the_providers_words():
    """So that whoever learns from such errors can be tested."""
    long = [{"role": "user", "content": "word " * 500}]
    with Server(window=200) as server:
        with pytest.raises(anthropic.BadRequestError, match=r"prompt is too long: \d+ tokens > 200 maximum"):
            ask(claude(server), long)
        with pytest.raises(openai.BadRequestError, match="maximum context length is 200") as caught:
            complete(gpt(server), long)
    assert caught.value.code == "context_length_exceeded"


def test_a_prefix_that_was_sent_before_is_read_from_the_cache():
    """Block by block, whoever sends it; below the minimum nothing is."""
    longer = [*ASKED, {"role": "assistant", "content": [use("a")]}, {"role": "user", "content": [result("a")]}]
    with Server(cache_minimum=5) as server:
        first = ask(claude(server), system="You count files.")
        second = ask(claude(server), longer, system="You count files.")
        other = ask(claude(server), longer, system="You count people.")
        small = ask(claude(server))
    assert first.usage.cache_read_input_tokens == 0
    assert second.usage.cache_read_input_tokens == server.seen[0].tokens
    assert other.usage.cache_read_input_tokens == 0
    assert small.usage.cache_creation_input_tokens > 0


def test_failures_come_as_often_as_they_were_asked_for():
    """And then the server works again."""
    with Server() as server:
        server.fail(529, "overloaded", times=2)
        for _ in range(2):
            with pytest.raises(anthropic.APIStatusError, match="overloaded"):
                ask(claude(server))
        assert ask(claude(server)).content[0].text == "ok"
    assert [each.status for each in server.seen] == [529, 529, 200]


def test_a_stream_can_break_off():
    """What arrived before that is there."""
    with Server(lambda _: CALLING) as server:
        server.break_off_after = 6
        stream = ask(claude(server), stream=True)
        kinds = [event.type for event in stream]
    assert kinds[0] == "message_start"
    assert "message_stop" not in kinds


def test_a_slow_server_runs_into_the_clients_limit():
    """The client's own time-out is what ends it."""
    released = Event()
    with Server(lambda _: Answer(text=str(released.wait(60)))) as server:
        with pytest.raises(anthropic.APITimeoutError):
            ask(claude(server, timeout=0.05))
        released.set()


def test_the_model_sees_the_request():
    """What it answers may depend on it."""
    with Server(lambda body: Answer(text=f"{len(body['messages'])} messages")) as server:
        assert ask(claude(server)).content[0].text == "1 messages"
        assert server.seen[0].body["model"] == "claude-sonnet-5"


def test_what_is_no_request_is_refused():
    """Not JSON, and a path nobody listens on."""
    with Server() as server:
        status, body = server.answer("/v1/chat/completions", b"{nonsense")
        assert (status, body["error"]["type"]) == (400, "invalid_request_error")
        with pytest.raises(openai.NotFoundError):
            gpt(server).embeddings.create(model="x", input="y")


def test_what_says_who_asks_is_not_kept():
    """Path, model and harmless headers are; keys are not, wherever they stand."""
    with Server() as server:
        ask(claude(server, default_headers={"X-Session": "s1"}))
        complete(gpt(server))
    first, second = server.seen
    assert (first.path, first.model, first.headers["x-session"]) == ("/v1/messages", "claude-sonnet-5", "s1")
    assert (second.path, second.model) == ("/v1/chat/completions", "gpt-5")
    assert "none" not in {*first.headers.values(), *second.headers.values()}


@pytest.mark.parametrize("name", ["Authorization", "X-Api-Key", "x-goog-api-key", "Cookie", "Proxy-Authorization"])
def test_a_header_that_says_who_asks_is_left_out(name):
    """Whatever the case of its name."""
    assert public({name: "secret", "Anthropic-Beta": "b"}) == {"anthropic-beta": "b"}


def test_anthropics_count_is_what_the_request_weighs():
    """Above the window too; no answer is given, so no limit for it is needed."""
    with Server(window=5) as server:
        counted = claude(server).messages.count_tokens(model="claude-sonnet-5", messages=ASKED)
    assert counted.input_tokens == server.seen[0].tokens > 5
    assert (server.seen[0].path, server.seen[0].status) == ("/v1/messages/count_tokens", 200)
