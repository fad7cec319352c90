"""Changing what the model sees of a session, by hand. Nothing that was added is ever touched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from windowsill import telemetry
from windowsill.budget import Size
from windowsill.errors import InputError, NotFoundError
from windowsill.history.folds import FoldKind
from windowsill.history.view import Marking, message_meta
from windowsill.messages import Mark
from windowsill.session import folding, undo
from windowsill.session.checkpointing import Checkpointing
from windowsill.store import Lock
from windowsill.telemetry import names

if TYPE_CHECKING:
    from windowsill.outputs import Collected
    from windowsill.session.layering import Layering
    from windowsill.session.stating import LiveState
    from windowsill.state.projection import Decided

# ruff: noqa: PLC0415 - most sessions keep no state, and load nothing for it


class Changing(Checkpointing):
    """The part of a session that folds, unfolds, goes back and marks."""

    def unfold(self, fold_id: str, *, span: int | None = None, fit: bool = False, reason: str = "") -> str:
        """Bring back what a fold hid: all of it, one `span` of it, or with `fit` as much as the budget allows."""
        with self._ledger.lock, telemetry.span("unfold", session=self.id, fold=fold_id):
            self._ledger.refresh()
            if fit:
                budget = self._composer.budget(self._composer.fixed_tokens)
                undone = undo.unfold_what_fits(self._ledger, fold_id, budget, reason)
            else:
                undone = undo.unfold(self._ledger, fold_id, span, reason)
            telemetry.count(names.UNFOLDS)
            return undone

    def fold(
        self,
        first: str,
        last: str | None = None,
        *,
        text: str | None = None,
        kind: FoldKind = "condense",
        reason: str = "",
    ) -> str:
        """Hide messages by hand, from `first` to `last`; `text` stands in for them, or a marker of what was there."""
        with self._ledger.lock:
            self._ledger.refresh()
            return folding.fold_run(self._ledger, first, last or first, text, kind, reason)

    def mask(self, *message_ids: str, text: str | None = None, reason: str = "") -> str:
        """Hide the tool outputs of these messages by hand behind a placeholder."""
        with self._ledger.lock:
            self._ledger.refresh()
            return folding.mask_results(self._ledger, message_ids, text, reason)

    def collect_outputs(self) -> Collected:
        """Remove kept outputs that no message refers to, on whatever branch, and what broken writings left behind.

        Nothing of the last hour goes: its message may be on its way.
        """
        with self._ledger.lock:
            self._ledger.refresh()
            entries = self._ledger.journal.walk([(1, self._ledger.history.version)], kinds=("message",))
            refs = {ref.id for entry in entries for ref in message_meta(entry.meta).refs if ref is not None}
            return self.outputs.collect(refs)

    def rewind(
        self, message_id: str | None = None, *, at: float | None = None, before: bool = False, reason: str = ""
    ) -> str:
        """Go back to a message, which stays the last one (with `before` it goes too), or to a time.

        The branch that is left stays: `branches` lists it, `switch` returns to it.
        """
        if (message_id is None) == (at is None):
            raise InputError("rewind needs a message or a time", remedy="give one of them")
        with self._ledger.lock, telemetry.span("rewind", session=self.id):
            self._ledger.refresh()
            if message_id is not None:
                place = undo.place_of_message(self._ledger, message_id, before=before)
            else:
                place = undo.place_of_time(self._ledger, at or 0.0)
            return undo.move(self._ledger, place, reason)

    def switch(self, id: str, *, reason: str = "") -> str:
        """Return to a branch that was left (see `branches`), or to any entry."""
        with self._ledger.lock, telemetry.span("rewind", session=self.id):
            self._ledger.refresh()
            return undo.move(self._ledger, undo.place_of_entry(self._ledger, id), reason)

    @cached_property
    def state(self) -> LiveState:
        """The layered state of this session: goal, phase, memory, evidence, work. Changes are entries."""
        from windowsill.session.stating import LiveState

        return LiveState(self._ledger)

    @cached_property
    def layering(self) -> Layering:
        """Tells the model the state, in requests that do."""
        from windowsill.session.layering import Layering

        return Layering(self._ledger, self.state, self.count)

    @contextmanager
    def telling_state(self, size: Size, *, apart: Iterable[str] = ()) -> Iterator[None]:
        """Let the requests inside tell the layered state, in so many tokens where nothing else says how many.

        `apart` are layers that the caller tells in the system prompt.
        """
        bringing, layering = self._composer.bringing, self.layering
        before = (bringing.room, layering.apart)
        bringing.room, layering.apart = size, frozenset(apart)
        try:
            yield
        finally:
            bringing.room, layering.apart = before

    def record_tools(self, decided: Decided) -> str:
        """Write down which tools the model gets from now on, and which were hidden by which rule."""
        with self._ledger.lock:
            self._ledger.refresh()
            return self._ledger.commit(lambda draft: draft.record("tools", decided)).id

    def hold(self, holder: str, *, seconds: float) -> Lock:
        """Keep other holders out, or go on doing so; `LockedError` while another holds the session.

        It is an agreement among those who ask for it, as engines do: nobody else is kept from writing. The lock ends
        after so many seconds, and with the process that `store.lease.holder_name` names.
        """
        return self._store.lock(self.id, holder, seconds=seconds, now=self._ledger.clock())

    def release(self, holder: str | None = None) -> bool:
        """Give the lock back; without a holder, release it by force. False when there was nothing to release."""
        return self._store.unlock(self.id, holder)

    @property
    def lock(self) -> Lock | None:
        """Who holds this session, and until when."""
        return self._store.locked(self.id, now=self._ledger.clock())

    def pin(self, message_id: str) -> None:
        """Never hide this message."""
        self.mark(message_id, add=("pinned",))

    def unpin(self, message_id: str) -> None:
        """Let this message be hidden again."""
        self.mark(message_id, remove=("pinned",))

    def mark(self, message_id: str, *, add: Sequence[Mark] = (), remove: Sequence[Mark] = ()) -> None:
        """Give a message marks, or take them away."""
        for mark in (*add, *remove):
            if mark not in ("important", "pinned"):
                raise NotFoundError(f"there is no mark {mark!r}", remedy="use important or pinned")
        with self._ledger.lock:
            self._ledger.refresh()
            entry = self._ledger.journal.find(message_id, "message")
            marking = Marking(entry.seq, message_id, tuple(add), tuple(remove))
            self._ledger.commit(lambda draft: draft.mark(marking))
