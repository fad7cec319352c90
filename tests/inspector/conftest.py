"""A stored session with twelve turns."""

import pytest

from support.inspected import open_session, work
from windowsill.store.memory import MemoryStore


@pytest.fixture(scope="module")
def store():
    made = MemoryStore()
    with open_session(made) as session:
        work(session, 12)
    return made
