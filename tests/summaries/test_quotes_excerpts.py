"""Lines of files as they stand."""

import pytest

from windowsill.summaries.digest import Excerpt
from windowsill.summaries.quotes import Edited, current_excerpts, pick_shown
from windowsill.summaries.tool_calls import Edit

pytestmark = pytest.mark.unit


def texts(*events):
    return [one.text for one in current_excerpts([], events)]


def read(text, first=1, path="a.py"):
    return Excerpt(path=path, text=text, first=first, id="m1")


def edit(old, new, path="a.py"):
    return Edited(edit=Edit(path=path, old=old, new=new), id="m2")


@pytest.mark.parametrize("sign", ["→", "\t", "|", ": "])
def test_line_numbers_are_taken_off(sign):
    """An edit has to quote the line without the number a tool put in front."""
    text = "".join(f"    {number}{sign}\treturn {number}\n" for number in range(7, 12))
    (one,) = pick_shown(read(text, 0))
    assert one.first == 7
    assert one.text.split("\n")[0].endswith("return 7")
    assert "8" + sign not in one.text


def test_a_long_file_is_kept_around_its_definitions():
    """Of what is too long, the lines where things are defined stay, with their numbers."""
    text = "\n".join(["filler"] * 99 + ["# why", "def main():", "    return 1"] + ["filler"] * 99)
    (one,) = pick_shown(read(text, 1))
    assert (one.first, one.text.split("\n")[:4]) == (99, ["filler", "# why", "def main():", "    return 1"])


def test_an_edit_is_made_in_the_excerpt_too():
    """An excerpt is what the file holds now."""
    assert texts(read("x = 1\ny = 2\nz = 3"), edit("y = 2", "y = 20")) == ["x = 1\ny = 20\nz = 3"]


def test_an_edit_of_lines_not_shown_is_an_excerpt_of_its_own():
    """What was written is known even where its surroundings are not."""
    assert texts(edit("old words", "new words")) == ["new words"]


def test_a_file_written_as_a_whole_replaces_all_of_it():
    """Earlier lines of it no longer stand anywhere."""
    assert texts(read("first = 1"), edit("", "second = 2")) == ["second = 2"]


def test_lines_read_again_stand_once():
    """The newest reading of the same lines is enough."""
    assert texts(read("x = 1\ny = 2"), read("x = 1\ny = 3")) == ["x = 1\ny = 3"]


def test_a_reminder_after_a_file_is_no_part_of_it():
    """What an agent appends to a file's contents is left out."""
    (one,) = pick_shown(read("x = 1\n\n<system-reminder>\nbe good\n</system-reminder>", 1))
    assert one.text == "x = 1"


def test_what_would_be_pushed_out_is_not_looked_at():
    """Only the latest events matter, however many there were."""
    events = [read(f"line_{number} = 1\n" * 200, path=f"{number}.py") for number in range(1_000)]
    assert current_excerpts([], events)[-1:] == []  # no definitions in there
    assert current_excerpts([], [*events, read("x = 1", path="last.py")])[-1].path == "last.py"
