"""Many writers, one session: nothing is lost, nothing interleaves, everybody sees everything."""

import itertools
import subprocess
import sys
import threading

import pytest

from support import postgres
from support.conversations import result, text_block, use
from windowsill import ConflictError, Plan, Session, StoreError, Strategy
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.integration

WRITER = """
import sys
from windowsill import Session
folder, name, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
with Session.open("s", budget=3_000, tokenizer="bytes/4", store=folder) as session:
    for number in range(rounds):
        session.extend([{"role": "user", "content": f"{name} {number} {part}"} for part in "abc"])
        if number % 5 == 0:
            session.compose_sync(system="mend it")
"""


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    """The address of an empty store that processes can share."""
    return str(tmp_path) if request.param == "sqlite" else postgres.server().empty_url()


class Through:
    """A store that does something before it appends."""

    def __init__(self, store, before):
        self._store = store
        self._before = before

    def __getattr__(self, name):
        return getattr(self._store, name)

    def append(self, session, version, entries, **extras):
        self._before(entries)
        self._store.append(session, version, entries, **extras)


def opened(store, **settings):
    ticks = itertools.count(1)
    return Session.open(
        "s", store=store, clock=lambda: float(next(ticks)), **{"budget": 3_000, "tokenizer": "bytes/4", **settings}
    )


def talk(session, turns):
    session.add({"role": "user", "content": "the task"})
    for turn in range(turns):
        session.add({"role": "assistant", "content": [text_block("looking"), use(f"t{turn}")]})
        session.add({"role": "user", "content": [result(f"t{turn}", "word " * 40)]})


def said(session):
    return [message.text for message in session.messages()]


def in_threads(*works):
    """Run everything at once; what was raised."""
    raised = []

    def guarded(work):
        try:
            work()
        except Exception as error:  # noqa: BLE001 - whatever it is, the test shows it
            raised.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def test_threads_share_one_session(place):
    """Each message is there once, in the order its thread added it."""
    session = opened(place, budget=100_000)

    def writer(name):
        return lambda: [session.add({"role": "user", "content": f"{name} {number}"}) for number in range(40)]

    assert in_threads(*(writer(name) for name in "abcd")) == []
    found = said(session)
    assert len(found) == 160
    for name in "abcd":
        assert [text for text in found if text.startswith(name)] == [f"{name} {number}" for number in range(40)]
    assert session.verify() == []


def test_looking_while_others_write_raises_nothing(place):
    """Calls, folds, the audit and past requests may be asked for from any thread."""
    session = opened(place)
    talk(session, 10)

    def write():
        for number in range(60):
            session.add({"role": "user", "content": f"more {number} " + "word " * 20})

    def look():
        for _ in range(60):
            session.compose_sync(system="mend it")
            last = session.calls[-1]
            assert session.request(last.id)
            assert session.explain("m1").visible
            assert session.folds is not None
            assert session.audit is not None

    assert in_threads(write, write, look, look) == []
    ids = [item.id for item in session.view.items]
    assert len(ids) == len(set(ids))
    assert len(said(session)) == 21 + 120
    assert session.verify() == []


def test_several_sessions_on_one_id_see_each_other(place):
    """What one adds is in the other's next request."""
    first, second = opened(place), opened(place)
    first.add("from the first")
    second.add("from the second")
    first.add("again the first")
    assert said(first) == ["from the first", "from the second", "again the first"]
    second.compose_sync()
    assert said(second) == said(first)


def test_processes_share_one_session(place):
    """Nothing is lost, a batch never interleaves, the chain is whole, everybody sees all of it after a refresh."""
    watcher = opened(place)
    rounds = 15
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, place, name, str(rounds)], stderr=subprocess.PIPE)
        for name in "xyz"
    ]
    errors = [writer.communicate(timeout=120)[1].decode() for writer in writers]
    assert errors == ["", "", ""]
    watcher.compose_sync()
    found = said(watcher)
    assert sorted(found) == sorted(f"{n} {i} {part}" for n in "xyz" for i in range(rounds) for part in "abc")
    batches = [found[place : place + 3] for place in range(0, len(found), 3)]
    assert all([text[-1] for text in batch] == ["a", "b", "c"] for batch in batches)
    assert all(len({text[:-2] for text in batch}) == 1 for batch in batches)
    assert watcher.verify() == []


def test_somebody_who_was_faster_is_read_and_the_write_repeated():
    """A conflict costs one retry, and nobody is faster a second time: they wait until it is written."""
    store = MemoryStore()
    session, other = opened(store), opened(store)
    waiting = threading.Thread(target=other.add, args=("two",))
    rivals = iter([lambda: other.add("one"), waiting.start])
    session.journal.store = Through(store, lambda _: next(rivals)())
    session.add("mine")
    waiting.join()
    assert said(other) == ["one", "mine", "two"]


