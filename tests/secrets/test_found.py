from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.secrets.detectors import Secret
from windowsill.secrets.redactor import merge, replace, starts_in, subtract

pytestmark = pytest.mark.unit

places = st.tuples(st.integers(0, 40), st.integers(1, 10)).map(lambda pair: (pair[0], pair[0] + pair[1]))
several = st.lists(st.tuples(st.integers(0, 3), places), max_size=8)


def covered(ranges):
    return {place for start, end in ranges for place in range(start, end)}


@given(found=several)
def test_merged_covers_the_same_once(found):
    """Nothing is added, nothing lost, nothing twice."""
    done = merge((rank, Secret(str(rank), *place)) for rank, place in found)
    assert covered((each.start, each.end) for each in done) == covered(place for _, place in found)
    assert all(before.end <= after.start for before, after in pairwise(done))


def test_surest_gives_the_kind():
    """Whichever begins first."""
    assert merge([(3, Secret("name", 0, 9)), (1, Secret("format", 4, 12))]) == [Secret("format", 0, 12)]
    assert merge([(1, Secret("format", 0, 9)), (3, Secret("name", 4, 12))]) == [Secret("format", 0, 12)]


@given(found=several, taken=st.lists(places, max_size=5))
def test_without_leaves_what_is_not_taken(found, taken):
    """On both sides, and between two that are taken."""
    apart = [(each.start, each.end) for each in merge((0, Secret("", *place)) for place in taken)]
    secrets = merge((0, Secret("k", *place)) for _, place in found)
    left = subtract(secrets, apart)
    expected = covered((each.start, each.end) for each in secrets) - covered(apart)
    assert covered((each.start, each.end) for each in left) == expected


def test_starts_in_looks_at_the_beginning_alone():
    """What only ends in a range did not begin there."""
    taken = [(5, 10), (20, 30)]
    assert [starts_in(Secret("k", start, 31), taken) for start in (4, 5, 9, 10, 20, 30)] == [
        False,
        True,
        True,
        False,
        True,
        False,
    ]


def test_replaced_puts_a_sign_in_each_place():
    """And keeps everything else."""
    assert replace(b"a-bb-c", [Secret("x", 0, 1), Secret("y", 2, 4)]) == b"[secret: x]-[secret: y]-c"
