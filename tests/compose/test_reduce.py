"""Whatever a strategy does, the request fits, is valid, and the report says what happened."""

import itertools

import pytest

import windowsill
from support.conversations import result, text_block, use
from windowsill import BudgetError, Plan, Session, Strategy, providers
from windowsill.history.folds import BlockSpan, MessageSpan, Proposal
from windowsill.history.view import sum_weights
from windowsill.messages import Text, text_message
from windowsill.store.memory import MemoryStore
from windowsill.tokens import Weight

pytestmark = pytest.mark.unit

BUDGET = 1_500
PIN = "never touch main"


class Own(Strategy):
    """A plug-in as a user writes one."""

    name = "own"

    def __init__(self, plan):
        self._plan = plan

    def plan(self, view, budget):
        return self._plan(view, budget)


def session_with(strategy, *, turns=25, store=None):
    ticks = itertools.count(1)
    session = Session.open(
        "s",
        model="claude-sonnet-4-5",
        budget=BUDGET,
        tokenizer="o200k_base",
        strategy=strategy,
        store=store or MemoryStore(),
        clock=lambda: float(next(ticks)),
    )
    if not session.view.items:
        session.add({"role": "user", "content": "the task"})
        session.add({"role": "assistant", "content": "understood"})
        session.add({"role": "user", "content": PIN}, marks=["pinned"])
        for turn in range(turns):
            session.add({"role": "assistant", "content": [text_block("looking"), use(f"t{turn}")]})
            session.add({"role": "user", "content": [result(f"t{turn}", f"line {turn} " + "word " * 60)]})
    return session


def weighed(session, payload):
    """The tokens of a request, counted from its own bytes."""
    request = providers.read_request(payload.body(cache=False), format=payload.format)
    scale = session.composer.context.scale
    parts = [scale.weigh(message) for message in (*request.messages, request.system) if message is not None]
    return scale.tokens(sum_weights([*parts, scale.weigh_tools(request.tools), scale.frame]))


def pin_many(session):
    """More pins than the budget holds, each too short to be cut."""
    for number in range(120):
        session.add({"role": "user", "content": f"rule {number}: " + "always " * 6}, marks=["pinned"])


def run(view, start, stop, stand_in, weight=None):
    """A proposal that hides items `start` to `stop` (exclusive) and says honestly what that saves."""
    items = view.items[start:stop]
    known = view.weigh(stand_in) if weight is None else weight
    return MessageSpan(
        first=items[0].first,
        last=items[-1].last,
        hides=len(items),
        saves=sum_weights(item.weight for item in items) - known,
        weight=known,
    )


def proposal(spans, stand_ins):
    return Proposal(kind="truncate", reason="because", strategy="own", spans=tuple(spans), stand_ins=tuple(stand_ins))


def hiding(start, stop, text="short"):
    def plan(view, _):
        stand_in = text_message("user", text)
        return Plan(proposals=(proposal([run(view, start, stop, stand_in)], [stand_in]),))

    return plan


def raising(*_):
    raise ZeroDivisionError("no divisor")


def overlapping(view, _):
    stand_in = text_message("user", "short")
    spans = [run(view, 3, 7, stand_in), run(view, 5, 9, stand_in)]
    return Plan(proposals=(proposal(spans, [stand_in, stand_in]),))


def unmatched(view, _):
    return Plan(proposals=(proposal([run(view, 3, 7, text_message("user", "short"))], []),))


def from_nowhere(_view, _):
    run = MessageSpan(first=9_000, last=9_001, hides=2, saves=Weight(prose=900), weight=Weight(prose=1))
    return Plan(proposals=(proposal([run], [text_message("user", "short")]),))


def part_from_nowhere(_view, _):
    return Plan(proposals=(proposal([BlockSpan(message=9_000, block=0, saves=Weight(prose=9))], [Text(text="x")]),))


