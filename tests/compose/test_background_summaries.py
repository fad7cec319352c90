"""Summaries that a model writes while the agent goes on."""

import asyncio
import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from support.conversations import result, text_block, use
from support.sessions import fill, kept, opened, shown, talk
from support.slow_writers import Condensing, Slow, made
from windowsill import WindowsillError
from windowsill.compose import summaries
from windowsill.history.folds import Brief
from windowsill.messages import Usage
from windowsill.strategies import Plan, fold_units, foldable_units
from windowsill.strategies.condense import Condense
from windowsill.summaries import ModelWriter, Written
from windowsill.summaries.requests import UnusableError

pytestmark = pytest.mark.unit


def finished(session):
    """Wait until what is being written is written."""
    session.composer.summaries.job.texts.exception(timeout=60)


def test_it_is_asked_for_at_the_warning_mark_and_used_at_the_high_mark():
    """Nothing waits, and nothing is hidden while there is room: the text is there when it is needed."""
    writer = Slow()
    assert isinstance(writer, ModelWriter)
    session = made(writer)
    at = fill(session, 1_900)
    assert session.compose_sync().report.folds == ()
    assert writer.begun.wait(60)
    fill(session, 2_100, start=at)
    assert session.compose_sync().report.folds == ()
    writer.go.set()
    finished(session)
    assert session.compose_sync().report.folds == ()
    fill(session, 2_500, start=at + 20)
    fold = session.compose_sync().report.folds[0]
    assert (fold.strategy, fold.kind) == ("condensing", "condense")
    high = session.composer.budget(session.composer.fixed_tokens).high
    assert fold.reason.endswith(f" tokens passed {high:,}; its text was written before")
    assert "Everything was looked at." in str(session.compose_sync().to())
    assert session.verify() == []


def test_what_is_written_is_of_the_history_as_it_was():
    """What was added meanwhile is not hidden by it."""
    writer = Slow()
    session = made(writer)
    at = fill(session, 1_900)
    session.compose_sync()
    assert writer.begun.wait(60)
    hidden = writer.asked[0].messages[-1].id
    fill(session, 2_500, start=at)
    last = session.view.items[-3].id
    writer.go.set()
    finished(session)
    session.compose_sync()
    assert not session.explain(hidden).visible
    assert session.explain(last).visible


def test_a_request_that_would_not_fit_waits_for_it():
    """Only then: the window would overflow."""
    writer = Slow()
    writer.go.set()
    session = made(writer)
    fill(session, 3_300)
    payload = session.compose_sync()
    assert payload.tokens <= 3_000
    assert "Everything was looked at." in str(payload.to())
    assert payload.report.statistics.emergency


def test_a_model_that_hangs_costs_no_turn():
    """After the wait code writes it, and that is said."""
    writer = Slow()
    session = made(writer, wait=0.05)
    fill(session, 3_300)
    payload = session.compose_sync()
    assert payload.tokens <= 3_000
    assert any("written by code" in note for note in payload.report.notes)
    session.close()
    writer.go.set()


@pytest.mark.parametrize(
    "text", ["", "  ", "long " * 4_000, WindowsillError("refused"), RuntimeError("boom")], ids=repr
)
def test_whatever_it_writes_the_request_fits_and_nothing_is_lost(text):
    """Empty, far too long, refused, or an error nobody thought of."""
    writer = Slow(text)
    writer.go.set()
    session = made(writer)
    fill(session, 3_300)
    before = [message.raw for message in session.messages()]
    payload = session.compose_sync()
    assert payload.tokens <= 3_000
    assert [message.raw for message in session.messages()] == before
    assert session.verify() == []


def test_what_no_longer_fits_the_history_is_thrown_away():
    """The session was rewound while the model wrote."""
    writer = Slow()
    session = made(writer)
    fill(session, 1_900)
    session.compose_sync()
    session.rewind(session.view.items[2].id)
    writer.go.set()
    finished(session)
    assert session.compose_sync().report.folds == ()
    assert session.verify() == []


def test_in_an_emergency_no_model_is_asked():
    """The strategy says that code shall write it."""
    writer = Slow()
    session = made(writer, Condensing(needed=False))
    fill(session, 3_300)
    assert session.compose_sync().tokens <= 3_000
    assert writer.asked == []


