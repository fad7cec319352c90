import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.tokens import Weight

pytestmark = pytest.mark.unit

weights = st.builds(Weight, *[st.integers(-1000, 10**9)] * 9)


def test_adding_adds_every_dimension():
    """The weight of two things is the sum in every dimension."""
    one, two = Weight(1, 2, 3, 4, 5, 6, 7, 8, 9), Weight(10, 20, 30, 40, 50, 60, 70, 80, 90)
    assert one + two == Weight(11, 22, 33, 44, 55, 66, 77, 88, 99)


@given(weights, weights)
def test_taking_away_undoes_adding(one, two):
    """What was added can be taken away again."""
    assert one + two - two == one


@given(weights)
def test_survives_storage(weight):
    """A weight read back from JSON is the same weight."""
    assert msgspec.json.decode(msgspec.json.encode(weight), type=Weight) == weight
