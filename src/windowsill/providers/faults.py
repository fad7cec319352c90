"""Faults of a model call: read from a response, from a report inside an answer or from an exception.

Every text of a provider is made one line without keys before it stands in an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Literal, TypeAlias

from windowsill.errors import WindowsillError
from windowsill.models import is_overflow
from windowsill.providers.streams import loose
from windowsill.secrets import default_redactor
from windowsill.text import printable_line

FaultKind: TypeAlias = Literal[
    "overflow",  # the request does not fit the model's window
    "rate-limited",
    "server",  # the provider is broken or busy
    "timeout",
    "unreachable",
    "no-key",  # there is none, or it is not accepted
    "refused",  # the provider does not take the request
    "malformed",  # what came is not an answer
]

PASSING: frozenset[FaultKind] = frozenset({"rate-limited", "server", "timeout", "unreachable"})
"""Faults that may be gone the next time, unless whoever raises one knows better."""

MAX_SHOWN = 200
"""Characters of a provider's message in an error; some quote the whole request."""

MAX_READ = 65_536
"""Characters of a message that are read: for the window it names, and for keys that must not be told."""

OK, SLOW, TOO_MANY, SERVER = 200, 408, 429, 500
NO_ENTRY = frozenset({401, 403})

HIDDEN = "[key]"

_KEYS = re.compile(r"\b(?:sk|pk|rk)-[\w*.-]{6,}|\bAIza[\w-]{10,}|\bBearer\s+\S+", re.IGNORECASE)
"""Text that looks like a key, ours or another's, or a part of one: providers quote them in their errors, with stars in
the middle. Whole keys of all other formats are known to `redaction`."""

_ERROR_NAMES: dict[FaultKind, str] = {
    "overflow": "context_length_exceeded|exceed_context_size_error",
    "rate-limited": "rate_?limit|resource_exhausted|too_many_requests",
    "no-key": "authentication|unauthenticated|permission|invalid_api_key",
    "refused": "invalid_|bad_?request|not_found|content_filter|insufficient_quota|failed_precondition",
    "timeout": "timeout|deadline",
}
"""Expressions for the names that providers give to errors inside a stream, in small letters; the first that fits
counts. Any other is taken for a fault of the server: the request had been accepted."""

_DURATION = re.compile(r"(\d+(?:\.\d+)?)s")
"""Seconds as Google writes them."""


_BAD_REASONING = re.compile(
    r"invalid `?(?:signature|data)`? in `?(?:redacted_)?thinking|block is bound to a different conversation"
    r"|thinking` blocks in the latest assistant message cannot be modified"
    r"|invalid_encrypted_content|encrypted content .{0,400}could not be (?:verified|decrypted|parsed)",
    re.IGNORECASE | re.DOTALL,
)


def refuses_reasoning(message: str) -> bool:
    """Tell whether an error says that reasoning in the request is not as the provider signed or encrypted it."""
    return _BAD_REASONING.search(message[:MAX_READ]) is not None


class ModelError(WindowsillError):
    """A model gave no answer. `kind` says why, `passing` whether it may go better the next time."""

    def __init__(
        self,
        kind: FaultKind,
        what: str,
        *,
        remedy: str = "",
        provider_message: str = "",
        retry_after: float | None = None,
        passing: bool | None = None,
        **about: Any,
    ) -> None:
        self.kind = kind
        self.provider_message = provider_message
        """The provider's own message without keys, for `composer.overflowed`."""
        self.retry_after = retry_after
        """The seconds the provider asks to be left alone."""
        self.passing = kind in PASSING if passing is None else passing
        super().__init__(what, remedy=remedy, **about)


def from_response(status: int, headers: Mapping[str, str], body: bytes, hide_keys: Callable[[str], str]) -> ModelError:
    """Read the fault from a response that is not an answer."""
    if status in NO_ENTRY:
        # The message may quote the key.
        return ModelError("no-key", f"the provider does not accept the key ({status})", remedy="check the key")
    message = hide_keys(_message(body))
    kind = _kind_of_status(status)
    if kind != "rate-limited" and is_overflow(message):
        kind = "overflow"
    wait = _retry_delay(headers, body) if kind in PASSING else None
    what = f"{status}: {message[:MAX_SHOWN]}"
    return ModelError(kind, what, remedy=_REMEDIES.get(kind, ""), provider_message=message, retry_after=wait)


_REMEDIES: dict[FaultKind, str] = {
    "rate-limited": "ask less often: per_minute=",
    "server": "try later",
    "overflow": "state the model's window",
    "refused": "check the model's name and the address",
}


