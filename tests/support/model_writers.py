"""What the tests of model writers share: material to write about, and servers that answer badly."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import anyio
import anyio.lowlevel

from windowsill.history.folds import Brief
from windowsill.messages import Message, Text, ToolResult, ToolUse, text_message
from windowsill.summaries import Material, Shared, Written
from windowsill.summaries.model_writer import writer
from windowsill.testing import Answer, Server

KEY = "sk-test-4711-do-not-tell"
ENVIRONMENT = {"ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": KEY, "GEMINI_API_KEY": KEY}
PROVIDERS = ("anthropic", "openai", "responses", "gemini")
MODELS = {
    "anthropic": "claude-haiku-4-5",
    "openai": "gpt-5-mini",
    "responses": "gpt-5-mini",
    "gemini": "gemini-2.5-flash",
}
SUMMARY = "<summary>The parser in parse.py was fixed; the tests pass.</summary>"
COMPACT = f"<retain>\n- parse.py\n</retain>\n{SUMMARY}"


def count(text: str) -> int:
    return len(text) // 4 + 1


def conversation(turns: int = 12, words: str = "Please fix the parser in parse.py now. ") -> tuple[Message, ...]:
    """A user who asks, an assistant who reads a file and answers, again and again."""
    messages: list[Message] = []
    for turn in range(turns):
        messages += [
            text_message("user", f"({turn}) {words}"),
            Message(role="assistant", blocks=(ToolUse(id=f"c{turn}", name="read", arguments='{"path": "parse.py"}'),)),
            Message(
                role="user", blocks=(ToolResult(tool_use_id=f"c{turn}", content=(Text(text="def parse(): ..."),)),)
            ),
            text_message("assistant", f"I looked at it and changed line {turn}."),
        ]
    return tuple(messages)


def material(messages: tuple[Message, ...] | None = None, **fields: Any) -> Material:
    messages = conversation() if messages is None else messages
    return Material(messages=messages, tokens=fields.pop("tokens", 2_000), count=count, **fields)


def body(provider: str, **more: Any) -> Shared:
    """A request that is about to be sent, in the provider's own form, with tools."""
    model = MODELS[provider]
    schema = {"type": "object", "properties": {}}
    said = "Please fix the parser. " * 40
    match provider:
        case "anthropic":
            tools: list[Any] = [{"name": "read", "input_schema": schema}]
            fields = {"model": model, "max_tokens": 9_000, "system": "You help.", "tools": tools, "stream": True}
            fields["messages"] = [{"role": "user", "content": said}]
        case "openai":
            tools = [{"type": "function", "function": {"name": "read", "parameters": schema}}]
            fields = {"model": model, "tools": tools, "stream": True, "messages": [{"role": "user", "content": said}]}
        case "responses":
            tools = [{"type": "function", "name": "read", "parameters": schema}]
            fields = {"model": model, "tools": tools, "input": [{"role": "user", "content": said}]}
        case _:
            fields = {"contents": [{"role": "user", "parts": [{"text": said}]}]}
            fields["tools"] = [{"functionDeclarations": [{"name": "read", "parameters": schema}]}]
    return Shared(format=provider, body=json.dumps({**fields, **more}).encode())


def made(server: Server, provider: str, **settings: Any) -> Any:
    """A writer that asks the server, where the session's own requests go too."""
    settings.setdefault("sleep", no_sleep)
    return writer(f"{provider}:{MODELS[provider]}", environment=environment(server, provider), **settings)


def environment(server: Server, provider: str) -> dict[str, str]:
    """The environment in which the provider's requests go to the server."""
    name = {"anthropic": "ANTHROPIC_BASE_URL", "gemini": "GOOGLE_GEMINI_BASE_URL"}.get(provider, "OPENAI_BASE_URL")
    return {**ENVIRONMENT, name: server.url + ("/v1" if name == "OPENAI_BASE_URL" else "")}


async def no_sleep(_: float) -> None:
    await anyio.lowlevel.checkpoint()


def write(asked: Any, brief: Brief | None = None, given: Material | None = None) -> Written:
    async def run() -> Written:
        return await asked.awrite(brief or Brief(), given or material())

    return anyio.run(run)


def saying(text: str) -> Any:
    return lambda _: Answer(text=text)


class Bent(Server):
    """A server whose answers are bent on their way out, for what a sound model never says."""

    def __init__(self, bend: Any, respond: Any = None, **settings: Any) -> None:
        super().__init__(respond or saying(SUMMARY), **settings)
        self._bend = bend

    def answer(self, *request: Any) -> Any:
        status, body = super().answer(*request)
        return status, self._bend(body) or body


class Raw:
    """A server that says exactly what it is given: `(status, headers, body)`, one after the other, the last again.

    With `drip` it waits so many seconds before each byte of a body.
    """

    def __init__(self, *answers: tuple[int, dict[str, str], bytes], drip: float = 0.0) -> None:
        self.asked = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, headers, data = answers[min(outer.asked, len(answers) - 1)]
                outer.asked += 1
                self.send_response_only(status)
                for name, value in {"Content-Length": str(len(data)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                with suppress(OSError):
                    for piece in [bytes([byte]) for byte in data] if drip else [data]:
                        time.sleep(drip)
                        self.wfile.write(piece)

            def do_GET(self) -> None:
                self.do_POST()

            def log_message(self, *_: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> Raw:
        Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
