"""The units that may go, as ranges."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.history.survey import survey
from windowsill.history.units import Unit
from windowsill.history.view import Item, View
from windowsill.strategies.free import Free, free, joined
from windowsill.tokens import Weight

pytestmark = pytest.mark.unit


def view_of(count, *, pinned=()):
    marks = dict.fromkeys(pinned, ("pinned",))
    return View(
        [
            Item(n, n, n, f"m{n}", "user" if n % 2 == 0 else "assistant", Weight(prose=n), marks=marks.get(n, ()))
            for n in range(count)
        ]
    )


def test_the_task_pins_and_the_latest_stay():
    """The rest is free, in rows of neighbours."""
    found = free(view_of(10, pinned=(4,)), keep=3)
    assert found.stretches == [(1, 4), (5, 7)]
    assert [item.seq for item in found.items] == [1, 2, 3, 5, 6]
    assert found.weight == Weight(prose=17)


def test_before_after_and_without():
    """Each gives the units on one side of a position, or all but the one there."""
    found = free(view_of(10), keep=1)
    assert found.before(4).stretches == [(1, 4)]
    assert found.after(4).stretches == [(5, 9)]
    assert found.without(4).stretches == [(1, 4), (5, 9)]
    assert found.without(None).stretches == [(1, 9)]


ranges = st.lists(st.integers(0, 30), max_size=10, unique=True).map(sorted)


@given(ranges, st.integers(-12, 40), st.integers(-12, 40))
def test_a_slice_holds_what_a_slice_of_the_list_holds(ends, start, stop):
    """They can be used like a list of units."""
    found = Free(survey(view_of(40)), zip(ends[::2], ends[1::2], strict=False))
    listed = list(found)
    assert len(found) == len(listed)
    assert list(found[start:stop]) == listed[start:stop]
    assert [found[place] for place in range(len(found))] == listed


def test_a_list_of_units_is_joined_into_ranges():
    """Neighbours are one row, whoever listed them."""
    view = view_of(10, pinned=(4,))
    assert joined(view, list(free(view, keep=3))).stretches == [(1, 4), (5, 7)]


def test_a_place_that_is_not_there_is_an_error():
    """Like in a list."""
    found = Free(survey(view_of(4)), [(1, 3)])
    assert found[-1] == Unit(2, 3)
    with pytest.raises(IndexError):
        found[2]
