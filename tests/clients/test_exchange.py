"""One call of a client, without a network: what goes out instead, what is recorded, and what happens at the edges."""

import json
import logging

import pytest

from support.conversations import call, result, text_block, thinking, tool, use
from support.sessions import TASK, opened
from support.stores import Counting
from windowsill import Session, StoreError, providers
from windowsill.clients.conversations import Conversations
from windowsill.clients.exchange import Exchange, Route, route
from windowsill.providers.openai_chat.stream import OpenAIStream
from windowsill.session.client_history import client_history
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.unit

CHAT, CLAUDE, RESPONSES = Route("openai"), Route("anthropic"), Route("responses")
MODELS = {"openai": "gpt-5", "anthropic": "claude-sonnet-4-5", "responses": "gpt-5"}


def user(text):
    return {"role": "user", "content": text}


def says(text):
    return {"role": "assistant", "content": text}


def chat(text="ok", **message):
    """An answer of OpenAI's chat."""
    return {"choices": [{"index": 0, "message": {"role": "assistant", "content": text, **message}}]}


def piece(text=None, index=0, finish=None):
    """A piece of a streamed one."""
    delta = {} if text is None else {"content": text}
    return {"choices": [{"index": index, "delta": delta, "finish_reason": finish}]}


def claude(*blocks):
    """An answer of Anthropic's."""
    return {"type": "message", "role": "assistant", "content": list(blocks), "stop_reason": "end_turn"}


def events(*values):
    """Values as a stream of events."""
    bodies = [value if isinstance(value, bytes) else json.dumps(value).encode() for value in values]
    return b"".join(b"data: " + body + b"\n\n" for body in bodies)


def small(store=None, **settings):
    return opened(store, **{"model": None, "budget": 100_000, **settings})


def send(session, messages, answer=None, *, to=CHAT, resends=True, **fields):
    """One call and its answer; what went out."""
    under = "input" if to.format == "responses" else "messages"
    body = {"model": MODELS[to.format], under: messages, **fields}
    if to.format == "anthropic":
        body["max_tokens"] = 99
    exchange = Exchange(Conversations(session, resends=resends), to, json.dumps(body).encode())
    sent = json.loads(exchange.request())
    if isinstance(answer, bytes):
        listen(exchange, answer)
    elif answer is not None:
        exchange.answer(200, json.dumps(answer).encode())
    return sent


def listen(exchange, *chunks):
    exchange.begin_stream()
    for chunk in chunks:
        exchange.feed(chunk)
    exchange.close()


def words(sent):
    """Return what a request says, message by message."""
    return [message["content"] for message in sent["messages"]]


def texts(session):
    return [message.text for message in session.messages()]


def written(session):
    """Return how many messages the session holds on all its branches."""
    journal = session.journal
    return sum(1 for _ in journal.walk([(1, session.journal.version)], kinds=("message",)))


# Which requests are model calls


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/v1/messages", CLAUDE),
        ("/proxy/eu/v1/messages/", CLAUDE),
        ("/v1/chat/completions", CHAT),
        ("/openai/deployments/my-gpt/chat/completions", CHAT),
        ("/v1/responses", RESPONSES),
        ("/v1beta/models/gemini-2.5-pro:generateContent", Route("gemini", "gemini-2.5-pro")),
        ("/v1beta/models/gemini-2.5-pro:streamGenerateContent", Route("gemini", "gemini-2.5-pro", streamed=True)),
        (
            "/v1/projects/p/locations/l/publishers/google/models/gemini-2.5-pro:generateContent",
            Route("gemini", "gemini-2.5-pro"),
        ),
        (
            "/v1/projects/p/locations/l/publishers/anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict",
            Route("anthropic", "claude-sonnet-4-5", streamed=True),
        ),
    ],
)
def test_model_calls_are_known_by_their_address(path, found):
    """Behind gateways, deployments and clouds."""
    assert route(path) == found


@pytest.mark.parametrize(
    "path",
    [
        "/v1/messages/count_tokens",
        "/v1/messages/batches",
        "/v1/responses/compact",
        "/v1/responses/resp_1/cancel",
        "/v1/responses/input_tokens",
        "/v1/chat/completions/chatcmpl-1",
        "/v1beta/models/gemini-2.5-pro:countTokens",
        "/v1beta/models/gemini-2.5-pro:embedContent",
        "/v1/files",
        "/v1/threads/thread_1/messages",
    ],
)
def test_everything_else_is_none(path):
    """Counting, batches, files, a provider's own threads."""
    assert route(path) is None


