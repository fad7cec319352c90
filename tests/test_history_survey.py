"""What plans ask of a view, kept while it grows."""

import copy

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions import TASK, opened, talk
from windowsill.history.marker import gather, gather_between
from windowsill.history.survey import Survey, between, survey
from windowsill.history.units import units
from windowsill.history.view import AT_ONCE, Item, View, sum_weights
from windowsill.store.memory import MemoryStore
from windowsill.tokens import Weight

pytestmark = pytest.mark.unit

ids = st.lists(st.sampled_from("abc"), max_size=2, unique=True).map(tuple)
weights = st.builds(Weight, prose=st.integers(0, 9), json=st.integers(0, 9), bytes=st.integers(0, 9))


@st.composite
def items(draw):
    role = draw(st.sampled_from(["user", "assistant"]))
    calls = draw(ids) if role == "assistant" else ()
    return Item(
        seq=draw(st.integers(1, 99)),
        first=1,
        last=1,
        id="m",
        role=role,
        weight=draw(weights),
        calls=calls,
        tools=tuple(draw(st.sampled_from(["read", "run"])) for _ in calls),
        results=draw(ids) if role == "user" else (),
        marks=draw(st.sampled_from([(), ("pinned",), ("important",)])),
        own=draw(st.booleans()),
        leads=role == "assistant" and draw(st.booleans()),
    )


def columns(known):
    """All that a survey tells of a view."""
    found = {name: getattr(known, name) for name in ("own", "folds", "pinned", "important", "answers", "names")}
    found |= {name: getattr(known, name) for name in ("answered", "again", "tools", "called", "messages", "renamed")}
    return found | {"starts": known.starts, "weights": [known.weight(0, end) for end in range(len(known.items) + 1)]}


@given(st.lists(items(), max_size=20), st.integers(0, 20))
def test_a_survey_that_grew_says_what_a_new_one_says(listed, cut):
    """Whatever comes later, a late result that joins units included."""
    view = View(listed[:cut])
    grown = survey(view)
    for item in listed[cut:]:
        view.add(item)
        assert survey(view) is grown
    assert columns(grown) == columns(survey(View(listed)))


@given(st.lists(items(), max_size=20))
def test_its_units_are_those_of_the_view_but_for_what_is_still_running(listed):
    """There is one definition of what belongs together."""
    known = survey(View(listed))
    closed = [unit for unit in units(listed) if not unit.open]
    assert known.units(0, len(closed)) == closed


@given(st.lists(items(), min_size=1, max_size=20), st.data())
def test_any_stretch_weighs_what_its_items_weigh(listed, data):
    """Sums of all before are subtracted, never rounded."""
    start = data.draw(st.integers(0, len(listed)))
    stop = data.draw(st.integers(start, len(listed)))
    assert survey(View(listed)).weight(start, stop) == sum_weights(item.weight for item in listed[start:stop])


def many():
    """Enough to be looked at in several goes, with a late result and an id that comes again for another tool."""
    for number in range(1, 3 * AT_ONCE, 2):
        id = "late" if number in (1, 2 * AT_ONCE + 1) else f"c{number}"
        tool = "run" if number > AT_ONCE else "read"
        weight = Weight(prose=number, overhead=1)
        yield Item(number, number, number, f"m{number}", "assistant", weight, calls=(id,), tools=(tool,))
        answer = "late" if number in (AT_ONCE + 1, 2 * AT_ONCE + 1) else f"c{number}"
        yield Item(number + 1, number + 1, number + 1, f"m{number + 1}", "user", weight, results=(answer,))


def test_what_comes_is_looked_at_as_it_comes():
    """No plan pays for a history that was added without one."""
    view, listed = View(), list(many())
    for item in listed:
        view.add(item)
    grown = view.surveyed
    assert grown.items == listed
    assert survey(view) is grown
    assert columns(grown) == columns(survey(View(listed)))


@pytest.mark.parametrize("at_once", [1, 6])
def test_ids_that_come_again_are_told_apart(at_once):
    """A tool is that of the latest call, a result is first found where it first stood; however many come at once."""
    said = [("a", "read"), ("b", "read"), ("a", "run")]
    listed = []
    for number, (id, tool) in enumerate(said):
        listed.append(Item(2 * number, 0, 0, "m", "assistant", Weight(), calls=(id,), tools=(tool,)))
        listed.append(Item(2 * number + 1, 0, 0, "m", "user", Weight(), results=(id,)))
    known = Survey(View())
    for start in range(0, len(listed), at_once):
        known.take(listed[start : start + at_once])
    assert (known.names, known.renamed) == ({"a": "run", "b": "read"}, 1)
    assert (known.answered, known.again) == ({"a": 1, "b": 3}, {"a": [5]})
    assert known.answers == [1, 3, 5]


