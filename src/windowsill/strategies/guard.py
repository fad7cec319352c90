"""A guard around strategies of others: one that fails is reported, and the sliding window plans in its place.

A plan runs in the thread that asked for it: one that never comes to an end holds up its caller.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from windowsill.budget import Budget
from windowsill.errors import InputError, StoreError, log
from windowsill.history.folds import Proposal
from windowsill.history.view import Item, View
from windowsill.strategies.base import Plan, ProviderRequestFields, Strategy
from windowsill.strategies.sliding_window import SlidingWindow

OURS = "windowsill.strategies."
"""Where the strategies that come with Windowsill live; what is guarded already is of a class from there too."""

T = TypeVar("T")


def guarded(strategy: Strategy) -> Strategy:
    """Return the strategy as a session may use it: our own as they are, all others guarded."""
    stages = getattr(strategy, "stages", ())
    ours = all(type(each).__module__.startswith(OURS) for each in (strategy, *stages))
    return strategy if ours else Guarded(strategy)


class Guarded(Strategy):
    """A strategy that always answers: with what the guarded one says, or with the default where that fails.

    `source` says in reports where it comes from, such as its package. One with a `fault` could not even be made, and
    is never asked.
    """

    def __init__(self, strategy: Strategy, *, name: str = "", source: str = "", fault: str = "") -> None:
        self.strategy = strategy
        self.name = name or str(strategy.name)
        self.source = source
        self.fault = self._report(fault) if fault else ""

    @property
    def delegates(self) -> bool:
        """True where the guarded strategy leaves the work to the provider."""
        return self.strategy.delegates

    def plan(self, view: View, budget: Budget) -> Plan:
        """Return what the strategy plans, or what the default does when it fails."""
        notes = [self.fault] if self.fault else []
        plan = None if self.fault else self._answer(lambda: _checked(self.strategy.plan(view.copy(), budget)), notes)
        if plan is not None:
            return plan
        default = SlidingWindow().plan(view, budget)
        return msgspec.structs.replace(default, notes=(*notes, *default.notes))

    def due(self, view: View, budget: Budget) -> bool:
        """Tell whether the strategy wants to plan now; it does not when it fails."""
        return not self.fault and self._answer(lambda: self.strategy.due(view.copy(), budget)) is True

    def instead(self, view: View, budget: Budget) -> Plan:
        """Return what the strategy folds where a summary could not be written; nothing when it fails."""
        return self._answer(lambda: _checked(self.strategy.instead(view.copy(), budget))) or Plan()

    def ask(self, format: str, budget: Budget) -> ProviderRequestFields | None:
        """Return what the strategy says to the provider; nothing when it fails."""
        asking = self._answer(lambda: self.strategy.ask(format, budget))
        return asking if isinstance(asking, ProviderRequestFields) else None

    def layers(self, budget: Budget) -> int:
        """Return the tokens in which the layered state may be told; 0 when the strategy fails."""
        tokens = self._answer(lambda: self.strategy.layers(budget))
        return tokens if isinstance(tokens, int) else 0

    def _answer(self, ask: Callable[[], T], notes: list[str] | None = None) -> T | None:
        """Return what the strategy answers; `None`, and a report, when it raises."""
        try:
            return ask()
        except StoreError:
            # A disk that fails is not the strategy's fault.
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - it may raise anything, and must not cost the turn
            report = self._report(f"failed with {type(error).__name__}: {error}")
            if notes is not None:
                notes.append(report)
            return None

    def _report(self, what: str) -> str:
        source = f" of {self.source}" if self.source else ""
        sentence = f"strategy {self.name!r}{source} {what}; {SlidingWindow.name} takes over"
        log.warning("%s", sentence)
        return sentence


def _checked(plan: object) -> Plan:
    """Return a plan; `InputError` for anything else: structs do not look at what they are given."""
    if not isinstance(plan, Plan):
        raise InputError(f"it planned {type(plan).__name__}", remedy="return a Plan")
    for field, kind in (("proposals", Proposal), ("middle", Item), ("notes", str)):
        values = getattr(plan, field)
        if not isinstance(values, (tuple, list)) or not all(isinstance(value, kind) for value in values):
            raise InputError(f"its plan's {field} are {values!r:.80}", remedy=f"give a tuple of {kind.__name__}")
    return plan
