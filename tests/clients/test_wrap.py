"""Wrapped clients: the official SDKs, run against a strict server through a session."""

import asyncio
import gc
import itertools
import logging
import threading
from contextlib import ExitStack, closing, contextmanager, suppress

import anthropic
import httpx2
import openai
import pytest
from google import genai

import windowsill
from support.wrapped_clients import SPEAKERS, Anthropic, Chat, Gemini, Responses, close
from windowsill import (
    BudgetError,
    InputError,
    NotFoundError,
    Session,
    SettingError,
    StoreError,
    UnknownModelError,
)
from windowsill.session.client_history import client_history
from windowsill.testing import Answer, Call, Server

pytestmark = pytest.mark.integration

TURNS = 80
BUDGET = 3_000
TEXT = {"type": "text", "text": "ok"}
OUTPUT = "line of the file\n" * 20
ENDLESS = "a long answer " * 20_000
"""More than a client reads at once."""


def working():
    """A model that reasons and makes one to three calls each turn."""
    turns = itertools.count()

    def respond(_):
        turn = next(turns)
        calls = tuple(Call("read", {"path": f"{turn}-{place}.py"}) for place in range(1 + turn % 3))
        return Answer(reasoning="let me see", text=f"turn {turn}", calls=calls)

    return respond


def small(speaker, store=":memory:", **settings):
    """A session that counts as the server does."""
    settings = {"budget": BUDGET, **settings}
    return Session.open("loop", model=speaker.model, tokenizer="o200k_base", store=store, **settings)


def serving(respond=None, **more):
    return Server(respond or (lambda body: Answer(text=f"answer to {len(str(body))}")), **more)


@contextmanager
def wrapped(speaker, server, session, *, later=False, **options):
    """A client of this speaker whose calls go through the session; closed in the end."""
    client = windowsill.wrap(speaker.client(server.url, later=later), session, **options)
    try:
        yield client
    finally:
        asyncio.run(close(client))


def ask(speaker, client, *words, stream=False):
    """One call of a synchronous client."""
    return asyncio.run(speaker.ask(client, [speaker.user(each) for each in words], stream=stream))


async def loop(speaker, client, turns, *, whole):
    """An agent that goes on for as many turns, streaming every other one; how many messages it has seen."""
    messages = [speaker.user("Read everything.")]
    seen = 1
    for turn in range(turns):
        reply = await speaker.ask(client, messages, stream=turn % 2 == 1)
        said = speaker.said(reply)
        results = speaker.results(speaker.calls(reply), OUTPUT, picture=turn % 7 == 0)
        seen += len(said) + len(results)
        messages = [*messages, *said, *results] if whole else results
    last = await speaker.ask(client, messages, stream=False)
    await close(client)
    return seen + len(speaker.said(last))


@pytest.mark.parametrize("whole", [True, False], ids=["whole-list", "new-only"])
@pytest.mark.parametrize("name", SPEAKERS)
def test_a_long_tool_loop_in_a_small_window(name, whole, tmp_path):
    """Parallel calls, reasoning and pictures: no error, no request above the window, nothing lost, one branch."""
    speaker, later = SPEAKERS[name]
    session = small(speaker, tmp_path)
    # A client's own work on a long list is most of such a test: only the quickest goes all the way with it.
    turns = TURNS if name == "anthropic" else TURNS // 3 if whole else TURNS // 2
    with Server(working(), window=BUDGET, cache_minimum=500) as server:
        client = windowsill.wrap(speaker.client(server.url, later=later), session, resends=whole)
        seen = asyncio.run(loop(speaker, client, turns, whole=whole))
    assert [(each.tokens, each.problems) for each in server.refused] == []
    assert [each.status for each in server.seen] == [200] * (turns + 1)
    assert max(each.tokens for each in server.seen) <= BUDGET
    kept = list(session.messages())
    assert len(kept) == seen
    assert len(session.branches) == 1
    assert len(session.folds) > turns // 16
    assert session.verify() == []
    cached = sum(each.cached for each in server.seen) / sum(each.tokens for each in server.seen)
    assert cached > 0.6


class Gemini3(Gemini):
    """Takes no call without a signature."""

    model = "gemini-3-pro"


class DeepSeek(Chat):
    """Takes no message without its reasoning."""

    model = "deepseek-reasoner"


