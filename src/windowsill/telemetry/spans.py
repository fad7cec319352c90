"""Spans and metrics of requests, folds, searches, model calls and tool runs.

Metrics come first, then spans, as a span records its duration as a metric. Neither ever raises into a turn: see
`harmless`. The content of messages is left out by default, and is never recorded with the secrets in it. At the end
their destinations: providers of the application's choice, a file of spans, a Prometheus server.
"""

# ruff: noqa: PLC0415 - the SDK, the Prometheus client and the API of events are loaded by those who ask for them

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import IO, TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias

import msgspec
from opentelemetry import context, metrics, trace
from opentelemetry.trace import SpanKind, Status, StatusCode

from windowsill.errors import InputError, WindowsillError, log
from windowsill.extras import extra
from windowsill.messages import Block, Document, Image, Message, Reasoning, Text, ToolResult, ToolUse, Usage
from windowsill.telemetry import names
from windowsill.telemetry.names import EVENT, SCOPE

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

_logged: set[str] = set()
"""Kinds of errors that were logged: a collector that is down would fill the log with every turn."""


@contextmanager
def harmless() -> Iterator[None]:
    """Log what the block raises, each kind once, and let none of it out: telemetry never costs a turn."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - an SDK may raise anything
        kind = type(error).__qualname__
        if kind not in _logged:
            _logged.add(kind)
            log.warning("telemetry failed with %s: %s; further ones are not logged", kind, error)


# Metrics.

Figure: TypeAlias = tuple[Literal["counter", "sum", "histogram"], str, float, dict[str, Any]]
"""The kind of instrument, the metric, the value, and its attributes under their full names."""

_TOKENS: Final = tuple(4**power for power in range(14))
_SECONDS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
"""The bounds of the conventions."""
_OWN_SECONDS: Final = (1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)
"""Composing takes about a millisecond, and as long as a model where one is waited for."""
_SHARES: Final = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)


_INSTRUMENTS: Final[dict[str, tuple[str, str, tuple[float, ...] | None]]] = {
    names.TOKEN_USAGE: ("{token}", "Number of input and output tokens used", _TOKENS),
    names.OPERATION_DURATION: ("s", "GenAI operation duration", _SECONDS),
    names.CACHE_HIT_RATIO: ("1", "Share of a request's tokens that the provider's cache served", _SHARES),
    names.CHECKPOINTS: ("{checkpoint}", "Checkpoints made", None),
    names.COMPOSE_DURATION: ("s", "How long it took to compose a request", _OWN_SECONDS),
    names.COST: ("{USD}", "What model calls cost at list price", None),
    names.FOLDS: ("{fold}", "Folds made", None),
    names.FOLD_TOKENS_SAVED: ("{token}", "Tokens that a fold took out of the window", _TOKENS),
    names.TOKENS: ("{token}", "Tokens by price: fresh, cached, written to the cache, answered", None),
    names.UNFOLDS: ("{fold}", "Folds removed again", None),
}


_TOKEN_TYPE, _PRICED_TYPE = names.full_names({"token_type": "", "type": ""})


class Meters:
    """The meter providers that measure: the application's, or one in its place, and those of `serve_metrics`."""

    def __init__(self) -> None:
        self.given: metrics.MeterProvider | None = None
        self.more: list[metrics.MeterProvider] = []

    def providers(self) -> tuple[metrics.MeterProvider, ...]:
        """Return those that record something; the API's own providers do not."""
        provider = self.given or metrics.get_meter_provider()
        return tuple(self.more) if _is_silent(provider) else (provider, *self.more)

    def record(self, *figures: Figure) -> None:
        """Record figures with each provider."""
        for provider in self.providers():
            for kind, metric, value, attributes in figures:
                with harmless():
                    instrument = _instrument(provider, kind, metric)
                    (instrument.record if kind == "histogram" else instrument.add)(value, attributes)


meters: Final = Meters()


class Sum:
    """A counter that adds up by itself what the provider reads when it collects: a turn pays for an addition only."""

    def __init__(self, meter: metrics.Meter, metric: str, unit: str, description: str) -> None:
        self._lock = Lock()
        self._sums: dict[tuple[tuple[str, Any], ...], float] = defaultdict(float)
        meter.create_observable_counter(metric, [self._observe], unit, description)

    def add(self, value: float, attributes: dict[str, Any]) -> None:
        """Add to the sum under these attributes."""
        with self._lock:
            self._sums[tuple(attributes.items())] += value

    def _observe(self, _: metrics.CallbackOptions) -> list[metrics.Observation]:
        with self._lock:
            return [metrics.Observation(value, dict(attributes)) for attributes, value in self._sums.items()]


