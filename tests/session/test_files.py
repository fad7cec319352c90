"""Files with the conversation: recorded at checkpoints and after steps, and brought back with it, both or neither."""

import contextlib
import sqlite3

import pytest

from support.cli_calls import call
from support.sessions import opened, talk, turn
from windowsill import InputError, Session, StoreError
from windowsill.files import Folder
from windowsill.session import checkpoints
from windowsill.session.export import export_session, import_session
from windowsill.session.snapshots import delete_session
from windowsill.store.memory import MemoryStore
from windowsill.store.sqlite import SQLiteStore

pytestmark = pytest.mark.integration


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "main.py").write_text("print('one')\n")
    return folder


@pytest.fixture
def store(tmp_path):
    made = SQLiteStore(tmp_path / "kept" / "sessions.db")
    yield made
    made.close()


def words(session):
    return [message.text for message in session.messages()]


def test_a_checkpoint_brings_back_conversation_and_files(store, work):
    """Nothing but the folder was stated; what was left can be returned to in the same way."""
    session = opened(store, files=work)
    talk(session, 2)
    before = words(session)
    session.checkpoint("start")
    talk(session, 2, start=2)
    after = words(session)
    (work / "main.py").write_text("print('two')\n")
    session.checkpoint("later")
    restored = session.restore("start")
    assert words(session) == before
    assert (work / "main.py").read_text() == "print('one')\n"
    assert restored.notes[0].startswith("1 file written, 0 removed; to undo: restore l")
    session.restore(restored.notes[0].rpartition(" ")[2])
    assert words(session) == after
    assert (work / "main.py").read_text() == "print('two')\n"


def test_a_file_that_only_a_restore_recorded_is_never_removed(store, work):
    """The record that lets a restore be undone is no reason for the next one to remove what nobody recorded."""
    session = opened(store, files=work)
    talk(session, 2)
    session.checkpoint("start")
    (work / "main.py").write_text("print('two')\n")
    session.checkpoint("later")
    (work / "mine.txt").write_text("notes")
    for name in ("start", "later", "start"):
        assert "left alone: mine.txt" in " ".join(session.restore(name).notes)
    assert (work / "mine.txt").read_text() == "notes"


@pytest.mark.parametrize(("what", "text", "messages"), [("files", "one", 9), ("conversation", "two", 5)])
def test_files_or_conversation_alone_can_be_restored(store, work, what, text, messages):
    """The other one stays as it is."""
    session = opened(store, files=str(work))
    talk(session, 2)
    session.checkpoint("start")
    talk(session, 2, start=2)
    (work / "main.py").write_text("print('two')\n")
    session.restore("start", what)
    assert text in (work / "main.py").read_text()
    assert len(words(session)) == messages


def test_the_setting_is_kept_with_the_session(store, work):
    """Whoever opens it again restores both."""
    with opened(store, files=work) as session:
        talk(session, 1)
        session.checkpoint("start")
    (work / "main.py").write_text("changed")
    with Session.open("s", store=store) as again:
        again.restore("start")
    assert (work / "main.py").read_text() == "print('one')\n"


def test_a_conversation_that_cannot_be_moved_leaves_the_files_as_they_are(store, work, monkeypatch):
    """Both or neither."""
    session = opened(store, files=work)
    talk(session, 1)
    session.checkpoint("start")
    (work / "main.py").write_text("changed")

    def fail(*_):
        raise StoreError("the disk is full")

    monkeypatch.setattr(checkpoints, "move", fail)
    with pytest.raises(StoreError, match="disk is full"):
        session.restore("start")
    assert (work / "main.py").read_text() == "changed"


def test_files_are_recorded_after_each_step_of_tools(store, work):
    """A rewind to a message brings back the files of that moment, not only those of checkpoints."""
    session = opened(store, files=work)
    session.add({"role": "user", "content": "Mend it."})
    places = []
    for number in range(3):
        for message in turn(number):
            session.add(message)
        (work / "main.py").write_text(f"version {number}")
        (work / f"made-{number}").write_text("new")
        assert session.checkpoints.make_if_due() is None
        places.append(session.view.items[-1].id)
    assert session.checkpoints() == []
    entry = session.rewind(places[0], files=True)
    assert session.journal.entry(session.journal.seq_of(entry)).kind == "rewind"
    assert (work / "main.py").read_text() == "version 0"
    assert sorted(each.name for each in work.iterdir()) == ["made-0", "main.py"]


