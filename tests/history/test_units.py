"""What may only be hidden or kept together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.history.units import units
from windowsill.history.view import Item
from windowsill.tokens import Weight

pytestmark = pytest.mark.unit


def item(role, *, calls=(), results=(), leads=False):
    return Item(seq=1, first=1, last=1, id="m1", role=role, weight=Weight(), calls=calls, results=results, leads=leads)


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


def test_a_late_result_binds_everything_in_between():
    """What the user said while the tool ran cannot be hidden without the call."""
    items = [item("assistant", calls=("a",)), item("user"), item("assistant"), item("user", results=("a",))]
    assert shape(items) == [(0, 4, False)]


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
def test_no_cut_between_units_parts_a_result_from_the_last_call_of_its_id(items):
    """Wherever a view may be cut, every result after the cut has its call after the cut, or none at all."""
    for cut in [unit.start for unit in units(items)]:
        before = {id for each in items[:cut] for id in each.calls}
        answered_later = set()
        for index in range(cut, len(items)):
            last_call = max(
                (place for place in range(index) if set(items[place].calls) & set(items[index].results)), default=None
            )
            if last_call is not None and last_call < cut:
                answered_later |= {
                    id
                    for id in items[index].results
                    if max((place for place in range(index) if id in items[place].calls), default=cut) < cut
                }
        assert not (answered_later & before)
