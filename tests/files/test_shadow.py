"""Records of a folder's files: what is in them, what is left out and why, and what git is kept from doing."""

import os
import shutil
import stat
import subprocess
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as run
from hypothesis import strategies as st

from support.examples import examples
from windowsill import InputError, SettingError, StoreError
from windowsill.files import Folder, Shadow
from windowsill.files import shadow as shadow_module
from windowsill.files.restore import restore_files

pytestmark = pytest.mark.integration

SESSION = "s"


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def shadow(work, place=None, **limits):
    return Shadow(Folder(str(work), **limits), (place or work.parent) / "store" / "files")


def contents(work):
    """Every file and link below a folder, with its bytes and whether it is a program."""
    found = {}
    for path in sorted(Path(work).iterdir()):
        if path.is_symlink():
            found[path.name] = ("link", str(path.readlink()))
        elif path.is_dir():
            found |= {f"{path.name}/{name}": value for name, value in contents(path).items()}
        else:
            found[path.name] = (bool(path.stat().st_mode & stat.S_IXUSR), path.read_bytes())
    return found


def git(folder, *arguments):
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def names(kept, tree):
    listed = kept.git("ls-tree", "--full-tree", "-r", "-z", "--name-only", tree)
    return set(listed.decode(errors="surrogateescape").split("\0")) - {""}


def test_files_come_back_byte_for_byte(work):
    """Line ends, programs, links, empty files, odd names and bytes of any kind are as they were."""
    (work / ".gitattributes").write_text("* text=auto eol=lf\n*.utf16 working-tree-encoding=UTF-16\n*.lfs filter=lfs\n")
    (work / "windows.txt").write_bytes(b"one\r\ntwo\r\n")
    (work / "text.utf16").write_bytes(b"\xff\xfeh\0i\0")
    (work / "big.lfs").write_bytes(bytes(range(256)) * 10)
    (work / "empty").touch()
    (work / "run.sh").write_text("#!/bin/sh\n")
    (work / "run.sh").chmod(0o755)
    (work / "deep" / "down").mkdir(parents=True)
    (work / "deep" / "down" / "a").write_text("a")
    (work / "out").symlink_to("/etc")
    for name in (
        "with space",
        "tab\there",
        "line\nbreak",
        "back\\slash",
        "naïve-日本",
        "-dash",
        "quote'\"",
        "a:b",
        "[x]*",
    ):
        (work / name).write_text(name)
    (work / os.fsdecode(b"not-\xff-utf8")).write_text("x")
    before = contents(work)
    kept = shadow(work)
    record = kept.record(SESSION)
    assert record.left_out == ()
    for path in work.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    assert contents(work) == {}
    restore_files(kept, SESSION, record.tree, kept.record(SESSION))
    assert contents(work) == before


FILES = st.dictionaries(
    st.sampled_from(["a", "b", "d/a", "d/e/b", "d/e/c", "c", "a/x", "b/y/z"]),
    st.one_of(st.binary(max_size=20), st.just("link"), st.just("program")),
    max_size=6,
)


def lay_out(work, files):
    """Make the folder hold exactly these files; of two that cannot stand together the first one stands."""
    for path in work.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    for name, value in files.items():
        path = work / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            continue
        if path.is_dir() or any(each.is_symlink() for each in path.parents):
            continue
        if value == "link":
            path.symlink_to("/etc")
        else:
            path.write_bytes(b"#!" if value == "program" else value)
            path.chmod(0o755 if value == "program" else 0o644)


@run(max_examples=examples(0.25))
@given(moments=st.lists(FILES, min_size=2, max_size=4), target=st.integers(0, 3))
def test_any_recorded_moment_can_be_restored_and_the_restore_undone(tmp_path_factory, moments, target):
    """Whatever files became folders, links or nothing: what was recorded comes back, and back again."""
    work = tmp_path_factory.mktemp("files") / "work"
    work.mkdir()
    kept = shadow(work)
    trees, seen = [], []
    for files in moments:
        lay_out(work, files)
        seen.append(contents(work))
        trees.append(kept.record(SESSION).tree)
    place = target % len(moments)
    now = kept.record(SESSION)
    restore_files(kept, SESSION, trees[place], now, remove_new=True)
    assert contents(work) == seen[place]
    restore_files(kept, SESSION, now.tree, kept.record(SESSION))
    assert contents(work) == seen[-1]


