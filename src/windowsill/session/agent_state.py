"""An agent's message list, for programs that add by role and text."""

from __future__ import annotations

from typing import Any

from anyio import to_thread

from windowsill.compose.payload import Statistics
from windowsill.session.session import Session


class AgentState:
    """Adds messages to a session, and reduces what the model sees when that is due."""

    def __init__(self, session: Session) -> None:
        self.session = session

    @property
    def conversation_history(self) -> list[dict[str, Any]]:
        """What the model sees, as role and text."""
        return [{"role": item.role, "content": self.session.view.read(item).text} for item in self.session.items()]

    def add_message(self, role: str, content: str) -> str:
        """Add a message; its id."""
        return self.session.add({"role": role, "content": content})

    async def add_message_with_pruning(self, role: str, content: str) -> Statistics:
        """Add a message, and reduce the history if it has grown too large; what that did."""
        await to_thread.run_sync(self.add_message, role, content)
        return await to_thread.run_sync(self.session.reduce)