# Answers of every kind


def test_of_several_choices_the_first_is_recorded():
    """A client that goes on with another one has its own way in the tree."""
    session = small()
    several = chat("first")
    several["choices"].append({"index": 1, "message": says("second")})
    send(session, [user("hi")], several, n=2)
    assert texts(session) == ["hi", "first"]
    assert words(send(session, [user("hi"), says("second"), user("go on")])) == ["hi", "second", "go on"]


def test_of_several_streamed_choices_the_first_is_recorded():
    """Their pieces come in any order."""
    session = small()
    ends = (piece(None, 1, "stop"), piece(None, 0, "stop"), b"[DONE]")
    send(session, [user("hi")], events(piece("se", 1), piece("fi"), piece("cond", 1), piece("rst"), *ends), n=2)
    assert texts(session) == ["hi", "first"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"<html>log in first</html>",
        b'{"error": {"message": "overloaded"}}',
        b'{"choices": []}',
        b'{"choices": [{"index": 0, "message": null}]}',
        b'{"choices": [{"index": 0, "mess',
        b"\xff\xfe",
    ],
)
def test_a_success_that_holds_no_answer_is_told_and_keeps_the_question(body, caplog):
    """Gateways answer 200 to everything."""
    session = small()
    exchange = Exchange(session, CHAT, json.dumps({"model": "gpt-5", "messages": [user("hi")]}).encode())
    exchange.request()
    exchange.answer(200, body)
    assert texts(session) == ["hi"]
    assert "was not recorded" in caplog.text


@pytest.mark.parametrize("status", [400, 401, 404, 413, 429, 500, 502, 529])
@pytest.mark.parametrize("body", [b"", b"<html>502 Bad Gateway</html>", b'{"error": {"message": "no"}}'])
def test_an_error_is_neither_recorded_nor_tried_again(status, body):
    """Only an overflow is."""
    session = small()
    exchange = Exchange(session, CHAT, json.dumps({"model": "gpt-5", "messages": [user("hi")]}).encode())
    exchange.request()
    assert exchange.retry(status, body) is None
    exchange.answer(status, body)
    assert texts(session) == ["hi"]


@pytest.mark.parametrize(
    "junk",
    [
        b'{"choices": null}',
        b'{"choices": [null]}',
        b'{"choices": [{"index": 0, "delta": null}]}',
        b'{"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": null}]}}]}',
        b'{"object": "ping"}',
    ],
)
def test_an_odd_event_costs_nothing_of_the_answer(junk):
    """Azure, OpenRouter and others put events of their own between."""
    session = small()
    send(session, [user("hi")], events(piece("hel"), junk, piece("lo"), piece(None, 0, "stop"), b"[DONE]"))
    assert texts(session) == ["hi", "hello"]
    assert [message.metadata for message in session.messages()] == [{}, {}]


def test_an_error_inside_a_stream_leaves_what_came_before_as_partial():
    """A 200 says little once the provider is overloaded."""
    session = small()
    send(session, [user("hi")], events(piece("hel"), {"error": {"message": "overloaded", "type": "server_error"}}))
    assert [(message.text, message.metadata) for message in session.messages()] == [
        ("hi", {}),
        ("hel", {"partial": True}),
    ]


def test_an_error_before_the_first_word_records_nothing():
    """There is no answer, not an empty one."""
    session = small()
    send(session, [user("hi")], events({"error": {"message": "overloaded", "type": "server_error"}}))
    assert texts(session) == ["hi"]


def test_a_stream_that_is_closed_twice_is_recorded_once():
    """At its end, and again when the client lets go of it."""
    session = small()
    exchange = Exchange(session, CHAT, json.dumps({"model": "gpt-5", "messages": [user("hi")]}).encode())
    exchange.request()
    exchange.begin_stream()
    exchange.feed(events(piece("ok"), piece(None, 0, "stop"), b"[DONE]"))
    exchange.close()
    exchange.close()
    assert written(session) == 2