def test_closing_stops_what_is_being_written():
    """Nothing runs on, and nothing is lost."""
    writer = Slow()
    session = made(writer)
    fill(session, 1_900)
    session.compose_sync()
    assert writer.begun.wait(60)
    thread = [each for each in threading.enumerate() if each.name == "windowsill-writer"][-1]
    session.close()
    writer.go.set()
    thread.join(timeout=60)
    assert writer.cancelled
    assert not thread.is_alive()


def test_the_loop_goes_on_while_a_request_waits_for_its_summary():
    """`compose` in an event loop does not block the other tasks."""
    writer = Slow()
    session = made(writer)
    fill(session, 3_300)

    async def run():
        waiting = asyncio.create_task(session.compose())
        await asyncio.to_thread(writer.begun.wait, 5)
        assert not waiting.done()
        writer.go.set()
        return await waiting

    assert asyncio.run(run()).tokens <= 3_000


def test_a_turn_that_is_given_up_does_not_wait_for_its_summary():
    """Whoever cancels goes on at once; nothing is lost, and the next request is composed as ever."""
    never = threading.Event()

    class Stuck(Slow):
        async def awrite(self, *_):
            self.begun.set()
            never.wait()

    writer = Stuck()
    session = made(writer, wait=3_600.0)
    fill(session, 3_300)
    before = kept(session)

    async def run():
        waiting = asyncio.create_task(session.compose())
        await asyncio.to_thread(writer.begun.wait, 5)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(run())
    assert session.compose_sync().tokens <= 3_000
    assert kept(session) == before
    assert session.verify() == []
    never.set()


def test_a_summary_that_is_given_up_as_it_begins_holds_up_nobody(monkeypatch):
    """A turn may be cancelled in the very moment in which the writer is asked."""
    writer = Slow()
    session = made(writer, wait=3_600.0)

    class GivenUp(threading.Thread):
        def start(self):
            super().start()
            assert writer.begun.wait(60)
            session.composer.summaries.close()

    monkeypatch.setattr(summaries, "Thread", GivenUp)
    fill(session, 3_300)
    with ThreadPoolExecutor(1) as pool:
        composed = pool.submit(session.compose_sync)
        try:
            assert composed.result(timeout=60).tokens <= 3_000
        finally:
            writer.go.set()


def test_closing_does_not_wait_for_a_summary_that_another_thread_waits_for():
    """That request goes on without it, and fits."""
    writer = Slow()
    session = made(writer, wait=3_600.0)
    fill(session, 3_300)
    with ThreadPoolExecutor(1) as pool:
        composed = pool.submit(session.compose_sync)
        assert writer.begun.wait(60)
        session.close()
        assert composed.result(timeout=60).tokens <= 3_000
    writer.go.set()


def test_nothing_is_prepared_for_a_caller_who_keeps_no_session():
    """There is no later request that could use it, and it would be paid for."""
    session = made(Slow())
    fill(session, 1_900)
    composer = session.composer
    composer.compose(composer.parts(None, (), {}, "anthropic"), format="anthropic", stateless=True)
    assert session.composer.summaries.job is None


def test_below_the_high_mark_nothing_is_hidden_when_nothing_could_be_written():
    """A marker would hide words that have room."""

    class Early(Condensing):
        def due(self, view, _):
            return len(view.items) > 6

    session = made(Silent(), Early(), budget=100_000)
    talk(session, 5)
    assert session.compose_sync().report.folds == ()


def test_a_strategy_may_know_something_better_than_a_marker():
    """Where its summary could not be written."""

    class Careful(Condensing):
        def instead(self, view, _):
            units = foldable_units(view, keep=6)
            return Plan(proposals=(fold_units(view, units, strategy="instead", reason="no summary"),))

    session = made(Silent(), Careful(), budget=1_500)
    fill(session, 1_300)
    assert session.compose_sync().report.folds[0].strategy == "instead"


class Silent:
    """A writer with nothing to say."""

    name = "silent"

    def write(self, _, __):
        return Written(text="", writer=self.name)


