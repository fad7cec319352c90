"""Model calls, tool runs and searches, as the GenAI conventions have them."""

import pytest
from opentelemetry.trace import SpanKind, StatusCode

from support.telemetry import listening
from windowsill import telemetry
from windowsill.messages import Usage
from windowsill.telemetry.names import provider_name

pytestmark = pytest.mark.unit


@pytest.fixture
def heard():
    with listening() as found:
        yield found


def test_a_model_call_says_everything_the_conventions_ask_for(heard):
    """Name, kind, request, answer and usage; the prompt counts whole, cached or not."""
    with telemetry.model_call(
        "claude-sonnet-4-5",
        provider="anthropic",
        session="s",
        compacted=True,
        stream=True,
        server="api.anthropic.com",
        port=443,
    ) as call:
        usage = Usage(input=10, cache_read=80, cache_write=10, output=7)
        call.record_answer(usage, model="claude-sonnet-4-5-20250929", id="msg_1", finish="end_turn")
    span = heard.span("chat claude-sonnet-4-5")
    assert span.kind is SpanKind.CLIENT
    assert dict(span.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "claude-sonnet-4-5",
        "gen_ai.request.stream": True,
        "gen_ai.conversation.id": "s",
        "gen_ai.conversation.compacted": True,
        "server.address": "api.anthropic.com",
        "server.port": 443,
        "gen_ai.response.model": "claude-sonnet-4-5-20250929",
        "gen_ai.response.id": "msg_1",
        "gen_ai.response.finish_reasons": ("end_turn",),
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.cache_read.input_tokens": 80,
        "gen_ai.usage.cache_creation.input_tokens": 10,
        "gen_ai.usage.cache_write.input_tokens": 10,
    }


def test_what_did_not_happen_is_left_out(heard):
    """The conventions want these never to be false."""
    with telemetry.model_call("m", provider="openai"):
        pass
    assert heard.said("chat m") == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "m",
    }


def test_a_model_calls_duration_is_measured_with_its_error(heard):
    """And told without the session."""
    with pytest.raises(TimeoutError), telemetry.model_call("m", provider="openai", session="s"):
        raise TimeoutError
    (point,) = heard.points("gen_ai.client.operation.duration")
    assert dict(point.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "m",
        "error.type": "TimeoutError",
    }


def test_a_call_that_is_kept_ends_when_its_stream_does(heard):
    """Once, and no longer as the current span."""
    with telemetry.model_call("m", provider="openai") as call:
        call.keep_open()
    with telemetry.span("between"):
        pass
    assert heard.names == ["between"]
    call.record_first_chunk()
    call.end()
    call.end()
    assert heard.names == ["chat m", "between"]
    assert heard.parent(heard.span("between")) is None
    assert heard.said("chat m")["gen_ai.response.time_to_first_chunk"] > 0
    assert heard.points("gen_ai.client.operation.duration")[0].count == 1


def test_a_call_that_is_kept_ends_at_once_when_something_is_raised(heard):
    """Nobody will read its stream."""
    call = telemetry.model_call("m", provider="openai")
    call.keep_open()
    with pytest.raises(TimeoutError), call:
        raise TimeoutError
    assert heard.said("chat m")["error.type"] == "TimeoutError"


def test_a_tool_run_says_which_tool_and_which_call(heard):
    """Its arguments and its result are content, and left out."""
    with telemetry.tool_run("read", call_id="c1", session="s", arguments={"path": "a"}) as run:
        run.record_result("the text")
    span = heard.span("execute_tool read")
    assert span.kind is SpanKind.INTERNAL
    assert dict(span.attributes) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "read",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.type": "function",
        "gen_ai.conversation.id": "s",
    }


def test_a_tool_that_answers_with_a_mistake_is_an_error(heard):
    """Though nothing was raised."""
    with telemetry.tool_run("read") as run:
        run.record_result("no such file", is_error=True)
    assert heard.said("execute_tool read")["error.type"] == "tool_error"
    assert heard.span("execute_tool read").status.status_code is StatusCode.ERROR


def test_a_search_is_a_retrieval(heard):
    """By the place that is searched; the question is content, and left out."""
    with telemetry.retrieval("archive", "what is the password?", session="s") as span:
        span.set(found=2)
    assert heard.said("retrieval archive") == {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.data_source.id": "archive",
        "gen_ai.conversation.id": "s",
        "windowsill.found": 2,
    }


def test_without_a_listener_calls_and_runs_record_nothing():
    """Everything they can be told is taken and forgotten."""
    call, run = telemetry.model_call("m", provider="openai"), telemetry.tool_run("read")
    with call, run:
        call.record_request([])
        call.record_first_chunk()
        call.record_answer(Usage(input=1), finish="stop")
        call.keep_open()
        run.record_result("x", is_error=True)
    call.end()
    assert (call.live, call.wants_content, run.live) == (False, False, False)


@pytest.mark.parametrize(
    ("ours", "host", "name"),
    [
        ("anthropic", "", "anthropic"),
        ("google", "", "gcp.gemini"),
        ("gemini", "eu-aiplatform.googleapis.com", "gcp.vertex_ai"),
        ("responses", "api.openai.com", "openai"),
        ("openai", "acme.openai.azure.com", "azure.ai.openai"),
        ("openai", "api.mistral.ai", "mistral_ai"),
        ("xai", "", "x_ai"),
        ("acme", "127.0.0.1", "acme"),
    ],
)
def test_providers_go_by_the_names_of_the_conventions(ours, host, name):
    """The host tells those apart who speak another's format."""
    assert provider_name(ours, host) == name
