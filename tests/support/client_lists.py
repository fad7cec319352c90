"""What clients of every provider have in their lists, and a wrapped client to send it with."""

import asyncio
import itertools
import json

import msgspec
from google import genai

import windowsill
from support.wrapped_clients import Anthropic, Chat, Gemini, Responses, done
from windowsill import providers
from windowsill.messages import Message, ToolResult

PLAIN = {"anthropic": Anthropic, "openai": Chat, "responses": Responses, "gemini": Gemini}


def said(format, *messages):
    """Messages of Anthropic's kind as a client of another provider has them in its list."""
    wire = providers.get(format)
    neutral = [providers.get("anthropic").read_message(json.dumps(message).encode(), "") for message in messages]
    return [json.loads(native) for message in neutral for native in wire.render_message(plain(message))]


def plain(message):
    blocks = [
        msgspec.structs.replace(each, name="read") if isinstance(each, ToolResult) else each for each in message.blocks
    ]
    return Message(role=message.role, blocks=tuple(blocks))


def says(text):
    return {"role": "assistant", "content": text}


def asks(text):
    return {"role": "user", "content": text}


def serve(speaker, session, server, run, *, later=False, **wrapping):
    """Return what `run` makes of a wrapped client, which is closed in the end."""

    async def served():
        base = speaker.client(server.url, later=later)
        client = windowsill.wrap(base, session, **wrapping)
        try:
            return await run(client)
        finally:
            if isinstance(base, genai.Client):
                await client.aio.aclose()
            await done(client.close())

    return asyncio.run(served())


def last_calls(session):
    """The calls of the last reply, which may be several messages."""
    last = itertools.takewhile(lambda message: message.role == "assistant", reversed(list(session.messages())))
    return [call for message in reversed(list(last)) for call in message.calls]
