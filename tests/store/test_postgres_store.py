"""What only PostgreSQL has to do: many machines, poolers, connections that break, workers of two versions."""

import os
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import nullcontext
from pathlib import Path

import msgspec
import psycopg
import pytest
from psycopg_pool import ConnectionPool

from support import postgres
from support.archives import Synonyms, said
from support.postgres_wire import BreakingLine, Pooler
from support.stores import chain, child_env, everything, grow, is_chain
from windowsill import Session
from windowsill.errors import ConflictError, LockedError, NotFoundError, StoreError
from windowsill.search import Archive
from windowsill.store import Place, open_store
from windowsill.store.postgres import PostgresStore
from windowsill.store.postgres import pool as pool_module
from windowsill.store.postgres import store as store_module
from windowsill.store.postgres.schema import applied, script
from windowsill.store.statements import Migration, migrations

pytestmark = pytest.mark.integration


@pytest.fixture
def url() -> str:
    return postgres.server().empty_url()


@pytest.fixture
def store(url: str):
    made = PostgresStore(url)
    made.create("s", at=1.0)
    yield made
    made.close()


def sql(statement: str, *parameters: object) -> list[tuple]:
    with psycopg.connect(postgres.server().conninfo, autocommit=True) as db:
        cursor = db.execute(statement, parameters or None)
        return cursor.fetchall() if cursor.description else []


def through(folder: Path) -> str:
    return f"postgresql://postgres@/postgres?host={folder}&schema=shared"


def test_an_append_is_one_statement(store: PostgresStore, monkeypatch: pytest.MonkeyPatch):
    """Entries, a snapshot, blobs and places go to the server together, and no row is updated."""
    statements = []
    ask = store_module.ask
    monkeypatch.setattr(store_module, "ask", lambda db, text, given: statements.append(text) or ask(db, text, given))
    store.append("s", 0, chain(3), snapshots=[(3, b"view")], blobs=[("b", b"x")], places=[(b"k", 3)])
    assert len(statements) == 1
    assert (store.snapshot("s", 9), store.blob("s", "b"), len(store.places([b"k"]))) == ((3, b"view"), b"x", 1)
    store.append("s", 3, chain(1, after=everything(store)[-1]), places=[(b"l", 4)])
    assert ("append_4" in statements[1], store.places([b"l"])) == (True, [Place(b"l", "s", 4)])


def test_one_writer_needs_one_connection(url: str):
    """A connection is given back before the call returns: whoever writes again at once has the same one again."""
    store = PostgresStore(f"{url}&application_name=alone")
    store.create("s", at=1.0)
    grow(store, 30, name="m")
    assert sql("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'alone'") == [(1,)]
    store.close()


@pytest.mark.parametrize("damage", ["DELETE FROM shared.tip", "UPDATE shared.tip SET seq = 7"])
def test_a_damaged_tip_keeps_nobody_from_writing(store: PostgresStore, damage: str):
    """The entries tell which version a session has, and the next append puts its tip right."""
    first = grow(store, 2, name="m")
    sql(damage)
    assert store.check() != []
    with pytest.raises(ConflictError):
        store.append("s", 0, first[:1])
    store.append("s", 2, chain(1, after=first[-1]))
    assert ([entry.seq for entry in everything(store)], store.check()) == ([1, 2, 3], [])


@pytest.mark.parametrize("first_statement", ["DELETE FROM shared.session", "SELECT key FROM shared.session FOR UPDATE"])
def test_an_append_to_a_session_that_is_deleted_meanwhile_finds_none(url: str, first_statement: str):
    """It waits for whoever deletes the session while it holds nothing that the other needs: no deadlock."""
    store = PostgresStore(url)
    store.create("s", at=1.0)
    (first,) = grow(store, 1, name="m")
    failures = []
    if "DELETE" not in first_statement:
        # Whoever knows the session by its tip does not wait for its row.
        store.close()
        store = PostgresStore(url)

    def write() -> None:
        try:
            store.append("s", 1, chain(1, after=first))
        except NotFoundError as error:
            failures.append(error)

    writer = threading.Thread(target=write)
    with psycopg.connect(postgres.server().conninfo) as db:
        db.execute(first_statement)
        writer.start()
        while not sql("SELECT 1 FROM pg_locks WHERE NOT granted"):
            time.sleep(0.01)
        db.execute("DELETE FROM shared.session")
    writer.join()
    store.close()
    assert (len(failures), sql("SELECT count(*) FROM shared.entry")) == (1, [(0,)])