@pytest.mark.parametrize("google", [Gemini(), Gemini3()], ids=["unsigned", "signed"])
def test_a_conversation_may_change_its_provider(tmp_path, google):
    """Five clients take turns in one session, each sends only what is new, and each counts pictures in its own way."""
    speakers = [Anthropic(), Chat(), google, Responses(), DeepSeek()]
    session = small(speakers[0], tmp_path)
    with Server(working(), window=BUDGET) as server, ExitStack() as opened:
        clients = [opened.enter_context(wrapped(each, server, session, resends=False)) for each in speakers]

        async def run():
            messages = [speakers[0].user("Read everything.")]
            for turn in range(40):
                speaker, after = speakers[turn % 5], speakers[(turn + 1) % 5]
                reply = await speaker.ask(clients[turn % 5], messages, stream=turn % 10 > 4)
                messages = after.results(speaker.calls(reply), OUTPUT, picture=turn % 5 == 0)

        asyncio.run(run())
    assert [(each.tokens, each.problems) for each in server.refused] == []
    assert len(server.seen) == 40
    assert len(session.branches) == 1
    assert session.verify() == []


@pytest.mark.parametrize("speaker", [Anthropic(), Chat(), Responses(), Gemini()], ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("stream", [False, True])
def test_an_overflow_teaches_the_window_and_is_tried_again_once(speaker, stream):
    """The caller sees an answer; the next request fits at once."""
    session = small(speaker, budget=None)
    with serving(window=2_000) as server, wrapped(speaker, server, session, resends=False) as client:
        ask(speaker, client, *(f"question {number} " + "word " * 100 for number in range(30)), stream=stream)
        ask(speaker, client, "and now?", stream=stream)
    assert [each.status for each in server.seen] == [400, 200, 200]
    assert server.seen[0].tokens > 2_000 >= server.seen[1].tokens
    assert len(list(session.messages())) == 33
    # OpenAI's Responses do not say how large the window is; half as much is sent then.
    assert session.model.window == (2_000 if type(speaker) is not Responses else 400_000)


def test_a_second_overflow_is_the_callers():
    """Only one retry: a provider that refuses everything is not asked for ever."""
    session = small(Anthropic(), budget=None)
    with serving() as server, wrapped(Anthropic(), server, session) as client:
        server.fail(400, "prompt is too long", times=9)
        with pytest.raises(anthropic.BadRequestError, match="too long"):
            ask(Anthropic(), client, *(f"question {number} " + "word " * 200 for number in range(20)))
    assert len(server.seen) == 2
    assert len(server.seen[1].raw) < 0.9 * len(server.seen[0].raw)


@pytest.mark.parametrize("speaker", [Anthropic(), Responses()], ids=lambda each: type(each).__name__)
def test_reasoning_that_the_provider_refuses_is_left_out_and_the_call_made_again(speaker, caplog):
    """A signature from elsewhere: the caller has its answer, and later calls are not refused for it again."""
    session = small(speaker, budget=None)
    thought = (
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "forged"}, TEXT]}
        if isinstance(speaker, Anthropic)
        else {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "forged"}
    )
    answer = [thought] if isinstance(speaker, Anthropic) else [thought, {"role": "assistant", "content": "ok"}]
    with serving() as server, wrapped(speaker, server, session) as client:
        messages = [speaker.user("hi"), *answer, speaker.user("go on")]
        for _ in range(2):
            reply = asyncio.run(speaker.ask(client, messages, stream=False))
            messages += [*speaker.said(reply), speaker.user("more")]
    assert [each.status for each in server.seen] == [400, 200, 200]
    assert [b"forged" in each.raw for each in server.seen] == [True, False, False]
    assert "the provider refused reasoning" in caplog.text
    assert any(b"forged" in (message.raw or b"") for message in session.messages())
    (call, *_) = session.calls[-1:]
    assert b"forged" not in session.request(call.id)


@pytest.mark.parametrize("speaker", [Anthropic(), Chat(), Responses()], ids=lambda each: type(each).__name__)
def test_a_call_that_the_client_makes_again_is_recorded_once(speaker):
    """The SDK's own retries after a failure of the server."""
    session = small(speaker)
    with serving() as server, wrapped(speaker, server, session) as client:
        server.fail(500, times=2)
        ask(speaker, client.with_options(max_retries=2), "hello")
    assert [each.status for each in server.seen] == [500, 500, 200]
    assert [message.role for message in session.messages()] == ["user", "assistant"]


@pytest.mark.parametrize("speaker", [Anthropic(), Chat(), Responses()], ids=lambda each: type(each).__name__)
def test_a_failed_call_keeps_the_question(speaker):
    """What the user said is on disk before the call is made."""
    session = small(speaker)
    with serving() as server, wrapped(speaker, server, session) as client:
        server.fail(500)
        with pytest.raises((anthropic.APIStatusError, openai.APIStatusError)):
            ask(speaker, client, "hello")
    assert [message.text for message in session.messages()] == ["hello"]