MISBEHAVING = {
    "raises": raising,
    "gives nothing": lambda *_: None,
    "gives a number": lambda *_: 42,
    "gives a list": lambda *_: [1],
    "proposals are a number": lambda *_: Plan(proposals=42),
    "proposals are texts": lambda *_: Plan(proposals=("fold it all",)),
    "notes are a number": lambda *_: Plan(notes=5),
    "an empty plan": lambda *_: Plan(),
    "no spans": lambda *_: Plan(proposals=(proposal([], []),)),
    "splits a unit": hiding(4, 6),
    "hides the task": hiding(0, 2),
    "hides a pin": hiding(1, 5),
    "stand-in larger than what it hides": hiding(3, 5, "word " * 400),
    "overlapping spans": overlapping,
    "fewer stand-ins than spans": unmatched,
    "messages that do not exist": from_nowhere,
    "a block of a message that does not exist": part_from_nowhere,
    "a kind that does not exist": lambda view, _: Plan(
        proposals=(
            Proposal(
                kind="vanish",
                reason="because",
                strategy="own",
                spans=(run(view, 3, 5, text_message("user", "x")),),
                stand_ins=(text_message("user", "x"),),
            ),
        )
    ),
}


@pytest.mark.parametrize("plan", MISBEHAVING.values(), ids=MISBEHAVING.keys())
def test_a_strategy_that_misbehaves_never_costs_the_turn(plan):
    """The request fits, is valid, keeps task and pin, and the notes name the strategy."""
    session = session_with(Own(plan))
    payload = session.compose_sync(system="mend it")
    assert weighed(session, payload) == payload.tokens <= BUDGET
    assert windowsill.validate({"max_tokens": 5, **payload.to()}) == []
    assert any("'own'" in note for note in payload.report.notes)
    assert b"the task" in payload.body()
    assert PIN.encode() in payload.body()
    assert session.verify() == []


def test_the_note_carries_the_error_of_the_plug_in():
    """What the plug-in raised is told by type and words."""
    payload = session_with(Own(raising)).compose_sync()
    assert payload.report.notes[0].startswith("strategy 'own' failed with ZeroDivisionError: no divisor")


def words_for_a_message(view, _):
    return Plan(proposals=(proposal([run(view, 3, 5, "", weight=Weight(prose=1))], ["a summary"]),))


def number_for_a_message(view, _):
    return Plan(proposals=(proposal([run(view, 3, 5, "", weight=Weight(prose=1))], [42]),))


def message_without_blocks(view, _):
    part = BlockSpan(message=view.items[4].seq, block=0, saves=Weight(prose=50))
    return Plan(proposals=(proposal([part], [text_message("user", "x")]),))


def block_that_is_not_there(view, _):
    part = BlockSpan(message=view.items[4].seq, block=7, saves=Weight(prose=50))
    return Plan(proposals=(proposal([part], [Text(text="x")]),))


def block_before_the_first(view, _):
    part = BlockSpan(message=view.items[4].seq, block=-2, saves=Weight(prose=50))
    return Plan(proposals=(proposal([part], [Text(text="x")]),))


UNREADABLE = {
    "text where a message belongs": words_for_a_message,
    "a number where a message belongs": number_for_a_message,
    "a message where a block belongs": message_without_blocks,
    "a block that is not there": block_that_is_not_there,
    "a block before the first": block_before_the_first,
}


