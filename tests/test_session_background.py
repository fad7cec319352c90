"""Summaries that a model writes while the agent goes on."""

import asyncio
import logging
import threading

import pytest

from sessions import TASK, opened, talk
from windowsill import Session, WindowsillError
from windowsill.history.folds import Brief
from windowsill.session.agent_state import AgentState
from windowsill.session.manager import ContextManager, Manager
from windowsill.store.memory import MemoryStore
from windowsill.strategies import Plan
from windowsill.strategies.sliding_window import fold_units, free_units
from windowsill.writers import ModelWriter, Written

pytestmark = pytest.mark.unit


class Condensing:
    """Hides all it may behind a summary, once the high mark is passed."""

    name = "condensing"

    def __init__(self, *, needed=True):
        self.needed = needed

    def plan(self, view, _):
        units = free_units(view, keep=2)
        brief = Brief(needed=self.needed)
        proposal = fold_units(view, units, strategy=self.name, reason="full", quote=0, kind="condense", brief=brief)
        return Plan(proposals=(proposal,) if proposal else ())


class Slow:
    """A model that writes when it is told to."""

    name = "slow"

    def __init__(self, text="Everything was looked at."):
        self.text = text
        self.go = threading.Event()
        self.asked = []
        self.begun = threading.Event()
        self.cancelled = False

    async def awrite(self, _, material):
        self.asked.append(material)
        self.begun.set()
        try:
            await asyncio.to_thread(self.go.wait, 5)
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        if isinstance(self.text, Exception):
            raise self.text
        return Written(text=self.text, writer=self.name)


def made(writer, *, budget=3_000, wait=5.0, **settings):
    session = opened(budget=budget, wait=wait, **settings)
    session._composer.strategy = settings.get("plug_in") or Condensing()
    session._composer.fitting.desk.use(writer)
    return session


def finished(session):
    """Wait until what is being written is written."""
    session._composer.fitting.desk._background.job.texts.exception(timeout=5)


def fill(session, tokens, start=0):
    """Turns until the view has so many tokens."""
    while session.tokens < tokens:
        talk(session, 1, start=start)
        start += 1
    return start


def test_it_is_asked_for_at_the_warning_mark_and_used_at_the_next_request():
    """Nothing waits: the request goes as it is, and the fold comes with a later one."""
    writer = Slow()
    assert isinstance(writer, ModelWriter)
    session = made(writer)
    at = fill(session, 1_900)
    assert session.compose_sync().report.folds == ()
    assert writer.begun.wait(5)
    fill(session, 2_100, start=at)
    assert session.compose_sync().report.folds == ()
    writer.go.set()
    finished(session)
    fold = session.compose_sync().report.folds[0]
    assert (fold.strategy, fold.kind) == ("condensing", "condense")
    assert "Everything was looked at." in str(session.compose_sync().to())
    assert len(writer.asked) == 1
    assert session.verify() == []


def test_what_is_written_is_of_the_history_as_it_was():
    """What was added meanwhile is not hidden by it."""
    writer = Slow()
    session = made(writer)
    at = fill(session, 1_900)
    session.compose_sync()
    assert writer.begun.wait(5)
    hidden = writer.asked[0].messages[-1].id
    fill(session, 2_200, start=at)
    last = session.items()[-3].id
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
    session.rewind(session.items()[2].id)
    writer.go.set()
    finished(session)
    assert session.compose_sync().report.folds == ()
    assert session.verify() == []


def test_in_an_emergency_no_model_is_asked():
    """The strategy says that code shall write it."""
    writer = Slow()
    session = made(writer)
    session._composer.strategy = Condensing(needed=False)
    fill(session, 3_300)
    assert session.compose_sync().tokens <= 3_000
    assert writer.asked == []


def test_closing_stops_what_is_being_written():
    """Nothing runs on, and nothing is lost."""
    writer = Slow()
    session = made(writer)
    fill(session, 1_900)
    session.compose_sync()
    assert writer.begun.wait(5)
    thread = [each for each in threading.enumerate() if each.name == "windowsill-writer"][-1]
    session.close()
    writer.go.set()
    thread.join(timeout=5)
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