@pytest.mark.parametrize("speaker", [Anthropic(), Chat(), Gemini()], ids=lambda each: type(each).__name__)
def test_a_stream_that_breaks_off_is_kept_as_partial(speaker):
    """And the next try, which succeeds, is what the model sees."""
    session = small(speaker)
    with serving(lambda _: Answer(text="a long answer " * 20)) as server, wrapped(speaker, server, session) as client:
        server.break_off_after = 5
        # Some SDKs take a stream that ends early for a whole one.
        with suppress(httpx2.HTTPError, anthropic.APIError, openai.APIError, AssertionError):
            ask(speaker, client, "hello", stream=True)
        assert [message.metadata.get("partial") for message in session.messages()] == [None, True]
        server.break_off_after = None
        ask(speaker, client, "hello", stream=True)
    assert [message.metadata.get("partial") for message in session.messages()] == [None, None]
    assert sorted(branch.messages for branch in session.branches) == [2, 2]


def test_a_reader_that_stops_in_the_middle_leaves_what_it_read():
    """A user closes a streaming page."""
    session = small(Chat())
    asked = {"model": "gpt-5", "messages": [Chat().user("hi")], "stream": True}
    with (
        serving(lambda _: Answer(text=ENDLESS)) as server,
        wrapped(Chat(), server, session) as client,
        client.chat.completions.create(**asked) as stream,
    ):
        for _ in zip(range(4), stream, strict=False):
            pass
    question, answer = session.messages()
    assert question.text == "hi"
    assert answer.metadata == {"partial": True}
    assert answer.text.startswith("a long")


def test_a_task_that_is_cancelled_in_the_middle_of_a_stream_leaves_what_it_read():
    """Cancelled from outside, with the answer half read."""
    session = small(Anthropic())

    async def run(url):
        async with windowsill.wrap(Anthropic().client(url, later=True), session) as client:
            heard = asyncio.Event()

            async def read():
                fields = {"model": "claude-sonnet-4-6", "max_tokens": 99, "messages": [Anthropic().user("hi")]}
                async with client.messages.stream(**fields) as stream:
                    async for _ in stream.text_stream:
                        heard.set()
                        await asyncio.sleep(60)

            task = asyncio.create_task(read())
            await heard.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    with serving(lambda _: Answer(text=ENDLESS)) as server:
        asyncio.run(run(server.url))
    assert [message.metadata for message in session.messages()] == [{}, {"partial": True}]


@pytest.mark.parametrize(
    ("speaker", "theirs"), [(Anthropic(), anthropic.AnthropicError), (Chat(), openai.OpenAIError), (Gemini(), object)]
)
def test_what_cannot_fit_is_our_error_and_is_not_tried_again(speaker, theirs):
    """It names the part; the client's retries and its 'connection error' would hide it."""
    session = small(speaker, budget=10)
    with (
        serving() as server,
        wrapped(speaker, server, session) as client,
        pytest.raises(BudgetError, match="system prompt") as caught,
    ):
        ask(speaker, client, "hello")
    assert isinstance(caught.value, theirs)
    assert caught.value.parts["system prompt"] > 0
    assert server.seen == []


def test_a_named_session_is_opened_for_the_model_of_the_first_call(tmp_path, monkeypatch):
    """In the default place; the next program finds it there."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".windowsill").mkdir()
    with serving() as server, wrapped(Chat(), server, "support-42") as client:
        ask(Chat(), client, "hello")
    with Session.open("support-42") as session:
        assert session.settings.model == "gpt-5"
        assert len(list(session.messages())) == 2


def test_a_model_nobody_knows_is_an_error_that_says_so(tmp_path, monkeypatch):
    """When the session is only named, nothing else states a window."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".windowsill").mkdir()
    with serving() as server, openai.OpenAI(base_url=server.url + "/v1", api_key="none") as plain:
        client = windowsill.wrap(plain, "s")
        with pytest.raises(UnknownModelError, match="my-deployment"):
            client.chat.completions.create(model="my-deployment", messages=[Chat().user("hi")])


def test_the_client_itself_stays_as_it_was():
    """Its own calls go to the provider as they are, and into no session."""
    session = small(Chat())
    with serving() as server, Chat().client(server.url, later=False) as plain:
        windowsill.wrap(plain, session)
        ask(Chat(), plain, "hello")
    assert list(session.messages()) == []


