"""Going back: unfold, rewind, switch. Nothing is ever lost, and what comes back is what was there."""

import itertools

import msgspec
import pytest

from support.conversations import result, text_block, use
from windowsill import FoldError, InputError, NotFoundError, Session
from windowsill.history.view import sum_weights
from windowsill.session import branches
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.unit


def opened(store=None, **settings):
    ticks = itertools.count(1_000)
    return Session.open(
        "s",
        store=store or MemoryStore(),
        clock=lambda: float(next(ticks)),
        **{"budget": 1_500, "tokenizer": "o200k_base", **settings},
    )


def talk(session, turns, start=0):
    if not session.view.items:
        session.add({"role": "user", "content": "the task"})
    for turn in range(start, start + turns):
        session.add({"role": "assistant", "content": [text_block("looking"), use(f"t{turn}")]})
        session.add({"role": "user", "content": [result(f"t{turn}", f"line {turn} " + "word " * 60)]})


def shown(session):
    return [(item.id, msgspec.json.encode(session.view.read(item))) for item in session.view.items]


def folded(**settings):
    session = opened(**settings)
    talk(session, 30)
    session.compose_sync()
    return session, next(fold for fold in session.folds if fold.active)


def test_a_fold_that_is_removed_shows_exactly_what_it_hid():
    """H4: byte for byte, in the same order, with the same weight."""
    session = opened()
    talk(session, 30)
    before, weight = shown(session), session.view.weight
    session.compose_sync()
    for fold in reversed(session.folds):
        session.unfold(fold.id)
    assert shown(session) == before
    assert session.view.weight == weight


def test_removing_an_outer_fold_shows_the_inner_one_again():
    """H4: a fold may hide another fold's stand-in."""
    session = opened(budget=100_000)
    talk(session, 6)
    ids = [item.id for item in session.view.items]
    session.fold(ids[1], ids[4], text="inner")
    between = shown(session)
    outer = session.fold(ids[5], ids[6], text="beside")
    session.unfold(outer)
    assert shown(session) == between
    wide = session.fold(ids[5], ids[8], text="wide")
    assert [item.hides for item in session.view.items if item.fold] == [4, 4]
    session.unfold(wide)
    assert shown(session) == between


def test_one_span_of_a_fold_may_come_back_alone():
    """H9: the other spans stay hidden."""
    session = opened(budget=100_000)
    talk(session, 10)
    results = [item.id for item in session.view.items if item.results]
    fold = session.mask(results[0], results[1], results[2])
    session.unfold(fold, span=1)
    cut = [item.id for item in session.view.items if item.cuts]
    assert cut == [results[0], results[2]]
    assert [span.active for span in session.folds[0].spans] == [True, False, True]


def test_as_much_as_fits_comes_back_newest_first():
    """H9: and the next request needs no new fold."""
    session, fold = folded(low=0.3)
    hidden = sum(item.hides for item in session.view.items)
    session.unfold(fold.id, fit=True)
    now = sum(item.hides for item in session.view.items)
    assert 0 < now < hidden
    assert session.compose_sync().report.folds == ()


def test_as_many_masked_outputs_as_fit_come_back_newest_first():
    """H9: the others stay masked, and a mask of which none fits is left as it is."""
    session = opened(budget=3_000, strategy="mask:keep=1")
    talk(session, 60)
    session.compose_sync()
    fold = next(fold for fold in session.folds if len(fold.spans) > 2)
    session.unfold(fold.id, fit=True)
    active = [span.active for span in session.folds[0].spans]
    assert active == sorted(active, reverse=True)
    assert set(active) == {True, False}
    assert session.compose_sync().report.folds == ()
    with pytest.raises(FoldError, match="fits the budget"):
        session.unfold(fold.id, fit=True)


def test_as_much_as_fits_counts_the_system_prompt_and_the_tools():
    """H9: what the last request carried besides messages takes its room."""
    session = opened(budget=3_000)
    talk(session, 60)
    system = "rule " * 900
    session.compose_sync(system=system)
    fold = next(fold for fold in session.folds if fold.active)
    session.unfold(fold.id, fit=True)
    assert session.compose_sync(system=system).report.folds == ()


def test_a_fold_cannot_be_removed_twice():
    """The second call says so and changes nothing."""
    session, fold = folded()
    session.unfold(fold.id)
    with pytest.raises(FoldError, match="removed before"):
        session.unfold(fold.id)


def test_a_span_that_is_not_there_is_named():
    """With those that are."""
    session, fold = folded()
    with pytest.raises(NotFoundError, match="has no span 9"):
        session.unfold(fold.id, span=9)


def test_a_fold_of_a_branch_that_was_left_is_not_of_this_one():
    """The error says where it is."""
    session, fold = folded()
    session.rewind(session.view.items[0].id)
    with pytest.raises(FoldError, match="branch that was left"):
        session.unfold(fold.id)


def test_a_rewind_takes_later_folds_away():
    """H5: what they hid comes back; no marker survives."""
    session = opened()
    talk(session, 30)
    last = session.view.items[-1].id
    before = shown(session)
    session.compose_sync()
    assert any(item.fold for item in session.view.items)
    session.rewind(last)
    assert shown(session) == before


def test_a_rewind_keeps_earlier_folds():
    """H5: they were part of what the model saw then."""
    session, _ = folded()
    session.add({"role": "assistant", "content": "done"})
    before = shown(session)
    end = session.view.items[-1].id
    talk(session, 3, start=50)
    session.rewind(end)
    assert shown(session) == before


