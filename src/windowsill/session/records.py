"""What a session tells about itself: folds, branches, calls, explanations."""

from __future__ import annotations

from typing import Any

import msgspec


class SpanRecord(msgspec.Struct, frozen=True):
    """One span of a fold: which messages it hides, or which block of a message it replaces."""

    number: int
    first: str
    last: str
    messages: int
    """How many it touches, those inside inner folds included."""
    saved: int
    active: bool
    block: int | None = None
    shown: str = ""
    """What stands in its place."""


class FoldRecord(msgspec.Struct, frozen=True):
    """A fold: what was hidden, by which strategy, why, and what it saved."""

    id: str
    kind: str
    strategy: str
    reason: str
    at: float
    before: int
    after: int
    active: bool
    """Whether any of it still applies on the current branch."""
    spans: tuple[SpanRecord, ...] = ()

    @property
    def saved(self) -> int:
        """Tokens it took out of the view."""
        return self.before - self.after


class Branch(msgspec.Struct, frozen=True):
    """An end of the history: the current one, or one that was left by a rewind."""

    id: str
    """The id of its last entry; `session.switch(id)` returns to it."""
    at: float
    messages: int
    current: bool


class CallRecord(msgspec.Struct, frozen=True):
    """A request that was composed."""

    id: str
    at: float
    format: str
    model: str | None
    tokens: int
    cached: int
    folds: tuple[str, ...]


class Explanation(msgspec.Struct, frozen=True):
    """Why a message is, or is not, in the window."""

    message: str
    visible: bool
    why: str
    folds: tuple[FoldRecord, ...] = ()
    """The folds that hide or cut it, the outermost first."""
    call: str | None = None
    """The model call this is about; `None` for the window as it is now."""


class Event(msgspec.Struct, frozen=True):
    """One line of the audit: something that changed what the model sees."""

    id: str
    at: float
    kind: str
    what: str
    data: dict[str, Any] = {}
