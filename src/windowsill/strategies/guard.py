"""A guard around a plug-in: one that raises, hangs or answers nonsense is reported, and the default takes over.

Python cannot end a thread. A plan that takes too long is left behind in a thread of its own, which holds a copy of the
view that can no longer read messages; its result is thrown away and the plug-in is not asked again. Code that never
lets other threads run, such as one endless regular expression, cannot be interrupted by anything in the same process.
"""

from __future__ import annotations

import contextvars
import copy
import functools
import threading
from collections.abc import Callable
from typing import TypeVar

import msgspec

from windowsill.budget import Budget
from windowsill.errors import InputError, StoreError, WindowsillError
from windowsill.history.folds import Brief, Proposal
from windowsill.history.view import Item, View
from windowsill.logs import log
from windowsill.messages import Message
from windowsill.strategies import Asking, Delegating, Eager, Plan, Strategy, Substituting
from windowsill.strategies.sliding_window import SlidingWindow

PLAN_SECONDS = 5.0
"""Planning takes milliseconds: a plug-in that needs seconds holds up every turn."""

OURS = "windowsill.strategies."
"""Where the strategies that come with Windowsill live; what is guarded already is of a class from there too."""

T = TypeVar("T")


def guarded(strategy: Strategy, seconds: float = PLAN_SECONDS, *, source: str = "") -> Strategy:
    """The strategy with a time limit on each answer, and the default in its place when it fails.

    `source` says in reports where it comes from, such as its package.
    """
    kind = _kind(isinstance(strategy, Delegating), isinstance(strategy, Eager), isinstance(strategy, Substituting))
    return kind(strategy, seconds, source=source)


def trusted(strategy: Strategy) -> Strategy:
    """The strategy as a session may use it: our own as they are, all others guarded."""
    stages = getattr(strategy, "stages", ())
    ours = all(type(each).__module__.startswith(OURS) for each in (strategy, *stages))
    return strategy if ours else guarded(strategy)


def substitute(name: str, source: str, fault: str) -> Strategy:
    """The default in the place of a strategy that could not even be made; each plan says so."""
    stand_in = Guarded(SlidingWindow(), PLAN_SECONDS, source=source, called=name)
    stand_in.fail(fault, for_good=True)
    return stand_in


class Guarded:
    """A strategy that always answers."""

    def __init__(self, strategy: Strategy, seconds: float, *, source: str = "", called: str = "") -> None:
        self.strategy = strategy
        self.name = called or str(strategy.name)
        self.seconds = seconds
        self.source = source
        self.fault = ""
        """Why it is not asked any more."""

    def plan(self, view: View, budget: Budget) -> Plan:
        """What the strategy plans, or the default when it fails."""
        if self.fault:
            return _default(view, budget, self.fault)
        gate = _Gate(view)
        try:
            plan = within(self.seconds, lambda: self.strategy.plan(gate.view, budget))
            _check(plan)
        except StoreError:
            # A disk that fails is not the strategy's fault.
            raise
        except TimeoutError:
            gate.close()
            return _default(view, budget, self.fail(f"gave no plan in {self.seconds:g} seconds", for_good=True))
        except Exception as error:  # noqa: BLE001 - a plug-in may raise anything, and must not cost the turn
            return _default(view, budget, self.fail(_said(error)))
        return plan

    def fail(self, what: str, *, for_good: bool = False) -> str:
        """Report a fault; the sentence that says so."""
        source = f" of {self.source}" if self.source else ""
        sentence = f"strategy {self.name!r}{source} {what}; {SlidingWindow.name} takes over"
        log.warning("%s", sentence)
        if for_good:
            self.fault = sentence
        return sentence

    def _answer(self, ask: Callable[[], T], otherwise: T) -> T:
        """A small answer of the strategy, or another one when it fails."""
        if self.fault:
            return otherwise
        try:
            return within(self.seconds, ask)
        except StoreError:
            raise
        except TimeoutError:
            self.fail(f"gave no answer in {self.seconds:g} seconds", for_good=True)
        except Exception as error:  # noqa: BLE001 - as in `plan`
            self.fail(_said(error))
        return otherwise


class _Delegating(Guarded):
    def ask(self, format: str, budget: Budget) -> Asking | None:
        """What the strategy says to the provider; nothing when it fails."""
        strategy = self.strategy
        assert isinstance(strategy, Delegating)
        asking = self._answer(lambda: strategy.ask(format, budget), None)
        return asking if isinstance(asking, Asking) else None


