"""A tool loop of the official clients, session by session, against a strict server: never refused, nothing lost."""

import asyncio

import anthropic
import openai
import pytest

from support.conversations import result
from windowsill import Session
from windowsill.testing import Answer, Call, Server

pytestmark = pytest.mark.integration

TURNS = 60
BUDGET = 3_000
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
TOOLS = [{"name": "read", "description": "Read a file", "input_schema": {"type": "object", "properties": {}}}]
FUNCTIONS = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}]


def working(body):
    """A model that reasons and makes one to three calls each turn."""
    turn = len(body["messages"])
    calls = tuple(Call("read", {"path": f"{turn}-{place}.py"}) for place in range(1 + turn % 3))
    return Answer(reasoning="let me see", text=f"turn {turn}", calls=calls)


def small_window(store, model):
    """The server counts as the session does, and allows no token more."""
    session = Session.open("loop", model=model, budget=BUDGET, tokenizer="o200k_base", store=store)
    return session, Server(working, window=BUDGET, cache_minimum=500)


def checked(session, server, added):
    """No request was refused, none was above the window, and every message is there."""
    assert [each.problems for each in server.refused] == []
    assert [each.status for each in server.seen] == [200] * TURNS
    assert max(each.tokens for each in server.seen) <= BUDGET
    assert len(list(session.messages())) == added
    assert session.folds
    assert session.verify() == []
    cached = sum(each.cached for each in server.seen) / sum(each.tokens for each in server.seen)
    assert cached > 0.6


@pytest.mark.parametrize("model", ["claude-sonnet-4-6", "claude-sonnet-5"])
def test_anthropics_client_in_a_small_window(tmp_path, model):
    """Parallel calls, reasoning, pictures in results."""
    session, strict = small_window(tmp_path, model)
    session.add({"role": "user", "content": "Read everything."})
    with strict as server, anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0) as client:
        for turn in range(TURNS):
            payload = session.compose_sync(system="You read files.", tools=TOOLS)
            reply = client.messages.create(max_tokens=256, **payload.to("anthropic"))
            session.add(reply)
            calls = [block for block in reply.content if block.type == "tool_use"]
            output = [IMAGE] if turn % 7 == 0 else "line of the file\n" * 20
            session.add({"role": "user", "content": [result(call.id, output) for call in calls]})
    checked(session, server, 1 + 2 * TURNS)


def test_openais_client_in_a_small_window(tmp_path):
    """One message for each result, the client asynchronous."""
    session, strict = small_window(tmp_path, "gpt-5")
    session.add({"role": "user", "content": "Read everything."})

    async def loop(server):
        added = 1
        async with openai.AsyncOpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0) as client:
            for _ in range(TURNS):
                payload = await session.compose(system="You read files.", tools=FUNCTIONS)
                reply = await client.chat.completions.create(**payload.to("openai"))
                session.add(reply)
                calls = reply.choices[0].message.tool_calls
                session.extend(
                    {"role": "tool", "tool_call_id": call.id, "content": "line of the file\n" * 20} for call in calls
                )
                added += 1 + len(calls)
        return added

    with strict as server:
        added = asyncio.run(loop(server))
    checked(session, server, added)


def test_a_conversation_may_change_its_provider(tmp_path):
    """Begun with one, gone on with the other, in the same session."""
    session, strict = small_window(tmp_path, "claude-sonnet-4-6")
    session.add({"role": "user", "content": "Read everything."})
    with (
        strict as server,
        anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0) as claude,
        openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0) as gpt,
    ):
        for turn in range(20):
            if turn % 2:
                payload = session.compose_sync(tools=FUNCTIONS, format="openai")
                reply = gpt.chat.completions.create(**{**payload.to(), "model": "gpt-5"})
                calls = [call.id for call in reply.choices[0].message.tool_calls]
            else:
                payload = session.compose_sync(tools=TOOLS, format="anthropic")
                reply = claude.messages.create(max_tokens=256, **payload.to())
                calls = [block.id for block in reply.content if block.type == "tool_use"]
            session.add(reply)
            if turn % 2:
                session.extend({"role": "tool", "tool_call_id": id, "content": "done"} for id in calls)
            else:
                session.add({"role": "user", "content": [result(id) for id in calls]})
    assert server.refused == []
    assert session.verify() == []
