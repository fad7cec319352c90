"""Answers on their way to a client: what is sent when, and when the copy of a stream is whole."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.proxy.answers import MOST_TOGETHER, Relay, StreamCopy

pytestmark = pytest.mark.unit


async def relayed(pieces, *, sent=None, gone=None, slow=None):
    """Relay these pieces; return the messages for the server."""
    messages = [] if sent is None else sent

    async def send(message):
        messages.append(message)
        if slow is not None and message.get("body"):
            await slow.wait()

    async def receive():
        await (gone or asyncio.Event()).wait()
        return {"type": "http.disconnect"}

    await Relay(pieces, 200, [(b"x", b"y")])({}, receive, send)
    return messages


def bodies(messages):
    return [each["body"] for each in messages if each.get("more_body")]


@given(st.lists(st.tuples(st.binary(max_size=8), st.integers(0, 3)), max_size=100))
def test_all_bytes_are_sent_in_their_order(script):
    """However they come: at once, or with the loop running on between."""

    async def pieces():
        for piece, waits in script:
            for _ in range(waits):
                await asyncio.sleep(0)
            yield piece

    messages = asyncio.run(relayed(pieces()))
    assert messages[0] == {"type": "http.response.start", "status": 200, "headers": [(b"x", b"y")]}
    assert b"".join(bodies(messages)) == b"".join(piece for piece, _ in script)
    assert messages[-1] == {"type": "http.response.body", "body": b"", "more_body": False}


def test_what_came_together_is_sent_together():
    """A stream that comes faster than it goes takes few steps."""

    async def pieces():
        for _ in range(10 * MOST_TOGETHER):
            yield b"p"

    assert bodies(asyncio.run(relayed(pieces()))) == [b"p" * MOST_TOGETHER] * 10


def test_nothing_waits_for_what_has_not_come():
    """Each piece is sent before the provider writes the next."""
    sent = []

    async def pieces():
        for number in range(5):
            yield b"%d" % number
            for _ in range(10):
                await asyncio.sleep(0)
            assert bodies(sent)[-1] == b"%d" % number

    asyncio.run(relayed(pieces(), sent=sent))
    assert len(bodies(sent)) == 5


def test_a_slow_client_slows_the_provider():
    """No more is read than can be sent on soon."""
    read = 0

    async def pieces():
        nonlocal read
        for _ in range(1_000):
            read += 1
            yield b"p"

    async def run():
        slow = asyncio.Event()
        running = asyncio.ensure_future(relayed(pieces(), slow=slow))
        for _ in range(100):
            await asyncio.sleep(0)
        assert read <= 2 * MOST_TOGETHER
        slow.set()
        return await running

    assert len(b"".join(bodies(asyncio.run(run())))) == 1_000


def test_a_client_that_goes_away_ends_the_answer():
    """The provider is let go, and nothing is raised."""
    closed = []

    async def pieces():
        try:
            yield b"half"
            await asyncio.Event().wait()
        finally:
            closed.append(True)

    async def run():
        gone, sent = asyncio.Event(), []
        running = asyncio.ensure_future(relayed(pieces(), sent=sent, gone=gone))
        for _ in range(10):
            await asyncio.sleep(0)
        assert bodies(sent) == [b"half"]
        gone.set()
        await running

    asyncio.run(run())
    assert closed == [True]


def test_an_answer_that_breaks_off_is_sent_as_far_as_it_came():
    """Without an end: the client sees that something is missing."""

    async def pieces():
        yield b"one"
        yield b"two"
        raise OSError("torn")

    messages = asyncio.run(relayed(pieces()))
    assert b"".join(bodies(messages)) == b"onetwo"
    assert messages[-1]["more_body"]


def copy(*pieces):
    made = StreamCopy(None, "owner")
    made.pieces.extend(pieces)
    return made


@pytest.mark.parametrize(
    "pieces",
    [
        [b'event: message_stop\ndata: {"type":"message_stop"}\n\n'],
        [b'data: {"type": "message_', b'stop"}\n\n'],
        [b"data: x\n\n", b"data: [DONE]\n\n"],
        [b'data: {"type":"response.completed","response":"', *[b"x" * 1_000] * 200, b'"}\n\n'],
        [b'data: {"type":"message_stop"}\n\n', *[b": ping\n\n"] * 20],
    ],
    ids=["Anthropic", "torn apart", "OpenAI", "repeats the answer", "pings behind it"],
)
def test_a_stream_with_its_last_event_is_whole(pieces):
    """Whoever has it may ask on before the stream is closed."""
    assert copy(*pieces).is_whole


def test_a_stream_whose_last_event_is_not_all_there_is_not_whole():
    """Another conversation of the same account may ask meanwhile."""
    assert not copy(b'data: {"type":"response.completed","response":{"output":[').is_whole
    assert not copy(b'event: message_stop\ndata: {"type":"message_stop"}\n').is_whole


def test_the_words_of_a_model_end_no_stream():
    """It may write about streams."""
    assert not copy(b'data: {"text":"{\\"type\\":\\"message_stop\\"}\\ndata: [DONE]"}\n\n').is_whole
