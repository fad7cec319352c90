"""The proxy between real clients and a strict provider: what passes, what is folded, what is refused, what is kept."""

import asyncio
import json
import re
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial

import anthropic
import httpx2
import pytest
import zstandard
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from support.proxies import LONG, MODEL, body, break_off, health, post, proxied, say, streamed, talk, upstream
from support.wrapped_clients import Anthropic, Chat, Gemini, Responses
from windowsill import Session
from windowsill.cli.proxy import session_settings
from windowsill.clients import exchange as exchange_module
from windowsill.proxy import server as server_module
from windowsill.proxy.callers import MARK
from windowsill.session.audit import composition
from windowsill.testing import Answer, Server

pytestmark = pytest.mark.integration

SAID = b"".join(
    f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
    for event in (
        {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": [],
         "model": MODEL, "usage": {"input_tokens": 1, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "an answer"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    )
)  # fmt: skip
"""A streamed answer."""


# What passes


def test_bytes_in_are_bytes_out_while_nothing_is_folded(tmp_path):
    """Spaces, order, unknown fields, escapes and numbers are as the client wrote them; so are its headers."""
    raw = (
        b'{ "max_tokens":1e2,"unknown_field":{"b":1,"a":[]},  "messages" : [{"role":"user","content":'
        b'"caf\\u00e9 \xc3\xa9","odd":null}],"model":"' + MODEL.encode() + b'"}\n'
    )
    with upstream(lambda handler, _: say(handler, 200, b"{}")) as (url, got), proxied(tmp_path, url) as proxy:
        post(proxy, raw, anthropic_beta="one-2025,two-2026")
        assert len(proxy.sessions) == 1
    assert got[0][2] == raw
    assert got[0][1]["anthropic-beta"] == "one-2025,two-2026"


def test_what_is_no_model_call_passes_and_is_not_recorded(tmp_path):
    """Method, path, query, headers, body and answer are unchanged."""
    with (
        upstream(lambda handler, _: say(handler, 203, b"[1, 2]", X_Odd="kept")) as (url, got),
        proxied(tmp_path, url) as proxy,
    ):
        answer = httpx2.get(f"{proxy.url}/v1/models?limit=1000", headers={"authorization": "Bearer x", "x-more": "y"})
        assert (answer.status_code, answer.content, answer.headers["x-odd"]) == (203, b"[1, 2]", "kept")
        assert proxy.sessions == []
    path, headers, sent = got[0]
    assert (path, headers["x-more"], headers["authorization"], sent) == ("/v1/models?limit=1000", "y", "Bearer x", b"")


def test_a_person_who_opens_the_printed_address_finds_the_page(proxy):
    """In a browser; a program that asks for the same is sent on to the provider."""
    for path, accepted in (("/", "text/html,*/*"), ("/__windowsill", "*/*"), ("/__windowsill/inspect", "*/*")):
        answer = httpx2.get(proxy.url + path, headers={"accept": accepted})
        assert (answer.status_code, answer.headers["location"]) == (307, "/__windowsill/inspect/")
    assert "location" not in httpx2.get(proxy.url + "/", headers={"accept": "*/*"}).headers


def test_the_words_of_a_provider_are_passed_verbatim(tmp_path):
    """Clients recover by the wording of an error, its status and its headers."""
    told = b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"} }'
    with (
        upstream(lambda handler, _: say(handler, 529, told, retry_after="7", x_should_retry="true")) as (url, _),
        proxied(tmp_path, url) as proxy,
    ):
        answer = post(proxy, body("Hello"))
    assert (answer.status_code, answer.content) == (529, told)
    assert (answer.headers["retry-after"], answer.headers["x-should-retry"]) == ("7", "true")


def test_a_stream_is_never_held_back(tmp_path):
    """The client has the first event before the provider writes the second."""
    received = threading.Event()

    def answer(handler, _):
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.wfile.write(b'event: ping\ndata: {"type":"ping"}\n\n')
        assert received.wait(60)
        handler.wfile.write(b'event: message_stop\ndata: {"type":"message_stop"}\n\n')

    with upstream(answer) as (url, _), proxied(tmp_path, url) as proxy, streamed(proxy) as response:
        pieces = response.iter_raw()
        assert b"ping" in next(pieces)
        received.set()
        assert b"message_stop" in b"".join(pieces)


def test_an_answer_is_recorded_before_the_next_question_though_its_stream_stays_open(tmp_path):
    """Whoever has the last event may ask on at once."""
    counted = threading.Event()

    def answer(handler, sent):
        if b"And now?" in sent:
            say(handler, 200, b"{}")
            return
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.wfile.write(SAID)
        assert counted.wait(60)

    with upstream(answer) as (url, _), proxied(tmp_path, url) as proxy, streamed(proxy) as response:
        heard = b""
        for piece in response.iter_raw():
            heard += piece
            if heard == SAID:
                post(proxy, body("Hello", "an answer", "And now?"), key="")
                assert health(proxy)["counts"].get("tokens of requests") == 1
                counted.set()
        assert len(proxy.sessions) == 1


def test_a_socket_for_anything_else_is_refused(proxy):
    """Only Codex's is spoken; a client that can do without falls back at once."""
    with pytest.raises(InvalidStatus) as refused, connect(f"ws{proxy.url[4:]}/v1/realtime"):
        pass
    assert refused.value.response.status_code == 426


def test_packed_requests_are_read_and_pass_as_they_came(tmp_path):
    """Codex packs with zstd where it is logged in."""
    packed = zstandard.compress(json.dumps({"model": "gpt-5", "input": "Hello"}).encode())
    with upstream(lambda handler, _: say(handler, 200, b"{}")) as (url, got), proxied(tmp_path, url) as proxy:
        post(proxy, packed, "/v1/responses", content_encoding="zstd")
        assert len(proxy.sessions) == 1
    assert got[0][2] == packed
    assert got[0][1]["content-encoding"] == "zstd"


# What is folded


@pytest.mark.parametrize("sdk", [Anthropic(), Chat(), Responses(), Gemini()], ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_conversation_never_outgrows_its_window(proxy, provider, sdk, stream):
    """Each official client, far beyond the window: every request is valid and fits, and everything is kept."""
    with closing(sdk.client(proxy.url, later=False)) as client:
        said = []
        for number in range(25):
            said.append(sdk.user(f"Question {number}: {LONG}"))
            reply = asyncio.run(sdk.ask(client, said, stream=stream))
            said += sdk.said(reply)
    assert provider.refused == []
    assert {each.status for each in provider.seen} == {200}
    assert len(proxy.sessions) == 1
    with Session.open(proxy.sessions[0], store=proxy.store) as session:
        assert sum(1 for message in session.messages() if message.role == "user") == 25
        assert session.verify() == []
    assert health(proxy)["status"] == "ok"


@pytest.mark.parametrize(
    ("model", "limit"), [(MODEL, 20_000), ("qwen-of-mine", 20_000 - 16_000)], ids=["known", "unknown"]
)
def test_an_answer_takes_no_room_from_what_a_request_may_have(tmp_path, model, limit):
    """`--window` is the most tokens of a request, as in a replay; of a model that is not known, its whole window."""
    options = partial(session_settings, 20_000, {})
    with Server(window=100_000) as provider, proxied(tmp_path, provider.url, options=options) as proxy:
        post(proxy, body("Hello", max_tokens=16_000, model=model))
        with Session.open(proxy.sessions[0], store=proxy.store) as session:
            assert limit * 0.9 < composition(session.journal, session.composer).limit <= limit


def test_a_refusal_for_its_length_is_sent_again_shorter(tmp_path):
    """The window of a server that nobody stated is learned from what it says, before the client hears of it."""
    with Server(window=3_000) as provider, proxied(tmp_path, provider.url, options={}) as proxy:
        texts = talk(proxy, 12)
        assert len(texts) == 24
        assert any(each.status == 400 for each in provider.seen)


def test_a_count_is_that_of_the_request_that_would_be_sent(proxy):
    """Else the client compacts by itself. Nothing changes by asking."""
    texts = talk(proxy, 20, x_claude_code_session_id="s")
    version = proxy.store.info(proxy.sessions[0]).version
    answer = post(proxy, body(*texts), "/v1/messages/count_tokens", x_claude_code_session_id="s")
    assert answer.headers["x-windowsill-estimate"] == "1"
    assert 0 < answer.json()["input_tokens"] < 6_000 < len(json.dumps(texts)) / 5
    assert proxy.store.info(proxy.sessions[0]).version == version


def test_a_provider_that_does_not_count_is_counted_for(tmp_path):
    """An estimate says so; nothing is recorded. Other refusals are the provider's."""
    status = 404
    with (
        upstream(lambda handler, _: say(handler, status, b'{"error":"no"}')) as (url, _),
        proxied(tmp_path, url) as proxy,
    ):
        answer = post(proxy, body("word " * 100), "/v1/messages/count_tokens")
        assert answer.headers["x-windowsill-estimate"] == "1"
        assert 100 <= answer.json()["input_tokens"] < 200
        status = 400
        answer = post(proxy, body("word " * 100), "/v1/messages/count_tokens")
        assert (answer.status_code, answer.content) == (400, b'{"error":"no"}')
        assert proxy.sessions == []


# Conversations apart


def test_two_accounts_never_meet(proxy, provider):
    """The same words, the same names of sessions: what one is told never reaches the other."""
    provider.respond = lambda request: Answer(text=f"the answer to {len(json.dumps(request))}")
    first = talk(proxy, 3, key="key-a", x_claude_code_session_id="same")
    (own,) = proxy.sessions
    version = proxy.store.info(own).version
    second = post(proxy, body(*first, "And now?"), key="key-b", x_claude_code_session_id="same")
    assert second.status_code == 200
    assert len({each.partition(MARK)[2] for each in proxy.sessions}) == 2
    assert proxy.store.info(own).version == version


def test_many_conversations_at_once_stay_apart(proxy, provider):
    """200 of several accounts, with and without names, in parallel: no word of one in a request of another."""

    def one(number):
        word = f"secret{number:03}x"
        named = {"x_claude_code_session_id": f"s{number}"} if number % 2 else {}
        texts = []
        for turn in range(3):
            texts.append(f"{word} turn {turn}")
            answer = post(proxy, body(*texts), key=f"key-{number % 7}", **named)
            assert answer.status_code == 200
            texts.append(answer.json()["content"][0]["text"])

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(one, range(200)))
    assert len(provider.seen) == 600
    for each in provider.seen:
        words = {word for word in each.raw.decode().replace('"', " ").split() if word.startswith("secret")}
        assert len(words) == 1


def test_sub_agents_have_conversations_of_their_own(proxy):
    """One session id covers the main agent and all that it starts."""
    for agent in (None, "a1", "a2"):
        named = {"x_claude_code_agent_id": agent} if agent else {}
        post(proxy, body(f"Task of {agent}"), x_claude_code_session_id="s", **named)
    assert len(proxy.sessions) == 3


def test_auxiliary_requests_pass_and_are_not_recorded(proxy, provider):
    """Titles and classifiers are no part of the conversation."""
    post(proxy, body("A title, please"), x_claude_code_session_id="s", x_claude_code_request_class="auxiliary")
    assert len(provider.seen) == 1
    assert proxy.sessions == []


def test_a_conversation_can_be_named_by_hand(proxy, provider):
    """In the address, where a client has nothing but a base URL."""
    post(proxy, body("Hello"), "/s/my-work/v1/messages")
    assert provider.seen[0].path == "/v1/messages"
    assert [each.partition(MARK)[0] for each in proxy.sessions] == ["my-work"]


def test_a_provider_can_be_named_by_hand(tmp_path):
    """The address says whose request it is if several speak a format; a provider that is none is named."""
    with (
        upstream(lambda handler, _: say(handler, 200, b"{}")) as (url, got),
        upstream(lambda handler, _: say(handler, 500, b"{}")) as (other, _),
        proxied(tmp_path, other, upstreams={"anthropic": url}) as proxy,
    ):
        for path in ("/p/anthropic/v1/chat/completions", "/s/mine/p/anthropic/v1/chat/completions"):
            assert post(proxy, body("Hello"), path).status_code == 200
        assert [path for path, *_ in got] == ["/v1/chat/completions"] * 2
        assert any(each.startswith(f"mine{MARK}") for each in proxy.sessions)
        refused = post(proxy, body("Hello"), "/p/nobody/v1/messages")
        assert refused.status_code == 404
        assert "/p/nobody is no provider" in refused.json()["error"]["message"]


# When the client compacts


def test_a_clients_compaction_becomes_a_fold_that_can_be_undone(proxy, provider):
    """What it replaced is kept in the same session, searched and brought back; its request passed as it was written."""
    texts = talk(proxy, 5, x_claude_code_session_id="s")
    ask = body(*texts, "CRITICAL: Respond with TEXT ONLY. Write a summary.")
    raw = json.dumps(ask).encode()
    post(proxy, raw, x_claude_code_session_id="s", x_claude_code_request_class="compaction")
    assert provider.seen[-1].raw == raw
    summary = (
        "This session is being continued from a previous conversation that ran out of context. Summary: five questions."
    )
    later = talk(proxy, 2, [summary, "I see."], x_claude_code_session_id="s")
    assert json.loads(provider.seen[-1].raw)["messages"][0]["content"] == summary
    assert len(proxy.sessions) == 1
    with Session.open(proxy.sessions[0], store=proxy.store) as session:
        fold = next(each for each in session.folds if each.strategy == "client")
        assert fold.kind == "condense"
        # The client's list as it asked for the summary, with the words that ask.
        assert sum(1 for _ in session.messages()) == len(texts) + 1 + len(later)
        session.unfold(fold.id)
        assert session.view.read(session.view.items[0]).text.startswith("Question 0")
        assert session.verify() == []


def test_a_compaction_that_the_window_cannot_hold_is_folded(proxy, provider):
    """The raw list of a client that lives behind the proxy may be far too long: its summary must not fail for it."""
    texts = talk(proxy, 30, x_claude_code_session_id="s")
    ask = body(*texts, "CRITICAL: Respond with TEXT ONLY. Write a summary.")
    assert post(proxy, ask, x_claude_code_session_id="s").status_code == 200
    assert provider.refused == []


# When something breaks


def test_whatever_breaks_here_the_request_goes_through(proxy, provider, monkeypatch):
    """The health page says what it was."""

    def broken(_, **__):
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr(exchange_module.Exchange, "request", broken)
    raw = json.dumps(body("Hello")).encode()
    assert post(proxy, raw).status_code == 200
    assert provider.seen[0].raw == raw
    told = health(proxy)
    assert "degraded" in told["status"]
    assert "a mistake of ours" in told["faults"][0]["what"]


def test_a_request_that_nobody_can_read_goes_through(tmp_path):
    """The provider says better what is wrong with it."""
    with (
        upstream(lambda handler, _: say(handler, 400, b'{"error":"no JSON"}')) as (url, got),
        proxied(tmp_path, url) as proxy,
    ):
        answer = post(proxy, b"{not json")
    assert (answer.status_code, answer.content, got[0][2]) == (400, b'{"error":"no JSON"}', b"{not json")


def test_a_provider_that_cannot_be_reached_is_named(tmp_path):
    """An error that every client can read."""
    with proxied(tmp_path, "http://127.0.0.1:1") as proxy:
        answer = post(proxy, body("Hello"))
    assert answer.status_code == 502
    assert "http://127.0.0.1:1 cannot be reached" in answer.json()["error"]["message"]


def test_a_torn_stream_is_kept_as_far_as_it_came(proxy, provider):
    """The client sees that it broke off; the session has what was said."""
    whole = "a long answer in many pieces " * 20
    provider.respond = lambda _: Answer(text=whole)
    provider.break_off_after = 6
    with closing(anthropic.Anthropic(base_url=proxy.url, api_key="k", max_retries=0)) as client:
        broken = client.messages.stream(**body("Hello"))
        with pytest.raises(Exception), broken as stream:  # noqa: B017, PT011 - as the client likes
            stream.get_final_message().content[0].text.index("no such words")
    provider.break_off_after = None
    with Session.open(proxy.sessions[0], store=proxy.store) as session:
        asked, answer = session.messages()
    assert asked.text == "Hello"
    assert 0 < len(answer.text) < len(whole)
    assert whole.startswith(answer.text)


def test_a_connection_that_breaks_is_one_line_of_the_log(tmp_path, caplog):
    """The client sees that the end is missing, and nobody reads a traceback for what a provider did."""
    with (
        upstream(break_off) as (url, _),
        proxied(tmp_path, url) as proxy,
        pytest.raises(httpx2.RemoteProtocolError),
        streamed(proxy) as response,
    ):
        response.read()
    told = [each for each in caplog.records if each.name == "windowsill.proxy"]
    assert [each.getMessage().partition(":")[0] for each in told] == ["an answer broke off"]
    assert not told[0].exc_info


def test_a_client_that_goes_away_costs_nothing(tmp_path):
    """The answer is recorded as far as it came, and the provider is no longer listened to."""
    go_on, ended = threading.Event(), threading.Event()

    def answer(handler, _):
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Connection", "close")
        handler.end_headers()
        start = {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": [],
                 "model": MODEL, "usage": {"input_tokens": 1, "output_tokens": 1}}}  # fmt: skip
        begin = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        words = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "half an answer"}}
        for event in (start, begin, words):
            handler.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        assert go_on.wait(60)
        try:
            while True:
                handler.wfile.write(b": ping\n\n")
        except OSError:
            ended.set()

    with upstream(answer) as (url, _), proxied(tmp_path, url) as proxy:
        with streamed(proxy) as response:
            heard = b""
            for piece in response.iter_raw():
                heard += piece
                if b"half an answer" in heard:
                    break
        go_on.set()
        assert ended.wait(60)
        name = proxy.sessions[0]
    with Session.open(name, store=tmp_path) as session:
        assert [message.text for message in session.messages()] == ["Hello", "half an answer"]


