"""Automatic checkpoints of a session (C3): due at the right turn, across restarts, at the same cost for any length."""

import pytest

from support.sessions import opened, talk
from windowsill import Session
from windowsill.session.checkpoints import Automatic
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.unit

MESSAGES = Automatic(seconds=None, messages=50, tokens=None, on_phase=False)
TOKENS = Automatic(seconds=None, messages=None, tokens=1_000, on_phase=False)
PHASES = Automatic(seconds=None, messages=None, tokens=None)


def looked(session, rule):
    made = session.checkpoints.make_if_due(rule)
    return made.reason if made is not None else None


def test_fifty_messages_are_reached_by_an_agent_that_looks_after_each():
    """Counted from the last checkpoint, not from the last look."""
    session = opened(budget=1_000_000)
    found = []
    for number in range(120):
        session.add(f"word {number}")
        found.append(looked(session, MESSAGES))
    assert [place for place, reason in enumerate(found, 1) if reason == "messages"] == [50, 100]


def test_hidden_messages_count_too():
    """Folding does not put the next checkpoint off."""
    session = opened(budget=800)
    found = []
    for number in range(60):
        talk(session, 1, start=number)
        session.compose_sync()
        found.append(looked(session, MESSAGES))
    assert session.folds
    assert [each.messages for each in session.checkpoints()] == [101, 51]


def test_what_was_seen_survives_a_restart():
    """A process that is started anew for each message makes the same checkpoints."""
    store = MemoryStore()
    opened(store, budget=1_000_000).close()
    found = []
    for number in range(110):
        session = Session.open("s", store=store)
        session.add(f"word {number}")
        found.append(looked(session, MESSAGES))
        session.close()
    assert [place for place, reason in enumerate(found, 1) if reason == "messages"] == [50, 100]


@pytest.mark.parametrize("restarts", [False, True])
def test_a_line_is_crossed_once_until_a_fold_leads_below_it(restarts):
    """Whether or not the process that saw the fold is still there."""
    store = MemoryStore()
    session = opened(store, budget=5_000)
    found = []

    def look():
        nonlocal session
        if restarts:
            session.close()
            session = Session.open("s", store=store)
        found.append((session.view.tokens() >= 1_000, looked(session, TOKENS)))

    for number in range(30):
        talk(session, 1, start=number)
        look()
    first, last = session.view.items[1].id, session.view.items[-3].id
    session.fold(first, last, text="much was done")
    if not restarts:
        look()
    for number in range(30, 60):
        talk(session, 1, start=number)
        look()
    assert [place for place, (_, reason) in enumerate(found) if reason == "tokens"] == [
        next(place for place, (above, _) in enumerate(found) if above),
        next(place for place, (above, _) in enumerate(found) if above and place >= 30 and not found[place - 1][0]),
    ]


def test_a_fold_between_two_looks_arms_it_again():
    """Nobody looked while the view was small, and its growing past the line again is a crossing all the same."""
    session = opened(budget=5_000)
    talk(session, 30)
    assert looked(session, TOKENS) == "tokens"
    session.fold(session.view.items[1].id, session.view.items[-3].id, text="much was done")
    talk(session, 30, start=30)
    assert [looked(session, TOKENS), looked(session, TOKENS)] == ["tokens", None]


def test_another_phase_is_due_once():
    """A session begins in `initializing`; each change after that is one."""
    session = opened()
    session.add("Fix it.")
    assert looked(session, PHASES) is None
    session.state.enter("planning")
    assert [looked(session, PHASES), looked(session, PHASES)] == ["phase", None]
    session.state.enter("executing")
    assert looked(session, PHASES) == "phase"
    assert [each.phase for each in session.checkpoints()] == ["executing", "planning"]


def test_ten_minutes_are_counted_from_the_last_checkpoint_or_the_beginning():
    """By the session's own clock."""
    now = [5_000.0]
    session = Session.open("s", budget=1_000, store=":memory:", clock=lambda: now[0])
    found = []
    for now[0] in (5_000.0, 5_599.0, 5_600.0, 5_601.0, 6_199.0, 6_200.0):
        found.append(looked(session, Automatic()))
    assert found == [None, None, "time", None, None, "time"]


