"""What telemetry costs: a turn without an SDK, and with it, against the same turn without telemetry."""

from __future__ import annotations

import statistics
import tempfile
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path
from unittest import mock

from bench.measure import show
from bench.trace import SYSTEM, TASK, turns
from windowsill import Session, telemetry, wrap
from windowsill.store.memory import MemoryStore
from windowsill.testing import Answer, Server

BUDGET = 50_000


class Nothing:
    """A span, a model call or a tool run of which nothing is recorded."""

    live = wants_content = False

    def __getattr__(self, _):
        return lambda *_, **__: None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


NOTHING = Nothing()
USAGE = {"prompt_tokens": 9_000, "completion_tokens": 300, "prompt_tokens_details": {"cached_tokens": 8_000}}


class Turns:
    """One session, to which turns are added: a request, the answer with its usage, the results of its calls."""

    def __init__(self, count: int, store) -> None:
        self._recorded = [
            ({"choices": [{"index": 0, "message": said, "finish_reason": "stop"}], "usage": USAGE}, results)
            for said, results in turns(count)
        ]
        self._session = Session.open("telemetry", model="gpt-4o", budget=BUDGET, store=store)
        self._session.add({"role": "user", "content": TASK})
        self._at = 0

    def turn(self) -> None:
        reply, results = self._recorded[self._at]
        self._at += 1
        self._session.compose_sync(system=SYSTEM).body("openai")
        self._session.add(reply)
        self._session.extend(results)


class Calls:
    """Turns of an official client, wrapped, with the model at the other end of a connection."""

    def __init__(self, server, store) -> None:
        import openai

        session = Session.open("telemetry", model="gpt-4o", budget=BUDGET, store=store)
        client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="none")
        self._client = wrap(client, session)

    def turn(self) -> None:
        asked = {"role": "user", "content": "And what does the next file say? " * 20}
        self._client.chat.completions.create(model="gpt-4o", messages=[asked])


@contextmanager
def without():
    """Run the same code with every call of telemetry replaced by the least that keeps it running."""
    words = {
        "span": lambda *_, **__: NOTHING,
        "model_call": lambda *_, **__: NOTHING,
        "tool_run": lambda *_, **__: NOTHING,
        "retrieval": lambda *_, **__: NOTHING,
        "count": lambda *_, **__: None,
        "record": lambda *_, **__: None,
        "is_measured": lambda: False,
        "under_current_span": lambda function: function,
    }
    with mock.patch.multiple(telemetry, **words):
        yield


@contextmanager
def heard():
    """Set up the SDK as a service has it: spans handed over in batches, metrics gathered."""
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    tracers, meters = TracerProvider(), MeterProvider(metric_readers=[InMemoryMetricReader()])
    tracers.add_span_processor(BatchSpanProcessor(InMemorySpanExporter()))
    telemetry.use(tracer_provider=tracers, meter_provider=meters)
    try:
        yield
    finally:
        telemetry.use()


def against(around, count: int, clock, make) -> tuple[float, float]:
    """Seconds of a turn without a word of telemetry, and how many more it takes with it.

    Two sessions take the same turns, now the one first and now the other, so that a slow minute of the machine falls on
    both.
    """
    bare, told = make("a"), make("b")
    samples: dict[bool, list[float]] = {False: [], True: []}
    with around():
        for number in range(count):
            for talks in (number % 2 == 0, number % 2 == 1):
                with nullcontext() if talks else without():
                    start = clock()
                    (told if talks else bare).turn()
                    samples[talks].append(clock() - start)
    plain, more = (statistics.median(samples[talks]) for talks in (False, True))
    return plain, more - plain


def own_price(count: int) -> float:
    """Measure what the SDK itself takes for one span like ours, between turns that leave nothing in the caches."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(InMemorySpanExporter()))
    tracer, session, samples = provider.get_tracer("bench"), Turns(count, MemoryStore()), []
    for _ in range(count):
        session.turn()
        start = time.thread_time()
        with tracer.start_as_current_span("compose", attributes={"a": "s", "b": "x", "c": "m", "d": "p", "e": 5}):
            pass
        samples.append(time.thread_time() - start)
    return statistics.median(samples)


def run(*, quick: bool) -> None:
    """Print the figures."""
    count = 300 if quick else 1_500
    start = time.perf_counter()
    for _ in range(100_000):
        telemetry.span("compose", session="s")
    show("one span that nobody hears", f"{(time.perf_counter() - start) * 1e4:.0f} ns")
    with tempfile.TemporaryDirectory() as folder, Server(lambda _: Answer(text="It says hello. " * 20)) as server:
        # What a turn is: asking the model belongs to it. Without it, less has to be seen above the noise.
        for way, figure, judged, most in (
            (nullcontext, "nobody listens", 1, 0.01),
            (heard, "the SDK listens", 0, 0.05),
        ):
            # On disk a turn is timed as it is waited for; in memory by the processor time of its thread.
            kinds = (
                ("with a model call over HTTP", count // 3, time.perf_counter, lambda _: Calls(server, MemoryStore())),
                (
                    "without its model call, on disk",
                    count,
                    time.perf_counter,
                    lambda name, way=way: Turns(count, Path(folder) / f"{way.__name__}-{name}.db"),
                ),
                ("without its model call, in memory", count, time.thread_time, lambda _: Turns(count, MemoryStore())),
            )
            for words, times, clock, make in kinds:
                bare, more = against(way, times, clock, make)
                target, met = (f"<= {most:.0%}", more / bare <= most) if make is kinds[judged][3] else ("", None)
                turn = f"{figure}, a turn {words}: {bare * 1e6:,.0f} us, and {more * 1e6:,.0f} us more"
                show(turn, f"{more / bare:+.1%}", target, met=met)
    show("the SDK's own price of one span", f"{own_price(count) * 1e6:.0f} us")
