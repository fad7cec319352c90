"""What goes wrong while telling: it is logged once, and never costs a turn."""

from __future__ import annotations

from types import TracebackType
from typing import Literal

from windowsill.logs import log

_LOGGED: set[str] = set()
"""Kinds of errors that were told already: a collector that is down would fill the log with every turn."""


class _Harmless:
    """A block whose errors are logged, each kind once, and go no further."""

    __slots__ = ()

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        return isinstance(error, Exception) and swallow(error)


harmless = _Harmless()
"""`with harmless:` around whatever calls an SDK."""


def swallow(error: Exception) -> Literal[True]:
    """Log an error of telemetry, once for its kind."""
    kind = type(error).__qualname__
    if kind not in _LOGGED:
        _LOGGED.add(kind)
        log.warning("telemetry failed with %s: %s; further ones are not told", kind, error)
    return True
