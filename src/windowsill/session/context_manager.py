"""Calls for agents that keep their own list of messages, or add by role and text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anyio import to_thread

from windowsill import providers
from windowsill.compose.payload import Payload, Statistics
from windowsill.messages import Request
from windowsill.providers.convert import message_text
from windowsill.session.client_history import client_history
from windowsill.session.session import Session


class Manager:
    """Keeps an agent's list in a session: what is new in it is added, an edited list becomes a branch."""

    def __init__(self, session: Session) -> None:
        self.session = session

    async def compose_payload(
        self, system_prompt: Any, history: Sequence[Any], tools: Sequence[Any], rag_context: str | None = None
    ) -> Payload:
        """Compose the request to send now, with `rag_context` at its end."""
        await self.on_turn_complete(history)
        return await self.session.compose(system=system_prompt, tools=tools, dynamic=rag_context)

    async def on_turn_complete(self, history: Sequence[Any]) -> None:
        """Take in what is new, and let summaries be prepared that will be needed soon."""
        added = providers.read_added(list(history), default=self.session.composer.format)
        request = Request(format=self.session.composer.format, messages=tuple(added.messages))
        await to_thread.run_sync(client_history(self.session).follow, request)


class AgentState:
    """Adds messages to a session, and reduces what the model sees when that is due."""

    def __init__(self, session: Session) -> None:
        self.session = session

    @property
    def conversation_history(self) -> list[dict[str, Any]]:
        """The messages that the model sees, as role and text; calls and results are told in words."""
        read = self.session.view.read
        return [{"role": item.role, "content": message_text(read(item))} for item in self.session.view.items]

    def add_message(self, role: str, content: str) -> str:
        """Add a message; return its id."""
        return self.session.add({"role": role, "content": content})

    async def add_message_with_pruning(self, role: str, content: str) -> Statistics:
        """Add a message, and reduce the history if it has grown too large; return what that did."""
        await to_thread.run_sync(self.add_message, role, content)
        return await self.session.reduce()
