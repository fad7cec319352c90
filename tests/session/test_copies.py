"""Whole sessions move between stores of every kind, and nothing of them changes."""

import sqlite3
from itertools import permutations
from pathlib import Path

import pytest

from support.stores import STORES
from windowsill import Session
from windowsill.errors import InputError, WindowsillError
from windowsill.messages import text_message
from windowsill.search.archive import Archive
from windowsill.session.copies import copy_facts, copy_session
from windowsill.session.integrity import problems
from windowsill.store import Store

pytestmark = pytest.mark.integration


def fill(store: Store) -> str:
    """A session with something of everything; the ref of a kept output."""
    with Session.open("a", store=store, model="claude-sonnet-4-5", window=4_000, config=False) as session:
        session.add("The task: find the port.")
        for number in range(12):
            call = {"type": "tool_use", "id": f"t{number}", "name": "read", "input": {"path": f"src/{number}.py"}}
            session.add({"role": "assistant", "content": [call]})
            output = "\n".join(f"{each:04} file {number} says port {each * 7919 % 1000}" for each in range(40))
            result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": output}
            session.add({"role": "user", "content": [result]})
            session.compose_sync(system="You mend software.")
        session.checkpoint("middle")
        session.rewind([item.id for item in session.view.items if not item.fold][-2])
        ref = session.outputs.keep([f"kept line {number}\n" for number in range(500)])
        session.archive.store([text_message("user", "a walnut by hand")])
    return ref.id


@pytest.mark.parametrize(("here", "there"), list(permutations(STORES, 2)))
def test_a_session_is_the_same_in_another_store(tmp_path: Path, here: str, there: str):
    """Entries, outputs, views, places and what was stored by hand arrive; the copy is sound and goes on."""
    source, target = STORES[here](tmp_path), STORES[there](tmp_path)
    ref = fill(source)
    info = source.info("a")
    assert copy_session(source, target, "a") == info.version
    assert target.info("a") == info
    assert target.read("a", 1, info.version) == source.read("a", 1, info.version)
    assert target.blob_ids("a", "") == source.blob_ids("a", "")
    assert target.snapshot("a", info.version) == source.snapshot("a", info.version)
    assert problems(target, info) == target.check() == []
    with Session.open("a", store=source, config=False) as old, Session.open("a", store=target, config=False) as new:
        assert new.view.items == old.view.items
        assert new.outputs.read(ref) == old.outputs.read(ref)
    with Archive(target, "a") as archive:
        assert archive.retrieve("walnut", 1)[0].text == "a walnut by hand"
    source.close()
    target.close()


def say(store: Store, *texts: str) -> None:
    with Session.open("s", store=store, model="gpt-4o", config=False) as session:
        session.extend([{"role": "user", "content": text} for text in texts])


def test_a_copy_goes_on_where_it_stopped(tmp_path: Path):
    """What is there already is not written again; the rest follows, and the settings as they are now."""
    source, target = STORES["memory"](tmp_path), STORES["sqlite"](tmp_path)
    say(source, "one", "two", "three")
    assert copy_session(source, target, "s") == 3
    say(source, "four", "five")
    source.set_settings("s", b'{"model":"gpt-5"}')
    assert copy_session(source, target, "s") == 2
    assert copy_session(source, target, "s") == 0
    assert target.read("s", 1, 9) == source.read("s", 1, 9)
    assert target.info("s") == source.info("s")
    target.close()


def test_another_session_of_the_same_id_is_left_alone(tmp_path: Path):
    """A copy never overwrites, neither what differs nor what is longer."""
    source, target = STORES["memory"](tmp_path), STORES["memory"](tmp_path)
    say(source, "one")
    say(target, "another")
    before = target.read("s", 1, 9)
    with pytest.raises(InputError, match="another session 's' already"):
        copy_session(source, target, "s")
    assert target.read("s", 1, 9) == before


def test_a_damaged_session_is_not_copied(tmp_path: Path):
    """The copy would look as if it had always been so."""
    source, target = STORES["sqlite"](tmp_path), STORES["memory"](tmp_path)
    say(source, "one", "two")
    with sqlite3.connect(source.path) as db:
        db.execute("UPDATE body SET data = 'x' WHERE key & 4294967295 = 2")
    with pytest.raises(WindowsillError, match=r"not whole|damaged"):
        copy_session(source, target, "s")
    assert target.sessions() == []
    source.close()


def test_learned_facts_go_along_unless_others_are_there(tmp_path: Path):
    """What the target knows wins."""
    source, target = STORES["memory"](tmp_path), STORES["memory"](tmp_path)
    source.remember("window/a", b"1")
    source.remember("window/b", b"1")
    target.remember("window/b", b"2")
    assert copy_facts(source, target) == 1
    assert target.facts("") == {"window/a": b"1", "window/b": b"2"}
