"""What breaks other people's wrapped clients: each one a test with the official SDKs, and no network."""

import asyncio
import gc
import json
import threading
import time
from contextlib import closing

import anthropic
import httpx2
import openai
import pytest
from anthropic import beta_tool
from google import genai
from pydantic import BaseModel

import windowsill
from support.conversations import call, result, thinking, tool
from support.wrapped_clients import Anthropic, Gemini
from windowsill import Session, StoreError
from windowsill.testing import Answer, Call, Server

pytestmark = pytest.mark.integration

GPT, CLAUDE, GEMINI = "gpt-5", "claude-sonnet-4-6", "gemini-2.5-pro"
USAGE = {"input_tokens": 5, "output_tokens": 1}
LIVE = "text/event-stream"


def user(text):
    return {"role": "user", "content": text}


def says(text):
    return {"role": "assistant", "content": text}


def small(model=GPT, store=":memory:", id="s", **settings):
    return Session.open(id, model=model, tokenizer="o200k_base", store=store, **settings)


def completion(text="ok", **message):
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text, **message}}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": GPT, "choices": [choice]}


def events(*pieces, end=True):
    """A streamed answer of OpenAI's chat; without its end it breaks off."""
    told = [{"index": 0, "delta": {"role": "assistant", "content": piece}, "finish_reason": None} for piece in pieces]
    told += [{"index": 0, "delta": {}, "finish_reason": "stop"}] if end else []
    common = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": GPT}
    return [b"data: " + json.dumps({**common, "choices": [each]}).encode() + b"\n\n" for each in told]


class Wire:
    """An HTTP client that answers by itself and keeps what it was asked."""

    def __init__(self, answer=None, **options):
        self.seen = []
        self._answer = answer if answer is not None else completion()
        self.client = httpx2.Client(transport=httpx2.MockTransport(self.take), **options)

    def take(self, request):
        self.seen.append(request)
        answer = self._answer(request) if callable(self._answer) else self._answer
        return answer if isinstance(answer, httpx2.Response) else httpx2.Response(200, json=answer)

    def body(self, number=-1):
        return json.loads(self.seen[number].read())


def plain(wire, **options):
    return openai.OpenAI(api_key="none", http_client=wire.client, **{"max_retries": 0, **options})


def ask(client, *messages, **fields):
    return client.chat.completions.create(model=GPT, messages=list(messages), **fields)


def texts(session):
    return [message.text for message in session.messages()]


# The client's own HTTP client


@pytest.mark.parametrize(
    ("options", "look"),
    [
        ({"headers": {"x-corp": "7"}}, lambda request: request.headers.get("x-corp")),
        ({"params": {"tenant": "7"}}, lambda request: request.url.params.get("tenant")),
        ({"cookies": {"gateway": "7"}}, lambda request: request.headers.get("cookie", "").removeprefix("gateway=")),
    ],
    ids=["headers", "params", "cookies"],
)
def test_what_the_inner_client_adds_to_every_request_is_still_added(options, look):
    """Gateways of companies are reached by headers, parameters and cookies of the HTTP client."""
    wire = Wire(**options)
    ask(windowsill.wrap(plain(wire), small()), user("hi"))
    assert look(wire.seen[0]) == "7"


def test_hooks_and_authentication_of_the_inner_client_see_the_composed_request():
    """The body that goes out, once, and the answer."""
    heard = []

    class Badge(httpx2.Auth):
        def auth_flow(self, request):
            request.headers["x-badge"] = "me"
            yield request

    hooks = {
        "request": [lambda request: heard.append(len(json.loads(request.read())["messages"]))],
        "response": [lambda response: heard.append(response.status_code)],
    }
    wire = Wire(auth=Badge(), event_hooks=hooks)
    client = windowsill.wrap(plain(wire), small(), resends=False)
    ask(client, user("one"))
    ask(client, user("two"))
    assert heard == [1, 200, 3, 200]
    assert wire.seen[1].headers["x-badge"] == "me"


def test_mounted_transports_are_used():
    """Proxies are mounted on the inner client, by address."""
    wire, proxied = Wire(), []

    def take(request):
        proxied.append(request.url.host)
        return httpx2.Response(200, json=completion())

    inner = httpx2.Client(mounts={"https://api.openai.com": httpx2.MockTransport(take)})
    ask(windowsill.wrap(openai.OpenAI(api_key="none", http_client=inner), small()), user("hi"))
    assert (proxied, wire.seen) == (["api.openai.com"], [])


