"""HTTP transports that take over the model calls of a client and pass everything else on as it is.

The official clients speak through `httpx2`, Google's also through `httpx`. What is written here fits both: the classes
get their bases from the library at hand.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Iterator, Mapping
from functools import cache
from typing import Any, ClassVar

from anyio import to_thread

from windowsill.clients.conversations import Conversations
from windowsill.clients.exchange import Exchange, Route, route
from windowsill.errors import InputError, WindowsillError
from windowsill.text import type_name

LIBRARIES = ("httpx2", "httpx")

LENGTHS = frozenset({b"content-length", b"transfer-encoding"})
"""Headers of a request that are no longer true when its body is another."""

PACKED = "content-encoding"

UNPACKED = LENGTHS | {PACKED.encode()}
"""Headers of an answer that are no longer true when it was unpacked on its way."""

SIGNATURE = "AWS4-HMAC"
"""The beginning of a signature over the body, in the header of those who sign it."""


class WrappedClient:
    """The conversations behind one wrapped client, and the form in which our errors reach its caller.

    `owner` is kept alive: some clients close their connections when they are collected.
    """

    def __init__(
        self, conversations: Conversations, *, error: type[Exception] | None = None, owner: Any = None
    ) -> None:
        self._conversations = conversations
        self._error = error
        self._owner = owner

    def begin(self, request: Any, found: Route, body: bytes) -> tuple[Exchange, bytes]:
        """Begin a call: return it with the body to send."""
        try:
            if request.headers.get("authorization", "").startswith(SIGNATURE):
                raise InputError(
                    "the request is signed, so its body cannot be another one",
                    remedy="use `session.compose` and `session.add` around the calls of this client",
                )
            exchange = Exchange(self._conversations, found, body)
            return exchange, exchange.request()
        except WindowsillError as error:
            if self._error is None:
                raise
            # The client must not take our error for a failed connection: it would try again.
            raise _as_one_of(error, self._error) from error

    def close(self) -> None:
        """Close the sessions that were opened here."""
        self._conversations.close()


def _as_one_of(error: WindowsillError, theirs: type[Exception]) -> WindowsillError:
    """Return the same error, which is also one of the client's own."""
    ours = type(error)
    kind = type(ours.__name__, (ours, theirs), {"__module__": ours.__module__, "__doc__": ours.__doc__})
    twin: WindowsillError = kind.__new__(kind, *error.args)
    twin.__dict__.update(error.__dict__)
    return twin


def wrap_http(client: Any, wrapped: WrappedClient) -> Any:
    """Return an HTTP client that sends through `client`, with the model calls taken over.

    It builds requests as `client` does, with its headers, parameters and cookies, and closes it when it is closed.
    """
    library = _library(client)
    before = getattr(client, "_transport", None)
    if isinstance(before, _BaseTransport):
        # It was wrapped before: the call goes through one session only, the last one stated.
        client = before.inner
    if isinstance(client, library.AsyncClient):
        kind = library.AsyncClient
        transport = _transport(library, _AsyncTransport, "AsyncBaseTransport", _AsyncStream, "AsyncByteStream")
    else:
        kind = library.Client
        transport = _transport(library, _Transport, "BaseTransport", _Stream, "SyncByteStream")
    return kind(
        transport=transport(client, wrapped),
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
        f"{type_name(client)} sends its requests in a way that cannot be taken over",
        remedy="use `session.compose` and `session.add` around its calls",
    )


@cache
def _transport(library: Any, transport: type, base: str, stream: type, stream_base: str) -> Any:
    """Make a transport class as this library wants it."""
    own_stream = type(stream.__name__, (stream, getattr(library, stream_base)), {})
    return type(transport.__name__, (transport, getattr(library, base)), {"library": library, "stream": own_stream})


class _BaseStream:
    """The bytes of an answer, which an exchange listens to as they pass."""

    def __init__(self, response: Any, exchange: Exchange | None) -> None:
        self._response = response
        self._exchange = exchange

    def _end(self) -> None:
        if self._exchange is not None:
            self._exchange.close()


