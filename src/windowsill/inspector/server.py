"""The server of the inspector: JSON for the page, events when something was written, and the few calls that change.

A guard before it decides who may ask, and sets the headers of every answer. Transcripts are hostile.
"""

# ruff: noqa: PLC0415 - the packages of the extra are only there for those who installed it

from __future__ import annotations

import hashlib
import hmac
import inspect
import json
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, closing
from functools import partial
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio
import msgspec
from anyio import to_thread

import windowsill
from windowsill.errors import (
    ConflictError,
    DamagedError,
    FoldError,
    InputError,
    LockedError,
    NotFoundError,
    SettingError,
    WindowsillError,
)
from windowsill.extras import extra
from windowsill.inspector import calls, explanations, history, overview, window
from windowsill.inspector.opened import OpenSession, OpenSessions
from windowsill.mcp.server import check_token, impatient_protocol, is_loopback, listening
from windowsill.models import known_prices
from windowsill.store import SessionInfo, Store

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")

POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; object-src 'none'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""No script, style or picture from elsewhere, and none that stands in the page itself."""

HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]

CHANGES = b"x-windowsill"
"""The header of calls that change something: no form, and no page of another origin, can send it."""

TOKEN = b"x-windowsill-token"
COOKIE = "windowsill_inspect"
OPEN = ("", "/", "/api/login")
"""Addresses that are answered without a token: the page itself, which holds nothing, and the exchange of the token."""


def cookie_value(token: str) -> str:
    """Return what a browser keeps in the place of the token."""
    return hmac.new(token.encode(), b"windowsill inspect", hashlib.sha256).hexdigest()


class Guard:
    """Lets requests through that a person at this machine, or one with the token, may have sent."""

    def __init__(self, app: ASGIApp, *, hosts: tuple[str, ...] = LOOPBACK, token: str | None = None) -> None:
        self._app = app
        self._hosts = hosts
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *HEADERS]
            await send(message)

        refused = self._refuse(scope)
        if refused is None:
            await self._app(scope, receive, send_with_headers)
            return
        status, what, remedy = refused
        body = error_body("forbidden", what, remedy)
        headers = [(b"content-type", b"application/json")]
        await send_with_headers({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _refuse(self, scope: Scope) -> tuple[int, str, str] | None:
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1")
        if self._hosts and host_name(host) not in self._hosts:
            return 403, "the header Host names another machine", "open the address that the command printed"
        origin = headers.get(b"origin")
        if origin is not None and urlsplit(origin.decode("latin-1")).netloc != host:
            return 403, "another page asks", "open the address that the command printed"
        if headers.get(b"sec-fetch-site") == b"cross-site" and headers.get(b"sec-fetch-mode") != b"navigate":
            return 403, "another page asks", "open the address that the command printed"
        if scope["method"] not in ("GET", "HEAD") and not headers.get(CHANGES):
            return 403, f"the header {CHANGES.decode()} is missing", "send it with calls that change something"
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        if self._token is not None and path not in OPEN and not path.startswith("/static/"):
            given = headers.get(TOKEN, b"").decode("latin-1")
            cookie = _cookie(headers.get(b"cookie", b""))
            if not (is_same(given, self._token) or is_same(cookie, cookie_value(self._token))):
                return 401, "a token is needed", "open the address with its #token=..., as the command printed it"
        return None


def host_name(host: str) -> str:
    """Return the name in a header `Host`, without its port."""
    return host if host.endswith("]") or ":" not in host else host.rpartition(":")[0]


def _cookie(header: bytes) -> str:
    try:
        found = SimpleCookie(header.decode("latin-1")).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found is not None else ""


def is_same(given: str, wanted: str) -> bool:
    """Compare a token with what was given, in a time that tells nothing about it."""
    return hmac.compare_digest(given.encode(errors="replace"), wanted.encode())


def error_body(kind: str, what: str, remedy: str = "", **more: Any) -> bytes:
    """Return an error as the page shows it."""
    return msgspec.json.encode({"error": {"kind": kind, "what": what, "remedy": remedy, **more}})


log = logging.getLogger("windowsill.inspector")

STATIC = Path(__file__).parent / "static"
MEDIA = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".ico": "image/x-icon",
}
"""The files that are served, by their ending."""

LARGEST_BODY = 65_536
"""Bytes that a call which changes something may have."""

LONGEST_WORDS = 1_000
"""Characters that may be searched for."""

SPELLED = {"since": "from", "start": "from", "until": "to"}
"""Arguments whose name in an address is another."""

SECONDS = 30.0
"""Seconds that an answer may take; then the page is told so."""

POLL_SECONDS = 0.25
"""Seconds between two looks at the version of a session; a look is one row of an index."""

SERVER_POLL_SECONDS = 1.0
"""The same for a database server, which others use too."""

LIST_POLL_SECONDS = 2.0
"""The same for the list of sessions, which is read whole."""

KINDS: dict[type[WindowsillError], tuple[str, int]] = {
    NotFoundError: ("not_found", 404),
    DamagedError: ("damaged", 500),
    **dict.fromkeys((ConflictError, LockedError, FoldError), ("conflict", 409)),
    InputError: ("bad_request", 400),
}
"""By class of an error, the name and the status it is answered with; the first that fits counts."""

HEARTBEAT_SECONDS = 15.0
BY_HAND = "in the inspector"

Health = Callable[[], dict[str, Any]]


def encode(value: object) -> bytes:
    """Encode JSON; halves of surrogate pairs, which have no bytes, as escapes."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value)).encode()


