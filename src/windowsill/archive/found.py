"""What a search gives back, and what it may be limited to."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from windowsill.archive.passages import Source

LAST = (1 << 32) - 1
"""No entry has a greater number."""

LATEST = 1e15
"""No message has a later time, nor an earlier one than as far before the epoch."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A passage that answers a question, with where it stands."""

    text: str
    message_id: str
    session: str
    role: str
    at: float
    score: float
    """Between 0 and 1 within one answer; scores of two questions say nothing about each other."""
    seq: int | None = None
    """The entry of the journal; `None` for what was stored by hand."""
    source: Source = "message"
    tool: str | None = None
    speaker: str | None = None
    lines: tuple[int, int] = (1, 1)
    """The first and last line within the words, the call or the result it is from."""
    neighbour: bool = False
    """It holds nothing that was asked for, but stands beside what does."""
    sources: tuple[str, ...] = ()
    """The ids of what it was made from, as they were given to `store`."""
    covers: tuple[int, int] | None = None
    """For a summary, the first and last entry it stands for."""
    also: tuple[str, ...] = ()
    """Messages that say the same and were left out."""
    abandoned: bool = False
    """It stands on a branch that was left by a rewind."""


class Filters(msgspec.Struct, frozen=True, kw_only=True):
    """Which passages may be found; `None` means any."""

    roles: Sequence[str] | None = None
    tools: Sequence[str] | None = None
    after: float | None = None
    before: float | None = None
    within: Sequence[tuple[int, int]] | None = None
    """First and last entries of the journal, both included."""

    @property
    def any(self) -> bool:
        """Whether they leave anything out."""
        return self != _NONE

    def parameters(self) -> tuple[str | float | None, ...]:
        """As the statements take them."""
        within = None if self.within is None else [(first, min(last, LAST)) for first, last in self.within]
        return (_listed(self.roles), _listed(self.tools), _time(self.after), _time(self.before), _listed(within))

    def allow(self, role: str, tool: str | None, at: float, seq: int | None) -> bool:
        """Whether a passage may be found."""
        return (
            (self.roles is None or role in self.roles)
            and (self.tools is None or tool in self.tools)
            and (self.after is None or at >= self.after)
            and (self.before is None or at < self.before)
            and (self.within is None or (seq is not None and any(first <= seq <= last for first, last in self.within)))
        )


_NONE = Filters()


def _listed(values: Sequence[object] | None) -> str | None:
    return None if values is None else msgspec.json.encode(list(values)).decode()


def _time(value: float | None) -> float | None:
    return None if value is None else float(max(min(value, LATEST), -LATEST))
