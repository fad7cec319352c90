"""What the tests of models share: something to ask, a way to ask it, and a server that misbehaves on the wire."""

from __future__ import annotations

import json
import socket
import socketserver
import struct
from contextlib import suppress
from threading import Event, Thread
from typing import Any

import anyio
import msgspec
import pytest

from support.model_writers import ENVIRONMENT, MODELS, no_sleep
from support.sessions import opened
from windowsill import Session, providers
from windowsill.agent.models import Answer, Delta, HttpModel, Model, ModelError, ModelRequest
from windowsill.messages import Block, Reasoning, Text, ToolUse, Usage
from windowsill.testing import Server

FORMATS = ("anthropic", "openai", "responses", "gemini", "deepseek")
NAMES = {**MODELS, "deepseek": "deepseek-reasoner"}
SPECS = {format: f"{'openai' if format == 'deepseek' else format}:{name}" for format, name in NAMES.items()}
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
TOOL = {"name": "read", "description": "Reads a file.", "input_schema": SCHEMA}
QUESTION = "How many tests are there?"


def talking(format: str = "openai", **settings: Any) -> Session:
    """A session in which the user has asked something."""
    session = opened(**{"model": NAMES[format], "format": format, "budget": 100_000, **settings})
    session.add(QUESTION)
    return session


def asking(
    session: Session | None = None, *, format: str = "openai", max_output: int = 500, **params: Any
) -> ModelRequest:
    """Return what a loop asks: the session's request, with a tool."""
    session = session or talking(format)
    payload = session.compose_sync(system="You help.", tools=[TOOL], format=format, params=params)
    return ModelRequest(payload=payload, max_output=max_output)


def spent(session: Session) -> list[Usage]:
    """Return what the session knows to have been used, call by call."""
    ledger = session.journal
    entries = ledger.store.read(session.id, 1, ledger.version)
    return [msgspec.msgpack.decode(entry.meta, type=Usage) for entry in entries if entry.kind == "usage"]


def ask(model: Model, asked: ModelRequest | None = None, heard: list[Delta] | None = None) -> Answer:
    async def run() -> Answer:
        listen = (heard if heard is not None else []).append
        return await model.ask(asked or asking(format=model.format), listen)

    return anyio.run(run)


def fault(model: Model, asked: ModelRequest | None = None, heard: list[Delta] | None = None) -> ModelError:
    with pytest.raises(ModelError) as caught:
        ask(model, asked, heard)
    return caught.value


def remote(server: Any, format: str = "openai", **settings: Any) -> HttpModel:
    """A model behind the local server, or behind one that misbehaves."""
    url = server.url + ("/v1" if isinstance(server, Server) and format in {"openai", "responses", "deepseek"} else "")
    settings = {"sleep": no_sleep, "environment": ENVIRONMENT, **settings}
    return HttpModel(f"{SPECS[format]}@{url}", **settings)


def told(body: bytes, format: str) -> list[tuple[str, ...]]:
    """Return what an answer says, in any format."""
    reply = providers.get(format).read_reply(body)
    return [_plain(block) for message in (reply.message, *reply.more) for block in message.blocks]


def _plain(block: Block) -> tuple[str, ...]:
    match block:
        case Text(text=text):
            return ("text", text)
        case Reasoning(text=text, signature=signature, data=data):
            return ("reasoning", text, signature or "", data or "")
        case ToolUse(id=id, name=name, arguments=arguments):
            return ("call", id, name, arguments)
    return (type(block).__name__,)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
HANG, RESET = "hang", "reset"


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def data(value: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def words(text: str) -> bytes:
    return data({"choices": [{"index": 0, "delta": {"role": "assistant", "content": text}}]})


END = data({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}) + b"data: [DONE]\n\n"


class Wire:
    """A server that does to a connection what it is told: bytes to send, `HANG`, or `RESET`; then it closes.

    Each of `scripts` is for one request, the last for all that follow. `hangs` is set when it
    waits, `left` when a client hangs up.
    """

    def __init__(self, *scripts: list[bytes | str]) -> None:
        self.asked = 0
        self.hangs = Event()
        self.left = Event()
        outer = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                connection: socket.socket = self.request
                connection.settimeout(10)
                _take_request(connection)
                script = scripts[min(outer.asked, len(scripts) - 1)]
                outer.asked += 1
                with suppress(OSError):
                    for step in script:
                        outer.act(connection, step)

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def act(self, connection: socket.socket, step: bytes | str) -> None:
        if isinstance(step, bytes):
            connection.sendall(step)
        elif step == RESET:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
        else:
            self.hangs.set()
            if not connection.recv(1):
                self.left.set()

    def __enter__(self) -> Wire:
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _take_request(connection: socket.socket) -> None:
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65_536)
    head, _, body = data.partition(b"\r\n\r\n")
    size = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
    while len(body) < size:
        body += connection.recv(65_536)
