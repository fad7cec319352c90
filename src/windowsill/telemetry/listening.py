"""Who listens. It is looked up in what the application has loaded; nothing of OpenTelemetry is loaded here."""

from __future__ import annotations

import sys
from typing import Any

from windowsill.telemetry.faults import harmless
from windowsill.telemetry.instruments import Instruments
from windowsill.telemetry.names import SCOPE

TRACE, METRICS = "opentelemetry.trace", "opentelemetry.metrics"

_HOLDERS = {
    TRACE: ("get_tracer_provider", TRACE, "_TRACER_PROVIDER"),
    METRICS: ("get_meter_provider", f"{METRICS}._internal", "_METER_PROVIDER"),
}
"""For each, how its provider is asked for, and where it is kept. The latter is none of our business: where it is not to
be found, we ask each time."""

_HIDDEN = object()


class Listening:
    """The tracer and the meters that hear us, found once the application has set a provider."""

    def __init__(self) -> None:
        self._deaf: dict[str, Any] = {}
        """What was set when there was only a provider that records nothing."""
        self._known: list[tuple[Any, Instruments]] = []
        self._tracer: Any = None
        self.given: Any = None
        """The provider that spans are given to in place of the application's."""
        self._meter: Instruments | None = None
        self._more: tuple[Instruments, ...] = ()
        self._meters: tuple[Instruments, ...] = ()

    def trace_with(self, provider: Any) -> None:
        """Give spans to this provider in place of the application's; `None` looks that up again."""
        self._tracer = None if provider is None else _tracer_of(provider)
        self.given = provider

    def measure_with(self, provider: Any) -> None:
        """Give what is measured to this provider in place of the application's; `None` looks that up again."""
        self._meter = None if provider is None else self._instruments(provider)
        self._gather()

    def listen(self, meter_provider: Any) -> Instruments:
        """Let one more hear what is measured."""
        more = self._instruments(meter_provider)
        self._more += (more,)
        self._gather()
        return more

    def leave(self, more: Instruments) -> None:
        """Tell it no longer."""
        self._more = tuple(each for each in self._more if each is not more)
        self._gather()

    def tracer(self) -> Any:
        """The tracer, or `None` when nobody listens."""
        if self._tracer is None and (provider := self._provider(TRACE)) is not None:
            with harmless:
                self._tracer = _tracer_of(provider)
        return self._tracer

    def meters(self) -> tuple[Instruments, ...]:
        """All that measure."""
        if self._meter is None and (provider := self._provider(METRICS)) is not None:
            with harmless:
                self.measure_with(provider)
        return self._meters

    def hears(self, timed: str | None) -> bool:
        """Whether a span reaches anybody: a tracer, or those who measure how long it took."""
        return self.tracer() is not None or (timed is not None and bool(self.meters()))

    def _provider(self, module: str) -> Any:
        """The provider that the application has set; `None` while there is only the one that records nothing."""
        getter, holder, held = _HOLDERS[module]
        set_now = getattr(sys.modules.get(holder), held, _HIDDEN)
        if set_now is not _HIDDEN and self._deaf.get(module, _HIDDEN) is set_now:
            # Asking takes a look at the environment each time, so it is asked again only when something was set.
            return None
        # A module that another thread is just importing has nothing in it yet.
        get = getattr(sys.modules.get(module), getter, None)
        if get is None:
            return None
        with harmless:
            provider = get()
            if not type(provider).__module__.startswith(module):
                return provider
            self._deaf[module] = set_now
        return None

    def _instruments(self, provider: Any) -> Instruments:
        """Those of a provider, made once: it would not tell a second one that it collects."""
        for known, instruments in self._known:
            if known is provider:
                return instruments
        made = Instruments(_meter_of(provider))
        self._known.append((provider, made))
        return made

    def _gather(self) -> None:
        self._meters = (*(() if self._meter is None else (self._meter,)), *self._more)


def nobody() -> bool:
    """Whether the application has nothing of OpenTelemetry: the one question that every turn pays for."""
    return TRACE not in sys.modules and METRICS not in sys.modules


def _tracer_of(provider: Any) -> Any:
    return provider.get_tracer(SCOPE, _version())


def _meter_of(provider: Any) -> Any:
    return provider.get_meter(SCOPE, _version())


def _version() -> str:
    # Looked up, as a room imports none above it, and the whole package is above all rooms.
    return str(getattr(sys.modules.get(SCOPE), "__version__", ""))


listeners = Listening()