def test_events_are_kept_as_they_pass_and_read_together(monkeypatch):
    """Reading each event when it comes would slow the caller down; one longer than what is kept is read in parts."""
    reads = []
    feed = OpenAIStream.feed
    monkeypatch.setattr(OpenAIStream, "feed", lambda stream, chunk: reads.append(len(chunk)) or feed(stream, chunk))
    session = small()
    exchange = Exchange(session, CHAT, json.dumps({"model": "gpt-5", "messages": [user("hi")]}).encode())
    exchange.request()
    said = [f"word {number} " + "x" * 1_000 for number in range(2_500)]
    listen(exchange, *[events(piece(each)) for each in said], events(piece(None, 0, "stop"), b"[DONE]"))
    assert len(reads) == 1 + sum(reads) // (1 << 20)
    assert texts(session)[-1] == "".join(said)


def test_an_event_too_large_to_record_still_reaches_the_caller(caplog):
    """Feeding must never raise: the bytes are the caller's."""
    session = small()
    exchange = Exchange(session, CHAT, json.dumps({"model": "gpt-5", "messages": [user("hi")]}).encode())
    exchange.request()
    with caplog.at_level(logging.WARNING, logger="windowsill"):
        listen(exchange, events(piece("x" * 33 * 2**20)), events(piece(None, 0, "stop"), b"[DONE]"))
    assert "was not recorded" in caplog.text


@pytest.mark.parametrize(
    "kind",
    [
        "text/event-stream",
        "text/event-stream; charset=utf-8",
        "Text/Event-Stream",
        "application/json",
        "application/octet-stream",
        "",
    ],
)
def test_an_answer_to_a_request_for_a_stream_is_a_stream(kind):
    """Whatever a gateway calls it: else the caller waits for the end, and nothing is recorded."""
    body = {"model": "gpt-5", "messages": [user("hi")], "stream": True}
    exchange = Exchange(small(), CHAT, json.dumps(body).encode())
    exchange.request()
    assert exchange.streams(200, kind)


@pytest.mark.parametrize(
    ("to", "limit"),
    [
        (CHAT, {"max_tokens": 2_500}),
        (CHAT, {"max_completion_tokens": 2_500}),
        (RESPONSES, {"max_output_tokens": 2_500}),
        (Route("gemini", "gemini-2.5-pro"), {"generationConfig": {"maxOutputTokens": 2_500}}),
    ],
)
def test_room_is_left_for_the_answer_that_the_request_allows(to, limit):
    """However the field is called: a window is for both."""
    sizes = []
    for fields in ({}, limit):
        session = small(model="gpt-5", window=4_000, budget=None)
        texts = ["hi", *("word " * 200 for _ in range(10)), "and?"]
        key = {"openai": "messages", "responses": "input", "gemini": "contents"}[to.format]
        told = [{"role": "user", "parts": [{"text": text}]} if key == "contents" else user(text) for text in texts]
        exchange = Exchange(session, to, json.dumps({"model": "gpt-5", key: told, **fields}).encode())
        exchange.request()
        sizes.append(exchange._resumed.payload.tokens)
    assert sizes[1] <= 1_500 < sizes[0]


@pytest.mark.parametrize("limit", [0, -1, None, "many", 1_000_000])
def test_a_limit_that_is_none_leaves_the_window_as_it_is(limit):
    """The provider says what it thinks of it."""
    session = small(model="gpt-5", window=4_000, budget=None)
    sent = send(session, [user("word " * 200) for _ in range(10)], max_tokens=limit)
    assert sent["max_tokens"] == limit
    assert len(sent["messages"]) == 10


# Our own failures


class Failing(MemoryStore):
    """A store that does not remember what was learned."""

    def remember(self, *_):
        raise StoreError("the disk is full", remedy="make room")


TOO_LONG = "This model's maximum context length is 2000 tokens, however you requested 3000 tokens"


def test_a_store_that_fails_after_an_overflow_does_not_hide_what_the_provider_said():
    """The provider's error is the caller's, as if we were not there."""
    session = small(Failing(), model="gpt-5", budget=None)
    body = {"model": "gpt-5", "messages": [user("hi"), says("ho"), user("word " * 3_000)]}
    exchange = Exchange(session, CHAT, json.dumps(body).encode())
    exchange.request()
    exchange.retry(400, TOO_LONG.encode())


def test_a_store_that_fails_after_a_streamed_overflow_does_not_break_the_stream():
    """The caller reads the provider's error event."""
    session = small(Failing(), model="gpt-5", budget=None)
    send(session, [user("hi")], events({"error": {"message": TOO_LONG, "code": "context_length_exceeded"}}))


