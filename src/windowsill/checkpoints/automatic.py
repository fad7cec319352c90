"""When a checkpoint is due: a pure rule over what was seen at the last one and what is seen now."""

from __future__ import annotations

import math

import msgspec

from windowsill.checkpoints.labels import Reason
from windowsill.errors import SettingError

START = "initializing"
"""The phase in which every session begins."""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What a look at a session sees; of the last checkpoint, what was seen then."""

    at: float
    messages: int = 0
    tokens: int = 0
    """Of the view. For the last checkpoint: the fewest since, for only what was below a line can cross it."""
    phase: str = START

    def lowered(self, tokens: int) -> Seen:
        """The same after the view was seen with so many tokens."""
        return self if tokens >= self.tokens else msgspec.structs.replace(self, tokens=tokens)


class Automatic(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When checkpoints are made without being asked for. `None` switches a condition off."""

    seconds: float | None = 600
    """Since the last checkpoint."""
    messages: int | None = 50
    """Since the last checkpoint."""
    tokens: int | None = 100_000
    """Of the view: due when it has grown past this, and again only after it has been below."""
    on_phase: bool = True

    def __post_init__(self) -> None:
        if self.seconds is not None and not (self.seconds > 0 and math.isfinite(self.seconds)):
            raise SettingError("seconds", self.seconds, "seconds above 0, or None")
        for name, value in (("messages", self.messages), ("tokens", self.tokens)):
            if value is not None and value < 1:
                raise SettingError(name, value, f"{name}, 1 or more, or None")

    def due(self, seen: Seen, now: Seen) -> Reason | None:
        """Why a checkpoint is due now, the most telling reason first; `None` when none is.

        `seen` is what was seen at the last checkpoint. It changes only with a checkpoint, or when the view shrinks:
        looking more often makes nothing due earlier, or later.
        """
        if self.on_phase and now.phase != seen.phase:
            return "phase"
        if self.messages is not None and now.messages - seen.messages >= self.messages:
            return "messages"
        if self.tokens is not None and seen.tokens < self.tokens <= now.tokens:
            return "tokens"
        if self.seconds is not None and now.at - seen.at >= self.seconds:
            return "time"
        return None