@pytest.mark.parametrize("timeout", [7, None])
def test_the_time_out_of_a_call_is_kept(timeout):
    """Of the call, and where it says nothing, of the client."""
    wire = Wire()
    client = windowsill.wrap(plain(wire, timeout=11), small())
    ask(client, user("hi"), **({"timeout": timeout} if timeout else {}))
    assert wire.seen[0].extensions["timeout"]["read"] == (timeout or 11)


@pytest.mark.parametrize(
    ("options", "path"),
    [({"base_url": "http://gate/eu/openai/v1"}, "/eu/openai/v1/chat/completions"), ({}, "/v1/chat/completions")],
)
def test_a_base_url_with_a_path_is_kept(options, path):
    """And its calls are known as model calls."""
    wire, session = Wire(), small()
    ask(windowsill.wrap(plain(wire, **options), session), user("hi"))
    assert wire.seen[0].url.path == path
    assert texts(session) == ["hi", "ok"]


@pytest.mark.parametrize("deployment", [None, "my-deployment"])
def test_azure_keeps_its_deployment_and_version(deployment):
    """In the address, with the key in its own header."""
    wire, session = Wire(), small()
    azure = openai.AzureOpenAI(
        api_key="none",
        azure_endpoint="https://x.openai.azure.com",
        azure_deployment=deployment,
        api_version="2024-10-21",
        http_client=wire.client,
    )
    ask(windowsill.wrap(azure, session), user("hi"))
    assert wire.seen[0].url.path == f"/openai/deployments/{deployment or GPT}/chat/completions"
    assert wire.seen[0].url.params["api-version"] == "2024-10-21"
    assert wire.seen[0].headers["api-key"] == "none"
    assert texts(session) == ["hi", "ok"]


def claude_says(text="ok"):
    content = [{"type": "text", "text": text}]
    return {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": CLAUDE,
        "content": content,
        "stop_reason": "end_turn",
        "usage": USAGE,
    }


def test_claude_on_vertex_keeps_its_version_and_address():
    """The model stands in the address, not in the body."""
    wire, session = Wire(claude_says()), small(CLAUDE)
    vertex = anthropic.AnthropicVertex(region="us-east5", project_id="p", access_token="t", http_client=wire.client)
    windowsill.wrap(vertex, session).messages.create(model=f"{CLAUDE}@20260101", max_tokens=9, messages=[user("hi")])
    assert wire.seen[0].url.path.endswith(f"/anthropic/models/{CLAUDE}@20260101:rawPredict")
    assert "anthropic_version" in wire.body()
    assert "model" not in wire.body()
    assert texts(session) == ["hi", "ok"]


SIGNED = {"aws_region": "us-east-1", "aws_access_key": "a", "aws_secret_key": "b"}


class Subclass(anthropic.AnthropicBedrock):
    """As programs make them."""


@pytest.mark.parametrize(
    ("kind", "options"),
    [(anthropic.AnthropicAWS, {"workspace_id": "w"}), (anthropic.AnthropicBedrockMantle, {}), (Subclass, {})],
)
def test_every_client_that_signs_its_requests_is_refused(kind, options):
    """The provider would refuse each request, with words about signatures."""
    with pytest.raises(windowsill.InputError, match="cannot be wrapped"):
        windowsill.wrap(kind(**SIGNED, **options), small(CLAUDE))


def test_an_upload_is_passed_on_as_it_streams():
    """A file of gigabytes must not stand in memory because of us."""
    order = []

    def content():
        for number in range(2):
            order.append(number)
            yield b"x"

    class Sent(httpx2.BaseTransport):
        def handle_request(self, request):
            order.append("sent")
            request.read()
            return httpx2.Response(200, json={})

    client = windowsill.wrap(openai.OpenAI(api_key="none", http_client=httpx2.Client(transport=Sent())), small())
    client._client.post("http://provider/v1/files", content=content())
    assert order == ["sent", 0, 1]


# One client, several sessions; one session, several clients


def test_a_client_that_is_wrapped_twice_records_once():
    """Two parts of a program each wrap what they are given."""
    session = small()
    client = windowsill.wrap(windowsill.wrap(plain(Wire()), session), session)
    ask(client, user("hi"))
    assert [branch.messages for branch in session.branches] == [2]


