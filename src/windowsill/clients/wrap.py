"""`wrap`: a provider's own client, whose model calls go through a session."""

from __future__ import annotations

import copy
import sys
from typing import Any, TypeVar

from windowsill import providers
from windowsill.clients.transport import WrappedClient, wrap_http
from windowsill.errors import InputError
from windowsill.session import Session
from windowsill.text import type_name

C = TypeVar("C")

SIGNING = ("Bedrock", "AWS")
"""Words in the names of clients that sign the body before it is sent: another body would be refused."""

API, SYNC, ASYNC, OPTIONS = "_api_client", "_httpx_client", "_async_httpx_client", "_http_options"
"""Attributes of Google's client."""


def wrap(client: C, session: Session | str, *, resends: bool | None = None) -> C:
    """Return the same client, with every model call composed from `session` and every answer recorded in it.

    For the official clients `anthropic.Anthropic`, `openai.OpenAI` (chat and responses) and `google.genai.Client`, and
    their asynchronous twins, streaming or not. The code around it stays as it is: it may send its whole list of
    messages each time, or only the new ones; `resends` states which, where the lists alone do not tell. A session that
    is only named is opened in the default place, for the model of the first call. `client` itself is left as it was,
    and shares its connections with the copy.
    """
    package = _package(client)
    if package == "google":
        wrapped: C = _wrap_google(client, WrappedClient(session, resends=resends, owner=client))
        return wrapped
    signs = any(word in kind.__name__ for kind in type(client).__mro__ for word in SIGNING)
    if package is None or signs or not hasattr(client, "copy"):
        raise InputError(
            f"{type_name(client)} cannot be wrapped",
            remedy="wrap a client of anthropic, openai or google-genai, or use `session.compose` and `session.add`",
        )
    error = getattr(sys.modules[package], providers.get(package).spec.sdk_error)
    sdk: Any = client
    http = wrap_http(
        sdk._client,  # noqa: SLF001 - the SDKs offer no other way to it
        WrappedClient(session, resends=resends, error=error, owner=client),
    )
    copied: C = sdk.copy(http_client=http)
    return copied


def _package(client: Any) -> str | None:
    """Return the package that a client comes from, also where a program has made a subclass of it."""
    for kind in type(client).__mro__:
        if providers.sdk_format(kind) is not None:
            return kind.__module__.partition(".")[0]
    return None


def _wrap_google(client: Any, wrapped: WrappedClient) -> Any:
    """Copy a `google.genai.Client` part by part: it has no way to be copied with another HTTP client."""
    old = getattr(client, API, None)
    if old is None or any(getattr(old, name, None) is None for name in (SYNC, ASYNC, OPTIONS)):
        raise InputError(
            "this client of Google's does not send through httpx, or is of a version that is not known",
            remedy="use google-genai 3 without client certificates, or `session.compose` and `session.add`",
        )
    api = _copy(old)
    setattr(api, SYNC, wrap_http(getattr(old, SYNC), wrapped))
    setattr(api, ASYNC, wrap_http(getattr(old, ASYNC), wrapped))
    options = getattr(old, OPTIONS)
    # A stated transport keeps it from taking aiohttp, where that is installed.
    stated = {**(options.async_client_args or {}), "transport": wrapped}
    setattr(api, OPTIONS, options.model_copy(update={"async_client_args": stated}))
    return _rebind(client, old, api)


def _rebind(part: Any, old: Any, new: Any) -> Any:
    """Copy a client so that every part uses `new` where it used `old`."""
    twin = _copy(part)
    for name, value in vars(part).items():
        if value is old:
            setattr(twin, name, new)
        elif getattr(value, API, None) is old:
            setattr(twin, name, _rebind(value, old, new))
    return twin


def _copy(part: Any) -> Any:
    """Copy a part so that it is not closed when it is collected: its connections are those of the first one."""
    twin = copy.copy(part)
    kind = type(part)
    if hasattr(kind, "__del__"):
        twin.__class__ = type(kind.__name__, (kind,), {"__del__": lambda _: None, "__module__": kind.__module__})
    return twin
