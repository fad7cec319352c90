"""Looking at a session: what it holds, what the model sees of it, and how that came about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from windowsill.config import Settings
from windowsill.history.history import call_meta
from windowsill.history.view import Item, View
from windowsill.messages import Message, ToolUse, text_message
from windowsill.models import Model
from windowsill.session import telling, undo
from windowsill.session.composing import Composer
from windowsill.session.ledger import Ledger
from windowsill.session.lens import Lens
from windowsill.session.records import Branch, CallRecord, Event, Explanation, FoldRecord
from windowsill.session.referring import with_places
from windowsill.session.replaying import request_of
from windowsill.store import Store

if TYPE_CHECKING:
    from windowsill.archive import Archive
    from windowsill.outputs import Outputs
    from windowsill.state.projection import Decided

# ruff: noqa: PLC0415 - a session that never searches loads nothing for it


class Looking:
    """The part of a session that changes nothing."""

    id: str
    settings: Settings
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

    @property
    def fill(self) -> tuple[int, int]:
        """The tokens that a request has now, with the system prompt and tools of the last one, and may have."""
        fixed = self._composer.fixed_tokens
        return fixed + self.tokens, self._composer.budget(fixed).limit

    def refresh(self) -> None:
        """Take in what other processes have written to this session."""
        with self._ledger.lock:
            self._ledger.refresh()

    @cached_property
    def outputs(self) -> Outputs:
        """Every tool output of this session, whole: to read, to search, and to keep what arrives in pieces."""
        from windowsill.outputs import Outputs

        return Outputs(self._store, self.id, clock=self._ledger.clock)

    @cached_property
    def archive(self) -> Archive:
        """Search over everything ever said in this session, and in those its `scope` includes."""
        from windowsill.archive import Archive, WordLlama

        embedder = WordLlama() if self.settings.embedder else None
        return Archive(self._store, self.id, scope=self.settings.scope, embedder=embedder, count=self.count)

    def count(self, text: str) -> int:
        """What a text weighs in tokens, as a message of its own."""
        scale = self._ledger.scale
        return scale.tokens(scale.weigh(text_message("user", text)))

    def messages(self) -> Iterator[Message]:
        """Every message of the current branch exactly as it was added, hidden or not, oldest first."""
        journal = self._ledger.journal
        for entry in journal.walk(journal.path(self._ledger.history.version), kinds=("message",), bodies=True):
            yield with_places(journal.decode(entry), entry.seq)

    def message(self, id: str) -> Message:
        """One message as it was added, on whatever branch it is."""
        journal = self._ledger.journal
        seq = journal.find(id, "message").seq
        return with_places(journal.message(seq), seq)

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
    def tool_decisions(self) -> list[Decided]:
        """Which tools the model got on this branch, each time that changed, and which were hidden by which rule."""
        from windowsill.session.telling_tools import decisions

        with self._ledger.lock:
            return decisions(self._ledger)

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

    def open_calls(self) -> list[tuple[str, ToolUse]]:
        """The calls of the last reply that have no result yet, each with the id of its message."""
        items = self.items()
        stop = len(items)
        while stop and items[stop - 1].role != "assistant":
            stop -= 1
        start = stop
        while start and items[start - 1].role == "assistant":
            start -= 1
        # Some models give two calls of one answer the same id: then the first result is the first call's.
        answered = Counter(id for item in items[stop:] for id in item.results)
        calls = [(item.id, call) for item in items[start:stop] if item.calls for call in self.message(item.id).calls]
        open_ones = []
        for id, call in calls:
            if answered[call.id] > 0:
                answered[call.id] -= 1
            else:
                open_ones.append((id, call))
        return open_ones

    def begun_calls(self, message_id: str) -> frozenset[str]:
        """The calls of a message, by id, that were begun or answered, on whatever branch: also after going back."""
        from windowsill.session.telling_tools import begun

        with self._ledger.lock:
            return begun(self._ledger, message_id)

    def items(self) -> list[Item]:
        """The items of the view, in order."""
        return list(self._ledger.view.items)
