"""Between a client and its HTTP library: which requests are model calls, and how our errors get out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Any

from windowsill import formats
from windowsill.errors import InputError, WindowsillError
from windowsill.exchange import Exchange, Route, route
from windowsill.session import Session

LENGTHS = frozenset({b"content-length", b"transfer-encoding"})
"""Headers of a request that are no longer true when its body is another."""

SIGNATURE = "AWS4-HMAC"
"""How a signature over the body begins, in the header of those who sign it."""

UNPACKED = LENGTHS | {b"content-encoding"}
"""Headers of an answer that are no longer true when it was unpacked on its way."""


class Door:
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
                self._session = Session.open(self._session, model=found.model or formats.model_of(body) or None)
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
