from __future__ import annotations

import gzip
import json
import time

import pytest

from windowsill.errors import FormatError
from windowsill.replay.recordings import BrokenLine, Recording, parse, read_recordings, total_size
from windowsill.transcripts.base import timestamp

pytestmark = pytest.mark.unit

HELLO = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]


def test_recorded_session_keeps_its_own_fields_apart():
    """Id, format and times are the recording's; the rest is the request's."""
    value = {"id": "a", "format": "anthropic", "model": "m", "messages": HELLO, "times": [1, None], "usage": [], "x": 2}
    found = parse(json.dumps(value).encode(), "file")
    assert (found.id, found.request.format, found.request.model) == ("a", "anthropic", "m")
    assert found.times == (1.0, None)
    assert list(found.request.rest) == ["x"]


@pytest.mark.parametrize("value", [HELLO, {"messages": HELLO}])
def test_list_and_body_take_the_name_they_are_given(value):
    """A recording without an id goes by the name of its file."""
    found = parse(json.dumps(value).encode(), "file")
    assert (found.id, found.named, len(found.request.messages)) == ("file", False, 2)


def test_stated_format_wins():
    """The caller's format is taken, whatever the recording says."""
    assert parse(json.dumps(HELLO).encode(), "x", "anthropic").request.format == "anthropic"


def test_no_messages_is_an_error():
    """There is nothing to replay in an empty list."""
    with pytest.raises(FormatError, match="no messages"):
        parse(b"[]", "x")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-01-28T04:35:03.932Z", 1769574903.932),
        ("2026-01-28T04:35:03", 1769574903.0),
        ("2026-01-28T05:35:03+01:00", 1769574903.0),
        (12, 12.0),
        (None, None),
        (True, None),
        ("yesterday", None),
        ([], None),
    ],
)
def test_times(value, expected, monkeypatch):
    """Numbers and ISO 8601 are times, wherever the machine stands; other things are none."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert timestamp(value) == expected
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("packed", [False, True])
def test_one_session_per_line_and_broken_lines_are_told(tmp_path, packed):
    """A .jsonl file gives each line its turn; a broken one does not hide the others."""
    text = json.dumps({"id": "a", "messages": HELLO}) + "\nnot json\n\n" + json.dumps(HELLO) + "\n"
    file = tmp_path / ("x.jsonl.gz" if packed else "x.jsonl")
    file.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    found = list(read_recordings([str(file)]))
    assert [each.id if isinstance(each, Recording) else each.where for each in found] == ["a", f"{file} line 2", "x:4"]


def test_truncated_gzip_gives_what_is_whole(tmp_path):
    """The lines before the damage are read, and the damage is told."""
    line = json.dumps({"id": "a", "messages": HELLO, "noise": [hash(str(n)) for n in range(20_000)]}).encode() + b"\n"
    file = tmp_path / "x.jsonl.gz"
    file.write_bytes(gzip.compress(line * 3)[:-40_000])
    *whole, last = read_recordings([str(file)])
    assert [type(each) for each in whole] == [Recording] * len(whole)
    assert isinstance(last, BrokenLine)
    assert "not a whole gzip file" in last.why


def test_other_files_hold_one_session(tmp_path):
    """A file that does not end in .jsonl is one document, even over many lines."""
    file = tmp_path / "talk.json"
    file.write_text(json.dumps(HELLO, indent=2))
    assert [each.id for each in read_recordings([str(file)])] == ["talk"]


def test_progress_adds_up_to_the_size_of_the_files(tmp_path):
    """What `advance` is told is, in the end, all bytes of all files."""
    first, second = tmp_path / "a.jsonl", tmp_path / "b.json"
    first.write_text((json.dumps(HELLO) + "\n") * 3)
    second.write_text(json.dumps(HELLO))
    passed: list[int] = []
    files = [str(first), str(second)]
    assert len(list(read_recordings(files, advance=passed.append))) == 4
    assert sum(passed) == total_size(files)


def test_missing_file_is_told_before_any_work(tmp_path):
    """All files are looked at before the first is read."""
    with pytest.raises(FileNotFoundError):
        total_size([str(tmp_path / "missing")])
