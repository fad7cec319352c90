"""`wrap`: a provider's own client, whose model calls go through a session."""

from __future__ import annotations

import sys
from typing import Any, TypeVar

from windowsill import formats
from windowsill.errors import InputError
from windowsill.integrations.door import Door
from windowsill.integrations.google import wrap_google
from windowsill.integrations.transport import through
from windowsill.session import Session

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
        wrapped: C = wrap_google(client, Door(session, resends=resends, owner=client))
        return wrapped
    signs = any(word in kind.__name__ for kind in type(client).__mro__ for word in SIGNING)
    if package is None or signs or not hasattr(client, "copy"):
        raise InputError(
            f"a {name} cannot be wrapped",
            remedy="wrap a client of anthropic, openai or google-genai, or use `session.compose` and `session.add`",
        )
    error = getattr(sys.modules[package], formats.get(package).spec.sdk_error)
    door = Door(session, resends=resends, error=error, owner=client)
    copied: Any = client
    copy: C = copied.copy(http_client=through(copied._client, door))  # noqa: SLF001 - the SDKs offer no other way to it
    return copy


def _package(client: Any) -> str | None:
    """Whose client it is, also where a program has made a subclass of it."""
    for kind in type(client).__mro__:
        if formats.sdk_format(kind) is not None:
            return kind.__module__.partition(".")[0]
    return None
