"""Engines for tests: a session, a scripted model, a few tools, and what was heard."""

from __future__ import annotations

from typing import Any

import msgspec

from support.sessions import opened
from windowsill import providers
from windowsill.agent import Engine, tool
from windowsill.session.audit import open_calls
from windowsill.testing import Call, Scripted

FORMATS = ("anthropic", "openai", "responses", "gemini", "deepseek")


async def at_once(seconds: float) -> None:
    """Instead of waiting."""
    del seconds


class Shop:
    """Tools that note what they did."""

    def __init__(self) -> None:
        self.did: list[str] = []

        @tool(category="read", repeatable=True, parallel=True)
        def look(path: str) -> str:
            """Read a file."""
            self.did.append(f"look {path}")
            return f"contents of {path}"

        @tool(category="write")
        def put(path: str, text: str = "") -> str:
            """Write a file."""
            self.did.append(f"put {path}")
            return f"wrote {len(text)} characters"

        @tool(category="execute", permissions=("execute",))
        def shell(command: str) -> str:
            """Run a command."""
            self.did.append(f"shell {command}")
            return "done"

        @tool(category="delete")
        def wipe(path: str) -> str:
            """Delete a file."""
            self.did.append(f"wipe {path}")
            return "gone"

        @tool(category="read", seconds=0.05)
        async def slow() -> str:
            """Take long."""
            import anyio  # noqa: PLC0415 - only here

            await anyio.sleep(30)
            return "never"

        @tool(category="execute")
        def broken() -> str:
            """Fail."""
            raise ValueError("it is broken")

        self.tools = [look, put, shell, wipe, slow, broken]


def engine(answers: Any, *, shop: Shop | None = None, session: Any = None, **settings: Any) -> Engine:
    """An engine over a script; a model may be given in its place."""
    model = Scripted(answers, format=settings.pop("format", "anthropic")) if isinstance(answers, list) else answers
    return Engine(
        session if session is not None else opened(budget=60_000),
        model=model,
        tools=(shop or Shop()).tools,
        **{"phases": ("executing",), "sleep": at_once, "random": lambda: 0.5, **settings},
    )


def results(session: Any) -> list[tuple[str, str, bool]]:
    """Every tool result that is recorded: tool, words, whether it is an error."""
    return [
        (result.name or "", "".join(getattr(block, "text", "") for block in result.content), result.is_error)
        for message in session.messages()
        for result in message.results
    ]


def over(function: Any, answers: Any = (), *, session: Any = None, **settings: Any) -> Engine:
    """An engine whose one tool, `work`, is this function; by default it is called once."""
    made = tool(name="work", category="execute", **settings.pop("tool", {}))(function)
    return Engine(
        session if session is not None else opened(budget=60_000),
        model=Scripted(answers or [Call("work"), "done"], format="anthropic"),
        tools=[made],
        **{"phases": ("executing",), "sleep": at_once, **settings},
    )


def sound(session: Any, format: str = "anthropic") -> bool:
    """Tell whether every call has its result, every entry is whole and every request is one that its provider takes."""
    bodies = [msgspec.json.decode(session.request(call.id)) for call in session.calls]
    refused = [problem for body in bodies for problem in providers.validate(body, format)]
    return not (session.verify() or open_calls(session.journal) or refused)
