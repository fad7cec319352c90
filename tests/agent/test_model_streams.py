"""Streams that break, end without saying so, or carry an error: what came of them is kept, or told."""

from __future__ import annotations

from typing import Any

import pytest

from support.agent_models import (
    CHUNKED,
    END,
    FORMATS,
    HANG,
    HEAD,
    RESET,
    Wire,
    ask,
    asking,
    chunk,
    data,
    fault,
    remote,
    spent,
    talking,
    told,
    words,
)
from support.model_writers import KEY, Raw
from windowsill.agent.models import Delta
from windowsill.messages import Usage
from windowsill.providers.http import RetryPolicy
from windowsill.testing import Answer, Call, Server

pytestmark = pytest.mark.integration

CHAT = b'{"choices": [{"message": {"role": "assistant", "content": "Fine."}, "finish_reason": "stop"}]}'
LONG = Answer(text="words " * 30)


@pytest.mark.parametrize("format", FORMATS)
def test_stream_that_ends_too_early(format: str) -> None:
    """What came of it is the answer, and is known to be a part."""
    heard: list[Delta] = []
    with Server(lambda _: LONG) as server:
        server.break_off_after = 8
        answer = ask(remote(server, format), heard=heard)
    ((kind, text),) = told(answer.body, format)
    assert (answer.partial, kind, len(server.seen)) == (True, "text", 1)
    assert "".join(delta.text for delta in heard) == text
    assert LONG.text.startswith(text)


@pytest.mark.parametrize("ending", [[RESET], [], [b"5\r\nab"]])
def test_stream_that_breaks(ending: list[Any]) -> None:
    """A connection that breaks within a stream is not asked again: what came is the answer."""
    with Wire([CHUNKED, chunk(words("Half of")), chunk(words(" it")), *ending]) as server:
        answer = ask(remote(server))
    assert (told(answer.body, "openai"), answer.partial, server.asked) == ([("text", "Half of it")], True, 1)


def test_stream_that_breaks_after_its_end() -> None:
    """What is whole is whole, however the connection ends."""
    with Wire([CHUNKED, chunk(words("All.") + END), RESET]) as server:
        answer = ask(remote(server))
    assert (told(answer.body, "openai"), answer.partial) == ([("text", "All.")], False)


@pytest.mark.parametrize("format", FORMATS)
def test_a_session_goes_on_behind_part_of_an_answer(format: str) -> None:
    """Part of a call is kept, and the next request is sound all the same."""
    session = talking(format)
    calls = (Call("read", {"path": "src/" * 20}, id="call_a"), Call("read", {"path": "b"}, id="call_b"))
    with Server(lambda _: Answer(text="I look.", calls=calls)) as server:
        model = remote(server, format)
        server.break_off_after = 7 if format != "gemini" else 2
        answer = ask(model, asking(session, format=format))
        session.add(answer.body, format=format)
        session.add("Go on.")
        server.break_off_after = None
        ask(model, asking(session, format=format))
    assert (answer.partial, [seen.status for seen in server.seen]) == (True, [200, 200])


@pytest.mark.parametrize("events", [b"", b": ping\n\n", words("")])
def test_stream_that_says_nothing(events: bytes) -> None:
    """Without a word there is no answer; the next one may be better."""
    with Wire([HEAD, events]) as server:
        found = fault(remote(server))
    assert (found.kind, found.passing, server.asked) == ("malformed", True, 1)


def test_stream_that_breaks_before_it_says_anything() -> None:
    """The fault of the connection is told."""
    with Wire([CHUNKED, chunk(words("")), RESET]) as server:
        found = fault(remote(server))
    assert (found.kind, found.passing, server.asked) == ("unreachable", True, 1)


def test_reasoning_alone_is_no_answer() -> None:
    """Thoughts that broke off are of no use: nobody could send them back."""
    start = {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": [], "model": "c"}}
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "Hm"}}
    with Wire([HEAD, data(start), data(block)]) as server:
        assert fault(remote(server, "anthropic")).kind == "malformed"


