"""What may only be hidden or kept together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.history.view import Item, units
from windowsill.tokens import Weight

pytestmark = pytest.mark.unit


def item(role, *, calls=(), results=(), leads=False, sent=False):
    return Item(
        seq=1,
        first=1,
        last=1,
        id="m1",
        role=role,
        weight=Weight(),
        calls=calls,
        results=results,
        leads=leads,
        sent=sent,
    )


def shape(items):
    return [(unit.start, unit.stop, unit.open) for unit in units(items)]


def test_parallel_calls_and_their_results_are_one_unit():
    """Two calls answered in two messages travel together."""
    items = [
        item("user"),
        item("assistant", calls=("a", "b")),
        item("user", results=("a",)),
        item("user", results=("b",)),
        item("assistant"),
    ]
    assert shape(items) == [(0, 1, False), (1, 4, False), (4, 5, False)]


def test_reasoning_belongs_to_the_message_after_it():
    """Where it is a message of its own; two in a row, and a call with its result, travel together."""
    thought, call = item("assistant", leads=True), item("assistant", calls=("a",))
    items = [item("user"), thought, thought, call, item("user", results=("a",)), item("assistant")]
    assert shape(items) == [(0, 1, False), (1, 5, False), (5, 6, False)]


def test_a_late_result_is_a_unit_of_its_own():
    """Its call was sent without it: the two are told apart, and nothing in between is bound to them."""
    items = [item("assistant", calls=("a",)), item("user"), item("assistant"), item("user", results=("a",))]
    assert shape(items) == [(0, 1, False), (1, 2, False), (2, 3, False), (3, 4, False)]


def test_a_result_after_a_request_that_no_message_shows_is_late():
    """A request was composed while the call ran: the call is bound to nothing that came afterwards."""
    items = [item("assistant", calls=("a",)), item("user", sent=True), item("user", results=("a",)), item("assistant")]
    assert shape(items) == [(0, 1, False), (1, 2, False), (2, 3, False), (3, 4, False)]


def test_a_result_of_the_same_turn_binds_what_stands_before_it():
    """What the user said while the tool ran stays with the call as long as nothing was sent."""
    items = [item("assistant", calls=("a",)), item("user"), item("user", results=("a",)), item("assistant")]
    assert shape(items) == [(0, 3, False), (3, 4, False)]


def test_a_result_of_another_id_right_behind_its_call_stays_with_it():
    """The id was changed on the way: repair may give it to the call, so they are not parted."""
    items = [item("assistant", calls=("a",)), item("user", results=("z",)), item("assistant")]
    assert shape(items) == [(0, 2, False), (2, 3, False)]


def test_a_running_call_at_the_end_is_an_open_unit():
    """A call without result at the end, and what was said since, stays."""
    items = [item("user"), item("assistant", calls=("a",)), item("user")]
    assert shape(items) == [(0, 1, False), (1, 3, True)]


def test_a_call_that_was_never_answered_in_the_middle_is_a_unit_of_its_own():
    """After a crash the lost call does not bind all that came later."""
    items = [item("assistant", calls=("a",)), item("user"), item("assistant"), item("user")]
    assert shape(items) == [(0, 1, False), (1, 2, False), (2, 3, False), (3, 4, False)]


def test_ids_that_repeat_in_every_turn_pair_with_the_call_before_them():
    """Servers that number calls from zero each turn still give one unit a turn."""
    turn = [item("assistant", calls=("c0",)), item("user", results=("c0",))]
    assert shape(turn * 3) == [(0, 2, False), (2, 4, False), (4, 6, False)]


ids = st.lists(st.sampled_from("abc"), max_size=2, unique=True).map(tuple)
conversations = st.lists(
    st.one_of(ids.map(lambda calls: item("assistant", calls=calls)), ids.map(lambda got: item("user", results=got))),
    max_size=20,
)


@given(conversations)
def test_units_cover_the_view_without_gap_or_overlap(items):
    """Each item is in exactly one unit, in order."""
    found = units(items)
    assert [index for unit in found for index in range(unit.start, unit.stop)] == list(range(len(items)))


@given(conversations)
def test_no_cut_between_units_parts_a_result_from_its_call(items):
    """Wherever a view may be cut, no result after the cut answers a call of the same turn before it."""
    turn, calls = 0, {}
    bound = []
    for index, each in enumerate(items):
        if index and each.role == "assistant" and items[index - 1].role != "assistant":
            turn += 1
        bound += [(calls[id, turn], index) for id in each.results if (id, turn) in calls]
        calls.update({(id, turn): index for id in each.calls})
    for cut in [unit.start for unit in units(items)]:
        assert not any(call < cut <= result for call, result in bound)