def test_a_step_that_changed_no_file_adds_nothing(store, work):
    """The history does not grow with what did not happen."""
    session = opened(store, files=work)
    talk(session, 1)
    session.checkpoints.make_if_due()
    version = session.journal.version
    for message in turn(5):
        session.add(message)
    session.checkpoints.make_if_due()
    assert session.journal.version == version + 2


def test_files_that_cannot_be_recorded_cost_no_automatic_checkpoint(store, work):
    """The checkpoint is made, and says why it has no files; one that was asked for is refused."""
    session = opened(store, files=Folder(str(work), most_files=1))
    (work / "second").write_text("x")
    talk(session, 30)
    made = session.checkpoints.make_if_due()
    assert made is not None
    assert not made.files
    assert "more than the 1 that are recorded" in made.notes[0]
    with pytest.raises(InputError, match="raise most_files"):
        session.checkpoint()


def test_what_a_record_left_out_is_in_the_checkpoint(store, work):
    """So that nobody counts on it."""
    session = opened(store, files=Folder(str(work), largest_file=100))
    (work / "film").write_bytes(b"x" * 101)
    talk(session, 1)
    assert session.checkpoint().notes == ("left out: film: 101 bytes, more than the 100 that are recorded",)


def test_a_moment_without_files_says_so(store):
    """The remedy names the setting."""
    session = opened(store)
    talk(session, 1)
    session.checkpoint("start")
    with pytest.raises(InputError, match="opened with `files`"):
        session.restore("start", "files")


def test_somebody_elses_export_names_no_folder(store, work):
    """An import records and restores nothing on this machine unless its user says so."""
    session = opened(store, files=work)
    talk(session, 1)
    session.checkpoint("start")
    lines = list(export_session(store, "s"))
    other = MemoryStore()
    import_session(other, lines)
    with Session.open("s", store=other, config=False) as imported:
        assert imported.settings.files is None
        (work / "main.py").write_text("changed")
        imported.restore("start")
    assert (work / "main.py").read_text() == "changed"


def test_deleting_a_session_deletes_its_records_of_files(store, work, tmp_path):
    """What files held is as private as what was said."""
    secret = b"a line that stands nowhere else"
    (work / "main.py").write_bytes(secret)
    session = opened(store, files=work)
    talk(session, 1)
    session.checkpoint("start")
    objects = tmp_path / "kept" / "files"
    assert any(path.is_file() for path in objects.rglob("objects/??/*"))
    delete_session(store, "s")
    assert not any(path.is_file() for path in objects.rglob("objects/??/*"))


def test_the_folder_of_a_deleted_session_may_be_gone(store, work):
    """The session goes all the same."""
    session = opened(store, files=work)
    talk(session, 1)
    session.checkpoint("start")
    (work / "main.py").unlink()
    work.rmdir()
    records = store.path.parent / "files"
    assert any(path.is_file() for path in records.rglob("objects/??/*"))
    assert delete_session(store, "s")
    assert not any(path.is_file() for path in records.rglob("objects/??/*"))


def test_a_session_whose_settings_are_damaged_can_be_deleted(store):
    """Nothing says any more which folder was recorded; the session goes all the same."""
    talk(opened(store), 1)
    with contextlib.closing(sqlite3.connect(store.path)) as database, database:
        database.execute("UPDATE session SET settings = x'00'")
    assert delete_session(store, "s")
    assert store.info("s") is None


def test_the_command_line_records_compares_and_restores(work, tmp_path):
    """`checkpoint --files`, `diff --files`, `restore` and what each prints."""
    place = str(tmp_path / "kept")
    with Session.open("s", store=place, window=20_000) as session:
        talk(session, 2)
    made = call("sessions", "checkpoint", "s", "--name", "start", "--files", str(work), "--store", place).out
    assert "files recorded" in made
    (work / "main.py").write_text("print('two')\n")
    (work / "new.py").write_text("new\n")
    shown = call("sessions", "diff", "s", "start", "--files", "--store", place).out
    assert "-print('one')\n+print('two')\n" in shown
    told = call("sessions", "restore", "s", "start", "--store", place).out
    assert "1 file written, 0 removed; to undo: restore l" in told
    assert (work / "main.py").read_text() == "print('one')\n"
    assert "left alone: new.py: it is new since" in told
    assert "1 removed" in call("sessions", "restore", "s", "start", "--remove-new", "--files", "--store", place).out
    assert not (work / "new.py").exists()
    rewound = call("sessions", "rewind", "s", "--at", "2100-01-01", "--files", "--store", place)
    assert "its files are back too (to undo both: windowsill sessions restore s l" in rewound.out, rewound.err
