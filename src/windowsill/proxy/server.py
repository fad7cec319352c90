"""The proxy: takes model calls in, composes them, sends them on, and passes everything else as it is.

It fails open: whatever breaks here, the client's own request goes to the provider, and the health page says so.
"""

from __future__ import annotations

import logging
import os
import secrets
import time
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, closing, nullcontext, suppress
from copy import copy
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from urllib.parse import urlsplit

import anyio
import msgspec
from anyio import to_thread

import windowsill
from windowsill import inspector, providers
from windowsill.clients.conversations import Conversations, Options, by_model, conversation
from windowsill.clients.exchange import OVERFLOW_STATUSES, Exchange, Route, route
from windowsill.errors import InputError, SettingError, WindowsillError
from windowsill.extras import extra
from windowsill.mcp.server import check_token, impatient_protocol, is_loopback, listening
from windowsill.proxy.answers import Relay, StreamCopy
from windowsill.proxy.callers import MARK, SIDE, SUB_AGENT, Caller, caller_of
from windowsill.proxy.compaction import (
    COMPACT,
    REFUSED,
    asks_for_item,
    compacts,
    has_item,
    with_words,
    written_answer,
    written_list,
)
from windowsill.proxy.forward import (
    COUNTS,
    LARGEST_BODY,
    NOT_THERE,
    Headers,
    forwarded,
    join_address,
    parse_upstreams,
    provider_of,
    split_prefixes,
    unpack,
)
from windowsill.proxy.sockets import talk
from windowsill.session import Session
from windowsill.session.client_history import client_history, without_system
from windowsill.store import Store, default_place, open_store
from windowsill.user_function import describe

if TYPE_CHECKING:
    import httpx2
    from starlette.requests import HTTPConnection, Request
    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send
    from starlette.websockets import WebSocket


Answer: TypeAlias = "Response | Relay"
"""To a client: written here, or that of the provider."""

# ruff: noqa: PLC0415 - the packages of the extra are only there for those who installed it

log = logging.getLogger("windowsill.proxy")

OWN = "/__windowsill"
KEY_FILE = "proxy.key"
KEY_BYTES = 32
PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600
TOKEN = "x-windowsill-token"  # noqa: S105 - the name of a header
CONNECT_SECONDS = 15.0
PATIENCE = 30.0
"""Seconds after which a connection is closed that waits for the rest of a request."""

STOP_SECONDS = 20
"""Seconds that answers get to end when the proxy is stopped."""

MOST_OWNERS = 64
MOST_FAULTS = 20
BYTES_PER_TOKEN = 4
"""Of a request: enough to tell one that is far too long for a window."""

SOCKETS = "websockets-sansio"
"""The implementation of websockets that uvicorn takes."""

METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]

OUR_TOOL = b"history_search"
"""One of the tools by which a model reads what left its window: agents may put words before its name."""

IDENTITY = (b"accept-encoding", b"identity")
"""Asked of a provider where the answer is read on its way: what is not packed need not be unpacked."""


class Fault(msgspec.Struct, frozen=True):
    """Something that broke here; the request went through all the same."""

    at: float
    what: str