def test_a_response_id_that_is_none_goes_through_as_it_came():
    """The provider says best what is wrong with it."""
    sent = send(small(), "hi", to=RESPONSES, previous_response_id=5)
    assert sent["previous_response_id"] == 5


@pytest.mark.parametrize("depth", [600, 20_000])
def test_arguments_nested_without_end_do_no_harm(depth):
    """A model may write anything."""
    session = small()
    deep = "[" * depth + "]" * depth
    asks = {"role": "assistant", "content": None, "tool_calls": [call("c1", arguments=deep)]}
    for _ in range(2):
        sent = send(session, [user("hi"), asks, tool("c1")], chat())
    assert deep in sent["messages"][1]["tool_calls"][0]["function"]["arguments"]
    assert written(session) == 5  # the question's three, and an answer to each call


def test_a_list_the_session_cannot_take_in_is_passed_on(caplog):
    """A request that nobody can read is the provider's to refuse."""
    sent = send(small(), [{"role": "wizard", "content": "hi"}])
    assert words(sent) == ["hi"]
    assert "passed on as it came" in caplog.text


@pytest.mark.parametrize("status", [400, 413, 422])
def test_an_overflow_is_tried_again_once_with_less(status):
    """Whatever status a provider gives it."""
    session = small(model="gpt-5", budget=None)
    messages = [user("hi"), *(user("word " * 300) for _ in range(10)), user("and?")]
    exchange = Exchange(session, CHAT, json.dumps({"model": "gpt-5", "messages": messages}).encode())
    first = exchange.request()
    second = exchange.retry(status, TOO_LONG.encode())
    assert len(second) < 0.8 * len(first)
    assert exchange.retry(status, TOO_LONG.encode()) is None
    assert session.model.window == 2_000


def test_an_overflow_inside_a_stream_is_learned_from():
    """It is too late for this answer; the next request fits."""
    session = small(model="gpt-5", budget=None)
    send(session, [user("hi")], events({"error": {"message": TOO_LONG, "code": "context_length_exceeded"}}))
    assert session.model.window == 2_000


def test_a_conversation_at_the_provider_is_left_to_it(caplog):
    """Neither the question nor the answer belongs to the session."""
    session = small()
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]}
    answer = {"id": "resp_1", "object": "response", "output": [item]}
    sent = send(session, "hi", answer, to=RESPONSES, conversation="conv_1")
    assert sent == {"model": "gpt-5", "input": "hi", "conversation": "conv_1"}
    assert written(session) == 0
    assert "a conversation at the provider" in caplog.text


def test_the_stream_of_a_request_that_was_passed_on_is_not_recorded():
    """Nobody knows where it would belong."""
    session = small()
    send(session, [{"role": "wizard", "content": "hi"}], events(piece("ok"), piece(None, 0, "stop"), b"[DONE]"))
    assert written(session) == 0


class Full(MemoryStore):
    """A store that takes nothing more once it is full."""

    full = False

    def append(self, *entries, **more):
        if self.full:
            raise StoreError("the disk is full", remedy="make room")
        super().append(*entries, **more)


def test_a_client_that_sends_everything_may_begin_another_conversation_on_a_full_disk():
    """Every list stands alone."""
    store = Full()
    session = small(store)
    send(session, [user("one")], chat())
    store.full = True
    assert words(send(session, [user("another")])) == ["another"]


def test_a_client_that_sends_only_what_is_new_is_told_that_the_disk_is_full():
    """Its message means nothing by itself."""
    store = Full()
    session = small(store)
    send(session, [user("one")], chat(), resends=False)
    store.full = True
    with pytest.raises(StoreError, match="the disk is full"):
        send(session, [user("and?")], resends=False)


class Broken(MemoryStore):
    """A store with a mistake in it, which no error of ours announces."""

    broken = False

    def append(self, *entries, **more):
        if self.broken:
            raise OverflowError("int too big to convert")
        super().append(*entries, **more)


STREAMED = events(piece("two"), piece(None, 0, "stop"), b"[DONE]")