def test_one_by_hand_counts_as_the_last():
    """The next one is fifty messages after it."""
    session = opened(budget=1_000_000)
    session.extend([f"word {number}" for number in range(30)])
    session.checkpoint("mine")
    session.extend([f"word {number}" for number in range(30)])
    assert looked(session, MESSAGES) is None
    session.extend([f"word {number}" for number in range(20)])
    assert looked(session, MESSAGES) == "messages"


def test_force_makes_one_in_any_case():
    """Its reason says so."""
    session = opened()
    session.add("Fix it.")
    assert session.checkpoints.make_if_due(MESSAGES) is None
    made = session.checkpoints.make_if_due(MESSAGES, force=True)
    assert (made.reason, made.name) == ("forced", "")


def test_after_a_restore_it_is_counted_from_that_checkpoint():
    """Not from a later one on the branch that was left."""
    session = opened(budget=1_000_000)
    session.extend([f"word {number}" for number in range(50)])
    first = session.checkpoints.make_if_due(MESSAGES)
    session.extend([f"word {number}" for number in range(50)])
    assert looked(session, MESSAGES) == "messages"
    session.restore(first.id)
    session.extend([f"other {number}" for number in range(49)])
    assert looked(session, MESSAGES) is None
    session.add("other 49")
    assert looked(session, MESSAGES) == "messages"


def test_after_a_rewind_behind_every_checkpoint_it_is_counted_from_the_beginning():
    """There is none on this branch."""
    session = opened(budget=1_000_000)
    start = session.extend([f"word {number}" for number in range(60)])
    assert looked(session, MESSAGES) == "messages"
    session.rewind(start[9])
    session.extend([f"other {number}" for number in range(39)])
    assert looked(session, MESSAGES) is None
    session.add("other 39")
    assert looked(session, MESSAGES) == "messages"


def test_forgetting_names_changes_nothing_for_the_rule():
    """The checkpoint was made, whether or not it still has a name."""
    session = opened(budget=1_000_000)
    session.extend([f"word {number}" for number in range(50)])
    assert looked(session, MESSAGES) == "messages"
    session.checkpoints.clean_up(0)
    assert looked(session, MESSAGES) is None
    again = Session.open("s", store=session.journal.store)
    assert looked(again, MESSAGES) is None


class Counting(MemoryStore):
    """Counts the entries that it gives, and how often it is asked for paths."""

    given = paths = 0

    def read(self, *args, **options):
        found = super().read(*args, **options)
        self.given += len(found)
        return found

    def jumps(self, session):
        self.paths += 1
        return super().jumps(session)


def test_a_look_costs_the_same_whatever_the_length():
    """It reads the label that the look before has written, and nothing of the history."""
    store = Counting()
    session = opened(store, budget=1_000_000)
    costs = []
    for number in range(6):
        session.extend([f"word {number} {place}" for place in range(400)])
        session.checkpoints.make_if_due(MESSAGES)
        session.add("one more")
        store.given = store.paths = 0
        session.checkpoints.make_if_due(MESSAGES)
        costs.append((store.given, store.paths))
    assert costs == [(1, 0)] * 6


class Watched(list):
    """Counts the items that are looked at."""

    def __init__(self, items):
        super().__init__(items)
        self.seen = 0

    def __getitem__(self, place):
        found = super().__getitem__(place)
        self.seen += len(found) if isinstance(place, slice) else 1
        return found

    def __iter__(self):
        self.seen += len(self)
        return super().__iter__()


def test_messages_that_were_counted_are_not_counted_again():
    """However long the view is, a look goes through what was added."""
    session = opened(budget=1_000_000)
    session.extend([f"word {number}" for number in range(3_000)])
    session.checkpoints.make_if_due(MESSAGES)
    session.view.items = Watched(session.view.items)
    session.add("one more")
    session.view.items.seen = 0
    session.checkpoints.make_if_due(MESSAGES)
    assert session.view.items.seen == 1