class Proxy:
    """An ASGI application that stands between agents and providers.

    `store` keeps the conversations; `options` are settings for the sessions that it opens; `upstreams` say where a
    provider is; with a `token` every request has to bring it in the header `x-windowsill-token`. `closing` tells when
    the server ends.
    """

    def __init__(
        self,
        store: Store,
        *,
        upstreams: Mapping[str, str] | None = None,
        options: Options | None = None,
        key: bytes,
        token: str | None = None,
        hosts: tuple[str, ...] = ("127.0.0.1", "localhost", "[::1]"),
        clock: Callable[[], float] = time.time,
        closing: Callable[[], bool] = lambda: False,
    ) -> None:
        with extra("proxy", "the proxy"):
            import httpx2
            from starlette.applications import Starlette
            from starlette.routing import Mount, WebSocketRoute
            from starlette.routing import Route as Endpoint
        self._http = httpx2
        self._store = store
        self._upstreams = {**parse_upstreams(()), **(upstreams or {})}
        self._options = by_model(options)
        self._key = key
        self._token = token
        self._hosts = hosts
        self._clock = clock
        self._started = clock()
        self._owners: OrderedDict[str, Conversations] = OrderedDict()
        self._lock = Lock()
        self.faults: deque[Fault] = deque(maxlen=MOST_FAULTS)
        self.counts: Counter[str] = Counter()
        self._last_session = self._last_folded = ""
        """The conversations that were composed and folded last; none of a sub-agent."""
        self._client: httpx2.AsyncClient | None = None
        self._copies: set[StreamCopy] = set()
        """Of the streams that are passed on, or are being recorded."""
        page = inspector.app(store, token=token, hosts=hosts, health=self.health, closing=closing)
        routes = [
            Mount(f"{OWN}/inspect", page),
            Endpoint("/{path:path}", self._answer, methods=METHODS),
            WebSocketRoute("/{path:path}", self._socket),
        ]
        self._app = Starlette(routes=routes, lifespan=self._lifespan)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._app(scope, receive, send)

    @asynccontextmanager
    async def _lifespan(self, app: object) -> AsyncIterator[None]:
        del app
        # No limit on reading: a model may think for minutes, and the client has a limit of its own.
        timeout = self._http.Timeout(None, connect=CONNECT_SECONDS)
        limits = self._http.Limits(max_connections=None, max_keepalive_connections=64)
        async with self._http.AsyncClient(timeout=timeout, limits=limits, follow_redirects=False) as client:
            self._client = client
            try:
                async with anyio.create_task_group() as self._recorders:
                    yield
            finally:
                for each in self._owners.values():
                    await to_thread.run_sync(each.close)

    # One request

    async def _answer(self, request: Request) -> Answer:
        from starlette.requests import ClientDisconnect

        if (refused := self._refuse(request)) is not None:
            return refused
        path = request.url.path
        if path.startswith(OWN) or (path == "/" and "text/html" in request.headers.get("accept", "")):
            return self._own(path.removeprefix(OWN))
        name, provider, path = split_prefixes(path)
        try:
            raw = await _read(request)
        except ClientDisconnect:
            return _json(400, _error("the request ended before it was whole"))
        if raw is None:
            return _json(413, _error(f"the request is larger than {LARGEST_BODY:,} bytes"))
        call = _Call(request, path, raw, method=request.method, headers=list(request.headers.raw), provider=provider)
        self.counts["requests"] += 1
        if request.method == "POST" and (found := route(path)) is not None:
            return await self._model_call(call, found, name)
        if request.method == "POST" and path.endswith(tuple(COUNTS)):
            return await self._count(call, name)
        if request.method == "POST" and path.endswith(COMPACT):
            return await self._model_call(call, Route("responses"), name)
        return await self._pass(call)

    async def _socket(self, socket: WebSocket) -> None:
        """Answer a socket of Codex: its frames become requests, and the events of their answers frames."""
        name, provider, path = split_prefixes(socket.url.path)
        found = route(path)
        refused = self._refuse(socket)
        if refused is None and (found is None or found.format != "responses"):
            # A client that can do without goes on with requests at once.
            refused = _json(426, _error("no websocket is spoken here: use HTTP"), {"upgrade": "HTTP/1.1"})
        if refused is not None:
            await socket.send_denial_response(refused)
            return

        def ask(headers: Headers, body: bytes) -> Awaitable[Answer]:
            self.counts["requests"] += 1
            call = _Call(socket, path, body, method="POST", headers=headers, provider=provider)
            return self._model_call(call, Route("responses"), name)

        await talk(socket, ask)

    def _refuse(self, request: HTTPConnection) -> Response | None:
        """Refuse what a web page, or a stranger, may have sent."""
        host = request.headers.get("host", "").rpartition(":")[0] or request.headers.get("host", "")
        origin = request.headers.get("origin")
        if self._hosts and host not in self._hosts:
            return _json(403, _error("the header Host names another machine"))
        if (
            origin
            and self._hosts
            and not any(
                origin.startswith((f"http://{each}:", f"https://{each}:"))
                or origin in (f"http://{each}", f"https://{each}")
                for each in self._hosts
            )
        ):
            return _json(403, _error("requests of web pages are not answered"))
        if self._token is not None and not secrets.compare_digest(
            request.headers.get(TOKEN, "").encode(), self._token.encode()
        ):
            return _json(401, _error(f"the header {TOKEN} is missing or wrong"))
        if (provider := split_prefixes(request.url.path)[1]) and provider not in self._upstreams:
            return _json(404, _error(f"/p/{provider} is no provider: {', '.join(self._upstreams)} are"))
        return None

    async def _model_call(self, call: _Call, found: Route, name: str) -> Answer:
        try:
            body = unpack(call.raw, call.headers.get("content-encoding", ""))
            caller = caller_of(call.headers, call.query, body, self._key, name)
            await self.recorded(caller.owner)
            if found.format == "responses":
                call, body = _with_words(call, body)
            compact = call.path.endswith(COMPACT)
            if compact or caller.purpose == "compaction":
                # What a client replaces by a summary may not have been in any request before.
                await to_thread.run_sync(partial(self._take, caller, found, body))
            if (compact or asks_for_item(body)) and not compacts(self._upstream(call)):
                return await self._compact(call, body)
            if compact or caller.purpose == "other" or not self._is_composed(caller, body):
                self.counts[f"passed: {caller.purpose}"] += 1
                return await self._pass(call)
            exchange, composed = await to_thread.run_sync(partial(self._compose, caller, found, body))
        except Exception as error:  # noqa: BLE001 - whatever breaks here, the client's request goes through
            self._note("a request was passed on as it came", error)
            return await self._pass(call)
        same = composed == body
        self._count_call(exchange, not same, len(body), len(composed))
        self.counts["calls with our tools"] += OUR_TOOL in body
        response = await self._send(call, call.raw if same else composed, exchange=exchange, same=same)
        if response.status_code in OVERFLOW_STATUSES:
            refusal = await response.aread()
            again = await to_thread.run_sync(partial(exchange.retry, response.status_code, refusal))
            if again is not None:
                await response.aclose()
                response = await self._send(call, again, exchange=exchange, same=False)
        return self._relay(response, call, exchange, caller.owner)

    def _take(self, caller: Caller, found: Route, body: bytes) -> None:
        """Record the list of a request for a summary, without the words that ask for it where they stand apart."""
        session = self._known(caller)
        if session is None:
            return
        request = providers.read_request(body, format=found.format)
        if client_history(session).continued_by(request):
            _, messages = without_system(request)
            client_history(session).take(messages[: -1 if asks_for_item(body) else None])

    async def _compact(self, call: _Call, body: bytes) -> Answer:
        """Let a provider that may not know compactions answer one; where it does not, the answer is written here."""
        from starlette.responses import StreamingResponse

        response = await self._send(call, call.raw, read=True)
        answer = await response.aread()
        if response.status_code not in REFUSED and (response.is_error or has_item(answer)):
            return self._relay(response, call)
        await response.aclose()
        self.counts["compactions written"] += 1
        if call.path.endswith(COMPACT):
            return _json(200, msgspec.Raw(await to_thread.run_sync(written_list, body)))
        events = await to_thread.run_sync(lambda: list(written_answer(body)))
        return StreamingResponse(iter(events), media_type="text/event-stream")

    def _compose(self, caller: Caller, found: Route, body: bytes) -> tuple[Exchange, bytes]:
        exchange = Exchange(self._conversations(caller.owner), found, body)
        with conversation(caller.session) if caller.session is not None else nullcontext():
            return exchange, exchange.request(verbatim=True)

    def _is_composed(self, caller: Caller, body: bytes) -> bool:
        """Tell whether a request is composed: a client's own compaction only where it could not be sent as it is."""
        if caller.purpose == "conversation":
            return True
        session = self._known(caller)
        return session is not None and len(body) / BYTES_PER_TOKEN > session.model.window

    async def _count(self, call: _Call, name: str) -> Answer:
        """Answer how large a request is: ours, where something of it is folded; else the provider says it."""
        response = None
        try:
            body = unpack(call.raw, call.headers.get("content-encoding", ""))
            caller = caller_of(call.headers, call.query, body, self._key, name)
            format = next(format for end, format in COUNTS.items() if call.path.endswith(end))
            tokens = await to_thread.run_sync(partial(self._counted, caller, format, body))
            if tokens is None:
                response = await self._send(call, call.raw)
                if response.status_code in NOT_THERE:
                    tokens = await to_thread.run_sync(partial(self._estimated, format, body))
        except Exception as error:  # noqa: BLE001 - as above
            self._note("a count was passed on as it came", error)
            tokens = None
        if tokens is None:
            return self._relay(response or await self._send(call, call.raw), call)
        if response is not None:
            await response.aclose()
        field = "totalTokens" if call.path.endswith(":countTokens") else "input_tokens"
        return _json(200, {field: tokens}, {"x-windowsill-estimate": "1"})

    def _counted(self, caller: Caller, format: str, body: bytes) -> int | None:
        session = self._known(caller)
        if session is None:
            return None
        return client_history(session).count(providers.read_request(body, format=format))

    def _estimated(self, format: str, body: bytes) -> int:
        """Count a request for a provider that does not; nothing of it is kept."""
        request = providers.read_request(body, format=format)
        stated = {"model": request.model, **self._options(request.model)}
        with Session.open("count", store=":memory:", config=False, **stated) as made:
            return client_history(made).resume(request).payload.tokens

    async def _pass(self, call: _Call) -> Answer:
        """Send a request on and its answer back, bytes unchanged, nothing recorded."""
        return self._relay(await self._send(call, call.raw), call)

    # Sending and answering

    def _upstream(self, call: _Call) -> str:
        return self._upstreams[call.provider or provider_of(call.path, call.headers)]

    async def _send(
        self, call: _Call, body: bytes, *, exchange: Exchange | None = None, same: bool = True, read: bool = False
    ) -> httpx2.Response:
        assert self._client is not None
        read = read or exchange is not None
        changed = {b"content-encoding"} if not same else set()
        headers = forwarded(call.raw_headers, without=frozenset(changed | ({b"accept-encoding"} if read else set())))
        headers = _with_lists([*headers, IDENTITY] if read else headers, exchange.headers if exchange else {})
        upstream = self._upstream(call)
        address = join_address(upstream, call.path, call.query_text)
        request = self._http.Request(call.method, address, headers=headers, content=body or None)
        try:
            return await self._client.send(request, stream=True)
        except self._http.TransportError as error:
            self.counts["unreachable"] += 1
            told = _error(
                f"{upstream} cannot be reached ({type(error).__name__}: {error})", kind="upstream_unreachable"
            )
            return self._http.Response(
                502, headers={"content-type": "application/json"}, content=msgspec.json.encode(told)
            )

    def _relay(
        self, response: httpx2.Response, call: _Call, exchange: Exchange | None = None, owner: str = ""
    ) -> Relay:
        """Return the answer to a client: that of the provider, recorded where it belongs to an exchange."""
        if exchange is None:
            pieces = self._passed(response, call)
        elif exchange.streams(response.status_code, response.headers.get("content-type", "")):
            pieces = self._passed(response, call, StreamCopy(exchange, owner))
        else:
            pieces = self._whole(response, call, exchange)
        headers = forwarded([(name.lower(), value) for name, value in response.headers.raw])
        length = response.headers.get("content-length")
        if length is not None:
            headers.append((b"content-length", length.encode()))
        if exchange is not None and exchange.session_id:
            headers.append((b"x-windowsill-session", exchange.session_id.encode()))
        return Relay(pieces, response.status_code, headers)

    @asynccontextmanager
    async def _logged(self, response: httpx2.Response, call: _Call) -> AsyncIterator[None]:
        """Close an answer at the end of the block, and log the call."""
        try:
            yield
        except Exception as error:
            # The client sees that the answer broke off, as it would without us.
            self._note("an answer broke off", error)
            raise
        finally:
            with anyio.CancelScope(shield=True):
                await response.aclose()
            taken = 1_000 * (time.monotonic() - call.began)
            log.info("%s %s %d %.0f ms", call.method, call.path, response.status_code, taken)

    async def _passed(
        self, response: httpx2.Response, call: _Call, kept: StreamCopy | None = None
    ) -> AsyncIterator[bytes]:
        """Yield the bytes of an answer as they come; record the copy of a stream, where it has one, when all are there.

        Reading them takes longer than passing them on, so nobody waits for it but the next request of this owner. A
        client that goes away ends this: what came so far is recorded all the same.
        """
        if kept is not None:
            self._copies.add(kept)
        try:
            async with self._logged(response, call):
                async for piece in self._bytes(response):
                    if kept is not None:
                        kept.pieces.append(piece)
                    yield piece
        finally:
            if kept is not None:
                self._record(kept)

    async def _whole(self, response: httpx2.Response, call: _Call, exchange: Exchange) -> AsyncIterator[bytes]:
        """Yield an answer that is no stream, recorded: whoever has it may ask on at once."""
        async with self._logged(response, call):
            body = b"".join([piece async for piece in self._bytes(response)])
        await to_thread.run_sync(partial(exchange.answer, response.status_code, body))
        self._count_usage(exchange)
        yield body

    def _bytes(self, response: httpx2.Response) -> AsyncIterable[bytes]:
        """Return the bytes of an answer as they come, or those that were read before."""
        if response.is_stream_consumed or response.is_closed:
            return self._http.ByteStream(response.content)
        # Not `aiter_raw`, which takes longer for each piece.
        return cast("AsyncIterable[bytes]", response.stream)

    def _record(self, kept: StreamCopy) -> None:
        """Read a stream that was passed on, and record it, behind the back of its client."""
        if kept.begun:
            return
        kept.begun = True

        async def record() -> None:
            try:
                await to_thread.run_sync(kept.record)
                self._count_usage(kept.exchange)
            except Exception as error:  # noqa: BLE001 - the answer is with the client
                self._note("an answer was not recorded", error)
            finally:
                self._copies.discard(kept)
                kept.done.set()

        self._recorders.start_soon(record)

    async def recorded(self, owner: str | None = None) -> None:
        """Wait until the answers that were passed on are recorded: those of one owner, or all."""
        for kept in list(self._copies):
            if owner in (None, kept.owner) and kept.is_whole:
                self._record(kept)
                await kept.done.wait()

    # Conversations

    def _conversations(self, owner: str) -> Conversations:
        closing = None
        with self._lock:
            if owner not in self._owners:
                self._owners[owner] = Conversations(
                    None, store=self._store, options=self._options, within=f"{MARK}{owner}"
                )
            self._owners.move_to_end(owner)
            if len(self._owners) > MOST_OWNERS:
                closing = self._owners.popitem(last=False)[1]
        if closing is not None:
            closing.close()
        return self._owners[owner]

    def _known(self, caller: Caller) -> Session | None:
        """Return the session of a conversation that has a name, if there is one."""
        if caller.session is None or self._store.info(caller.session) is None:
            return None
        return self._conversations(caller.owner).open(caller.session)

    # What is ours

    def _count_call(self, exchange: Exchange, changed: bool, asked: int, sent: int) -> None:  # noqa: FBT001 - counted
        self.counts["calls"] += 1
        self.counts["changed"] += changed
        self.counts["folds"] += exchange.folds
        self.counts["bytes of clients"] += asked
        # Not the gain alone: what is put in the place of folded parts is sent too.
        self.counts["bytes not sent"] += asked - sent
        if exchange.session_id and SUB_AGENT not in exchange.session_id and SIDE not in exchange.session_id:
            self._last_session = exchange.session_id
            self._last_folded = exchange.session_id if exchange.folds else self._last_folded

    def _count_usage(self, exchange: Exchange) -> None:
        if exchange.usage is not None:
            self.counts["tokens of requests"] += exchange.usage.prompt
            self.counts["tokens from the cache"] += exchange.usage.cache_read

    def _note(self, what: str, error: Exception) -> None:
        self.counts["faults"] += 1
        told = f"{what}: {describe(error)}"
        self.faults.append(Fault(self._clock(), told))
        expected = isinstance(error, WindowsillError | OSError | self._http.TransportError)
        log.warning("%s", told, exc_info=not expected)

    def _own(self, path: str) -> Response:
        from starlette.responses import PlainTextResponse, RedirectResponse

        if path in ("", "/", "/inspect"):
            return RedirectResponse(f"{OWN}/inspect/")
        if path == "/health":
            return _json(200, self.health())
        if path == "/metrics":
            return PlainTextResponse(self._metrics(), media_type="text/plain; version=0.0.4")
        return _json(404, _error(f"there is no {OWN}{path}: see {OWN}/health"))

    def health(self) -> dict[str, Any]:
        """Return how the proxy does: what it counted, and what broke here of late."""
        return {
            "status": "ok" if not self.faults else "degraded: requests pass, see faults",
            "version": windowsill.__version__,
            "pid": os.getpid(),
            "seconds": round(self._clock() - self._started, 1),
            "counts": dict(self.counts),
            "session": self._last_session,
            "folded": self._last_folded,
            "upstreams": self._upstreams,
            "faults": [msgspec.to_builtins(each) for each in self.faults],
        }

    def _metrics(self) -> str:
        lines = ["# TYPE windowsill_proxy_total counter"]
        lines += [f'windowsill_proxy_total{{what="{name}"}} {count}' for name, count in sorted(self.counts.items())]
        return "\n".join([*lines, ""])


