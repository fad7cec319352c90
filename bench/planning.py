"""Planning over 10,000 messages with every strategy, against one trim of the same list."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from bench.measure import best_of, show
from bench.trace import SYSTEM, TASK, turns
from windowsill import Session, strategies
from windowsill.budget import Budget
from windowsill.store.memory import MemoryStore

MESSAGES = 10_000
BUDGET = 50_000
SHARE = 0.1
"""Of what the peer needs."""
NAMES = ("sliding-window", "mask", "importance", "priority", "summarize", "compact", "condense", "extract")
ROUNDS = 5
ADDED = 4
"""Messages that come before each plan: about one turn of an agent."""


def native(count: int) -> list[dict[str, object]]:
    """A tool loop of so many messages."""
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


def planned_first(name: str, store: MemoryStore, budget: Budget) -> float:
    """Seconds of the first plan of a session that was just opened, its messages read."""
    session = Session.open("plan", model="gpt-4o", store=store)
    for item in session.items():
        session.view.read(item)
    return best_of(1, lambda: strategies.get(name).plan(session.view, budget))


def run(*, quick: bool = False) -> None:
    """Print the ratios."""
    for count in (1_000,) if quick else (1_000, MESSAGES):
        messages = native(count + len(NAMES) * ROUNDS * ADDED)
        later = iter(messages[count:])
        peer = trimmed(messages[:count])
        store = MemoryStore()
        session = Session.open("plan", model="gpt-4o", store=store)
        session.extend(messages[:count])
        total = session.tokens
        budget = Budget(limit=int(total * 0.95), high=int(total * 0.8), low=int(total * 0.5), window=total)
        for name in NAMES:
            ratio = planned_first(name, store, budget) / peer
            show(f"first plan of {name}, {count:,} messages, against trim_messages", f"{ratio:.3f}")
        for name in NAMES:
            ratio = planned(name, session, budget, later) / peer
            met = ratio <= SHARE if count == MESSAGES else None
            show(f"plan of {name}, {count:,} messages, against trim_messages", f"{ratio:.3f}", "<= 0.1", met=met)
