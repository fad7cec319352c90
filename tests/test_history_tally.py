"""What the items and units of a survey are in tokens."""

from itertools import pairwise
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.history.survey import survey
from windowsill.history.view import Item, View, sum_weights
from windowsill.tokens import Calibration, Scale, Weight, counter, framing, image_rule

pytestmark = pytest.mark.unit

numbers = st.integers(0, 9)
weights = st.builds(Weight, prose=numbers, code=numbers, json=numbers, cjk=numbers, fixed=numbers, overhead=numbers)
ratios = st.sampled_from([1.0, 0.7, 1.13, 2.35])
calibrations = st.builds(Calibration, prose=ratios, code=ratios, json=ratios, cjk=ratios, fixed=st.booleans())
steps = st.lists(st.tuples(weights, st.sampled_from(["a", "b", ""])), max_size=20)


def item(number, weight, id):
    ids = {} if not id else {"results": (id,)} if number % 3 else {"calls": (id,)}
    return Item(number, number, number, f"m{number}", "user" if number % 3 else "assistant", weight, **ids)


def view_of(items, calibration):
    view = View(items)
    view.scale = Scale(
        counter("chars/4"), framing=framing("generic"), images=image_rule("generic"), calibration=calibration
    )
    return view


@given(steps, st.integers(0, 20), calibrations)
def test_each_column_is_what_counting_one_by_one_gives(listed, cut, calibration):
    """To the last bit, as the view grows, with ratios and without: a plan must not depend on when it was counted."""
    items = [item(number, weight, id) for number, (weight, id) in enumerate(listed)]
    view = view_of(items[:cut], calibration)
    for count in (cut, len(items)):
        for added in items[len(view.items) : count]:
            view.add(added)
        known = survey(view)
        tally, found = known.tally(view), [each.weight for each in view.items]
        each = [calibration.estimate(weight) for weight in found]
        ends = [*known.starts, len(found)] if found else [0]
        units = [found[start:stop] for start, stop in pairwise(ends)]
        assert tally.estimates == each
        assert tally.each == list(map(ceil, each))
        assert tally.sums == [sum(map(ceil, each[:place])) for place in range(len(each) + 1)]
        assert [stop - start for start, stop in pairwise(tally.units)] == [
            ceil(calibration.estimate(sum_weights(unit))) for unit in units
        ]
        assert tally.sizes == [one_by_one(each[start:stop]) for start, stop in pairwise(ends)]


def one_by_one(values):
    total = 0.0
    for value in values:
        total += value
    return total


def test_where_nothing_is_learnt_tokens_are_added_up_when_messages_come():
    """The first plan of a session on a public vocabulary counts nothing."""
    view = view_of([], Calibration.exact())
    for number in range(64):
        view.add(item(number, Weight(prose=2), ""))
    assert survey(view).tally(view)._sums[-1] == 128
