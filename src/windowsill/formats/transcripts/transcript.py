"""What a transcript becomes: recorded sessions, what could not be read, and what is no part of a conversation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from windowsill.formats.transcripts.charges import Charge
from windowsill.formats.wire import encode, join_body


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """One session of a transcript, its messages in a provider's own form."""

    id: str
    format: str | None
    """`None` where the content has to tell."""
    messages: tuple[bytes, ...]
    model: str | None = None
    times: tuple[float | None, ...] = ()
    """Seconds since the epoch for each message,"""
    usage: tuple[bytes | None, ...] = ()
    """and what the provider reported for it, in its own words."""
    charges: tuple[Charge, ...] = ()
    """Every call that was paid for, also those whose answer is no message."""
    fields: Mapping[str, msgspec.Raw] = {}
    """The other fields of a request body."""
    under: str = "messages"
    """The field of a request body that holds the messages."""
    named: bool = True
    """Whether the transcript itself says the id."""

    def document(self) -> bytes:
        """The session as one JSON object: what a line of a recordings file holds."""
        own: dict[str, bytes | msgspec.Raw] = {"id": encode(self.id)}
        if self.format is not None:
            own["format"] = encode(self.format)
        if self.model is not None:
            own["model"] = encode(self.model)
        own |= {key: value for key, value in self.fields.items() if key not in {"id", "format", self.under}}
        if any(each is not None for each in self.times):
            own["times"] = encode(self.times)
        if any(each is not None for each in self.usage):
            own["usage"] = encode([msgspec.Raw(each or b"null") for each in self.usage])
        return join_body(own, self.messages, under=self.under.encode())


class Trouble(msgspec.Struct, frozen=True):
    """A line that could not be read, and why."""

    line: int
    """Counted from 1; 0 for the whole file."""
    why: str


class Transcript(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a known agent, taken apart."""

    agent: str
    sessions: tuple[Recorded, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    skipped: dict[str, int] = {}
    """What is there and no part of a conversation, or has no place in the form it is converted to: kind and count."""


class Line(msgspec.Struct, frozen=True):
    """A line that is a JSON object."""

    number: int
    raw: bytes


class Reader(msgspec.Struct, frozen=True, kw_only=True):
    """How the lines of one agent are known and read."""

    agent: str
    knows: Callable[[Mapping[str, object]], bool]
    """Whether an object can only be a line of this agent."""
    read: Callable[[Iterable[Line], str, Notes], Sequence[Recorded]]
    """The sessions in the lines; the text is a name for what says none."""


class Notes:
    """Collects what a reader cannot take along."""

    def __init__(self) -> None:
        self.troubles: list[Trouble] = []
        self.skipped: Counter[str] = Counter()

    def trouble(self, line: int, why: str) -> None:
        """A line that could not be read."""
        self.troubles.append(Trouble(line, why))

    def skip(self, kind: str, count: int = 1) -> None:
        """Something that is no part of a conversation."""
        self.skipped[kind] += count
