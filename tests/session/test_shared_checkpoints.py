"""Checkpoints of a session that several threads and processes share: none is lost, none is made twice."""

import subprocess
import sys
import threading

import pytest

from support.sessions import opened, talk
from support.stores import child_env
from windowsill import InputError, Session
from windowsill.session.checkpoints import Automatic
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.integration

FIFTY = Automatic(seconds=None, messages=50, tokens=None, on_phase=False)


def ids(found):
    return [each.id for each in found]


class Overtaken(MemoryStore):
    """Lets somebody else write first, once."""

    meanwhile = None

    def append(self, *args, **extras):
        act, self.meanwhile = self.meanwhile, None
        if act is not None:
            act()
        super().append(*args, **extras)


def test_a_checkpoint_that_loses_a_race_names_what_is_there_then():
    """It counts the message that somebody else added first."""
    store = Overtaken()
    session, other = opened(store), opened(store)
    talk(session, 1)
    store.meanwhile = lambda: other.add("from the other")
    made = session.checkpoint("here")
    assert (made.messages, made.entry, made.tokens) == (4, 4, session.view.tokens())
    assert session.verify() == []


def test_two_that_forget_at_once_forget_nothing_twice():
    """The one that comes second has nothing left to do."""
    store = Overtaken()
    session, other = opened(store), opened(store)
    for _ in range(5):
        session.checkpoint()
    counts = []
    store.meanwhile = lambda: counts.append(other.checkpoints.clean_up(2))
    counts.append(session.checkpoints.clean_up(2))
    assert counts == [3, 0]
    assert len(session.checkpoints()) == 2


def test_a_restore_that_loses_a_race_loses_no_message():
    """What the other added is on the branch that was left."""
    store = Overtaken()
    session, other = opened(store), opened(store)
    talk(session, 1)
    session.checkpoint("here")
    store.meanwhile = lambda: other.add("from the other", id="theirs")
    session.restore("here")
    assert [message.id for message in session.messages()] == ["m1", "m2", "m3"]
    session.switch("theirs")
    assert [message.id for message in session.messages()][-1] == "theirs"


def test_two_processes_make_one_checkpoint_of_one_occasion():
    """The one that comes second looks again, and none is due any more."""
    store = Overtaken()
    session, other = opened(store, budget=1_000_000), opened(store)
    session.extend([f"word {number}" for number in range(50)])
    store.meanwhile = lambda: other.checkpoints.make_if_due(FIFTY)
    assert session.checkpoints.make_if_due(FIFTY) is None
    assert [each.reason for each in session.checkpoints()] == ["messages"]
    assert session.verify() == []


def test_what_another_process_checkpoints_is_listed_at_once(store):
    """Nothing has to be done to see it."""
    session, other = opened(store), opened(store)
    made = other.checkpoint("theirs")
    assert session.checkpoints() == [made]


def test_what_another_process_checkpoints_can_be_restored_at_once(store):
    """And the other one goes there too."""
    session, other = opened(store), opened(store)
    talk(other, 1)
    made = other.checkpoint("theirs")
    assert session.restore("theirs") == made
    session.add("Another way.")
    assert [message.text for message in session.messages()][-1] == "Another way."
    other.journal.refresh()
    assert other.view.items == session.view.items


def test_threads_share_a_session():
    """Each checkpoint is its own."""
    session = opened()
    made = []
    threads = [threading.Thread(target=lambda: made.extend(session.checkpoint() for _ in range(20))) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sorted(ids(made)) == sorted(ids(session.checkpoints(None)))
    assert len(set(ids(made))) == 80


WORKER = """
import sys
from support.sessions import opened

session = opened(sys.argv[1])
for number in range(15):
    session.add(f"{sys.argv[2]} {number}")
    session.checkpoint(f"{sys.argv[2]}-{number}")
"""


def test_processes_share_a_session(tmp_path):
    """No checkpoint is lost, and the history is whole."""
    opened(tmp_path).close()
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, str(tmp_path), name], env=child_env()) for name in ("a", "b")
    ]
    assert [worker.wait() for worker in workers] == [0, 0]
    with opened(tmp_path) as session:
        names = {each.name for each in session.checkpoints(None)}
        assert names == {f"{name}-{number}" for name in ("a", "b") for number in range(15)}
        assert session.verify() == []
        assert session.restore("a-14").messages >= 15


class Crowded(MemoryStore):
    """Lets somebody else begin a session of the same name first."""

    def create(self, session, **fields):
        if self.info(session) is None:
            super().create(session, **fields)
            opened(self, session).add("theirs first")
        return super().create(session, **fields)


def test_a_session_that_somebody_else_begins_meanwhile_is_theirs(tmp_path):
    """Filling it from a snapshot is refused, and nothing of it goes."""
    made = opened()
    made.add("ours")
    path, store = made.write_snapshot(tmp_path), Crowded()
    with pytest.raises(InputError, match="there is a session 's' already"):
        Session.from_snapshot(path, store=store)
    assert [message.text for message in Session.open("s", store=store).messages()] == ["theirs first"]
