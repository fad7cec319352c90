"""Chats of thousands of short messages in small windows: each turn gets its request, to the end."""

import random
from itertools import count

import pytest

from windowsill import Session, WindowsillError

pytestmark = pytest.mark.integration

CHATS, TURNS = 3, 400
"""Chats in `make test`, and turns of each."""
WINDOWS = (300, 1_000, 2_000, 4_000)
"""Far below what a model has, so that a chat passes it many times."""
STRATEGIES = (
    None,
    None,
    "sliding-window",
    "economy",
    "condense",
    "mask",
    "tiered",
    "importance",
    "summarize",
    "native",
)


def square(rng: random.Random) -> str:
    return rng.choice("abcdefgh") + rng.choice("12345678")


SPEAKERS = (
    lambda _, __: "yes",
    lambda _, __: "x y z",
    lambda _, turn: str(turn),
    lambda rng, _: f"{square(rng)} {square(rng)}",
    lambda rng, _: rng.choice("ABCD"),
    lambda rng, _: "word " * rng.randint(1, 20),
    lambda rng, _: rng.choice(["ok", "はい", "да", "👍", "weiter", ""]),
    lambda rng, _: f"I play {square(rng)} {square(rng)}. Your move.",
)


def test_a_chat_of_short_messages_never_ends(tally):
    """No turn is refused, none is above the window, and the last message is always there."""

    def trial(rng: random.Random) -> list[str]:
        window, model = rng.choice(WINDOWS), rng.choice(["gpt-5", "claude-sonnet-4-5", "gemini-2.5-flash"])
        strategy = rng.choice(STRATEGIES)
        user, assistant = rng.choice(SPEAKERS), rng.choice(SPEAKERS)
        settings = {"strategy": strategy} if strategy else {}
        ticks = count(1)
        problems: list[str] = []
        with Session.open(
            "s",
            model=model,
            window=window,
            store=":memory:",
            config=False,
            clock=lambda: float(next(ticks)),
            **settings,
        ) as session:
            for turn in range(TURNS):
                session.add({"role": "user", "content": user(rng, turn)}, format="openai")
                try:
                    payload = session.compose_sync()
                    problem = f"{payload.tokens} tokens" if payload.tokens > payload.report.limit else ""
                except WindowsillError as error:
                    problem = str(error)
                if problem:
                    problems.append(f"turn {turn}, {model}, {window}, {strategy}: {problem}")
                session.add({"role": "assistant", "content": assistant(rng, turn)}, format="openai")
        tally.count("chats: requests", problems, tried=TURNS)
        return problems[:1]

    tally.run("chats: chats", CHATS, trial)
    tally.check()
