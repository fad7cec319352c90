"""An MCP server around the toolbox of a session, or of a store; it adds nothing of its own."""

# ruff: noqa: PLC0415 - the protocol's own package is only there for those who installed it, and slow to load

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from anyio import to_thread

import windowsill
from windowsill.errors import NotFoundError, SettingError, WindowsillError
from windowsill.extras import extra
from windowsill.messages import Image, Tool
from windowsill.search.archive import setting_of
from windowsill.session import Session
from windowsill.session.audit import readable_task
from windowsill.session.toolbox import TOOLS, Answer, definition
from windowsill.store import Store

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from starlette.types import ASGIApp, Receive, Scope, Send

    from windowsill.session.toolbox import Toolbox

LIST_TOOL = "sessions_list"
MOST_LISTED = 50

_SESSION = {
    "type": "string",
    "description": f"The session to ask, as {LIST_TOOL} shows it; this conversation, or the last used, if left out.",
}
_LISTS = Tool(
    name=LIST_TOOL,
    description="List the sessions that are kept, the last used first.",
    schema={"type": "object", "properties": {}, "required": [], "additionalProperties": False},
)


class StoreToolbox:
    """Tools with which a model reads and searches any session of a store; they lock and change none.

    Asked without a session they take the one that `current` names, else the last used of `project`, else the last used.
    """

    def __init__(self, store: Store, *, current: Callable[[], str] | None = None, project: str = "") -> None:
        self._store = store
        self._current = current
        self._project = project

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The definitions."""
        return (*(_with_session(definition(name)) for name in TOOLS), _LISTS)

    def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> Answer:
        """Run a tool. Whatever a model may get wrong is answered, not raised."""
        given = dict(arguments or {})
        try:
            if name == LIST_TOOL:
                return Answer(self._list())
            id = self._find(given.pop("session", None))
            with Session.open(id, store=self._store, config=False) as session:
                return session.tools.call(name, given)
        except WindowsillError as error:
            return Answer(f"Error: {error}", is_error=True)

    def _find(self, wanted: object) -> str:
        known = self._store.sessions()
        if wanted is None:
            held = self._current() if self._current is not None else ""
            # A conversation beside another, such as one that asked for a title, is not the one that is meant.
            whole = [info for info in known if "/" not in info.id] or known
            here = [info for info in whole if info.id == held] or [
                info for info in whole if self._project and setting_of(info, "project") == self._project
            ]
            if not whole:
                raise NotFoundError("no session is kept here yet", remedy="say something first")
            return (here or whole)[0].id
        found = [info.id for info in known if info.id == wanted] or [
            info.id for info in known if info.id.startswith(str(wanted))
        ]
        if len(found) != 1:
            what = "no session has" if not found else f"{len(found)} sessions begin with"
            raise NotFoundError(f"{what} the id {str(wanted)[:100]!r}", remedy=f"see {LIST_TOOL}")
        return found[0]

    def _list(self) -> str:
        known = self._store.sessions()
        lines = [
            f"{info.id}: {info.version:,} entries; {readable_task(self._store, info.id) or 'no task'}"
            for info in known[:MOST_LISTED]
        ]
        if len(known) > MOST_LISTED:
            lines.append(f"and {len(known) - MOST_LISTED:,} older")
        return "\n".join(lines) or "no session is kept here yet"


def _with_session(tool: Tool) -> Tool:
    schema = {**tool.schema, "properties": {**tool.schema["properties"], "session": _SESSION}}
    return msgspec.structs.replace(tool, schema=schema)


PATH = "/mcp"
"""The path of streamable HTTP."""

PATIENCE = 10.0
"""Seconds after which, and before twice as many, a connection is closed that waits for the rest of a request."""

INSTRUCTIONS = (
    "Parts of the conversation may have been folded away to fit the context window; nothing of it is lost. "
    "Search it with history_search, read a message with history_read, read or grep a trimmed tool output by its ref."
)


def _build_server(toolbox: Toolbox | StoreToolbox) -> Server[Any]:
    with extra("mcp", "MCP"):
        import mcp_types as types
        from mcp.server.lowlevel import Server
    reads = types.ToolAnnotations(read_only_hint=True)
    tools = [
        types.Tool(name=tool.name, description=tool.description, input_schema=tool.schema, annotations=reads)
        for tool in toolbox.tools
    ]

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        del context, params
        return types.ListToolsResult(tools=tools)

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        del context
        # A search through a large output takes a while; others must not wait for it.
        answer = await to_thread.run_sync(partial(toolbox.call, params.name, params.arguments))
        images = [
            types.ImageContent(type="image", data=each.data, mime_type=each.media_type)
            for each in answer.media
            if isinstance(each, Image) and each.data and each.media_type
        ]
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=answer.text), *images], is_error=answer.is_error
        )

    return Server(
        "windowsill",
        version=windowsill.__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def serve_stdio(toolbox: Toolbox | StoreToolbox) -> None:
    """Answer one client over standard input and output until it closes them."""
    server = _build_server(toolbox)
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def http_app(
    toolbox: Toolbox | StoreToolbox, *, host: str = "127.0.0.1", port: int = 0, token: str | None = None
) -> ASGIApp:
    """Make the application that `serve_http` serves, for those who have a server of their own.

    Beyond loopback a token is required. Only requests that name this host are answered, so that no web page can reach
    it through a name of its own.
    """
    check_token(host, token)
    server = _build_server(toolbox)
    from mcp.server.transport_security import TransportSecuritySettings

    names = ["127.0.0.1", "localhost", "[::1]"] if is_loopback(host) else [bracketed(host)]
    places = [f"{name}:{port or '*'}" for name in names]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=host not in {"0.0.0.0", "::"},  # noqa: S104 - compared, not bound to
        allowed_hosts=places,
        allowed_origins=[f"{scheme}://{place}" for place in places for scheme in ("http", "https")],
    )
    # Nothing is kept for a client between two requests, so there is nothing to free when one goes away.
    app = server.streamable_http_app(
        streamable_http_path=PATH, stateless_http=True, transport_security=security, host=host
    )
    return TokenGuard(app, token) if token else app


def check_token(host: str, token: str | None) -> None:
    """Refuse an empty token, and a host that others reach without one."""
    if token is not None and not token.strip():
        # A variable that was not set: whoever gave it wanted a token.
        raise SettingError("token", token, "a secret that is not empty")
    if token is not None and not (token.isascii() and token.isprintable()):
        raise SettingError("token", "...", "a secret that a header can hold: plain letters, digits and signs")
    if token is None and not is_loopback(host):
        raise SettingError("token", token, f"a secret, as {host} can be reached by others")


async def serve_http(
    toolbox: Toolbox | StoreToolbox,
    *,
    host: str = "127.0.0.1",
    port: int = 8765,
    token: str | None = None,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Answer any number of clients over streamable HTTP until cancelled; `ready` is called with the address."""
    app = http_app(toolbox, host=host, port=port, token=token)
    with extra("mcp", "MCP"):
        import uvicorn

    config = uvicorn.Config(app, host=host, port=port, log_level="warning", http=impatient_protocol(PATIENCE))
    with listening(host, port) as (sockets, address):
        if ready is not None:
            ready(f"{address}{PATH}")
        await uvicorn.Server(config).serve(sockets)


