"""Message objects of agent frameworks and of programs are added as they are."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import pydantic
import pytest

from support.sessions import opened
from windowsill import fit, providers
from windowsill.errors import FormatError
from windowsill.messages import Usage

pytestmark = pytest.mark.unit


# Objects with the fields that the frameworks give them; the packages themselves are not needed.


class Base(pydantic.BaseModel):
    """As LangChain's messages are."""

    content: str | list[str | dict[str, Any]]
    additional_kwargs: dict[str, Any] = {}
    response_metadata: dict[str, Any] = {}
    name: str | None = None
    id: str | None = None


class HumanMessage(Base):
    type: Literal["human"] = "human"


class SystemMessage(Base):
    type: Literal["system"] = "system"


class AIMessage(Base):
    type: Literal["ai"] = "ai"
    tool_calls: list[dict[str, Any]] = []
    invalid_tool_calls: list[dict[str, Any]] = []
    usage_metadata: dict[str, Any] | None = None


class ToolMessage(Base):
    type: Literal["tool"] = "tool"
    tool_call_id: str
    status: str = "success"
    artifact: Any = None


class RemoveMessage(Base):
    type: Literal["remove"] = "remove"


LANGCHAIN = [
    SystemMessage(content="Be brief."),
    HumanMessage(content="What is in a.py?"),
    AIMessage(
        content="I look.",
        tool_calls=[{"name": "read", "args": {"path": "a.py"}, "id": "c1", "type": "tool_call"}],
        usage_metadata={
            "input_tokens": 100, "output_tokens": 9, "total_tokens": 109, "input_token_details": {"cache_read": 60},
        },
        response_metadata={"model_name": "gpt-5"},
    ),
    ToolMessage(content="boom", tool_call_id="c1", status="error"),
    AIMessage(content="It failed."),
]  # fmt: skip


def test_langchain_messages_are_added_one_by_one():
    """Roles, calls, results and a failed status arrive; the request is valid for every provider."""
    session = opened(model="gpt-5")
    for message in LANGCHAIN:
        session.add(message)
    found = list(session.messages())
    assert [message.role for message in found] == ["system", "user", "assistant", "user", "assistant"]
    assert found[2].calls[0].input == {"path": "a.py"}
    assert found[3].results[0].is_error
    payload = session.compose_sync()
    for format in providers.names():
        assert providers.validate({"max_tokens": 9, "model": "gpt-5", **payload.to(format)}, format) == []
    assert [each["role"] for each in payload.to("openai")["messages"]] == [
        "system", "user", "assistant", "tool", "assistant",
    ]  # fmt: skip


def test_langchain_usage_is_read():
    """What the model used is part of its message; the cached tokens are not counted twice."""
    added = providers.read_added(LANGCHAIN[2])
    assert added.usage == Usage(input=40, output=9, cache_read=60)
    assert added.model == "gpt-5"


def test_langchain_list_is_fitted():
    """A list of message objects goes through `fit` as a list of dictionaries does."""
    payload = fit(LANGCHAIN, budget=2_000)
    assert payload.messages[1] == {"role": "user", "content": "What is in a.py?"}
    assert payload.messages[2]["tool_calls"][0]["id"] == "c1"


def test_langchain_answer_of_claude_keeps_its_signature():
    """Blocks of Anthropic's go back as they came, and a call that stands only beside them is added."""
    thinking = {"type": "thinking", "thinking": "hm", "signature": "sig", "index": 0}
    message = AIMessage(
        content=[
            thinking,
            {"type": "tool_use", "id": "c1", "name": "read", "input": {}, "partial_json": "{", "index": 1},
        ],
        tool_calls=[
            {"name": "read", "args": {"path": "a"}, "id": "c1", "type": "tool_call"},
            {"name": "read", "args": {"path": "b"}, "id": "c2", "type": "tool_call"},
        ],
    )
    (found,) = providers.read_added(message).messages
    assert found.format == "anthropic"
    assert found.blocks[0].signature == "sig"
    assert [(call.id, call.input) for call in found.calls] == [("c1", {"path": "a"}), ("c2", {"path": "b"})]


def test_langchain_arguments_are_those_the_model_wrote():
    """Where the object has the text of the arguments beside the parsed ones, the text is recorded."""
    raw = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{ "a": 1e999 }'}}
    message = AIMessage(
        content="",
        tool_calls=[{"name": "f", "args": {"a": float("inf")}, "id": "c1", "type": "tool_call"}],
        additional_kwargs={"tool_calls": [raw]},
    )
    assert providers.read_added(message).messages[0].calls[0].arguments == '{ "a": 1e999 }'


def test_langchain_pictures_are_read():
    """Pictures in LangChain's own form, OpenAI's and Anthropic's are pictures."""
    own = {"type": "image", "base64": "aGk=", "mime_type": "image/png"}
    openai = {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}}
    claude = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    for part in (own, openai, claude):
        (message,) = providers.read_added(HumanMessage(content=["look", part])).messages
        assert [type(block).__name__ for block in message.blocks] == ["Text", "Image"]


def test_langchain_removal_is_refused():
    """An object that takes messages away is no message."""
    with pytest.raises(FormatError, match="RemoveMessage"):
        providers.read_added(RemoveMessage(content=""))


@dataclasses.dataclass
class Part:
    """As pydantic-ai's parts are."""

    part_kind: str
    content: Any = None
    tool_name: str | None = None
    tool_call_id: str = ""
    args: Any = None
    signature: str | None = None
    outcome: str = "success"