class _Call:
    """One request of a client, read whole."""

    def __init__(
        self, connection: HTTPConnection, path: str, raw: bytes, *, method: str, headers: Headers, provider: str = ""
    ) -> None:
        self.method = method
        self.provider = provider
        self.path = path
        self.raw = raw
        self.raw_headers = headers
        self.headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}
        self.query = dict(connection.query_params)
        self.query_text = connection.url.query
        self.began = time.monotonic()


async def _read(request: Request) -> bytes | None:
    """Read the body of a request; `None` when it is larger than allowed."""
    pieces: list[bytes] = []
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size > LARGEST_BODY:
            return None
        pieces.append(piece)
    return b"".join(pieces)


def _with_lists(headers: Headers, more: Mapping[str, str]) -> Headers:
    """Add headers; of one that lists values, to the client's own."""
    for name, value in more.items():
        key = name.lower().encode()
        before = [old for known, old in headers if known.lower() == key]
        wanted = [each for each in value.encode().split(b",") if not any(each.strip() in old for old in before)]
        headers = [(known, old) for known, old in headers if known.lower() != key]
        headers.append((key, b",".join([*before, *wanted])))
    return headers


def _error(text: str, kind: str = "windowsill_error") -> dict[str, Any]:
    """Return an error in the shape that the clients of all providers read."""
    return {"type": "error", "error": {"type": kind, "message": f"windowsill: {text}"}}


