"""Turns what went wrong into a `ModelError`: what a call met, what a stream said, what a function raised."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from windowsill.engine.models.base import PASSING, FaultKind, ModelError
from windowsill.models import is_overflow
from windowsill.text import printable_line
from windowsill.writers.calling import LONGEST_MESSAGE, LONGEST_READ, NO_ENTRY, SERVER, SLOW, TOO_MANY, retry_after
from windowsill.writers.endpoints import without_keys
from windowsill.writers.faults import FaultKind as CallKind
from windowsill.writers.faults import UnusableError

KINDS: dict[CallKind, FaultKind] = {
    "no-key": "no-key",
    "no-model": "refused",
    "too-long": "refused",  # unless its words say that it is the window
    "rejected": "refused",
    "rate-limited": "rate-limited",
    "server-error": "server",
    "unreachable": "unreachable",
    "timeout": "timeout",
    "huge": "malformed",
    "unreadable": "malformed",
}
"""What a call met -> what it is called here."""

WORDS: dict[str, FaultKind] = {
    "context_length_exceeded": "overflow",
    "exceed_context_size_error": "overflow",
    "rate_limit": "rate-limited",
    "ratelimit": "rate-limited",
    "resource_exhausted": "rate-limited",
    "too_many_requests": "rate-limited",
    "authentication": "no-key",
    "unauthenticated": "no-key",
    "permission": "no-key",
    "invalid_api_key": "no-key",
    "invalid_": "refused",
    "badrequest": "refused",
    "bad_request": "refused",
    "not_found": "refused",
    "content_filter": "refused",
    "insufficient_quota": "refused",
    "failed_precondition": "refused",
    "timeout": "timeout",
    "deadline": "timeout",
}
"""Beginnings or parts of the names that providers give to errors inside a stream, in small letters, the first that fits
counting. Any other is taken for a fault of the server: the request had been accepted."""


def met(fault: UnusableError) -> ModelError:
    """What a call met."""
    overflow = fault.kind != "rate-limited" and is_overflow(fault.said)
    kind = "overflow" if overflow else KINDS.get(fault.kind, "malformed")
    return ModelError(kind, fault.what, remedy=fault.remedy, said=fault.said, retry_after=fault.wait)


def failed(what: str, names: str, scrubbed: Callable[[str], str]) -> ModelError:
    """An error that came in the place of an answer, or in the middle of it; `names` are the provider's words for it."""
    said = scrubbed(printable_line(what[:LONGEST_READ]))
    status = next((int(word) for word in names.split() if word.isdecimal()), SERVER)
    named = next((kind for word, kind in WORDS.items() if word in names.lower()), None)
    kind = "overflow" if is_overflow(said) else named or _by_status(status)
    if kind == "no-key":
        # What is said here may quote the key.
        return ModelError(kind, "the provider does not accept the key", remedy="check the key")
    told = f"the provider gave up: {said[:LONGEST_MESSAGE]}"
    return ModelError(kind, told, remedy="try again" if kind in PASSING else "", said=said)


def raised(error: Exception, name: str) -> ModelError:
    """What a function of the user's raised, such as an error of a provider's SDK."""
    if isinstance(error, ModelError):
        return error
    said = without_keys(printable_line(str(error)[:LONGEST_READ]))
    status = _status(error)
    kind = "overflow" if is_overflow(said) else _by_status(status) if status else _by_type(error)
    shown = f": {said[:LONGEST_MESSAGE]}" if said and kind != "no-key" else ""
    what = f"{name} raised {type(error).__name__}{shown}"
    wait = retry_after(_headers(error))
    return ModelError(kind, what, said="" if kind == "no-key" else said, retry_after=wait)


def _by_status(status: int) -> FaultKind:
    if status == TOO_MANY:
        return "rate-limited"
    if status in NO_ENTRY:
        return "no-key"
    return "server" if status == SLOW or status >= SERVER else "refused"


def _by_type(error: Exception) -> FaultKind:
    """Faults of the network have no status; each client has its own classes for them, all named alike."""
    name = type(error).__name__
    if isinstance(error, TimeoutError) or "Timeout" in name:
        return "timeout"
    if isinstance(error, ConnectionError) or "ConnectionError" in name or name == "ConnectError":
        return "unreachable"
    return "refused"


def _status(error: Exception) -> int:
    response = getattr(error, "response", None)
    for value in (
        getattr(error, "status_code", None),
        getattr(response, "status_code", None),
        getattr(error, "code", None),
    ):
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return 0


def _headers(error: Exception) -> Mapping[str, str]:
    headers: Any = getattr(getattr(error, "response", None), "headers", None)
    return headers if isinstance(headers, Mapping) else {}