@dataclasses.dataclass
class RequestUsage:
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


@dataclasses.dataclass
class Turn:
    """As pydantic-ai's `ModelRequest` and `ModelResponse` are."""

    parts: list[Part]
    kind: str
    usage: RequestUsage = dataclasses.field(default_factory=RequestUsage)
    model_name: str | None = None
    provider_name: str | None = None
    instructions: str | None = None


@dataclasses.dataclass
class Binary:
    data: bytes
    media_type: str
    kind: str = "binary"


def test_pydantic_ai_messages_are_added():
    """A request is its system prompt, its results together, and the user's words; a response is one answer."""
    session = opened(model="gpt-5")
    calls = [
        Part("tool-call", tool_name="f", tool_call_id="c1", args={"a": 1}),
        Part("tool-call", tool_name="g", tool_call_id="c2", args='{"b": 2}'),
    ]
    asked = [Part("system-prompt", "Be brief."), Part("user-prompt", ["look", Binary(b"png", "image/png")])]
    results = [Part("tool-return", {"found": 1}, "f", "c1"), Part("retry-prompt", "wrong", "g", "c2")]
    session.extend(
        [
            Turn(asked, "request"),
            Turn([Part("text", "I look."), *calls], "response", RequestUsage(100, 5, 60)),
            Turn([*results, Part("user-prompt", "go on")], "request"),
        ]
    )
    found = list(session.messages())
    assert [message.role for message in found] == ["system", "user", "assistant", "user", "user"]
    assert [call.input for call in found[2].calls] == [{"a": 1}, {"b": 2}]
    assert [(result.tool_use_id, result.content[0].text, result.is_error) for result in found[3].results] == [
        ("c1", '{"found":1}', False),
        ("c2", "wrong", True),
    ]
    payload = session.compose_sync()
    for format in providers.names():
        assert providers.validate({"max_tokens": 9, "model": "gpt-5", **payload.to(format)}, format) == []


@pytest.mark.parametrize("outcome", ["failed", "denied", "interrupted", "retried"])
def test_pydantic_ai_result_that_is_no_success_is_a_failure(outcome):
    """Arguments that were refused and a run that was stopped come as results with an outcome."""
    turn = Turn([Part("tool-return", "no", "f", "c1", outcome=outcome)], "request")
    (message,) = providers.read_added(turn).messages
    assert message.results[0].is_error


def test_pydantic_ai_answer_of_claude_keeps_its_signature():
    """Signed thinking of Anthropic's goes back in Anthropic's form."""
    turn = Turn([Part("thinking", "hm", signature="sig"), Part("text", "hi")], "response", provider_name="anthropic")
    (message,) = providers.read_added(turn).messages
    assert message.format == "anthropic"
    assert message.blocks[0].signature == "sig"


class RunItem:
    """As an item of a run of the Agents SDK is."""

    def __init__(self, item: dict[str, Any]) -> None:
        self.raw_item = item

    def to_input_item(self) -> dict[str, Any]:
        return self.raw_item


def test_items_of_the_agents_sdk_are_added():
    """An item gives what may be sent again, in the form of Responses."""
    session = opened(model="gpt-5")
    session.add("hi")
    session.add(RunItem({"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}))
    session.add(RunItem({"type": "function_call_output", "call_id": "c1", "output": "ok"}))
    assert [message.format for message in session.messages()][1:] == ["responses", "responses"]


@dataclasses.dataclass
class Said:
    role: str
    content: str


def test_data_class_with_the_fields_of_a_message_is_one():
    """A program's own class is read by its fields."""
    (message,) = providers.read_added(Said("assistant", "hi")).messages
    assert (message.role, message.text) == ("assistant", "hi")


@dataclasses.dataclass
class Other:
    text: str


@pytest.mark.parametrize("value", [Other("hi"), object(), 7, None])
def test_object_that_is_no_message_is_named_with_what_may_be_passed(value):
    """The error names the class, and the kinds of objects that are known."""
    with pytest.raises(FormatError) as raised:
        opened().add(value)
    assert type(value).__name__ in str(raised.value)
    assert "LangChain" in raised.value.remedy


CONVERSE = [
    {"role": "user", "content": [{"text": "look"}, {"image": {"format": "png", "source": {"bytes": b"png"}}}]},
    {
        "role": "assistant",
        "content": [
            {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "sig"}}},
            {"toolUse": {"toolUseId": "t1", "name": "read", "input": {"path": "a"}}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"toolResult": {"toolUseId": "t1", "status": "error", "content": [{"text": "no"}, {"json": {"code": 2}}]}},
            {"cachePoint": {"type": "default"}},
        ],
    },
]


def test_messages_of_bedrock_and_strands_are_added():
    """Their blocks are read as Anthropic's: calls, failed results, signed thinking and pictures arrive."""
    session = opened()
    session.extend(CONVERSE)
    asked, called, answered = session.messages()
    assert [type(block).__name__ for block in asked.blocks] == ["Text", "Image"]
    assert called.blocks[0].signature == "sig"
    assert called.calls[0].input == {"path": "a"}
    assert answered.results[0].is_error
    assert [block.text for block in answered.results[0].content] == ["no", '{"code":2}']
    body = session.compose_sync().to("anthropic")
    assert providers.validate({"max_tokens": 9, **body}, "anthropic") == []
    assert fit(CONVERSE, budget=10_000).messages[1]["content"][1]["name"] == "read"
