"""What there is in a state to be shown: lists of elements and single values, and how each is chosen from."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from windowsill.state.building.nodes import Look, Node
from windowsill.state.building.picks import Picks
from windowsill.state.state import State


def _always(_element: Any) -> bool:
    return True


def _alike(_element: Any, _relevance: float) -> Any:
    """Nothing but its place tells one from another."""
    return 0


class Kind(NamedTuple):
    """A list of the state."""

    path: str
    tags: tuple[str, ...]
    """Of the frame, from the layer's."""
    look: Look
    group: str = ""
    """The kind of memory or evidence that it draws on the budget of."""
    about: Callable[[Any], str] | None = None
    """What of an element is compared with the goal; `None` where the goal does not matter."""
    holds: Callable[[Any], bool] = _always
    """An element that does not hold is not shown, and a model that was told of it is told so."""
    rank: Callable[[Any, float], Any] = _alike
    """The higher, the more important, given the relevance; `None` is passed over."""
    most: str = ""
    """The pick that says how many."""
    newest: bool = False
    """Of two with the same rank the later is the more important."""
    ranked: bool = False
    """Shown by rank, and not in the order of the state."""
    fresh: Callable[[Any, float, State, Picks], bool] | None = None
    """Whether an element is young enough at this moment."""
    latest_of: str = ""
    """Of elements with the same value in this field only the most important is shown."""
    fades: Literal["always", "at the cap", "never"] = "never"
    """When an element may leave the state because of its age alone: nobody is told then."""

    @property
    def layer(self) -> str:
        """The layer it belongs to."""
        return self.path.partition(".")[0]

    def elements(self, state: State) -> tuple[Any, ...]:
        """The list; of what happened only as much as the state keeps in sight."""
        found: tuple[Any, ...] = attrgetter(self.path)(state)
        if self.fades == "at the cap":
            return found[max(0, len(found) - state.memory.episodic.max_entries) :]
        return found

    def lets_go(self, state: State) -> bool:
        """Whether an element that is gone may have left by its age."""
        if self.fades == "at the cap":
            return len(attrgetter(self.path)(state)) >= state.memory.episodic.max_entries
        return self.fades == "always"


class Single(NamedTuple):
    """A value of the state that is no list of elements."""

    path: str
    tags: tuple[str, ...]
    show: Callable[[State], Node | None]
    """`None` when there is nothing to show."""
    last: bool = False
    """Whether it goes before the elements of its layer when room is short; otherwise it is the last to go."""

    group: str = ""

    @property
    def layer(self) -> str:
        """The layer it belongs to."""
        return self.path.partition(".")[0]
