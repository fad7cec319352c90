"""Paths through the tree of entries."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.errors import DamagedError
from windowsill.history.entries import on_path, path_to, within

pytestmark = pytest.mark.unit


def test_a_history_that_was_never_rewound_is_one_range():
    """Without jumps the path is everything up to the head."""
    assert path_to(7, []) == [(1, 7)]


def test_a_rewind_leaves_out_what_came_between():
    """Entry 6 was written after going back to entry 3."""
    assert path_to(8, [(6, 3)]) == [(1, 3), (6, 8)]


def test_the_abandoned_branch_still_has_its_own_path():
    """The head before the rewind is reached without the jump."""
    assert path_to(5, [(6, 3)]) == [(1, 5)]


def test_nothing_is_on_the_way_to_the_root():
    """The root itself has no entries."""
    assert path_to(0, [(6, 3)]) == []


@pytest.mark.parametrize("parent", [6, 7, 300, -1])
def test_an_entry_that_follows_itself_or_a_later_one_is_damaged(parent):
    """Its path would have no end, and would fill the memory."""
    with pytest.raises(DamagedError, match=f"6 is said to follow {parent}"):
        path_to(8, [(6, parent)])


@st.composite
def trees(draw):
    parents = {}
    for seq in range(1, draw(st.integers(1, 30)) + 1):
        parents[seq] = draw(st.integers(0, seq - 1)) if draw(st.booleans()) else seq - 1
    return parents


@given(trees(), st.data())
def test_a_path_is_the_chain_of_parents(parents, data):
    """Ranges name exactly the entries one meets when following parents from the head."""
    head = data.draw(st.integers(1, len(parents)))
    jumps = [(seq, parent) for seq, parent in parents.items() if parent != seq - 1]
    chain, at = [], head
    while at:
        chain.append(at)
        at = parents[at]
    ranges = path_to(head, jumps)
    assert [seq for first, last in ranges for seq in range(first, last + 1)] == chain[::-1]
    assert all(on_path(ranges, seq) == (seq in chain) for seq in parents)


def test_within_cuts_a_path_to_a_part():
    """Only what lies between the two entries is left."""
    assert within([(1, 3), (6, 9)], 2, 7) == [(2, 3), (6, 7)]
