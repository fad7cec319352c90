"""`windowsill store`: the place of the sessions as a whole, of every kind."""

from pathlib import Path

import pytest

from support import postgres
from support.cli_calls import call
from windowsill import Session

pytestmark = pytest.mark.end_to_end


@pytest.fixture
def server() -> str:
    return postgres.server().empty_url()


def say(place: object, *texts: str) -> None:
    with Session.open("s", store=place, model="gpt-4o", config=False) as session:
        session.extend([{"role": "user", "content": text} for text in texts])


def test_sessions_move_to_a_server_and_back(tmp_path: Path, server: str):
    """What is moved is found there, sound, and no longer here; a copy stays."""
    say(tmp_path / "here", "one", "two")
    assert call("store", "copy", server, "--store", tmp_path / "here", "--move").out == "moved s: 2 new entries\n"
    assert call("sessions", "list", "--store", tmp_path / "here").out == ""
    assert call("sessions", "verify", "--store", server).out == "s: sound\n"
    assert call("store", "copy", tmp_path / "back", "s", "--store", server).out == "copied s: 2 new entries\n"
    assert call("sessions", "verify", "--store", tmp_path / "back").out == "s: sound\n"
    assert call("sessions", "show", "s", "--store", server).code == 0


def test_a_store_describes_itself(tmp_path: Path, server: str):
    """Kind, place, schema, size and how much it holds."""
    for place, kind in ((tmp_path, "sqlite"), (server, "postgresql")):
        say(place, "one", "two")
        about = call("store", "info", "--json", "--store", place).json
        assert (about["kind"], about["sessions"], about["entries"]) == (kind, 1, 2)
        assert about["bytes"] > 0
        assert call("store", "check", "--store", place) == (0, "sound\n", "")


def test_a_reader_makes_no_schema(server: str):
    """A mistyped address of a server is an error, not an empty list."""
    done = call("sessions", "list", "--store", server.replace("schema=shared", "schema=nowhere"))
    assert done.code == 1
    assert "there are no sessions at" in done.err


def test_an_administrator_gets_the_sql(server: str):
    """The statements of what is missing are printed, and nothing is changed; then they are run."""
    place = server.replace("schema=shared", "schema=to_come")
    printed = call("store", "migrate", "--sql", "--store", place).out
    assert printed.startswith("BEGIN;\n")
    assert 'CREATE TABLE "to_come".entry' in printed
    assert call("store", "check", "--store", place).code == 1
    assert call("store", "migrate", "--store", place).out.endswith(": nothing is missing\n")
    assert call("store", "migrate", "--sql", "--store", place).out == "-- nothing is missing\n"


def test_a_store_is_not_copied_onto_itself(tmp_path: Path):
    """That would change nothing, and --move would delete it."""
    say(tmp_path, "one")
    done = call("store", "copy", tmp_path, "--store", tmp_path, "--move")
    assert (done.code, done.err) == (2, "windowsill: both are the same store; give another TARGET\n")


def test_a_copy_of_a_session_that_is_not_there_makes_no_store(tmp_path: Path):
    """A name that was mistyped leaves nothing behind."""
    say(tmp_path / "here", "one")
    done = call("store", "copy", tmp_path / "there", "nobody", "--store", tmp_path / "here")
    assert "there is no session 'nobody'" in done.err
    assert not (tmp_path / "there").exists()


def test_a_store_that_is_not_there_yet_is_named(tmp_path, monkeypatch):
    """`info` says where it would be, and `copy` that there is nothing to copy."""
    monkeypatch.setenv("WINDOWSILL_HOME", str(tmp_path / "home"))
    done = call("store", "info")
    assert (done.code, f"there is no store yet at {tmp_path / 'home' / 'sessions.db'}" in done.err) == (1, True)
    assert call("store", "copy", tmp_path / "copy").out == "there are no sessions to copy\n"
    assert (
        call("store", "repair", tmp_path / "new", "--store", tmp_path / "copy").out == "no session can be found in it\n"
    )
