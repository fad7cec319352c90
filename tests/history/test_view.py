"""The view: what is visible at a head, as light items."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.sessions import SCALE, plain_view, unread
from windowsill import FoldError
from windowsill.history.entries import ROOT_HASH, seal
from windowsill.history.folds import BlockSpan, Fold, MessageSpan, Unfold
from windowsill.history.view import TASK_IS_WITHIN, Item, Marking, MessageMeta, View, apply_marking, build, sum_weights
from windowsill.messages import text_message
from windowsill.tokens import Weight

pytestmark = pytest.mark.unit

STAND_IN = Weight(prose=7, bytes=7)


def heavy(number):
    """A weight that tells its message apart."""
    return Weight(prose=100 + number, bytes=1_000 + number)


def message(seq, *, role="user", own=True, **more):
    return Item(seq=seq, first=seq, last=seq, id=f"m{seq}", role=role, weight=heavy(seq), own=own, **more)


def view_of(count=6):
    return plain_view([message(seq) for seq in range(1, count + 1)])


def run(first, last, hides=0):
    weight = sum_weights(heavy(seq) for seq in range(first, last + 1)) - STAND_IN
    return MessageSpan(first=first, last=last, hides=hides or last - first + 1, saves=weight, weight=STAND_IN)


def part(message, block=0, saves=50):
    return BlockSpan(message=message, block=block, saves=Weight(prose=saves, bytes=saves))


def fold(*spans):
    return Fold(kind="truncate", strategy="test", reason="why", spans=spans, before=0, after=0)


def weighed(view):
    """Return what the items of a view weigh together: what the view must say it weighs."""
    return sum_weights(item.weight for item in view.items)


def built(entries, **ends):
    return build(entries, SCALE, unread, **ends)


def ids(view):
    return [item.id for item in view.items]


# Places


def test_a_visible_message_has_a_position():
    """By its entry number, also when entries of other kinds lie between the messages."""
    view = plain_view([message(2), message(5), message(9)])
    assert [view.position(seq) for seq in (2, 5, 9)] == [0, 1, 2]


@pytest.mark.parametrize("seq", [0, 1, 3, 4, 6, 8, 10, 99])
def test_what_is_no_message_has_no_position_and_no_cover(seq):
    """Entries between, before and after."""
    view = plain_view([message(2), message(5), message(9)])
    assert view.position(seq) is None
    assert view.cover(seq) is None


def test_a_hidden_message_has_no_position_but_a_cover():
    """What stands in for it."""
    view = view_of()
    view.hide(20, "f20", 0, run(2, 4))
    assert [view.position(seq) for seq in range(1, 7)] == [0, None, None, None, 2, 3]
    assert [view.cover(seq).id for seq in range(1, 7)] == ["m1", "f20:0", "f20:0", "f20:0", "m5", "m6"]


def test_an_empty_view_covers_nothing():
    """And has no task."""
    view = plain_view()
    assert (view.position(1), view.cover(1), view.task(), view.task_seq(), len(view)) == (None, None, None, None, 0)


# The task


def test_the_task_is_the_first_message_of_the_users_own():
    """Not what a program said before, not a tool's result, not the assistant."""
    items = [
        message(1, role="system"),
        message(2, own=False),
        message(3, role="assistant"),
        message(4, own=False, results=("a",)),
        message(5),
        message(6),
    ]
    view = plain_view(items)
    assert (view.task(), view.task_seq()) == (4, 5)


def test_without_own_words_the_first_user_message_is_the_task():
    """An agent that is started by a program has a task all the same."""
    view = plain_view([message(1, role="assistant"), message(2, own=False), message(3, own=False)])
    assert view.task() == 1


def test_a_stand_in_is_no_task():
    """A marker has the user's role, but not the user's words."""
    view = view_of()
    view.hide(20, "f20", 0, run(1, 2))
    assert view.task_seq() == 3


def test_the_task_is_looked_for_near_the_start():
    """A word from the user in the middle of a long session is not what it is about."""
    programs = [message(seq, own=False) for seq in range(1, TASK_IS_WITHIN + 10)]
    view = plain_view([*programs, message(500)])
    assert view.task() == 0


# Slices


@pytest.mark.parametrize(("first", "last", "wanted"), [(1, 1, (0, 1)), (2, 4, (1, 4)), (1, 6, (0, 6)), (6, 6, (5, 6))])
def test_a_slice_covers_exactly_its_messages(first, last, wanted):
    """Both ends included."""
    assert view_of().slice_of(first, last) == slice(*wanted)


def test_a_slice_may_begin_and_end_between_messages():
    """Entry numbers of calls and marks belong to no item."""
    view = plain_view([message(2), message(5), message(9)])
    assert view.slice_of(1, 6) == slice(0, 2)


@pytest.mark.parametrize(("first", "last"), [(3, 5), (1, 3), (3, 3), (2, 3), (7, 9), (5, 4)])
def test_a_slice_that_is_not_whole_items_is_refused(first, last):
    """A fold's stand-in is taken whole or not at all; nothing at all is no slice either."""
    view = view_of()
    view.hide(20, "f20", 0, run(2, 4))
    with pytest.raises(FoldError, match=f"messages {first} to {last} are not a run of whole items"):
        view.slice_of(first, last)


