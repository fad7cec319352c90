"""Bedrock Converse: what is written is what is read, and has the shapes of boto3."""

import base64

import pytest

from support.sessions import opened
from windowsill.providers.converse import converse_request

pytestmark = pytest.mark.unit

PICTURE = {"image": {"format": "png", "source": {"bytes": b"png"}}}
MESSAGES = [
    {"role": "user", "content": [{"text": "Look at it."}, PICTURE]},
    {
        "role": "assistant",
        "content": [
            {"reasoningContent": {"reasoningText": {"text": "I read it.", "signature": "s1"}}},
            {"text": "One moment."},
            {"toolUse": {"toolUseId": "t1", "name": "read", "input": {"path": "a.py"}}},
        ],
    },
    {
        "role": "user",
        "content": [{"toolResult": {"toolUseId": "t1", "content": [{"text": "boom"}, PICTURE], "status": "error"}}],
    },
]


def test_messages_go_back_in_the_shapes_they_came_in():
    """Text, pictures as bytes, signed reasoning, calls, failed results."""
    session = opened(model="anthropic.claude-sonnet-4-5-20250929-v1:0", budget=50_000)
    session.extend(MESSAGES)
    request = session.compose_sync().to("converse", cache=False)
    assert request["messages"] == MESSAGES
    assert request["modelId"] == "anthropic.claude-sonnet-4-5-20250929-v1:0"


def test_messages_of_one_role_in_a_row_become_one():
    """Bedrock wants user and assistant in turn."""
    session = opened(model="anthropic.claude-sonnet-4-5-20250929-v1:0", budget=50_000)
    session.add("Hello")
    session.compose_sync()
    session.add("Are you there?")
    messages = session.compose_sync().to("converse", cache=False)["messages"]
    assert messages == [{"role": "user", "content": [{"text": "Hello"}, {"text": "Are you there?"}]}]


def test_a_response_of_boto3_is_added_with_its_usage():
    """As it comes from `client.converse`."""
    session = opened(model="anthropic.claude-sonnet-4-5-20250929-v1:0", budget=50_000)
    session.add("Hello")
    session.compose_sync()
    message = {"role": "assistant", "content": [{"text": "Hi."}]}
    session.add(
        {"output": {"message": message}, "stopReason": "end_turn", "usage": {"inputTokens": 9, "outputTokens": 2}}
    )
    assert session.compose_sync().to("converse", cache=False)["messages"][-1] == message
    assert session.composer.context.describe()["observations"] == 1


def test_system_tools_and_settings_stand_where_converse_has_them():
    """Fields that only the model knows are passed on to it; cache marks are cache points."""
    written = converse_request(
        {
            "model": "m",
            "max_tokens": 100,
            "stop_sequences": ["x"],
            "thinking": {"type": "adaptive"},
            "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
            "tools": [{"name": "read", "description": "Read.", "input_schema": {"type": "object"}}],
            "tool_choice": {"type": "tool", "name": "read"},
            "messages": [
                {"role": "user", "content": "hi"},
                {
                    "role": "assistant",
                    "content": [{"type": "redacted_thinking", "data": base64.b64encode(b"r").decode()}],
                },
            ],
        }
    )
    assert written == {
        "modelId": "m",
        "inferenceConfig": {"maxTokens": 100, "stopSequences": ["x"]},
        "additionalModelRequestFields": {"thinking": {"type": "adaptive"}},
        "system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}],
        "toolConfig": {
            "tools": [
                {"toolSpec": {"name": "read", "description": "Read.", "inputSchema": {"json": {"type": "object"}}}}
            ],
            "toolChoice": {"tool": {"name": "read"}},
        },
        "messages": [
            {"role": "user", "content": [{"text": "hi"}]},
            {"role": "assistant", "content": [{"reasoningContent": {"redactedContent": b"r"}}]},
        ],
    }