def test_a_deletion_takes_what_is_appended_meanwhile_too(store: PostgresStore):
    """It waits for an append that has moved the tip; no entry stays behind without its session."""
    (first,) = grow(store, 1, name="m")
    (e,) = chain(1, after=first)
    deleter = threading.Thread(target=store.delete, args=("s",))
    with psycopg.connect(postgres.server().conninfo) as db:
        ((key,),) = sql("SELECT key FROM shared.session")
        row = (key, first.hash, e.parent, e.kind, e.id, e.at, e.meta, e.hash, e.body_hash, e.body)
        kinds = "%s::bigint, %s::bytea, %s::bigint, %s, %s, %s::float8, %s::bytea, %s::bytea, %s::bytea, %s::bytea, ''"
        assert db.execute(f"CALL shared.append_4('s', 1::bigint, {kinds})", row).fetchone() == (1, key)
        assert sql("SELECT 1 FROM pg_locks WHERE relation = 'shared.session'::regclass") == []
        deleter.start()
        while not sql("SELECT 1 FROM pg_locks WHERE NOT granted"):
            time.sleep(0.01)
    deleter.join()
    assert sql("SELECT count(*) FROM shared.entry") == sql("SELECT count(*) FROM shared.tip") == [(0,)]


def test_the_end_that_a_worker_remembers_is_only_a_hint(store: PostgresStore, url: str):
    """Another's entry, another session of the same name, a key that became another's: each append finds its journal."""
    other = PostgresStore(url)
    grow(store, 1, name="m")
    second = grow(other, 1, name="m")[-1]
    last = grow(store, 1, name="m")[-1]
    with pytest.raises(ConflictError):
        other.append("s", 2, chain(1, after=second, name="late"))
    other.create("t", at=1.0)
    grow(other, 3, name="m", session="t", body=b"t")
    ((key,),) = sql("SELECT key FROM shared.session WHERE id = 't'")
    store._tips["s"] = (key, last.hash)
    grow(store, 1, name="m")
    assert (len(everything(store)), len(everything(store, "t"))) == (4, 3)
    fourth = everything(store)[-1]
    store.delete("s")
    other.create("s", at=1.0)
    with pytest.raises(ConflictError):
        store.append("s", 4, chain(1, after=fourth))
    grow(store, 1, name="m")
    assert (len(everything(store)), store.check()) == (1, [])
    other.close()


def test_a_holder_that_falls_silent_keeps_nobody_waiting(store: PostgresStore, monkeypatch: pytest.MonkeyPatch):
    """The server ends the transaction of a machine that is gone or stands still; others write, and it learns of it."""
    monkeypatch.setattr(pool_module, "SILENT_SECONDS", 1)
    (first,) = chain(1)
    others = ThreadPoolExecutor(1)

    def stand_still() -> None:
        with store.exclusive("s"):
            store.append("s", 0, chain(1, name="held"))
            written = others.submit(store.append, "s", 0, [first])
            assert wait([written], timeout=30).done
            store.append("s", 1, chain(1, after=first))

    with pytest.raises(StoreError, match=r"silent for too long.*nothing of it was written"):
        stand_still()
    others.shutdown()
    assert everything(store) == [first]


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("count", [1, 2])
def test_a_lost_answer_is_told_from_a_lost_statement(store: PostgresStore, moment: str, count: int):
    """An append whose connection breaks is there exactly once, whether or not the server had done it."""
    with BreakingLine(postgres.server().folder) as line:
        far = PostgresStore(through(line.folder))
        first = grow(far, 1, name="m")
        line.break_at(b'"shared".append', moment)
        far.append("s", 1, chain(count, after=first[-1]))
        assert line.broken == 1
        far.close()
    assert [entry.seq for entry in everything(store)] == list(range(1, count + 2))
    assert is_chain(everything(store))


