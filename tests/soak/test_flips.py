"""One changed byte anywhere in a database: either it is noticed, or it changes nothing that is read back."""

import random
import shutil
import sqlite3
import tempfile
from contextlib import closing, contextmanager
from functools import cache
from itertools import count
from pathlib import Path

import pytest

from windowsill import Session, WindowsillError
from windowsill.store.sqlite import SQLiteStore

pytestmark = pytest.mark.integration

FLIPS = 12
"""Changes in `make test`: each opens, reads and checks a whole database, which takes a second."""

REFUSED = "refused"


def clock():
    ticks = count(1_700_000_000)
    return lambda: float(next(ticks))


def fill(folder: Path) -> str:
    """Fill a store with something of everything; return the ref of a kept output."""
    line = {"model": "claude-sonnet-4-5", "window": 4_000, "strategy": "outputs+condense"}
    with Session.open("a", store=folder, clock=clock(), **line) as session:
        session.add("The task: find the port. Never touch production.")
        for number in range(40):
            call = {"type": "tool_use", "id": f"t{number}", "name": "read", "input": {"path": f"src/{number}.py"}}
            session.add({"role": "assistant", "content": [{"type": "text", "text": f"step {number}"}, call]})
            lines = "\n".join(f"{each:04} file {number} says port {each * 7919 % 1000}" for each in range(30))
            output = "same output " * 200 if number % 10 == 9 else lines
            result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": output}
            session.add({"role": "user", "content": [result]})
            if number % 4 == 0:
                session.compose_sync(system="You mend software.")
        session.checkpoint("middle")
        session.state.set_goal("Mend it", ["all tests pass"])
        session.unfold(session.folds[0].id)
        session.rewind(session.view.items[-3].id)
        session.pin(session.view.items[-1].id)
        ref = session.outputs.keep([f"kept line {number}\n" for number in range(500)])
        session.add({"role": "assistant", "content": [{"type": "tool_use", "id": "k", "name": "read", "input": {}}]})
        kept = {"type": "tool_result", "tool_use_id": "k", "content": "kept"}
        session.add({"role": "user", "content": [kept]}, outputs={"k": ref})
        session.archive.retrieve("port", 3)
        session.compose_sync(system="You mend software.")
    with closing(sqlite3.connect(folder / "sessions.db")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return ref.id


def read_back(folder: Path, ref: str) -> dict[str, object]:
    """Return everything a user can read, by what it is, and under `verify` what is said to be wrong."""
    found: dict[str, object] = {}

    def attempt(name, read):
        # Anything but an error of ours fails the test.
        try:
            found[name] = read()
        except WindowsillError:
            found[name] = REFUSED

    try:
        store = SQLiteStore(folder / "sessions.db")
    except WindowsillError:
        return {"store": REFUSED, "verify": ["it cannot be opened"]}
    with closing(store):
        # Before it is opened, which mends what can be mended.
        found["check"] = store.check("a")
        try:
            session = Session.open("a", store=store, clock=clock())
        except WindowsillError:
            return {"open": REFUSED, "verify": ["it cannot be opened"]}
        attempt("verify", session.verify)
        attempt("settings", lambda: session.settings)
        attempt("messages", lambda: [(each.id, each.role, each.raw, each.blocks) for each in session.messages()])
        attempt("view", lambda: [(item.id, item.role, session.view.read(item).blocks) for item in session.view.items])
        attempt("folds", lambda: [(fold.id, fold.kind, fold.reason, fold.active) for fold in session.folds])
        attempt("branches", lambda: session.branches)
        attempt("audit", lambda: session.audit)
        attempt("requests", lambda: [session.request(call.id) for call in session.calls])
        attempt("checkpoints", lambda: session.checkpoints(None))
        attempt("state", lambda: session.state.value)
        attempt("output", lambda: session.outputs.read(ref, 1, 500))
        attempt("by id", lambda: [session.message(f"m{number}").raw for number in (1, 2, 3)])
        attempt("search", lambda: [(each.message_id, each.text) for each in session.archive.retrieve("port file", 8)])
        attempt("payload", lambda: session.compose_sync(system="You mend software.").body())
        attempt("again", lambda: repeat_output(session))
    return found


def repeat_output(session: Session) -> str:
    """Add an output that was said before, and read it back from the store."""
    session.add({"role": "assistant", "content": [{"type": "tool_use", "id": "z", "name": "read", "input": {}}]})
    result = {"type": "tool_result", "tool_use_id": "z", "content": "same output " * 200}
    id = session.add({"role": "user", "content": [result]})
    with Session.open("a", store=session.journal.store, clock=clock()) as again:
        return again.message(id).results[0].content[0].text


@cache
def original():
    """Return a database, its pages by table or index, and what is read from it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "sessions.db"
        ref = fill(Path(folder))
        data = file.read_bytes()
        with closing(sqlite3.connect(file)) as db:
            (size,) = db.execute("PRAGMA page_size").fetchone()
            pages: dict[str, list[int]] = {}
            for name, page in db.execute("SELECT name, pageno FROM dbstat"):
                pages.setdefault(name, []).append((page - 1) * size)
    with copy(data) as place:
        good = read_back(place, ref)
    assert (good["check"], good["verify"]) == ([], [])
    assert REFUSED not in good.values()
    return data, size, sorted(pages.items()), ref, good


@contextmanager
def copy(data: bytes):
    folder = Path(tempfile.mkdtemp())
    try:
        (folder / "sessions.db").write_bytes(data)
        yield folder
    finally:
        shutil.rmtree(folder)


def test_a_changed_byte_is_noticed_or_changes_nothing(tally):
    """The same share for each table and index, most of it in bytes that are in use; no raw error for any of them."""
    data, size, pages, ref, good = original()

    def trial(rng: random.Random) -> list[str]:
        name, places = rng.choice(pages)
        start = rng.choice(places)
        used = [place for place in range(start, start + size) if data[place]]
        place = rng.choice(used) if used and rng.random() < 0.98 else rng.randrange(start, start + size)
        changed = bytearray(data)
        changed[place] ^= rng.randrange(1, 256)
        with copy(bytes(changed)) as folder:
            got = read_back(folder, ref)
        if got["verify"] or got.get("check"):
            tally.count("flips: noticed")
            return []
        return [f"{name}, byte {place}: {key}" for key, value in got.items() if value != good[key]]

    tally.run("flips: bytes", FLIPS, trial)
    tally.check()
