"""The agent loop of 2,000 turns: a request before every model call, against a peer that trims."""

from __future__ import annotations

import tempfile
from pathlib import Path

from bench.measure import show, stopwatch
from bench.trace import SYSTEM, TASK, turns
from windowsill import Session
from windowsill.store.memory import MemoryStore

BUDGET = 50_000
TURNS = 2_000


def ours(count: int, store, *, commits: int = 2) -> float:
    """Seconds for the loop with Windowsill: every message kept, exact tokens, the bytes of a valid request each turn.

    With two commits a turn the answer is on disk before its tools run; with one, it is written with their results.
    """
    recorded = list(turns(count))
    with Session.open("loop", model="gpt-4o", budget=BUDGET, store=store) as session, stopwatch() as taken:
        session.add({"role": "user", "content": TASK})
        for assistant, results in recorded:
            session.compose_sync(system=SYSTEM).body("openai")
            if commits == 1:
                session.extend([assistant, *results])
            else:
                session.add(assistant)
                session.extend(results)
    return taken[0]


def langchain(count: int) -> float:
    """Seconds for the loop with langchain-core's trim_messages and its approximate counter."""
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage, trim_messages

    messages = [SystemMessage(SYSTEM), HumanMessage(TASK)]
    recorded = list(turns(count))
    with stopwatch() as taken:
        for assistant, results in recorded:
            trim_messages(
                messages, max_tokens=BUDGET, strategy="last", token_counter="approximate", include_system=True
            )
            calls = [
                {"id": call["id"], "name": call["function"]["name"], "args": {"path": call["function"]["arguments"]}}
                for call in assistant["tool_calls"]
            ]
            messages.append(AIMessage(assistant["content"], tool_calls=calls))
            messages += [ToolMessage(result["content"], tool_call_id=result["tool_call_id"]) for result in results]
    return taken[0]


def run(*, quick: bool) -> None:
    """Print the figures."""
    count = 300 if quick else TURNS
    with tempfile.TemporaryDirectory() as folder:
        durable = min(ours(count, Path(folder) / f"one-{run}.db", commits=1) for run in range(2))
        twice = min(ours(count, Path(folder) / f"two-{run}.db") for run in range(2))
    memory = min(ours(count, MemoryStore()) for _ in range(2))
    peer = langchain(count)
    show(f"agent loop, {count:,} turns: SQLite, one durable commit a turn", f"{durable:.2f} s")
    show(f"agent loop, {count:,} turns: SQLite, two durable commits a turn", f"{twice:.2f} s", f"{peer / twice:.1f} x")
    show(f"agent loop, {count:,} turns: in memory", f"{memory:.2f} s")
    show(f"agent loop, {count:,} turns: langchain-core trim_messages", f"{peer:.2f} s")
    show("times faster than trim_messages, durable", f"{peer / durable:.1f} x", ">= 15", met=peer / durable >= 15)
    show("times faster than trim_messages, in memory", f"{peer / memory:.1f} x", ">= 30", met=peer / memory >= 30)
