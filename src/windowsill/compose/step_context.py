"""Add what the step at hand needs besides the conversation: the layered state, recalled text, context that passes.

Each is recorded like a message at the end of the history, where it leaves the cached prefix whole.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from windowsill.budget import Budget, Size, tokens_of
from windowsill.compose.squeeze import hide_passing
from windowsill.config import Settings
from windowsill.errors import WindowsillError
from windowsill.history.folds import Proposal
from windowsill.history.view import Item, View
from windowsill.journal.writer import JournalWriter
from windowsill.models import Model
from windowsill.strategies import Strategy

if TYPE_CHECKING:
    from windowsill.compose.recall import Recall
    from windowsill.compose.state_messages import StateMessages
    from windowsill.search import Archive, Embedder
    from windowsill.state.prompt import StateSettings
    from windowsill.state.session_state import SessionState


# ruff: noqa: PLC0415 - the state and the archive are loaded by the sessions that use them


class StepContext:
    """Adds context to the requests of one session. `settings` are those of the user, before any profile of a model."""

    def __init__(self, journal: JournalWriter, settings: Settings) -> None:
        self._journal = journal
        self._settings = settings
        self._size: Size | None = None
        self._apart: frozenset[str] = frozenset()
        self._passing: tuple[int, int, list[Item]] = (-1, 0, [])
        if settings.state:
            # A wrong setting is refused now, not at the first request.
            _ = self._state_settings

    @cached_property
    def state(self) -> SessionState:
        """The layered state of the session."""
        from windowsill.state.session_state import SessionState

        return SessionState(self._journal)

    @cached_property
    def state_messages(self) -> StateMessages:
        """Shows the model the layered state."""
        from windowsill.compose.state_messages import StateMessages

        return StateMessages(
            self._journal, self.state, self.count, settings=self._state_settings, embedder=self._embedder
        )

    @cached_property
    def archive(self) -> Archive:
        """Search over everything ever said in the session, and in those its `scope` includes."""
        from windowsill.search import Archive

        store, session, scope = self._journal.store, self._journal.session, self._settings.scope
        return Archive(store, session, scope=scope, embedder=self._embedder, count=self.count)

    @cached_property
    def _embedder(self) -> Embedder | None:
        from windowsill.search import WordLlama

        return WordLlama() if self._settings.embedder else None

    @cached_property
    def _state_settings(self) -> StateSettings:
        from windowsill.state.prompt import read_state_settings

        return read_state_settings(self._settings.state)

    @cached_property
    def _recall(self) -> Recall:
        from windowsill.compose.recall import Recall

        return Recall(self.archive)

    def count(self, text: str) -> int:
        """Count the tokens of a text, as a message of its own."""
        return self._journal.scale.count(text)

    @contextmanager
    def show_state(
        self, size: Size, *, apart: Iterable[str] = (), settings: StateSettings | None = None
    ) -> Iterator[None]:
        """Let requests show the layered state within `size`, unless the settings or the strategy say how much.

        `apart` are layers that the caller puts into the system prompt; `settings` say how it is shown.
        """
        before = (self._size, self._apart, self.state_messages)
        self._size, self._apart = size, frozenset(apart)
        if settings is not None:
            self.state_messages = before[-1].shown_with(settings)
        try:
            yield
        finally:
            self._size, self._apart, self.state_messages = before

    def state_tokens(self, settings: Settings, strategy: Strategy, budget: Budget) -> int:
        """Return the tokens in which the layered state may be shown; 0 when it is not."""
        wanted = strategy.layers(budget)
        size = settings.layers if settings.layers is not None else None if wanted else self._size
        return wanted if size is None else tokens_of(size, budget.limit, "layers")

    def add_state(self, model: Model, room: int) -> list[str]:
        """Show what the model has not seen of the state yet; return notes about it."""
        if not room:
            return []
        return self._journal.retry(lambda: self.state_messages.show(model, room, self._apart))

    def add_recalled(self, size: Size | None, budget: Budget) -> list[str]:
        """Bring back what the step at hand needs of what is hidden; return notes about it."""
        return [] if size is None else self._journal.retry(lambda: self._add_recalled(size, budget))

    def _add_recalled(self, size: Size, budget: Budget) -> list[str]:
        view = self._journal.view
        try:
            found = self._recall.recall(view, tokens_of(size, budget.limit, "recall"))
        except WindowsillError as error:
            # The archive can be made again; a turn that fails cannot be had back.
            return [f"recall failed: {error}"]
        if found is None:
            return []
        message, lines = found
        self._journal.add([message], conversation=view.conversation_hash)
        return [f"recall: {lines} hidden lines brought back"]

    def passed(self) -> Proposal | None:
        """Propose to hide dynamic context whose turn is over: the user has spoken since, or another was given."""
        view = self._journal.view
        edits, start, current = self._passing
        if edits != view.edits:
            start, current = 0, []
        over: list[Item] = []
        for item in view.items[start:]:
            if item.own or item.passing:
                over += current
                current = [item] if item.passing else []
        proposal = hide_passing(view, over) if over else None
        # One edit, after which an empty item stands where each of them was: the others are not looked through again.
        self._passing = (view.edits + (proposal is not None), len(view.items), current)
        return proposal

    def passing_blocks(self, view: View) -> int:
        """Count the blocks at the end of the request that the next turn does not have."""
        if not self._passing[2]:
            return 0
        tail = list(itertools.takewhile(lambda item: not item.own and item.role == "user", reversed(view.items)))
        place = next((place for place, item in enumerate(tail) if item.passing), -1)
        return sum(len(view.read(item).blocks) for item in tail[: place + 1])