@pytest.mark.parametrize(
    ("format", "error", "kind"),
    [
        ("anthropic", {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "server"),
        ("anthropic", {"type": "error", "error": {"type": "api_error", "message": "Oops"}}, "server"),
        ("anthropic", {"type": "error", "error": {"type": "rate_limit_error", "message": "Slow"}}, "rate-limited"),
        ("anthropic", {"type": "error", "error": {"type": "invalid_request_error", "message": "No"}}, "refused"),
        ("anthropic", {"type": "error", "error": {"type": "authentication_error", "message": "No"}}, "no-key"),
        ("openai", {"error": {"message": "The server had an error", "type": "server_error"}}, "server"),
        ("openai", {"error": {"message": "Upstream", "code": 502}}, "server"),
        ("openai", {"error": {"message": "Slow", "code": 429}}, "rate-limited"),
        ("openai", {"error": {"message": "maximum context length is 8192 tokens", "code": 400}}, "overflow"),
        ("openai", {"error": "it broke"}, "server"),
        ("responses", {"type": "error", "code": "rate_limit_exceeded", "message": "Slow"}, "rate-limited"),
        (
            "responses",
            {"type": "response.failed", "response": {"status": "failed", "error": {"code": "server_error"}}},
            "server",
        ),
        ("gemini", {"error": {"code": 503, "message": "Busy", "status": "UNAVAILABLE"}}, "server"),
        ("gemini", {"error": {"code": 429, "message": "Slow", "status": "RESOURCE_EXHAUSTED"}}, "rate-limited"),
    ],
)
def test_error_inside_a_stream(format: str, error: dict[str, Any], kind: str) -> None:
    """An error in the middle of an answer is told by its kind, though words came before it."""
    with Wire([HEAD, data(error)]) as server:
        found = fault(remote(server, format))
    assert (found.kind, found.passing) == (kind, kind in {"server", "rate-limited"})


def test_error_behind_words() -> None:
    """What was said before the provider gave up is no answer."""
    heard: list[Delta] = []
    with Wire([HEAD, words("Half"), data({"error": {"message": "Oops", "type": "server_error"}})]) as server:
        found = fault(remote(server), heard=heard)
    assert (found.kind, heard) == ("server", [Delta("text", "Half")])


def test_event_that_cannot_be_read() -> None:
    """What is readable around it is an answer with something missing."""
    with Wire([HEAD, words("One"), b"data: {garbage\n\n", words(" two"), END]) as server:
        answer = ask(remote(server))
    assert (told(answer.body, "openai"), answer.partial) == ([("text", "One two")], True)


def test_server_that_does_not_stream() -> None:
    """Who answers in one piece whatever is asked for is understood, and heard."""
    heard: list[Delta] = []
    with Raw((200, {"Content-Type": "application/json"}, b"\n " + CHAT)) as server:
        answer = ask(remote(server), heard=heard)
    assert (told(answer.body, "openai"), answer.partial) == ([("text", "Fine.")], False)
    assert heard == [Delta("text", "Fine.")]


def test_part_of_an_answer_that_is_not_streamed() -> None:
    """Half of a document is no answer."""
    with Wire([HEAD.replace(b"\r\n\r\n", b"\r\nContent-Length: 999\r\n\r\n"), CHAT[:40]]) as server:
        found = fault(remote(server))
    assert (found.kind, found.passing) == ("unreachable", True)


def test_time_out_within_a_stream() -> None:
    """What came until then is the answer."""
    with Wire([HEAD, words("Half"), HANG]) as server:
        answer = ask(remote(server, policy=RetryPolicy(timeout=3)))
    assert (told(answer.body, "openai"), answer.partial) == ([("text", "Half")], True)


def test_patience_within_a_stream() -> None:
    """What came until then is the answer."""
    with Wire([HEAD, words("Half"), HANG]) as server:
        answer = ask(remote(server, policy=RetryPolicy(patience=3)))
    assert (told(answer.body, "openai"), answer.partial) == ([("text", "Half")], True)


def test_no_secret_in_a_stream() -> None:
    """Errors inside of streams are told without keys too."""
    with Wire([HEAD, data({"error": {"message": f"bad: {KEY}", "type": "server_error"}})]) as server:
        found = fault(remote(server))
    assert (found.provider_message, KEY in str(found)) == ("bad: [key]", False)


def test_what_a_broken_stream_used() -> None:
    """The usage that came before the break is kept."""
    start = {
        "type": "message_start",
        "message": {
            "type": "message",
            "role": "assistant",
            "content": [],
            "usage": {"input_tokens": 9, "output_tokens": 1},
        },
    }
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Half"}}
    session = talking("anthropic")
    with Wire([HEAD, data(start), data(block)]) as server:
        answer = ask(remote(server, "anthropic"), asking(session, format="anthropic"))
    session.add(answer.body, format="anthropic")
    assert spent(session) == [Usage(input=9, output=1)]