def test_many_files_are_recorded_in_one_pack_byte_for_byte(work, monkeypatch):
    """A first record of a large folder writes few files, and what it holds is the same."""
    (work / ".gitattributes").write_text("* text=auto eol=crlf\n")
    for number in range(20):
        (work / str(number)).write_bytes(b"line\n" * number + b"\r\n\0")
    alone = Shadow(Folder(str(work)), work.parent / "another").record(SESSION).tree
    monkeypatch.setattr(shadow_module, "MANY", 20)
    kept = shadow(work)
    record = kept.record(SESSION)
    assert record.tree == alone
    assert len(list((kept.repository / "objects" / "pack").glob("*.pack"))) == 1


def test_an_unchanged_folder_gives_the_same_record(work):
    """A record is named by what it holds."""
    (work / "a").write_text("a")
    kept = shadow(work)
    assert kept.record(SESSION) == kept.record("another session")


def test_what_the_users_git_ignores_is_left_alone(work):
    """Rules of folders, of the repository and of the user count; a folder inside a repository has those above it."""
    git(work, "init", "--quiet")
    (work / ".gitignore").write_text("*.log\n")
    (work / ".git" / "info" / "exclude").write_text("private\n")
    part = work / "part"
    part.mkdir()
    for name in ("a.log", "private", "kept"):
        (part / name).write_text(name)
    kept = shadow(part, work.parent)
    assert names(kept, kept.record(SESSION).tree) == {"kept"}
    whole = shadow(work)
    assert names(whole, whole.record(SESSION).tree) == {".gitignore", "part/kept"}
    assert git(work, "status", "--porcelain").splitlines() == ["?? .gitignore", "?? part/"]


def test_the_users_repository_is_not_touched(work):
    """No object, ref, index or setting of theirs changes, and none of their hooks or filters runs."""
    git(work, "init", "--quiet")
    (work / "a").write_text("a")
    git(work, "add", "a")
    ran = work.parent / "ran"
    hook = work / ".git" / "hooks" / "post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
    hook.chmod(0o755)
    git(work, "config", "filter.bad.clean", f"touch {ran}; cat")
    git(work, "config", "core.fsmonitor", f"touch {ran}; false")
    (work / ".gitattributes").write_text("* filter=bad\n")
    before = contents(work / ".git")
    kept = shadow(work)
    record = kept.record(SESSION)
    (work / "a").write_text("b")
    restore_files(kept, SESSION, record.tree, kept.record(SESSION))
    assert (work / "a").read_text() == "a"
    assert contents(work / ".git") == before
    assert not ran.exists()


def test_settings_of_the_environment_do_not_lead_elsewhere(work, monkeypatch):
    """A hook of the user's git sets variables that name their repository."""
    (work / "a").write_text("a")
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY"):
        monkeypatch.setenv(name, str(work.parent / "elsewhere"))
    kept = shadow(work)
    assert names(kept, kept.record(SESSION).tree) == {"a"}
    assert not (work.parent / "elsewhere").exists()


def test_the_store_inside_the_folder_is_no_part_of_the_record(work):
    """Sessions that are kept in the project do not record themselves."""
    (work / "a").write_text("a")
    kept = Shadow(Folder(str(work)), work / ".windowsill" / "files")
    kept.record(SESSION)
    assert names(kept, kept.record(SESSION).tree) == {"a"}


def test_a_large_file_is_left_out_and_never_overwritten(work):
    """It is named with its size; the small file that it was does not come back over it."""
    (work / "data").write_bytes(b"small")
    kept = shadow(work, largest_file=1_000)
    small = kept.record(SESSION)
    (work / "data").write_bytes(b"x" * 1_001)
    now = kept.record(SESSION)
    assert [str(each) for each in now.left_out] == ["data: 1,001 bytes, more than the 1,000 that are recorded"]
    restored = restore_files(kept, SESSION, small.tree, now)
    assert [str(each) for each in restored.left_alone] == ["data: it is there, and could not be recorded as it is now"]
    assert (work / "data").stat().st_size == 1_001


def test_a_file_of_half_a_gigabyte_costs_no_reading(work):
    """It is left out by its size, whatever it holds."""
    with (work / "film").open("wb") as file:
        file.truncate(500_000_000)
    kept = shadow(work)
    assert [each.path for each in kept.record(SESSION).left_out] == ["film"]


def test_a_repository_inside_is_left_out_and_named(work):
    """What it holds is kept by a git of its own."""
    (work / "inner").mkdir()
    git(work / "inner", "init", "--quiet")
    (work / "inner" / "a").write_text("a")
    (work / "b").write_text("b")
    kept = shadow(work)
    record = kept.record(SESSION)
    assert [str(each) for each in record.left_out] == ["inner/: it is a git repository of its own"]
    assert names(kept, record.tree) == {"b"}