def _with_words(call: _Call, body: bytes) -> tuple[_Call, bytes]:
    """Return a request with the words of compactions that were written here, which no provider could read."""
    words = with_words(body)
    if words == body:
        return call, body
    call = copy(call)
    call.raw = words
    call.raw_headers = [(name, value) for name, value in call.raw_headers if name.lower() != b"content-encoding"]
    return call, words


def _json(status: int, value: object, headers: Mapping[str, str] | None = None) -> Response:
    from starlette.responses import Response

    return Response(msgspec.json.encode(value), status, dict(headers or {}), "application/json")


def machine_key(folder: Path) -> bytes:
    """Return the key of this machine that hides credentials; it is made at the first start."""
    path = folder / KEY_FILE
    folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
    found = path.read_bytes()
    if len(found) != KEY_BYTES:
        raise InputError(f"{path} is not a key", remedy="delete it: a new one is made, and conversations begin anew")
    return found


async def serve(
    *,
    store: str | None = None,
    host: str = "127.0.0.1",
    port: int = 8787,
    token: str | None = None,
    upstreams: Mapping[str, str] | None = None,
    options: Options | None = None,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve until cancelled or interrupted; `ready` is called with the address when requests are taken."""
    check_token(host, token)
    # It logs whole addresses, and Gemini's may hold a key.
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    # An answer that broke off is told in our own words.
    logging.getLogger("uvicorn.error").addFilter(lambda record: "returned without completing" not in record.msg)
    if port < 0:
        raise SettingError("port", port, "0 or more")
    for name, url in (upstreams or {}).items():
        if urlsplit(url).port == port and is_loopback(urlsplit(url).hostname or ""):
            raise SettingError("upstream", f"{name}={url}", "the address of a provider: this is the proxy itself")
    with extra("proxy", "the proxy"):
        import uvicorn

    # What is wrong with them is said now, and not when the first request comes.
    Session.open("settings", store=":memory:", config=False, **{"window": 1, **by_model(options)(None)}).close()
    place = open_store(store)
    folder = getattr(place, "path", None)
    key = machine_key(folder.parent if isinstance(folder, Path) else default_place(os.environ, Path.cwd()))
    hosts = ("127.0.0.1", "localhost", "[::1]") if is_loopback(host) else ()
    ends: list[uvicorn.Server] = []
    app = Proxy(
        place,
        upstreams=upstreams,
        options=options,
        key=key,
        token=token,
        hosts=hosts,
        closing=lambda: ends[0].should_exit,
    )
    config = uvicorn.Config(
        app,
        log_level="warning",
        http=impatient_protocol(PATIENCE),
        ws=SOCKETS,
        ws_max_size=LARGEST_BODY,
        lifespan="on",
        timeout_graceful_shutdown=STOP_SECONDS,
        # The provider's own are passed on.
        server_header=False,
        date_header=False,
    )
    ends.append(uvicorn.Server(config))
    with closing(place), listening(host, port) as (sockets, address):
        if ready is not None:
            ready(address)
        await ends[0].serve(sockets)
