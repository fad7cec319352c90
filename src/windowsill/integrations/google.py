"""Google's client has no way to be copied with another HTTP client, so that is done here, part by part."""

from __future__ import annotations

import copy
from typing import Any

from windowsill.errors import InputError
from windowsill.integrations.door import Door
from windowsill.integrations.transport import through

API, SYNC, ASYNC, OPTIONS = "_api_client", "_httpx_client", "_async_httpx_client", "_http_options"


def wrap_google(client: Any, door: Door) -> Any:
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
