"""`wrap`: a provider's own client, whose model calls go through a session."""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any, TypeVar, Unpack

from windowsill import providers, strategies
from windowsill.clients.conversations import Chooser, Conversations
from windowsill.clients.transport import WrappedClient, wrap_http
from windowsill.compose.summaries import Source
from windowsill.config import Settings, StatedSettings, with_changes
from windowsill.errors import InputError
from windowsill.session import Session
from windowsill.session.session import Config
from windowsill.store import Store
from windowsill.strategies import Strategy
from windowsill.text import type_name

C = TypeVar("C")

SIGNING = ("Bedrock", "AWS")
"""Words in the names of clients that sign the body before it is sent: another body would be refused."""

API, SYNC, ASYNC, OPTIONS = "_api_client", "_httpx_client", "_async_httpx_client", "_http_options"
"""Attributes of Google's client."""


def wrap(
    client: C,
    session: Session | Store | str | Chooser | None = None,
    *,
    resends: bool = True,
    store: Store | str | Path | None = None,
    strategy: str | Strategy | None = None,
    writer: Source | None = None,
    config: Config | None = None,
    **settings: Unpack[StatedSettings],
) -> C:
    """Return the same client, with every model call composed from a session and every answer recorded in it.

    For the official clients `anthropic.Anthropic`, `openai.OpenAI` (chat and responses) and `google.genai.Client`, and
    their asynchronous twins, streaming or not. The code around it stays as it is. `client` itself is left as it was,
    and shares its connections with the copy.

    Each list of messages continues the conversation that it extends, in whatever session that is, or begins a session
    of its own. `session` is the store of these sessions, or names the one conversation of this client: a `Session`, its
    id, or a function that gets the body of a request and returns an id. A list that does not continue it is recorded in
    a session apart. `windowsill.conversation` names it for the calls of a thread or a task.

    `resends=False` says that the client sends only what is new. `store`, `strategy`, `writer`, `config` and the
    settings are those of `Session.open`, for sessions that are opened here.
    """
    stated = {"strategy": strategy, "writer": writer, "config": config, **settings}
    conversations = _conversations(session, store, {k: v for k, v in stated.items() if v is not None}, resends=resends)
    package = _package(client)
    if package == "google":
        wrapped: C = _wrap_google(client, WrappedClient(conversations, owner=client))
        return wrapped
    if package is None or not hasattr(client, "copy"):
        raise InputError(
            f"{type_name(client)} cannot be wrapped",
            remedy="wrap a client of anthropic, openai or google-genai, or use `session.compose` and `session.add`",
        )
    if any(word in kind.__name__ for kind in type(client).__mro__ for word in SIGNING):
        raise InputError(
            f"{type_name(client)} cannot be wrapped: it signs the body of a request before it is sent",
            remedy="use `session.compose` and `session.add` around its calls",
        )
    error = getattr(sys.modules[package], providers.get(package).spec.sdk_error)
    sdk: Any = client
    http = wrap_http(
        sdk._client,  # noqa: SLF001 - the SDKs offer no other way to it
        WrappedClient(conversations, error=error, owner=client),
    )
    copied: C = sdk.copy(http_client=http)
    return copied


def _conversations(
    session: Session | Store | str | Chooser | None,
    store: Store | str | Path | None,
    options: dict[str, Any],
    *,
    resends: bool,
) -> Conversations:
    """Return the conversations behind a client."""
    if isinstance(session, Session):
        if store is not None or options:
            raise InputError(
                "the session has its store and its settings", remedy="state them where it is opened, or pass its id"
            )
        return Conversations(session, resends=resends)
    if isinstance(session, Store):
        if store is not None:
            raise InputError("two stores are stated", remedy="state one")
        session, store = None, session
    if session is not None and not isinstance(session, str) and not callable(session):
        raise InputError(
            f"{type_name(session)} names no session",
            remedy="give a Session, its id, a store, or a function of the request",
        )
    _check_stated(options)
    return Conversations(session, store=store, options=options, resends=resends)


def _check_stated(options: dict[str, Any]) -> None:
    """Refuse what `Session.open` would refuse whatever the model is: before the first session is opened."""
    apart = {"config", "strategy", "writer"}
    with_changes(Settings(), {k: v for k, v in options.items() if k not in apart and not callable(v)})
    if isinstance(options.get("strategy"), str):
        strategies.get(options["strategy"])


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