@pytest.mark.parametrize("answer", [chat("two"), STREAMED], ids=["whole", "streamed"])
def test_an_answer_reaches_the_caller_whatever_fails_while_it_is_recorded(answer, caplog):
    """The failure is logged with its place, and the next call has the answer from the client's list."""
    store = Broken()
    session = small(store)
    exchange = Exchange(session, CHAT, json.dumps({"model": "gpt-5", "messages": [user("one")]}).encode())
    exchange.request()
    store.broken = True
    if answer is STREAMED:
        listen(exchange, answer)
    else:
        exchange.answer(200, json.dumps(answer).encode())
    (record,) = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert "not recorded: OverflowError: int too big" in record.getMessage()
    assert record.exc_info
    store.broken = False
    assert words(send(session, [user("one"), says("two"), user("three")], chat())) == ["one", "two", "three"]
    assert texts(session) == ["one", "two", "three", "ok"]


def test_a_whole_list_goes_out_whatever_fails_while_it_is_taken_in():
    """And the call after it works again."""
    store = Broken()
    session = small(store)
    send(session, [user("one")], chat("two"))
    store.broken = True
    talk = [user("one"), says("two"), user("three")]
    assert words(send(session, talk, chat("four"))) == ["one", "two", "three"]
    store.broken = False
    assert len(words(send(session, [*talk, says("four"), user("five")], chat()))) == 5
    assert len(texts(session)) == 6


def test_a_window_that_cannot_be_learned_does_not_hide_the_providers_error():
    """Whatever fails between the two."""
    store = Broken()
    session = small(store, model="gpt-5", budget=None)
    messages = [user("hi"), *(user("word " * 300) for _ in range(10)), user("and?")]
    exchange = Exchange(session, CHAT, json.dumps({"model": "gpt-5", "messages": messages}).encode())
    exchange.request()
    store.broken = True
    assert exchange.retry(400, TOO_LONG.encode()) is None


@pytest.mark.parametrize("recorded", [True, False], ids=["recorded", "not recorded"])
@pytest.mark.parametrize("known", [True, False], ids=["later turn", "first turn"])
def test_reasoning_in_the_list_is_kept_whether_or_not_its_answer_was_recorded(recorded, known):
    """A stream that broke off, or a call that was passed on: the client has the items, and gives them back."""
    session = small(budget=None, model="gpt-5")
    start = [{"role": "user", "content": "read a.py"}]
    if known:
        item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]}
        send(session, start, {"id": "resp_0", "object": "response", "output": [item]}, to=RESPONSES)
        start += [item, {"role": "user", "content": "again"}]
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
    asks = {"type": "function_call", "call_id": "c1", "name": "read", "arguments": "{}"}
    answer = {"id": "resp_1", "object": "response", "output": [thought, asks]}
    send(session, start, answer if recorded else None, to=RESPONSES)
    outcome = {"type": "function_call_output", "call_id": "c1", "output": "line"}
    for _ in range(2):
        sent = send(session, [*start, thought, asks, outcome], to=RESPONSES)
        assert sent["input"][-3:] == [thought, asks, outcome]
    assert written(session) == len(start) + 3


# Several at once


class Racing(MemoryStore):
    """A store in which another process is faster, once."""

    meanwhile = None

    def append(self, *entries, **more):
        if self.meanwhile is not None:
            step, self.meanwhile = self.meanwhile, None
            step()
        super().append(*entries, **more)


def test_another_process_does_not_get_into_a_request():
    """Two programs have the same session open, each with its own conversation."""
    store = Racing()
    ours, theirs = small(store), small(store)
    send(ours, [user("tea")], chat("about tea"))
    store.meanwhile = lambda: send(theirs, [user("rain")])
    sent = send(ours, [user("tea"), says("about tea"), user("more tea")])
    assert words(sent) == ["tea", "about tea", "more tea"]


def test_an_answer_stays_with_its_question_when_another_process_is_faster():
    """The two meet between going to the question and writing the answer."""
    store = Racing()
    ours, theirs = small(store), small(store)
    body = json.dumps({"model": "gpt-5", "messages": [user("tea")]}).encode()
    exchange = Exchange(ours, CHAT, body)
    exchange.request()
    store.meanwhile = lambda: send(theirs, [user("rain")])
    exchange.answer(200, json.dumps(chat("about tea")).encode())
    assert texts(ours) == ["tea", "about tea"]


