"""What reading and rendering a request costs against JSON alone, and what listening to a stream costs on top of it.

Processor time, the ways taken in turns, the best of several: what else the machine does meets all of them, and noise
only ever adds.
"""

from __future__ import annotations

import multiprocessing
import random
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from bench.measure import best_of, show
from bench.trace import SYSTEM, TASK, prose, turns
from windowsill import providers
from windowsill.providers import streams

SIZES = (500, 5_000, 50_000)
MEASURED = 5_000
WORDS = 20_000
"""Deltas of the recorded stream: a long answer."""

READ = 16 * 1024
"""What a client reads at once; several events arrive together when the network is faster than the reader."""

ROUNDS = 9
"""How often each way is taken; the best counts."""

ANSWER = 4_000
"""Deltas of an answer that the official clients read: they take their time over each."""


def run(*, quick: bool) -> None:
    """Print the figures."""
    for name in ("openai", "anthropic", "responses", "gemini"):
        _requests(name, SIZES[:2] if quick else SIZES)
    for name in ("openai", "anthropic", "responses", "gemini"):
        _streams(name, WORDS // 10 if quick else WORDS)
    for name in ("openai", "anthropic", "responses", "gemini"):
        # Of a shorter answer it would be the request and its record that are measured, not the events.
        _wrapped(name, rounds=3 if quick else ROUNDS)


def _requests(name: str, sizes: tuple[int, ...]) -> None:
    first = 0.0
    for size in sizes:
        body = msgspec.json.encode(request(name, size))
        read = providers.read_request(body, format=name)
        assert providers.render_request(read) == body
        alone, ours = _in_turns(
            max(5, 40_000 // size),
            lambda body=body: msgspec.json.encode(msgspec.json.decode(body)),
            lambda body=body: providers.render_request(providers.read_request(body, format=name)),
        )
        ratio = ours / alone
        each = ours / size
        first = first or each
        figure = f"{name}: read and render {size:,} messages against JSON alone"
        met = ratio <= 3.0 if size == MEASURED else None
        show(figure, f"{ratio:.2f} x", "<= 3.0" if met is not None else f"{each / first:.2f} x a message", met=met)


def _in_turns(times: int, *ways: Callable[[], object]) -> list[float]:
    """Return the least processor time of each way."""
    best = [float("inf")] * len(ways)
    for _ in range(times):
        for place, way in enumerate(ways):
            start = time.process_time()
            way()
            best[place] = min(best[place], time.process_time() - start)
    return best


def request(name: str, size: int) -> dict[str, Any]:
    """Make a body of about `size` messages: a tool loop as agents have it."""
    messages: list[dict[str, Any]] = []
    for assistant, results in turns(10**9):
        messages += _NATIVE[name](assistant, results)
        if len(messages) >= size:
            break
    return _BODY[name](messages[:size])


def _anthropic(assistant: dict[str, Any], results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    uses = [{"type": "tool_use", "id": call[0], "name": call[1], "input": call[2]} for call in _calls(assistant)]
    answers = [
        {"type": "tool_result", "tool_use_id": each["tool_call_id"], "content": each["content"]} for each in results
    ]
    content = [{"type": "text", "text": assistant["content"]}, *uses]
    return [{"role": "assistant", "content": content}, {"role": "user", "content": answers}]


def _gemini(assistant: dict[str, Any], results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    calls = [{"functionCall": {"name": name, "args": args}} for _, name, args in _calls(assistant)]
    answers = [
        {"functionResponse": {"name": name, "response": {"output": each["content"]}}}
        for (_, name, _), each in zip(_calls(assistant), results, strict=True)
    ]
    return [
        {"role": "model", "parts": [{"text": assistant["content"]}, *calls]},
        {"role": "user", "parts": answers},
    ]


def _responses(assistant: dict[str, Any], results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    said = {"type": "output_text", "text": assistant["content"], "annotations": []}
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [said]}
    calls = [
        {"type": "function_call", "call_id": id, "name": name, "arguments": msgspec.json.encode(args).decode()}
        for id, name, args in _calls(assistant)
    ]
    answers = [
        {"type": "function_call_output", "call_id": each["tool_call_id"], "output": each["content"]} for each in results
    ]
    return [message, *calls, *answers]


def _calls(assistant: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (call["id"], call["function"]["name"], msgspec.json.decode(call["function"]["arguments"]))
        for call in assistant["tool_calls"]
    ]


_NATIVE: dict[str, Callable[..., list[dict[str, Any]]]] = {
    "anthropic": _anthropic,
    "gemini": _gemini,
    "openai": lambda assistant, results: [assistant, *results],
    "responses": _responses,
}
_BODY: dict[str, Callable[..., dict[str, Any]]] = {
    "anthropic": lambda messages: {
        "model": "m",
        "max_tokens": 9,
        "system": SYSTEM,
        "messages": [{"role": "user", "content": TASK}, *messages],
    },
    "gemini": lambda messages: {
        "systemInstruction": {"parts": [{"text": SYSTEM}]},
        "contents": [{"role": "user", "parts": [{"text": TASK}]}, *messages],
    },
    "openai": lambda messages: {"model": "m", "messages": [{"role": "user", "content": TASK}, *messages]},
    "responses": lambda messages: {
        "model": "m",
        "instructions": SYSTEM,
        "input": [{"type": "message", "role": "user", "content": TASK}, *messages],
    },
}


def _streams(name: str, words: int) -> None:
    sent = recording(name, words)
    chunks = [sent[place : place + READ] for place in range(0, len(sent), READ)]
    count = sum(1 for _ in _events(chunks))

    def alone() -> None:
        for event in _events(chunks):
            _decode(event)

    def ours() -> streams.Stream:
        stream = streams.stream(name)
        for chunk in chunks:
            stream.feed(chunk)
        return stream

    assert not ours().partial
    base, taken = best_of(7, alone), best_of(7, ours)
    nanoseconds = f"{taken / count * 1e9:,.0f} ns an event"
    show(f"{name}: feeding {count:,} events against splitting and decoding", f"{taken / base:.2f} x", nanoseconds)
    with _server(sent) as address:
        raw, decoded, fed = _over_socket(address, name)
        # No target: 10 % of reading bytes is less than decoding them costs. What a user pays is measured in `_wrapped`.
        figure = f"{name}: feeding while reading bytes from a socket, event by event"
        least = f"splitting and decoding alone {decoded / raw - 1:+.1%}; {raw / count * 1e9:,.0f} ns an event without"
        show(figure, f"{fed / raw - 1:+.1%}", least)


_decode = msgspec.json.Decoder().decode


def _events(chunks: list[bytes]) -> Iterator[bytes]:
    """Split off the data of each event: the least a client has to do."""
    rest = b""
    for chunk in chunks:
        *events, rest = (rest + chunk).split(b"\n\n")
        for event in events:
            data = event[event.find(b"data: ") + 6 :]
            if data != b"[DONE]":
                yield data


def recording(name: str, words: int) -> bytes:
    """Make an answer of so many deltas as the provider sends it."""
    pieces = [f" {word}" for word in prose(random.Random(3), words * 9).split()[:words]]
    return b"".join(_RECORDED[name](pieces))


def _event(value: dict[str, Any], *, named: bool = True) -> bytes:
    name = f"event: {value['type']}\n".encode() if named else b""
    return name + b"data: " + msgspec.json.encode(value) + b"\n\n"


def _openai_stream(pieces: list[str]) -> Iterator[bytes]:
    head = {"id": "chatcmpl-Abc", "object": "chat.completion.chunk", "created": 7, "model": "gpt-5"}
    head |= {"service_tier": "default", "system_fingerprint": "fp_1"}

    def chunk(delta: dict[str, Any], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return _event({**head, "choices": [choice], "usage": None, "obfuscation": "a1b2c3d4"}, named=False)

    yield chunk({"role": "assistant", "content": "", "refusal": None})
    for piece in pieces:
        yield chunk({"content": piece})
    yield chunk({}, "stop")
    yield b"data: [DONE]\n\n"


def _anthropic_stream(pieces: list[str]) -> Iterator[bytes]:
    usage = {"input_tokens": 9, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    yield _event({"type": "message_start", "message": message})
    yield _event({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
    for piece in pieces:
        yield _event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}})
    yield _event({"type": "content_block_stop", "index": 0})
    yield _event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}})
    yield _event({"type": "message_stop"})


def _responses_stream(pieces: list[str]) -> Iterator[bytes]:
    response: dict[str, Any] = {"id": "resp_1", "object": "response", "status": "in_progress", "output": []}
    item = {"id": "msg_1", "type": "message", "status": "in_progress", "role": "assistant", "content": []}
    part = {"type": "output_text", "text": "", "annotations": []}
    at = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    yield _event({"type": "response.created", "response": response})
    yield _event({"type": "response.output_item.added", "output_index": 0, "item": item})
    yield _event({"type": "response.content_part.added", **at, "part": part})
    for number, piece in enumerate(pieces):
        delta = {"sequence_number": number, **at, "delta": piece, "logprobs": [], "obfuscation": "a1b2c3d4"}
        yield _event({"type": "response.output_text.delta", **delta})
    part = {**part, "text": "".join(pieces)}
    done = {**item, "status": "completed", "content": [part]}
    yield _event({"type": "response.output_text.done", **at, "text": part["text"]})
    yield _event({"type": "response.output_item.done", "output_index": 0, "item": done})
    yield _event({"type": "response.completed", "response": {**response, "status": "completed", "output": [done]}})


def _gemini_stream(pieces: list[str]) -> Iterator[bytes]:
    for number, piece in enumerate(pieces):
        candidate: dict[str, Any] = {"content": {"parts": [{"text": piece}], "role": "model"}, "index": 0}
        if number + 1 == len(pieces):
            candidate["finishReason"] = "STOP"
        usage = {"promptTokenCount": 9, "candidatesTokenCount": number, "totalTokenCount": number + 9}
        usage["promptTokensDetails"] = [{"modality": "TEXT", "tokenCount": 9}]
        value = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-3", "responseId": "r1"}
        yield _event(value, named=False)


_RECORDED: dict[str, Callable[[list[str]], Iterator[bytes]]] = {
    "anthropic": _anthropic_stream,
    "gemini": _gemini_stream,
    "openai": _openai_stream,
    "responses": _responses_stream,
}


@contextmanager
def _server(body: bytes) -> Iterator[str]:
    """Start a server in a process of its own that sends the recording to whoever asks, an event at a time."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        process = multiprocessing.get_context("fork").Process(target=_serve, args=(listening, body), daemon=True)
        process.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        finally:
            process.terminate()
            process.join()


def _serve(listening: socket.socket, body: bytes) -> None:
    events = [event + b"\n\n" for event in body.split(b"\n\n") if event]
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    parts = [head, *(b"%x\r\n%s\r\n" % (len(event), event) for event in events), b"0\r\n\r\n"]
    while True:
        connection, _ = listening.accept()
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while _asked(connection):
                for part in parts:
                    connection.sendall(part)


def _asked(connection: socket.socket) -> bool:
    """Whether another whole request has come."""
    came = b""
    while b"\r\n\r\n" not in came:
        more = connection.recv(65536)
        if not more:
            return False
        came += more
    head, _, body = came.partition(b"\r\n\r\n")
    lengths = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    missing = sum(map(int, lengths)) - len(body)
    while missing > 0:
        missing -= len(connection.recv(65536))
    return True


def _over_socket(address: str, name: str) -> tuple[float, float, float]:
    """Processor time to read the raw bytes with the client that the SDKs use, to split and decode too, and to feed."""
    import httpx2

    def discard(chunk: bytes) -> None:
        del chunk

    def split() -> Callable[[bytes], object]:
        held = b""

        def take(chunk: bytes) -> None:
            nonlocal held
            *events, held = (held + chunk).split(b"\n\n")
            for event in events:
                data = event[event.find(b"data: ") + 6 :]
                if data != b"[DONE]":
                    _decode(data)

        return take

    ways = (lambda: discard, split, lambda: streams.stream(name).feed)
    best = [float("inf")] * len(ways)
    with httpx2.Client() as client:
        # A stream waits for its server most of the time: only the time of this process tells what listening adds.
        for _ in range(ROUNDS):
            for place, way in enumerate(ways):
                take = way()
                start = time.process_time()
                with client.stream("GET", address) as response:
                    for chunk in response.iter_raw():
                        take(chunk)
                best[place] = min(best[place], time.process_time() - start)
    raw, decoded, fed = best
    return raw, decoded, fed


def _wrapped(name: str, *, rounds: int) -> None:
    """Measure what a user pays: the official client reading a streamed answer, as it is and wrapped."""
    import windowsill

    clocks = (time.process_time, time.perf_counter)
    best = {(way, clock): float("inf") for way in ("plain", "wrapped") for clock in clocks}
    count = 0
    with _server(recording(name, ANSWER)) as address, tempfile.TemporaryDirectory() as folder:
        client, model, read = _speaker(name, address.rstrip("/"))
        kept = []
        for number in range(rounds):
            session = windowsill.Session.open(f"s{number}", model=model, store=folder)
            # Kept to the end: Google's closes the connections they share when it is collected.
            kept.append(windowsill.wrap(client, session))
            for way, each in (("plain", client), ("wrapped", kept[-1])):
                starts = [clock() for clock in clocks]
                count = sum(1 for _ in read(each))
                for clock, start in zip(clocks, starts, strict=True):
                    best[way, clock] = min(best[way, clock], clock() - start)
            assert len(list(session.messages())) == 2
    share, wall = (best["wrapped", clock] / best["plain", clock] - 1 for clock in clocks)
    each = best["plain", time.process_time] / count * 1e6
    figure = f"{name}: the official client reads {count:,} events, wrapped"
    show(
        figure, f"{share:+.1%}", f"<= 10% (by the clock {wall:+.1%}; {each:.0f} us an event without)", met=share <= 0.1
    )


def _speaker(name: str, address: str) -> tuple[Any, str, Callable[[Any], Any]]:
    """Return an official client, a model of its provider, and how the client is asked for a stream."""
    asked: list[Any] = [{"role": "user", "content": TASK}]
    if name == "anthropic":
        from anthropic import Anthropic

        model = "claude-opus-4-5"
        ask = {"model": model, "max_tokens": 99, "messages": asked, "stream": True}
        return Anthropic(base_url=address, api_key="none"), model, lambda client: client.messages.create(**ask)
    if name == "gemini":
        from google.genai import Client

        model = "gemini-2.5-pro"
        google = Client(api_key="none", http_options={"base_url": address})
        return google, model, lambda client: client.models.generate_content_stream(model=model, contents=TASK)
    from openai import OpenAI

    made = OpenAI(base_url=f"{address}/v1", api_key="none")
    if name == "openai":
        return made, "gpt-5", lambda client: client.chat.completions.create(model="gpt-5", messages=asked, stream=True)
    return made, "gpt-5", lambda client: client.responses.create(model="gpt-5", input=TASK, stream=True)
