"""Where summaries are written: at once by code, or by a model in the background while the agent goes on."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import msgspec

from windowsill import telemetry
from windowsill.compose.checking import checked
from windowsill.compose.writing import Filled, fill, materials, wants_writing, without_model
from windowsill.errors import FoldError
from windowsill.history.folds import Proposal, Run
from windowsill.history.view import Item, View
from windowsill.session.background import Background, Taken
from windowsill.writers import Material, ModelWriter, Shared, Writer, Written

OFFLINE = "offline"

ROUNDS_WITHOUT_PROGRESS = 2
"""How often in a row a text that was prepared may be of no use: then code writes the next one, and no model is paid for
another."""

Source: TypeAlias = str | Writer | ModelWriter | Callable[[str], Awaitable[str]]

Loader = Callable[[Sequence[Item]], None]


class Desk:
    """Fills proposals with text for one session."""

    def __init__(
        self, writer: Source, *, load: Loader, wait: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._load = load
        self._wait = self._left_to_wait = wait
        self._clock = clock
        self._background: Background | None = None
        self._own: Writer | None = None
        self._useless = 0
        self._untold: list[str] = []
        self.use(writer)

    def use(self, writer: Source) -> None:
        """Let this writer write from now on: one of ours by name, a model's, or a function `async def f(prompt)`."""
        self.close()
        self.source = writer
        self._background = self._own = None
        self._useless = 0
        # ruff: noqa: PLC0415 - a session that never writes loads no writer
        if isinstance(writer, Writer) and not isinstance(writer, ModelWriter):
            self._own = writer
        elif writer != OFFLINE:
            from windowsill.writers.chain import Chain
            from windowsill.writers.model import writer as made

            model = writer if isinstance(writer, ModelWriter) else made(writer)
            self._background = Background(Chain(model, self._offline))

    @property
    def _offline(self) -> Writer:
        if self._own is None:
            from windowsill.writers.offline import Offline

            self._own = Offline()
        return self._own

    @property
    def asks(self) -> bool:
        """Whether a model writes."""
        return self._background is not None

    @property
    def prepares(self) -> bool:
        """Whether it would be worth asking for a text early: a model writes, is free, and of some use so far."""
        return self._background is not None and self._background.idle and self._useless < ROUNDS_WITHOUT_PROGRESS

    def write(
        self, view: View, proposal: Proposal, shared: Callable[[], Shared | None], *, urgent: bool
    ) -> Filled | None:
        """The proposal with its texts; `None` when they are being written and the request can go without for now."""
        if not wants_writing(proposal):
            return Filled(proposal)
        if self._background is None or all(map(without_model, proposal.briefs)):
            return self._by_code(view, proposal)
        if not urgent and self._useless < ROUNDS_WITHOUT_PROGRESS:
            self.prepare(view, proposal, shared)
            return None
        taken = self._awaited(self._background, view, proposal, shared)
        if taken is not None and taken.texts and _stands(view, taken.proposal):
            # What was begun earlier hides less than is wanted now; the rest is planned for after it.
            self._useless = 0
            return self._told(fill(view, taken.proposal, taken.texts))
        if taken is not None and taken.fault:
            why = f"{self._background.writer.name} failed: {taken.fault}"
        elif self._useless >= ROUNDS_WITHOUT_PROGRESS:
            why = f"{self._background.writer.name} gave nothing of use {self._useless} times"
        else:
            why = f"{self._background.writer.name} was not ready"
        self._useless = 0
        self._untold.append(f"{why}; written by code")
        return self._told(self._by_code(view, proposal))

    def _awaited(
        self, background: Background, view: View, proposal: Proposal, shared: Callable[[], Shared | None]
    ) -> Taken | None:
        """What is ready, or will be in what this request may still wait: that holds for all its proposals together."""
        if self._left_to_wait > 0:
            self.prepare(view, proposal, shared)
        began = self._clock()
        taken = background.take(self._left_to_wait)
        self._left_to_wait -= self._clock() - began
        return taken

    def prepare(self, view: View, proposal: Proposal, shared: Callable[[], Shared | None]) -> None:
        """Have it written in the background, unless something is being written already."""
        if self._background is None or not self.prepares or not wants_writing(proposal):
            return
        try:
            sound = checked(view, proposal)
        except FoldError as error:
            # It is only wanted early: when it is needed, whoever folds it says so, and knows what to do instead.
            self._untold.append(f"nothing was prepared for {proposal.strategy!r}: {error}")
            self._useless += 1
            return
        sent = shared()
        found = [
            None if each is None else msgspec.structs.replace(each, shared=sent)
            for each in materials(view, sound, self._load)
        ]
        self._background.start(sound, found)

    def begin(self) -> None:
        """A new request begins, and may wait anew."""
        self._left_to_wait = self._wait

    def ready(self, view: View) -> Filled | None:
        """What was prepared, if it still fits the history."""
        taken = self._background.take() if self._background is not None else None
        if taken is None:
            return None
        if not taken.texts:
            self._useless += 1
            self._untold.append(f"what was prepared failed: {taken.fault or 'nothing was written'}")
            return None
        if not _stands(view, taken.proposal):
            # What it was to replace is folded otherwise by now, or on a branch that was left.
            return None
        filled = fill(view, taken.proposal, taken.texts)
        if not filled.whole:
            # A marker alone would hide words that have room.
            self._useless += 1
            self._untold += filled.notes
            return None
        self._useless = 0
        return self._told(filled)

    def untold(self) -> list[str]:
        """What went wrong and was not told with a text; once."""
        notes, self._untold = list(dict.fromkeys(self._untold)), []
        return notes

    def _told(self, filled: Filled) -> Filled:
        return msgspec.structs.replace(filled, notes=(*self.untold(), *filled.notes))

    def close(self) -> None:
        """Stop what is being written; a request that waits for it goes on without."""
        if self._background is not None:
            self._background.cancel()

    def _by_code(self, view: View, proposal: Proposal) -> Filled:
        from windowsill.writers.chain import by_code

        with telemetry.span("write", writer=self._offline.name, strategy=proposal.strategy):
            found: Sequence[Material | None] = materials(view, proposal, self._load)
            texts: list[Written | None] = [
                None if brief is None or material is None else by_code(self._offline, brief, material)
                for brief, material in zip(proposal.briefs, found, strict=True)
            ]
            return fill(view, proposal, texts)


def _stands(view: View, proposal: Proposal) -> bool:
    """Whether the view still shows exactly the messages that a proposal was to hide."""
    try:
        return all(
            span.hides
            == sum(item.hides if item.fold else 1 for item in view.items[view.slice_of(span.first, span.last)])
            for span in proposal.spans
            if isinstance(span, Run)
        )
    except FoldError:
        return False
