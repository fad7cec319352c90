"""HTTP transports that take over the model calls of a client and pass everything else on as it is.

The official clients speak through `httpx2`, Google's also through `httpx`. What is written here fits both: the classes
get their bases from the library at hand.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any, ClassVar

from anyio import to_thread

from windowsill import providers
from windowsill.clients.exchange import Exchange, Recorder
from windowsill.clients.routes import Route, route
from windowsill.errors import InputError, WindowsillError
from windowsill.session import Session

LENGTHS = frozenset({b"content-length", b"transfer-encoding"})
"""Headers of a request that are no longer true when its body is another."""

SIGNATURE = "AWS4-HMAC"
"""How a signature over the body begins, in the header of those who sign it."""

UNPACKED = LENGTHS | {b"content-encoding"}
"""Headers of an answer that are no longer true when it was unpacked on its way."""


class WrappedClient:
    """What the transports of one wrapped client share."""

    def __init__(
        self,
        session: Session | str,
        *,
        resends: bool | None = None,
        error: type[Exception] | None = None,
        owner: Any = None,
    ) -> None:
        self._session = session
        self._named = isinstance(session, str)
        self._resends = resends
        self._error = error
        self._lock = Lock()
        self.owner = owner
        """Kept alive as long as the door: some clients close their connections when they are collected."""

    def route(self, request: Any) -> Route | None:
        """The model call that a request is, if it is one to take over."""
        return route(request.url.path) if request.method == "POST" else None

    def exchange(self, request: Any, found: Route, body: bytes) -> Exchange:
        """Begin a call."""
        with self._let_through():
            if request.headers.get("authorization", "").startswith(SIGNATURE):
                raise InputError(
                    "the request is signed, so its body cannot be another one",
                    remedy="use `session.compose` and `session.add` around the calls of this client",
                )
            return Exchange(self._opened(found, body), found, body, resends=self._resends)

    def close(self) -> None:
        """Close the session, if it was opened here."""
        with self._lock:
            if self._named and isinstance(self._session, Session):
                self._session.close()

    def composed(self, exchange: Exchange) -> bytes:
        """The body to send."""
        with self._let_through():
            return exchange.request()

    def _opened(self, found: Route, body: bytes) -> Session:
        """The session; one that was only named is opened with the model of the first call."""
        with self._lock:
            if isinstance(self._session, str):
                self._session = Session.open(self._session, model=found.model or providers.model_of(body) or None)
            return self._session

    @contextmanager
    def _let_through(self) -> Iterator[None]:
        """Give our errors a form that the client does not take for a failed connection: it would try again."""
        try:
            yield
        except WindowsillError as error:
            if self._error is None:
                raise
            raise _as_one_of(error, self._error) from error


def _as_one_of(error: WindowsillError, theirs: type[Exception]) -> WindowsillError:
    """The same error, which is also one of the client's own."""
    ours = type(error)
    kind = type(ours.__name__, (ours, theirs), {"__module__": ours.__module__, "__doc__": ours.__doc__})
    twin: WindowsillError = kind.__new__(kind, *error.args)
    twin.__dict__.update(error.__dict__)
    return twin


def with_body(library: Any, request: Any, body: bytes, more: Mapping[str, str]) -> Any:
    """A request with another body, and more headers; what the client itself says in one of them stays in it."""
    joined = {name: ",".join([*request.headers.get_list(name), value]) for name, value in more.items()}
    replaced = LENGTHS | {name.lower().encode() for name in joined}
    headers = [(name, value) for name, value in request.headers.raw if name.lower() not in replaced]
    headers += [(name.encode(), value.encode()) for name, value in joined.items()]
    return library.Request(request.method, request.url, headers=headers, content=body, extensions=request.extensions)


def unpacked(library: Any, response: Any, **content: Any) -> Any:
    """An answer with its bytes as they are after decompression."""
    headers = [(name, value) for name, value in response.headers.raw if name.lower() not in UNPACKED]
    return library.Response(response.status_code, headers=headers, extensions=response.extensions, **content)


LIBRARIES = ("httpx2", "httpx")

PACKED = "content-encoding"


def through(client: Any, door: WrappedClient) -> Any:
    """An HTTP client that sends through `client`, with the model calls taken over.

    It builds requests as `client` does, with its headers, parameters and cookies, and closes it when it is closed.
    """
    library = _library(client)
    before = getattr(client, "_transport", None)
    if isinstance(before, _Sending):
        # It was wrapped before: the call goes through one session only, the last one stated.
        client = before.inner
    later = isinstance(client, library.AsyncClient)
    made = (
        _for(library, _AsyncTransport, "AsyncBaseTransport", _AsyncPassing, "AsyncByteStream")
        if later
        else _for(library, _Transport, "BaseTransport", _Passing, "SyncByteStream")
    )
    kind = library.AsyncClient if later else library.Client
    return kind(
        transport=made(client, door),
        timeout=client.timeout,
        headers=client.headers,
        params=client.params,
        cookies=client.cookies,
    )


