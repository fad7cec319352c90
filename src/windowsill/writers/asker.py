"""What writers that ask a model have in common: patience, bookkeeping, and the prompt of a request of their own."""

from __future__ import annotations

from abc import ABC, abstractmethod

import anyio

from windowsill.history.folds import Brief
from windowsill.history.repair import without_open_calls
from windowsill.messages import Usage
from windowsill.writers import Material, Written, prompts
from windowsill.writers.calling import Caller
from windowsill.writers.errors import FaultKind, UnusableError, note
from windowsill.writers.judging import Judged
from windowsill.writers.transcript import mark_for, transcript

SEPARATE = "separate request"
"""The stage in which a model reads nothing but what it writes about."""

UNKNOWN_WINDOW = 32_768
"""Tokens, for a model nobody knows: nearly all have as many. One with less says so and is asked again."""

LONGEST = 4_096
"""Tokens of an answer where the brief has no room of its own."""

SHORTEST = 256
"""Tokens that an answer may always have: tags and a sentence need some."""

AIM = 0.7
"""Of the limit, what the model is told: they write more than they are told to."""

MARGIN = 0.1
"""Of the window, kept free: the count is of another model's tokens."""


class Book:
    """What is told of a summary, whatever becomes of it."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.usage: Usage | None = None

    def charge(self, usage: Usage | None) -> None:
        """Add what one call cost."""
        if usage is not None:
            spent = self.usage or Usage()
            names = ("input", "output", "cache_write", "cache_read")
            self.usage = Usage(**{name: getattr(spent, name) + getattr(usage, name) for name in names})

    def fault(self, stage: str, fault: UnusableError) -> None:
        """Write down why a stage gave nothing, and what it cost."""
        self.charge(fault.usage)
        self.notes.append(note(stage, fault.kind, fault.what))

    def written(self, stage: str, judged: Judged, writer: str) -> Written:
        """The text that came of it, with all that is written here."""
        notes = (*self.notes, *(f"{stage}: {each}" for each in judged.notes))
        digest = {} if judged.state is None else {"state": judged.state}
        return Written(text=judged.text, digest=digest, writer=writer, notes=notes, usage=self.usage)

    def unusable(self, kind: FaultKind, what: str, remedy: str) -> UnusableError:
        """The end of it without a text, with all that is written here."""
        return UnusableError(kind, what, remedy=remedy, notes=tuple(self.notes), usage=self.usage)


class Asker(ABC):
    """What writers that ask have in common: patience."""

    name: str

    def __init__(self, caller: Caller, window: int | None) -> None:
        self._caller = caller
        self._window = window

    def __repr__(self) -> str:
        return f"<writer {self.name}>"

    async def awrite(self, brief: Brief, material: Material) -> Written:
        """The text; `UnusableError` when the model gives none that can be used."""
        book = Book()
        with anyio.move_on_after(self._caller.manners.patience) as scope:
            return await self._write(brief, material, book)
        assert scope.cancelled_caught
        book.notes.append(note("", "timeout", "no usable answer in time"))
        raise book.unusable("timeout", f"{self.name} gave no usable answer in time", "raise patience=")

    @abstractmethod
    async def _write(self, brief: Brief, material: Material, book: Book) -> Written:
        """The text; what did not go as planned is written into the book."""

    def _separate(self, brief: Brief, material: Material, *, window: int, limit: int) -> str:
        """What is to be read and written, fitted to a window."""
        messages = without_open_calls(material.messages)
        mark = mark_for(messages)
        wish = instruction_for(brief, material, limit_of(brief, material))
        before = prompts.conversation(mark)
        around = material.count(f"{prompts.apart()}\n\n{before}\n\n{mark}\n\n{wish}")
        room = int(window * (1 - MARGIN)) - limit - around
        told = transcript(messages, mark=mark, room=room, count=material.count) if room > 0 else ""
        if not told:
            raise UnusableError("too-long", f"nothing fits a window of {window:,} tokens", remedy="use a larger model")
        return "\n\n".join((before, told, f"{mark} end of the conversation", wish))


def limit_of(brief: Brief, material: Material) -> int:
    """The most tokens an answer may have."""
    return max(SHORTEST, min(brief.room or LONGEST, material.tokens))


def instruction_for(brief: Brief, material: Material, limit: int) -> str:
    """What to write, for an answer that stays below `limit` tokens."""
    known = material.digest.get("state")
    return prompts.instruction(brief, aim=int(limit * AIM), state=known if isinstance(known, dict) else None)
