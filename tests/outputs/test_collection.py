"""What is collected, and what never is."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from support.examples import examples
from support.kept_outputs import Clock, outputs, say
from windowsill.errors import NotFoundError
from windowsill.messages import OutputRef
from windowsill.outputs import Collected, Outputs
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.unit

HOUR = 3600
LINES = "line\n" * 1_000_000


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_what_nothing_refers_to_is_removed_after_an_hour(clock: Clock):
    """Before, its message may still be on its way."""
    store = MemoryStore()
    kept = outputs(store, clock=clock)
    ref = kept.keep(["a\n"])
    clock.now += HOUR
    assert kept.collect() == Collected()
    clock.now += 1
    assert kept.collect() == Collected((ref.id,), 2)
    assert store.blob_ids("s", "") == []
    with pytest.raises(NotFoundError):
        kept.open(ref.id)


def test_a_finished_writing_that_somebody_holds_protects_nothing(clock: Clock):
    """Its output is removed with all its parts."""
    store = MemoryStore()
    kept = outputs(store, clock=clock)
    writing = kept.start()
    writing.finish()
    writing = kept.start()
    writing.write("a\n")
    writing.finish()
    clock.now += 2 * HOUR
    kept.collect()
    assert store.blob_ids("s", "") == []


def test_what_something_refers_to_stays_for_ever(clock: Clock):
    """However old it is."""
    store = MemoryStore()
    kept = outputs(store, clock=clock)
    ref = kept.keep(["a\n"])
    say(store, (), refs=(ref,))
    clock.now += 10_000 * HOUR
    assert kept.collect() == Collected()
    assert kept.read(ref.id) == "     1\ta"


def test_an_output_that_was_kept_again_is_young_again(clock: Clock):
    """The hour counts from the last time."""
    kept = outputs(MemoryStore(), clock=clock)
    ref = kept.keep(["a\n"])
    clock.now += 2 * HOUR
    kept.keep(["a\n"])
    assert kept.collect() == Collected()
    assert kept.read(ref.id) == "     1\ta"


def test_leftovers_of_a_crash_are_removed_after_an_hour(clock: Clock):
    """Parts without an index, of a process that is gone."""
    store = MemoryStore()
    outputs(store, clock=clock).start().write(LINES)
    left = len(store.blob_ids("s", ""))
    other = Outputs(store, "s", clock=clock)
    clock.now += HOUR - 1
    assert other.collect().blobs == 0
    clock.now += 2
    assert other.collect() == Collected((), left)
    assert store.blob_ids("s", "") == []


def test_a_writing_of_this_process_is_no_leftover(clock: Clock):
    """However long it was silent."""
    kept = outputs(MemoryStore(), clock=clock)
    writing = kept.start()
    writing.write(LINES)
    clock.now += 5 * HOUR
    assert kept.collect().blobs == 0
    assert kept.open(writing.finish().id).lines == 1_000_000


def test_a_slow_writing_of_another_process_is_no_leftover(clock: Clock):
    """Each quarter of an hour it says that it goes on, be it by a few bytes."""
    store = MemoryStore()
    writing = outputs(store, clock=clock).start()
    writing.write(LINES)
    for _ in range(10):
        clock.now += HOUR / 2
        writing.write("x")
        assert Outputs(store, "s", clock=clock).collect().blobs == 0
    assert writing.finish().bytes == 5_000_010


def test_other_blobs_of_the_session_are_not_touched(clock: Clock):
    """The system prompts and tools of calls lie beside the outputs."""
    store = MemoryStore()
    kept = outputs(store, clock=clock)
    store.put_blobs("s", [("0123abcd", b"system")])
    clock.now += 9 * HOUR
    kept.collect()
    assert store.blob("s", "0123abcd") == b"system"


class Collecting(RuleBasedStateMachine):
    """Keep, refer, wait and collect in any order."""

    def __init__(self):
        super().__init__()
        self.clock = Clock()
        self.store = MemoryStore()
        self.kept = outputs(self.store, clock=self.clock)
        self.referenced: dict[str, str] = {}
        self.known: dict[str, tuple[OutputRef, str, float]] = {}

    @rule(text=st.sampled_from(["a\n", "b\n", "c"]))
    def keep(self, text):
        ref = self.kept.keep([text])
        self.known[ref.id] = (ref, text, self.clock.now)

    @rule(pick=st.integers(0, 9))
    def refer(self, pick):
        if self.known:
            ref, text, _ = self.known[sorted(self.known)[pick % len(self.known)]]
            say(self.store, (), refs=(ref,))
            self.referenced[ref.id] = text

    @rule(seconds=st.sampled_from([1, 1800, 4000]))
    def wait(self, seconds):
        self.clock.now += seconds

    @rule()
    def collect(self):
        for ref in self.kept.collect().outputs:
            assert self.clock.now - self.known.pop(ref)[2] > HOUR

    @invariant()
    def what_is_referred_to_can_be_read(self):
        for ref, text in self.referenced.items():
            assert self.kept.read(ref) == f"     1\t{text.strip()}"


TestCollecting = Collecting.TestCase
TestCollecting.settings = settings(max_examples=examples(0.4), stateful_step_count=20)
