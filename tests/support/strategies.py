"""Strategies of users, conversations to plan for, and what holds for every plan."""

import itertools

import msgspec
from hypothesis import strategies as st

from support.conversations import result, text_block, use
from support.sessions import TASK, opened
from windowsill import Budget, Plan, SettingError, Strategy
from windowsill.budget import Size
from windowsill.compose.summaries import fill
from windowsill.history.proposals import check_fold
from windowsill.session.edits import commit_fold
from windowsill.summaries import Written

BUDGET = Budget(limit=1_500, high=1_200, low=750, window=1_500)
WIDE = Budget(limit=100_000, high=80_000, low=50_000, window=100_000)


def chat(session, turns, *, start=0, words=20):
    """Turns of a conversation: what the user says, and an answer."""
    for number in range(start, start + turns):
        session.add({"role": "user", "content": f"question {number} " + "why " * words})
        session.add({"role": "assistant", "content": f"answer {number} " + "so " * words})


def follow(session, strategy, budget=BUDGET, *, text=None, rounds=8):
    """Do what a strategy plans, as the composer does; with `text` a writer writes that. The proposals are returned."""
    done = []
    for _ in range(rounds):
        proposals = strategy.plan(session.view, budget).proposals
        for proposal in proposals:
            texts = [
                Written(text=text, digest={"n": len(done)}, writer="model") if text else None for _ in proposal.spans
            ]
            commit_fold(session.journal, fill(session.view, proposal, texts).proposal)
            done.append(proposal)
        if not proposals:
            break
    return done


def shown(session):
    """The first words of each visible message, or `fold`."""
    return ["fold" if item.fold else session.view.read(item).text[:12].strip() for item in session.view.items]


def brief_of(strategy, session, budget=BUDGET):
    """The first brief of its plan."""
    return strategy.plan(session.view, budget).proposals[0].briefs[0]


@st.composite
def conversations(draw):
    """A session with turns of words and of calls, pins anywhere, and perhaps a call that is still running."""
    session = opened()
    session.add({"role": "user", "content": TASK})
    for number in range(draw(st.integers(0, 25))):
        words = draw(st.integers(1, 120))
        marks = draw(st.sampled_from([[], [], [], [], ["pinned"], ["important"]]))
        if draw(st.booleans()):
            session.add({"role": "user", "content": f"ask {number} " + "why " * words}, marks=marks)
            session.add({"role": "assistant", "content": "so " * words})
            continue
        ids = [f"t{number}_{place}" for place in range(draw(st.integers(1, 3)))]
        session.add({"role": "assistant", "content": [text_block("looking"), *(use(id) for id in ids)]}, marks=marks)
        session.add({"role": "user", "content": [result(id, "word " * words) for id in ids]})
    if draw(st.booleans()):
        session.add({"role": "assistant", "content": [use("running")]})
    return session


def keeps_its_promises(strategy: Strategy, session, text=None):
    """Check a plan: pure, the same each time, whole units, what must stay stays, always smaller."""
    pinned = {item.id for item in session.view.items if item.pinned}
    first, last = session.view.items[0].id, session.view.items[-1].id
    for _ in range(10):
        view = session.view
        before = msgspec.msgpack.encode(view.items)
        plan = strategy.plan(view, BUDGET)
        assert msgspec.msgpack.encode(view.items) == before
        assert strategy.plan(view, BUDGET) == plan
        if not strategy.due(view, BUDGET) and view.tokens() <= BUDGET.high:
            assert plan.proposals == ()
        if not plan.proposals:
            break
        for proposal in plan.proposals:
            tokens = session.view.tokens()
            texts = [Written(text=text) if text else None for _ in proposal.spans]
            commit_fold(session.journal, check_fold(session.view, fill(session.view, proposal, texts).proposal))
            assert session.view.tokens() < tokens
    else:
        raise AssertionError("it never ends")
    items = list(session.view.items)
    assert items[0].id == first
    assert items[-1].id == last
    assert pinned <= {item.id for item in items}
    calls = {id for item in items for id in item.calls}
    assert {id for item in items for id in item.results} == calls - {"running"}
    folds = [bool(item.fold) for item in items]
    # Neighbouring summaries would be summaries nested without end: a later one covers the earlier.
    assert not any(left and right for left, right in itertools.pairwise(folds))


class Mine(Strategy):
    """A strategy of a user, as a plain class."""

    name = "mine"

    def __init__(self, times=1):
        self.times = times

    def plan(self, _view, _budget):
        return Plan()


class Sized(Strategy, msgspec.Struct, frozen=True, kw_only=True):
    """A strategy of a user, as a value with settings."""

    size: int = 3
    label: str = "x"
    name = "sized"

    def plan(self, _view, _budget):
        return Plan()


class NoPlan:
    """Something else."""

    name = "no plan"


class Picky(Strategy, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Has a setting of each kind."""

    must: int
    share: Size | None = None
    words: tuple[str, ...] = ()
    label: str = ""
    name = "picky"

    def __post_init__(self):
        if self.must < 0:
            raise SettingError("must", self.must, "a number from 0 on")

    def plan(self, _view, _budget):
        return Plan()
