"""Texts and bytes in pieces of any size, as streams arrive."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import strategies as st

seeds = st.integers(0, 2**32).map(random.Random)


def cut(whole: Any, chance: random.Random) -> list[Any]:
    """Cut a text or bytes into pieces of any size."""
    pieces = []
    while whole:
        size = chance.choice([1, 2, 3, 7, 40, 200])
        pieces.append(whole[:size])
        whole = whole[size:]
    return pieces
