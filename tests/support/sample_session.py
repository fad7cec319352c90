"""A session worth looking at: an agent mends a flaky test, with folds, cached prefixes, a branch and a checkpoint."""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Iterator
from typing import Any

from windowsill import Session

MODEL = "claude-sonnet-4-5"
SYSTEM = (
    "You are a careful software engineer. Work in small steps, run the tests after each change, and never touch the "
    "public interface of the payments package. Answer in English. "
) * 8
TOOLS = [
    {
        "name": name,
        "description": about,
        "input_schema": {"type": "object", "properties": {"path": {"type": "string", "description": "where"}}},
    }
    for name, about in {
        "read_file": "Read a file of the repository, with line numbers.",
        "grep": "Search the repository for a pattern and print the lines that match.",
        "run_tests": "Run a test file and print the result.",
        "edit_file": "Replace some lines of a file.",
        "web_search": "Search the web. Only for questions about libraries.",
    }.items()
]
TASK = (
    "The test `test_refund_is_sent_once` fails about one time in twenty. Find out why and mend it.\n\n"
    "Rules: do not touch the public interface of `payments`, keep the retry limit at 3, and show me the test passing "
    "fifty times in a row before you call it done."
)
NEEDLE = "lease_seconds = 0.25  # shorter than one slow commit"
FILES = ("payments/refunds.py", "payments/lease.py", "payments/queue.py", "tests/test_refunds.py", "payments/clock.py")
THOUGHTS = (
    "The lease is renewed by a thread. If the commit takes longer than the lease, a second worker can take the job.",
    "I will read how the queue hands out work before I change anything.",
    "The failing runs have one thing in common: two workers hold the same refund.",
    "The clock of the test is real. A fake clock would make this deterministic.",
    "The retry is not the cause: it stops at three, as it should.",
)
WORDS = (
    "refund",
    "worker",
    "lease",
    "queue",
    "retry",
    "commit",
    "clock",
    "amount",
    "order",
    "ledger",
    "renew",
    "expire",
)


def source_lines(chance: random.Random, path: str, count: int) -> str:
    """Lines that look like the code of a file."""
    lines = [f"# {path}"]
    for number in range(1, count):
        words = chance.sample(WORDS, 4)
        line = (
            f"def {words[0]}_{words[1]}(self, {words[2]}):",
            f"    {words[0]} = self.{words[1]}.{words[2]}({words[3]}, limit={chance.randint(2, 90)})",
            f"    if {words[0]}.{words[1]} > {words[2]}_limit:  # {' '.join(words)}",
            f'        raise {words[0].title()}Error("{" ".join(words)}")',
            "",
        )[number % 5]
        lines.append(f"{number:4d}  {line}")
    return "\n".join(lines)


def step(chance: random.Random, number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the agent asks for, and what comes back."""
    id = f"toolu_{number:04d}"
    path = FILES[number % len(FILES)]
    name = ("read_file", "grep", "read_file", "run_tests", "edit_file")[number % 5]
    arguments: dict[str, Any] = {"path": path}
    if name == "run_tests":
        dots = "." * chance.randint(20, 60)
        trace = source_lines(chance, "traceback", 12)
        output = f"{dots}F\nFAILED tests/test_refunds.py::test_refund_is_sent_once\n{trace}"
    elif name == "edit_file":
        arguments["lines"] = f"{number}-{number + 4}"
        output = f"replaced 5 lines of {path}"
    else:
        output = source_lines(chance, path, chance.randint(15, 90))
    if number == 7:
        output += f"\n  91  {NEEDLE}"
    asks = [{"type": "text", "text": THOUGHTS[number % len(THOUGHTS)]}] if number % 3 == 0 else []
    asks.append({"type": "tool_use", "id": id, "name": name, "input": arguments})
    failed = name == "run_tests" and number % 2 == 1
    result = {"type": "tool_result", "tool_use_id": id, "content": output, "is_error": failed}
    return {"role": "assistant", "content": asks}, {"role": "user", "content": [result]}


def answer(message: dict[str, Any], usage: dict[str, int]) -> dict[str, Any]:
    """A provider's answer with its figures."""
    base = {"id": "msg_1", "type": "message", "model": MODEL, "stop_reason": "tool_use"}
    return {**base, **message, "usage": usage}


class Provider:
    """Counts as a provider with a prompt cache does: what begins like the request before is read from it."""

    def __init__(self) -> None:
        self.before = b""

    def usage(self, body: bytes, tokens: int) -> dict[str, int]:
        """The figures of a request."""
        request = json.loads(re.sub(rb',?"cache_control":\{[^}]*\}', b"", body))
        now = json.dumps([request["tools"], request["system"], request["messages"]]).encode()
        low, high = 0, min(len(now), len(self.before))
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if now[:middle] == self.before[:middle] else (low, middle - 1)
        self.before = now
        cached = tokens * low // len(now)
        written = max(0, tokens - cached - 40)
        return {
            "input_tokens": tokens - cached - written,
            "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": written,
            "output_tokens": 60 + len(body) % 200,
        }


def work(session: Session, turns: int, start: int = 0, provider: Provider | None = None) -> Iterator[int]:
    """Let the agent work, one turn at each step of the iterator."""
    provider = provider or Provider()
    for number in range(start, start + turns):
        payload = session.compose_sync(system=SYSTEM, tools=TOOLS)
        asks, result = step(random.Random(number), number)
        session.add(answer(asks, provider.usage(payload.body(), payload.tokens)))
        session.add(result)
        yield number


def sample(
    store: Any,
    id: str = "mend-flaky-refunds",
    turns: int = 36,
    *,
    budget: int = 8_000,
    began: float = 1_790_000_000.0,
) -> Session:
    """The session: a first way that is given up at a checkpoint, then the work, a state, a policy and pinned words."""
    ticks = itertools.count()
    # The default would mask outputs for long; the page is to show folds that hide messages.
    settings = {"budget": budget, "strategy": "condense"}
    session = Session.open(id, store=store, model=MODEL, clock=lambda: began + 3 * next(ticks), **settings)
    session.pin(session.add({"role": "user", "content": TASK}))
    state = session.state
    state.set_goal("Mend the flaky test of the refunds", ["test_refund_is_sent_once passes fifty times in a row"])
    state.enter("planning")
    state.set_plan(["reproduce the failure", "find the race", "mend it", "prove it"])
    state.add_fact("The lease of a job is shorter than a slow commit", source="payments/lease.py")
    state.record_decision("Use a fake clock in the test", rationale="the race depends on the real one")
    state.enter("executing")
    provider = Provider()
    for _ in work(session, 6, provider=provider):
        pass
    session.checkpoint("before the first patch")
    here = list(session.view.items)[-1].id
    for _ in work(session, 4, start=200, provider=provider):
        pass
    session.rewind(here, reason="the patch hid the race")
    for _ in work(session, turns, start=6, provider=provider):
        pass
    session.add({"role": "user", "content": "Good. Now show me the fifty runs."})
    session.compose_sync(system=SYSTEM, tools=TOOLS)
    for number in (504, 509, 514):  # small edits after the last request: some messages are never folded
        session.extend(step(random.Random(number), number))
    return session
