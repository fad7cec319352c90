"""What the proxy adds to a bare relay: time to the first byte, throughput of streams, memory; and litellm beside it.

Each server has a process of its own, as it would have; they are asked in turn, so that a busy machine slows all.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2

from bench.measure import show

EVENTS = 2_000
MODEL = "claude-sonnet-5"
WORD = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "word "}}
START_SECONDS = 300.0
"""litellm takes its time."""

LITELLM = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true"}
"""It asks for no list of prices, and no key of ours."""

FLAT = 1.10
"""Memory after all requests against that after the first tenth of them."""


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


def serve(role: str, port: int, upstream: str, place: str) -> None:
    """Be one of the servers: the provider, the least that a proxy can do, or the proxy."""
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import StreamingResponse
    from starlette.routing import Route

    from windowsill.proxy.server import Proxy, machine_key
    from windowsill.store import open_store

    streams: dict[int, list[bytes]] = {}
    client = httpx2.AsyncClient(timeout=None)

    async def answer(request: Request) -> StreamingResponse:
        body = await request.body()
        # Words of the request say it: a proxy between may drop headers.
        wanted = int(body.rpartition(b"pieces=")[2].partition(b".")[0] or 1)

        async def stream():
            for piece in streams.setdefault(wanted, list(events(wanted))):
                yield piece

        return StreamingResponse(stream(), media_type="text/event-stream")

    async def relay(request: Request) -> StreamingResponse:
        kept = [(name, value) for name, value in request.headers.raw if name not in (b"host", b"content-length")]
        sent = httpx2.Request("POST", f"{upstream}/v1/messages", headers=kept, content=await request.body())
        response = await client.send(sent, stream=True)
        return StreamingResponse(response.aiter_raw(), media_type="text/event-stream")

    app: Any = Starlette(
        routes=[Route("/v1/messages", relay if role == "relay" else answer, methods=["POST", "HEAD", "GET"])]
    )
    if role == "proxy":
        folder = Path(place)
        app = Proxy(open_store(folder), upstreams={"anthropic": upstream}, key=machine_key(folder))
    uvicorn.run(app, port=port, log_level="error")


@contextmanager
def started(command: list[str]) -> Iterator[tuple[str, int]]:
    """Run a server until the block ends; yield its address and process; `PORT` in the command is a free port."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    process = subprocess.Popen(
        [part.replace("PORT", str(port)) for part in command],
        env={**os.environ, **LITELLM},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"{command[0]} did not start") from None
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}", process.pid
    finally:
        process.terminate()
        process.wait(30)


def own(role: str, upstream: str = "", place: str = "") -> list[str]:
    """Return the command of one of our servers."""
    return [sys.executable, "-c", f"from bench.proxy import serve; serve({role!r}, PORT, {upstream!r}, {place!r})"]


def litellm(place: Path, upstream: str) -> list[str] | None:
    """Return the command of litellm's proxy; it is installed apart from us, as it wants other versions of packages."""
    found = os.environ.get("BENCH_LITELLM") or shutil.which("litellm")
    if found is None:
        made = place / "litellm"
        subprocess.run([sys.executable, "-m", "venv", made], check=True)
        install = [made / "bin" / "pip", "install", "--quiet", "litellm[proxy]"]
        if subprocess.run(install, capture_output=True, check=False).returncode:
            return None
        found = str(made / "bin" / "litellm")
    config = place / "litellm.yaml"
    params = {"model": f"anthropic/{MODEL}", "api_base": upstream, "api_key": "k"}
    config.write_text(json.dumps({"model_list": [{"model_name": MODEL, "litellm_params": params}]}))
    return [found, "--config", str(config), "--port", "PORT", "--host", "127.0.0.1", "--telemetry", "False"]


def ask(client: httpx2.Client, url: str, messages: list[Any], session: str = "bench") -> tuple[float, float]:
    """Return the seconds to the first byte, and to the last."""
    body = json.dumps({"model": MODEL, "max_tokens": 10, "stream": True, "messages": messages}).encode()
    headers = {"x-api-key": "k", "x-windowsill-session": session, "anthropic-version": "2023-06-01"}
    headers |= {"content-type": "application/json"}
    start = time.perf_counter()
    with client.stream("POST", f"{url}/v1/messages", content=body, headers=headers) as response:
        pieces = response.iter_raw()
        next(pieces)
        first = time.perf_counter() - start
        for _ in pieces:
            pass
        if response.status_code != httpx2.codes.OK:
            raise RuntimeError(f"{url} answered {response.status_code}")
    return first, time.perf_counter() - start


