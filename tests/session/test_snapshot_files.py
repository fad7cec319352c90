"""Snapshot files: each whole or not there, the last few kept, the newest whole one found (C1)."""

import os
import random
import signal
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from support.stores import child_env
from windowsill import DamagedError, InputError, NotFoundError, SettingError, StoreError
from windowsill.session.snapshots import Snapshot, load_snapshot, save_snapshot

pytestmark = pytest.mark.integration

ROUNDS = 12


def shot(number):
    return Snapshot(timestamp=float(number), token_count=number, messages=(), session="s", format="anthropic")


def numbers(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def folder(tmp_path):
    """Three snapshots."""
    for number in (1, 2, 3):
        save_snapshot(tmp_path / "s", shot(number))
    return tmp_path / "s"


def test_they_are_numbered_and_the_newest_is_loaded(folder):
    """In the order in which they were written."""
    assert numbers(folder) == ["0001.json", "0002.json", "0003.json"]
    loaded = load_snapshot(folder)
    assert (loaded.snapshot, loaded.path, loaded.damaged) == (shot(3), folder / "0003.json", ())


def test_the_last_five_are_kept(folder):
    """And the numbers go on."""
    for number in (4, 5, 6, 7):
        save_snapshot(folder, shot(number))
    assert numbers(folder) == [f"000{number}.json" for number in (3, 4, 5, 6, 7)]


def test_as_many_as_asked_for_are_kept(folder):
    """One at least: a rotation never leaves nothing."""
    save_snapshot(folder, shot(4), keep=1)
    assert numbers(folder) == ["0004.json"]
    with pytest.raises(SettingError, match="setting 'keep' is 0"):
        save_snapshot(folder, shot(5), keep=0)


def test_numbers_beyond_four_digits_stay_in_order(tmp_path):
    """10000 comes after 9999."""
    save_snapshot(tmp_path, shot(1))
    (tmp_path / "0001.json").rename(tmp_path / "9999.json")
    assert save_snapshot(tmp_path, shot(2)).name == "10000.json"
    assert load_snapshot(tmp_path).snapshot == shot(2)


def test_only_their_owner_reads_them(folder):
    """They hold what was said."""
    assert stat.S_IMODE((folder / "0003.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-30]), "does not end with a checksum"),
        (lambda path: path.write_bytes(path.read_bytes().replace(b"3.0", b"9.0")), "not what was written"),
        (lambda path: path.write_bytes(b""), "it is empty"),
        (lambda path: path.write_bytes(b"no JSON"), "does not end with a checksum"),
        (
            lambda path: path.write_bytes(save_snapshot(path.parents[1], newer()).read_bytes()),
            "it has version '2.0'",
        ),
    ],
    ids=["cut", "changed", "empty", "no JSON", "version"],
)
def test_the_one_before_a_damaged_one_is_used_and_that_is_told(folder, damage, why):
    """C1: whatever happened to the newest file."""
    damage(folder / "0003.json")
    loaded = load_snapshot(folder)
    assert loaded.snapshot == shot(2)
    assert [each.path for each in loaded.damaged] == [folder / "0003.json"]
    assert why in loaded.damaged[0].why


def newer():
    return msgspec.structs.replace(shot(3), version="2.0")


def test_a_file_that_cannot_be_read_counts_as_damaged(folder):
    """Such as a folder under a snapshot's name."""
    (folder / "0004.json").mkdir()
    assert load_snapshot(folder).snapshot == shot(3)
    assert save_snapshot(folder, shot(5)).name == "0005.json"


def test_when_none_is_whole_the_error_names_each(folder):
    """There is nothing to fall back to."""
    for path in folder.iterdir():
        path.write_bytes(b"")
    with pytest.raises(DamagedError, match=r"0003\.json: it is empty; 0002\.json: it is empty; 0001\.json"):
        load_snapshot(folder)


def test_a_damaged_file_that_is_asked_for_by_name_is_not_replaced_by_another(folder):
    """The error says how to get the one before."""
    (folder / "0003.json").write_bytes(b"")
    with pytest.raises(DamagedError, match=r"0003\.json: it is empty; give its folder"):
        load_snapshot(folder / "0003.json")
    assert load_snapshot(folder / "0001.json").snapshot == shot(1)


def test_unfinished_and_foreign_files_are_passed_over(folder):
    """What a killed process left, and whatever else stands there."""
    for name in ("0009-abc.unfinished", "notes.txt", "9.json", "٠٠٠٩.json", "0009.json.bak"):
        (folder / name).write_bytes(b"half")
    loaded = load_snapshot(folder)
    assert (loaded.snapshot, loaded.damaged) == (shot(3), ())


def test_what_a_killed_process_left_is_removed_when_it_is_old(folder):
    """And not before: another process may be writing it."""
    for name, age in (("0009-old.unfinished", 7_200), ("0009-new.unfinished", 60)):
        (folder / name).write_bytes(b"half")
        os.utime(folder / name, (time.time() - age, time.time() - age))
    save_snapshot(folder, shot(4))
    assert [name for name in numbers(folder) if name.endswith("unfinished")] == ["0009-new.unfinished"]


def test_the_folder_above_one_session_will_do(folder, tmp_path):
    """Of several it has to be said which."""
    assert load_snapshot(tmp_path).path == folder / "0003.json"
    save_snapshot(tmp_path / "t", shot(8))
    with pytest.raises(InputError, match="snapshots of 2 sessions; give one of its folders: s, t"):
        load_snapshot(str(tmp_path))


@pytest.mark.parametrize("place", ["", "nowhere"])
def test_no_snapshot_is_told(tmp_path, place):
    """An empty folder, and one that is not there."""
    with pytest.raises(NotFoundError, match="there is no snapshot"):
        load_snapshot(tmp_path / place)


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    """With the remedy."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="check free space and permissions"):
        save_snapshot(tmp_path / "file" / "s", shot(1))


FULL = """
import resource, sys
from pathlib import Path
from windowsill import StoreError
from windowsill.session.snapshots import load_snapshot, save_snapshot
from windowsill.session.snapshots import Snapshot

folder = Path(sys.argv[1])
big = Snapshot(timestamp=9.0, token_count=9, messages=(), summary="x" * 500_000, session="s", format="openai")
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, most))
try:
    save_snapshot(folder, big)