@lru_cache(1_000)
def _instrument(provider: metrics.MeterProvider, kind: str, metric: str) -> Any:
    meter = provider.get_meter(names.SCOPE, names.version())
    unit, description, bounds = _INSTRUMENTS.get(metric, ("", "", None))
    if kind == "counter":
        return meter.create_counter(metric, unit, description)
    if kind == "sum":
        return Sum(meter, metric, unit, description)
    return meter.create_histogram(metric, unit, description, explicit_bucket_boundaries_advisory=bounds)


def _is_silent(provider: object) -> bool:
    """Tell whether a provider is the API's own, which records nothing."""
    return type(provider).__module__.startswith(("opentelemetry.metrics", "opentelemetry.trace"))


def is_measured() -> bool:
    """Tell whether anybody measures, for callers who would have to compute a figure."""
    return bool(meters.providers())


def count(metric: str, n: float = 1, /, **attributes: Any) -> None:
    """Add to a counter."""
    if is_measured():
        meters.record(("counter", metric, n, names.full_names(attributes)))


def record(metric: str, value: float, /, **attributes: Any) -> None:
    """Put a value into a histogram."""
    if is_measured():
        meters.record(("histogram", metric, value, names.full_names(attributes)))


def record_usage(used: Usage, *, model: str | None, provider: str, cost: float | None = None) -> None:
    """Record the usage of a model call: tokens, the share that the cache served, and dollars where prices are known."""
    if not is_measured():
        return
    about = names.full_names({"operation": names.CHAT, "model": model, "provider": names.provider_name(provider)})
    figures: list[Figure] = [
        ("histogram", names.TOKEN_USAGE, used.prompt, {**about, _TOKEN_TYPE: "input"}),
        ("histogram", names.TOKEN_USAGE, used.output, {**about, _TOKEN_TYPE: "output"}),
    ]
    # The conventions' two types overlap with the cache's; these four add up to what is paid for.
    figures += [
        ("sum", names.TOKENS, tokens, {**about, _PRICED_TYPE: type})
        for type in ("input", "cache_read", "cache_write", "output")
        if (tokens := getattr(used, type))
    ]
    if used.prompt:
        figures.append(("histogram", names.CACHE_HIT_RATIO, used.cache_read / used.prompt, about))
    if cost is not None:
        figures.append(("sum", names.COST, cost, about))
    meters.record(*figures)


# Spans.

LONGEST_REASON: Final = 300
"""Characters of an error that a span carries."""


class Tracers:
    """The tracer provider that spans go to: one given to us, that of a trace file, or the application's."""

    def __init__(self) -> None:
        self.given: trace.TracerProvider | None = None
        self.of_files: trace.TracerProvider | None = None
        """The one while trace files are written and the application has none."""

    def provider(self) -> trace.TracerProvider | None:
        """Return the current provider, or `None` where there is only the API's own, which records nothing."""
        provider = self.given or self.of_files or trace.get_tracer_provider()
        return None if _is_silent(provider) else provider


tracers: Final = Tracers()


@lru_cache(8)
def _tracer(provider: trace.TracerProvider) -> trace.Tracer:
    return provider.get_tracer(names.SCOPE, names.version())