def test_a_slow_client_holds_up_nobody(tmp_path):
    """One reads the first bytes of a long stream and waits: another is answered, and the first has it all later."""
    event = b'event: ping\ndata: {"type":"ping"}\n\n'
    long = event * 200_000

    def answer(handler, sent):
        if b"slowly" in sent:
            say(handler, 200, long, **{"Content-Type": "text/event-stream"})
        else:
            say(handler, 200, b"{}")

    asked = body("slowly", stream=True)
    with (
        upstream(answer) as (url, _),
        proxied(tmp_path, url) as proxy,
        proxy.client.stream("POST", f"{proxy.url}/v1/messages", json=asked) as slow,
    ):
        pieces = slow.iter_raw()
        first = next(pieces)
        for number in range(3):
            assert post(proxy, body(f"Hello {number}")).status_code == 200
        assert first + b"".join(pieces) == long


HOSTILE = [
    b"x-claude-code-session-id: ../../../etc/passwd\r\n",
    b"x-claude-code-session-id: a~0123456789ab\r\nx-claude-code-session-id: b\r\n",
    b"x-claude-code-session-id: \xff\xfe\x80\r\n",
    b"x-windowsill-session: " + b"n" * 30_000 + b"\r\n",
    b"x-codex-turn-metadata: " + b"[" * 20_000 + b"\r\n",
    b"connection: close, x-api-key, content-length\r\n",
    b"transfer-encoding: chunked\r\n",
    b"content-length: 5\r\n",
    b"content-encoding: br\r\n",
    b"x" * 200_000 + b": y\r\n",
]