def test_a_conversation_that_went_on_in_another_process_is_known():
    """One after the other: what the first process does not remember is on disk."""
    store = MemoryStore()
    ours, theirs = small(store), small(store)
    send(ours, [user("one")], chat("two"))
    send(theirs, [user("one"), says("two"), user("three")], chat("four"))
    sent = send(ours, [user("one"), says("two"), user("three"), says("four"), user("five")])
    assert words(sent) == ["one", "two", "three", "four", "five"]
    assert (written(ours), len(ours.branches)) == (5, 1)
    assert len(send(theirs, [user("six")], resends=False)["messages"]) == 6


def test_calls_at_once_are_apart():
    """Four tasks gathered: none of them sees another's question."""
    session = small()
    bodies = [json.dumps({"model": "gpt-5", "messages": [user(f"question {each}")]}).encode() for each in range(4)]
    exchanges = [Exchange(session, CHAT, body) for body in bodies]
    sent = [json.loads(exchange.request()) for exchange in exchanges]
    for number, exchange in reversed(list(enumerate(exchanges))):
        exchange.answer(200, json.dumps(chat(f"answer {number}")).encode())
    assert [words(each) for each in sent] == [[f"question {number}"] for number in range(4)]
    for number in range(4):
        went = send(session, [user(f"question {number}"), says(f"answer {number}"), user("more")])
        assert words(went)[:2] == [f"question {number}", f"answer {number}"]
    store = session.journal.store
    assert [written(Session.open(each.id, store=store)) for each in store.sessions()] == [3] * 4


def test_calls_at_once_do_not_teach_a_wrong_count():
    """The usage of one request says nothing about another; a wrong ratio is kept for all later sessions."""
    session = Session.open("s", model="claude-sonnet-4-5", store=MemoryStore())
    long, short = [user("alpha " * 9_000)], [user("beta gamma " * 1_500)]
    first = counted(session, long)
    for _ in range(20):
        going = [(messages, client_history(session).resume(request(messages))) for messages in (long, short)]
        for messages, resumed in going:
            usage = {"input_tokens": 9_900 if messages is long else 3_300, "output_tokens": 1}
            session.add({**claude(text_block("ok")), "usage": usage}, after=resumed.last)
    assert counted(session, long) == pytest.approx(first, rel=0.2)


def request(messages):
    return providers.read_request(messages, format="anthropic")


def counted(session, messages):
    return client_history(session).resume(request(messages)).payload.tokens


def test_an_overflow_is_learned_for_the_model_that_said_it():
    """Two models share a session; the error of one comes while the other is asked."""
    session = small(model="gpt-5", budget=None)
    body = {"model": "gpt-5", "messages": [user("hi"), user("word " * 3_000)]}
    exchange = Exchange(session, CHAT, json.dumps(body).encode())
    exchange.request()
    send(session, body["messages"], to=CLAUDE)
    window = session.model.window
    exchange.retry(400, TOO_LONG.encode())
    send(session, body["messages"], to=CLAUDE)
    assert session.model.name == "claude-sonnet-4-5"
    assert session.model.window == window


# Lists as clients really keep them


def test_a_client_that_gives_calls_its_own_ids_keeps_its_results():
    """Frameworks rename ids to what another provider takes; the model must see what the tool said."""
    session = small()
    send(session, [user("hi")], chat(None, tool_calls=[call("call_from_the_provider")]))
    asks = {"role": "assistant", "content": None, "tool_calls": [call("abc123def")]}
    sent = send(session, [user("hi"), asks, tool("abc123def", "what the file says")])
    assert words(sent)[-1] == "what the file says"


@pytest.mark.parametrize(
    ("to", "answer", "echo"),
    [
        (CHAT, chat(""), says("")),
        (CLAUDE, claude(thinking()), {"role": "assistant", "content": [thinking()]}),
    ],
    ids=["empty", "only reasoning"],
)
def test_an_answer_without_words_is_in_the_history_once(to, answer, echo):
    """Models do say nothing, and clients send it back."""
    session = small()
    send(session, [user("hi")], answer, to=to)
    send(session, [user("hi"), echo, user("well?")], to=to)
    assert [message.role for message in session.messages()] == ["user", "assistant", "user"]


def test_a_prefilled_answer_goes_out_last_and_its_continuation_is_recorded():
    """Anthropic's clients begin the answer themselves."""
    session = small()
    sent = send(session, [user("JSON!"), says("{")], claude(text_block('"a": 1}')), to=CLAUDE)
    assert sent["messages"][-1] == says("{")
    later = [user("JSON!"), says('{"a": 1}'), user("again"), says("{")]
    assert words(send(session, later, to=CLAUDE)) == ["JSON!", '{"a": 1}', "again", "{"]