except StoreError as error:
    print(error.remedy)
print(load_snapshot(folder).snapshot.token_count, sorted(path.name for path in folder.iterdir()))
"""


def test_a_full_disk_leaves_those_that_were_there(folder):
    """And no half of a file."""
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(folder)], env=child_env(), text=True, capture_output=True, check=True
    )
    assert done.stdout.splitlines() == [
        "check free space and permissions, or give another folder",
        "3 ['0001.json', '0002.json', '0003.json']",
    ]


DYING = """
import os, signal, sys
from pathlib import Path
from windowsill.session.snapshots import save_snapshot
from windowsill.session.snapshots import Snapshot

left = int(sys.argv[2])

def fsync(handle):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)

os.fsync = fsync
save_snapshot(Path(sys.argv[1]), Snapshot(timestamp=4.0, token_count=4, messages=(), session="s", format="anthropic"))
"""


@pytest.mark.parametrize(("sync", "newest"), [(1, 3), (2, 4)], ids=["before its name", "after its name"])
def test_a_file_has_its_name_only_when_all_of_it_is_written(folder, sync, newest):
    """A process that dies when it has written the file, or named it: there is the old one or the new one, whole."""
    done = subprocess.run([sys.executable, "-c", DYING, str(folder), str(sync)], env=child_env(), check=False)
    loaded = load_snapshot(folder)
    assert (done.returncode, loaded.snapshot.token_count, loaded.damaged) == (-signal.SIGKILL, newest, ())


def test_a_file_is_on_disk_before_it_has_its_name_and_then_the_name_is(folder, monkeypatch):
    """In this order a loss of power leaves no name without its content."""
    order, sync, link = [], os.fsync, Path.hardlink_to
    monkeypatch.setattr(
        os, "fsync", lambda handle: (order.append(stat.S_ISDIR(os.fstat(handle).st_mode)), sync(handle))
    )
    monkeypatch.setattr(Path, "hardlink_to", lambda path, target: (order.append("named"), link(path, target)))
    save_snapshot(folder, shot(4))
    assert order == [False, "named", True]
    save_snapshot(folder / "new" / "newer", shot(5))
    assert order[3:] == [True, True, False, "named", True]


def test_several_that_write_at_once_each_keep_their_own(tmp_path):
    """None takes the number of another: what was written stays until newer ones push it out."""
    with ThreadPoolExecutor(6) as threads:
        paths = list(threads.map(lambda number: save_snapshot(tmp_path, shot(number), keep=100), range(60)))
    assert [load_snapshot(path).snapshot.token_count for path in paths] == list(range(60))


def test_a_file_system_without_links_will_do(folder, monkeypatch):
    """The file is renamed then, whole all the same."""

    def refused(_path, _target):
        raise PermissionError

    monkeypatch.setattr(Path, "hardlink_to", refused)
    assert save_snapshot(folder, shot(4)) == folder / "0004.json"
    assert numbers(folder) == ["0001.json", "0002.json", "0003.json", "0004.json"]


WRITER = """
import os, sys
from pathlib import Path
from windowsill.session.snapshots import save_snapshot
from windowsill.session.snapshots import Snapshot

number = int(sys.argv[2])
os.write(1, b"ready\\n")
while True:
    number += 1
    text = f"{number} " * 40_000
    save_snapshot(
        Path(sys.argv[1]),
        Snapshot(timestamp=1.0, token_count=number, messages=(), summary=text, session="s", format="openai"),
    )
    os.write(1, f"{number}\\n".encode())
"""


def test_a_process_that_is_killed_while_writing_leaves_a_whole_one(tmp_path):
    """What was acknowledged is there, or something newer; nothing that is found is damaged."""
    save_snapshot(tmp_path, shot(1))
    moments, last = random.Random(5), 1
    for _ in range(ROUNDS):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), str(last)], stdout=subprocess.PIPE, env=child_env(), text=True
        ) as child:
            assert child.stdout.readline() == "ready\n"
            time.sleep(moments.uniform(0.01, 0.06))
            child.send_signal(signal.SIGKILL)
            said = [int(line) for line in child.stdout if line.endswith("\n")]
        loaded = load_snapshot(tmp_path)
        assert (loaded.snapshot.token_count >= max([last, *said]), loaded.damaged) == (True, ())
        last = loaded.snapshot.token_count
    assert last > 1  # some of them wrote, however slow the machine is