@pytest.mark.parametrize("plan", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_fold_that_could_not_be_read_back_is_never_written(plan):
    """A plug-in's nonsense is refused before it is in the journal, where it would break every later request."""
    store = MemoryStore()
    session = session_with(Own(plan), store=store)
    payload = session.compose_sync(system="mend it")
    assert weighed(session, payload) == payload.tokens <= BUDGET
    again = session_with(None, store=store)
    assert again.compose_sync(system="mend it").tokens <= BUDGET
    assert [fold.strategy for fold in again.folds if fold.strategy == "own"] == []


def light_as_air(view, _):
    if view.items[-1].fold:
        return Plan()
    stand_in = text_message("user", "word " * 4_000)
    return Plan(proposals=(proposal([run(view, len(view) - 2, len(view), stand_in, weight=Weight())], [stand_in]),))


def saves_the_world(view, _):
    if view.items[-1].cuts:
        return Plan()
    part = BlockSpan(message=view.items[-1].seq, block=0, saves=Weight(prose=5_000))
    return Plan(proposals=(proposal([part], [Text(text="word " * 4_000)]),))


def saves_with_nothing(view, _):
    if view.items[-1].cuts:
        return Plan()
    return Plan(
        proposals=(proposal([BlockSpan(message=view.items[-1].seq, block=0, saves=Weight(prose=5_000))], [None]),)
    )


@pytest.mark.parametrize("plan", [light_as_air, saves_the_world, saves_with_nothing])
def test_what_a_fold_saves_is_weighed_not_believed(plan):
    """A strategy that states wrong weights cannot smuggle more tokens into a request than the budget allows."""
    session = session_with(Own(plan))
    payload = session.compose_sync(system="mend it")
    assert weighed(session, payload) == payload.tokens <= BUDGET


def test_a_part_that_breaks_a_pair_is_refused():
    """Replacing a call by words would leave its result alone."""

    def plan(view, _):
        call = next(item for item in view.items[3:] if item.calls)
        part = BlockSpan(message=call.seq, block=1, saves=Weight(json=8))
        return Plan(proposals=(proposal([part], [Text(text="x")]),))

    session = session_with(Own(plan))
    payload = session.compose_sync(system="mend it")
    assert [fold for fold in session.folds if fold.strategy == "own"] == []
    assert payload.report.repairs == ()


def test_a_strategy_that_does_a_little_is_asked_again():
    """Each round that makes progress earns another; the rest is done by the plain cut."""
    asked = []

    def plan(view, _):
        asked.append(len(view))
        stand_in = text_message("user", "-")
        place = next(index for index, item in enumerate(view.items) if index > 2 and not item.fold)
        return Plan(proposals=(proposal([run(view, place, place + 2, stand_in)], [stand_in]),))

    payload = session_with(Own(plan)).compose_sync()
    assert payload.tokens <= BUDGET
    assert 2 <= len(asked) <= 8


def test_a_strategy_without_progress_is_asked_twice_and_told():
    """No loops: two rounds that save nothing end it, and the note says so."""
    asked = []

    def plan(view, _):
        asked.append(len(view))
        return Plan()

    payload = session_with(Own(plan)).compose_sync()
    assert len(asked) == 2
    assert "strategy 'own' stopped: 2 rounds without progress" in payload.report.notes


def test_what_cannot_be_reduced_is_an_error_with_its_parts():
    """More pins than the budget holds: the error names what is wanted, what there is, and the remedy."""
    session = session_with(None, turns=1)
    pin_many(session)
    with pytest.raises(BudgetError, match="pinned messages 1,") as caught:
        session.compose_sync()
    assert caught.value.wanted > caught.value.available == BUDGET
    assert "pins" in caught.value.remedy


def test_an_error_for_want_of_room_changes_no_message():
    """After the error everything is still there and a larger budget serves it."""
    store = MemoryStore()
    session = session_with(None, turns=1, store=store)
    pin_many(session)
    before = [message.raw for message in session.messages()]
    with pytest.raises(BudgetError):
        session.compose_sync()
    session.close()
    larger = Session.open("s", budget=8_000, store=store)
    assert larger.compose_sync().tokens <= 8_000
    assert [message.raw for message in larger.messages()] == before


def test_what_lies_between_pins_is_not_replaced_by_something_larger():
    """A short answer behind a longer marker would be a fold that makes the view larger."""
    session = session_with(None, turns=1)
    for number in range(20):
        session.add({"role": "user", "content": f"rule {number}: " + "always " * 90}, marks=["pinned"])
        session.add({"role": "assistant", "content": "yes"})
    payload = session.compose_sync()
    assert payload.tokens <= BUDGET
    assert all(fold.after < fold.before for fold in session.folds)
    assert all(span.saved > 0 for fold in session.folds for span in fold.spans)


def test_the_markers_of_a_fallback_never_outweigh_what_they_hide():
    """The plain cut that takes over is checked like any plan: between many pins it would only add markers."""
    session = session_with(Own(raising), turns=1)
    for number in range(20):
        session.add({"role": "user", "content": f"rule {number}: " + "always " * 90}, marks=["pinned"])
        session.add({"role": "assistant", "content": "yes"})
    payload = session.compose_sync()
    assert payload.tokens <= BUDGET
    assert all(span.saved > 0 for fold in session.folds for span in fold.spans)
