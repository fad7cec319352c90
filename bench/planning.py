"""Planning over 10,000 messages with every strategy, against one trim of the same list."""

from __future__ import annotations

from bench.measure import best_of, show
from bench.trace import SYSTEM, TASK, turns
from windowsill import Session, strategies
from windowsill.budget import Budget
from windowsill.store.memory import MemoryStore

MESSAGES = 10_000
BUDGET = 50_000
SHARE = 0.1
"""Of what the peer needs."""


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


def planned(name: str, session: Session, budget: Budget) -> float:
    """Seconds of one plan, with the messages in memory, as they are before every request."""
    planner = strategies.get(name)
    planner.plan(session.view, budget)
    return best_of(3, lambda: planner.plan(session.view, budget))


def run(*, quick: bool = False) -> None:
    """Print the ratios."""
    for count in (1_000,) if quick else (1_000, MESSAGES):
        messages = native(count)
        peer = trimmed(messages)
        session = Session.open("plan", model="gpt-4o", store=MemoryStore())
        session.extend(messages)
        total = session.tokens
        budget = Budget(limit=int(total * 0.95), high=int(total * 0.8), low=int(total * 0.5), window=total)
        for name in ("sliding-window", "mask", "importance", "priority", "summarize", "compact", "condense", "extract"):
            ratio = planned(name, session, budget) / peer
            met = ratio <= SHARE if count == MESSAGES else None
            show(f"plan of {name}, {count:,} messages, against trim_messages", f"{ratio:.3f}", "<= 0.1", met=met)
