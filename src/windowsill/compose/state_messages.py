"""Show the model the layered state: whole once, then what changed, always at the end of the request.

What was shown stays where it was put until a fold takes it away; then the state is shown whole again.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from windowsill.compose.recall import is_asked
from windowsill.errors import BudgetError
from windowsill.history.entries import Entry
from windowsill.history.head import Draft
from windowsill.history.view import View
from windowsill.journal.writer import JournalWriter
from windowsill.messages import ORIGIN, Origin, text_message
from windowsill.models import Model
from windowsill.models.catalog import SizeClass
from windowsill.search.embeddings import Embedder
from windowsill.state.layers import LAYERS, State
from windowsill.state.prompt import Builder, Built, StateSettings, Update
from windowsill.state.session_state import SessionState, StateShown

UNLIMITED = 1_000_000
"""Tokens: no role with its policies has so many."""

WHOLE = (
    "The program that runs you keeps this state of the task. What stands in it is data; its policies, its limits and "
    "its goal hold for you."
)
CHANGED = "Changed in the state of the task since you were last told:"


class StateMessages:
    """Keeps what the model sees of one session's state up to date."""

    def __init__(
        self,
        journal: JournalWriter,
        state: SessionState,
        count: Callable[[str], int],
        *,
        settings: StateSettings,
        embedder: Embedder | None = None,
    ) -> None:
        self._journal = journal
        self._state = state
        self._count = count
        self.settings = settings
        self._embedder = embedder
        self._builders: dict[SizeClass, Builder] = {}
        self._known: object = None

    def shown_with(self, settings: StateSettings) -> StateMessages:
        """Return the same with other settings."""
        return StateMessages(self._journal, self._state, self._count, settings=settings, embedder=self._embedder)

    def builder(self, size: SizeClass) -> Builder:
        """Return the builder of the prompt for models of this size."""
        if size not in self._builders:
            self._builders[size] = Builder(self._count, self.settings, size=size, embedder=self._embedder)
        return self._builders[size]

    def system_text(self, state: State) -> str:
        """Write the first layer, uncut, for callers who put it into the system prompt; empty when it says nothing."""
        built = self.builder("balanced").build(state, UNLIMITED, now=0.0, layers=("system",))
        return built.text if built.digests else ""

    def show(self, model: Model, room: int, apart: frozenset[str]) -> list[str]:
        """Add a message with what the model has not seen yet, in at most `room` tokens; return notes about it.

        `apart` are layers that the caller puts into the system prompt.
        """
        journal = self._journal
        version = (journal.version, room, model.name)
        if version == self._known or not is_asked(journal.view):
            return []
        self._known = version
        state, seen, now = self._state.value, self._state.known_pieces, journal.clock()
        if seen is None and state == State():
            # A session that keeps no state has nothing to show.
            return []
        layers = tuple(layer for layer in LAYERS if layer not in apart)
        builder = self.builder(model.size)
        try:
            update = (
                None if seen is None else builder.update(seen, state, room, now=now, layers=layers, view=journal.view)
            )
        except BudgetError:
            # The role or the task has grown beyond its share: then everything is shown anew.
            seen = update = None
        if seen is None:
            built = _built(builder, state, room, now, layers, journal.view)
            self._write(f"{WHOLE}\n{built.text}", StateShown((), whole=True, pieces=built.digests))
            sizes = ", ".join(f"{layer} {size:,}" for layer, size in built.layers.items())
            told = f"layers: the state told in {built.tokens:,} tokens ({sizes}), {built.ratio:.0%} of what it holds"
            return [told, *_left_out(built), *_shortened(built)]
        if update is None:
            return []
        shown = StateShown((), whole=False, pieces=update.digests, gone=update.removed)
        self._write(f"{CHANGED}\n{update.text}", shown)
        notes = [f"layers: {len(update.digests) + len(update.removed)} changes of the state told"]
        if update.left_out:
            notes.append(f"layers: no room for {', '.join(update.left_out)}; told with the next change")
        return [*notes, *_shortened(update)]

    def _write(self, text: str, shown: StateShown) -> None:
        message = text_message("user", text, metadata={ORIGIN: Origin.STATE})

        def note(draft: Draft, entries: list[Entry]) -> None:
            self._state.record_shown(draft, msgspec.structs.replace(shown, messages=(entries[0].seq,)))

        self._journal.add([message], conversation=self._journal.view.conversation_hash, also=note)
        self._known = None


def _built(builder: Builder, state: State, room: int, now: float, layers: tuple[str, ...], view: View) -> Built:
    """Build the state within the room; role and task, which are never cut, get more where they need it."""
    try:
        return builder.build(state, room, now=now, layers=layers, view=view)
    except BudgetError as error:
        return builder.build(state, error.wanted, now=now, layers=layers, view=view)


def _left_out(built: Built) -> list[str]:
    """Describe the elements that were recorded and are not told."""
    no_room = [f"{each.no_room} of {path}" for path, each in built.left_out.items() if each.no_room]
    passed = [f"{each.filtered} of {path}" for path, each in built.left_out.items() if each.filtered]
    notes = [f"layers: no room for {', '.join(no_room)}"] if no_room else []
    return [*notes, f"layers: not picked {', '.join(passed)}"] if passed else notes


def _shortened(told: Built | Update) -> list[str]:
    sizes = {piece.id: piece.tokens for piece in told.pieces}
    return [
        f"layers: {id.removesuffix('#')} shortened from {before:,} to {sizes[id]:,} tokens"
        for id, before in told.shortened.items()
    ]
