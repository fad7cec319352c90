"""The guard around a plug-in: whatever it does, there is a plan, and it is told."""

import itertools

import pytest

from support.sessions import opened, talk, turn
from windowsill import Budget, Plan, StoreError, Strategy, fit
from windowsill.strategies import ProviderRequestFields
from windowsill.strategies.pipeline import Pipeline
from windowsill.strategies.registry import Guarded, guarded
from windowsill.strategies.sliding_window import SlidingWindow

pytestmark = pytest.mark.unit

BUDGET = Budget(limit=1_000, high=800, low=400, window=1_000)


class Plugin(Strategy):
    """A plug-in that does what a test says."""

    name = "odd"

    def __init__(self, act):
        self.act = act
        self.asked = 0

    def plan(self, view, budget):
        self.asked += 1
        return self.act(view, budget)


def raising(error):
    def act(*_):
        raise error

    return act


@pytest.fixture
def view():
    session = opened()
    talk(session, 40)
    return session.view


def test_what_a_plug_in_says_of_its_decision_is_told_or_left_out(view):
    """Its figures pass as they are; one that fails, or gives something else, says nothing."""
    plugin = Plugin(lambda *_: Plan())
    for explain, told in ((lambda *_: {"rank": 3}, {"rank": 3}), (raising(ValueError("x")), {}), (lambda *_: 7, {})):
        plugin.explain = explain
        assert guarded(plugin).explain(view, BUDGET) == told


def test_a_plan_that_is_one_passes(view):
    """Unchanged, notes and all."""
    plan = Plan(notes=("fine",))
    assert guarded(Plugin(lambda *_: plan)).plan(view, BUDGET) is plan


@pytest.mark.parametrize(
    ("act", "what"),
    [
        (raising(RuntimeError("boom")), "failed with RuntimeError: boom"),
        (raising(SystemExit(3)), "failed with SystemExit: 3"),
        (raising(TimeoutError("net")), "failed with TimeoutError: net"),
        (lambda *_: None, "it planned NoneType"),
        (lambda *_: "hide all", "it planned str"),
        (lambda *_: Plan(proposals=None), "its plan's proposals are None"),
        (lambda *_: Plan(proposals=("x",)), "its plan's proposals are ('x',)"),
        (lambda *_: Plan(middle=(1,)), "its plan's middle are (1,)"),
        (lambda *_: Plan(notes="note"), "its plan's notes are 'note'"),
    ],
)
def test_after_a_fault_the_default_plans_and_the_fault_is_told(act, what, view, caplog):
    """Name, package and error, in the plan's notes and in the log; the next time it is asked again."""
    plug_in = Plugin(act)
    strategy = Guarded(plug_in, source="odd-package")
    plan = strategy.plan(view, BUDGET)
    assert plan.proposals == SlidingWindow().plan(view, BUDGET).proposals != ()
    assert plan.notes[0].startswith("strategy 'odd' of odd-package ")
    assert what in plan.notes[0]
    assert plan.notes[0] in caplog.text
    strategy.plan(view, BUDGET)
    assert plug_in.asked == 2


def test_a_plug_in_that_changes_its_view_changes_a_copy(view):
    """What it drops from the list is still there."""
    before = list(view.items)

    def greedy(shown, _):
        shown.items.clear()
        return Plan()

    guarded(Plugin(greedy)).plan(view, BUDGET)
    assert view.items == before


def test_a_store_that_fails_is_not_the_plug_ins_fault(view):
    """No other plan would mend it."""
    with pytest.raises(StoreError, match="disk"):
        guarded(Plugin(raising(StoreError("the disk is gone")))).plan(view, BUDGET)


def test_a_guarded_strategy_can_do_what_it_could_before(view):
    """Asking the provider, acting early, knowing better than a marker, telling the state."""
    asking, plan = ProviderRequestFields(fields={"a": 1}), Plan(notes=("better",))
    methods = {"ask": lambda *_: asking, "due": lambda *_: True, "instead": lambda *_: plan, "layers": lambda *_: 7}
    strategy = guarded(type("Able", (Plugin,), methods)(None))
    assert strategy.delegates
    assert (strategy.ask("anthropic", BUDGET), strategy.instead(view, BUDGET)) == (asking, plan)
    assert (strategy.due(view, BUDGET), strategy.layers(BUDGET)) == (True, 7)


