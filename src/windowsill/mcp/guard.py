"""Lets in only those who know the token."""

from __future__ import annotations

import hmac
import ipaddress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens there."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def in_address(host: str) -> str:
    """A host as it stands in an address and in `Host` headers: IPv6 in brackets."""
    bare = host.strip("[]")
    return f"[{bare}]" if ":" in bare else bare


class TokenGuard:
    """Answers 401 to requests without `Authorization: Bearer` and the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] == "http":
            given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
            if not hmac.compare_digest(given, self._expected):
                headers = [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain")]
                await send({"type": "http.response.start", "status": 401, "headers": headers})
                await send({"type": "http.response.body", "body": b"a token is needed"})
                return
        await self._app(scope, receive, send)
