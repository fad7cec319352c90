"""Several strategies in a row, cheap before costly, each on what those before it left."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.examples import examples
from support.sessions import TASK, opened, problems, talk
from support.strategies import BUDGET, WIDE, chat, conversations, follow, keeps_its_promises, shown
from windowsill import Budget, InputError, NotFoundError, Plan, SettingError, Strategy
from windowsill.history.folds import MessageSpan, Proposal
from windowsill.messages import text_message
from windowsill.strategies.compact import Compact
from windowsill.strategies.condense import Condense
from windowsill.strategies.extract import Extract
from windowsill.strategies.masks import Mask
from windowsill.strategies.pipeline import Pipeline
from windowsill.strategies.sliding_window import SlidingWindow
from windowsill.strategies.summarize import Summarize
from windowsill.tokens import Weight

pytestmark = pytest.mark.unit


class Stage(Strategy):
    """A stage as a user writes one."""

    name = "own"

    def __init__(self, plan):
        self._plan = plan

    def plan(self, view, budget):
        return self._plan(view, budget)


PIPELINES = [
    Pipeline([Mask(), Condense()]),
    Pipeline([Mask(), Summarize()]),
    Pipeline([Mask(), Extract(), Compact()], least=0),
    Pipeline([SlidingWindow(), Condense()], least=1),
]


@settings(max_examples=examples(0.4))
@given(conversations(), st.sampled_from(PIPELINES), st.sampled_from(["", "a text"]))
def test_every_plan_keeps_the_promises(session, pipeline, text):
    """Whole units, the task, pins, running calls and the last message stay; pure, deterministic, always smaller."""
    keeps_its_promises(pipeline, session, text)


def test_the_cheap_stage_goes_first_and_suffices_when_it_can():
    """S10: masking outputs is enough here, so nothing is condensed."""
    session = opened()
    talk(session, 8, words=200)
    follow(session, Pipeline([Mask(), Condense()]))
    assert {fold.kind for fold in session.folds} == {"mask"}
    assert session.view.tokens() <= BUDGET.high


def test_the_next_stage_plans_on_what_the_stage_before_left():
    """S10: when all that may be masked is masked, the rest is condensed."""
    session = opened()
    talk(session, 80, words=60)
    proposals = follow(session, Pipeline([Mask(), Condense()]))
    assert [proposal.strategy for proposal in proposals] == ["mask", "condense"]
    assert session.view.tokens() <= BUDGET.low


def test_it_keeps_nothing_in_mind():
    """The same pipeline on another session begins at its first stage; the plan follows from the view alone."""
    pipeline = Pipeline([Mask(), Condense()])
    for _ in range(2):
        session = opened()
        talk(session, 80, words=60)
        assert [proposal.strategy for proposal in follow(session, pipeline)] == ["mask", "condense"]


def offering(tokens):
    """A stage that hides the second message, whatever it weighs, behind nothing."""

    def plan(view, _):
        item = next(item for item in view.items[1:] if not item.fold and view.tokens(item) >= tokens)
        run = MessageSpan(first=item.first, last=item.last, hides=1, saves=item.weight, weight=Weight())
        return Plan(proposals=(Proposal(kind="prune", reason="r", strategy="own", spans=(run,), stand_ins=(None,)),))

    return Stage(plan)


@pytest.mark.parametrize(("least", "followed"), [(0, "own"), (0.5, "condense")])
def test_a_stage_that_frees_too_little_is_passed_over(least, followed):
    """`least` is a share of what has to go: every fold costs the cached prefix."""
    session = opened()
    chat(session, 30)
    plan = Pipeline([offering(10), Condense()], least=least).plan(session.view, BUDGET)
    assert [proposal.strategy for proposal in plan.proposals] == [followed]


def test_where_no_stage_frees_enough_the_one_that_frees_most_is_followed():
    """A little is better than nothing when nothing else is to be had."""
    session = opened()
    chat(session, 30)
    pipeline = Pipeline([Stage(lambda *_: Plan()), offering(10), Stage(lambda *_: Plan())], least=1)
    assert len(pipeline.plan(session.view, BUDGET).proposals) == 1


def refuse(*_):
    raise ZeroDivisionError("no divisor")


def from_nowhere(_view, _budget):
    run = MessageSpan(first=9_000, last=9_001, hides=2, saves=Weight(prose=900), weight=Weight(prose=1))
    stand_in = text_message("user", "short")
    return Plan(proposals=(Proposal(kind="prune", reason="r", strategy="own", spans=(run,), stand_ins=(stand_in,)),))


def boasting(view, _budget):
    item = view.items[1]
    run = MessageSpan(first=item.first, last=item.last, hides=1, saves=Weight(prose=9_000), weight=Weight())
    stand_in = text_message("user", "word " * 500)
    return Plan(proposals=(Proposal(kind="prune", reason="r", strategy="own", spans=(run,), stand_ins=(stand_in,)),))


@pytest.mark.parametrize(
    ("plan", "note"),
    [
        (refuse, "stage 'own' failed with ZeroDivisionError: no divisor"),
        (lambda *_: None, "stage 'own' gave a NoneType where a Plan belongs"),
        (lambda *_: Plan(proposals=(42,)), ""),
        (lambda *_: Plan(proposals=None), ""),
        (from_nowhere, ""),
        (boasting, ""),
    ],
)
def test_a_stage_that_fails_is_told_and_the_next_takes_over(plan, note):
    """S11: a broken plug-in costs neither the turn nor the other stages."""
    session = opened()
    chat(session, 30)
    found = Pipeline([Stage(plan), Condense()]).plan(session.view, BUDGET)
    assert [proposal.strategy for proposal in found.proposals] == ["condense"]
    assert found.notes == ((note,) if note else ())


def test_below_the_high_mark_only_stages_that_are_due_are_asked():
    """Summaries after so many turns come although the window is almost empty; nothing else does."""
    session = opened()
    chat(session, 11)
    pipeline = Pipeline([Stage(refuse), Summarize(), Condense()])
    assert pipeline.due(session.view, WIDE)
    proposals = follow(session, pipeline, WIDE)
    assert [proposal.strategy for proposal in proposals] == ["summarize"]
    assert not pipeline.due(session.view, WIDE)


def test_a_session_composes_with_a_pipeline():
    """Within its budget, valid, the folds of both stages recorded under their own names."""
    session = opened(strategy=Pipeline([Mask(keep=2), Condense(keep=4)]))
    for number in range(8):
        talk(session, 12, start=12 * number, words=40)
        payload = session.compose_sync()
        assert payload.tokens <= 1_500
        assert problems(payload) == []
    assert {fold.strategy for fold in session.folds} == {"mask", "condense"}
    assert shown(session)[0] == TASK[:12]


PATH = "windowsill.strategies.condense:Condense"


@pytest.mark.parametrize(
    "stages",
    [
        f"sliding-window:keep=5+{PATH}:keep=4",
        f" sliding-window:keep=5 + {PATH}:keep=4 ",
        ["sliding-window:keep=5", f"{PATH}:keep=4"],
        [{"sliding-window": {"keep": 5}}, {PATH: {"keep": 4}}],
        (SlidingWindow(keep=5), Condense(keep=4)),
    ],
)
def test_stages_are_text_or_a_list(stages):
    """Names with settings behind them, settings apart, or strategies themselves."""
    pipeline = Pipeline(stages)
    assert pipeline == Pipeline([SlidingWindow(keep=5), Condense(keep=4)])
    assert pipeline.name == "sliding-window+condense"


def test_settings_of_a_stage_are_its_own():
    """`keep` counts messages in `condense` and turns in `compact`."""
    session = opened()
    chat(session, 30)
    follow(session, Pipeline([Condense(keep=4)]), text="short")
    assert len(session.view.items) == 1 + 1 + 4
    session = opened()
    chat(session, 30)
    follow(session, Pipeline([Compact(keep=4)]), text="short")
    assert len(session.view.items) == 1 + 1 + 8


@pytest.mark.parametrize(
    ("stages", "error"),
    [
        ("", SettingError),
        ("sliding-window+", SettingError),
        ([], InputError),
        ([{}], SettingError),
        ([{"sliding-window": {}, "native": {}}], SettingError),
        ("sliding-window+nothing", NotFoundError),
        ("sliding-window:keep=-1", SettingError),
        ("native+sliding-window", InputError),
        ([SlidingWindow], InputError),
    ],
)
def test_stages_that_are_none_are_refused(stages, error):
    """When the pipeline is made; a strategy that leaves the work to the provider is no stage."""
    with pytest.raises(error):
        Pipeline(stages)


@pytest.mark.parametrize("least", [-0.1, 1.1, "much"])
def test_a_share_out_of_range_is_refused(least):
    """With its name, its value and its range."""
    with pytest.raises(SettingError, match="setting 'least' is"):
        Pipeline("sliding-window", least=least)
    assert Pipeline("sliding-window", least="0.5").least == 0.5


def test_pipelines_of_the_same_stages_are_equal():
    """As strategies are."""
    one, other = Pipeline("sliding-window"), Pipeline([SlidingWindow()])
    assert one == other
    assert hash(one) == hash(other)
    assert one != Pipeline("sliding-window:keep=1")
    assert repr(one) == "Pipeline([SlidingWindow(keep=4, quote=0.25)], least=0.1)"


def test_a_budget_that_is_not_passed_asks_for_nothing():
    """No stage is asked for a plan then."""
    session = opened()
    chat(session, 3)
    assert Pipeline([Stage(refuse)]).plan(session.view, Budget(limit=9_000, high=8_000, low=5_000)) == Plan()