def test_the_state_is_shown_behind_what_somebody_added_meanwhile():
    """A message of the request itself belongs to the conversation as it is then."""
    store = MemoryStore()
    session, other = opened(store, layers="20%"), opened(store)
    talk(session, 2)
    session.state.set_goal("mend the harbour bridge")
    session.add("Go on.")
    rival = iter(["faster"])

    def other_writes(entries):
        if any(entry.kind == "message" for entry in entries) and (text := next(rival, None)):
            other.add(text)

    session.journal.store = Through(store, other_writes)
    assert "harbour" in session.compose_sync().body().decode()
    assert said(session)[-2] == "faster"
    assert session.verify() == []


def test_a_store_that_lets_others_in_is_told_and_nothing_is_half_done():
    """The caller may try again; the session is as it was."""
    store = MemoryStore()
    session, other = opened(store), opened(store)
    tries = []

    def other_writes(_):
        tries.append(1)
        other.add("faster")

    session.journal.store = Through(store, other_writes)
    with pytest.raises(ConflictError):
        session.add("mine")
    assert len(tries) == 2
    session.journal.store = store
    session.add("mine")
    assert said(session) == ["faster"] * 2 + ["mine"]


def test_a_retry_that_cannot_be_committed_is_as_if_it_never_was(tmp_path):
    """The view shows nothing that the store does not have."""
    session, other = opened(tmp_path), opened(tmp_path)
    store = session.journal.store

    class FailsAtTheEnd(Through):
        def append(self, *args, **extras):
            super().append(*args, **extras)
            raise StoreError("the disk is full", remedy="make room")

    other.add("faster")
    session.journal.store = FailsAtTheEnd(store, lambda _: None)
    with pytest.raises(StoreError, match="full"):
        session.add("mine")
    assert said(session) == said(other) == ["faster"]
    session.journal.store = store
    session.add("mine")
    other.compose_sync()
    assert said(session) == said(other) == ["faster", "mine"]
    assert session.verify() == []


@pytest.mark.parametrize("smaller", [1_000, 2_000, 3_000])
def test_two_that_reduce_at_the_same_moment_both_get_a_request(smaller):
    """A fold that somebody else's fold has overtaken is planned again, whoever planned it."""

    class Idle(Strategy):
        name = "idle"

        def plan(self, _view, _budget):
            return Plan()

    store = MemoryStore()
    session = opened(store, strategy=Idle())
    talk(session, 60)
    other = opened(store, budget=smaller, strategy=Idle())
    once = iter([True])

    def other_reduces(entries):
        if any(entry.kind == "fold" for entry in entries) and next(once, False):
            other.compose_sync()

    session.journal.store = Through(store, other_reduces)
    payload = session.compose_sync()
    assert payload.tokens <= 3_000
    assert session.verify() == []


class Full:
    """A disk that is full for a while."""

    def __init__(self, times):
        self.times = times

    def __call__(self, _):
        if self.times:
            self.times -= 1
            raise StoreError("the disk is full", remedy="make room")


@pytest.mark.parametrize("act", ["add", "extend", "fold", "mark", "rewind", "unfold", "compose"])
def test_a_disk_that_fails_leaves_the_session_as_it_was(act):
    """After the error the same call can be made again, and everything is there once."""
    store = MemoryStore()
    session = opened(store)
    talk(session, 40 if act == "compose" else 6)
    session.pin("m3")
    fold = session.fold("m4", "m5", text="short") if act == "unfold" else ""
    acts = {
        "add": lambda: session.add("more"),
        "extend": lambda: session.extend(["more", "and more"]),
        "fold": lambda: session.fold("m4", "m5", text="short"),
        "mark": lambda: session.pin("m3", off=True),
        "rewind": lambda: session.rewind("m4"),
        "unfold": lambda: session.unfold(fold),
        "compose": lambda: session.compose_sync(system="mend it"),
    }
    before = [(item.id, item.marks) for item in session.view.items], said(session), session.view.weight
    session.journal.store = Through(store, Full(2))
    for _ in range(2):
        with pytest.raises(StoreError, match="full"):
            acts[act]()
        assert ([(item.id, item.marks) for item in session.view.items], said(session), session.view.weight) == before
    acts[act]()
    again = opened(store)
    assert [item.id for item in again.view.items] == [item.id for item in session.view.items]
    assert again.view.weight == session.view.weight
    assert session.verify() == []


def test_what_was_sent_is_known_at_once():
    """From the moment a request is composed, whatever is added comes after it."""
    session = opened(MemoryStore())
    session.add("hi")
    assert session.journal.head.sent is False
    session.compose_sync()
    assert session.journal.head.sent is True
    session.add({"role": "assistant", "content": "hello"})
    assert [item.sent for item in session.view.items] == [False, True]


@pytest.mark.parametrize("fold", [False, True], ids=["from the entries", "from a snapshot"])
def test_what_was_sent_is_known_after_opening_again(fold):
    """A result that arrives in the next process is as late as it would have been in this one."""
    store = MemoryStore()
    with opened(store) as session:
        talk(session, 4)
        session.compose_sync()
        if fold:
            session.fold("m2", "m3", text="short")
    again = opened(store)
    again.add({"role": "assistant", "content": "done"})
    assert again.view.items[-1].sent is True
    assert (store.snapshot("s", 1_000) is not None) is fold