def test_a_session_to_which_nothing_was_added_is_not_planned_for_again():
    """Above the high mark a strategy that finds nothing to do is asked once."""

    class Idle(Condensing):
        asked = 0

        def plan(self, *_):
            self.asked += 1
            return Plan()

    idle = Idle()
    session = opened(budget=3_000, strategy=idle)
    at = fill(session, 2_600)
    session.compose_sync()
    once = idle.asked
    session.compose_sync()
    assert idle.asked == once > 0
    talk(session, 1, start=at)
    session.compose_sync()
    assert idle.asked > once


def test_what_was_begun_early_is_used_when_it_becomes_urgent():
    """It hides less than is wanted by then; the rest is planned for after it."""
    writer = Slow()
    session = made(writer)
    at = fill(session, 1_900)
    session.compose_sync()
    assert writer.begun.wait(60)
    fill(session, 3_300, start=at)
    threading.Timer(0.05, writer.go.set).start()
    payload = session.compose_sync()
    assert payload.tokens <= 3_000
    assert "Everything was looked at." in str(payload.to())
    assert not any("written by code" in note for note in payload.report.notes)


class Thrice(Condensing):
    """Three folds at once, each with a text of its own."""

    def plan(self, view, _):
        units = foldable_units(view, keep=2)
        third = len(units) // 3
        parts = (units[:third], units[third : 2 * third], units[2 * third :])
        wanted = {"strategy": self.name, "reason": "full", "kind": "condense", "brief": Brief()}
        return Plan(proposals=tuple(fold_units(view, part, **wanted) for part in parts))


class Given:
    """The means of a queue to wait: a clock that a test moves, and how long was waited each time."""

    def __init__(self, queue):
        self.now = 0.0
        self.waits = []
        self._queue = queue
        self._take = queue.take
        queue.take = self.take

    def take(self, wait=0.0):
        if wait > 0 and self._queue.job is not None:
            self.waits.append(wait)
            self.now += wait
        return self._take(min(wait, 0.01))


def test_all_the_texts_of_a_request_together_are_waited_for_once():
    """A turn waits `wait` seconds at most, however many summaries it wants."""
    writer = Slow()
    session = made(writer, Thrice(), wait=30.0)
    queue = session.composer.summaries
    given = Given(queue)
    queue._clock = lambda: given.now
    fill(session, 3_300)
    payload = session.compose_sync()
    assert payload.tokens <= 3_000
    assert given.waits == [30.0]
    assert any("slow was not ready; written by code" in note for note in payload.report.notes)
    writer.go.set()


def test_a_writer_that_cannot_be_stopped_is_waited_for_once():
    """It blocks its thread; the requests after the first do not wait for it again, and no other thread is begun."""
    never = threading.Event()

    class Stuck(Slow):
        async def awrite(self, *_):
            self.asked.append(1)
            never.wait()

    writer = Stuck()
    session = made(writer, wait=30.0)
    given = Given(session.composer.summaries)
    at = 0
    for _ in range(3):
        at = fill(session, 3_300, start=at)
        assert session.compose_sync().tokens <= 3_000
    assert (given.waits, len(writer.asked)) == ([30.0], 1)
    never.set()


@pytest.mark.parametrize("fold", ["proposal", "briefs", "reason"])
def test_nonsense_that_is_only_wanted_early_costs_no_turn(fold):
    """Between the warning mark and the high one nothing has to be folded."""

    class Odd(Condensing):
        def plan(self, view, budget):
            [proposal] = super().plan(view, budget).proposals
            odd = {
                "proposal": {"spans": (msgspec.structs.replace(proposal.spans[0], first=9_998, last=9_999),)},
                "briefs": {"briefs": (Brief(), Brief())},
                "reason": {"reason": 5},
            }
            return Plan(proposals=(msgspec.structs.replace(proposal, **odd[fold]),))

    writer = Slow()
    session = made(writer, Odd())
    fill(session, 1_900)
    assert session.compose_sync().report.folds == ()
    assert any("nothing was prepared" in note for note in session.compose_sync().report.notes)
    assert writer.asked == []


def test_a_text_that_is_held_is_not_asked_for_again():
    """While there is room nothing is hidden, and nobody is paid a second time."""
    writer = Slow()
    writer.go.set()
    session = made(writer)
    at = fill(session, 1_900)
    for number in range(5):
        assert session.compose_sync().report.folds == ()
        finished(session)
        talk(session, 1, start=at + number)
    assert len(writer.asked) == 1


