"""What is put at the end of a request before it is fitted: the state, and what the step at hand needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from windowsill.budget import Size, tokens_of
from windowsill.config import Settings
from windowsill.errors import WindowsillError
from windowsill.models import Model
from windowsill.session.adding import write
from windowsill.session.fitting import Fitted, Fitting, Wanted
from windowsill.session.ledger import Ledger
from windowsill.strategies import tells

if TYPE_CHECKING:
    from windowsill.session.layering import Layering
    from windowsill.session.recalling import Recalling


class Bringing:
    """Brings what a request needs besides the conversation. All of it is recorded, and stays until a fold takes it."""

    def __init__(self, ledger: Ledger, fitting: Fitting) -> None:
        self._ledger = ledger
        self._fitting = fitting
        self.recalling: Recalling | None = None
        """Who looks for what the next step needs."""
        self.layering: Callable[[], Layering] | None = None
        """Who tells the model the layered state."""
        self.room: Size | None = None
        """How much of it, where neither setting nor strategy says."""

    def fit(self, wanted: Wanted, settings: Settings, model: Model) -> Fitted:
        """Fit a request with what it needs.

        Where that hid what was told of the state, the state is told again, and the request fitted again. What stands
        last always stays, so that a second time is enough.
        """
        room = self._room(wanted, settings)
        told = [*self._tell(model, room), *self._recall(wanted, settings)]
        done = self._fitting.fit(wanted)
        if again := self._tell(model, room):
            told += again
            done = self._fitting.again(wanted, done)
        done.notes.extend(told)
        return done

    def _room(self, wanted: Wanted, settings: Settings) -> int:
        """Tokens in which the layered state may be told; 0 when it is not."""
        told = wanted.strategy.layers(wanted.budget) if tells(wanted.strategy) else 0
        size = settings.layers if settings.layers is not None else None if told else self.room
        return told if size is None else tokens_of(size, wanted.budget.limit, "layers")

    def _tell(self, model: Model, room: int) -> list[str]:
        """Tell the model what it does not know of the state; what is to be told about it."""
        note = self.layering().tell(model, room) if room and self.layering is not None else None
        return [] if note is None else [note]

    def _recall(self, wanted: Wanted, settings: Settings) -> list[str]:
        """Bring back what the step at hand needs of what is hidden; what is to be told about it."""
        size, view = settings.recall, self._ledger.view
        if size is None or self.recalling is None:
            return []
        try:
            found = self.recalling.recall(view, tokens_of(size, wanted.budget.limit, "recall"))
        except WindowsillError as error:
            # The archive can be made again; a turn that fails cannot be had back.
            return [f"recall failed: {error}"]
        if found is None:
            return []
        write(self._ledger, [found.message], None, steady=view.thread)
        return [f"recall: {found.lines} hidden lines brought back"]
