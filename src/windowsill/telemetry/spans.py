"""Spans. Where nobody listens, each is one shared object that does nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

from windowsill.errors import WindowsillError
from windowsill.telemetry.content import cleaned
from windowsill.telemetry.faults import harmless
from windowsill.telemetry.listening import TRACE, listeners, nobody
from windowsill.telemetry.metrics import keyed, tell
from windowsill.telemetry.names import ERROR_TYPE, MEASURED

Kind: TypeAlias = Literal["INTERNAL", "CLIENT"]

CONTEXT = "opentelemetry.context"

LONGEST_REASON = 300
"""Characters that are told of an error."""


class Span:
    """A span that nobody hears; those that are heard are of a kind below it."""

    __slots__ = ()

    live: bool = False
    """Whether anybody listens: for callers who would have to work out what they tell."""

    def set(self, **attributes: Any) -> None:
        """Tell more about it: words of ours, or whole names of attributes in a `**` dictionary."""

    def fail(self, kind: str, why: str = "") -> None:
        """Say that it failed where nothing was raised; `kind` is one of few."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


NOTHING = Span()


class Live(Span):
    """A span that is heard: by a tracer, by those who measure how long it took, or by both.

    An SDK takes a while over each word, so what is told on the way is handed over at the end, in one piece. Only what
    samplers may want of a call to others is told at its beginning.
    """

    __slots__ = ("_attributes", "_began", "_kind", "_metric", "_name", "_span", "_token", "_tracer")

    live = True

    def __init__(self, tracer: Any, name: str, kind: Kind, metric: str | None, attributes: dict[str, Any]) -> None:
        self._attributes = keyed(attributes)
        self._tracer = tracer
        self._name = name
        self._kind = kind
        self._metric = metric
        self._span: Any = None
        self._token: Any = None
        self._began = 0.0

    def set(self, **attributes: Any) -> None:
        """Tell more about it."""
        self._attributes |= keyed(attributes)

    def fail(self, kind: str, why: str = "") -> None:
        """Say that it failed where nothing was raised."""
        self.set(**{ERROR_TYPE: kind})
        if self._span is not None:
            with harmless:
                trace = sys.modules[TRACE]
                self._span.set_status(trace.Status(trace.StatusCode.ERROR, why or None))

    def __enter__(self) -> Self:
        self._began = time.perf_counter()
        if self._tracer is not None:
            with harmless:
                trace = sys.modules[TRACE]
                if self._kind == "INTERNAL":
                    span = self._tracer.start_span(self._name)
                else:
                    kind = getattr(trace.SpanKind, self._kind)
                    span = self._tracer.start_span(self._name, kind=kind, attributes=self._attributes)
                self._span = span
                self._token = sys.modules[CONTEXT].attach(trace.set_span_in_context(span))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end(error)
        self._leave()

    def _leave(self) -> None:
        token, self._token = self._token, None
        if token is not None:
            with harmless:
                sys.modules[CONTEXT].detach(token)

    def end(self, error: BaseException | None = None) -> None:
        """It is over."""
        if error is not None:
            self.fail(error_type(error), _reason(error))
        if self._span is not None:
            with harmless:
                try:
                    self._span.set_attributes(self._attributes)
                finally:
                    self._span.end()
        if self._metric is not None:
            told = {name: value for name, value in self._attributes.items() if name in MEASURED}
            taken = time.perf_counter() - self._began
            tell(("histogram", self._metric, taken, told))


def span(name: str, /, *, timed: str | None = None, **attributes: Any) -> Span:
    """A span for a `with` statement: `with telemetry.span("fold", session=id) as span: span.set(tokens=12)`.

    `timed` is the histogram that its duration goes to. What is raised inside is told, and raised all the same.
    """
    if nobody() or not listeners.hears(timed):
        return NOTHING
    return Live(listeners.tracer(), name, "INTERNAL", timed, attributes)


def carried(function: Callable[[], None]) -> Callable[[], None]:
    """The same function for another thread, where what it tells belongs under the span of now."""
    if TRACE not in sys.modules or listeners.tracer() is None:
        return function
    context = sys.modules[CONTEXT]
    now = context.get_current()

    def run() -> None:
        token = context.attach(now)
        try:
            function()
        finally:
            context.detach(token)

    return run


def error_type(error: BaseException) -> str:
    """The class of an error, with its module where it is neither ours nor Python's."""
    kind = type(error)
    module = kind.__module__.partition(".")[0]
    return kind.__qualname__ if module in ("builtins", "windowsill") else f"{kind.__module__}.{kind.__qualname__}"


def _reason(error: BaseException) -> str:
    """What an error of ours says; what others say may quote anything."""
    if not isinstance(error, WindowsillError):
        return ""
    with harmless:
        return cleaned(str(error))[:LONGEST_REASON]  # the other way round half a key would be told
    return ""
