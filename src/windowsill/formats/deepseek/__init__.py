"""OpenAI Chat Completions as DeepSeek and Kimi speak it: what the model thought stands beside what it said."""

from __future__ import annotations

from typing import Any

import msgspec

from windowsill.formats import openai
from windowsill.formats.deepseek.render import render_message, render_system
from windowsill.formats.deepseek.validate import validate
from windowsill.formats.openai import read, render
from windowsill.formats.openai.read import DEEPSEEK
from windowsill.history.repair import Rules
from windowsill.messages import Message, Reply, Request, Tool

__all__ = ["SPEC", "DeepSeek"]

SPEC = msgspec.structs.replace(
    openai.SPEC,
    name=DEEPSEEK,
    aliases=("kimi", "moonshot"),
    vendor="",
    rules=Rules(format=DEEPSEEK, result_media=False, bare_results=False),
    counts_thoughts=False,
    api=None,
    routes=(),
    sdk_modules=(),
    sdk_error="",
)


class DeepSeek:
    """The format of `POST /chat/completions` with `reasoning_content`, for models that want it back."""

    name = DEEPSEEK
    spec = SPEC
    rules = SPEC.rules

    @staticmethod
    def read_message(raw: bytes, where: str) -> Message:
        """One message."""
        return _own(read.read_message(raw, where))

    @staticmethod
    def read_body(body: bytes) -> Request:
        """A request body or a list of messages."""
        found = read.read_body(body)
        tools = tuple(msgspec.structs.replace(tool, format=DEEPSEEK) for tool in found.tools)
        return msgspec.structs.replace(found, format=DEEPSEEK, messages=tuple(map(_own, found.messages)), tools=tools)

    @staticmethod
    def read_reply(body: bytes) -> Reply:
        """A response: its first choice."""
        found = read.read_reply(body)
        return msgspec.structs.replace(found, message=_own(found.message))

    @staticmethod
    def read_system(value: Any) -> Message:
        """A system prompt: text, or a list of text parts."""
        return value if isinstance(value, Message) else _own(read.read_system(value))

    @staticmethod
    def read_tool(raw: bytes, where: str) -> Tool:
        """A tool definition."""
        return msgspec.structs.replace(read.read_tool(raw, where), format=DEEPSEEK)

    render_message = staticmethod(render_message)
    render_system = staticmethod(render_system)
    render_tool = staticmethod(render.render_tool)
    render_body = staticmethod(render.render_body)
    validate = staticmethod(validate)


def _own(message: Message) -> Message:
    return msgspec.structs.replace(message, format=DEEPSEEK)
