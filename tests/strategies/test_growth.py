"""A strategy that is kept while a session grows plans what a new one plans."""

import msgspec
import pytest

from support.conversations import result, text_block, use
from support.sessions import TASK, opened, turn
from windowsill import strategies
from windowsill.budget import Budget
from windowsill.history.view import View
from windowsill.strategies.selection import Candidate, Selector, StandIns

pytestmark = pytest.mark.contract

NAMES = (
    "sliding-window",
    "mask",
    "importance",
    "priority",
    "summarize",
    "compact",
    "condense",
    "extract",
    "outputs:budget=400",
)


def steps():
    """Turns of an agent with results that come late and ids that come again, once for another tool."""
    yield {"role": "user", "content": TASK}
    yield {"role": "assistant", "content": [use("first")]}
    yield {"role": "user", "content": [result("first", "word " * 100)]}
    for number in range(8):
        yield from turn(number, words=60 + 20 * (number % 3), calls=1 + number % 2)
    yield {"role": "assistant", "content": [text_block("two"), use("late"), use("soon")]}
    yield {"role": "user", "content": [result("soon", "word " * 90)]}
    yield {"role": "assistant", "content": "meanwhile " * 40}
    yield {"role": "user", "content": [result("late", "word " * 120)]}
    yield {"role": "assistant", "content": [text_block("again"), use("late", "a_much_longer_name")]}
    yield {"role": "user", "content": [result("late", "word " * 80)]}
    for number in range(8, 12):
        yield from turn(number, words=70)
    yield {"role": "assistant", "content": [use("first")]}
    yield {"role": "user", "content": [result("first", "word " * 100)]}


def anew(view):
    """The same view, of which nothing is known yet."""
    return View(view.scale, view.read, list(view.items), at=view.at, conversation_hash=view.conversation_hash)


def budget_of(view):
    total = view.tokens()
    return Budget(limit=total, high=total * 4 // 5, low=total // 2, window=total)


@pytest.mark.parametrize("name", NAMES)
def test_plans_are_those_of_a_new_strategy(name):
    """Units that are joined late, an id that comes again and what is learnt about tokens included."""
    session = opened(model="claude-sonnet-4-5", budget=1_000_000)
    kept, planned = strategies.get(name), 0
    for number, message in enumerate(steps()):
        session.add(message)
        view = session.view
        if number % 4 == 0:
            learnt = msgspec.structs.replace(view.scale.calibration, prose=1.0 + number / 40)
            view.scale.calibration = learnt
        plan = kept.plan(view, budget_of(view))
        assert plan == strategies.get(name).plan(anew(view), budget_of(view))
        planned += bool(plan.proposals)
    assert planned > 5


@pytest.mark.parametrize("name", NAMES)
def test_plans_after_a_fold_are_those_of_a_new_strategy(name):
    """What was found out before it holds for all but what stands there now."""
    session = opened(budget=1_000_000)
    for message in steps():
        session.add(message)
    kept, view = strategies.get(name), session.view
    kept.plan(view, budget_of(view))
    session.fold(session.view.items[3].id, session.view.items[8].id)
    plan = kept.plan(view, budget_of(view))
    assert plan.proposals
    assert plan == strategies.get(name).plan(anew(view), budget_of(view))


def test_what_is_smaller_stays_where_something_better_does_not_fit():
    """Room is filled best first, and what does not fit is passed over."""
    session = opened(budget=1_000_000)
    for message in steps():
        session.add(message)
    found = [Candidate(1, 2, 0.3, 100.0), Candidate(2, 3, 0.2, 500.0), Candidate(3, 4, 0.1, 100.0)]
    selector = Selector(session.view, budget_of(session.view), found, StandIns(gap=2, share=0.1, least=1, largest=0))
    assert selector._keep(250.0, 1_000.0) == {0, 2}