# Hiding and cutting


def test_hiding_puts_one_stand_in_where_the_messages_were():
    """The weight of the view follows."""
    view = view_of()
    view.fold(20, "f20", fold(run(2, 3), run(5, 5)))
    assert ids(view) == ["m1", "f20:0", "m4", "f20:1", "m6"]
    assert [(item.fold, item.span, item.hides) for item in view.items if item.fold] == [(20, 0, 2), (20, 1, 1)]
    assert view.weight == weighed(view) == heavy(1) + STAND_IN + heavy(4) + STAND_IN + heavy(6)


def test_a_wider_fold_hides_an_inner_stand_in():
    """One stand-in is left."""
    view = view_of()
    view.hide(20, "f20", 0, run(2, 3))
    view.hide(21, "f21", 0, run(1, 4, hides=4))
    assert ids(view) == ["f21:0", "m5", "m6"]
    assert view.weight == weighed(view)


def test_cutting_one_block_twice_counts_the_saving_once():
    """The second cut says what it saves of the original, so it replaces the first."""
    view = view_of()
    view.cut(20, 0, part(3, block=1, saves=40))
    view.cut(21, 0, part(3, block=1, saves=90))
    item = view.items[2]
    assert [(cut.block, cut.fold) for cut in item.cuts] == [(1, 21)]
    assert item.weight == heavy(3) - Weight(prose=90, bytes=90)
    assert view.weight == weighed(view)


def test_cuts_of_several_blocks_stand_in_the_order_of_the_blocks():
    """Whatever order they were made in."""
    view = view_of()
    for number, block in enumerate((2, 0, 1)):
        view.cut(20, number, part(3, block=block, saves=10))
    assert [cut.block for cut in view.items[2].cuts] == [0, 1, 2]
    assert view.items[2].weight == heavy(3) - Weight(prose=30, bytes=30)


def test_a_hidden_message_cannot_be_cut():
    """Only what the view shows."""
    view = view_of()
    view.hide(20, "f20", 0, run(2, 4))
    with pytest.raises(FoldError, match="message 3 is not visible"):
        view.cut(21, 0, part(3))


def test_what_is_not_an_addition_is_counted_as_an_edit():
    """A renderer's memory depends on it."""
    view = view_of()
    view.add(message(7))
    assert view.edits == 0
    view.fold(20, "f20", fold(run(2, 3)))
    after_fold = view.edits
    view.splice(2, 3, plain_view([message(2), message(3)]))
    after_splice = view.edits
    view.become(view_of(2))
    assert 0 < after_fold < after_splice < view.edits


def test_a_splice_shows_again_what_was_covered():
    """With its weight."""
    view = view_of()
    before = ids(view), view.weight
    view.hide(20, "f20", 0, run(2, 4))
    view.splice(2, 4, plain_view([message(2), message(3), message(4)]))
    assert (ids(view), view.weight) == before


def test_a_view_that_becomes_another_stays_the_object_that_others_hold():
    """Items, weight and place are the other's."""
    view, other = view_of(3), View(SCALE, unread, [message(9)], at=9, conversation_hash=b"thread")
    view.become(other)
    assert (ids(view), view.weight, view.at, view.conversation_hash) == (["m9"], heavy(9), 9, b"thread")


def test_another_scale_counts_again_what_another_vocabulary_counted():
    """Only that is read; the weight of the view is that of its items."""
    known, stale = message(1, counter=SCALE.name), message(2, counter="other")
    view = plain_view([known, stale], lambda item: text_message("user", "word " * item.seq))
    view.weigh_with(SCALE)
    assert view.items[0] == known
    assert view.items[1].weight == SCALE.weigh(text_message("user", "word word "))
    assert view.items[1].counter == SCALE.name
    assert view.weight == weighed(view)


# Marks


def test_marks_are_given_and_taken():
    """Each once, in a fixed order."""
    view = view_of()
    view.mark(Marking(2, "m2", add=("pinned", "important")))
    view.mark(Marking(2, "m2", add=("pinned",)))
    assert view.items[1].marks == ("important", "pinned")
    assert view.items[1].pinned
    view.mark(Marking(2, "m2", remove=("pinned",)))
    assert view.items[1].marks == ("important",)
    assert not view.items[1].pinned


def test_marking_what_is_hidden_changes_nothing_that_is_shown():
    """It is marked when it comes back."""
    view = view_of()
    view.hide(20, "f20", 0, run(2, 4))
    view.mark(Marking(3, "m3", add=("pinned",)))
    assert not any(item.marks for item in view.items)


def test_a_mark_given_and_taken_at_once_is_not_there():
    """Taking comes last."""
    assert apply_marking((), Marking(1, "m1", add=("pinned",), remove=("pinned",))) == ()


# From entries


