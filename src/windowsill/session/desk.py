"""Where summaries are written: at once by code, or by a model in the background while the agent goes on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import msgspec

from windowsill.compose.writing import Filled, fill, materials, wants_writing, without_model
from windowsill.errors import FoldError
from windowsill.history.folds import Proposal, Run
from windowsill.history.view import Item, View
from windowsill.session.background import Background
from windowsill.writers import Material, ModelWriter, Shared, Writer, Written

OFFLINE = "offline"

Source: TypeAlias = str | Writer | ModelWriter | Callable[[str], Awaitable[str]]

Loader = Callable[[Sequence[Item]], None]


class Desk:
    """Fills proposals with text for one session."""

    def __init__(self, writer: Source, *, load: Loader, wait: float) -> None:
        self._load = load
        self._wait = wait
        self._background: Background | None = None
        self._own: Writer | None = None
        self.use(writer)

    def use(self, writer: Source) -> None:
        """Let this writer write from now on: one of ours by name, a model's, or a function `async def f(prompt)`."""
        self.close()
        self._background = self._own = None
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
        """Whether it would be worth asking for a text early: a model writes, and nothing is under way."""
        return self._background is not None and self._background.job is None

    def write(
        self, view: View, proposal: Proposal, shared: Callable[[], Shared | None], *, urgent: bool
    ) -> Filled | None:
        """The proposal with its texts; `None` when they are being written and the request can go without for now."""
        if not wants_writing(proposal):
            return Filled(proposal)
        if self._background is None or all(map(without_model, proposal.briefs)):
            return fill(view, proposal, self._by_code(proposal, materials(view, proposal, self._load)))
        if not urgent:
            self.prepare(view, proposal, shared)
            return None
        if self._background.job is None:
            self.prepare(view, proposal, shared)
        taken = self._background.take(self._wait)
        if taken is not None and _stands(view, taken[0]):
            # What was begun earlier hides less than is wanted now; the rest is planned for after it.
            return fill(view, *taken)
        found = fill(view, proposal, self._by_code(proposal, materials(view, proposal, self._load)))
        note = f"{self._background.writer.name} was not ready; written by code"
        return msgspec.structs.replace(found, notes=(*found.notes, note))

    def prepare(self, view: View, proposal: Proposal, shared: Callable[[], Shared | None]) -> None:
        """Have it written in the background, unless something is being written already."""
        if self._background is None or self._background.job is not None or not wants_writing(proposal):
            return
        sent = shared()
        found = [
            None if each is None else msgspec.structs.replace(each, shared=sent)
            for each in materials(view, proposal, self._load)
        ]
        self._background.start(proposal, found)

    def ready(self, view: View) -> Filled | None:
        """What was prepared, if it still fits the history."""
        taken = self._background.take() if self._background is not None else None
        # What it was to replace may be folded otherwise by now, or on a branch that was left.
        return fill(view, *taken) if taken is not None and _stands(view, taken[0]) else None

    def close(self) -> None:
        """Stop what is being written."""
        if self._background is not None:
            self._background.cancel()

    def _by_code(self, proposal: Proposal, found: Sequence[Material | None]) -> list[Written | None]:
        return [
            None if brief is None or material is None else self._offline.write(brief, material)
            for brief, material in zip(proposal.briefs, found, strict=True)
        ]


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