class Span:
    """A stretch of time in a trace, for a `with` statement; `timed` is the histogram that its duration goes to.

    An error inside is recorded, and raised all the same.
    """

    live = False
    """True when somebody listens, for callers who would have to compute an attribute."""
    _span: trace.Span = trace.INVALID_SPAN
    _timed: str | None = None
    _token: Any = None
    _kept = _ended = False

    def __init__(
        self, name: str, attributes: dict[str, Any], *, timed: str | None = None, kind: SpanKind = SpanKind.INTERNAL
    ) -> None:
        provider = tracers.provider()
        if timed is not None and is_measured():
            self._timed = timed
        if provider is None and self._timed is None:
            return
        self._attributes = names.full_names(attributes)
        if provider is not None:
            with harmless():
                self._span = _tracer(provider).start_span(name, kind=kind, attributes=self._attributes)
        self._began = time.perf_counter()
        self.live = self._timed is not None or self._span.is_recording()

    def set(self, **attributes: Any) -> None:
        """Set attributes: short words of ours, or full names in a `**` dictionary."""
        if self.live:
            added = names.full_names(attributes)
            self._attributes |= added
            with harmless():
                self._span.set_attributes(added)

    def fail(self, kind: str, why: str = "") -> None:
        """Mark it as failed where nothing was raised; `kind` is one of few."""
        if self.live:
            self.set(error=kind)
            with harmless():
                self._span.set_status(Status(StatusCode.ERROR, why or None))

    def keep_open(self) -> None:
        """Leave it open after its `with` block: a stream is read later, and whoever reads it calls `end`."""
        self._kept = True

    def __enter__(self) -> Self:
        if self._span is not trace.INVALID_SPAN:
            self._token = context.attach(trace.set_span_in_context(self._span))
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None or not self._kept:
            self.end(error)
        if self._token is not None:
            context.detach(self._token)
            self._token = None

    def end(self, error: BaseException | None = None) -> None:
        """End it, and record how long it took; ending twice is fine."""
        if self._ended or not self.live:
            return
        self._ended = True
        if error is not None:
            self.fail(_error_type(error), _reason(error))
        if self._timed is not None:
            about = {name: value for name, value in self._attributes.items() if name in names.MEASURED}
            meters.record(("histogram", self._timed, time.perf_counter() - self._began, about))
        with harmless():
            self._span.end()


class ModelCall(Span):
    """A model call, from sending the request to the end of the answer."""

    _content: dict[str, Any] | None = None
    _streams = False

    @property
    def wants_content(self) -> bool:
        """True when messages are to be recorded: ask before putting them together."""
        return self.live and (content_on_spans() or content_on_events())

    def record_request(self, messages: Sequence[Message], system: Message | None = None) -> None:
        """Record the messages of the request, where content is wanted."""
        if self.wants_content:
            with harmless():
                self._record_content(input_messages=messages_as_parts(messages))
                if system is not None:
                    self._record_content(system_instructions=list(map(_part, system.blocks)))

    def record_first_chunk(self) -> None:
        """Record that the first piece of a streamed answer has come; later calls do nothing."""
        if self.live and not self._streams:
            self._streams = True
            self.set(response_seconds=time.perf_counter() - self._began)

    def record_answer(
        self,
        usage: Usage | None = None,
        *,
        model: str | None = None,
        id: str | None = None,
        finish: str | None = None,
        messages: Sequence[Message] = (),
    ) -> None:
        """Record the answer; its messages only where content is wanted."""
        self.set(response_model=model, response_id=id, response_finish=None if finish is None else [finish])
        if usage is not None:
            written = usage.cache_write or None
            # The whole prompt is the input, cached or not.
            self.set(used_input=usage.prompt, used_output=usage.output, used_cache_read=usage.cache_read or None)
            self.set(used_cache_creation=written, used_cache_write=written)
        if messages and self.wants_content:
            with harmless():
                self._record_content(output_messages=messages_as_parts(messages, finish=finish or "stop"))

    def _record_content(self, **parts: Any) -> None:
        if content_on_events():
            self._content = {**(self._content or {}), **names.full_names(parts)}
        if content_on_spans():
            self.set(**{word: as_json(value) for word, value in parts.items()})

    def end(self, error: BaseException | None = None) -> None:
        """End it; where content is wanted on events, emit what was recorded."""
        if self._content and not self._ended:
            with harmless():
                emit_content({**self._attributes, **self._content})
        super().end(error)


class ToolRun(Span):
    """A run of a tool."""

    def record_result(self, result: Any = None, *, is_error: bool = False) -> None:
        """Record the end of the run; the result only where content is wanted."""
        if is_error:
            self.fail("tool_error")
        if result is not None and content_on_spans():
            with harmless():
                self.set(tool_result=as_json(without_secrets(result)))


def span(name: str, /, *, timed: str | None = None, **attributes: Any) -> Span:
    """Start a span: `with telemetry.span("fold", session=id) as span: span.set(tokens=12)`."""
    return Span(name, attributes, timed=timed)


