"""A whole context manager in the place of a strategy: it composes what is sent, and the composer keeps its promises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from windowsill.budget import Budget
from windowsill.history.view import View
from windowsill.strategies.base import Plan, Strategy
from windowsill.strategies.sliding_window import SlidingWindow


@runtime_checkable
class ContextManager(Protocol):
    """Decides what a model sees. Windowsill's own is `Manager`; a program may bring another."""

    async def compose_payload(
        self, system_prompt: Any, history: Sequence[Any], tools: Sequence[Any], rag_context: str | None = None
    ) -> Any:
        """Compose what to send now: a list of messages, a request body, or a `Payload`."""

    async def on_turn_complete(self, history: Sequence[Any]) -> None:
        """Do, after a turn, the work that no turn should wait for."""


class Managed(Strategy):
    """Lets a context manager compose; where that fails or does not fit, the sliding window plans."""

    def __init__(self, manager: ContextManager, *, name: str = "", source: str = "") -> None:
        self.manager = manager
        self.name = name or str(getattr(manager, "name", "") or type(manager).__name__)
        self.source = source

    def plan(self, view: View, budget: Budget) -> Plan:
        """Hide the oldest units, as the default does."""
        return SlidingWindow().plan(view, budget)


def is_manager(made: object) -> bool:
    """Tell whether an object, or a class, has both calls of a context manager."""
    return all(callable(getattr(made, call, None)) for call in ("compose_payload", "on_turn_complete"))