class _Stream(_BaseStream):
    def __iter__(self) -> Iterator[bytes]:
        response = self._response
        # What is not packed is taken as it comes: the library's own way through it costs more than all we do. Whoever
        # reads to the end closes the stream then.
        chunks = response.iter_bytes() if PACKED in response.headers else response.stream
        return iter(chunks) if self._exchange is None else map(self._exchange.feed, chunks)

    def close(self) -> None:
        self._end()
        self._response.close()


class _AsyncStream(_BaseStream):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        response, exchange = self._response, self._exchange
        async for chunk in response.aiter_bytes() if PACKED in response.headers else response.stream:
            yield chunk if exchange is None else exchange.feed(chunk)
        await to_thread.run_sync(self._end)
        await response.aclose()

    async def aclose(self) -> None:
        # Recorded before anything is awaited: a task that is being cancelled gets no further.
        self._end()
        await self._response.aclose()


class _BaseTransport:
    library: ClassVar[Any]
    stream: ClassVar[Any]

    def __init__(self, inner: Any, wrapped: WrappedClient) -> None:
        self.inner = inner
        self._wrapped = wrapped

    def _route(self, request: Any) -> Route | None:
        return route(request.url.path) if request.method == "POST" else None

    def _with_body(self, request: Any, body: bytes, more: Mapping[str, str]) -> Any:
        """Return a request with another body, and more headers, to which what the client says in them is added."""
        joined = {name: ",".join([*request.headers.get_list(name), value]) for name, value in more.items()}
        replaced = LENGTHS | {name.lower().encode() for name in joined}
        headers = [(name, value) for name, value in request.headers.raw if name.lower() not in replaced]
        headers += [(name.encode(), value.encode()) for name, value in joined.items()]
        make = self.library.Request
        return make(request.method, request.url, headers=headers, content=body, extensions=request.extensions)

    def _unpacked(self, response: Any, **content: Any) -> Any:
        """Return an answer with its bytes as they are after decompression."""
        headers = [(name, value) for name, value in response.headers.raw if name.lower() not in UNPACKED]
        return self.library.Response(response.status_code, headers=headers, extensions=response.extensions, **content)

    def _streamed(self, response: Any, exchange: Exchange | None = None) -> Any:
        return self._unpacked(response, stream=self.stream(response, exchange))


class _Transport(_BaseTransport):
    def handle_request(self, request: Any) -> Any:
        found = self._route(request)
        if found is None:
            return self._streamed(self.inner.send(request, stream=True))
        exchange, composed = self._wrapped.begin(request, found, request.read())
        body: bytes | None = composed
        with exchange.call(request.url.host, request.url.port):
            while body is not None:
                response = self.inner.send(self._with_body(request, body, exchange.headers), stream=True)
                if exchange.streams(response.status_code, response.headers.get("content-type", "")):
                    exchange.begin_stream()
                    return self._streamed(response, exchange)
                answer = response.read()
                body = exchange.retry(response.status_code, answer)
            exchange.answer(response.status_code, answer)
        return self._unpacked(response, content=answer)

    def close(self) -> None:
        self._wrapped.close()
        self.inner.close()


class _AsyncTransport(_BaseTransport):
    """Does what touches the disk in a thread, so that no other task waits for it."""

    async def handle_async_request(self, request: Any) -> Any:
        found = self._route(request)
        if found is None:
            return self._streamed(await self.inner.send(request, stream=True))
        exchange, composed = await to_thread.run_sync(self._wrapped.begin, request, found, await request.aread())
        body: bytes | None = composed
        with exchange.call(request.url.host, request.url.port):
            while body is not None:
                response = await self.inner.send(self._with_body(request, body, exchange.headers), stream=True)
                if exchange.streams(response.status_code, response.headers.get("content-type", "")):
                    exchange.begin_stream()
                    return self._streamed(response, exchange)
                answer = await response.aread()
                body = await to_thread.run_sync(exchange.retry, response.status_code, answer)
            await to_thread.run_sync(exchange.answer, response.status_code, answer)
        return self._unpacked(response, content=answer)

    async def aclose(self) -> None:
        self._wrapped.close()
        await self.inner.aclose()
