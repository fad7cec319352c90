"""What gets into the journal: only what can be read again."""

import msgspec
import pytest

from support.sessions import kept, opened, talk
from windowsill import Plan, Strategy
from windowsill.messages import text_message
from windowsill.secrets import Redactor
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


def test_what_an_earlier_fold_keeps_is_not_searched_for_secrets_again(monkeypatch):
    """The work of a fold is that of what it hides anew, however much the folds before it collected."""
    searched = []
    search = Redactor.redact_bytes
    monkeypatch.setattr(Redactor, "redact_bytes", lambda self, data: searched.append(data) or search(self, data))

    def strings_searched(before):
        session = opened(budget=100_000)
        session.add({"role": "user", "content": "Find out."})
        for number in range(before + 2):
            session.add({"role": "user", "content": f"You must never touch table_{number}. Look at part {number}."})
            session.add({"role": "assistant", "content": f"Part {number} is in order."})
        ids = [item.id for item in session.view.items]
        session.fold(ids[1], ids[2 * before])
        searched.clear()
        session.fold(session.view.items[1].id, ids[2 * before + 2])
        assert len(session.view.items[1].facts["ledger"]["rules"]) == before + 1
        return len(searched)

    few, many = strings_searched(10), strings_searched(80)
    assert many < 1.5 * few