def impatient_protocol(seconds: float) -> type[asyncio.Protocol]:
    """Make the HTTP protocol of uvicorn close connections whose request is not finished: it waits for ever itself."""
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class ImpatientProtocol(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in uvicorn
            super().connection_made(transport)
            self._look(None)

        def _look(self, seen: object) -> None:
            """Look again after a while: the same request that is still not whole then is given up."""
            state = (self.cycle, self.conn.their_state)
            if state == seen and self.conn.their_state in {h11.IDLE, h11.SEND_BODY}:
                self.transport.abort()
            elif not self.transport.is_closing():
                self.loop.call_later(seconds, self._look, state)

    return ImpatientProtocol


@contextmanager
def listening(host: str, port: int) -> Iterator[tuple[list[socket.socket], str]]:
    """Listen at every address that a host has here: give the sockets, and the address of the first for a browser."""
    with ExitStack() as stack:
        try:
            found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            places = dict.fromkeys((family, address) for family, _, _, _, address in found)
            sockets = [stack.enter_context(socket.create_server(address, family=family)) for family, address in places]
        except OSError as error:
            raise WindowsillError(
                f"cannot listen on {bracketed(host)}:{port}: {(error.strerror or str(error)).lower()}",
                remedy="give another --host or --port, or end what listens there",
            ) from None
        yield sockets, f"http://{bracketed(host)}:{sockets[0].getsockname()[1]}"


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach a server that listens there."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def bracketed(host: str) -> str:
    """Return a host as addresses and `Host` headers have it: IPv6 in brackets."""
    bare = host.strip("[]")
    return f"[{bare}]" if ":" in bare else bare


class TokenGuard:
    """Answers 401 to requests without `Authorization: Bearer` and the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = token.strip().encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] == "http":
            header = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
            scheme, _, given = header.partition(b" ")  # the name of a scheme may be written in any case
            if scheme.lower() != b"bearer" or not hmac.compare_digest(given.strip(), self._expected):
                headers = [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain")]
                await send({"type": "http.response.start", "status": 401, "headers": headers})
                await send({"type": "http.response.body", "body": b"a token is needed"})
                return
        await self._app(scope, receive, send)
