"""Message objects made by the real packages of LangChain, pydantic-ai and the OpenAI Agents SDK.

Not collected by `make test`, which knows these objects by their fields: the packages are many. `make soak` runs it.
"""

from __future__ import annotations

import asyncio

import pytest
from agents import Agent, ModelSettings, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.prompts import ChatPromptTemplate
from openai import AsyncOpenAI
from pydantic_ai import Agent as TypedAgent
from pydantic_ai import BinaryContent
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from windowsill import Session, fit, providers, wrap
from windowsill.messages import Usage
from windowsill.testing import Answer, Server
from windowsill.testing.protocols.base import Call

pytestmark = pytest.mark.integration

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x10\0\0\0\x10\x08\x02\0\0\0"


def opened(**settings):
    return Session.open("frameworks", model="gpt-5", store=":memory:", config=False, **settings)


def sound(session, *, results):
    """Check that every format takes the request, and that it has so many results."""
    payload = session.compose_sync()
    for format in providers.names():
        body = {"max_tokens": 9, "model": "gpt-5", **payload.to(format)}
        assert providers.validate(body, format) == []
    assert sum(len(message.results) for message in session.messages()) == results


LANGCHAIN = [
    SystemMessage("Be brief."),
    HumanMessage("What is in a.py and b.py?"),
    AIMessage(
        "I look.",
        tool_calls=[
            {"name": "read", "args": {"path": "a.py"}, "id": "c1", "type": "tool_call"},
            {"name": "read", "args": {"path": "b.py"}, "id": "c2", "type": "tool_call"},
        ],
        usage_metadata=UsageMetadata(
            input_tokens=100, output_tokens=9, total_tokens=109, input_token_details={"cache_read": 60}
        ),
        response_metadata={"model_name": "gpt-5"},
    ),
    ToolMessage("print(1)", tool_call_id="c1"),
    ToolMessage("no such file", tool_call_id="c2", status="error"),
    AIMessage("One prints, the other is missing."),
    HumanMessage(
        [
            {"type": "text", "text": "And this?"},
            {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}},
        ]
    ),
]


def test_langchain_messages_are_added():
    """Roles, parallel calls, a failed result, usage and pictures arrive."""
    session = opened()
    session.extend(LANGCHAIN)
    found = list(session.messages())
    assert [message.role for message in found][:3] == ["system", "user", "assistant"]
    assert [call.input for call in found[2].calls] == [{"path": "a.py"}, {"path": "b.py"}]
    assert [result.is_error for message in found for result in message.results] == [False, True]
    assert providers.read_added(LANGCHAIN[2]).usage == Usage(input=40, output=9, cache_read=60)
    assert [type(block).__name__ for block in found[-1].blocks] == ["Text", "Image"]
    sound(session, results=2)


def test_langchain_text_and_prompts_are_taken():
    """`text` of a message is a subclass of `str`; a prompt's messages are a list for `fit`."""
    session = opened()
    session.add(LANGCHAIN[1].text)
    assert session.compose_sync(system=LANGCHAIN[0].text).to("openai")["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is in a.py and b.py?"},
    ]
    prompt = ChatPromptTemplate.from_messages([("system", "Be brief."), ("human", "{question}")])
    fitted = fit(prompt.invoke({"question": "Why?"}).to_messages(), budget=2_000)
    assert fitted.messages[-1] == {"role": "user", "content": "Why?"}


def test_langchain_chunks_that_were_joined_are_one_answer():
    """A stream is added up by LangChain; the call in it is whole."""
    joined = AIMessageChunk("I ") + AIMessageChunk(
        "look.", tool_call_chunks=[{"name": "read", "args": '{"path": ', "id": "c1", "index": 0}]
    )
    joined += AIMessageChunk("", tool_call_chunks=[{"name": None, "args": '"a.py"}', "id": None, "index": 0}])
    (message,) = providers.read_added(joined).messages
    assert message.text == "I look."
    assert [(call.id, call.input) for call in message.calls] == [("c1", {"path": "a.py"})]


def answer_once(messages, info: AgentInfo) -> ModelResponse:
    """Be a model: think and call a tool with the wrong kind of argument, then with the right one, then answer."""
    calls = sum(isinstance(part, ToolCallPart) for message in messages for part in message.parts)
    if calls < 2:
        thought = [ThinkingPart("I should read it.")] if not calls else []
        arguments = {"line": "x"} if not calls else '{"line": 7}'
        return ModelResponse([*thought, TextPart("I look."), ToolCallPart(info.function_tools[0].name, arguments)])
    return ModelResponse([TextPart("It says seven.")])


def test_pydantic_ai_messages_of_a_run_are_added():
    """System prompt, picture, refused arguments and result of a run, also after they were stored as JSON."""
    agent = TypedAgent(FunctionModel(answer_once), system_prompt="Be brief.")

    @agent.tool_plain
    def read(line: int) -> dict[str, int]:
        return {"found": line}

    result = asyncio.run(agent.run(["What is in line 7?", BinaryContent(PNG, media_type="image/png")]))
    stored = ModelMessagesTypeAdapter.validate_json(result.all_messages_json())
    for messages in (result.all_messages(), stored):
        session = opened()
        session.extend(messages)
        found = list(session.messages())
        assert [message.role for message in found] == [
            "system",
            "user",
            "assistant",
            "user",
            "assistant",
            "user",
            "assistant",
        ]
        assert [type(block).__name__ for block in found[1].blocks] == ["Text", "Image"]
        assert [call.input for message in found for call in message.calls] == [{"line": "x"}, {"line": 7}]
        results = [result for message in found for result in message.results]
        assert [result.is_error for result in results] == [True, False]
        assert results[1].content[0].text == '{"found":7}'
        assert found[-1].text == "It says seven."
        sound(session, results=2)


def test_items_of_a_run_of_the_agents_sdk_are_added():
    """Responses, new items and the list of a result, of a run through a wrapped client against a strict server."""
    set_tracing_disabled(disabled=True)

    @function_tool
    def read(path: str) -> str:
        """Read a file."""
        return f"contents of {path}"

    def model(body):
        if any(item.get("type") == "function_call_output" for item in body["input"]):
            return Answer(text="It is short.")
        return Answer(calls=(Call("read", {"path": "a.py"}), Call("read", {"path": "b.py"})))

    async def run(url):
        async with wrap(AsyncOpenAI(base_url=f"{url}/v1", api_key="none"), store=":memory:", config=False) as client:
            asked = OpenAIResponsesModel(model="gpt-5", openai_client=client)
            agent = Agent("reader", instructions="Be brief.", tools=[read], model=asked, model_settings=ModelSettings())
            return await Runner.run(agent, "What is in them?")

    with Server(model) as server:
        result = asyncio.run(run(server.url))
        assert [seen.status for seen in server.seen] == [200, 200]
    assert result.final_output == "It is short."

    whole = opened()
    whole.add(result)
    apart = opened()
    apart.add("What is in them?")
    apart.extend(result.new_items)
    answers = opened()
    answers.add("What is in them?")
    answers.add(result.raw_responses[0])
    for session in (whole, apart):
        sound(session, results=2)
        assert [call.input for message in session.messages() for call in message.calls] == [
            {"path": "a.py"}, {"path": "b.py"},
        ]  # fmt: skip
        assert list(session.messages())[-1].text == "It is short."
    assert sum(len(message.calls) for message in answers.messages()) == 2
