"""One changed byte anywhere in a database: either it is noticed, or it changes nothing that is read back."""

import random
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing, contextmanager
from functools import cache
from itertools import count
from pathlib import Path

import psycopg
import pytest

from support import postgres
from windowsill import Session, WindowsillError
from windowsill.store import Store
from windowsill.store.postgres import PostgresStore
from windowsill.store.sqlite import SQLiteStore

pytestmark = pytest.mark.integration

FLIPS = 12
"""Changes in `make test`: each opens, reads and checks a whole database, which takes a second."""

REFUSED = "refused"


def clock():
    ticks = count(1_700_000_000)
    return lambda: float(next(ticks))


def fill(place: Path | str) -> str:
    """Fill a store with something of everything; return the ref of a kept output."""
    line = {"model": "claude-sonnet-4-5", "window": 4_000, "strategy": "outputs+condense"}
    with Session.open("a", store=place, clock=clock(), **line) as session:
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
    return ref.id


def read_back(open_store: Callable[[], Store], ref: str) -> dict[str, object]:
    """Return everything a user can read, by what it is, and under `verify` what is said to be wrong."""
    found: dict[str, object] = {}

    def attempt(name, read):
        # Anything but an error of ours fails the test.
        try:
            found[name] = read()
        except WindowsillError:
            found[name] = REFUSED

    try:
        store = open_store()
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
        with closing(sqlite3.connect(file)) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            data = file.read_bytes()
            (size,) = db.execute("PRAGMA page_size").fetchone()
            pages: dict[str, list[int]] = {}
            for name, page in db.execute("SELECT name, pageno FROM dbstat"):
                pages.setdefault(name, []).append((page - 1) * size)
    with copy(data) as place:
        good = read_back(lambda: SQLiteStore(place / "sessions.db"), ref)
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
            got = read_back(lambda: SQLiteStore(folder / "sessions.db"), ref)
        if got["verify"] or got.get("check"):
            tally.count("flips: noticed")
            return []
        return [f"{name}, byte {place}: {key}" for key, value in got.items() if value != good[key]]

    tally.run("flips: bytes", FLIPS, trial)
    tally.check()


COLUMNS = {
    "session": ("settings", "checksum"),
    "entry": ("parent", "at", "kind", "id", "meta", "hash", "body_hash", "body", "place"),
    "tip": ("seq", "hash"),
    "snapshot": ("data",),
    "blob": ("id", "data"),
}
"""What a changed row of PostgreSQL may say otherwise; changed bytes of its files are the server's to notice."""

CHANGED = {
    "bytea": "set_byte({0}, {1} % greatest(length({0}), 1), get_byte({0}, {1} % greatest(length({0}), 1)) # {2})",
    "text": "overlay({0} PLACING chr(98 + {2} % 24) FROM 1 + {1} % length({0}) FOR 1)",
    "bigint": "{0} + {2}",
    "double precision": "{0} + {2}",
}


def test_a_changed_row_of_a_server_is_noticed_or_changes_nothing(tally):
    """One value of any row of the journal is changed, in a copy of the whole database for each."""
    server = postgres.Server(durable=False)
    admin = psycopg.connect(server.conninfo, autocommit=True)
    admin.execute("CREATE DATABASE filled")

    def url(database: str) -> str:
        return f"postgresql://postgres@/{database}?host={server.folder}"

    ref = fill(url("filled"))
    names = count()

    def read_copy(change: Callable[[psycopg.Connection], object]) -> dict[str, object]:
        name = f"copy{next(names)}"
        admin.execute(f"CREATE DATABASE {name} TEMPLATE filled")
        with psycopg.connect(f"host={server.folder} user=postgres dbname={name}", autocommit=True) as db:
            change(db)
        got = read_back(lambda: PostgresStore(url(name)), ref)
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
        return got

    good = read_copy(lambda _: None)
    assert (good["check"], good["verify"]) == ([], [])
    assert REFUSED not in good.values()

    def trial(rng: random.Random) -> list[str]:
        table, columns = rng.choice(sorted(COLUMNS.items()))
        column = rng.choice(columns)

        def change(db: psycopg.Connection) -> None:
            about = "SELECT format_type(atttypid, -1) FROM pg_attribute WHERE attrelid = %s::regclass AND attname = %s"
            (kind,) = db.execute(about, [f"windowsill.{table}", column]).fetchone()
            made = CHANGED[kind].format(column, rng.randrange(1 << 20), rng.randrange(1, 256))
            filled = f" AND length({column}) > 0" if kind in ("bytea", "text") else ""
            wanted = f"SELECT ctid::text FROM windowsill.{table} WHERE true{filled} ORDER BY ctid"
            (row,) = rng.choice(db.execute(wanted).fetchall())
            db.execute(f"UPDATE windowsill.{table} SET {column} = {made} WHERE ctid = '{row}'")

        got = read_copy(change)
        if got["verify"] or got.get("check"):
            tally.count("flips: noticed on PostgreSQL")
            return []
        return [f"{table}.{column}: {key}" for key, value in got.items() if value != good[key]]

    # A copy of a database on a server takes three times as long.
    tally.run("flips: rows of PostgreSQL", FLIPS // 2, trial)
    admin.close()
    server.remove()
    tally.check()
