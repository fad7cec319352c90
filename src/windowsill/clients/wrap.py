"""`wrap`: a provider's own client, whose model calls go through a session."""

from __future__ import annotations

import copy
import sys
from typing import Any, TypeVar

from windowsill import providers
from windowsill.clients.transport import WrappedClient, through
from windowsill.errors import InputError
from windowsill.session import Session

API, SYNC, ASYNC, OPTIONS = "_api_client", "_httpx_client", "_async_httpx_client", "_http_options"


def wrap_google(client: Any, door: WrappedClient) -> Any:
    """A copy of a `google.genai.Client` that sends through `door`, synchronously and by its `aio`."""
    old = getattr(client, API, None)
    if old is None or any(getattr(old, name, None) is None for name in (SYNC, ASYNC, OPTIONS)):
        raise InputError(
            "this client of Google's does not send through httpx, or is of a version that is not known",
            remedy="use google-genai 3 without client certificates, or `session.compose` and `session.add`",
        )
    api = _copied(old)
    setattr(api, SYNC, through(getattr(old, SYNC), door))
    setattr(api, ASYNC, through(getattr(old, ASYNC), door))
    options = getattr(old, OPTIONS)
    # A stated transport keeps it from taking aiohttp, where that is installed.
    stated = {**(options.async_client_args or {}), "transport": door}
    setattr(api, OPTIONS, options.model_copy(update={"async_client_args": stated}))
    return _bound(client, old, api)


def _bound(part: Any, old: Any, new: Any) -> Any:
    """A copy of a client in which every part uses `new` where it used `old`."""
    twin = _copied(part)
    for name, value in vars(part).items():
        if value is old:
            setattr(twin, name, new)
        elif getattr(value, API, None) is old:
            setattr(twin, name, _bound(value, old, new))
    return twin


def _copied(part: Any) -> Any:
    """A copy that is not closed when it is collected: its connections are those of the first one."""
    twin = copy.copy(part)
    kind = type(part)
    if hasattr(kind, "__del__"):
        twin.__class__ = type(kind.__name__, (kind,), {"__del__": lambda _: None, "__module__": kind.__module__})
    return twin


C = TypeVar("C")

SIGNING = ("Bedrock", "AWS")
"""In the names of clients that sign the body before it is sent: another body would be refused."""


def wrap(client: C, session: Session | str, *, resends: bool | None = None) -> C:
    """The same client, with every model call composed from `session` and every answer recorded in it.

    For the official clients `anthropic.Anthropic`, `openai.OpenAI` (chat and responses) and `google.genai.Client`, and
    their asynchronous twins, streaming or not. The code around it stays as it is: it may send its whole list of
    messages each time, or only the new ones; `resends` states which, where the lists alone do not tell. A session that
    is only named is opened in the default place, for the model of the first call. `client` itself is left as it was,
    and shares its connections with the copy.
    """
    name = type(client).__name__
    package = _package(client)
    if package == "google":
        wrapped: C = wrap_google(client, WrappedClient(session, resends=resends, owner=client))
        return wrapped
    signs = any(word in kind.__name__ for kind in type(client).__mro__ for word in SIGNING)
    if package is None or signs or not hasattr(client, "copy"):
        raise InputError(
            f"a {name} cannot be wrapped",
            remedy="wrap a client of anthropic, openai or google-genai, or use `session.compose` and `session.add`",
        )
    error = getattr(sys.modules[package], providers.get(package).spec.sdk_error)
    door = WrappedClient(session, resends=resends, error=error, owner=client)
    copied: Any = client
    copy: C = copied.copy(http_client=through(copied._client, door))  # noqa: SLF001 - the SDKs offer no other way to it
    return copy


def _package(client: Any) -> str | None:
    """Whose client it is, also where a program has made a subclass of it."""
    for kind in type(client).__mro__:
        if providers.sdk_format(kind) is not None:
            return kind.__module__.partition(".")[0]
    return None
