"""What building the context of a state costs as it grows, and what it costs a turn that the state fills itself."""

from __future__ import annotations

import time
from unittest import mock

import msgspec

from bench.measure import show, stopwatch
from windowsill import Session
from windowsill.agent import Engine, tool
from windowsill.state import State
from windowsill.state.layers import Episodic, Evidence, Fact, Memory, Observation, Semantic, Summary, Task
from windowsill.state.prompt import Builder
from windowsill.testing import Call, Scripted
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
    _filling(100 if quick else 400)


@tool(category="execute", repeatable=True)
def run_tests(command: str) -> str:
    """Run tests."""
    return f"{command}\n" + "src/kiln.py:12: it is warm\n" * 20 + "12 passed, 3 failed\ncoverage: 87%"


def _filling(turns: int) -> None:
    """Compare a turn of an engine whose state fills itself with one that observes nothing."""
    nothing = {"observe_turn": lambda *_: [], "observe_folds": lambda *_: []}
    silent = (
        mock.patch.multiple("windowsill.agent.loop", **nothing),
        mock.patch("windowsill.agent.calls.observe_call", return_value=[]),
    )
    plain, filled = [], []
    for _ in range(3):
        with silent[0], silent[1]:
            plain.append(_engine_run(turns))
        filled.append(_engine_run(turns))
    (before, sent), (after, more) = min(plain), min(filled)
    ratio, tokens = after / before - 1, more / sent - 1
    figure = f"a turn of {turns} whose state fills itself: more time"
    show(figure, f"{ratio:.1%}", f"<= 10% ({before / turns * 1e3:.2f} ms before)", met=ratio <= 0.1)
    show(f"a turn of {turns} whose state fills itself: more tokens", f"{tokens:.1%}", "<= 10%", met=tokens <= 0.1)


def _engine_run(turns: int) -> tuple[float, int]:
    """Return the processor time of a run, and the tokens of all its requests."""
    sent: list[int] = []
    session = Session.open("fill", model="claude-sonnet-4-5", budget=20_000, store=":memory:", config=False)
    engine = Engine(
        session,
        model=Scripted([*(Call("run_tests", {"command": f"pytest -k t{n}"}) for n in range(turns)), "Done."]),
        tools=[run_tests],
        phases=("executing",),
        max_turns=turns + 2,
        listen=lambda event: sent.append(event.data["tokens"]) if event.kind == "request" else None,
    )
    start = time.process_time()
    result = engine.run_sync("Run the tests.")
    taken = time.process_time() - start
    assert result.turns == turns + 1, result
    return taken, sum(sent)


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
