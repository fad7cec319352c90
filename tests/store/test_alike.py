"""Stores cannot be told apart: the same calls, in any order, give the same answers."""

import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from support.examples import examples
from support.stores import STORES, chain, everything
from windowsill.errors import WindowsillError
from windowsill.store import Store

pytestmark = pytest.mark.contract

NAMES = st.sampled_from(["a", "b", "c"])
NUMBERS = st.integers(-1, 12)
DATA = st.binary(max_size=20)


class Alike(RuleBasedStateMachine):
    """Stores that are told the same things."""

    @initialize()
    def open(self):
        self.folder = tempfile.TemporaryDirectory()
        self.stores: list[Store] = [make(Path(self.folder.name)) for make in STORES.values()]

    def teardown(self):
        if hasattr(self, "stores"):
            for store in self.stores:
                assert store.check() == []
                store.close()
            self.folder.cleanup()

    def same(self, call):
        answers = []
        for store in self.stores:
            try:
                answers.append(call(store))
            except WindowsillError as error:
                answers.append((type(error), str(error)))
        assert answers[1:] == answers[:-1]

    @rule(name=NAMES, at=st.floats(0, 1e10), settings=DATA)
    def create(self, name, at, settings):
        self.same(lambda store: store.create(name, at=at, settings=settings))

    @rule(
        name=NAMES,
        late=st.sampled_from([0, 0, 0, 0, 1, -1]),
        count=st.integers(0, 3),
        jump=st.none() | st.integers(0, 5),
        repeat=st.booleans(),
        snapshots=st.lists(st.tuples(NUMBERS, DATA), max_size=2),
        blobs=st.lists(st.tuples(NAMES, DATA), max_size=2),
        body=DATA,
    )
    def append(self, name, late, count, jump, repeat, snapshots, blobs, body):
        known = everything(self.stores[0], name)
        entries = chain(count, after=known[-1] if known else None, jump=jump, body=body)
        if entries and repeat:
            entries[-1] = msgspec.structs.replace(entries[-1], id="m1", kind="fold")
        self.same(lambda store: store.append(name, len(known) + late, entries, snapshots=snapshots, blobs=iter(blobs)))

    @rule(name=NAMES, first=NUMBERS, last=NUMBERS, kinds=st.none() | st.just(["fold"]), bodies=st.booleans())
    def read(self, name, first, last, kinds, bodies):
        self.same(lambda store: store.read(name, first, last, kinds=kinds, bodies=bodies))

    @rule(name=NAMES, number=NUMBERS)
    def look(self, name, number):
        self.same(lambda store: store.snapshot(name, number))
        self.same(lambda store: store.find(name, f"m{number}"))
        self.same(lambda store: store.blob(name, "a"))

    @rule(name=NAMES, blobs=st.lists(st.tuples(st.text("ab/é", max_size=3), DATA), max_size=3), prefix=st.text("ab/é"))
    def blobs(self, name, blobs, prefix):
        self.same(lambda store: store.put_blobs(name, blobs))
        self.same(lambda store: store.blob_ids(name, prefix))

    @rule(name=NAMES, ids=st.lists(st.text("ab/é", max_size=2), max_size=3))
    def drop_blobs(self, name, ids):
        self.same(lambda store: store.drop_blobs(name, ids))
        self.same(lambda store: [store.blob(name, id) for id in store.blob_ids(name, "")])

    @rule(name=NAMES, settings=DATA)
    def set_settings(self, name, settings):
        self.same(lambda store: store.set_settings(name, settings))

    @rule(name=NAMES)
    def delete(self, name):
        self.same(lambda store: store.delete(name))

    @rule(name=NAMES, holder=NAMES, now=st.integers(0, 20).map(float))
    def lock(self, name, holder, now):
        self.same(lambda store: store.lock(name, holder, seconds=5, now=now))
        self.same(lambda store: store.locked(name, now=now + 3))

    @rule(name=NAMES, holder=st.none() | NAMES)
    def unlock(self, name, holder):
        self.same(lambda store: store.unlock(name, holder))

    @rule(key=st.text(max_size=3), value=DATA)
    def facts(self, key, value):
        self.same(lambda store: store.remember(key, value))
        self.same(lambda store: store.recall(key))

    @invariant()
    def lists_are_the_same(self):
        if hasattr(self, "stores"):
            self.same(lambda store: store.sessions())
            for name in "abc":
                self.same(lambda store, name=name: (store.info(name), store.jumps(name)))


TestAlike = Alike.TestCase
TestAlike.settings = settings(max_examples=examples(0.15), stateful_step_count=25)