@pytest.mark.parametrize("header", HOSTILE, ids=[each[:40].decode("latin-1") for each in HOSTILE])
def test_hostile_headers_do_no_harm(proxy, provider, header):
    """Each is answered or refused, once; the next request is answered, and no session has an odd name."""
    raw = json.dumps(body("Hello")).encode()
    head = f"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: k\r\ncontent-length: {len(raw)}\r\n"
    port = int(proxy.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), 60) as sent, suppress(ConnectionError):
        sent.sendall(head.encode() + header + b"connection: close\r\n\r\n" + raw + b"\r\n")
        answer = b"".join(iter(lambda: sent.recv(65_536), b""))
        assert answer.count(b"HTTP/1.1 ") == 1
        assert answer[9:10] in b"24"
    assert len(provider.seen) <= 1
    assert post(proxy, body("Hello again")).status_code == 200
    assert all(re.fullmatch(r"[A-Za-z0-9._:@+-]{1,200}~[0-9a-f]{12}", name) for name in proxy.sessions)


def test_the_address_for_compactions_is_answered_where_the_provider_has_none(tmp_path):
    """With the user's messages and one item, as OpenAI answers it."""
    asked = {"model": "gpt-5", "input": [{"type": "message", "role": "user", "content": "Mend the parser."}]}
    with (
        upstream(lambda handler, _: say(handler, 404, b"nothing here")) as (url, _),
        proxied(tmp_path, url) as proxy,
    ):
        answer = post(proxy, asked, "/v1/responses/compact")
    assert answer.status_code == 200
    message, item = answer.json()["output"]
    assert message == asked["input"][0]
    assert (item["type"], item["id"][:4]) == ("compaction", "cmp_")


