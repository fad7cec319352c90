"""What a call costs in SQLite does not depend on how long the journal is."""

from contextlib import closing
from pathlib import Path

import pytest

from support.stores import chain, grow
from windowsill.store.sqlite import SQLiteStore

pytestmark = pytest.mark.integration

CALLS = {
    "info": lambda store, _: store.info("s"),
    "jumps": lambda store, _: store.jumps("s"),
    "find": lambda store, _: store.find("s", "m1"),
    "read": lambda store, last: store.read("s", last.seq, last.seq),
    "read of what is rare": lambda store, last: store.read("s", 1, last.seq, kinds=("fold", "unfold"), bodies=False),
    "snapshot": lambda store, last: store.snapshot("s", last.seq),
    "blob": lambda store, _: store.blob("s", "b"),
    "blob ids": lambda store, _: store.blob_ids("s", "b"),
    "put and drop blobs": lambda store, _: (store.put_blobs("s", [("c", b"x")]), store.drop_blobs("s", ["c"])),
    "append": lambda store, last: store.append("s", last.seq, chain(1, after=last)),
}


def steps(store: SQLiteStore, call) -> int:
    """Return how many instructions SQLite's machine runs for a call."""
    counted = []
    for connection in (store._connections.writing(), store._connections.reading()):
        with connection as db:
            db.set_progress_handler(lambda: counted.append(1), 1)
    counted.clear()
    call()
    return len(counted)


@pytest.mark.parametrize("name", CALLS)
def test_the_cost_of_a_call_does_not_grow(tmp_path: Path, name: str):
    """The same call takes SQLite the same steps after 20 entries and after 2,000."""
    took = []
    for length in (20, 2000):
        store = SQLiteStore(tmp_path / f"{length}.db")
        store.create("s", at=1.0)
        entries = grow(store, length, name="m")
        store.append("s", length, [], snapshots=[(seq, b"v") for seq in range(1, length, 9)], blobs=[("b", b"x")])
        took.append(steps(store, lambda: CALLS[name](store, entries[-1])))  # noqa: B023 - called in this turn
        store.close()
    assert 0 < took[1] <= took[0] + 2


@pytest.mark.parametrize(
    ("statement", "values"),
    [("journal_end", 1), ("insert_entry", 9), ("put_tip", 5), ("move_tip", 7), ("insert_body", 3)],
)
def test_an_append_makes_no_table_on_the_way(tmp_path: Path, statement: str, values: int):
    """No statement of an append has SQLite make a table for its own use, which takes longer than the row."""
    with closing(SQLiteStore(tmp_path / "sessions.db")) as store, store._connections.reading() as db:
        db.text_factory = bytes
        steps = [row[1] for row in db.execute(f"EXPLAIN {store._sql[statement]}", (1,) * values)]
    assert steps
    assert b"OpenEphemeral" not in steps
