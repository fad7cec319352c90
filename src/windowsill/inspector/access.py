"""The guard before the inspector: who may ask, and the headers of every answer. Transcripts are hostile."""

from __future__ import annotations

import hashlib
import hmac
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

if TYPE_CHECKING:
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