def test_a_link_out_of_the_folder_is_not_followed(work):
    """Neither when files are recorded nor when they are restored."""
    outside = work.parent / "outside"
    outside.mkdir()
    (work / "d").mkdir()
    (work / "d" / "a").write_text("inside")
    kept = shadow(work)
    record = kept.record(SESSION)
    shutil.rmtree(work / "d")
    (work / "d").symlink_to(outside)
    (outside / "a").write_text("somebody else's")
    now = kept.record(SESSION)
    assert names(kept, now.tree) == {"d"}
    restore_files(kept, SESSION, record.tree, now)
    assert (outside / "a").read_text() == "somebody else's"
    assert not (work / "d").is_symlink()
    assert (work / "d" / "a").read_text() == "inside"


def test_a_file_that_cannot_be_read_is_left_out(work, monkeypatch):
    """The others are recorded."""
    for name in "abcdefg":
        (work / name).write_text(name)
    real = Shadow._run

    def run_git(self, arguments, input):
        # Root may read everything: git's answer to a file that it may not read.
        if input and b"c\0" in input and "--add" in arguments:
            return subprocess.CompletedProcess((), 128, b"", b'error: open("c"): Permission denied\nfatal: c')
        return real(self, arguments, input)

    monkeypatch.setattr(Shadow, "_run", run_git)
    kept = shadow(work)
    record = kept.record(SESSION)
    assert [str(each) for each in record.left_out] == ['c: git cannot read it (open("c"): Permission denied)']
    assert names(kept, record.tree) == set("abdefg")


def test_a_file_that_changes_while_it_is_read_is_read_again_or_left_out(work, monkeypatch):
    """A record never holds half of one content and half of another."""
    (work / "calm").write_text("calm")
    (work / "busy").write_text("0")
    real = Shadow._add
    writes = iter(range(1, 100))

    def add(self, paths):
        found = real(self, paths)
        (work / "busy").write_text(f"version {next(writes)}")
        return found

    monkeypatch.setattr(Shadow, "_add", add)
    kept = shadow(work)
    record = kept.record(SESSION)
    assert [str(each) for each in record.left_out] == ["busy: it changes all the time while it is read"]
    assert names(kept, record.tree) == {"calm"}
    monkeypatch.setattr(Shadow, "_add", real)
    assert names(kept, kept.record(SESSION).tree) == {"busy", "calm"}


@pytest.mark.parametrize("place", ["home", "above home", "root"])
def test_a_folder_that_holds_everything_is_refused(place, tmp_path, monkeypatch):
    """A home folder and the root are no project."""
    home = tmp_path / "home" / "me"
    home.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    path = {"home": home, "above home": home.parent, "root": "/"}[place]
    with pytest.raises(InputError, match="far more than one project"):
        Folder(str(path)).check()


def test_more_than_the_limits_is_refused_with_what_to_do(work):
    """Bytes of one record, files, time: each names the remedy."""
    for number in range(20):
        (work / str(number)).write_text("x" * 100)
    with pytest.raises(InputError, match=r"2,000 bytes .* raise largest_record"):
        shadow(work, largest_record=1_999).record(SESSION)
    with pytest.raises(InputError, match=r"about 20 files, more than the 19 .* raise most_files"):
        shadow(work, most_files=19).record(SESSION)
    with pytest.raises(StoreError, match=r"more than 1e-06 seconds"):
        shadow(work, seconds=1e-6).record(SESSION)
    with pytest.raises(SettingError, match="largest_file"):
        shadow(work, largest_file=0)
    assert shadow(work).record(SESSION).left_out == ()


def test_a_file_that_nothing_recorded_is_not_removed(work):
    """It is named; `remove_new` removes it, and the record made just before has it."""
    (work / "a").write_text("a")
    kept = shadow(work)
    first = kept.record(SESSION).tree
    (work / "new").write_text("new")
    now = kept.record("another session")
    restored = restore_files(kept, SESSION, first, now)
    assert [str(each) for each in restored.left_alone] == [
        "new: it is new since, and no checkpoint or step recorded it"
    ]
    assert (work / "new").exists()
    restore_files(kept, SESSION, first, now, remove_new=True)
    assert not (work / "new").exists()
    restore_files(kept, SESSION, now.tree, kept.record(SESSION))
    assert (work / "new").read_text() == "new"


