"""How outputs are named."""

import pytest

from windowsill.outputs.parts import is_stored, place_of, ref_at

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("ref", "place"),
    [
        ("o12", (12, None)),
        ("o12.3", (12, 3)),
        ("o0", None),
        ("o12.0", None),
        ("O12", None),
        ("o12\n", None),
        ("", None),
    ],
)
def test_a_ref_names_a_place(ref: str, place: tuple[int, int | None] | None):
    """`o12` is an entry, `o12.3` one of its results; anything else is no place."""
    assert place_of(ref) == place


def test_refs_are_short_where_they_can_be():
    """The number of the result is told only where there are several."""
    assert (ref_at(12), ref_at(12, 2, of=3)) == ("o12", "o12.2")


def test_a_kept_output_is_named_by_its_hash():
    """`b` and at least 16 lower-case hexadecimal digits."""
    assert is_stored("b0123456789abcdef")
    assert not any(map(is_stored, ["b0123456789abcde", "b0123456789ABCDEF", "b0123456789abcdef/../x", "o12"]))
