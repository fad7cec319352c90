"""What building the context of a state costs, the first time and after one thing changed, as the state grows."""

from __future__ import annotations

import time

import msgspec

from bench.measure import show, stopwatch
from windowsill.state import State
from windowsill.state.layers import Episodic, Evidence, Fact, Memory, Observation, Semantic, Summary, Task
from windowsill.state.prompt import Builder
from windowsill.tokens import counter

GOAL = "find out why the payment gateway retries after a timeout"
WORDS = ["payment", "gateway", "ledger", "timeout", "retry", "invoice", "worker", "queue", "schema", "deploy", "cache"]
OTHERS = 1_000
TOKENS = 32_000
NOW = 1_000_000.0
ROUNDS = 5
CHANGES = 20


def run(*, quick: bool) -> None:
    """Print the figures."""
    sizes = (1_000, 3_000) if quick else (1_000, 3_000, 10_000)
    again = {size: _size(size) for size in sizes}
    growth = again[sizes[-1]] / again[sizes[0]]
    show(f"building again, {sizes[-1]:,} facts against {sizes[0]:,}", f"{growth:.2f} x")


def _size(facts: int) -> float:
    """In turn, several times, and the shortest of each: noise only ever adds."""
    count = counter("o200k_base").count
    count("warm")
    first, again, updating = [], [], []
    for turn in range(ROUNDS):
        state = _state(facts, turn)
        builder = Builder(count)
        with stopwatch() as taken:
            told = builder.build(state, TOKENS, now=NOW).digests
        first.append(taken[0])
        for number in range(CHANGES):
            state = _changed(state, number)
            start = time.perf_counter()
            builder.build(state, TOKENS, now=NOW)
            middle = time.perf_counter()
            builder.update(told, state, TOKENS, now=NOW)
            again.append(middle - start)
            updating.append(time.perf_counter() - middle)
    for what, taken in (("building again after one fact changed", again), ("an update after that", updating)):
        ratio = min(taken) / min(first)
        figure = f"{facts:,} facts: {what}, of the first"
        show(figure, f"{ratio:.3f}", f"<= 0.1 ({min(taken) * 1e3:.1f} of {min(first) * 1e3:.0f} ms)", met=ratio <= 0.1)
    return min(again)


def _state(facts: int, turn: int) -> State:
    return State(
        task=Task(goal=GOAL),
        memory=Memory(
            episodic=Episodic(
                summaries=tuple(Summary(id=f"s{n}", text=_text(n, turn)) for n in range(OTHERS)), max_entries=OTHERS
            ),
            semantic=Semantic(facts=tuple(_fact(n, turn) for n in range(facts))),
        ),
        evidence=Evidence(
            observations=tuple(
                Observation(id=f"o{n}", at=NOW - n % 90, tool="bash", result=_text(n, turn)) for n in range(OTHERS)
            )
        ),
    )


def _text(number: int, turn: int) -> str:
    words = [WORDS[(number * step + turn) % len(WORDS)] for step in (1, 3, 5, 7)]
    return f"In module {number} the {words[0]} {words[1]} waits for the {words[2]} of {words[3]} {number % 17}"


def _fact(number: int, turn: int) -> Fact:
    return Fact(
        id=f"f{number}",
        content=_text(number, turn),
        source=f"docs/{number % 50}.md",
        confidence=(number * 7919 % 1000) / 1000,
    )


def _changed(state: State, number: int) -> State:
    """Return the state with one fact in the middle said anew; every other element is the same object."""
    facts = list(state.memory.semantic.facts)
    place = (number * 977 + len(facts) // 2) % len(facts)
    facts[place] = msgspec.structs.replace(facts[place], content=f"payment gateway timeout {number}", confidence=1.0)
    semantic = msgspec.structs.replace(state.memory.semantic, facts=tuple(facts))
    return msgspec.structs.replace(state, memory=msgspec.structs.replace(state.memory, semantic=semantic))