def test_one_client_serves_two_sessions():
    """Each has its own conversation."""
    base, one, other = plain(Wire()), small(), small()
    ask(windowsill.wrap(base, one), user("tea"))
    ask(windowsill.wrap(base, other), user("rain"))
    assert (texts(one), texts(other)) == (["tea", "ok"], ["rain", "ok"])


def test_copies_of_a_wrapped_client_are_wrapped():
    """`with_options` and `copy` make new clients all the time."""
    session = small()
    client = windowsill.wrap(plain(Wire()), session)
    ask(client.with_options(timeout=3), user("one"))
    ask(client.copy(), user("one"), says("ok"), user("two"))
    assert texts(session) == ["one", "ok", "two", "ok"]


def test_the_first_client_works_on_when_the_wrapped_one_is_forgotten():
    """It was left as it was."""
    base = plain(Wire())
    windowsill.wrap(base, small())
    gc.collect()
    assert ask(base, user("hi")).choices[0].message.content == "ok"


def test_googles_first_client_works_on_when_the_wrapped_one_is_forgotten():
    """`wrap` in a function, for one request."""
    with Server() as server, closing(Gemini().client(server.url, later=False)) as base:
        windowsill.wrap(base, small(GEMINI))
        gc.collect()
        assert base.models.generate_content(model=GEMINI, contents="hi").text == "ok"


def test_a_session_that_was_closed_lets_a_whole_list_through(tmp_path, caplog):
    """The user has an answer; what needs the session's past is a clear error, once."""
    wire, session = Wire(), small(store=tmp_path)
    client, brief = (windowsill.wrap(plain(wire, max_retries=2), session, resends=each) for each in (True, False))
    ask(client, user("hi"))
    session.close()
    assert ask(client, user("hi"), says("ok"), user("go on")).choices[0].message.content == "ok"
    assert "was not recorded" in caplog.text
    with pytest.raises(StoreError, match="closed"):
        ask(brief, user("only this"))
    assert len(wire.seen) == 2


