"""What gets into the journal: only what can be read again."""

import msgspec
import pytest

from support.sessions import kept, opened, talk
from windowsill import Plan, Strategy
from windowsill.messages import text_message
from windowsill.store.memory import MemoryStore
from windowsill.strategies.sliding_window import SlidingWindow

pytestmark = pytest.mark.unit


class Odd(Strategy):
    """Folds what the sliding window folds, with something changed."""

    name = "odd"

    def __init__(self, **changes):
        self.changes = changes

    def plan(self, view, budget):
        [proposal] = SlidingWindow().plan(view, budget).proposals
        changes = dict(self.changes)
        if "facts" in changes:
            changes["spans"] = (msgspec.structs.replace(proposal.spans[0], facts=changes.pop("facts")),)
        return Plan(proposals=(msgspec.structs.replace(proposal, **changes),))


@pytest.mark.parametrize(
    "changes",
    [
        {"reason": 5},
        {"reason": "\ud800"},
        {"strategy": None},
        {"strategy": b"odd"},
        {"facts": "many"},
        {"facts": {1: 2}},
        {"facts": {"messages": "many"}},
        {"facts": {"calls": object()}},
        {"stand_ins": (text_message("tyrant", "x"),)},
        {"stand_ins": (text_message("user", "x", metadata={1: 2}),)},
        {"stand_ins": (text_message("user", "\ud800"),)},
        {"stand_ins": (msgspec.structs.replace(text_message("user", "x"), blocks=("x",)),)},
    ],
)
def test_a_fold_that_could_not_be_read_again_is_not_written(changes):
    """A session that cannot be opened any more is a session lost."""
    store = MemoryStore()
    with opened(store, strategy=Odd(**changes)) as session:
        talk(session, 40)
        before = kept(session)
        payload = session.compose_sync()
        assert payload.tokens <= 1_500
        assert payload.report.notes
    again = opened(store)
    assert again.verify() == []
    assert kept(again) == before
    assert again.compose_sync().tokens <= 1_500
