"""What the proxy adds: time to the first byte of a large request, and throughput of streams, against a bare relay."""

from __future__ import annotations

import json
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from bench.measure import show
from windowsill.proxy.server import Proxy, machine_key
from windowsill.store import open_store

EVENTS = 2_000
MODEL = "claude-sonnet-5"
WORD = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "word "}}


def events(count: int) -> Iterator[bytes]:
    """Yield a streamed answer of so many pieces."""
    usage = {"input_tokens": 50_000, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "content": [], "model": MODEL, "usage": usage}
    rows: list[dict[str, Any]] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *([WORD] * count),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": count}},
        {"type": "message_stop"},
    ]
    for row in rows:
        yield f"event: {row['type']}\ndata: {json.dumps(row)}\n\n".encode()


async def answer(request: Request) -> StreamingResponse:
    """Answer as a provider: a stream as long as the header says."""
    await request.body()
    pieces = list(events(int(request.headers.get("x-pieces", "1"))))

    async def stream():
        for piece in pieces:
            yield piece

    return StreamingResponse(stream(), media_type="text/event-stream")


class Relay:
    """The least that a proxy can do: read a request, send it on, pass the answer."""

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self._client = httpx2.AsyncClient(timeout=None)

    async def __call__(self, request: Request) -> StreamingResponse:
        body = await request.body()
        kept = [(name, value) for name, value in request.headers.raw if name not in (b"host", b"content-length")]
        sent = httpx2.Request("POST", f"{self._upstream}/v1/messages", headers=kept, content=body)
        response = await self._client.send(sent, stream=True)
        return StreamingResponse(response.aiter_raw(), media_type="text/event-stream")


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """Serve an application on a free port, in a thread of its own."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", ws="none"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)


def first_byte(client: httpx2.Client, url: str, body: bytes, pieces: int = 1) -> tuple[float, float]:
    """Return the seconds to the first byte, and to the last."""
    start = time.perf_counter()
    headers = {"x-api-key": "k", "x-pieces": str(pieces), "x-windowsill-session": "bench"}
    with client.stream("POST", f"{url}/v1/messages", content=body, headers=headers) as response:
        pieces_read = response.iter_raw()
        next(pieces_read)
        first = time.perf_counter() - start
        for _ in pieces_read:
            pass
    return first, time.perf_counter() - start


def run(*, quick: bool = False) -> None:
    """Measure both in turn, so that a busy machine slows both."""
    rounds = 20 if quick else 60
    roles = ("user", "assistant")
    messages = [{"role": roles[number % 2], "content": f"{number} " + "word " * 1_000} for number in range(40)]
    with (
        tempfile.TemporaryDirectory() as place,
        serving(Starlette(routes=[Route("/v1/messages", answer, methods=["POST"])])) as upstream,
        serving(Starlette(routes=[Route("/v1/messages", Relay(upstream).__call__, methods=["POST"])])) as relay,
    ):
        store = open_store(Path(place))
        app = Proxy(store, upstreams={"anthropic": upstream}, key=machine_key(Path(place)))
        with serving(app) as proxy, httpx2.Client(timeout=None) as client:
            taken: dict[str, list[float]] = {relay: [], proxy: []}
            for number in range(rounds):
                messages.append({"role": "user", "content": f"question {number}"})
                body = json.dumps({"model": MODEL, "max_tokens": 10, "stream": True, "messages": messages}).encode()
                for url, times in taken.items():
                    times.append(first_byte(client, url, body)[0])
                messages.append({"role": "assistant", "content": "word "})
            added = 1_000 * (statistics.median(taken[proxy]) - statistics.median(taken[relay]))
            size = f"{len(body) // 1_000:,} KB"
            show(f"first byte of a request of {size}, added ms", f"{added:.1f}", "<= 5", met=added <= 5)
            whole: dict[str, list[float]] = {relay: [], proxy: []}
            for _ in range(3 if quick else 9):
                for url, times in whole.items():
                    times.append(first_byte(client, url, body, EVENTS)[1])
            lost = 1 - min(whole[relay]) / min(whole[proxy])
            show(f"throughput lost on a stream of {EVENTS:,} events", f"{lost:.0%}", "<= 15%", met=lost <= 0.15)
        store.close()
