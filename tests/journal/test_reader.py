"""Reading what a session shows."""

import pytest

from support.sessions import TASK, opened, turn
from windowsill import strategies
from windowsill.budget import Budget
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.unit


class Counting(MemoryStore):
    """A store that knows which single entries were asked for."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def read(self, session, first, last, **more):
        if first == last:
            self.asked.append(first)
        return super().read(session, first, last, **more)


def test_a_fold_is_read_once_for_all_that_it_replaced():
    """Thousands of outputs may be masked by one fold: unpacking it for each would take minutes."""
    store = Counting()
    session = opened(store, budget=1_000_000)
    session.add({"role": "user", "content": TASK})
    for number in range(30):
        session.extend(turn(number, words=80))
    view = session.view
    total = view.tokens()
    plan = strategies.get("mask").plan(view, Budget(limit=total, high=total - 1, low=1, window=total))
    fold = session.journal.append(lambda draft: draft.fold(plan.proposals[0], total, total))
    store.asked.clear()
    shown = [view.read(item).text for item in view.items if item.cuts]
    assert len(shown) == len(plan.proposals[0].spans) > 20
    assert store.asked.count(fold.seq) == 1