def test_texts_of_no_use_are_asked_for_twice_and_then_no_more():
    """Neither the model nor code has anything to say: that is told, and a marker stands where room was needed."""
    writer = Slow("")
    writer.go.set()
    session = made(writer)
    session.composer.summaries.writer._offline = Silent()
    at = fill(session, 2_450)
    notes, folds = [], 0
    for number in range(4):
        payload = session.compose_sync()
        notes += payload.report.notes
        folds += len(payload.report.folds)
        if session.composer.summaries.job is not None:
            finished(session)
        talk(session, 1, start=at + number)
    assert len(writer.asked) == 2
    assert folds == 1
    assert "condensing: silent wrote nothing; a marker stands there" in notes


def test_what_the_model_cost_is_in_the_report():
    """Also where its text was of no use."""

    class Paid(Slow):
        async def awrite(self, *_):
            raise UnusableError("empty", "the model said nothing", usage=Usage(input=900, output=7, cache_read=100))

    session = made(Paid())
    fill(session, 3_300)
    cost = "condensing: the model read 1,000 tokens, 100 of them from its cache, and wrote 7"
    assert cost in session.compose_sync().report.notes


def test_without_threads_code_writes(monkeypatch):
    """A system that has none left, or a program that is ending, costs no turn."""
    session = made(Slow(), Condense(keep=2))

    def none_left(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", none_left)
    fill(session, 3_300)
    payload = session.compose_sync()
    assert payload.tokens <= 3_000
    assert any("could not be begun" in note and "written by code" in note for note in payload.report.notes)


def test_a_pin_that_comes_while_it_is_written_holds():
    """What was to be hidden is pinned by then: it stays, and that is said."""
    writer = Slow()
    session = made(writer)
    at = fill(session, 1_900)
    session.compose_sync()
    assert writer.begun.wait(60)
    pinned = writer.asked[0].messages[3].id
    session.pin(pinned)
    writer.go.set()
    finished(session)
    fill(session, 2_500, start=at)
    payload = session.compose_sync()
    assert session.explain(pinned).visible
    assert any("no longer fits" in note for note in payload.report.notes)
    assert session.verify() == []


def test_a_branch_that_was_left_while_it_is_written_keeps_its_text_to_itself():
    """Other messages took the places of those that were summarised; nothing of theirs is hidden by it."""
    writer = Slow()
    session = made(writer)
    at = fill(session, 1_900)
    session.compose_sync()
    assert writer.begun.wait(60)
    session.rewind(session.view.items[6].id)
    fill(session, 1_900, start=at + 100)
    before = shown(session)
    writer.go.set()
    finished(session)
    session.compose_sync()
    assert shown(session) == before
    assert session.verify() == []


def test_a_program_that_ends_while_a_model_writes_just_ends(tmp_path):
    """Neither the thread nor what it waits for holds it up, and nothing is printed."""
    code = """
import threading, sys
sys.path.insert(0, {tests!r})
from support.slow_writers import Slow, made
from support.sessions import fill
writer = Slow()
session = made(writer)
fill(session, 1_900)
session.compose_sync()
assert writer.begun.wait(60)
writer.go.set()
"""
    source = code.format(tests=str(Path(__file__).resolve().parents[1]))
    done = subprocess.run([sys.executable, "-c", source], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_who_writes_a_summary_is_not_told_that_running_calls_failed():
    """The request it is asked behind ends with the words of the last answer and the calls that have a result."""
    writer = Slow()
    writer.go.set()
    session = made(writer)
    fill(session, 3_300)
    session.add({"role": "assistant", "content": [text_block("both"), use("done"), use("runs")]})
    session.add({"role": "user", "content": [result("done", "ready")]})
    session.compose_sync()
    messages = json.loads(writer.asked[0].shared.body)["messages"]
    assert messages[-2:] == [
        {"role": "assistant", "content": [text_block("both"), use("done")]},
        {"role": "user", "content": [result("done", "ready")]},
    ]
    assert "no result was recorded" not in str(messages)