def journal(*values):
    """Entries numbered from 1: messages (a dictionary of facts), folds, unfolds, marks."""
    kinds = {Fold: "fold", Unfold: "unfold", Marking: "mark", dict: "message", str: "call"}
    entries, before = [], ROOT_HASH
    for seq, value in enumerate(values, 1):
        kind = kinds[type(value)]
        if isinstance(value, dict):
            facts = {"role": "user", "weight": heavy(seq), "counter": "c", "format": "f"}
            facts["conversation_hash"] = b"%d" % seq
            value = MessageMeta(**{**facts, **value})  # noqa: PLW2901 - a message is written short
        meta = msgspec.msgpack.encode(value)
        entry = seal(seq=seq, parent=seq - 1, parent_hash=before, kind=kind, id=f"{kind[0]}{seq}", at=1.0, meta=meta)
        entries.append(entry)
        before = entry.hash
    return entries


def test_a_view_is_built_from_its_entries():
    """Messages, folds, unfolds and marks; calls are passed over."""
    view = built(journal({}, {}, "a call", {}, fold(run(2, 4, hides=2)), {}, Marking(6, "m6", add=("pinned",))))
    assert ids(view) == ["m1", "f5:0", "m6"]
    assert view.items[-1].pinned
    assert (view.at, view.conversation_hash) == (7, b"6")
    assert view.weight == weighed(view)


def test_an_unfolded_span_is_not_laid_on():
    """The other spans of the fold are."""
    view = built(journal({}, {}, {}, {}, fold(run(1, 1), run(3, 3)), Unfold(5, "f5", (0,))))
    assert ids(view) == ["m1", "m2", "f5:1", "m4"]


def test_removing_an_outer_fold_leaves_the_inner_one():
    """Folds are laid on in the order they were made."""
    entries = journal({}, {}, {}, {}, fold(run(2, 3)), fold(run(2, 4, hides=3)), Unfold(6, "f6", (0,)))
    assert ids(built(entries[:6])) == ["m1", "f6:0"]
    assert ids(built(entries)) == ["m1", "f5:0", "m4"]


def test_removing_an_inner_fold_changes_nothing_while_an_outer_one_hides_it():
    """It is gone when the outer one goes."""
    entries = journal(
        {}, {}, {}, {}, fold(run(2, 3)), fold(run(2, 4, hides=3)), Unfold(5, "f5", (0,)), Unfold(6, "f6", (0,))
    )
    assert ids(built(entries[:7])) == ["m1", "f6:0"]
    assert ids(built(entries)) == ["m1", "m2", "m3", "m4"]


def test_a_cut_of_a_hidden_message_waits_until_it_is_visible():
    """A mask inside a fold comes back with the message."""
    entries = journal({}, {}, {}, fold(part(2, saves=30)), fold(run(2, 3)), Unfold(5, "f5", (0,)))
    assert ids(built(entries[:5])) == ["m1", "f5:0"]
    back = built(entries)
    assert [bool(item.cuts) for item in back.items] == [False, True, False]
    assert back.items[1].weight == heavy(2) - Weight(prose=30, bytes=30)


def test_a_message_marked_while_hidden_is_marked_when_it_comes_back():
    """The mark is an entry like any other."""
    entries = journal({}, {}, fold(run(2, 2)), Marking(2, "m2", add=("pinned",)), Unfold(3, "f3", (0,)))
    assert built(entries).items[1].pinned


def test_a_stretch_of_a_view_holds_what_shows_in_the_place_of_its_messages():
    """With folds that lie inside it, without those that reach beyond."""
    entries = journal(
        {}, {}, {}, {}, {}, {}, fold(run(3, 4)), fold(part(5, saves=10)), fold(run(2, 5, hides=4)), fold(run(6, 6))
    )
    assert ids(built(entries, first=2, last=5)) == ["f9:0"]
    entries = [*entries, *journal({}, {}, {}, {}, {}, {}, {}, {}, {}, {}, Unfold(9, "f9", (0,)))[10:]]
    inner = built(entries, first=2, last=5)
    assert ids(inner) == ["m2", "f7:0", "m5"]
    assert inner.items[-1].cuts
    assert inner.weight == weighed(inner)
    assert ids(built(entries, first=3, last=4)) == ["f7:0"]


spans = st.tuples(st.integers(1, 8), st.integers(0, 4))


@given(st.lists(st.tuples(spans, st.booleans()), max_size=8))
def test_building_gives_what_applying_gave(attempts):
    """One definition of what is visible: from the entries, or kept up to date fold by fold."""
    live, values = view_of(8), [{"own": True}] * 8
    for (first, length), cuts in attempts:
        span = part(first, saves=5) if cuts else run(first, min(8, first + length))
        trial = plain_view(list(live.items))
        try:
            trial.fold(len(values) + 1, f"f{len(values) + 1}", fold(span))
        except FoldError:
            continue
        live.fold(len(values) + 1, f"f{len(values) + 1}", fold(span))
        values.append(fold(span))
    view = built(journal(*values))
    assert ids(view) == ids(live)
    assert [item.cuts for item in view.items] == [item.cuts for item in live.items]
    assert view.weight == live.weight == weighed(live)
