"""Models that fail: each way has its name, says whether it passes, leaves nothing running, and tells no secret."""

from __future__ import annotations

import json
import logging
import traceback
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from support.agent_models import (
    END,
    FORMATS,
    HANG,
    HEAD,
    RESET,
    Wire,
    ask,
    asking,
    data,
    fault,
    remote,
    talking,
    told,
    words,
)
from support.model_writers import KEY, Bent, Raw
from windowsill import Engine, Session
from windowsill.agent.models import Delta, HttpModel, ModelError
from windowsill.providers.http import RetryPolicy
from windowsill.testing import Answer, Scripted, Server

pytestmark = pytest.mark.integration

CHAT = b'{"choices": [{"message": {"role": "assistant", "content": "Fine."}, "finish_reason": "stop"}]}'


class Pauses(list[float]):
    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("status", [429, 500, 502, 503, 529])
def test_passing_faults_are_tried_again(format: str, status: int) -> None:
    """A busy or broken provider is asked again, with growing pauses that chance stretches."""
    pauses = Pauses()
    with Server() as server:
        server.fail(status, times=2)
        answer = ask(remote(server, format, sleep=pauses, random=lambda: 0.5))
    assert (len(server.seen), pauses, told(answer.body, format)) == (3, [0.75, 1.5], [("text", "ok")])