def test_a_change_that_is_followed_by_many_messages_is_seen():
    """Looking at what comes is not looking at what was there."""
    view, listed = View(), list(many())
    for number, item in enumerate(listed):
        view.add(item)
        if number == AT_ONCE:
            listed[1] = view.items[1] = msgspec.structs.replace(view.items[1], own=True)
    assert survey(view).own == [1]
    assert columns(survey(view)) == columns(survey(View(listed)))


def test_a_copy_that_goes_its_own_way_leaves_the_survey_alone():
    """A trial of what would be, on a copy of the view."""
    view = View(list(many())[: AT_ONCE - 1])
    known, other = survey(view), copy.copy(view)
    other.items = list(view.items)
    other.add(Item(999, 999, 999, "m999", "user", Weight()))
    assert len(known.items) == AT_ONCE - 1
    assert len(other.surveyed.items) == AT_ONCE


def test_a_session_that_folded_or_was_opened_has_been_looked_at():
    """The first plan after it finds what it asks for."""
    store = MemoryStore()
    session = opened(store)
    talk(session, 6)
    session.fold(session.items()[1].id, session.items()[4].id)
    view = session.view
    assert view.surveyed.items == view.items
    again = opened(store).view
    assert again.surveyed.items == again.items == view.items


def test_a_change_in_the_middle_is_seen():
    """A pin, a fold or a weight counted anew: what was known of the view no longer holds."""
    listed = [Item(number, number, number, f"m{number}", "user", Weight(prose=1)) for number in range(1, 5)]
    view = View(listed)
    before = survey(view)
    view.items[1] = msgspec.structs.replace(listed[1], weight=Weight(prose=7))
    assert survey(view) is not before
    assert survey(view).weight(0, 4) == Weight(prose=10)


def test_a_view_that_became_shorter_is_seen():
    """A rewind takes from the end."""
    view = View([Item(number, number, number, f"m{number}", "user", Weight()) for number in range(1, 5)])
    assert len(survey(view).starts) == 4
    view.items = view.items[:2]
    assert survey(view).starts == [0, 1]


def test_a_copy_of_a_view_has_a_survey_of_its_own():
    """A plug-in may still plan on its copy, in its thread, when the session has moved on."""
    view = View([Item(1, 1, 1, "m1", "user", Weight())])
    known, other = survey(view), copy.copy(view)
    assert survey(other) is not known
    assert survey(view) is known


def test_tokens_follow_the_calibration():
    """What is learnt between two plans counts in the second."""
    session = opened(model="claude-sonnet-4-5")
    session.add({"role": "user", "content": TASK})
    talk(session, 6)
    view = session.view
    assert survey(view).tally(view).each == view.each(view.items)
    view.scale.calibration = msgspec.structs.replace(view.scale.calibration, prose=1.7, json=0.6)
    tally = survey(view).tally(view)
    assert tally.each == view.each(view.items)
    assert tally.sums[-1] == sum(view.each(view.items))
    closed = [unit for unit in units(view.items) if not unit.open]
    ends = tally.units
    assert [ends[n + 1] - ends[n] for n in range(len(closed))] == [
        view.tokens_of(unit.weight(view.items)) for unit in closed
    ]


@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 400))
def test_facts_of_a_stretch_are_those_of_its_items(first, count, room):
    """A marker says the same, whether its facts are gathered one by one or from the survey."""
    session = opened()
    session.add({"role": "user", "content": TASK})
    talk(session, 4)
    view = session.view
    start = min(first, len(view.items))
    stop = min(start + count, len(view.items))
    one_by_one = gather(view.items[start:stop], tokens=view.each, read=view.read, room=room)
    assert gather_between(view, survey(view), start, stop, room) == one_by_one


@pytest.mark.parametrize(("start", "stop", "found"), [(0, 9, [2, 4, 7]), (2, 7, [2, 4]), (5, 6, []), (8, 9, [])])
def test_positions_between_two(start, stop, found):
    """The first is included, the last is not."""
    assert list(between([2, 4, 7], start, stop)) == found