def model_call(
    model: str | None,
    *,
    provider: str,
    session: str | None = None,
    operation: str = names.CHAT,
    compacted: bool = False,
    stream: bool = False,
    server: str | None = None,
    port: int | None = None,
    **attributes: Any,
) -> ModelCall:
    """Start the span of a model call; retries belong to it.

    `provider` is our name for it, or the format it speaks. `compacted` says that something of the conversation is
    folded (`payload.compacted`). The tokens are counted where `session.add` takes the reply, not here.
    """
    about = {
        "operation": operation,
        "model": model,
        "session": session,
        "provider": names.provider_name(provider, server or ""),
        "compacted": compacted or None,
        "stream": stream or None,
        "server": server,
        "port": port if server else None,
    }
    name = f"{operation} {model or ''}".strip()
    return ModelCall(name, {**about, **attributes}, timed=names.OPERATION_DURATION, kind=SpanKind.CLIENT)


def tool_run(tool: str, *, call_id: str | None = None, session: str | None = None, arguments: Any = None) -> ToolRun:
    """Start the span of a tool run; its arguments are recorded only where content is wanted."""
    about: dict[str, Any] = {
        "operation": names.EXECUTE_TOOL,
        "tool": tool,
        "session": session,
        "tool_call": call_id,
        "tool_type": "function",
    }
    if arguments is not None and content_on_spans():
        with harmless():
            about["tool_arguments"] = as_json(without_secrets(arguments))
    return ToolRun(f"{names.EXECUTE_TOOL} {tool}", about, timed=names.OPERATION_DURATION)


def retrieval(source: str, query: str, *, session: str | None = None, **attributes: Any) -> Span:
    """Start the span of a search; the question is recorded only where content is wanted."""
    about = {"operation": names.RETRIEVAL, "source": source, "session": session, **attributes}
    if content_on_spans():
        with harmless():
            about["query"] = without_secrets(query)
    return Span(f"{names.RETRIEVAL} {source}", about, timed=names.OPERATION_DURATION)


def under_current_span(function: Callable[[], None]) -> Callable[[], None]:
    """Return the function for another thread, where its spans become children of the one that is open now."""
    now = context.get_current()

    def run() -> None:
        token = context.attach(now)
        try:
            function()
        finally:
            context.detach(token)

    return run


def _error_type(error: BaseException) -> str:
    """Return the class of an error, with its module where it is neither ours nor Python's."""
    kind = type(error)
    module = kind.__module__.partition(".")[0]
    return kind.__qualname__ if module in ("builtins", "windowsill") else f"{kind.__module__}.{kind.__qualname__}"


def _reason(error: BaseException) -> str:
    """Return the text of an error of ours; that of others may quote anything."""
    reason = ""
    if isinstance(error, WindowsillError):
        with harmless():
            reason = str(without_secrets(str(error)))[:LONGEST_REASON]  # cut first, half a key would be left
    return reason


SWITCH: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The variable with which OpenTelemetry's instrumentations are asked to record content."""


def content_on_spans() -> bool:
    """Tell whether spans are to carry content."""
    return os.environ.get(SWITCH, "").strip().lower() in ("true", "span_only", "span_and_event")


def content_on_events() -> bool:
    """Tell whether events are to carry content."""
    return os.environ.get(SWITCH, "").strip().lower() in ("event_only", "span_and_event")


def without_secrets(value: Any) -> Any:
    """Return a text or a JSON value without the secrets in it: in texts, in names, or under the name of a secret."""
    from windowsill.secrets.documents import redact_value

    return redact_value(value)


def messages_as_parts(messages: Iterable[Message], *, finish: str | None = None) -> list[dict[str, Any]]:
    """Return messages in the form of the conventions; `finish` is why the model stopped."""
    more = {} if finish is None else {"finish_reason": finish}
    return [
        {
            "role": "tool" if message.results and len(message.results) == len(message.blocks) else message.role,
            "parts": list(map(_part, message.blocks)),
            **more,
        }
        for message in messages
    ]


def _part(block: Block) -> dict[str, Any]:
    """Return a block of a message as a part, without secrets."""
    match block:
        case Text():
            return {"type": "text", "content": without_secrets(block.text)}
        case Reasoning():
            return {"type": "reasoning", "content": without_secrets(block.text)}
        case ToolUse():
            return {"type": "tool_call", "id": block.id, "name": block.name, "arguments": without_secrets(block.input)}
        case ToolResult():
            texts = (
                part.text or "" if isinstance(part, Text | Document) else f"[{type(part).__name__.lower()}]"
                for part in block.content
            )
            response = "\n".join(texts)
            return {"type": "tool_call_response", "id": block.tool_use_id, "response": without_secrets(response)}
        case Image() | Document():
            # Nobody looks at a picture in a trace: its type suffices.
            modality = "image" if isinstance(block, Image) else "document"
            return {"type": "blob", "modality": modality, "mime_type": block.media_type, "content": ""}
        case _:
            return {"type": block.type or "unknown"}


