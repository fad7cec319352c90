"""Looking at a session: what it holds, what the model sees of it, and how that came about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from windowsill.history.history import call_meta
from windowsill.history.view import Item, View
from windowsill.messages import Message
from windowsill.models import Model
from windowsill.session import telling, undo
from windowsill.session.composing import Composer
from windowsill.session.ledger import Ledger
from windowsill.session.lens import Lens
from windowsill.session.records import Branch, CallRecord, Event, Explanation, FoldRecord
from windowsill.session.replaying import request_of
from windowsill.store import Store


class Looking:
    """The part of a session that changes nothing."""

    id: str
    _store: Store
    _ledger: Ledger
    _composer: Composer

    @property
    def _lens(self) -> Lens:
        return self._composer.lens

    @property
    def model(self) -> Model:
        """The model, with its window as stated or learned."""
        return self._lens.model

    @property
    def view(self) -> View:
        """What the model sees now."""
        return self._ledger.view

    @property
    def tokens(self) -> int:
        """What the view weighs, without system prompt and tools."""
        return self._ledger.view.tokens()

    @property
    def counting(self) -> dict[str, Any]:
        """How tokens are counted and how far that has been off."""
        return self._lens.describe()

    def messages(self) -> Iterator[Message]:
        """Every message of the current branch exactly as it was added, hidden or not, oldest first."""
        journal = self._ledger.journal
        for entry in journal.walk(journal.path(self._ledger.history.version), kinds=("message",), bodies=True):
            yield journal.decode(entry)

    def message(self, id: str) -> Message:
        """One message as it was added, on whatever branch it is."""
        journal = self._ledger.journal
        return journal.message(journal.find(id, "message").seq)

    @property
    def folds(self) -> list[FoldRecord]:
        """Every fold of the current branch: what was hidden, why, what it saved, whether it still applies."""
        with self._ledger.lock:
            return telling.folds(self._ledger)

    @property
    def calls(self) -> list[CallRecord]:
        """Every request that was composed on the current branch and written down."""
        with self._ledger.lock:
            self._ledger.flush()
            return telling.calls(self._ledger)

    @property
    def audit(self) -> list[Event]:
        """Everything that changed what the model sees: what, when, by which strategy, why."""
        with self._ledger.lock:
            return telling.audit(self._ledger)

    @property
    def branches(self) -> list[Branch]:
        """Every end of the history: the current one, and those that were left."""
        with self._ledger.lock:
            return undo.branches(self._ledger)

    def request(self, call_id: str) -> bytes:
        """The exact body of a past request."""
        with self._ledger.lock:
            self._ledger.flush()
            entry = self._ledger.journal.find(call_id, "call")
            return request_of(self._ledger, call_meta(entry.meta))

    def explain(self, message_id: str, *, call: str | None = None) -> Explanation:
        """Why a message is, or is not, in the window now, or in that of a past call."""
        with self._ledger.lock:
            self._ledger.flush()
            return telling.explain(self._ledger, message_id, call)

    def verify(self) -> list[str]:
        """What is wrong with the stored history; an empty list when every entry is as it was written."""
        with self._ledger.lock:
            return [*self._store.check(self.id), *self._ledger.journal.problems(self._ledger.history.version)]

    def items(self) -> list[Item]:
        """The items of the view, in order."""
        return list(self._ledger.view.items)