class _Eager(Guarded):
    def due(self, view: View, budget: Budget) -> bool:
        """Whether the strategy wants to plan now; no when it fails."""
        strategy = self.strategy
        assert isinstance(strategy, Eager)
        gate = _Gate(view)
        due = self._answer(lambda: strategy.due(gate.view, budget), otherwise=False)
        if self.fault:
            gate.close()
        return due is True


class _Substituting(Guarded):
    def instead(self, view: View, budget: Budget) -> Plan:
        """What the strategy knows in the place of a text that was not written; nothing when it fails."""
        strategy = self.strategy
        assert isinstance(strategy, Substituting)
        gate = _Gate(view)
        plan: object = self._answer(lambda: strategy.instead(gate.view, budget), Plan())
        if self.fault:
            gate.close()
        try:
            _check(plan)
        except InputError as error:
            self.fail(_said(error))
            return Plan()
        return plan if isinstance(plan, Plan) else Plan()


@functools.cache
def _kind(*able: bool) -> type[Guarded]:
    """A guard that can do what the strategy can, and does not claim more."""
    bases = tuple(each for each, can in zip((_Delegating, _Eager, _Substituting), able, strict=True) if can)
    return type("Guarded", bases, {"__module__": __name__}) if bases else Guarded


class _Gate:
    """A copy of a view whose messages can be read until it is closed."""

    def __init__(self, view: View) -> None:
        self.view = copy.copy(view)
        self.view.items = list(view.items)
        self._reader = view.reader
        self._lock = threading.Lock()
        self._closed = False
        if view.reader is not None:
            self.view.reader = self._read

    def _read(self, item: Item) -> Message:
        with self._lock:
            if self._closed or self._reader is None:
                raise WindowsillError("this plan came too late", remedy="plan faster")
            return self._reader(item)

    def close(self) -> None:
        """Let nothing be read any more; waits for a read that has begun."""
        with self._lock:
            self._closed = True


def within(seconds: float, call: Callable[[], T]) -> T:
    """What a call gives, from a thread of its own; `TimeoutError` when it takes longer. What it raises is raised here.

    A `SystemExit` or the like is turned into an ordinary error: only the program itself may end the program.
    """
    results: list[T] = []
    faults: list[BaseException] = []
    context = contextvars.copy_context()

    def run() -> None:
        try:
            results.append(context.run(call))
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that asked
            faults.append(error)

    thread = threading.Thread(target=run, daemon=True, name="windowsill plug-in")
    thread.start()
    thread.join(seconds)
    if results:
        return results[0]
    if not faults:
        raise TimeoutError
    if isinstance(faults[0], Exception) and not isinstance(faults[0], TimeoutError):
        raise faults[0]
    raise InputError(f"it ended with {type(faults[0]).__name__}: {faults[0]}") from faults[0]


def _check(plan: object) -> None:
    """`InputError` when this is no plan: structs do not look at what they are given."""
    if not isinstance(plan, Plan):
        raise InputError(f"it planned {type(plan).__name__}", remedy="return a Plan")
    for field, kind in (("proposals", Proposal), ("middle", Item), ("notes", str)):
        values = getattr(plan, field)
        if not isinstance(values, (tuple, list)) or not all(isinstance(value, kind) for value in values):
            raise InputError(f"its plan's {field} are {values!r:.80}", remedy=f"give a tuple of {kind.__name__}")
    for proposal in plan.proposals:
        for part in ("spans", "stand_ins", "briefs"):
            if not isinstance(getattr(proposal, part), (tuple, list)):
                raise InputError(f"a proposal's {part} are {getattr(proposal, part)!r:.80}", remedy="give a tuple")
        if not all(brief is None or isinstance(brief, Brief) for brief in proposal.briefs):
            raise InputError(f"a proposal's briefs are {proposal.briefs!r:.80}", remedy="give a Brief or None for each")


def _said(error: Exception) -> str:
    return f"failed with {type(error).__name__}: {error}"


def _default(view: View, budget: Budget, note: str) -> Plan:
    plan = SlidingWindow().plan(view, budget)
    return msgspec.structs.replace(plan, notes=(note, *plan.notes))