def as_json(value: Any) -> str:
    """Return a value as text: the attributes of a span hold no objects."""
    return msgspec.json.encode(value, enc_hook=str).decode()


def emit_content(attributes: dict[str, Any]) -> None:
    """Emit content as an event of the application's logger provider."""
    # The API of events is not stable yet, and only those who ask for events load it.
    from opentelemetry import _logs

    _logs.get_logger(SCOPE).emit(_logs.LogRecord(event_name=EVENT, attributes=attributes))


# Destinations: providers of the application's choice, a file of spans, a Prometheus server.


def use(*, tracer_provider: Any = None, meter_provider: Any = None) -> None:
    """Use these providers in place of the ones that the application has set; without any, use those again."""
    tracers.given, meters.given = tracer_provider, meter_provider


class MetricsServer(ExitStack):
    """A server that answers scrapes until it is closed."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__()
        self.host = host
        self.port = port


_open_files: list[IO[bytes]] = []
"""Files whose spans go through a provider of our own, as the application has none; it goes with the last of them."""
_lock = Lock()


def to_file(path: str | os.PathLike[str]) -> ExitStack:
    """Append every span of Windowsill to a file from now on, until what is returned is closed.

    A tracer provider that the application has set, here or globally, gets them as before, and so do other files.
    Without the extra `telemetry` it is an `InputError`.
    """
    with extra("telemetry", "writing spans"):
        from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
    if tracers.given is not None and not isinstance(tracers.given, TracerProvider):
        raise InputError(
            "spans cannot be written to a file beside a tracer provider that is not the SDK's",
            remedy="give telemetry.use() an opentelemetry.sdk.trace.TracerProvider",
        )

    class Lines(SpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:
            scope, context = span.instrumentation_scope, span.context
            if scope is not None and scope.name == SCOPE and context is not None and context.trace_flags.sampled:
                with harmless(), _lock:
                    if not file.closed:
                        # In one piece: several processes may write to the same file.
                        file.write((span.to_json(indent=None) + "\n").encode())

    file = Path(path).open("ab", buffering=0)  # noqa: SIM115 - it stays open until it is closed
    with _lock:
        provider = tracers.provider()
        if not isinstance(provider, TracerProvider):
            provider = tracers.of_files = _file_provider()
        if provider is tracers.of_files:
            _open_files.append(file)
    provider.add_span_processor(Lines())
    closing = ExitStack()
    closing.callback(_close, file)
    return closing


def _close(file: IO[bytes]) -> None:
    with _lock:
        file.close()
        if file in _open_files:
            _open_files.remove(file)
            if not _open_files:
                tracers.of_files = None


def _file_provider() -> TracerProvider:
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider

    resource = Resource.create()
    if str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: SCOPE}))
    return TracerProvider(resource=resource, shutdown_on_exit=False)


def serve_metrics(port: int, host: str = "127.0.0.1") -> MetricsServer:
    """Serve what is measured from now on at `http://host:port/metrics`; port 0 takes a free one.

    A meter provider that the application has set gets it as before. There is no password: beyond loopback whoever
    reaches the port reads the figures. Without the extra `prometheus` it is an `InputError`.
    """
    with extra("prometheus", "serving metrics"):
        from opentelemetry.exporter.prometheus import PrometheusMetricReader
        from opentelemetry.sdk.metrics import MeterProvider
        from prometheus_client import CollectorRegistry, start_http_server
    registry = CollectorRegistry()
    try:
        server, thread = start_http_server(port, addr=host, registry=registry)
    except OSError as error:
        raise WindowsillError(
            f"cannot serve metrics on {host}:{port}: {(error.strerror or str(error)).lower()}",
            remedy="give another port, or end what listens there",
        ) from None
    reader = PrometheusMetricReader(registry=registry, scope_info_enabled=False)
    provider = MeterProvider(metric_readers=[reader], shutdown_on_exit=False)
    meters.more.append(provider)
    serving = MetricsServer(host, server.server_port)
    for step in (provider.shutdown, thread.join, server.server_close, server.shutdown):  # last to first
        serving.callback(step)
    serving.callback(meters.more.remove, provider)
    return serving
