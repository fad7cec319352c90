"""Outputs on their way into the store."""

import pytest

from support.kept_outputs import Clock, outputs
from windowsill.errors import InputError, NotFoundError, StoreError
from windowsill.outputs import Outputs
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.unit

LINES = "line\n" * 1_000_000
"""Enough for several transactions."""


class Watched(MemoryStore):
    """Remembers how much each transaction wrote or removed."""

    def __init__(self):
        super().__init__()
        self.written, self.dropped = [], []

    def put_blobs(self, session, blobs):
        blobs = list(blobs)
        self.written.append(sum(len(data) for _, data in blobs))
        super().put_blobs(session, blobs)

    def drop_blobs(self, session, ids):
        ids = list(ids)
        self.dropped.append(len(ids))
        return super().drop_blobs(session, ids)


def test_nothing_is_to_be_seen_before_it_is_finished():
    """Parts are written as they come, and are an output only at the end."""
    store = MemoryStore()
    writing = outputs(store).start()
    writing.write(LINES)
    assert store.blob_ids("s", "output/part/")
    assert store.blob_ids("s", "output/index/") == []
    ref = writing.finish()
    assert ref.lines == 1_000_000
    assert not any("alive" in id for id in store.blob_ids("s", ""))


def test_an_abandoned_output_leaves_nothing():
    """What was written is removed; what was finished stays."""
    store = MemoryStore()
    kept = outputs(store)
    with kept.start() as writing:
        writing.write(LINES)
    assert store.blob_ids("s", "") == []
    with kept.start() as writing:
        writing.write("a")
        writing.finish()
    assert len(store.blob_ids("s", "")) == 2


def test_a_finished_output_takes_nothing_more():
    """Writing to it, or finishing it twice, is the caller's mistake."""
    writing = outputs(MemoryStore()).start()
    writing.finish()
    for call in (lambda: writing.write("x"), writing.finish):
        with pytest.raises(InputError, match="start another one"):
            call()


def test_transactions_are_small():
    """However large a piece is, no transaction writes more than a few parts, nor removes more."""
    store = Watched()
    kept = outputs(store)
    kept.keep([LINES * 2])
    kept.keep([LINES.encode() * 2])
    assert len(store.written) > 5
    assert max(store.written) < 3 * 2**20
    assert max(store.dropped) <= 4


def test_a_small_output_is_one_transaction():
    """It is there whole or not at all."""
    store = Watched()
    outputs(store).keep(["a\n", "b\n"])
    assert len(store.written) == 1


def test_a_writing_that_was_taken_for_abandoned_says_so():
    """Its parts are gone: it is an error, never an output with holes."""
    store = MemoryStore()
    clock = Clock()
    writing = outputs(store, clock=clock).start()
    writing.write(LINES)
    clock.now += 4000
    Outputs(store, "s", clock=clock).collect()
    with pytest.raises(StoreError, match="run the tool again"):
        writing.finish()
    assert store.blob_ids("s", "output/index/") == []


def test_a_session_that_is_not_there_keeps_nothing():
    """Writing to it is a `NotFoundError`, as it is for the journal."""
    with pytest.raises(NotFoundError):
        Outputs(MemoryStore(), "nobody").keep(["a"])