def test_a_prefilled_answer_does_not_hide_the_past_from_a_client_that_sends_only_what_is_new():
    """Nothing was answered in this list yet."""
    session = small()
    for question in ("one", "two"):
        send(session, [user(question)], claude(text_block("ok")), to=CLAUDE, resends=False)
    assert len(send(session, [user("three"), says("{")], to=CLAUDE, resends=False)["messages"]) == 6


def test_a_list_of_questions_that_begins_as_the_conversation_did_is_the_whole_of_it():
    """No answer came yet, and the user says more."""
    session = small()
    send(session, [user("one")])
    assert words(send(session, [user("one"), user("two")])) == ["one", "two"]
    assert texts(session) == ["one", "two"]


def test_instructions_in_the_middle_stay_in_their_place():
    """System and developer messages, several at the start and one later."""
    session = small()
    start = [{"role": "developer", "content": "be brief"}, {"role": "system", "content": "be kind"}]
    messages = [*start, user("a"), says("b"), {"role": "system", "content": "be quick"}, user("c")]
    send(session, messages, chat("d"))
    sent = send(session, [*messages, says("d"), user("e")])
    assert words(sent) == ["be brief\n\nbe kind", "a", "b", "be quick", "c", "d", "e"]
    assert len(session.branches) == 1


def test_results_of_parallel_calls_may_come_in_any_order():
    """They are recorded as they came, and each stays with its call."""
    session = small()
    asks = {"role": "assistant", "content": None, "tool_calls": [call("c1"), call("c2")]}
    send(session, [user("hi")], chat(None, tool_calls=asks["tool_calls"]))
    sent = send(session, [user("hi"), asks, tool("c2", "two"), tool("c1", "one")])
    said = {message["tool_call_id"]: message["content"] for message in sent["messages"][2:]}
    assert said == {"c1": "one", "c2": "two"}


@pytest.mark.parametrize(
    "results",
    [
        [result("c1", "yes", is_error=True), result("c2", "no")],
        [result("c2", "yes"), result("c1", "no")],
    ],
    ids=["an error now", "of the other call"],
)
def test_another_outcome_of_a_call_is_an_edit(results):
    """Whether it failed, and which call it belongs to, is part of what a result says."""
    session = small()
    asks = {"role": "assistant", "content": [use("c1"), use("c2", "write")]}
    send(session, [user("hi"), asks, {"role": "user", "content": [result("c1", "yes"), result("c2", "no")]}], to=CLAUDE)
    edited = {"role": "user", "content": results}
    assert send(session, [user("hi"), asks, edited], to=CLAUDE)["messages"][-1] == edited


def test_a_message_that_the_user_deleted_is_not_sent_again():
    """There was room enough: it was not dropped to save any."""
    session = small()
    messages = [user("hello"), says("hi"), user("my password is hunter2"), says("noted"), user("what is the weather?")]
    send(session, messages, chat("fine"))
    sent = send(session, [*messages[:2], messages[4], says("fine"), user("and tomorrow?")])
    assert "hunter2" not in json.dumps(sent)


def test_cache_markers_that_move_stay_four():
    """Clients mark the last message of each request, and take the mark from the one before."""
    session = small()
    messages = []
    for number in range(8):
        marked = {**text_block(f"question {number}"), "cache_control": {"type": "ephemeral"}}
        answer = claude(text_block("ok"))
        sent = send(session, [*messages, {"role": "user", "content": [marked]}], answer, to=CLAUDE)
        messages += [{"role": "user", "content": [text_block(f"question {number}")]}, says("ok")]
        assert providers.validate(sent, "anthropic") == []


def reminded(session, turns, remind):
    """An agent whose client shapes its list anew each turn; the share of each request that began as the one before."""
    whole, before, same, total = [user(TASK)], [], 0, 0
    for number in range(turns):
        asks = [text_block(f"step {number}"), use(f"c{number}")]
        sent = send(session, remind(whole, number), claude(*asks), to=CLAUDE)
        lines = [json.dumps(message) for message in without_markers(sent)]
        equal = next((place for place, pair in enumerate(zip(before, lines, strict=False)) if pair[0] != pair[1]), None)
        same += sum(map(len, lines[:equal] if equal is not None else lines[: len(before)]))
        total += sum(map(len, lines))
        before = lines
        output = f"line {number} " + "word " * 60
        whole = [
            *whole,
            {"role": "assistant", "content": asks},
            {"role": "user", "content": [result(f"c{number}", output)]},
        ]
    return same / total