def test_a_guarded_strategy_does_not_claim_more_than_it_could_before(view):
    """The defaults of the base class hold behind the guard too."""
    strategy = guarded(Plugin(None))
    assert not strategy.delegates
    assert (strategy.ask("anthropic", BUDGET), strategy.instead(view, BUDGET)) == (None, Plan())
    assert (strategy.due(view, BUDGET), strategy.layers(BUDGET)) == (False, 0)


@pytest.mark.parametrize("act", [raising(RuntimeError("boom")), lambda *_: 5, lambda *_: Plan(proposals=5)])
def test_a_substitute_that_fails_leaves_the_marker(act, view):
    """Nothing is as good as that."""
    strategy = guarded(type("Careful", (Plugin,), {"instead": act})(None))
    assert strategy.instead(view, BUDGET) == Plan()


@pytest.mark.parametrize(
    ("act", "what"),
    [
        (raising(RuntimeError("boom")), "failed with RuntimeError: boom"),
        (raising(SystemExit(3)), "SystemExit: 3"),
        (lambda shown, _: shown.items.clear(), "it planned NoneType"),
        (lambda *_: itertools.count(), "it planned count"),
    ],
)
@pytest.mark.parametrize("wrapped", [False, True], ids=["alone", "in a pipeline"])
def test_an_object_that_is_given_to_a_session_is_guarded(act, what, wrapped):
    """As a plug-in that goes by its name is: the request fits, and the report says who took over."""
    own = Plugin(act)
    session = opened(strategy=Pipeline([own]) if wrapped else own)
    talk(session, 40)
    payload = session.compose_sync()
    assert payload.tokens <= 1_500
    assert wrapped or what in payload.report.notes[0]
    assert payload.report.notes
    assert session.verify() == []


def test_an_object_that_is_given_to_fit_is_guarded():
    """It may end with anything but the program."""
    messages = [message for number in range(40) for message in turn(number)]
    payload = fit(
        [{"role": "user", "content": "Go."}, *messages], window=1_500, strategy=Plugin(raising(SystemExit(3)))
    )
    assert payload.tokens <= 1_500
    assert any("sliding-window takes over" in note for note in payload.report.notes)


def test_a_strategy_of_ours_needs_no_guard():
    """Nor does one that has a guard."""
    mine = guarded(Plugin(None))
    for strategy in (SlidingWindow(), Pipeline([SlidingWindow(), mine]), mine):
        assert guarded(strategy) is strategy


def test_an_interrupt_passes(view):
    """It is the user's, not the plug-in's."""
    with pytest.raises(KeyboardInterrupt):
        guarded(Plugin(raising(KeyboardInterrupt()))).plan(view, BUDGET)


def test_small_answers_that_fail_are_no(view):
    """Nothing is asked of the provider, nothing is due, no state is told."""

    class Faulty(Plugin):
        def ask(self, format, _budget):
            return "nonsense" if format == "openai" else raising(RuntimeError("boom"))()

        def due(self, _view, _budget):
            raise RuntimeError("boom")

        def layers(self, _budget):
            return "many"

    strategy = guarded(Faulty(None))
    assert strategy.ask("openai", BUDGET) is strategy.ask("anthropic", BUDGET) is None
    assert (strategy.due(view, BUDGET), strategy.layers(BUDGET)) == (False, 0)


def test_one_that_could_not_be_made_is_the_default_by_the_name_that_was_asked_for(view):
    """Its plans say why."""
    strategy = Guarded(SlidingWindow(), name="odd", source="odd-package", fault="cannot be used (ImportError: x)")
    plan = strategy.plan(view, BUDGET)
    assert strategy.name == "odd"
    assert plan.notes == ("strategy 'odd' of odd-package cannot be used (ImportError: x); sliding-window takes over",)
    assert plan.proposals