def test_the_branch_that_was_left_can_be_returned_to():
    """H5: a rewind is recorded, nothing is taken out."""
    session, _ = folded()
    before = shown(session)
    head = session.branches[0].id
    session.rewind("m1")
    assert [branch.current for branch in session.branches] == [True, False]
    session.switch(head)
    assert shown(session) == before


def test_before_leaves_the_message_out_too():
    """To say it again in other words."""
    session = opened()
    talk(session, 2)
    session.rewind(session.view.items[-2].id, before=True)
    assert [message.id for message in session.messages()] == ["m1", "m2", "m3"]


TIMES = [("user", 100.0), ("assistant", 110.0), ("user", 120.0), ("assistant", 130.0), ("user", 140.0)]


@pytest.mark.parametrize(
    ("at", "kept"),
    [
        (120.0, 2),  # exactly a message: it and all after it go
        (110.0, 1),
        (115.0, 2),  # between the stream that was finished and the user: the user's message is the boundary
        (105.0, 2),  # into a stream: the assistant's message was begun before, the next user message is the boundary
        (135.0, 4),
        (145.0, 5),  # after everything: nothing goes
        (100.0, 0),
        (50.0, 0),  # before everything: all of it goes
    ],
)
def test_a_rewind_to_a_time_keeps_what_was_there_then(at, kept):
    """H5: with the first user message at or after the time as the boundary when it falls into a stream."""
    session = opened()
    for role, when in TIMES:
        session.add({"role": role, "content": f"at {when}"}, at=when)
    session.rewind(at=at)
    assert len(list(session.messages())) == kept


def test_a_rewind_needs_exactly_one_place():
    """A message or a time, not both, not neither."""
    session = opened()
    session.add("hi")
    with pytest.raises(InputError):
        session.rewind()
    with pytest.raises(InputError):
        session.rewind("m1", at=5.0)


def test_a_request_composed_before_a_rewind_stays_with_its_branch():
    """V5: back on that branch it is listed, and can be built again."""
    session = opened()
    talk(session, 3)
    body = session.compose_sync(system="mend it").body()
    session.rewind("m2")
    left = next(branch.id for branch in session.branches if not branch.current)
    session.switch(left)
    assert [session.request(call.id) for call in session.calls] == [body]


def test_after_a_rewind_nothing_was_sent_there():
    """A request that was composed on the branch that is left says nothing about this one."""
    session = opened()
    talk(session, 3)
    session.compose_sync()
    session.rewind("m3")
    session.add({"role": "user", "content": "another way"})
    assert session.view.items[-1].sent is False


def test_a_rewind_that_loses_a_race_loses_no_message():
    """What somebody else added meanwhile stays on a branch that can be returned to."""
    store = MemoryStore()
    session, other = opened(store), opened(store)
    talk(session, 3)

    class Slow:
        """Lets the other one write first, once."""

        def __init__(self):
            self.waited = False

        def __getattr__(self, name):
            return getattr(store, name)

        def append(self, *args, **extras):
            if not self.waited:
                self.waited = True
                other.add("from the other", id="theirs")
            store.append(*args, **extras)

    session.journal.store = Slow()
    session.rewind("m2")
    seen = []
    for branch in session.branches:
        session.switch(branch.id)
        seen.append("theirs" in [message.id for message in session.messages()])
    assert any(seen)


@pytest.mark.parametrize("back", ["rewind", "unfold"])
def test_what_comes_back_is_weighed_with_the_vocabulary_of_today(back):
    """A session opened with another tokenizer counts everything with it, also what a fold or a rewind shows again."""
    store = MemoryStore()
    session = opened(store, tokenizer="bytes/4")
    talk(session, 30)
    session.compose_sync()
    fold = next(fold for fold in session.folds if fold.active)
    session.close()
    again = opened(store, tokenizer="o200k_base")
    if back == "rewind":
        again.rewind("m61")
    else:
        again.unfold(fold.id)
    scale = again.composer.context.scale
    fresh = sum_weights(scale.weigh(again.view.read(item)) for item in again.view.items)
    assert again.view.weight == fresh


def test_a_fold_whose_branch_was_left_meanwhile_is_not_unfolded():
    """Somebody else went back behind it first: what the snapshot says stays what the entries say."""
    store = MemoryStore()
    one = opened(store)
    for number in range(6):
        one.add({"role": "user" if number % 2 == 0 else "assistant", "content": f"words {number} " * 20})
    fold = one.fold("m2", "m3", text="Looked.")
    two = opened(store)
    two.rewind("m5")
    before = two.journal.version
    with pytest.raises(FoldError, match="belongs to a branch that was left"):
        branches.unfold(one.journal, fold)
    assert opened(store).journal.version == before


def test_what_was_unfolded_stays_until_the_window_is_too_small():
    """Above the high mark it is not folded again without a word; past the limit it is, and the report says so."""
    session = opened(budget=4_000)
    talk(session, 12)
    items = list(session.view.items)
    session.unfold(session.fold(items[1].id, items[-3].id))
    session.add({"role": "assistant", "content": "so"})
    session.add({"role": "user", "content": "word " * (3_500 - session.view.tokens())})
    payload = session.compose_sync()
    assert payload.folds == ()
    assert payload.report.limit * 0.8 < payload.tokens <= 4_000
    session.extend([{"role": "assistant", "content": "so"}, {"role": "user", "content": "word " * 600}])
    payload = session.compose_sync()
    assert payload.tokens <= 4_000
    assert any("what was unfolded is hidden again" in note for note in payload.report.notes)