def without_markers(sent):
    """The messages of a request as a cache compares them."""
    found = []
    for message in sent["messages"]:
        content = message["content"]
        blocks = [text_block(content)] if isinstance(content, str) else content
        plain = [{key: value for key, value in block.items() if key != "cache_control"} for block in blocks]
        found.append({**message, "content": plain})
    return found


def test_a_client_that_sends_its_list_as_it_is_keeps_the_cache():
    """What the tests after this one are measured against."""
    session = small(budget=6_000)
    assert reminded(session, 60, lambda whole, _: whole) > 0.9
    assert len(session.branches) == 1


@pytest.mark.parametrize("kept", [0, 1], ids=["latest", "task and latest"])
def test_a_client_that_trims_its_list_keeps_the_cache(kept):
    """The window here is not the client's."""
    session = small(budget=6_000)
    assert reminded(session, 60, lambda whole, _: [*whole[:kept], *whole[kept:][-20:]]) > 0.9
    assert (len(session.branches), written(session)) == (1, 120)


def test_a_reminder_that_changes_at_the_end_does_not_cost_the_cache():
    """Agents tell the state of their plan in a last message, which is another one in the next request."""
    session = small(budget=6_000)
    assert reminded(session, 60, lambda whole, turn: [*whole, user(f"Reminder: turn {turn}.")]) > 0.85


def test_a_side_question_does_not_make_a_trimmed_list_another_conversation():
    """A title, a summary, a check in between: the agent's own conversation goes on where it was."""
    session = small()
    whole = [user(TASK)]
    for number in range(12):
        sent = send(session, whole[-6:], chat(f"answer {number}"))
        whole += [says(f"answer {number}"), user(f"question {number}")]
        send(session, [user(f"A title for {number}?")], chat("Login"))
    assert len(sent["messages"]) == 23


def test_a_very_long_list_adds_only_what_is_new():
    """5,000 messages each turn: what is written and read does not depend on them."""
    store = Counting()
    session = small(store, budget=20_000)
    messages = [user(TASK)]
    for number in range(2_500):
        messages += [says(f"answer {number}"), user(f"question {number}")]
    for _ in range(2):
        # What was written here is read once, by the call after.
        send(session, messages)
    before, store.given = session.journal.version, 0
    for number in range(3):
        messages += [says("ok"), user(f"later {number}")]
        send(session, messages, chat())
    assert session.journal.version - before <= 3 * 4
    assert store.given <= 3 * 10
    assert written(session) == 5_008
    assert len(session.branches) == 1


def test_the_same_conversation_begun_again_is_a_branch_of_its_own():
    """A program that starts over with the same words."""
    session = small()
    for answer in ("one", "two"):
        send(session, [user(TASK)], chat(answer))
    sent = send(session, [user(TASK), says("one"), user("go on")])
    assert words(sent) == [TASK, "one", "go on"]
    assert written(session) == 4


def test_fields_of_a_request_go_out_as_they_are():
    """Nothing of what the user asked for is dropped."""
    fields = {
        "tool_choice": "auto",
        "logprobs": True,
        "top_logprobs": 2,
        "seed": 5,
        "response_format": {"type": "json_object"},
        "stream": True,
        "stream_options": {"include_usage": True},
        "n": 2,
        "brand_new": {"field": [1]},
    }
    sent = send(small(), [user("hi")], **fields)
    assert {key: sent[key] for key in fields} == fields


def test_what_is_sent_fits_while_the_disk_is_full(caplog):
    """A list that passes the window would be refused as it came; it is kept in memory until the store works again."""
    store = Full()
    session = small(store, budget=8_000)
    messages = [user("the task")]
    for turn in range(40):
        store.full = turn > 1
        sent = send(session, messages, chat())
        assert len(json.dumps(sent)) < 40_000
        messages += [{"role": "assistant", "content": "ok"}, user(f"turn {turn} " + "word " * 600)]
    assert words(sent)[0] == "the task"
    assert "the disk is full" in caplog.text
    store.full = False
    send(session, messages, chat())
    assert [message.text[:7] for message in session.messages()][-3:] == ["ok", "turn 39", "ok"]
