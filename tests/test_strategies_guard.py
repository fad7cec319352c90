"""The guard around a plug-in: whatever it does, there is a plan, and it is told."""

import itertools
import threading

import pytest

from sessions import opened, talk, turn
from windowsill import Budget, Plan, StoreError, WindowsillError, fit
from windowsill.strategies import Asking, Delegating, Eager, Substituting
from windowsill.strategies.guard import guarded, substitute, trusted, within
from windowsill.strategies.pipeline import Pipeline
from windowsill.strategies.sliding_window import SlidingWindow

pytestmark = pytest.mark.unit

BUDGET = Budget(limit=1_000, high=800, low=400, window=1_000)
PATIENCE = 0.05


class Plugin:
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


@pytest.fixture
def never():
    """An event that a hanging plug-in waits for, until the test is over."""
    event = threading.Event()
    yield event
    event.set()


def test_a_plan_that_is_one_passes(view):
    """Unchanged, notes and all."""
    plan = Plan(notes=("fine",))
    assert guarded(Plugin(lambda *_: plan)).plan(view, BUDGET) is plan


@pytest.mark.parametrize(
    ("act", "what"),
    [
        (raising(RuntimeError("boom")), "failed with RuntimeError: boom"),
        (raising(SystemExit(3)), "it ended with SystemExit: 3"),
        (raising(TimeoutError("net")), "it ended with TimeoutError: net"),
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
    strategy = guarded(plug_in, source="odd-package")
    plan = strategy.plan(view, BUDGET)
    assert plan.proposals == SlidingWindow().plan(view, BUDGET).proposals != ()
    assert plan.notes[0].startswith("strategy 'odd' of odd-package ")
    assert what in plan.notes[0]
    assert plan.notes[0] in caplog.text
    strategy.plan(view, BUDGET)
    assert plug_in.asked == 2


def test_a_plug_in_that_hangs_is_left_behind_and_not_asked_again(view, never):
    """Each plan after that is the default's, and says so."""
    plug_in = Plugin(lambda *_: never.wait())
    strategy = guarded(plug_in, PATIENCE)
    first, second = strategy.plan(view, BUDGET), strategy.plan(view, BUDGET)
    assert first == second
    assert first.notes == ("strategy 'odd' gave no plan in 0.05 seconds; sliding-window takes over",)
    assert plug_in.asked == 1


def test_what_was_left_behind_can_read_nothing_more(view, never):
    """The session goes on meanwhile, and its store is not for two at a time."""
    ended = []

    def late(shown, _):
        shown.read(shown.items[0])
        never.wait()
        with pytest.raises(WindowsillError) as caught:
            shown.read(shown.items[0])
        ended.append(str(caught.value))
        done.set()

    done = threading.Event()
    guarded(Plugin(late), PATIENCE).plan(view, BUDGET)
    never.set()
    assert done.wait(10)
    assert ended == ["this plan came too late; plan faster"]


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


@pytest.mark.parametrize("asks", [False, True])
@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("substitutes", [False, True])
def test_a_guarded_strategy_can_do_what_it_could_before(asks, eager, substitutes, view):
    """Asking the provider, acting early, knowing better than a marker: those that do not are not taken for such."""
    asking, plan = Asking(fields={"a": 1}), Plan(notes=("better",))
    methods = {"ask": lambda *_: asking} if asks else {}
    methods |= {"due": lambda *_: True} if eager else {}
    methods |= {"instead": lambda *_: plan} if substitutes else {}
    strategy = guarded(type("Able", (Plugin,), methods)(None))
    can = (isinstance(strategy, Delegating), isinstance(strategy, Eager), isinstance(strategy, Substituting))
    assert can == (asks, eager, substitutes)
    assert not asks or strategy.ask("anthropic", BUDGET) is asking
    assert not substitutes or strategy.instead(view, BUDGET) is plan


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
        (raising(KeyboardInterrupt()), "KeyboardInterrupt"),
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
        assert trusted(strategy) is strategy


def test_small_answers_that_fail_are_no(view, never):
    """Nothing is asked of the provider, nothing is due."""

    class Faulty(Plugin):
        def ask(self, format, _budget):
            return "nonsense" if format == "openai" else raising(RuntimeError("boom"))()

        def due(self, _view, _budget):
            return never.wait()

    strategy = guarded(Faulty(None), PATIENCE)
    assert strategy.ask("openai", BUDGET) is strategy.ask("anthropic", BUDGET) is None
    assert strategy.due(view, BUDGET) is False
    assert "gave no answer" in strategy.plan(view, BUDGET).notes[0]


def test_a_substitute_is_the_default_by_the_name_that_was_asked_for(view):
    """Its plans say why."""
    strategy = substitute("odd", "odd-package", "cannot be used (ImportError: x)")
    plan = strategy.plan(view, BUDGET)
    assert strategy.name == "odd"
    assert plan.notes == ("strategy 'odd' of odd-package cannot be used (ImportError: x); sliding-window takes over",)
    assert plan.proposals


def test_a_session_with_a_plug_in_that_hangs_still_sends_what_fits(never):
    """And the report says who took over."""
    session = opened(strategy=guarded(Plugin(lambda *_: never.wait()), PATIENCE))
    talk(session, 40)
    payload = session.compose_sync()
    assert payload.tokens <= 1_500
    assert any("sliding-window takes over" in note for note in payload.report.notes)


def test_within_gives_what_the_call_gives_and_raises_what_it_raises():
    """As if it had been called here."""
    assert within(5, lambda: 7) == 7
    with pytest.raises(KeyError):
        within(5, lambda: {}["x"])
