"""The door of the local server: HTTP on a free port of this machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Protocol, TypeAlias

import msgspec

from windowsill.testing.seen import public

LARGEST_BODY = 64 * 1024 * 1024

Spoken: TypeAlias = dict[str, Any] | Iterator[bytes]
"""A body, or the events of a stream."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One request as it came, without what says who asks."""

    path: str
    raw: bytes
    headers: dict[str, str] = {}


class Answers(Protocol):
    """Whoever answers what comes in."""

    break_off_after: int | None

    def answer(self, asked: Asked) -> tuple[int, Spoken]:
        """The status, and a body or a stream of events."""


class Listener(ThreadingHTTPServer):
    """Listens on loopback, a thread for each connection."""

    daemon_threads = True

    def __init__(self, owner: Answers) -> None:
        super().__init__(("127.0.0.1", 0), type("Handler", (_Handler,), {"owner": owner}))

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing when a client hung up: that is often what a test is about."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    owner: ClassVar[Answers]
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    """Headers and body are written one after the other: without this every answer waits for the client's receipt."""

    def do_POST(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(min(size, LARGEST_BODY))
        asked = Asked(path=self.path.partition("?")[0], raw=raw, headers=public(dict(self.headers.items())))
        status, spoken = self.owner.answer(asked)
        if isinstance(spoken, dict):
            self._send(status, spoken)
        else:
            self._stream(spoken)

    def _send(self, status: int, body: dict[str, Any]) -> None:
        data = msgspec.json.encode(body)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, events: Iterator[bytes]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for number, event in enumerate(events):
            if self.owner.break_off_after is not None and number >= self.owner.break_off_after:
                break
            self.wfile.write(event)
            self.wfile.flush()
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: tests read `seen`."""
