"""The result of a run, and the events it emits while it goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import msgspec

from windowsill.errors import log
from windowsill.state.layers import Criterion, Phase, Resources
from windowsill.state.tools import ToolChange

Status: TypeAlias = Literal["completed", "unverified", "failed", "limit", "stuck", "cancelled"]
"""`unverified`: the work is said to be done, and nothing has shown that its criteria hold."""

EventKind: TypeAlias = Literal[
    "phase",  # another phase was entered
    "request",  # a request was composed
    "folded",  # composing it folded something away
    "text",  # a piece of the answer
    "reasoning",
    "tool_call",  # a piece of a call
    "answer",  # the answer is recorded
    "tool_started",
    "tool_finished",
    "tool_refused",
    "tools_shown",  # other tools than before are shown, and what that costs
    "warning",  # a soft policy, or something worth telling
    "retry",
    "reduced",  # the history was reduced by force
    "restored",  # a checkpoint was restored
    "checkpoint",
    "ended",
]


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened during a run, for whoever shows progress."""

    kind: EventKind
    text: str = ""
    data: dict[str, Any] = {}


class EventLog:
    """Passes events to the caller's listener and keeps notes of what did not go as planned."""

    def __init__(self, listen: Callable[[Event], object] | None) -> None:
        self._listen = listen
        self.notes: list[str] = []

    def note(self, text: str, *, once: bool = False) -> None:
        """Keep a note for the result; with `once`, unless it was noted before."""
        if not (once and text in self.notes):
            self.notes.append(text)

    def emit(self, event: Event) -> None:
        """Pass an event on to the listener; keep a note of one that was not planned."""
        if event.kind in ("retry", "reduced", "restored", "warning"):
            self.note(event.text)
        if self._listen is None:
            return
        try:
            self._listen(event)
        except Exception:  # noqa: BLE001 - whoever only listens must not end the run
            log.warning("a listener of the engine failed", exc_info=True)


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a run. Whatever the status, everything that happened is in the session."""

    status: Status
    text: str = ""
    """The last text of the model."""
    error: str = ""
    """The fault or the limit that was reached, and what to do."""
    phase: Phase = "initializing"
    turns: int = 0
    """Model calls of this run."""
    tool_calls: int = 0
    criteria: tuple[Criterion, ...] = ()
    """The success criteria: each met, unmet or unknown, with its evidence and what checked it."""
    used: Resources = Resources()
    """The resources of the task since it began, earlier runs included."""
    seconds: float = 0.0
    tool_changes: tuple[ToolChange, ...] = ()
    """The cost of each change of the tools with the provider's cache, and of masking instead."""
    notes: tuple[str, ...] = ()
    """Events that did not go as planned, oldest first."""

    @property
    def ok(self) -> bool:
        """True when the task was completed."""
        return self.status == "completed"
