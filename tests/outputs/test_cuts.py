"""Parts of an output: cut at line ends, the same however the bytes arrived."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.outputs.parts import Cutter, encode_text

pytestmark = pytest.mark.unit


def cuts(pieces: list[bytes], size: int = 8):
    cutter = Cutter(size)
    made = [cut for piece in pieces for cut in cutter.take(piece)]
    return cutter, made + list(cutter.rest())


CONTENT = st.lists(st.sampled_from([b"a", b"\n", b"\r\n", "é".encode(), "漢字".encode(), b"\xff", b"abcdefghij"])).map(
    b"".join
)


@given(CONTENT, st.lists(st.integers(1, 20)))
def test_parts_are_the_content_whatever_the_pieces(content: bytes, sizes: list[int]):
    """Joined parts are the content, and the parts do not depend on how it was split on its way."""
    pieces, rest = [], content
    for size in sizes:
        pieces.append(rest[:size])
        rest = rest[size:]
    _, whole = cuts([content])
    _, split = cuts([*pieces, rest])
    assert whole == split
    assert b"".join(data for _, data in whole) == content


@given(CONTENT)
def test_a_part_knows_its_place(content: bytes):
    """Line, column and offset of a part are those of its first byte; a part holds whole lines or a piece of one."""
    cutter, made = cuts([content])
    for part, data in made:
        before = content[: part.offset]
        assert part.line == before.count(b"\n") + 1
        assert (part.column > 1) == (bool(before) and not before.endswith(b"\n"))
        assert part.size == len(data) <= 8
        assert data.endswith(b"\n") or b"\n" not in data or part is made[-1][0]
    assert cutter.lines == content.count(b"\n") + (not content.endswith(b"\n") if content else 0)
    assert cutter.size == len(content)


def test_a_line_longer_than_a_part_is_cut_between_characters():
    """Neither a character nor a line end is split, and the column counts characters."""
    _, made = cuts(["漢字漢字\r\nx".encode()])
    assert [(part.line, part.column, data.decode()) for part, data in made] == [
        (1, 1, "漢字"),
        (1, 3, "漢字\r\n"),
        (2, 1, "x"),
    ]


def test_a_line_end_is_never_split():
    """A carriage return goes with its line feed."""
    _, made = cuts([b"1234567\r\nx"])
    assert [data for _, data in made] == [b"1234567", b"\r\n", b"x"]


def test_text_that_is_not_text_is_replaced():
    """Half a surrogate pair becomes a replacement character; two halves become what they mean."""
    assert b"".join(encode_text("a\ud800b\ud83d\ude00")).decode() == "a\ufffdb😀"
