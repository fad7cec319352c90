"""Which providers get spans and metrics: those that the application has set, whenever it does so."""

import subprocess
import sys

import pytest

from support.stores import child_env

pytestmark = pytest.mark.integration

TURN = """
from windowsill import Session
def turn():
    with Session.open("s", model="claude-sonnet-4-5", budget=1500, store=":memory:", tokenizer="o200k_base") as session:
        session.add("Mend the login page.")
        for number in range(40):
            session.add({"role": "assistant", "content": f"step {number} " + "word " * 50})
            session.add("go on")
        session.compose_sync()
        folds = len(session.folds)
        session.archive.retrieve("step 7")
        session.composer.observe({"input_tokens": 10, "output_tokens": 5})
        session.rewind(session.view.items[-1].id, before=True)
        return folds
"""
SEEN = "print(sorted(name for name in sys.modules if name.startswith(('opentelemetry.sdk', 'prometheus', 'genai_'))))"


def run(code):
    """Return what a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=child_env(), text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_session_loads_no_sdk():
    """Though it is installed; and no prices, which only those who measure need, and strategies that weigh them."""
    turn = TURN.replace("store=", "strategy='sliding-window', store=")
    assert run(f"import sys\n{turn}\nprint(turn() > 0)\n{SEEN}") == ["True", "[]"]


def test_importing_windowsill_loads_nothing_of_opentelemetry():
    """Its API is loaded with the first session."""
    assert run("import sys, windowsill\nprint([name for name in sys.modules if 'opentelemetry' in name])") == ["[]"]


def test_a_session_works_where_the_sdk_is_not_installed():
    """It is an extra."""
    assert run(f"import sys\nsys.modules['opentelemetry.sdk'] = None\n{TURN}\nprint(turn() > 0)") == ["True"]


def test_an_api_without_an_sdk_hears_nothing():
    """Nothing is recorded, and nobody has to work out what could be."""
    code = f"""
from windowsill import telemetry
{TURN}
turn()
print(telemetry.span("compose", timed="windowsill.compose.duration").live, telemetry.is_measured())
"""
    assert run(code) == ["False False"]


def test_a_provider_that_is_set_later_is_heard_from_then_on():
    """A program may set it up after its first session was opened."""
    code = f"""
{TURN}
turn()
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
turn()
heard, reader = InMemorySpanExporter(), InMemoryMetricReader()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(heard))
trace.set_tracer_provider(provider)
metrics.set_meter_provider(MeterProvider(metric_readers=[reader]))
turn()
print([span.name for span in heard.get_finished_spans()])
(scope,) = reader.get_metrics_data().resource_metrics[0].scope_metrics
print(scope.scope.name, sorted(metric.name for metric in scope.metrics))
"""
    spans, metrics = run(code)
    assert spans == "['fold', 'plan', 'compose', 'retrieval archive', 'rewind']"
    assert metrics == (
        "windowsill ['gen_ai.client.operation.duration', 'gen_ai.client.token.usage', 'windowsill.cache.hit_ratio', "
        "'windowsill.compose.duration', 'windowsill.cost', 'windowsill.fold.tokens_saved', 'windowsill.folds', "
        "'windowsill.tokens']"
    )


def test_an_sdk_that_is_switched_off_hears_nothing():
    """By OpenTelemetry's own variable."""
    code = f"""
import os
os.environ["OTEL_SDK_DISABLED"] = "true"
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
heard = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(heard))
trace.set_tracer_provider(provider)
{TURN}
print(turn() > 0, heard.get_finished_spans())
"""
    assert run(code) == ["True ()"]
