"""Conversations like those that broke the peers."""

import random

from support.sessions import TASK, turn


def trace(seed, turns=60):
    """A system of turns with one to three parallel calls, results of uneven length, all in one task."""
    chance = random.Random(seed)
    messages = [{"role": "user", "content": TASK}]
    for number in range(turns):
        messages += turn(number, words=chance.randrange(1, 200), calls=chance.randint(1, 3))
    return messages
