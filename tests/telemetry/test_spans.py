"""Spans: what they say, where they stand, and that telling never costs anything."""

import asyncio
import json
import logging
from threading import Thread

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace import SpanKind, StatusCode

from support.telemetry import listening
from windowsill import telemetry
from windowsill.errors import InputError
from windowsill.telemetry import spans

pytestmark = pytest.mark.unit


@pytest.fixture
def heard():
    with listening() as found:
        yield found


@pytest.fixture
def untold(monkeypatch):
    """As in a process in which nothing went wrong yet."""
    monkeypatch.setattr(spans, "_logged", set())


def test_a_span_has_the_conventions_names_and_ours_beside_them(heard):
    """Short words become full names; what is not known is left out."""
    with telemetry.span("compose", session="s", tokens=5, model=None) as span:
        span.set(**{"gen_ai.response.id": "r"}, compacted=True)
    assert heard.said("compose") == {
        "gen_ai.conversation.id": "s",
        "windowsill.tokens": 5,
        "gen_ai.response.id": "r",
        "gen_ai.conversation.compacted": True,
    }
    assert heard.span("compose").kind is SpanKind.INTERNAL
    assert heard.span("compose").instrumentation_scope.name == "windowsill"


def test_spans_stand_under_the_one_that_is_open(heard):
    """And beside each other when one has ended."""
    with telemetry.span("compose"):
        with telemetry.span("plan"):
            pass
        with telemetry.span("fold"):
            pass
    assert [heard.parent(span) for span in heard.spans] == [None, "compose", "compose"]


def test_a_span_stands_under_the_applications_own(heard):
    """So that a turn of an agent is one trace."""
    with heard.tracers.get_tracer("app").start_as_current_span("turn"), telemetry.span("compose"):
        pass
    assert heard.parent(heard.span("compose")) == "turn"


def test_what_is_raised_is_told_and_raised_all_the_same(heard):
    """Our own errors say why; the remedy goes along."""
    with pytest.raises(InputError), telemetry.span("compose"):
        raise InputError("no such thing", remedy="give another")
    assert heard.said("compose") == {"error.type": "InputError"}
    status = heard.span("compose").status
    assert (status.status_code, status.description) == (StatusCode.ERROR, "no such thing; give another")


def test_of_an_error_that_is_not_ours_only_its_kind_is_told(heard):
    """Its words may quote anything."""
    with pytest.raises(UnicodeError), telemetry.span("plan"):
        raise UnicodeError("the password is open sesame")
    assert heard.said("plan") == {"error.type": "UnicodeError"}
    assert heard.span("plan").status.description is None
    assert heard.span("plan").events == ()


def test_an_error_of_somebody_elses_is_told_with_its_module(heard):
    """Two libraries may both have a `Timeout`."""
    with pytest.raises(json.JSONDecodeError), telemetry.span("plan"):
        json.loads("{")
    assert heard.said("plan") == {"error.type": "json.decoder.JSONDecodeError"}


def test_without_a_listener_a_span_records_nothing():
    """It takes whatever it is given, and leaves the context as it was."""
    with telemetry.span("compose", session="s") as span:
        span.set(tokens=1)
        span.fail("never")
        assert trace.get_current_span() is trace.INVALID_SPAN
    assert not span.live


def test_what_is_raised_goes_through_a_span_that_nobody_hears():
    """The off path swallows nothing."""
    with pytest.raises(ZeroDivisionError), telemetry.span("compose"):
        _ = 1 / 0


def test_tasks_of_one_loop_keep_their_spans_apart(heard):
    """Each child stands under the parent of its own task."""

    async def turn(number: int) -> None:
        with telemetry.span(f"parent {number}"):
            await asyncio.sleep(0)
            with telemetry.span(f"child {number}"):
                await asyncio.sleep(0)

    async def both() -> None:
        await asyncio.gather(turn(1), turn(2))

    asyncio.run(both())
    assert heard.parent(heard.span("child 1")) == "parent 1"
    assert heard.parent(heard.span("child 2")) == "parent 2"


def test_a_function_that_is_carried_to_another_thread_stays_under_the_span_of_now(heard):
    """A thread of its own would else begin a trace of its own."""

    def work() -> None:
        with telemetry.span("write"):
            pass

    with telemetry.span("plan"):
        threads = [Thread(target=telemetry.under_current_span(work)), Thread(target=work)]
        for thread in threads:
            thread.start()
            thread.join()
    assert [heard.parent(span) for span in heard.spans if span.name == "write"] == ["plan", None]


def test_without_a_listener_a_function_is_carried_as_well():
    """It does what it did."""
    done = []
    telemetry.under_current_span(lambda: done.append(1))()
    assert done == [1]


class Broken:
    """An exporter at which everything fails, and a provider whose tracer does."""

    def export(self, _):
        raise OSError("the collector is gone")

    def get_tracer(self, *_):
        return self

    def start_span(self, *_, **__):
        raise RuntimeError("no span for you")


def test_an_exporter_that_raises_costs_nothing():
    """The work is done; what it raised is in the log of the SDK."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(Broken()))
    telemetry.use(tracer_provider=provider)
    try:
        with telemetry.span("compose") as span:
            done = span.live
    finally:
        telemetry.use()
    assert done


@pytest.mark.usefixtures("untold")
def test_a_tracer_that_raises_costs_nothing_and_is_logged_once(caplog):
    """A turn goes on; the second failure of the same kind says nothing new."""
    telemetry.use(tracer_provider=Broken())
    done = []
    try:
        with caplog.at_level(logging.WARNING, "windowsill"):
            for _ in range(2):
                with telemetry.span("compose") as span:
                    span.set(tokens=1)
                    done.append(span)
    finally:
        telemetry.use()
    assert len(done) == 2
    assert [record.getMessage() for record in caplog.records] == [
        "telemetry failed with RuntimeError: no span for you; further ones are not logged"
    ]


class Deaf:
    """A processor that fails when a span ends."""

    def on_start(self, *_, **__):
        return None

    def _on_ending(self, _):
        raise ValueError("no ending")

    on_end = _on_ending

    def shutdown(self):
        return None


@pytest.mark.usefixtures("untold")
def test_a_processor_that_raises_at_the_end_leaves_the_context_as_it_was(caplog):
    """The next span does not stand under one that is over."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(Deaf())
    telemetry.use(tracer_provider=provider)
    try:
        with telemetry.span("compose"):
            pass
    finally:
        telemetry.use()
    assert trace.get_current_span() is trace.INVALID_SPAN
    assert "telemetry failed with ValueError" in caplog.text