@pytest.mark.parametrize("speaker", [Anthropic(), Chat(), Gemini()], ids=lambda each: type(each).__name__)
def test_a_wrapped_client_outlives_the_one_it_was_made_from(speaker):
    """`client = wrap(make_client(), session)` is all that a program keeps."""
    session = small(speaker)
    with serving() as server, wrapped(speaker, server, session) as client:
        gc.collect()
        ask(speaker, client, "hello")
    assert len(list(session.messages())) == 2


def test_other_calls_pass_as_they_are():
    """Counting, batches: nothing is recorded, and the answer is the provider's."""
    session = small(Anthropic())
    with serving() as server, wrapped(Anthropic(), server, session) as client:
        counted = client.messages.count_tokens(model="claude-sonnet-4-6", messages=[Anthropic().user("hello there")])
        with pytest.raises(anthropic.NotFoundError):
            client.messages.batches.cancel("batch-1")
    assert counted.input_tokens > 0
    assert list(session.messages()) == []


def test_raw_responses_and_further_options_work():
    """What the SDK offers besides: raw responses, extra headers, time-outs, another limit of retries."""
    session = small(Chat())
    with serving() as server, wrapped(Chat(), server, session) as client:
        raw = client.with_options(timeout=9, max_retries=1).chat.completions.with_raw_response.create(
            model="gpt-5", messages=[Chat().user("hi")], extra_headers={"x-mine": "1"}
        )
    assert raw.parse().choices[0].message.content.startswith("answer")
    assert raw.headers["content-type"] == "application/json"
    assert len(list(session.messages())) == 2


def test_googles_chats_and_automatic_calls_go_through_the_session():
    """The SDK keeps the list, calls the functions and sends everything again."""
    session = small(Gemini())
    answers = iter([Answer(calls=(Call("add", {"one": 1, "other": 2}),)), Answer(text="3"), Answer(text="bye")])

    def add(one: int, other: int) -> int:
        """Add two numbers."""
        return one + other

    with serving(lambda _: next(answers)) as server, wrapped(Gemini(), server, session) as client:
        chat = client.chats.create(model="gemini-2.5-pro", config={"tools": [add]})
        assert chat.send_message("What is 1 + 2?").text == "3"
        assert chat.send_message("thanks").text == "bye"
    assert [(each.tokens, each.problems) for each in server.refused] == []
    assert [message.role for message in session.messages()] == [
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
        "assistant",
    ]


def test_a_response_id_is_enough():
    """`previous_response_id`: the provider need not keep anything, and an older one makes a branch."""
    session = small(Responses())
    with serving() as server, wrapped(Responses(), server, session) as client:
        first = client.responses.create(model="gpt-5", input="one")
        client.responses.create(model="gpt-5", input="two", previous_response_id=first.id)
        client.responses.create(model="gpt-5", input="another two", previous_response_id=first.id)
    assert [message.text for message in session.messages() if message.role == "user"] == ["one", "another two"]
    assert all("previous_response_id" not in each.body for each in server.seen)
    assert len(server.seen[2].body["input"]) == 3


def test_a_history_at_the_provider_is_left_to_it(caplog):
    """An id from before the session began: the request goes as it came, and that is said."""
    session = small(Responses())
    with serving() as server, Responses().client(server.url, later=False) as plain:
        before = plain.responses.create(model="gpt-5", input="one")
        with caplog.at_level(logging.WARNING, logger="windowsill"):
            client = windowsill.wrap(plain, session)
            client.responses.create(model="gpt-5", input="two", previous_response_id=before.id)
    assert server.seen[1].body["previous_response_id"] == before.id
    assert "passed on as it came" in caplog.text


