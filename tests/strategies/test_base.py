"""What all strategies share: the units that may go, and what may stand for them."""

import msgspec
import pytest

from support.sessions import opened, plain_view, talk
from windowsill.history.view import Item, Unit
from windowsill.strategies.base import (
    foldable_units,
    items_of,
    join_neighbours,
    oldest_units,
    units_after,
    units_before,
)
from windowsill.tokens import Weight

pytestmark = pytest.mark.unit


def view_of(count, *, pinned=()):
    marks = dict.fromkeys(pinned, ("pinned",))
    return plain_view(
        [
            Item(n, n, n, f"m{n}", "user" if n % 2 == 0 else "assistant", Weight(prose=n), marks=marks.get(n, ()))
            for n in range(count)
        ]
    )


def ends(units):
    return [(unit.start, unit.stop) for unit in units]


def test_the_task_pins_and_the_latest_stay():
    """The rest may go; neighbours are folded together."""
    view = view_of(10, pinned=(4,))
    found = foldable_units(view, keep=3)
    assert ends(join_neighbours(found)) == [(1, 4), (5, 7)]
    assert [item.seq for item in items_of(view, found)] == [1, 2, 3, 5, 6]


def test_more_kept_than_there_are_leave_nothing():
    """The last unit stays even where none is to be kept."""
    assert foldable_units(view_of(4), keep=9) == []
    assert ends(foldable_units(view_of(4), keep=0)) == [(1, 2), (2, 3)]


def test_units_before_and_after_a_position():
    """One that holds the position is on neither side."""
    found = [Unit(1, 3), Unit(3, 6), Unit(6, 7)]
    assert units_before(found, 4) == [Unit(1, 3)]
    assert units_before(found, 6) == found[:2]
    assert units_after(found, 3) == [Unit(6, 7)]
    assert found[1].holds(4)
    assert not found[1].holds(6)
    assert not found[1].holds(None)


def test_the_oldest_units_go_until_enough_is_free():
    """Those before the cut in any case, then one by one, with room for what is written."""
    session = opened()
    talk(session, 10)
    view = session.view
    units = foldable_units(view)
    sizes = [view.tokens_of(unit.weight(view.items)) for unit in units]
    assert oldest_units(view, units, cut=0, wanted=0) == []
    assert oldest_units(view, units, cut=0, wanted=1) == units[:1]
    assert oldest_units(view, units, cut=0, wanted=sizes[0] + 1) == units[:2]
    assert oldest_units(view, units, cut=0, wanted=sizes[0], room=1) == units[:2]
    assert oldest_units(view, units, cut=units[2].stop, wanted=1) == units[:3]
    assert oldest_units(view, units, cut=0, wanted=10**9) == units


def test_tokens_follow_the_calibration():
    """What is learnt between two plans counts in the second."""
    session = opened(model="claude-sonnet-4-5")
    talk(session, 10)
    view = session.view
    units = foldable_units(view)
    wanted = view.tokens_of(units[0].weight(view.items)) + 1
    assert oldest_units(view, units, cut=0, wanted=wanted) == units[:2]
    view.scale.calibration = msgspec.structs.replace(view.scale.calibration, prose=4.0, json=4.0, code=4.0)
    assert oldest_units(view, units, cut=0, wanted=wanted) == units[:1]
