"""A context manager: the two calls of an agent that keeps its own list of messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from anyio import to_thread

from windowsill import formats
from windowsill.compose.payload import Payload
from windowsill.messages import Request
from windowsill.session.session import Session


@runtime_checkable
class ContextManager(Protocol):
    """What decides what a model sees. Windowsill's own is `Manager`; a program may bring another."""

    async def compose_payload(
        self, system_prompt: Any, history: Sequence[Any], tools: Sequence[Any], rag_context: str | None = None
    ) -> Payload:
        """The request to send now."""

    async def on_turn_complete(self, history: Sequence[Any]) -> None:
        """A turn is over: the time for work that no turn should wait for."""


class Manager:
    """Keeps an agent's list in a session: what is new in it is added, an edited list becomes a branch."""

    def __init__(self, session: Session) -> None:
        self.session = session

    async def compose_payload(
        self, system_prompt: Any, history: Sequence[Any], tools: Sequence[Any], rag_context: str | None = None
    ) -> Payload:
        """The request to send now, with `rag_context` at its end."""
        await self.on_turn_complete(history)
        return await self.session.compose(system=system_prompt, tools=tools, dynamic=rag_context)

    async def on_turn_complete(self, history: Sequence[Any]) -> None:
        """Take in what is new, and let summaries be prepared that will be needed soon."""
        added = formats.read_added(list(history), default=self.session.format)
        request = Request(format=self.session.format, messages=tuple(added.messages))
        await to_thread.run_sync(self.session.client_history.follow, request)
