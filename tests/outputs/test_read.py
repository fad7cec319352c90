"""Reading an output: numbered lines, within limits, with a way on."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.errors import InputError
from windowsill.outputs.parts import MessageOutput
from windowsill.outputs.read import read
from windowsill.outputs.show import Limits

pytestmark = pytest.mark.unit

ON = re.compile(r"offset=(\d+)(?:, column=(\d+))? reads on\]$")


def show(content: bytes | str, offset: int = 1, limit: int = 2000, column: int = 1, *, part_bytes: int = 64, **limits):
    data = content.encode() if isinstance(content, str) else content
    return read(MessageOutput("o1", [data], part_bytes=part_bytes), offset, limit, column, Limits(**limits))


def test_lines_have_their_numbers():
    """As file readers show them, and the last line says how to go on."""
    assert show("a\nb\nc\n", 2, 1) == "     2\tb\n[lines 2-2 of 3; offset=3 reads on]"
    assert show("a\nb\nc\n", 3) == "     3\tc"


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("a\r\nb\r\n", "     1\ta\n     2\tb"),
        ("a\rb", "     1\ta\rb"),
        ("\n\n", "     1\t\n     2\t"),
        ("no end", "     1\tno end"),
        (b"caf\xe9", "     1\tcaf\ufffd"),
    ],
)
def test_line_ends_and_bytes_that_are_not_text(content, shown: str):
    """Either line end ends a line, a lone carriage return does not; what is not UTF-8 is replaced."""
    assert show(content) == shown


def test_a_binary_output_says_so():
    """A NUL near its beginning tells; it is shown as a replacement character."""
    assert show(b"a\0b\n") == "[binary output of 4 bytes, shown as far as it is text]\n     1\ta\ufffdb"


@pytest.mark.parametrize(
    ("places", "names"),
    [
        ((0, 1, 1), "offset is 0"),
        ((-5, 1, 1), "offset is -5"),
        ((1, 0, 1), "limit is 0"),
        ((1, 1, 0), "column is 0"),
        ((3, 1, 1), "offset 3 is beyond the end of o1; it has 2 lines"),
        ((2, 1, 3), "column 3 is beyond the end of line 2 of o1; the line has 2 characters"),
    ],
)
def test_a_place_that_is_not_there_is_a_clear_error(places: tuple[int, int, int], names: str):
    """The error says what the output has."""
    with pytest.raises(InputError, match=names):
        show("a\nbb", *places)


def test_a_long_line_is_cut_and_read_on_by_column():
    """How much was cut is told, and the column gives more than the line's limit."""
    line = "0123456789" * 50
    first = show(line + "\nnext", line=200)
    assert first == f"     1\t{line[:200]}... [+300 characters; column=201 reads on]\n     2\tnext"
    assert show(line + "\nnext", 1, 1, 201, line=200) == (
        f"     1\t{line[200:]}\n[columns 201-500 of 500 of line 1; offset=2 reads on]"
    )


TEXT = st.lists(st.sampled_from(["a", "é", "漢" * 30, "\n", "\r\n", "\0", "x" * 700, "😀" * 300, " "])).map("".join)


@given(TEXT, st.integers(9, 100))
def test_reading_on_reaches_everything(text: str, part_bytes: int):
    """Whoever follows the way on sees every character of every line, and no answer is above its limit."""
    limits = {"line": 200, "bytes": 1024}
    lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    if not text.endswith("\n"):
        lines[-1] = text.rpartition("\n")[2].removesuffix("\r")
    seen: dict[int, str] = {}
    offset, column = 1, 1
    for _ in range(1000):
        answer = show(text, offset, 7, column, part_bytes=part_bytes, **limits)
        assert len(answer.encode()) <= 1024
        rows = [row for row in answer.split("\n") if re.match(r" *\d+\t", row)]
        cut = None
        for row in rows:
            number, _, shown = row.lstrip(" ").partition("\t")
            found = re.search(r"\.\.\. \[\+[\d,]+ characters; column=(\d+) reads on\]$", shown)
            cut = cut or (found and (int(number), int(found[1])))
            seen[int(number)] = seen.get(int(number), "") + (shown[: found.start()] if found else shown)
            if cut:
                break
        on = ON.search(answer)
        if cut:
            offset, column = cut
        elif on:
            offset, column = int(on[1]), int(on[2] or 1)
        else:
            break
        if offset > len(lines):
            break
    expected = {number: line.replace("\0", "\ufffd") for number, line in enumerate(lines, 1)} if text else {}
    assert seen == expected


@given(TEXT, st.integers(1, 40), st.integers(1, 5), st.integers(9, 100))
def test_any_offset_shows_the_lines_that_stand_there(text: str, offset: int, limit: int, part_bytes: int):
    """Reading in the middle shows what reading from the start shows there."""
    whole = show(text, part_bytes=10**6).split("\n")
    rows = [row for row in whole if re.match(r" *\d+\t", row)][offset - 1 : offset - 1 + limit]
    if rows:
        answer = show(text, offset, limit, part_bytes=part_bytes).split("\n")
        assert [row for row in answer if re.match(r" *\d+\t", row)] == rows