def test_a_filling_window_is_said_once_for_each_crossing(caplog):
    """At the warning mark, not with every request above it."""
    session = opened(budget=3_000)
    with caplog.at_level(logging.WARNING, logger="windowsill"):
        at = fill(session, 1_900)
        session.compose_sync()
        fill(session, 2_000, start=at)
        session.compose_sync()
    assert len([record for record in caplog.records if "of what fits" in record.message]) == 1


def test_statistics_say_what_reducing_did():
    """Messages and tokens before, after and removed; how often it ran."""
    session = opened(budget=1_500)
    assert session_stats(session) is None
    fill(session, 2_000)
    found = session.compose_sync().report.statistics
    assert found.pruned
    assert found.emergency
    assert found.messages_removed == found.messages_before - found.messages_after > 0
    assert found.tokens_removed == found.tokens_before - found.tokens_after > 0
    assert (found.runs, session.compose_sync().report.statistics.runs) == (1, 1)
    assert not session.compose_sync().report.statistics.pruned


def session_stats(session):
    talk(session, 1)
    found = session.compose_sync().report.statistics
    return found if found.pruned else None


def test_an_agents_state_reduces_when_it_has_grown():
    """E3: by role and text."""
    state = AgentState(opened(budget=1_000))

    async def run():
        found = None
        for number in range(40):
            found = await state.add_message_with_pruning("user", f"note {number} " + "word " * 30)
            state.add_message("assistant", "noted")
            if found.pruned:
                return found
        return found

    assert asyncio.run(run()).tokens_removed > 0
    assert state.conversation_history[0]["content"].startswith("note 0")


def test_a_context_manager_takes_an_agents_list():
    """`compose_payload` and `on_turn_complete`: what is new is added, what is retrieved comes last."""
    session = Session.open("m", model="gpt-5", store=MemoryStore())
    manager = Manager(session)
    assert isinstance(manager, ContextManager)
    history = [{"role": "user", "content": TASK}]

    async def run():
        payload = await manager.compose_payload("You mend.", history, [], rag_context="The page is login.html.")
        history.append({"role": "assistant", "content": "done"})
        await manager.on_turn_complete(history)
        history.append({"role": "user", "content": "thanks"})
        return payload, await manager.compose_payload("You mend.", history, [])

    first, second = asyncio.run(run())
    assert [message["content"] for message in first.messages] == ["You mend.", TASK, "The page is login.html."]
    assert second.messages[-1]["content"] == "thanks"
    assert len(list(session.messages())) == 4
    assert len(session.branches) == 1


def test_below_the_high_mark_nothing_is_hidden_when_nothing_could_be_written():
    """A marker would hide words that have room."""

    class Early(Condensing):
        def due(self, view, _):
            return len(view.items) > 6

    session = opened(budget=100_000)
    session._composer.strategy = Early()
    session._composer.fitting.desk.use(Silent())
    talk(session, 5)
    assert session.compose_sync().report.folds == ()


def test_a_strategy_may_know_something_better_than_a_marker():
    """Where its summary could not be written."""

    class Careful(Condensing):
        def instead(self, view, _):
            units = free_units(view, keep=6)
            return Plan(proposals=(fold_units(view, units, strategy="instead", reason="no summary", quote=0),))

    session = opened(budget=1_500)
    session._composer.strategy = Careful()
    session._composer.fitting.desk.use(Silent())
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

    session, idle = opened(budget=3_000), Idle()
    session._composer.strategy = idle
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
    assert writer.begun.wait(5)
    fill(session, 3_300, start=at)
    threading.Timer(0.05, writer.go.set).start()
    payload = session.compose_sync()
    assert payload.tokens <= 3_000
    assert "Everything was looked at." in str(payload.to())
    assert not any("written by code" in note for note in payload.report.notes)