def _library(client: Any) -> Any:
    for kind in type(client).__mro__:
        name = kind.__module__.partition(".")[0]
        if name in LIBRARIES:
            return importlib.import_module(name)
    raise InputError(
        f"a {type(client).__name__} sends its requests in a way that cannot be taken over",
        remedy="use `session.compose` and `session.add` around its calls",
    )


@cache
def _for(library: Any, transport: type, base: str, passing: type, stream: str) -> Any:
    """A transport as this library wants it."""
    made = type(passing.__name__, (passing, getattr(library, stream)), {})
    return type(transport.__name__, (transport, getattr(library, base)), {"library": library, "passing": made})


class _Listening:
    """The bytes of an answer, listened to as they pass."""

    def __init__(self, response: Any, recorder: Recorder | None) -> None:
        self._response = response
        self._recorder = recorder

    def _hear(self, chunk: bytes) -> bytes:
        if self._recorder is not None:
            self._recorder.feed(chunk)
        return chunk

    def _end(self) -> None:
        if self._recorder is not None:
            self._recorder.close()


class _Passing(_Listening):
    def __iter__(self) -> Iterator[bytes]:
        response = self._response
        # What is not packed is taken as it comes: the library's own way through it costs more than all we do.
        chunks = response.iter_bytes() if PACKED in response.headers else response.stream
        hear = self._hear
        for chunk in chunks:
            yield hear(chunk)
        self._end()
        response.close()

    def close(self) -> None:
        self._end()
        self._response.close()


class _AsyncPassing(_Listening):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        response = self._response
        chunks = response.aiter_bytes() if PACKED in response.headers else response.stream
        hear = self._hear
        async for chunk in chunks:
            yield hear(chunk)
        await to_thread.run_sync(self._end)
        await response.aclose()

    async def aclose(self) -> None:
        # Recorded before anything is awaited: a task that is being cancelled gets no further.
        self._end()
        await self._response.aclose()


class _Sending:
    """What both kinds of transport hold."""

    library: ClassVar[Any]
    passing: ClassVar[Any]

    def __init__(self, inner: Any, door: WrappedClient) -> None:
        self.inner = inner
        self._door = door

    def _passed(self, response: Any, recorder: Recorder | None = None) -> Any:
        return unpacked(self.library, response, stream=self.passing(response, recorder))


class _Transport(_Sending):
    def handle_request(self, request: Any) -> Any:
        found = self._door.route(request)
        if found is None:
            return self._passed(self.inner.send(request, stream=True))
        exchange = self._door.exchange(request, found, request.read())
        body: bytes | None = self._door.composed(exchange)
        with exchange.call(request.url.host, request.url.port):
            while body is not None:
                response = self.inner.send(with_body(self.library, request, body, exchange.headers), stream=True)
                if exchange.streams(response.status_code, response.headers.get("content-type", "")):
                    return self._passed(response, exchange.recorder())
                answer = response.read()
                body = exchange.retry(response.status_code, answer)
            exchange.answer(response.status_code, answer)
        return unpacked(self.library, response, content=answer)

    def close(self) -> None:
        self._door.close()
        self.inner.close()


class _AsyncTransport(_Sending):
    """What touches the disk is done in a thread, so that no other task waits for it."""

    async def handle_async_request(self, request: Any) -> Any:
        found = self._door.route(request)
        if found is None:
            return self._passed(await self.inner.send(request, stream=True))
        exchange = self._door.exchange(request, found, await request.aread())
        body: bytes | None = await to_thread.run_sync(self._door.composed, exchange)
        with exchange.call(request.url.host, request.url.port):
            while body is not None:
                response = await self.inner.send(with_body(self.library, request, body, exchange.headers), stream=True)
                if exchange.streams(response.status_code, response.headers.get("content-type", "")):
                    return self._passed(response, exchange.recorder())
                answer = await response.aread()
                body = await to_thread.run_sync(exchange.retry, response.status_code, answer)
            await to_thread.run_sync(exchange.answer, response.status_code, answer)
        return unpacked(self.library, response, content=answer)

    async def aclose(self) -> None:
        self._door.close()
        await self.inner.aclose()
