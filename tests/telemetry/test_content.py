"""What was said: left out unless it is asked for, and then without the secrets in it."""

import json

import pytest
from opentelemetry import _logs
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor

from support.telemetry import listening
from windowsill import telemetry
from windowsill.messages import Image, Message, Reasoning, Text, ToolResult, ToolUse, text_message
from windowsill.telemetry.spans import SWITCH

pytestmark = pytest.mark.unit

SECRET = "ghp_" + "aB3dE5gH7j" * 3 + "K9mN1p"
"""In the form of a key, put together here so that it is none."""

ASKED = (
    text_message("user", f"My key is {SECRET}."),
    Message(
        role="assistant",
        blocks=(
            Reasoning(text="I should read."),
            ToolUse(id="c1", name="read", arguments=json.dumps({"path": "a.txt", "token": SECRET})),
        ),
    ),
    Message(role="user", blocks=(ToolResult(tool_use_id="c1", content=(Text(text="hello"), Image(data="AAAA"))),)),
)


@pytest.fixture
def heard():
    with listening() as found:
        yield found


def call():
    """A call with everything in it."""
    with telemetry.model_call("m", provider="openai") as span:
        span.record_request(ASKED, text_message("system", f"Be kind. {SECRET}"))
        span.record_answer(finish="stop", messages=[text_message("assistant", f"I keep {SECRET}.")])
        return span.wants_content


@pytest.mark.parametrize("said", [None, "", "false", "NO_CONTENT", "EVENT_ONLY", "nonsense"])
def test_by_default_nothing_that_was_said_is_on_a_span(heard, monkeypatch, said):
    """Neither words nor arguments, results or questions."""
    monkeypatch.delenv(SWITCH, raising=False)
    if said is not None:
        monkeypatch.setenv(SWITCH, said)
    call()
    with telemetry.tool_run("read", arguments={"path": "a.txt"}) as run:
        run.record_result("hello")
    with telemetry.retrieval("archive", "where is a.txt?"):
        pass
    told = {name for span in heard.spans for name in span.attributes}
    assert told.isdisjoint(
        {
            "gen_ai.input.messages",
            "gen_ai.output.messages",
            "gen_ai.system_instructions",
            "gen_ai.tool.call.arguments",
            "gen_ai.tool.call.result",
            "gen_ai.retrieval.query.text",
        }
    )
    assert len(heard.spans) == 3


@pytest.mark.parametrize("said", ["true", "True", "SPAN_ONLY", "span_and_event"])
def test_what_is_asked_for_is_told_in_the_conventions_form(heard, monkeypatch, said):
    """Messages in parts, as JSON, since a span holds no objects."""
    monkeypatch.setenv(SWITCH, said)
    assert call()
    told = heard.said("chat m")
    assert json.loads(told["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [{"type": "text", "content": "My key is [secret: github-token]."}]},
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "I should read."},
                {
                    "type": "tool_call",
                    "id": "c1",
                    "name": "read",
                    "arguments": {"path": "a.txt", "token": "[secret: github-token]"},
                },
            ],
        },
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "hello\n[image]"}]},
    ]
    (answer,) = json.loads(told["gen_ai.output.messages"])
    assert (answer["role"], answer["finish_reason"]) == ("assistant", "stop")


def test_secrets_are_taken_out_of_what_is_told(heard, monkeypatch):
    """Wherever they stand; the words around them stay."""
    monkeypatch.setenv(SWITCH, "true")
    call()
    with telemetry.tool_run("read", arguments={"auth": {"header": f"Bearer {SECRET}"}, "list": [SECRET]}) as run:
        run.record_result({"found": f"the key {SECRET}"})
    with telemetry.retrieval("archive", f"where is {SECRET}?"):
        pass
    told = [str(value) for span in heard.spans for value in span.attributes.values()]
    assert not [value for value in told if SECRET in value]
    assert "My key is [secret: " in heard.said("chat m")["gen_ai.input.messages"]
    assert json.loads(heard.said("execute_tool read")["gen_ai.tool.call.result"])["found"].startswith("the key [secret")


def test_a_password_is_known_by_the_name_it_stands_under(heard, monkeypatch):
    """Though alone it is a word like any other."""
    monkeypatch.setenv(SWITCH, "true")
    word = "correcthorse" + "42batteryStaple"
    with telemetry.tool_run("login", arguments={"user": "ann", "password": word}):
        pass
    told = json.loads(heard.said("execute_tool login")["gen_ai.tool.call.arguments"])
    assert (told["user"], told["password"][:8]) == ("ann", "[secret:")


def test_a_picture_is_named_and_not_told(heard, monkeypatch):
    """A trace is read, not looked at."""
    monkeypatch.setenv(SWITCH, "true")
    picture = Message(role="user", blocks=(Image(media_type="image/png", data="QUJDRA=="),))
    with telemetry.model_call("m", provider="openai") as span:
        span.record_request([picture])
    (message,) = json.loads(heard.said("chat m")["gen_ai.input.messages"])
    assert message["parts"] == [{"type": "blob", "modality": "image", "mime_type": "image/png", "content": ""}]


def test_content_goes_to_events_where_it_is_wanted_there(heard, monkeypatch):
    """In structured form, without secrets, beside the span and not on it."""
    monkeypatch.setenv(SWITCH, "EVENT_ONLY")
    exporter = InMemoryLogRecordExporter()
    provider = LoggerProvider(shutdown_on_exit=False)
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    monkeypatch.setattr(_logs, "get_logger", provider.get_logger)
    call()
    (record,) = [each.log_record for each in exporter.get_finished_logs()]
    assert record.event_name == "gen_ai.client.inference.operation.details"
    assert record.attributes["gen_ai.request.model"] == "m"
    assert record.attributes["gen_ai.input.messages"][2]["parts"][0]["response"] == "hello\n[image]"
    assert SECRET not in str(record.attributes)
    assert "gen_ai.input.messages" not in heard.said("chat m")


def test_an_errors_words_are_told_without_secrets(heard):
    """Of our errors, which may quote what they were given."""
    from windowsill.errors import InputError  # noqa: PLC0415 - beside the one test that raises it

    with pytest.raises(InputError), telemetry.span("compose"):
        raise InputError(f"no such key: {SECRET}")
    assert heard.span("compose").status.description.startswith("no such key: [secret: ")


@pytest.mark.parametrize(
    "arguments",
    [
        {"password": ["hunter22x"]},
        {"password": 'hunter22x":"'},
        {"env": {"DB_PASSWORD": "hunter22x"}},
        {"env": [{"name": "DB_PASSWORD", "value": "hunter22x"}]},
        {"hunter22x@example:" + SECRET: "hunter22y"},
    ],
)
def test_secrets_are_found_in_lists_names_and_pairs(heard, monkeypatch, arguments):
    """A name speaks for the items of its list, a name may be a secret itself, and a pair is an assignment."""
    monkeypatch.setenv(SWITCH, "true")
    with telemetry.tool_run("login", arguments=arguments):
        pass
    told = heard.said("execute_tool login")["gen_ai.tool.call.arguments"]
    assert "[secret: " in told
    assert "hunter22x" not in told.replace("hunter22x@", "")
    assert SECRET not in told


def test_an_error_is_cut_after_its_secrets_are_taken_out(heard):
    """Half a key reads like any word, and is still half a key."""
    from windowsill.errors import InputError  # noqa: PLC0415 - beside the one test that raises it

    key = "ghp_" + "aB3dE5fG7h" * 4
    with pytest.raises(InputError), telemetry.span("compose"):
        raise InputError("word " * 57 + key)
    assert "ghp_" not in heard.span("compose").status.description
