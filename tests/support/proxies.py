"""A proxy that runs in this process, and a provider that answers whatever a test says, piece by piece."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import uvicorn

from windowsill.proxy.server import SOCKETS, Proxy, machine_key
from windowsill.store import open_store

MODEL = "claude-sonnet-4-6"
LONG = "word " * 400

Got = tuple[str, Any, bytes]
Answerer = Callable[[BaseHTTPRequestHandler, bytes], None]


class Running:
    """A proxy with its address and its store."""

    def __init__(self, app: Proxy, url: str, store: Any, loop: asyncio.AbstractEventLoop) -> None:
        self.app = app
        self.url = url
        self._store = store
        self._loop = loop
        self.client = httpx2.Client(timeout=600, verify=False)
        """One for all requests: each that is made looks for certificates."""

    @property
    def store(self) -> Any:
        """The store, once everything that was passed on is recorded."""
        asyncio.run_coroutine_threadsafe(self.app.recorded(), self._loop).result(600)
        return self._store

    @property
    def sessions(self) -> list[str]:
        return sorted(each.id for each in self.store.sessions())


class _Told(uvicorn.Server):
    """A server that says when it takes requests: no test waits by the clock."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = threading.Event()

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self.loop = asyncio.get_running_loop()
        self.listening.set()


@contextmanager
def proxied(place: Path, upstream: str, **settings: Any) -> Iterator[Running]:
    """Run a proxy before one upstream for all providers."""
    store = open_store(place)
    options = settings.pop("options", {"window": 6_000})
    upstreams = {**dict.fromkeys(("anthropic", "openai", "gemini"), upstream), **settings.pop("upstreams", {})}
    app = Proxy(store, upstreams=upstreams, options=options, key=machine_key(place), **settings)
    server = _Told(
        uvicorn.Config(app, port=0, log_level="error", ws=SOCKETS, lifespan="on", timeout_graceful_shutdown=5)
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    assert server.listening.wait(60)
    port = server.servers[0].sockets[0].getsockname()[1]
    running = Running(app, f"http://127.0.0.1:{port}", store, server.loop)
    try:
        yield running
    finally:
        running.client.close()
        server.should_exit = True
        thread.join(60)
        store.close()


def break_off(handler: BaseHTTPRequestHandler, _: bytes) -> None:
    """Begin a streamed answer, and cut the connection."""
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    handler.wfile.write(b"3\r\n: x\r\n")
    handler.connection.shutdown(socket.SHUT_RDWR)


@contextmanager
def upstream(
    answer: Callable[[BaseHTTPRequestHandler, bytes], None],
) -> Iterator[tuple[str, list[tuple[str, Any, bytes]]]]:
    """Run a provider whose answers `answer` writes; yield its address and what it got: path, headers, body."""
    got: list[Got] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            got.append((self.path, self.headers, body))
            answer(self, body)

        do_GET = do_POST = do_HEAD = _any  # noqa: N815 - the names that the library looks for

        def log_message(self, *_: Any) -> None: ...

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None: ...

    server = Quiet(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", got
    finally:
        server.shutdown()
        server.server_close()
        thread.join(60)


def say(handler: BaseHTTPRequestHandler, status: int, body: bytes, **headers: str) -> None:
    """Answer with one body."""
    handler.send_response(status)
    for name, value in {"Content-Type": "application/json", **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def body(*texts: str, **fields: Any) -> dict[str, Any]:
    """A request of Anthropic's: the texts are said in turn."""
    messages = [{"role": ("user", "assistant")[place % 2], "content": text} for place, text in enumerate(texts)]
    return {"model": MODEL, "max_tokens": 100, "messages": messages, **fields}


def post(
    proxy: Running, value: Any, path: str = "/v1/messages", key: str = "key-a", base: str = "", **headers: str
) -> httpx2.Response:
    """Ask through the proxy, or at `base`."""
    content = value if isinstance(value, bytes) else json.dumps(value).encode()
    named = {"x-api-key": key, "anthropic-version": "2023-06-01", "content-type": "application/json"}
    named |= {name.replace("_", "-"): text for name, text in headers.items()}
    return proxy.client.post((base or proxy.url) + path, content=content, headers=named)


def streamed(proxy: Running) -> Any:
    """Ask for a stream."""
    return httpx2.stream("POST", f"{proxy.url}/v1/messages", json=body("Hello", stream=True), timeout=60)


def talk(proxy: Running, turns: int, texts: list[str] | None = None, **headers: str) -> list[str]:
    """Ask on and on as a client with a list of its own does; return the list."""
    texts = [] if texts is None else texts
    for number in range(turns):
        texts.append(f"Question {number}: {LONG}")
        answer = post(proxy, body(*texts), **headers)
        assert answer.status_code == 200, answer.text
        texts.append(answer.json()["content"][0]["text"])
    return texts


def health(proxy: Running) -> Any:
    """Return what the proxy says of itself."""
    return httpx2.get(f"{proxy.url}/__windowsill/health").json()
