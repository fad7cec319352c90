"""Planning over 10,000 messages with every strategy, against one trim of the same list."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import ParamSpec
from unittest import mock

from bench.measure import best_of, show
from bench.trace import SYSTEM, TASK, turns
from windowsill import Session, strategies
from windowsill.budget import Budget
from windowsill.history.view import View
from windowsill.store.memory import MemoryStore
from windowsill.strategies import foldable_units
from windowsill.strategies.economy import Decision, Economy

P = ParamSpec("P")

MESSAGES = 10_000
BUDGET = 50_000
SHARE = 0.1
"""Of what the peer needs; of a turn, for deciding alone."""
NAMES = ("sliding-window", "mask", "importance", "priority", "summarize", "compact", "condense", "extract")
ROUNDS = 5
MEASURED = 100
"""Turns that are measured."""
ADDED = 4
"""Messages that come before each plan: about one turn of an agent."""


def native(count: int) -> list[dict[str, object]]:
    """Make a tool loop of so many messages."""
    messages: list[dict[str, object]] = [{"role": "user", "content": TASK}]
    for assistant, results in turns(count):
        messages += [assistant, *results]
        if len(messages) >= count:
            break
    return messages[:count]


def trimmed(messages: list[dict[str, object]]) -> float:
    """Seconds of langchain-core's trim_messages with its approximate counter."""
    from langchain_core.messages import convert_to_messages, trim_messages

    listed = convert_to_messages([{"role": "system", "content": SYSTEM}, *messages])
    return best_of(
        3,
        lambda: trim_messages(
            listed, max_tokens=BUDGET, strategy="last", token_counter="approximate", include_system=True
        ),
    )


def planned(name: str, session: Session, budget: Budget, later: Iterator[dict[str, object]]) -> float:
    """Seconds of one plan, with the messages in memory, as they are before every request.

    Messages are added before each of them, as they are in a session: a plan that was kept would be of no use.
    """
    planner = strategies.get(name)
    planner.plan(session.view, budget)
    best = float("inf")
    for _ in range(ROUNDS):
        session.extend(list(islice(later, ADDED)))
        best = min(best, best_of(1, lambda: planner.plan(session.view, budget)))
    return best


def added(name: str, session: Session, budget: Budget) -> float:
    """Seconds of the first plan when all messages came before it."""
    planner, view = strategies.get(name), View(session.view.scale, session.view.read)
    for item in list(session.view.items):
        view.add(item)
    return best_of(1, lambda: planner.plan(view, budget))


def opened(name: str, store: MemoryStore, budget: Budget) -> float:
    """Seconds of the first plan of a session that was just opened, its messages in memory."""
    session = Session.open("plan", model="gpt-4o", store=store)
    for item in list(session.view.items):
        session.view.read(item)
    return best_of(1, lambda: strategies.get(name).plan(session.view, budget))


def folded(name: str, session: Session, budget: Budget) -> float:
    """Seconds of the first plan after a fold of one unit, by a strategy that planned before it."""
    planner = strategies.get(name)
    planner.plan(session.view, budget)
    items = list(session.view.items)
    free = foldable_units(session.view, keep=4)
    unit = next(unit for unit in free[len(free) // 2 :] if not items[unit.start].fold)
    session.fold(items[unit.start].id, items[unit.stop - 1].id)
    return best_of(1, lambda: planner.plan(session.view, budget))


def deciding(count: int) -> float:
    """Return the share of the time of a turn that economy takes to decide, folds apart, after so many messages."""
    messages = iter(native(count + MEASURED * ADDED))
    spent = 0.0
    decide = Economy.decide

    def timed(strategy: Economy, view: View, budget: Budget) -> Decision:
        nonlocal spent
        began = time.process_time()
        try:
            return decide(strategy, view, budget)
        finally:
            spent += time.process_time() - began

    with Session.open("turns", model="gpt-4o", budget=BUDGET, store=MemoryStore()) as session:
        session.extend(list(islice(messages, count)))
        session.compose_sync(system=SYSTEM)
        with mock.patch.object(Economy, "decide", timed):
            whole = 0.0
            while added := list(islice(messages, ADDED)):
                before, began = spent, time.process_time()
                session.extend(added)
                folds = session.compose_sync(system=SYSTEM).report.folds
                if folds:
                    spent = before
                else:
                    whole += time.process_time() - began
    return spent / whole


def of_rounds(measure: Callable[P, float], *args: P.args, **settings: P.kwargs) -> float:
    """Return the shortest of several: a first plan can be timed once only."""
    return min(measure(*args, **settings) for _ in range(ROUNDS))


def run(*, quick: bool = False) -> None:
    """Print the ratios."""
    for count in (100, MESSAGES):
        share = deciding(count)
        show(
            f"deciding of economy, share of a turn at {count:,} messages", f"{share:.3f}", "<= 0.1", met=share <= SHARE
        )
    for count in (1_000,) if quick else (1_000, MESSAGES):
        messages = native(count + len(NAMES) * ROUNDS * ADDED)
        first, later = messages[:count], iter(messages[count:])
        peer = trimmed(first)
        store = MemoryStore()
        session = Session.open("plan", model="gpt-4o", store=store)
        session.extend(first)
        total = session.view.tokens()
        budget = Budget(limit=int(total * 0.95), high=int(total * 0.8), low=int(total * 0.5), window=total)

        def told(what: str, seconds: float, peer: float = peer, count: int = count) -> None:
            ratio = seconds / peer
            met = ratio <= SHARE if count == MESSAGES else None
            show(f"{what}, {count:,} messages, of a trim", f"{ratio:.3f}", f"<= {SHARE}", met=met)

        for name in NAMES:
            told(f"first plan of {name} after adding", of_rounds(added, name, session, budget))
        for name in NAMES:
            told(f"first plan of {name} after opening", of_rounds(opened, name, store, budget))
        for name in NAMES:
            told(f"plan of {name}", planned(name, session, budget, later))
        for name in NAMES:
            told(f"first plan of {name} after a fold", of_rounds(folded, name, session, budget))