def test_a_large_request_passes_and_one_beyond_the_limit_is_refused(proxy, provider, monkeypatch):
    """20 MB of words are folded to the window; more than the limit is no request."""
    monkeypatch.setattr(server_module, "LARGEST_BODY", 24_000_000)
    assert post(proxy, body("word " * 4_000_000, "ok", "And now?")).status_code == 200
    assert provider.refused == []
    assert post(proxy, b" " * 24_000_001).status_code == 413


# Who may ask, and what is kept


def test_web_pages_and_other_names_are_refused(proxy):
    """No page that a browser shows can reach the proxy."""
    for headers in (
        {"host": "evil.example"},
        {"origin": "https://evil.example"},
        {"origin": "http://127.0.0.1.evil.example"},
    ):
        answer = httpx2.post(f"{proxy.url}/v1/messages", json=body("Hello"), headers=headers)
        assert answer.status_code == 403
    assert httpx2.get(f"{proxy.url}/__windowsill/health", headers={"host": "evil.example"}).status_code == 403


def test_a_token_is_asked_for_where_one_is_set(tmp_path, provider):
    """It stays here: the provider never sees it."""
    with proxied(tmp_path, provider.url, token="open sesame") as proxy:
        assert post(proxy, body("Hello")).status_code == 401
        assert post(proxy, body("Hello"), x_windowsill_token="wrong").status_code == 401
        assert post(proxy, body("Hello"), x_windowsill_token="open sesame").status_code == 200
    assert "x-windowsill-token" not in provider.seen[0].headers


def test_credentials_are_never_stored_or_logged(tmp_path, provider, caplog):
    """Not in the database, not in the health page, not in a log."""
    caplog.set_level("DEBUG")
    secret = "sk-ant-never-to-be-seen-0123456789"
    with proxied(tmp_path, provider.url) as proxy:
        post(proxy, body("Hello"), key=secret, authorization=f"Bearer {secret}", cookie=f"id={secret}")
        httpx2.post(f"{proxy.url}/v1beta/models/gemini-3-pro:generateContent?key={secret}", json={})
        told = json.dumps(health(proxy))
    assert secret not in told
    assert not any(secret in record.getMessage() for record in caplog.records if record.name.startswith("windowsill"))
    assert not any(secret.encode() in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_metrics_count_without_content(proxy):
    """Prometheus text."""
    post(proxy, body("Hello"))
    text = httpx2.get(f"{proxy.url}/__windowsill/metrics").text
    assert 'windowsill_proxy_total{what="calls"} 1' in text
