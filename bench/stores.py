"""What durable appends cost, beside bare inserts of the same bytes with the same durability."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import psycopg

from bench.measure import show
from windowsill.history.entries import ROOT_HASH, Entry, seal
from windowsill.store import Store
from windowsill.store.postgres import PostgresStore
from windowsill.store.sqlite import SQLiteStore
from windowsill.store.sqlite.connections import connect
from windowsill.store.sqlite.migrate import create

TESTS = Path(__file__).resolve().parents[1] / "tests"
BODY = 1_500
PROCESSES = 8

CHILD = """
import sys
from bench.stores import chain
from windowsill.store.postgres import PostgresStore
store = PostgresStore(sys.argv[1])
store.create(sys.argv[2], at=1.0)
entries = chain(int(sys.argv[3]) + WARM)
for entry in entries:
    if entry.seq == WARM + 1:
        print("ready", flush=True)
        sys.stdin.readline()
    store.append(sys.argv[2], entry.seq - 1, [entry])
print("done", flush=True)
""".replace("WARM", "20")
"""Appends to a session of its own between two lines: neither the start of a process nor its end is measured."""


def chain(count: int) -> list[Entry]:
    words = random.Random(count)
    made: list[Entry] = []
    for _ in range(count):
        last = made[-1] if made else None
        seq = last.seq + 1 if last else 1
        hash = last.hash if last else ROOT_HASH
        body = words.randbytes(BODY // 2).hex().encode()
        made.append(
            seal(seq=seq, parent=seq - 1, parent_hash=hash, kind="message", id=f"m{seq}", at=1.0, meta=b"{}", body=body)
        )
    return made


def compare(what: str, store: Store, execute, count: int) -> None:
    """Insert a bare row and append an entry in turns, as the disk is not always as fast; compare the medians."""
    store.create("bench", at=1.0)
    ours, theirs = [], []
    for e in chain(count):
        row = ("bench", e.seq, e.parent, e.kind, e.id, e.at, e.meta, e.hash, e.body_hash, e.body)
        start = time.perf_counter()
        execute(row)
        middle = time.perf_counter()
        store.append("bench", e.seq - 1, [e])
        theirs.append(middle - start)
        ours.append(time.perf_counter() - middle)
    mine, bare = 1 / median(ours), 1 / median(theirs)
    show(f"{what}: durable appends a second", f"{mine:,.0f}", f"bare inserts of the same row {bare:,.0f}")
    show(f"{what}: share of bare inserts", f"{mine / bare:.2f}", ">= 0.7", met=mine / bare >= 0.7)


def _sqlite(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bare.db"
        create(path)
        db = connect(path)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(
            "CREATE TABLE bare (session TEXT, seq INTEGER, parent INTEGER, kind TEXT, id TEXT, at REAL, meta BLOB, "
            "hash BLOB, body_hash BLOB, body BLOB, PRIMARY KEY (session, seq), UNIQUE (session, id))"
        )
        store = SQLiteStore(Path(folder) / "sessions.db")

        def insert(row: tuple[object, ...]) -> sqlite3.Cursor:
            return db.execute("INSERT INTO bare VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)

        compare("SQLite", store, insert, count)
        store.close()
        db.close()
        size, told = (
            (Path(folder) / "sessions.db").stat().st_size,
            sum(len(entry.body or b"") for entry in _entries(SQLiteStore(Path(folder) / "sessions.db"))),
        )
        show("SQLite: bytes on disk for each byte of messages", f"{size / told:.2f}", "<= 1.3", met=size / told <= 1.3)


def _entries(store: SQLiteStore) -> list[Entry]:
    found = store.read("bench", 1, 1 << 30)
    store.close()
    return found


def _postgres(count: int) -> None:
    sys.path.insert(0, str(TESTS))
    from support import postgres

    server = postgres.Server(durable=True)
    url = server.url("bench")
    store = PostgresStore(url)
    with psycopg.connect(server.conninfo, autocommit=True, prepare_threshold=None) as db:
        db.execute(
            "CREATE TABLE bare (session text, seq bigint, parent bigint, kind text, id text, at float8, meta bytea, "
            "hash bytea, body_hash bytea, body bytea, PRIMARY KEY (session, seq), UNIQUE (session, id))"
        )

        def insert(row: tuple[object, ...]) -> object:
            return db.execute("INSERT INTO bare VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)", row)

        compare("PostgreSQL", store, insert, count)
    one, many = (_together(url, processes, count // 2) for processes in (1, PROCESSES))
    show(f"PostgreSQL: {PROCESSES} processes on sessions of their own", f"{many:,.0f} a second", f"one {one:,.0f}")
    show(f"PostgreSQL: {PROCESSES} processes against one", f"{many / one:.1f} x", ">= 1.6", met=many / one >= 1.6)
    store.close()
    server.remove()


def _together(url: str, processes: int, count: int) -> float:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    commands = [[sys.executable, "-c", CHILD, url, f"{processes}-{each}", str(count)] for each in range(processes)]
    children = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, text=True)
        for command in commands
    ]
    for child in children:
        child.stdout.readline()
    start = time.perf_counter()
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    for child in children:
        assert child.stdout.readline() == "done\n"
    taken = time.perf_counter() - start
    for child in children:
        child.communicate()
    return processes * count / taken


def run(*, quick: bool) -> None:
    count = 300 if quick else 1_500
    _sqlite(count)
    _postgres(count)
