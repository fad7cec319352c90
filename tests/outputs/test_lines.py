"""Lines of an output are found wherever they stand, in whatever order they are asked for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.outputs.parts import MessageOutput, lines

pytestmark = pytest.mark.unit

CONTENT = st.lists(st.sampled_from(["a", "bb\n", "\n", "c" * 5])).map("".join)


@given(CONTENT, st.lists(st.tuples(st.integers(1, 9), st.integers(0, 3))), st.integers(4, 40))
def test_lines_are_what_splitting_would_give(content: str, places: list[tuple[int, int]], part_bytes: int):
    """Forwards, backwards and across parts; beyond the end there is nothing."""
    output = MessageOutput("o1", [content.encode()], part_bytes=part_bytes)
    rows = content.removesuffix("\n").split("\n") if content else []
    for first, more in places:
        found = [line.text for line in lines(output, first, first + more, width=100)]
        assert found == rows[first - 1 : first + more]


@pytest.mark.parametrize("number", [1, 16_384, 16_385, 30_000, 40_000])
def test_a_line_far_inside_a_part(number: int):
    """What is skipped in blocks is counted right at their borders."""
    output = MessageOutput("o1", [b"\n" * 29_999 + b"x\n" + b"\n" * 10_000])
    found = [line.text for line in lines(output, number, number, width=10)]
    assert found == ["x" if number == 30_000 else ""]