def app(
    store: Store,
    *,
    session: str | None = None,
    token: str | None = None,
    hosts: tuple[str, ...] = LOOPBACK,
    folder: Path | None = None,
    health: Health | None = None,
    closing: Callable[[], bool] = lambda: False,
) -> Guard:
    """Make the inspector of a store as an ASGI application, to be served or mounted anywhere.

    `session` is shown first. With a `token` the page asks for it; `hosts` are the names under which it may be reached,
    none for any. `folder` is where results of comparisons are looked for, `health` reports on the proxy beside it, and
    `closing` tells when the server ends, so that streams of events end too.
    """
    return Guard(
        Inspector(store, session, token=token, folder=folder, health=health, closing=closing).starlette(),
        hosts=hosts,
        token=token,
    )


class Inspector:
    """Answers the requests of the page."""

    def __init__(
        self,
        store: Store,
        session: str | None,
        *,
        token: str | None,
        folder: Path | None,
        health: Health | None,
        closing: Callable[[], bool],
    ) -> None:
        with extra("inspect", "the inspector"):
            import starlette.applications  # noqa: F401 - see whether it is there
        self._store = store
        self._session = session
        self._token = token
        self._folder = folder
        self._health = health
        self._closing = closing
        self._sessions = OpenSessions(store)
        self._poll = SERVER_POLL_SECONDS if store.about().kind == "postgresql" else POLL_SECONDS

    def starlette(self) -> Starlette:
        """Return the routes as an application."""
        from starlette.applications import Starlette
        from starlette.routing import Route

        of_session: dict[str, Callable[..., Any]] = {
            "window": window.window,
            "items": window.items,
            "place": window.place,
            "message": window.message,
            "text": window.text,
            "folds": explanations.folds,
            "fold": explanations.fold,
            "calls": calls.calls,
            "call": calls.call,
            "call/messages": calls.call_messages,
            "request": calls.request,
            "request.json": OpenSession.body,
            "explain": explanations.explain,
            "history": history.history,
            "diff": history.diff,
            "state": overview.state,
        }
        of_store: dict[str, Callable[..., Any]] = {
            "about": lambda _: self.about(),
            "sessions": overview.sessions,
            "search": explanations.search,
            "metrics": lambda sessions: {"engines": overview.engines(sessions), "proxy": self._proxy()},
            "comparisons": lambda _: overview.comparisons(self._folder),
        }
        routes = [Route("/", self._page), Route("/static/{name:path}", self._static), Route("/events", self._events)]
        routes += [Route(f"/api/{name}", partial(self._of_session, act)) for name, act in of_session.items()]
        routes += [Route(f"/api/{name}", partial(self._of_store, act)) for name, act in of_store.items()]
        routes += [Route("/api/do", self._do, methods=["POST"]), Route("/api/login", self._login, methods=["POST"])]
        return Starlette(routes=routes, lifespan=self._lifespan, exception_handlers={404: _not_found, 405: _not_found})

    @asynccontextmanager
    async def _lifespan(self, _: object) -> AsyncIterator[None]:
        with closing(self._sessions):
            yield

    # Looking

    def about(self) -> dict[str, Any]:
        """Say which store this is, and what can be done here."""
        return {
            "version": windowsill.__version__,
            "static": False,
            "can_change": True,
            "store": msgspec.to_builtins(self._store.about()),
            "session": self._session,
            "proxy": self._proxy(),
        }

    def _proxy(self) -> dict[str, Any] | None:
        return self._health() if self._health is not None else None

    async def _of_store(self, act: Callable[..., Any], request: Request) -> Response:
        return await _answer(lambda: act(self._sessions, **bind(act, request.query_params)))

    async def _of_session(self, act: Callable[..., Any], request: Request) -> Response:
        given = request.query_params

        def work() -> Any:
            with self._sessions.use(required(given, "session")) as opened:
                return act(opened, **bind(act, given))

        info = await to_thread.run_sync(self._store.info, given.get("session", ""))
        tag = _tag(info)
        if tag and request.headers.get("if-none-match") == tag:
            return _respond(b"", 304, etag=tag)
        return await _answer(work, tag)

    # Files

    async def _page(self, _: Request) -> Response:
        return self._file("index.html")

    async def _static(self, request: Request) -> Response:
        return self._file(request.path_params["name"])

    def _file(self, name: str) -> Response:
        file = STATIC / name
        folder, _, last = name.rpartition("/")
        known = folder in ("", "vendor") and last not in ("", "..") and file.suffix in MEDIA and file.is_file()
        if not known:
            return _respond(error_body("not_found", f"there is no file {name!r}", "install windowsill again"), 404)
        return _respond(file.read_bytes(), 200, media=MEDIA[file.suffix])

    # Events

    async def _events(self, request: Request) -> Response:
        from starlette.responses import StreamingResponse

        session = request.query_params.get("session")
        known = request.headers.get("last-event-id") or request.query_params.get("after", "")
        stream = self._stream(session, known)
        return StreamingResponse(stream, media_type="text/event-stream", headers={"cache-control": "no-store"})

    async def _stream(self, session: str | None, known: str) -> AsyncIterator[bytes]:
        """Yield the version whenever it is another one; what was written is fetched by who wants to see it.

        A store that cannot be read is reported once, without an id, and asked again: it may be repaired, or come back.
        """
        yield b"retry: 500\n\n"
        last = time.monotonic()
        while not self._closing():
            id = b""
            try:
                state, told = await to_thread.run_sync(self._state_of, session)
                id = b"id: " + state.encode() + b"\n"
            except WindowsillError as error:
                state = f"{_kind(error)[0]}: {error.what}"
                told = {"error": {"kind": _kind(error)[0], "message": error.what, "remedy": error.remedy}}
            if state != known:
                known, last = state, time.monotonic()
                yield id + b"data: " + encode(told) + b"\n\n"
            elif time.monotonic() - last > HEARTBEAT_SECONDS:
                last = time.monotonic()
                yield b": still here\n\n"
            await anyio.sleep(self._poll if session is not None else LIST_POLL_SECONDS)

    def _state_of(self, session: str | None) -> tuple[str, dict[str, Any]]:
        if session is None:
            every = self._store.sessions()
            state = f"{len(every)}-{sum(info.version for info in every)}"
            return state, {"sessions": state}
        info = self._store.info(session)
        version = None if info is None else info.version
        return str(version), {"version": version}

    # Changing

    async def _login(self, request: Request) -> Response:
        body = await _read(request)
        given = str(body.get("token", "")) if body is not None else ""
        if self._token is None or not is_same(given, self._token):
            return _respond(error_body("forbidden", "this is not the token", "copy the whole address again"), 401)
        answer = _respond(b"", 204)
        root = request.scope.get("root_path", "")
        answer.set_cookie(
            COOKIE,
            cookie_value(self._token),
            path=f"{root}/",
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return answer

    async def _do(self, request: Request) -> Response:
        body = await _read(request)
        if body is None:
            return _respond(error_body("bad_request", "this is no small JSON object", "send one"), 400)

        def work() -> dict[str, Any]:
            with self._sessions.use(required(request.query_params, "session")) as opened:
                return change(opened, body)

        return await _answer(work, abandon=False)


def change(opened: OpenSession, body: dict[str, Any]) -> dict[str, Any]:
    """Make one change that can be undone: unfold, rewind, switch, restore, checkpoint, pin, unpin."""
    session = opened.session
    wanted = body.get("do")
    before, head = session.view.tokens(), session.journal.version
    left = session.journal.entry(head).id if head else None
    notes: tuple[str, ...] = ()
    match wanted:
        case "unfold":
            fold, span = _text(body, "fold"), body.get("span")
            if span is not None and type(span) is not int:
                raise InputError(f"{span!r} is no span", remedy="give its number")
            entry = session.unfold(fold, span=span, fit=body.get("fit") is True, reason=BY_HAND)
            told = f"unfolded {fold}: {before:,} tokens became {session.view.tokens():,}"
        case "rewind":
            message = _text(body, "message")
            entry = session.rewind(message, before=body.get("before") is True, reason=BY_HAND)
            told = f"went back to {message}"
        case "switch":
            to = _text(body, "to")
            entry = session.switch(to, reason=BY_HAND)
            told = f"switched to {to}"
        case "restore":
            what = body.get("what")
            if what not in (None, "both", "conversation", "files"):
                raise InputError(f"{what!r} cannot be restored", remedy="give both, conversation or files")
            found = session.restore(_text(body, "checkpoint"), what)
            entry, notes = found.id, found.notes
            told = f"restored {found.name or found.id}"
        case "checkpoint":
            made = session.checkpoint(str(body.get("name") or ""))
            entry, notes = made.id, made.notes
            told = f"made the checkpoint {made.name or made.id}"
        case "pin" | "unpin":
            entry = _text(body, "message")
            session.pin(entry, off=wanted != "pin")
            told = f"{wanted}ned {entry}"
        case _:
            remedy = "use unfold, rewind, switch, restore, checkpoint, pin or unpin"
            raise InputError(f"{wanted!r} cannot be done here", remedy=remedy)
    return {"entry": entry, "version": opened.version, "text": told, "left": left, "notes": list(notes)}


def _text(body: dict[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str) or not value:
        raise InputError(f"{name!r} is missing", remedy=f"give the id of the {name}")
    return value


def bind(act: Callable[..., Any], given: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of a function, but for its first, from the parameters of an address.

    Its annotations, which are texts, say what each is: a number, a word, or true where it is given at all.
    """
    found: dict[str, Any] = {}
    for parameter in list(inspect.signature(act).parameters.values())[1:]:
        name = SPELLED.get(parameter.name, parameter.name)
        if parameter.annotation == "bool":
            found[parameter.name] = name in given
        elif name in given or parameter.default is parameter.empty:
            read = _number if "int" in parameter.annotation else required
            found[parameter.name] = read(given, name)
    return found


def required(given: Mapping[str, str], name: str) -> str:
    """Return a parameter that has to be given."""
    value = given.get(name, "")
    if not value:
        raise InputError(f"the parameter {name!r} is missing", remedy="give it")
    if len(value) > LONGEST_WORDS:
        raise InputError(f"the parameter {name!r} is too long", remedy=f"give at most {LONGEST_WORDS} characters")
    return value


def _number(given: Mapping[str, str], name: str) -> int:
    value = given[name]
    if not value.isascii() or not value.isdigit() or len(value) > len("9007199254740992"):
        raise SettingError(name, value, "a whole number")
    return int(value)


def _tag(info: SessionInfo | None) -> str:
    """Return the tag of what is known of a session: another one whenever something was written."""
    return "" if info is None else f'"{windowsill.__version__}-{info.created}-{info.version}"'


async def _answer(work: Callable[[], Any], tag: str = "", *, abandon: bool = True) -> Response:
    """Do the work of an answer in a thread, and report what goes wrong as the page shows it."""
    try:
        with anyio.fail_after(SECONDS if abandon else None):
            value = await to_thread.run_sync(partial(_encoded, work), abandon_on_cancel=abandon)
    except TimeoutError:
        return _respond(error_body("failed", f"this takes longer than {SECONDS:.0f} seconds", "try it again"), 503)
    except WindowsillError as error:
        kind, status = _kind(error)
        return _respond(error_body(kind, error.what, error.remedy), status)
    except Exception as error:
        log.exception("a request of the page failed")
        what = f"{type(error).__name__}: {error}"
        return _respond(error_body("failed", what, "this is a fault of windowsill: the log says where"), 500)
    body, final = value
    return _respond(body, 200, etag=tag if final else "")


def _encoded(work: Callable[[], Any]) -> tuple[bytes, bool]:
    """Return an answer as bytes, and whether it stays the same as long as the session does."""
    value = work()
    if isinstance(value, bytes):
        return value, True
    return encode(value), not (isinstance(value, dict) and value.get("complete") is False)


def _kind(error: WindowsillError) -> tuple[str, int]:
    return next((answer for kind, answer in KINDS.items() if isinstance(error, kind)), ("failed", 500))


def _respond(body: bytes, status: int, *, media: str = "application/json", etag: str = "") -> Response:
    from starlette.responses import Response

    headers = {"cache-control": "no-cache"}
    if etag:
        headers["etag"] = etag
    return Response(body, status, headers, media if body else None)


async def _not_found(request: Request, error: Exception) -> Response:
    del error
    return _respond(error_body("not_found", f"there is no {request.url.path}", "open the page itself"), 404)


async def _read(request: Request) -> dict[str, Any] | None:
    """Read a small JSON object; `None` for anything else."""
    data = b""
    async for piece in request.stream():
        data += piece
        if len(data) > LARGEST_BODY:
            return None
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


async def serve(
    store: Store,
    *,
    session: str | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
    folder: Path | None = None,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve the inspector until cancelled or interrupted; `ready` is called with the address of the page."""
    check_token(host, token)
    with extra("inspect", "the inspector"):
        import uvicorn

    # The list of prices takes a moment to load: not while somebody waits for the first page.
    threading.Thread(target=known_prices, args=("claude-sonnet-5",), daemon=True).start()
    ends: list[uvicorn.Server] = []
    page = app(
        store,
        session=session,
        token=token,
        hosts=LOOPBACK if is_loopback(host) else (),
        folder=folder,
        closing=lambda: ends[0].should_exit,
    )
    config = uvicorn.Config(page, log_level="warning", http=impatient_protocol(SECONDS), ws="none", lifespan="on")
    ends.append(uvicorn.Server(config))
    with listening(host, port) as (sockets, address):
        if ready is not None:
            ready(f"{address}/" + (f"#token={token}" if token else ""))
        await ends[0].serve(sockets)
