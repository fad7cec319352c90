"""The best of each unit, found out once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.history.survey import survey
from windowsill.history.view import Item, View
from windowsill.strategies.peaks import Peaks
from windowsill.tokens import Weight

pytestmark = pytest.mark.unit

step = st.tuples(st.sampled_from(["a", "b", ""]), st.sampled_from([0.1, 0.2, 0.35]))


def item(number, id):
    calls, results = ((id,), ()) if number % 3 == 0 else ((), (id,))
    ids = {"calls": calls, "results": results} if id else {}
    return Item(number, number, number, f"m{number}", "assistant", Weight(), **ids)


@given(st.lists(step, max_size=25), st.integers(0, 25), st.floats(0, 0.5))
def test_the_best_of_each_unit_as_the_view_grows(steps, cut, each):
    """The same as looking at every message, before and after more came, units that were joined late included."""
    listed = [item(number, id) for number, (id, _) in enumerate(steps)]
    worth = [value for _, value in steps]
    view, peaks = View(listed[:cut]), Peaks()
    for count in (cut, len(listed)):
        for added in listed[len(view.items) : count]:
            view.add(added)
        known = survey(view)
        peaks.follow(known, worth[: len(view.items)])
        ends = [*known.starts, len(view.items)]
        best = [
            max(place * each + worth[place] for place in range(ends[n], ends[n + 1])) for n in range(len(known.starts))
        ]
        assert peaks.best(each) == best


def test_units_that_became_one_before_others_came():
    """As many units as before, but not the same ones."""
    listed = [item(number, id) for number, id in enumerate(["a", "", "", "", "a", "", ""])]
    view, peaks = View(listed[:4]), Peaks()
    worth = [0.1, 0.2, 0.3, 0.4, 0.1, 0.5, 0.6]
    peaks.follow(survey(view), worth)
    for added in listed[4:]:
        view.add(added)
    assert survey(view).starts == [0, 5, 6]
    peaks.follow(survey(view), worth)
    assert peaks.best(0.0) == [0.4, 0.5, 0.6]
