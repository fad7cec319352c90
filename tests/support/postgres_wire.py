"""What stands between a client and PostgreSQL: a line that breaks when told to, a pooler in transaction mode."""

from __future__ import annotations

import shutil
import socket
import struct
import tempfile
import threading
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Literal

SOCKET = ".s.PGSQL.5432"

Moment = Literal["before", "after"]


class _Line:
    """Listens in a folder of its own and serves each connection in a thread."""

    def __init__(self, server: Path) -> None:
        self.server = server
        self.folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.folder / SOCKET))
        self._listener.listen(50)
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        shutil.rmtree(self.folder)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        raise NotImplementedError

    def _connect(self) -> socket.socket:
        backend = socket.socket(socket.AF_UNIX)
        backend.connect(str(self.server / SOCKET))
        return backend


class BreakingLine(_Line):
    """Breaks once: before a statement reaches the server, or after it was done and before the answer came back."""

    def __init__(self, server: Path) -> None:
        super().__init__(server)
        self._planned: tuple[bytes, Moment] | None = None
        self.broken = 0

    def break_at(self, statement: bytes, moment: Moment) -> None:
        self._planned = (statement, moment)

    def _serve(self, client: socket.socket) -> None:
        backend = self._connect()
        drop = threading.Event()

        def answers() -> None:
            with suppress(OSError):
                while data := backend.recv(1 << 16):
                    if drop.is_set():
                        break
                    client.sendall(data)
            _close(client, backend)

        threading.Thread(target=answers, daemon=True).start()
        with suppress(OSError):
            while data := client.recv(1 << 20):
                if self._planned and self._planned[0] in data:
                    (_, moment), self._planned = self._planned, None
                    self.broken += 1
                    if moment == "before":
                        break
                    drop.set()
                backend.sendall(data)
        _close(client, backend)


class Pooler(_Line):
    """Gives each transaction another connection to the server, so that nothing kept in one is found again."""

    def __init__(self, server: Path, size: int = 3) -> None:
        self._numbers = count()
        self._size = size
        self._idle: list[socket.socket] = []
        self._greeting = b""
        self._lock = threading.Lock()
        super().__init__(server)

    def __exit__(self, *about: object) -> None:
        super().__exit__(*about)
        with self._lock:
            _close(*self._idle)

    def _serve(self, client: socket.socket) -> None:
        startup = _exactly(client, 4)
        startup += _exactly(client, struct.unpack("!I", startup)[0] - 4)
        with self._lock:
            while len(self._idle) < self._size:
                backend = self._connect()
                backend.sendall(startup)
                self._greeting, _ = _answer(backend)
                self._idle.append(backend)
        client.sendall(self._greeting)
        with suppress(OSError, ConnectionError):
            while True:
                self._transaction(client)
        client.close()

    def _transaction(self, client: socket.socket) -> None:
        request = _request(client)
        while True:
            with self._lock:
                if self._idle:
                    # The one that waited longest: never the one of the transaction before.
                    backend = self._idle.pop(0)
                    break
        while True:
            backend.sendall(request)
            answer, state = _answer(backend)
            client.sendall(answer)
            if state == b"I":
                break
            request = _request(client)
        with self._lock:
            self._idle.append(backend)


def _request(client: socket.socket) -> bytes:
    """All messages up to the one that asks for an answer."""
    found = b""
    while True:
        head = _exactly(client, 5)
        if head[:1] == b"X":
            raise ConnectionError
        found += head + _exactly(client, struct.unpack("!I", head[1:])[0] - 4)
        if head[:1] in b"QS":
            return found


def _answer(backend: socket.socket) -> tuple[bytes, bytes]:
    """All messages up to the one that says the server is ready, and its state."""
    found = b""
    while True:
        head = _exactly(backend, 5)
        body = _exactly(backend, struct.unpack("!I", head[1:])[0] - 4)
        found += head + body
        if head[:1] == b"Z":
            return found, body


def _exactly(source: socket.socket, size: int) -> bytes:
    parts: list[bytes] = []
    while size:
        data = source.recv(min(size, 1 << 20))
        if not data:
            raise ConnectionError
        parts.append(data)
        size -= len(data)
    return b"".join(parts)


def _close(*sockets: socket.socket) -> None:
    for each in sockets:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()