def from_report(what: str, names: str, hide_keys: Callable[[str], str]) -> ModelError:
    """Read the fault from an error inside an answer; `names` are the provider's type, code and status of it."""
    message = hide_keys(printable_line(what[:MAX_READ]))
    status = next((int(word) for word in names.split() if word.isdecimal()), SERVER)
    named = next((kind for kind, words in _ERROR_NAMES.items() if re.search(words, names.lower())), None)
    kind = "overflow" if is_overflow(message) else named or _kind_of_status(status)
    if kind == "no-key":
        # The message may quote the key.
        return ModelError(kind, "the provider does not accept the key", remedy="check the key")
    what = f"the provider gave up: {message[:MAX_SHOWN]}"
    return ModelError(kind, what, remedy="try again" if kind in PASSING else "", provider_message=message)


def reported_error(data: bytes, hide_keys: Callable[[str], str]) -> ModelError | None:
    """Read the error that came in the place of an answer, or why a question was blocked; `None` where neither is."""
    match loose(data):
        case {"promptFeedback": {"blockReason": str(reason)}}:
            what = f"the provider blocked the request ({hide_keys(reason)})"
            return ModelError("refused", what, remedy="ask something else, or another model")
        case {"error": {"message": str(what)} as error}:
            names = " ".join(str(error.get(each, "")) for each in ("type", "code", "status"))
            return from_report(what, names, hide_keys)
        case {"error": str(what)}:
            return from_report(what, "", hide_keys)
    return None


def from_exception(error: Exception, name: str) -> ModelError:
    """Read the fault from what a user's function raised, such as an error of a provider's SDK."""
    if isinstance(error, ModelError):
        return error
    message = hide_keys(printable_line(str(error)[:MAX_READ]))
    status = _status(error)
    kind = "overflow" if is_overflow(message) else _kind_of_status(status) if status else _kind_of_class(error)
    detail = f": {message[:MAX_SHOWN]}" if message and kind != "no-key" else ""
    what = f"{name} raised {type(error).__name__}{detail}"
    headers: Any = getattr(getattr(error, "response", None), "headers", None)
    wait = retry_after(headers) if isinstance(headers, Mapping) else None
    return ModelError(kind, what, provider_message="" if kind == "no-key" else message, retry_after=wait)


def hide_keys(text: str) -> str:
    """Hide everything in a text that looks like a key."""
    return default_redactor().known.redact(_KEYS.sub(HIDDEN, text))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Read the seconds to wait from headers: a number, or a time, which is held against the provider's own clock."""
    for name, unit in (("retry-after-ms", 1_000), ("retry-after", 1)):
        try:
            return max(0.0, float(headers[name]) / unit)
        except (KeyError, ValueError):
            continue
    try:
        until = parsedate_to_datetime(headers["retry-after"])
        return max(0.0, (until - parsedate_to_datetime(headers["date"])).total_seconds())
    except (KeyError, ValueError, TypeError):
        return None


def _message(body: bytes) -> str:
    """Return the message of an error, in the form every provider here has, or as plain text."""
    match loose(body):
        case {"error": {"message": str(message)}} | {"error": str(message)} | {"message": str(message)}:
            return printable_line(message[:MAX_READ])
    return printable_line(body.decode("utf-8", "replace")[:MAX_READ])


def _retry_delay(headers: Mapping[str, str], body: bytes) -> float | None:
    """Read the seconds to wait from the headers or, as Google writes them, from the details of the error."""
    wait = retry_after(headers)
    if wait is not None:
        return wait
    match loose(body):
        case {"error": {"details": [*details]}}:
            delays = (each.get("retryDelay") for each in details if isinstance(each, dict))
            found = (_DURATION.fullmatch(delay) for delay in delays if isinstance(delay, str))
            return next((float(delay[1]) for delay in found if delay is not None), None)
    return None


def _kind_of_status(status: int) -> FaultKind:
    if status == TOO_MANY:
        return "rate-limited"
    if status in NO_ENTRY:
        return "no-key"
    return "server" if status == SLOW or status >= SERVER else "refused"


def _kind_of_class(error: Exception) -> FaultKind:
    """Name a fault of the network, which has no status; each client has its own classes for them, all named alike."""
    name = type(error).__name__
    if isinstance(error, TimeoutError) or "Timeout" in name:
        return "timeout"
    if isinstance(error, ConnectionError) or "ConnectionError" in name or name == "ConnectError":
        return "unreachable"
    return "refused"


def _status(error: Exception) -> int:
    response = getattr(error, "response", None)
    places = ((error, "status_code"), (response, "status_code"), (error, "code"))
    return next((value for holder, name in places if type(value := getattr(holder, name, None)) is int), 0)