def test_a_session_that_was_only_named_is_closed_with_its_client(tmp_path, monkeypatch):
    """A server that wraps a client for each user must not run out of files; a closed store leaves no log behind."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".windowsill").mkdir()
    with windowsill.wrap(plain(Wire()), "support-42") as client:
        ask(client, user("hi"))
    assert [path.name for path in (tmp_path / ".windowsill").iterdir()] == ["sessions.db"]


# Streams


@pytest.mark.parametrize("usage", [True, False])
def test_a_stream_is_recorded_with_its_usage(usage):
    """`include_usage` brings one more event, without a choice."""
    session = small()
    told = {"object": "chat.completion.chunk", "id": "c", "created": 1, "model": GPT, "choices": []}
    more = [b"data: " + json.dumps({**told, "usage": {"prompt_tokens": 9, "completion_tokens": 1}}).encode() + b"\n\n"]
    content = b"".join([*events("hel", "lo"), *(more if usage else []), b"data: [DONE]\n\n"])
    wire = Wire(lambda _: httpx2.Response(200, headers={"content-type": LIVE}, content=content))
    client = windowsill.wrap(plain(wire), session)
    heard = list(ask(client, user("hi"), stream=True, stream_options={"include_usage": usage}))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in heard if chunk.choices) == "hello"
    assert texts(session) == ["hi", "hello"]


class Broken(httpx2.SyncByteStream):
    """A stream in which something happens."""

    def __init__(self, happens=None):
        self._happens = happens
        self.closed = False

    def __iter__(self):
        yield from events("hel", "lo", end=False)
        if self._happens is not None:
            raise self._happens
        while True:
            yield events("!", end=False)[0]

    def close(self):
        self.closed = True


def test_an_interrupt_in_the_middle_of_a_stream_leaves_what_came():
    """Ctrl-C; nobody closes anything."""
    session = small()
    stream = Broken(KeyboardInterrupt())
    wire = Wire(lambda _: httpx2.Response(200, headers={"content-type": LIVE}, stream=stream))
    client = windowsill.wrap(plain(wire), session)
    with pytest.raises(KeyboardInterrupt):
        list(ask(client, user("hi"), stream=True))
    assert [(each.text, each.metadata) for each in session.messages()] == [("hi", {}), ("hello", {"partial": True})]
    assert stream.closed


def test_a_stream_that_is_dropped_half_read_is_closed_and_kept():
    """A generator that nobody holds any more."""
    session = small()
    stream = Broken()
    wire = Wire(lambda _: httpx2.Response(200, headers={"content-type": LIVE}, stream=stream))
    client = windowsill.wrap(plain(wire), session)
    next(iter(ask(client, user("hi"), stream=True)))
    gc.collect()
    assert stream.closed
    assert [each.metadata for each in session.messages()] == [{}, {"partial": True}]


def test_an_asynchronous_stream_that_is_dropped_half_read_is_kept():
    """The loop closes what is collected."""
    session = small()

    async def take(_):
        async def content():
            while True:
                yield events("x", end=False)[0]
                await asyncio.sleep(0)

        return httpx2.Response(200, headers={"content-type": LIVE}, content=content())

    async def run():
        inner = httpx2.AsyncClient(transport=httpx2.MockTransport(take))
        client = windowsill.wrap(openai.AsyncOpenAI(api_key="none", http_client=inner), session)

        async def look():
            async for _ in await client.chat.completions.create(model=GPT, messages=[user("hi")], stream=True):
                break

        await look()
        for _ in range(6_000):
            gc.collect()
            await asyncio.sleep(0.01)
            if len(texts(session)) > 1:
                break

    asyncio.run(run())
    assert [each.metadata for each in session.messages()] == [{}, {"partial": True}]


# Failures of the provider


@pytest.mark.parametrize(
    ("status", "kind", "body"),
    [
        (502, "text/html", b"<html>bad gateway</html>"),
        (200, "application/json", b""),
        (200, "text/html", b"<html>log in</html>"),
        (200, "application/json", b'{"error": {"message": "no"}}'),
        (204, "", b""),
        (400, "application/json", b'{"error": {"message": "bad field"}}'),
        (401, "application/json", b'{"error": {"message": "who are you"}}'),
    ],
)
def test_what_the_provider_says_reaches_the_caller_as_without_us(status, kind, body):
    """Errors, pages and empty answers alike."""

    def said(wrapped):
        wire = Wire(lambda _: httpx2.Response(status, headers={"content-type": kind}, content=body))
        client = windowsill.wrap(plain(wire), small()) if wrapped else plain(wire)
        try:
            return repr(ask(client, user("hi")))
        except Exception as error:  # noqa: BLE001 - whatever it is, it has to be the same
            return repr(error)

    assert said(wrapped=True) == said(wrapped=False)


def test_the_clients_own_retries_wait_as_the_provider_says():
    """The header reaches it, and the question is recorded once."""
    tries = []

    def take(_):
        tries.append(time.monotonic())
        busy = httpx2.Response(429, headers={"retry-after-ms": "30"}, json={"error": {"message": "slow down"}})
        return busy if len(tries) < 3 else completion()

    session = small()
    ask(windowsill.wrap(plain(Wire(take), max_retries=3), session), user("hi"))
    assert len(tries) == 3
    assert texts(session) == ["hi", "ok"]


def test_a_huge_answer_is_recorded_whole():
    """8 MB of text."""
    session = small(budget=50_000)
    client = windowsill.wrap(plain(Wire(completion("word " * 1_600_000))), session)
    ask(client, user("hi"))
    assert len(texts(session)[1]) == 8_000_000
    ask(client, user("and in short?"))
    assert session.verify() == []


# Further ways to call


class Sum(BaseModel):
    """The value that `parse` makes of an answer."""

    total: int


def test_parsing_helpers_work():
    """The SDK asks for a schema and reads the answer with it."""
    session = small()
    wire = Wire(completion('{"total": 3}'))
    client = windowsill.wrap(plain(wire), session)
    reply = client.chat.completions.parse(model=GPT, messages=[user("1 + 2?")], response_format=Sum)
    assert reply.choices[0].message.parsed == Sum(total=3)
    assert wire.body()["response_format"]["json_schema"]["name"] == "Sum"
    assert texts(session) == ["1 + 2?", '{"total": 3}']


def test_responses_that_are_read_line_by_line_work():
    """`with_streaming_response` gives the body to its caller bit by bit."""
    session = small()
    client = windowsill.wrap(plain(Wire()), session)
    with client.chat.completions.with_streaming_response.create(model=GPT, messages=[user("hi")]) as response:
        assert json.loads("".join(response.iter_lines())) == completion()
    assert texts(session) == ["hi", "ok"]


def test_anthropics_tool_runner_is_one_conversation():
    """It keeps a list of its own and goes on until no tool is called."""
    session = small(CLAUDE)
    answers = iter([Answer(calls=(Call("add", {"one": 1, "other": 2}),)), Answer(text="3")])

    @beta_tool
    def add(one: int, other: int) -> str:
        """Add two numbers."""
        return str(one + other)

    with (
        Server(lambda _: next(answers)) as server,
        windowsill.wrap(Anthropic().client(server.url, later=False), session) as client,
    ):
        runner = client.beta.messages.tool_runner(model=CLAUDE, max_tokens=99, tools=[add], messages=[user("1 + 2?")])
        assert runner.until_done().content[0].text == "3"
    assert server.refused == []
    assert [message.role for message in session.messages()] == ["user", "assistant", "user", "assistant"]


def test_googles_options_of_one_call_are_kept():
    """Headers and configuration; the name of the model may have its prefix."""
    session = small(GEMINI)
    config = genai.types.GenerateContentConfig(
        system_instruction="Be brief.", temperature=0.5, http_options={"headers": {"x-mine": "1"}}
    )
    with Server() as server, closing(windowsill.wrap(Gemini().client(server.url, later=False), session)) as client:
        client.models.generate_content(model=f"models/{GEMINI}", contents=["one", "two"], config=config)
        counted = client.models.count_tokens(model=GEMINI, contents="hello")
    assert server.seen[0].headers["x-mine"] == "1"
    assert server.seen[0].body["generationConfig"]["temperature"] == 0.5
    assert counted.total_tokens > 0
    assert texts(session) == ["one\ntwo", "ok"]


# What the peers' users complain about, seen from a client


def test_a_giant_result_does_not_end_the_conversation():
    """One line of a million characters, in the middle of a tool loop."""
    session = small(budget=4_000)
    wire = Wire()
    client = windowsill.wrap(plain(wire), session)
    asks = {"role": "assistant", "content": None, "tool_calls": [call("c1")]}
    ask(client, user("Read it."), asks, tool("c1", "x" * 1_000_000))
    assert len(wire.seen[0].read()) < 40_000
    assert [message["role"] for message in wire.body()["messages"]] == ["user", "assistant", "tool"]
    stored = list(session.messages())[2].blocks[0].content[0].text
    assert len(stored) == 1_000_000


def test_reasoning_that_the_client_left_out_is_sent_with_its_signature():
    """Providers refuse calls without the reasoning that led to them; clients that keep only words forget it."""
    session = small(CLAUDE)
    use = {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a.py"}}
    answer = {**claude_says(), "content": [thinking(), use], "stop_reason": "tool_use"}
    wire = Wire(answer)
    client = windowsill.wrap(anthropic.Anthropic(api_key="none", http_client=wire.client), session)
    messages = [user("Read it.")]
    client.messages.create(model=CLAUDE, max_tokens=9, messages=messages)
    messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result("c1", "text")]}]
    client.messages.create(model=CLAUDE, max_tokens=9, messages=messages)
    assert wire.body()["messages"][1]["content"] == [thinking(), use]


def test_the_task_and_the_system_prompt_are_in_every_request():
    """However long the client goes on, in whichever way it sends."""
    session = small(budget=2_000)
    wire = Wire(completion("word " * 100))
    client = windowsill.wrap(plain(wire), session, resends=False)
    rules = {"role": "system", "content": "Never touch the billing table."}
    ask(client, rules, user("Mend the login page."))
    for number in range(30):
        ask(client, rules, user(f"step {number}"))
    for number in range(31):
        first, *_ = wire.body(number)["messages"]
        assert first == rules
        assert "Mend the login page." in json.dumps(wire.body(number))
    assert len(session.folds) > 0


@pytest.mark.parametrize(
    "stream",
    [False, True],
)
def test_the_loop_does_not_wait_for_the_disk(stream):
    """What is written is written by a thread: the other tasks of a server go on. The clock tells who writes."""
    writers = []

    def clock():
        writers.append(threading.current_thread())
        return 1.0

    session = small(clock=clock)
    writers.clear()

    async def take(_):
        if stream:
            return httpx2.Response(200, headers={"content-type": LIVE}, content=b"".join(events("ok")))
        return httpx2.Response(200, json=completion())

    async def run():
        inner = httpx2.AsyncClient(transport=httpx2.MockTransport(take))
        client = windowsill.wrap(openai.AsyncOpenAI(api_key="none", http_client=inner), session)
        reply = await client.chat.completions.create(model=GPT, messages=[user("hi")], stream=stream)
        if stream:
            assert [chunk async for chunk in reply]

    asyncio.run(run())
    assert texts(session) == ["hi", "ok"]
    assert threading.main_thread() not in writers