def test_a_lost_answer_that_somebody_else_followed_is_no_conflict(store: PostgresStore):
    """What was written before the connection broke counts, also when another writer has built on it."""
    with BreakingLine(postgres.server().folder) as line:
        far = PostgresStore(through(line.folder))
        written = far._is_written

        def rival_first(*given):
            grow(store, 1, name="rival")
            return written(*given)

        far._is_written = rival_first
        line.break_at(b'"shared".append', "after")
        far.append("s", 0, chain(2))
        far.close()
    assert [entry.id for entry in everything(store)] == ["m1", "m2", "rival3"]


def test_a_lost_statement_that_somebody_else_preceded_is_a_conflict(store: PostgresStore):
    """An append that did not happen before its connection broke does not overwrite what came meanwhile."""
    with BreakingLine(postgres.server().folder) as line:
        far = PostgresStore(through(line.folder))
        line.break_at(b'"shared".append', "before")
        recover = far._connections.recover

        def rival_first(*given):
            grow(store, 1, name="rival")
            recover(*given)

        far._connections.recover = rival_first
        with pytest.raises(ConflictError):
            far.append("s", 0, chain(2))
        far.close()
    assert [entry.id for entry in everything(store)] == ["rival1"]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_the_lost_answer_to_a_commit_is_looked_up(store: PostgresStore, moment: str):
    """Whoever was alone learns whether it was written: nothing is raised if it was, and nothing is there if not."""
    with BreakingLine(postgres.server().folder) as line:
        far = PostgresStore(through(line.folder))
        with pytest.raises(StoreError) if moment == "before" else nullcontext(), far.exclusive("s"):
            far.append("s", 0, chain(2))
            line.break_at(b"COMMIT", moment)
        assert line.broken == 1
        far.close()
    assert len(everything(store)) == (0 if moment == "before" else 2)


def test_connections_cut_by_the_server_cost_nothing(store: PostgresStore, url: str):
    """An administrator who ends all connections, again and again, interrupts no writer and no reader."""
    patient, ended = PostgresStore(f"{url}&wait=60"), threading.Event()

    def cut() -> None:
        while not ended.wait(0.15):
            # Not those that are only just being made: on a busy machine none would ever be ready.
            sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'windowsill' AND query_start IS NOT NULL"
            )

    cutter = threading.Thread(target=cut)
    cutter.start()
    try:
        for turn in range(60):
            grow(patient, 1 + turn % 3, name="m")
            assert patient.find("s", "m1") is not None
    finally:
        ended.set()
        cutter.join()
        patient.close()
    assert len(everything(store)) == 120
    assert is_chain(everything(store))


def poolers() -> list[str]:
    return ["ours", *(["pgbouncer"] if shutil.which("pgbouncer") or Path("/usr/sbin/pgbouncer").exists() else [])]


@pytest.fixture(params=poolers())
def pooled(request, url: str):
    """The address of a store behind a pooler in transaction mode."""
    PostgresStore(url).close()
    if request.param == "ours":
        with Pooler(postgres.server().folder) as pooler:
            yield through(pooler.folder)
        return
    with postgres.bouncer() as folder:
        yield through(folder)