def changed(work, monkeypatch, fails):
    """Return a folder's shadow, a record with its three files old, and one with them new; renames then fail as said."""
    kept = shadow(work)
    records = []
    for text in ("old", "new"):
        for name in "abc":
            (work / name).write_text(text)
        records.append(kept.record(SESSION))
    real, calls = os.rename, []

    def rename(source, target, **options):
        calls.append(target)
        if fails(len(calls)):
            raise OSError(28, "No space left on device")
        return real(source, target, **options)

    monkeypatch.setattr(os, "rename", rename)
    return kept, *records


def test_a_restore_that_fails_in_the_middle_leaves_everything_as_it_was(work, monkeypatch):
    """All files or none."""
    kept, first, now = changed(work, monkeypatch, lambda call: call == 2)
    with pytest.raises(StoreError, match=r"are as they were.*No space left"):
        restore_files(kept, SESSION, first.tree, now)
    assert {name: value[1] for name, value in contents(work).items()} == dict.fromkeys("abc", b"new")


def test_a_restore_that_cannot_be_undone_says_which_files_are_restored(work, monkeypatch):
    """Nobody is told that all is well when it is not."""
    kept, first, now = changed(work, monkeypatch, lambda call: call > 1)
    with pytest.raises(StoreError, match=r"so did undoing it.*1 of 3 are as wanted \(a\)"):
        restore_files(kept, SESSION, first.tree, now)


def test_a_record_that_is_damaged_changes_no_file(work):
    """A content that is missing is found before the first file is touched."""
    (work / "a").write_text("old")
    (work / "b").write_text("also old")
    kept = shadow(work)
    first = kept.record(SESSION).tree
    for name in "ab":
        (work / name).write_text("new")
    now = kept.record(SESSION)
    id = kept.git("rev-parse", f"{first}:b").decode().strip()
    (kept.repository / "objects" / id[:2] / id[2:]).unlink()
    with pytest.raises(StoreError, match="missing"):
        restore_files(kept, SESSION, first, now)
    assert (work / "a").read_text() == "new"


def test_what_a_killed_process_left_behind_stops_nobody(work):
    """A lock of git's own and a folder of contents that never took their places."""
    (work / "a").write_text("old")
    kept = shadow(work)
    first = kept.record(SESSION).tree
    (work / "a").write_text("new")
    next(kept.repository.glob("index-*")).with_name(f"{next(kept.repository.glob('index-*')).name}.lock").touch()
    (work / ".windowsill-restore-dead").mkdir()
    now = kept.record(SESSION)
    restore_files(kept, SESSION, first, now)
    assert contents(work) == {"a": (False, b"old")}


def test_two_that_record_at_once_wait_for_each_other(work):
    """Each record is whole."""
    for number in range(30):
        (work / str(number)).write_text(str(number))
    trees = []

    def record():
        trees.append(shadow(work).record(SESSION).tree)

    threads = [threading.Thread(target=record) for _ in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(trees) == 6
    assert len(set(trees)) == 1


@pytest.mark.parametrize("many", [500, 1], ids=["a file each", "one pack"])
def test_forgetting_a_session_deletes_what_no_other_has(work, monkeypatch, many):
    """Contents that another session recorded stay."""
    monkeypatch.setattr(shadow_module, "MANY", many)
    (work / "shared").write_text("shared")
    kept = shadow(work)
    other = kept.record("other").tree
    (work / "own").write_text("own")
    tree = kept.record(SESSION).tree
    id = kept.git("rev-parse", f"{tree}:own").decode().strip()
    kept.forget(SESSION)
    assert not kept.has(tree)
    assert kept.has(other)
    assert subprocess.run(["git", "--git-dir", kept.repository, "cat-file", "-e", id], check=False).returncode == 1
    kept.forget("other")
    left = {path.parent.name for path in (kept.repository / "objects").rglob("*") if path.is_file()}
    assert left <= {"info"}
    assert names(kept, kept.record(SESSION).tree) == {"own", "shared"}


def test_without_git_a_clear_error_says_so(work, monkeypatch):
    """The program is named."""
    monkeypatch.setattr(shadow_module.shutil, "which", lambda _: None)
    with pytest.raises(InputError, match="install git"):
        shadow(work)


def test_records_are_readable_by_their_owner_alone(work):
    """They hold what the files hold."""
    (work / "a").write_text("a")
    kept = shadow(work)
    kept.record(SESSION)
    assert stat.S_IMODE(kept.repository.stat().st_mode) == 0o700