def memory(pid: int) -> int:
    """Return the resident bytes of a process."""
    text = Path(f"/proc/{pid}/statm").read_text()
    return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE")


def measure_memory(client: httpx2.Client, url: str, pid: int, count: int) -> None:
    """Ask so many times in conversations of ten turns, with a stream each; show how the memory grew."""
    curve: list[int] = []
    messages: list[Any] = []
    for number in range(count):
        if number % 10 == 0:
            messages = []
        messages.append({"role": "user", "content": f"{number} " + "word " * 200 + "pieces=20."})
        ask(client, url, messages, f"memory-{number // 10}")
        messages.append({"role": "assistant", "content": "word " * 20})
        if number + 1 in [count * tenths // 10 for tenths in (1, 2, 4, 8, 10)]:
            curve.append(memory(pid))
    grown = curve[-1] / curve[0]
    megabytes = ", ".join(f"{each / 1e6:.0f}" for each in curve)
    what = f"memory over {count:,} requests, MB after .1, .2, .4, .8 and all: {megabytes}"
    show(what, f"x{grown:.2f}", f"<= {FLAT}", met=grown <= FLAT)


def run(*, quick: bool = False) -> None:
    """Measure them in turn."""
    rounds = 20 if quick else 60
    roles = ("user", "assistant")
    messages = [{"role": roles[number % 2], "content": f"{number} " + "word " * 1_000} for number in range(40)]
    with (
        tempfile.TemporaryDirectory() as place,
        started(own("provider")) as (upstream, _),
        httpx2.Client(timeout=None) as client,
        started(own("relay", upstream)) as (relay, _),
        started(own("proxy", upstream, place)) as (
            proxy,
            pid,
        ),
    ):
        first: dict[str, list[float]] = {relay: [], proxy: []}
        for number in range(rounds):
            messages.append({"role": "user", "content": f"question {number} pieces=1."})
            for url, times in first.items():
                times.append(ask(client, url, messages)[0])
            messages.append({"role": "assistant", "content": "word "})
        messages.append({"role": "user", "content": f"a long answer pieces={EVENTS}."})
        added = 1_000 * (statistics.median(first[proxy]) - statistics.median(first[relay]))
        size = f"{len(json.dumps(messages)) // 1_000:,} KB"
        show(f"first byte of a request of {size}, added ms", f"{added:.1f}", "<= 5", met=added <= 5)
        whole = {url: [ask(client, url, messages)[1]] for url in (relay, proxy)}
        for _ in range(3 if quick else 15):
            for url, times in whole.items():
                times.append(ask(client, url, messages)[1])
        lost = 1 - min(whole[relay]) / min(whole[proxy])
        show(f"throughput lost on a stream of {EVENTS:,} events", f"{lost:.0%}", "<= 15%", met=lost <= 0.15)
        measure_memory(client, proxy, pid, 500 if quick else 10_000)
        if not quick:
            compare(client, Path(place), upstream, messages, statistics.median(first[relay]), min(whole[relay]))


def compare(client: httpx2.Client, place: Path, upstream: str, messages: list[Any], first: float, whole: float) -> None:
    """Show the same of litellm's proxy, where it can be installed."""
    command = litellm(place, upstream)
    if command is None:
        show("litellm's proxy", "cannot be installed here", "")
        return
    with ExitStack() as running:
        try:
            url, _ = running.enter_context(started(command))
        except RuntimeError as error:
            show("litellm's proxy", str(error)[-40:], "")
            return
        times = [ask(client, url, [*messages[:-1], {"role": "user", "content": "again pieces=1."}]) for _ in range(10)]
        added = 1_000 * (statistics.median(one for one, _ in times) - first)
        show("litellm: first byte, added ms", f"{added:.1f}", "")
        lost = 1 - whole / min(ask(client, url, messages)[1] for _ in range(5))
        show("litellm: throughput lost", f"{lost:.0%}", "")