def test_works_behind_a_pooler_in_transaction_mode(pooled: str):
    """Every transaction may run in another connection: whole sessions, search, locks and rivals are as ever."""
    store = PostgresStore(pooled)
    with Session.open("a", store=store, model="claude-sonnet-4-5", window=4_000, config=False) as session:
        for number in range(30):
            session.add(f"message {number} about the walnut " + "word " * 60)
            session.compose_sync()
        assert session.archive.retrieve("walnut", 3)
    store.create("b", at=1.0)
    threads = [threading.Thread(target=_write, args=(store, number)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(everything(store, "b")) == 40
    assert is_chain(everything(store, "b"))
    store.lock("b", "me", seconds=60)
    with pytest.raises(LockedError):
        store.lock("b", "you", seconds=60)
    assert store.check() == []
    store.close()


def _write(store: PostgresStore, number: int) -> None:
    for _ in range(10):
        grow(store, 1, name=f"w{number}-", session="b")


def test_nothing_is_prepared_and_nothing_is_left_open(store: PostgresStore):
    """A connection has no prepared statement and no open transaction after any number of calls."""
    for _ in range(12):
        grow(store, 1, name="m")
    with store._connections.connection() as db:
        assert db.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)
    states = sql("SELECT DISTINCT state FROM pg_stat_activity WHERE application_name = 'windowsill'")
    assert states == [("idle",)]


def test_a_lock_goes_by_the_clock_of_the_database(store: PostgresStore, monkeypatch: pytest.MonkeyPatch):
    """A machine whose clock is an hour ahead takes no lock away."""
    store.lock("s", "me", seconds=60)
    monkeypatch.setattr(time, "time", lambda: 1e12)
    with pytest.raises(LockedError):
        store.lock("s", "you", seconds=60)
    assert store.locked("s").holder == "me"


def test_a_pool_of_the_users_own_is_used_and_left_open(url: str):
    """A program that has a pool shares it; rows and transactions of its own making change nothing."""
    with ConnectionPool(
        postgres.server().conninfo, kwargs={"row_factory": psycopg.rows.dict_row}, min_size=1, max_size=2, open=True
    ) as pool:
        store = PostgresStore(url, pool=pool)
        store.create("s", at=1.0)
        grow(store, 2, name="m")
        assert len(everything(store)) == 2
        store.close()
        with pool.connection() as db:
            assert db.execute("SELECT 1 AS one").fetchone() == {"one": 1}


def test_a_pool_that_does_not_speak_utf8_is_refused(url: str):
    """Names would come out as others: the error says how to open the pool's connections."""
    latin = {"client_encoding": "latin1"}
    with (
        ConnectionPool(postgres.server().conninfo, kwargs=latin, min_size=1, max_size=1, open=True) as pool,
        pytest.raises(StoreError, match="iso8859-1; open them with client_encoding=utf8"),
    ):
        PostgresStore(url, pool=pool)
    stated = PostgresStore(f"{url}&client_encoding=latin1")
    stated.create("ä", at=1.0)
    stated.append("ä", 0, chain(1, name="ö"))
    assert everything(stated, "ä")[0].id == "ö1"
    stated.close()


def test_a_forked_process_goes_on(store: PostgresStore):
    """Parent and child write through connections of their own."""
    grow(store, 1, name="before")
    child = os.fork()
    if not child:
        code = 1
        try:
            for _ in range(5):
                grow(store, 1, name="child")
            code = 0
        finally:
            os._exit(code)
    for _ in range(5):
        grow(store, 1, name="parent")
    assert os.waitpid(child, 0)[1] == 0
    assert len(everything(store)) == 11
    assert is_chain(everything(store))


CHILD = """
import sys
from support.stores import grow
from windowsill.store.postgres import PostgresStore

store = PostgresStore(sys.argv[1])
store.create("s", at=1.0)
for _ in range(15):
    grow(store, 1, name=sys.argv[2] + "-")
store.close()
"""


def test_processes_that_start_together_make_one_schema():
    """Several find no tables, one makes them, and all of them write: nothing is lost."""
    url = postgres.server().url()
    commands = [[sys.executable, "-c", CHILD, url, str(number)] for number in range(4)]
    children = [subprocess.Popen(command, env=child_env()) for command in commands]
    assert [child.wait() for child in children] == [0] * 4
    store = PostgresStore(url)
    assert len(everything(store)) == 60
    assert is_chain(everything(store))
    store.close()


def steps(*more: tuple[str, str]) -> tuple[Migration, ...]:
    known = migrations("postgres")
    return known + tuple(
        Migration(version=place, name=f"{place:04}_{name}", script=text)
        for place, (name, text) in enumerate(more, known[-1].version + 1)
    )


def test_old_and_new_workers_work_side_by_side(monkeypatch: pytest.MonkeyPatch):
    """A step that adds is applied when a new worker opens; the old one goes on, and opens the database again."""
    url = postgres.server().url()
    old = PostgresStore(url)
    old.create("s", at=1.0)
    added = steps(("more", "ALTER TABLE windowsill.entry ADD COLUMN more text;"))
    monkeypatch.setattr(store_module, "migrations", lambda _: added)
    new = PostgresStore(url)
    grow(old, 1, name="old")
    grow(new, 1, name="new")
    monkeypatch.undo()
    again = PostgresStore(url)
    assert [entry.id for entry in everything(again)] == ["old1", "new2"]
    for store in (old, new, again):
        store.close()


def test_a_step_that_takes_away_is_applied_by_command_only(monkeypatch: pytest.MonkeyPatch):
    """A new worker works before it; a worker that does not know it refuses the database once it was applied."""
    url = postgres.server().url()
    PostgresStore(url).close()
    later = steps(("less_post", "ALTER TABLE windowsill.fact DROP COLUMN value;"))
    monkeypatch.setattr(store_module, "migrations", lambda _: later)
    new = PostgresStore(url)
    new.remember("k", b"v")
    assert [step.name for step in new.migrate()] == [later[-1].name]
    new.close()
    monkeypatch.undo()
    with pytest.raises(StoreError, match="upgrade windowsill"):
        PostgresStore(url)


def test_places_are_found_before_and_after_they_move_into_entries(monkeypatch: pytest.MonkeyPatch):
    """Workers that opened before the step and after it find each other's places, and read each other's entries."""
    url = postgres.server().url()
    before = [step for step in migrations("postgres") if step.name < store_module.PLACED]
    monkeypatch.setattr(store_module, "migrations", lambda _: before)
    PostgresStore(url).close()
    monkeypatch.undo()
    early = PostgresStore(url)
    early.create("s", at=1.0)
    first = chain(1, body=b"first")
    early.append("s", 0, first, places=[(b"1-of-a-digest", 1)])
    assert early.migrate()[0].name == store_module.PLACED
    late = PostgresStore(url)
    second = [msgspec.structs.replace(each, meta=b"\xdc\x00\x11\xa4user" * 20) for each in chain(1, after=first[0])]
    late.append("s", 1, second, places=[(b"2-of-a-digest", 2)])
    third = chain(1, after=second[0])
    early.append("s", 2, third, places=[(b"1-of-a-digest", 3)])
    for store in (early, late):
        assert store.places([b"2-of-a-digest"]) == [Place(b"2-of-a-digest", "s", 2)]
        assert store.places([b"1-of-a-digest"], session="s") == [Place(b"1-of-a-digest", "s", 3)]
        assert everything(store) == [*first, *second, *third]
        store.close()


@pytest.mark.parametrize("last", [store_module.PACKED, store_module.PLACED])
def test_a_worker_that_opened_before_the_tips_moved_goes_on(monkeypatch: pytest.MonkeyPatch, last: str):
    """Workers that opened before the step and after it append in turns; the check finds the end of each."""
    url = postgres.server().url()
    before = [step for step in migrations("postgres") if step.name <= last]
    monkeypatch.setattr(store_module, "migrations", lambda _: before)
    early = PostgresStore(url)
    monkeypatch.undo()
    early.create("s", at=1.0)
    grow(early, 2, name="m")
    PostgresStore(url).close()
    grow(early, 1, name="m")
    early.migrate()
    late = PostgresStore(url)
    for store in (early, late, early, late):
        assert store.check() == []
        grow(store, 1, name="m")
        last_entry = everything(store)[-1]
        store.append("s", last_entry.seq, chain(2, after=last_entry))
        assert store.check() == []
    assert is_chain(everything(late))
    assert len(everything(early)) == 15
    early.close()
    late.close()


def test_a_worker_of_the_version_before_appends_in_turns(store: PostgresStore):
    """The function that earlier workers call for one entry goes on beside the procedure that replaced it."""
    grow(store, 1, name="m")
    for _ in range(3):
        (e,) = chain(1, after=everything(store)[-1])
        row = (e.seq - 1, e.parent, e.kind, e.id, e.at, e.meta, e.hash, e.body_hash, e.body)
        kinds = "'s', %s::bigint, %s::bigint, %s, %s, %s::float8, %s::bytea, %s::bytea, %s::bytea, %s::bytea, ''"
        assert sql(f"SELECT shared.append_3({kinds})", *row) == [(e.seq - 1,)]
        grow(store, 1, name="m")
    assert (len(everything(store)), is_chain(everything(store)), store.check()) == (7, True, [])


def test_an_administrator_runs_the_printed_sql():
    """The printed steps make the same schema, which a role without the right to make one then uses."""
    schema = "printed"
    sql(script({}, migrations("postgres"), schema))
    with psycopg.connect(postgres.server().conninfo) as db:
        assert list(applied(db, schema)) == [step.version for step in migrations("postgres")]
    sql("DROP ROLE IF EXISTS worker; CREATE ROLE worker LOGIN; GRANT USAGE ON SCHEMA printed TO worker")
    sql("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA printed TO worker")
    url = postgres.server().url(schema).replace("postgres@", "worker@")
    store = PostgresStore(url)
    store.create("s", at=1.0)
    grow(store, 1, name="m")
    store.close()
    with pytest.raises(StoreError, match="store migrate --sql"):
        PostgresStore(url.replace(f"schema={schema}", "schema=forbidden"))


def test_tables_of_another_program_are_left_alone():
    """A schema that holds a table called like one of ours is refused untouched."""
    sql("CREATE SCHEMA theirs; CREATE TABLE theirs.session (id int)")
    with pytest.raises(StoreError, match="tables of another program"):
        PostgresStore(postgres.server().url("theirs"))
    assert sql("SELECT count(*) FROM pg_tables WHERE schemaname = 'theirs'") == [(1,)]


def test_the_check_sees_a_missing_end_and_edited_settings(store: PostgresStore):
    """Deleted last entries, a gap and changed settings are named."""
    first = chain(5)
    store.append("s", 0, first)
    assert store.check() == []
    sql("UPDATE shared.session SET settings = 'x'")
    sql("DELETE FROM shared.entry WHERE seq = 5")
    assert store.check() == [
        "session 's' ended with entry 5, but its last one is 4",
        "the settings of session 's' are not what was written",
    ]
    sql("DELETE FROM shared.entry WHERE seq = 2")
    assert "session 's' has 3 entries, but its last one is number 4" in store.check("s")


def test_a_closed_store_says_so(store: PostgresStore):
    """What is called after the end is an error that names the remedy."""
    store.close()
    store.close()
    with pytest.raises(StoreError, match="open it again"):
        store.info("s")


def test_the_environment_may_name_the_server(url: str, monkeypatch: pytest.MonkeyPatch):
    """A program that names no store finds the one that WINDOWSILL_HOME names."""
    monkeypatch.setenv("WINDOWSILL_HOME", url)
    store = open_store()
    assert isinstance(store, PostgresStore)
    store.close()


def test_without_pgvector_vectors_are_compared_by_the_client():
    """A database that has no such extension keeps them all the same, and gives them back."""
    url = postgres.server().url()
    PostgresStore(url).close()
    schema = url.partition("schema=")[2]
    sql(f"ALTER TABLE {schema}.passage_vector DROP COLUMN embedding")
    store = PostgresStore(url)
    said("the car is red", "bananas are yellow", store=store)
    with Archive(store, "s", embedder=Synonyms({"car", "automobile"}, {"bananas"})) as archive:
        assert archive.retrieve("which automobile", 1)[0].text == "the car is red"
    store.close()
