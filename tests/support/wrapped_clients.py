"""The official clients, each with its own way to say the same things: one loop of a test runs through all of them."""

from __future__ import annotations

from inspect import isawaitable
from types import SimpleNamespace
from typing import Any, ClassVar

import anthropic
import openai
from google import genai

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
SYSTEM = "You read files."
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}}}


async def done(value: Any) -> Any:
    """The value of a call, whether the client is synchronous or not."""
    return await value if isawaitable(value) else value


async def close(client: Any) -> None:
    """Close a client of either kind."""
    if isinstance(client, genai.Client):
        await client.aio.aclose()
    await done(client.close())


async def finished(stream: Any, final: str) -> Any:
    """Return what an SDK's own streaming helper puts together."""
    if hasattr(stream, "__aenter__"):
        async with stream as events:
            return await getattr(events, final)()
    with stream as events:
        return getattr(events, final)()


def asked(id: str) -> Any:
    """A call of the one tool there is."""
    return SimpleNamespace(id=id, name="read")


class Anthropic:
    """`client.messages`."""

    model = "claude-sonnet-4-6"
    tools: ClassVar[Any] = [{"name": "read", "description": "Read a file", "input_schema": SCHEMA}]

    def client(self, url: str, *, later: bool) -> Any:
        kind = anthropic.AsyncAnthropic if later else anthropic.Anthropic
        return kind(base_url=url, api_key="none", max_retries=0)

    async def ask(self, client: Any, messages: list[Any], *, stream: bool) -> Any:
        fields = {"model": self.model, "max_tokens": 256, "system": SYSTEM, "tools": self.tools, "messages": messages}
        if stream:
            return await finished(client.messages.stream(**fields), "get_final_message")
        return await done(client.messages.create(**fields))

    def said(self, reply: Any) -> list[Any]:
        return [{"role": "assistant", "content": reply.content}]

    def text(self, reply: Any) -> str:
        return "".join(block.text for block in reply.content if block.type == "text")

    def calls(self, reply: Any) -> list[Any]:
        return [asked(block.id) for block in reply.content if block.type == "tool_use"]

    def user(self, text: str) -> Any:
        return {"role": "user", "content": text}

    def results(self, calls: list[Any], output: str, *, picture: bool) -> list[Any]:
        source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
        content = [{"type": "image", "source": source}] if picture else output
        blocks = [{"type": "tool_result", "tool_use_id": call.id, "content": content} for call in calls]
        return [{"role": "user", "content": blocks}]


class Chat:
    """`client.chat.completions`."""

    model = "gpt-5"
    tools: ClassVar[Any] = [{"type": "function", "function": {"name": "read", "parameters": SCHEMA}}]

    def client(self, url: str, *, later: bool) -> Any:
        kind = openai.AsyncOpenAI if later else openai.OpenAI
        return kind(base_url=url + "/v1", api_key="none", max_retries=0)

    async def ask(self, client: Any, messages: list[Any], *, stream: bool) -> Any:
        listed = [{"role": "system", "content": SYSTEM}, *messages]
        fields = {"model": self.model, "tools": self.tools, "messages": listed}
        if stream:
            return await finished(client.chat.completions.stream(**fields), "get_final_completion")
        return await done(client.chat.completions.create(**fields))

    def said(self, reply: Any) -> list[Any]:
        return [reply.choices[0].message.model_dump(exclude_none=True, exclude={"parsed"})]

    def text(self, reply: Any) -> str:
        return reply.choices[0].message.content or ""

    def calls(self, reply: Any) -> list[Any]:
        return [asked(call.id) for call in reply.choices[0].message.tool_calls or ()]

    def user(self, text: str) -> Any:
        return {"role": "user", "content": text}

    def results(self, calls: list[Any], output: str, *, picture: bool) -> list[Any]:
        told = [{"role": "tool", "tool_call_id": call.id, "content": output} for call in calls]
        shown = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
        return [*told, {"role": "user", "content": [shown]}] if picture else told


class Responses(Chat):
    """`client.responses`."""

    tools: ClassVar[Any] = [{"type": "function", "name": "read", "parameters": SCHEMA, "strict": False}]

    async def ask(self, client: Any, messages: list[Any], *, stream: bool) -> Any:
        fields = {"model": self.model, "instructions": SYSTEM, "tools": self.tools, "input": messages, "store": False}
        if stream:
            return await finished(client.responses.stream(**fields), "get_final_response")
        return await done(client.responses.create(**fields))

    def said(self, reply: Any) -> list[Any]:
        return list(reply.output)

    def text(self, reply: Any) -> str:
        return reply.output_text

    def calls(self, reply: Any) -> list[Any]:
        return [asked(item.call_id) for item in reply.output if item.type == "function_call"]

    def results(self, calls: list[Any], output: Any, *, picture: bool) -> list[Any]:
        if picture:
            output = [{"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}", "detail": "auto"}]
        return [{"type": "function_call_output", "call_id": call.id, "output": output} for call in calls]


class Gemini:
    """`client.models`, and `client.aio.models`."""

    model = "gemini-2.5-pro"
    config: ClassVar[Any] = {
        "system_instruction": SYSTEM,
        "tools": [{"function_declarations": [{"name": "read", "parameters_json_schema": SCHEMA}]}],
    }

    def client(self, url: str, *, later: bool) -> Any:
        del later
        return genai.Client(api_key="none", http_options={"base_url": url})

    async def ask(self, client: Any, messages: list[Any], *, stream: bool, later: bool = False) -> Any:
        models = client.aio.models if later else client.models
        fields = {"model": self.model, "contents": messages, "config": self.config}
        if not stream:
            return await done(models.generate_content(**fields))
        chunks = await done(models.generate_content_stream(**fields))
        heard = [chunk async for chunk in chunks] if later else list(chunks)
        parts = [part for chunk in heard for part in chunk.candidates[0].content.parts or ()]
        heard[-1].candidates[0].content.parts = parts
        return heard[-1]

    def said(self, reply: Any) -> list[Any]:
        return [reply.candidates[0].content]

    def text(self, reply: Any) -> str:
        return "".join(part.text for part in reply.candidates[0].content.parts if part.text and not part.thought)

    def calls(self, reply: Any) -> list[Any]:
        parts = reply.candidates[0].content.parts
        return [asked(part.function_call.id) for part in parts if part.function_call]

    def user(self, text: str) -> Any:
        return {"role": "user", "parts": [{"text": text}]}

    def results(self, calls: list[Any], output: str, *, picture: bool) -> list[Any]:
        parts: list[Any] = [
            {"function_response": {"id": call.id, "name": call.name, "response": {"output": output}}} for call in calls
        ]
        if picture:
            parts.append({"inline_data": {"mime_type": "image/png", "data": PIXEL}})
        return [{"role": "user", "parts": parts}]


class AsyncGemini(Gemini):
    """The same client's `aio`."""

    async def ask(self, client: Any, messages: list[Any], *, stream: bool, later: bool = True) -> Any:
        return await super().ask(client, messages, stream=stream, later=later)


SPEAKERS: dict[str, tuple[Any, bool]] = {
    "anthropic": (Anthropic(), False),
    "anthropic-async": (Anthropic(), True),
    "chat": (Chat(), False),
    "chat-async": (Chat(), True),
    "responses": (Responses(), False),
    "responses-async": (Responses(), True),
    "gemini": (Gemini(), False),
    "gemini-async": (AsyncGemini(), True),
}
"""By name: who speaks, and whether its client is asynchronous."""
