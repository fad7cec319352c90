"""The seam between Windowsill and a provider: what a format can do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from windowsill.history.repair import Rules
from windowsill.messages import Message, Reply, Request, Tool


class Problem(msgspec.Struct, frozen=True):
    """A rule of a provider that a request breaks, where, and what to do."""

    rule: str
    where: str
    what: str
    remedy: str

    def __str__(self) -> str:
        """One line."""
        return f"{self.where}: {self.what} ({self.rule}); {self.remedy}"


class Format(Protocol):
    """A provider's way to write a conversation. Reading takes broken conversations; repair mends them."""

    @property
    def name(self) -> str:
        """The name it is called by."""

    @property
    def rules(self) -> Rules:
        """What the provider demands."""

    def read_message(self, raw: bytes, where: str) -> Message:
        """One native message; `where` names its place in an error."""

    def read_body(self, body: bytes) -> Request:
        """A whole request body, or a plain list of messages."""

    def read_reply(self, body: bytes) -> Reply:
        """A provider's response, with what it used."""

    def read_system(self, value: Any) -> Message:
        """A system prompt: text, or what the format has in its place."""

    def read_tool(self, raw: bytes, where: str) -> Tool:
        """One tool definition."""

    def render_message(self, message: Message) -> list[bytes]:
        """The native messages for one message: exactly its own bytes when it is of this format and unchanged."""

    def render_system(self, systems: Sequence[Message]) -> bytes | None:
        """System prompts as one value, for `render_body`; `None` when there is nothing to say."""

    def render_tool(self, tool: Tool) -> bytes:
        """A native tool definition."""

    def render_body(
        self,
        *,
        messages: Sequence[bytes],
        system: bytes | None,
        tools: Sequence[bytes],
        model: str | None,
        rest: Mapping[str, msgspec.Raw],
    ) -> bytes:
        """A request body around rendered parts; they are joined, not encoded again."""

    def validate(self, body: Any) -> list[Problem]:
        """What the provider would refuse in a decoded request body or message list."""