@pytest.mark.parametrize(
    ("status", "kind", "passing", "asked"),
    [
        (429, "rate-limited", True, 3),
        (500, "server", True, 3),
        (529, "server", True, 3),
        (400, "refused", False, 1),
        (404, "refused", False, 1),
        (413, "refused", False, 1),
        (401, "no-key", False, 1),
        (403, "no-key", False, 1),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_faults_by_name(status: int, kind: str, passing: bool, asked: int, stream: bool) -> None:  # noqa: FBT001 columns
    """What does not pass, or not in time, is told by its name."""
    with Server() as server:
        server.fail(status, "something broke", times=9)
        found = fault(remote(server, stream=stream))
    assert (found.kind, found.passing, len(server.seen)) == (kind, passing, asked)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("stream", [True, False])
def test_overflow(format: str, stream: bool) -> None:  # noqa: FBT001 a column of the table
    """A request above the window is told as such, in the provider's words, from which a session learns."""
    session = talking(format)
    session.add("many words " * 300)
    with Server(window=300) as server:
        found = fault(remote(server, format, stream=stream), asking(session, format=format))
    assert (found.kind, found.passing, len(server.seen)) == ("overflow", False, 1)
    before = session.compose_sync().tokens
    session.composer.overflowed(found.provider_message, sent=before)
    assert session.composer.context.ceiling is not None
    assert session.composer.context.ceiling < before


def test_overflow_by_413() -> None:
    """A request that is too large is an overflow when the words say that it is the window."""
    said = b'{"error": {"message": "prompt is too long: 210000 tokens > 200000 maximum"}}'
    with Raw((413, {}, said)) as server:
        found = fault(remote(server))
    assert (found.kind, found.provider_message) == ("overflow", "prompt is too long: 210000 tokens > 200000 maximum")


def test_words_of_an_overflow_are_whole() -> None:
    """The window it names may stand far behind; it is not cut off, as it is in what people read."""
    text = "x " * 500 + "This model's maximum context length is 8192 tokens."
    with Raw((400, {}, json.dumps({"error": {"message": text}}).encode())) as server:
        found = fault(remote(server))
    assert found.provider_message.endswith("8192 tokens.")
    assert len(str(found)) < 300


@pytest.mark.parametrize(
    ("headers", "body", "pause"),
    [
        ({"Retry-After": "7"}, {}, 7.0),
        ({"retry-after-ms": "250"}, {}, 0.25),
        ({}, {"error": {"details": [{"@type": "x"}, {"@type": "RetryInfo", "retryDelay": "34.5s"}]}}, 34.5),
        ({"Retry-After": "7"}, {"error": {"details": [{"retryDelay": "34s"}]}}, 7.0),
    ],
)
def test_pause_that_is_asked_for(headers: dict[str, str], body: dict[str, Any], pause: float) -> None:
    """The provider's pause is kept, be it in a header or, as Google does, in the error."""
    pauses = Pauses()
    with Raw((429, headers, json.dumps(body).encode()), (200, {}, CHAT)) as server:
        ask(remote(server, sleep=pauses))
    assert pauses == [pause]


@pytest.mark.parametrize("delay", ["soon", "", "1e9s", "-1s", 5, None])
def test_pause_that_makes_no_sense(delay: Any) -> None:
    """A delay nobody can read is our own pause."""
    body = json.dumps({"error": {"details": [{"retryDelay": delay}]}}).encode()
    pauses = Pauses()
    with Raw((429, {}, body), (200, {}, CHAT)) as server:
        ask(remote(server, sleep=pauses, random=lambda: 1.0))
    assert pauses == [1.0]


def test_pause_that_is_too_long() -> None:
    """Longer than we wait: the caller is told how long it would be."""
    with Raw((429, {"Retry-After": "3600"}, b"{}")) as server:
        found = fault(remote(server))
    assert (found.kind, found.retry_after, server.asked) == ("rate-limited", 3600.0, 1)


@pytest.mark.parametrize("script", [[], [RESET], [HEAD], [b"HTTP/1.1 "]])
def test_connection_that_ends_before_the_answer(script: list[Any]) -> None:
    """Nothing has come of it yet."""
    with Wire(script) as server:
        found = fault(remote(server))
    assert (found.kind in {"unreachable", "malformed"}, found.passing) == (True, True)


def test_connection_is_tried_again_before_the_first_byte() -> None:
    """What breaks before it answers is asked again."""
    with Wire([RESET], [], [HEAD, words("Fine."), END]) as server:
        answer = ask(remote(server))
    assert (told(answer.body, "openai"), answer.partial, server.asked) == ([("text", "Fine.")], False, 3)


def test_nobody_listens() -> None:
    """An address where nobody listens is told, after the retries."""
    with Wire([]) as server:
        pass
    found = fault(remote(server))
    assert (found.kind, found.passing) == ("unreachable", True)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("body", [b"<html>Hello</html>", b"\xff\xfe\x00", b"[]", b'{"choices": []}', b'{"a":' * 5_000])
def test_garbage(body: bytes, stream: bool) -> None:  # noqa: FBT001 a column of the table
    """What is no answer in any way is told."""
    with Raw((200, {}, body)) as server:
        assert fault(remote(server, stream=stream)).kind == "malformed"


@pytest.mark.parametrize("stream", [True, False])
def test_error_in_the_place_of_an_answer(stream: bool) -> None:  # noqa: FBT001 a column of the table
    """Some say that all is well and then that it is not."""
    with Raw((200, {}, b'{"error": {"message": "Provider returned error", "code": 502}}')) as server:
        assert fault(remote(server, stream=stream)).kind == "server"


@pytest.mark.parametrize("stream", [True, False])
def test_answer_without_end(stream: bool) -> None:  # noqa: FBT001 a column of the table
    """It is not read past the limit."""
    with Raw((200, {}, words("more ") * 200)) as server:
        found = fault(remote(server, stream=stream, largest=5_000))
    assert (found.kind, found.passing, server.asked) == ("malformed", False, 1)
    assert "5,000 bytes" in str(found)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_are_not_followed(status: int) -> None:
    """A key is not carried to where an answer points."""
    with Raw((200, {}, CHAT)) as other, Raw((status, {"Location": other.url}, b"")) as server:
        assert fault(remote(server)).kind == "refused"
    assert (other.asked, server.asked) == (0, 1)


@pytest.mark.parametrize("stream", [True, False])
def test_time_out(stream: bool) -> None:  # noqa: FBT001 a column of the table
    """Who does not answer in time is left, and not asked again."""
    with Wire([HANG]) as server:
        found = fault(remote(server, stream=stream, policy=RetryPolicy(timeout=2)))
    assert (found.kind, found.passing, server.asked) == ("timeout", True, 1)


def test_patience() -> None:
    """All retries and pauses together have an end."""

    async def sleep(_: float) -> None:
        await anyio.sleep(30)

    with Server() as server:
        server.fail(500, times=9)
        found = fault(remote(server, sleep=sleep, policy=RetryPolicy(patience=3)))
    assert (found.kind, len(server.seen)) == ("timeout", 1)


@pytest.mark.parametrize("script", [[HANG], [HEAD, words("Half"), HANG]])
@pytest.mark.parametrize("stream", [True, False])
def test_cancelled(script: list[Any], stream: bool) -> None:  # noqa: FBT001 a column of the table
    """Who is cancelled leaves nothing running, and the server sees the connection closed."""

    async def run(model: HttpModel) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(model.ask, asking(), lambda _: None)
            assert await anyio.to_thread.run_sync(server.hangs.wait, 60)
            tasks.cancel_scope.cancel()
        await anyio.lowlevel.checkpoint()
        assert len(anyio.get_running_tasks()) == 1

    with Wire(script) as server:
        anyio.run(run, remote(server, stream=stream))
        assert server.left.wait(60)


def test_listener_that_fails() -> None:
    """What a listener raises comes through, and the connection is closed."""

    async def run(model: HttpModel) -> None:
        def listen(_: Delta) -> None:
            raise LookupError("mine")

        with pytest.raises(LookupError, match="mine"):
            await model.ask(asking(), listen)

    with Wire([HEAD, words("Half"), HANG]) as server:
        anyio.run(run, remote(server))
        assert server.left.wait(60)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("status", [200, 400, 401, 404, 429, 500])
def test_no_secret_is_told(status: int, stream: bool, caplog: pytest.LogCaptureFixture) -> None:  # noqa: FBT001 a column
    """Whatever a provider says, no key comes out: not in errors, logs, traces or representations."""
    said = f"Incorrect API key: {KEY} (Bearer {KEY}, also AIzaSyA1234567890abcdefgh)"
    body = json.dumps({"error": {"message": said, "type": "x"}}).encode()
    with caplog.at_level(logging.DEBUG), Raw((status, {}, body)) as server:
        model = remote(server, stream=stream)
        found = fault(model)
    everything = [str(found), repr(vars(found)), repr(model), repr(vars(model)), *traceback.format_exception(found)]
    assert KEY not in "".join(everything) + caplog.text
    assert "AIzaSyA" not in "".join(everything)


def test_no_proxy_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy would carry conversation and key into the network."""
    with Raw((200, {}, CHAT)) as proxy, Raw((200, {}, CHAT)) as server:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        ask(remote(server))
    assert (proxy.asked, server.asked) == (0, 1)


@pytest.mark.parametrize("stream", [True, False])
def test_blocked_question(stream: bool) -> None:  # noqa: FBT001 a column of the table
    """Gemini gives no candidate at all when it blocks the question."""
    blocked = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 9}}
    with Raw((200, {}, data(blocked) if stream else json.dumps(blocked).encode())) as server:
        found = fault(remote(server, "gemini", stream=stream))
    assert (found.kind, found.passing) == ("refused", False)
    assert "PROHIBITED_CONTENT" in str(found)


def test_own_limit_of_requests() -> None:
    """The limit counts every request, retries too."""
    pauses = Pauses()
    with Server() as server:
        server.fail(500)
        ask(remote(server, policy=RetryPolicy(per_minute=1, backoff=0), sleep=pauses, clock=lambda: 0.0))
    assert pauses == [0.0, 60.0]


def test_stop_reasons_are_left_to_the_caller() -> None:
    """An answer that its limit cut off is whole as the provider gave it."""

    def bend(spoken: Any) -> None:
        if isinstance(spoken, dict):
            spoken["choices"][0]["finish_reason"] = "length"

    with Bent(bend, lambda _: Answer(text="cut")) as server:
        answer = ask(remote(server, stream=False))
    assert (answer.partial, b'"length"' in answer.body) == (False, True)


def test_error_says_what_and_what_to_do() -> None:
    """An error is one line with a remedy."""
    error = ModelError("server", "500: oops", remedy="try later")
    assert (str(error), error.passing, error.retry_after, error.provider_message) == (
        "500: oops; try later",
        True,
        None,
        "",
    )


def test_a_run_goes_on_without_reasoning_that_was_refused() -> None:
    """The thinking of the past is left out once, told, and stays in the history."""
    session = Session.open("s", model="claude-sonnet-4-5", store=":memory:")
    thinking = {"type": "thinking", "thinking": "hm", "signature": "forged"}
    session.add({"role": "user", "content": "hi"})
    session.add({"role": "assistant", "content": [thinking, {"type": "text", "text": "hello"}]})
    seen: list[bytes] = []

    def answers(request: dict[str, Any]) -> str:
        seen.append(json.dumps(request).encode())
        if b"forged" in seen[-1]:
            words = "messages.1.content.0: Invalid `signature` in `thinking` block"
            raise ModelError("refused", f"400: {words}", provider_message=words)
        return "Fine."

    result = Engine(session, model=Scripted([answers, answers, answers], "anthropic")).run_sync("Go on.")
    assert (result.status, result.text) == ("completed", "Fine.")
    assert [b"forged" in each for each in seen][:2] == [True, False]
    assert any("sent again without reasoning" in note for note in result.notes)
    assert any(b"forged" in (message.raw or b"") for message in session.messages())
