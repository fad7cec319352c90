"""What is heard of a run of an engine."""

import pytest

from support.agents import engine
from support.telemetry import listening
from windowsill.agent import ModelError
from windowsill.testing import Call, Scripted

pytestmark = pytest.mark.integration


@pytest.fixture
def heard():
    with listening() as found:
        yield found


def test_everything_of_a_run_stands_under_it(heard):
    """Requests, model calls, tool runs and checkpoints, in one trace, each with its parent."""
    running = engine(Scripted([Call("look", {"path": "a"}), "done"], format="anthropic", name="claude-sonnet-4-5"))
    running.run_sync("Go.")
    under = [heard.parent(span) for span in heard.spans if span.name != "invoke_agent"]
    assert set(under) == {"invoke_agent"}
    assert heard.names.count("compose") == heard.names.count("chat claude-sonnet-4-5") == 2
    assert heard.names.count("execute_tool look") == 1
    assert "checkpoint" in heard.names
    assert len({span.context.trace_id for span in heard.spans}) == 1
    said = heard.said("invoke_agent")
    assert (said["gen_ai.operation.name"], said["windowsill.status"]) == ("invoke_agent", "completed")
    assert said["gen_ai.conversation.id"] == "s"


def test_tools_and_failures_say_what_they_are_and_no_content(heard):
    """The words of the task, of arguments and of errors are nobody's business by default."""
    running = engine(
        Scripted(
            [Call("broken", id="c1"), ModelError("refused", "s3cret words")], format="gemini", name="gemini-2.5-pro"
        )
    )
    running.run_sync("A task with s3cret words.")
    said = heard.said("execute_tool broken")
    assert (said["gen_ai.tool.name"], said["error.type"]) == ("broken", "tool_error")
    calls = [span for span in heard.spans if span.name == "generate_content gemini-2.5-pro"]
    assert [span.attributes.get("error.type") for span in calls] == [None, "ModelError"]
    assert "it is broken" not in str([dict(span.attributes) for span in heard.spans])
    assert "A task with" not in str([dict(span.attributes) for span in heard.spans])
