"""Spans in a file: from Python and from the command line."""

import json
import subprocess
import sys

import pytest
from opentelemetry.trace import NoOpTracerProvider

from support.cli_calls import anthropic_turns, call, saved
from support.stores import child_env
from support.telemetry import listening
from windowsill import InputError, telemetry
from windowsill.telemetry import spans

pytestmark = pytest.mark.integration

WITHOUT = "import sys; sys.modules['opentelemetry.sdk'] = None\n"
"""As in an environment without the extra."""


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_span_is_a_line(tmp_path):
    """With its name, its attributes and where it stands."""
    path = tmp_path / "trace.jsonl"
    with telemetry.to_file(path), telemetry.span("compose", session="s"), telemetry.span("fold"):
        pass
    fold, compose = lines(path)
    assert (fold["name"], compose["name"]) == ("fold", "compose")
    assert fold["parent_id"] == compose["context"]["span_id"]
    assert compose["attributes"] == {"gen_ai.conversation.id": "s"}
    assert compose["resource"]["attributes"]["service.name"] == "windowsill"


def test_a_second_run_is_added_behind_the_first(tmp_path):
    """And after the end nothing is written any more."""
    path = tmp_path / "trace.jsonl"
    for name in ("one", "two"):
        with telemetry.to_file(path), telemetry.span(name):
            pass
    with telemetry.span("three"):
        pass
    assert [line["name"] for line in lines(path)] == ["one", "two"]


def test_closing_twice_is_fine(tmp_path):
    """Nobody has to remember."""
    tracing = telemetry.to_file(tmp_path / "trace.jsonl")
    tracing.close()
    tracing.close()
    assert not telemetry.span("compose").live


def test_a_full_disk_costs_nothing(monkeypatch, caplog):
    """It is logged, and the work goes on."""
    monkeypatch.setattr(spans, "_logged", set())
    with telemetry.to_file("/dev/full"), telemetry.span("compose") as span:
        done = span.live
    assert done
    assert [record.getMessage() for record in caplog.records] == [
        "telemetry failed with OSError: [Errno 28] No space left on device; further ones are not logged"
    ]


def test_a_provider_that_the_application_has_set_hears_as_before(tmp_path):
    """The file gets the spans of Windowsill, and not the application's."""
    code = f"""
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from windowsill import telemetry
heard = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(heard))
trace.set_tracer_provider(provider)
with telemetry.to_file({str(tmp_path / "t.jsonl")!r}):
    with trace.get_tracer("app").start_as_current_span("turn"), telemetry.span("compose"):
        pass
with telemetry.span("later"):
    pass
print([span.name for span in heard.get_finished_spans()])
"""
    assert run(code).strip() == "['compose', 'turn', 'later']"
    assert [line["name"] for line in lines(tmp_path / "t.jsonl")] == ["compose"]


def run(code):
    """Return what a fresh interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], env=child_env(), text=True, capture_output=True, check=True)
    return done.stdout


def test_a_command_writes_its_spans_to_a_file(tmp_path):
    """Under one span for the command."""
    path, trace = saved(tmp_path / "list.json", anthropic_turns(20)), tmp_path / "trace.jsonl"
    done = call("--trace", trace, "fit", path, "--budget", 800, "--model", "claude-sonnet-4-5")
    assert done.code == 0
    named = {line["context"]["span_id"]: line["name"] for line in lines(trace)}
    command = lines(trace)[-1]
    compose = next(line for line in lines(trace) if line["name"] == "compose")
    assert (command["name"], command["parent_id"]) == ("windowsill fit", None)
    assert named[compose["parent_id"]] == "windowsill fit"
    assert compose["attributes"]["gen_ai.conversation.compacted"] is True


def test_the_file_can_be_named_in_the_environment(tmp_path, monkeypatch):
    """For commands that somebody else starts."""
    trace = tmp_path / "trace.jsonl"
    monkeypatch.setenv("WINDOWSILL_TRACE", str(trace))
    assert call("strategies").code == 0
    assert [line["name"] for line in lines(trace)] == ["windowsill strategies"]


def test_a_command_prints_the_same_with_and_without_a_trace(tmp_path):
    """Byte for byte."""
    path = saved(tmp_path / "list.json", anthropic_turns(20))
    rest = ("fit", path, "--budget", 800, "--model", "claude-sonnet-4-5")
    assert call("--trace", tmp_path / "t", *rest) == call(*rest)


def test_a_file_that_cannot_be_written_is_one_line(tmp_path):
    """What, where and the remedy."""
    done = call("--trace", tmp_path / "no" / "t.jsonl", "strategies")
    assert done.code == 1
    assert done.err == f"windowsill: {tmp_path}/no/t.jsonl: no such file or directory; check the path\n"


def test_without_the_extra_the_remedy_is_said(tmp_path):
    """And the command is not run."""
    code = f"{WITHOUT}from windowsill.cli import main; main(['--trace', {str(tmp_path / 't')!r}, 'strategies'])"
    done = subprocess.run([sys.executable, "-c", code], env=child_env(), text=True, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "windowsill: writing spans needs a package that is missing: opentelemetry.sdk.trace; "
        "run in a clone of windowsill: pip install '.[telemetry]'\n"
    )
    assert not (tmp_path / "t").exists()


def test_two_files_are_written_side_by_side(tmp_path):
    """Whichever is closed first, the other goes on."""
    outer, inner = telemetry.to_file(tmp_path / "outer"), telemetry.to_file(tmp_path / "inner")
    with telemetry.span("both"):
        pass
    outer.close()
    with telemetry.span("one"):
        pass
    inner.close()
    assert [line["name"] for line in lines(tmp_path / "outer")] == ["both"]
    assert [line["name"] for line in lines(tmp_path / "inner")] == ["both", "one"]
    assert not telemetry.span("none").live


def test_a_provider_that_was_given_by_hand_hears_on(tmp_path):
    """While a file is written, and when it is closed."""
    with listening() as heard:
        with telemetry.to_file(tmp_path / "trace"), telemetry.span("meanwhile"):
            pass
        with telemetry.span("afterwards"):
            pass
        assert [span.name for span in heard.spans] == ["meanwhile", "afterwards"]
    assert [line["name"] for line in lines(tmp_path / "trace")] == ["meanwhile"]


def test_a_provider_of_another_make_cannot_be_written_beside(tmp_path):
    """It is said before anything is lost."""
    telemetry.use(tracer_provider=NoOpTracerProvider())
    try:
        with pytest.raises(InputError, match=r"not the SDK's; give telemetry\.use\(\)"):
            telemetry.to_file(tmp_path / "trace")
    finally:
        telemetry.use()
    assert not (tmp_path / "trace").exists()
