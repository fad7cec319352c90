"""How a run ended, and what can be heard of it while it goes on."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from windowsill.state.projection import Change
from windowsill.state.runtime import Phase, Resources

Status: TypeAlias = Literal["completed", "failed", "limit", "stuck", "cancelled"]

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
    """Something that happened, for whoever shows progress."""

    kind: EventKind
    text: str = ""
    data: dict[str, Any] = {}


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended. Whatever the status, everything that happened is in the session."""

    status: Status
    text: str = ""
    """The last words of the model."""
    error: str = ""
    """What went wrong or which limit was reached, and what to do."""
    phase: Phase = "initializing"
    turns: int = 0
    """Model calls of this run."""
    tool_calls: int = 0
    used: Resources = Resources()
    """What the task has used since it began, earlier runs included."""
    seconds: float = 0.0
    tool_changes: tuple[Change, ...] = ()
    """Each time other tools were shown: what that cost with the provider's cache, and what masking would have."""
    notes: tuple[str, ...] = ()
    """What did not go as planned on the way, oldest first."""

    @property
    def ok(self) -> bool:
        """Whether the task was completed."""
        return self.status == "completed"