def test_calls_at_the_same_time_each_get_their_own_answer():
    """Threads share a wrapped client: four conversations become four sessions, none mixed with another."""
    session = small(Chat(), budget=None)
    speaker = Chat()

    def respond(body):
        first = next(each["content"] for each in body["messages"] if each["role"] == "user")
        return Answer(text=f"about {first}")

    with serving(respond) as server, wrapped(speaker, server, session) as client:
        failures = []

        def talk(topic):
            messages = [speaker.user(topic)]
            for _ in range(10):
                reply = asyncio.run(speaker.ask(client, messages, stream=False))
                if speaker.text(reply) != f"about {topic}":
                    failures.append((topic, speaker.text(reply)))
                messages += [*speaker.said(reply), speaker.user("more")]

        threads = [threading.Thread(target=talk, args=(topic,)) for topic in ("tea", "rain", "trains", "bread")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []
    store = session.journal.store
    found = [Session.open(each.id, store=store) for each in store.sessions()]
    assert [len(list(each.messages())) for each in found] == [20, 20, 20, 20]
    assert [each.verify() for each in found] == [[]] * 4


def test_an_answer_that_cannot_be_recorded_is_not_lost_to_the_caller(monkeypatch, caplog):
    """The disk is full: the caller has its answer, and is told."""
    session = small(Chat())
    with serving() as server, wrapped(Chat(), server, session) as client:

        def full(*_, **__):
            raise StoreError("the disk is full", remedy="make room")

        monkeypatch.setattr(session, "add", full)
        reply = client.chat.completions.create(model="gpt-5", messages=[Chat().user("hi")])
    assert reply.choices[0].message.content.startswith("answer")
    assert "the disk is full" in caplog.text


def test_a_request_that_cannot_be_recorded_goes_through_if_it_is_whole(monkeypatch, caplog):
    """A failing disk costs the session a turn, not the user; one that needs the session's past fails clearly."""
    session = small(Chat())
    with (
        serving() as server,
        wrapped(Chat(), server, session) as client,
        wrapped(Chat(), server, session, resends=False) as brief,
    ):

        def full(*_, **__):
            raise StoreError("the disk is full", remedy="make room")

        messages = [Chat().user("hi"), {"role": "assistant", "content": "hello"}, Chat().user("go on")]
        client.chat.completions.create(model="gpt-5", messages=messages)
        monkeypatch.setattr(client_history(session), "resume", full)
        client.chat.completions.create(model="gpt-5", messages=messages)
        with pytest.raises(StoreError, match="the disk is full"):
            brief.chat.completions.create(model="gpt-5", messages=[Chat().user("and?")])
    assert server.seen[1].body["messages"] == messages
    assert "was not recorded" in caplog.text


def test_compressed_answers_are_read():
    """The server packs; the caller and the session read the same words."""
    session = small(Chat())
    body = b'{"id":"c","object":"chat.completion","created":1,"model":"gpt-5","choices":[{"index":0,'
    body += b'"finish_reason":"stop","message":{"role":"assistant","content":"packed"}}]}'

    def answer(_):
        import gzip  # noqa: PLC0415 - needed here only

        packed = gzip.compress(body)
        headers = {"content-type": "application/json", "content-encoding": "gzip"}
        return httpx2.Response(200, headers=headers, content=packed)

    inner = httpx2.Client(transport=httpx2.MockTransport(answer))
    with windowsill.wrap(openai.OpenAI(api_key="none", http_client=inner), session) as client:
        reply = client.chat.completions.create(model="gpt-5", messages=[Chat().user("hi")])
    assert reply.choices[0].message.content == "packed"
    assert [message.text for message in session.messages()] == ["hi", "packed"]


@pytest.mark.parametrize("thing", [object(), "client", None])
def test_what_is_no_client_is_refused(thing):
    """With the remedy."""
    with pytest.raises(InputError, match=r"cannot be wrapped.*anthropic, openai or google-genai"):
        windowsill.wrap(thing, small(Chat()))


def test_a_client_that_signs_its_requests_is_refused():
    """Another body would not fit its signature."""
    client = anthropic.AnthropicBedrock(aws_region="eu-west-1", aws_access_key="a", aws_secret_key="b")
    with client, pytest.raises(InputError, match="AnthropicBedrock"):
        windowsill.wrap(client, small(Anthropic()))


def test_a_google_client_that_cannot_be_taken_apart_is_refused():
    """A version whose inside is another."""
    client = genai.Client(api_key="none")
    client._api_client._async_httpx_client = None
    with closing(client), pytest.raises(InputError, match="google-genai 3"):
        windowsill.wrap(client, small(Gemini()))


@pytest.mark.parametrize("wrong", [{"stratgy": "economy"}, {"budget": -1}, {"high": 5.5}, {"strategy": "nope"}])
def test_a_setting_that_is_wrong_is_refused_when_the_client_is_wrapped(wrong):
    """Later it could only be logged: the requests would go out as they came, and nothing would be recorded."""
    with pytest.raises((SettingError, NotFoundError)):
        windowsill.wrap(openai.OpenAI(api_key="none"), store=":memory:", **wrong)


@pytest.mark.parametrize("id", [5, "", None])
def test_a_conversation_has_a_name(id):
    """A number or nothing would leave its calls out of every session."""
    with pytest.raises(InputError, match="the session's name"), windowsill.conversation(id):
        pass
