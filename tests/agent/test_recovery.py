"""What goes wrong around an engine: the model, the state, the disk. The result says it, and nothing is lost."""

import sqlite3

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.agents import Shop, at_once, engine, results
from support.examples import examples
from support.sessions import opened
from windowsill import Session, providers
from windowsill.agent import Engine, ModelError
from windowsill.agent.calls import BROKEN_CALL, WENT_BACK
from windowsill.agent.loop import BROKEN, CUT, EMPTY
from windowsill.errors import StoreError
from windowsill.providers.http import RetryPolicy
from windowsill.session.audit import open_calls
from windowsill.store.memory import MemoryStore
from windowsill.store.sqlite import SQLiteStore
from windowsill.testing import Call, Chaos, Scripted
from windowsill.testing.models import WORDS

pytestmark = pytest.mark.integration


def filled(store=None, **stated):
    """A session that is a good part full."""
    session = opened(store, **{"budget": 30_000, **stated})
    for number in range(60):
        session.add({"role": "user", "content": f"Question {number}. " + "word " * 150})
        session.add({"role": "assistant", "content": f"Answer {number}. " + "word " * 150})
    return session


def test_an_overflow_reduces_to_thirty_percent_and_is_asked_once_more():
    """The window is learnt, the fold can be undone, and nothing is lost."""
    session = filled()
    before = session.view.tokens()
    heard = []
    model = Chaos(inner=Scripted(["fine"], format="anthropic"), schedule=["overflow"])
    running = engine(model, session=session, listen=lambda event: heard.append(event.kind))
    result = running.run_sync("Go on.")
    assert (result.status, result.text) == ("completed", "fine")
    assert before > 18_000
    assert session.calls[-1].tokens < 0.36 * 30_000
    assert "reduced" in heard
    assert any("window was passed" in note for note in result.notes)
    assert sum(1 for _ in session.messages()) > 120
    assert session.folds[-1].active


def test_an_overflow_that_stays_ends_with_a_result():
    """After one more try."""
    model = Chaos(inner=Scripted(["never"], format="anthropic"), schedule=["overflow", "overflow"])
    result = engine(model, session=filled()).run_sync("Go on.")
    assert (result.status, model.did) == ("failed", ["overflow", "overflow"])
    assert "overflow" in result.error
    assert result.phase == "executing"


def test_what_passes_is_waited_for_and_what_does_not_ends_the_run():
    """Rate limits and broken servers are asked again a few times; a refusal is not."""
    model = Chaos(inner=Scripted(["fine"], format="anthropic"), schedule=["rate-limited", "server"])
    result = engine(model).run_sync("Go.")
    assert (result.text, len(result.notes)) == ("fine", 2)
    for kind, asked in (("server", 5), ("refused", 1), ("no-key", 1)):
        model = Scripted([ModelError(kind, "no")] * 5, format="anthropic")
        result = engine(model, retry=RetryPolicy(retries=4)).run_sync("Go.")
        assert (result.status, len(model.requests)) == ("failed", asked)
        assert kind in result.error


def paused(errors, **settings):
    """The pauses of a run that meets these errors, and its result."""
    pauses = []

    async def sleep(seconds):
        pauses.append(seconds)

    model = Scripted([*errors, "fine"], format="anthropic")
    return pauses, engine(model, sleep=sleep, **settings).run_sync("Go.")


def test_minutes_of_an_overloaded_provider_are_survived():
    """Each pause is twice as long as the one before, from a tenth of a second to a minute, with jitter."""
    pauses, result = paused([ModelError("server", "529: overloaded")] * 20)
    assert (result.status, result.text) == ("completed", "fine")
    assert pauses[:4] == pytest.approx([0.075, 0.15, 0.3, 0.6])
    assert max(pauses) == 45.0
    assert sum(pauses) > 300
    early, _ = paused([ModelError("server", "529")], random=lambda: 0.0)
    late, _ = paused([ModelError("server", "529")], random=lambda: 1.0)
    assert (early, late) == ([0.05], [0.1])


def test_retries_are_a_setting_and_a_pause_that_is_asked_for_is_kept():
    """Ten minutes if the provider says so."""
    pauses, result = paused([ModelError("rate-limited", "later", retry_after=600)])
    assert (pauses, result.text) == ([600], "fine")
    retry = RetryPolicy(retries=1, backoff=2.0)
    pauses, result = paused([ModelError("server", "500")] * 2, retry=retry)
    assert (pauses, result.status) == ([1.5], "failed")


def test_a_provider_that_wants_a_long_pause_is_not_waited_for():
    """The run ends and can be taken up later."""
    model = Scripted([ModelError("rate-limited", "later", retry_after=3_601), "fine"], format="anthropic")
    running = engine(model)
    result = running.run_sync("Go.")
    assert (result.status, len(model.requests)) == ("failed", 1)
    assert running.run_sync("Go.").text == "fine"
    assert sum(message.text == "Go." for message in running.session.messages()) == 1


@pytest.mark.parametrize("format", ["anthropic", "openai", "gemini", "responses"])
def test_an_answer_that_broke_off_is_kept_and_asked_to_go_on(format):
    """What came is in the history; a call that broke off is not run."""
    shop = Shop()
    model = Chaos(inner=Scripted(["fine"], format=format), schedule=["partial"])
    running = engine(model, shop=shop)
    result = running.run_sync("Go.")
    assert result.status == "completed"
    assert shop.did == []
    said = [message.text for message in running.session.messages()]
    assert BROKEN in said
    assert any(WORDS in text for text in said[: said.index(BROKEN)])


def test_a_call_that_broke_off_is_not_run_not_even_without_arguments():
    """An empty call could do something else than was meant."""
    for arguments in ("", "{}", '{"path": "/'):
        call = {"type": "function", "id": "c1", "function": {"name": "put", "arguments": arguments}}
        body = {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [call]}}]}
        from windowsill.agent.models import Answer  # noqa: PLC0415 - not the server's answer

        torn = Answer(body=msgspec.json.encode(body), partial=True)
        shop = Shop()
        running = engine(Scripted([torn, "fine"], format="openai"), shop=shop)
        assert running.run_sync("Go.").ok
        assert shop.did == []
        assert results(running.session) == [("put", BROKEN_CALL, True)]


def test_an_answer_at_the_limit_of_its_length_is_asked_to_go_on():
    """And one that is empty is asked again; a model that gives nothing else is given up on."""

    def said(text, stop):
        body = {
            "role": "assistant",
            "type": "message",
            "content": [{"type": "text", "text": text}],
            "stop_reason": stop,
        }
        return body if text else {**body, "content": []}

    answers = [said("It beg", "max_tokens"), said("", "end_turn"), said("ins.", "end_turn")]
    running = engine(lambda _: answers.pop(0), session=opened(budget=60_000))
    running.model.format = "anthropic"
    result = running.run_sync("Go.")
    told = [message.text for message in running.session.messages()]
    assert result.text == "ins."
    assert CUT in told
    assert EMPTY in told
    never = engine(lambda _: said("", "end_turn"))
    never.model.format = "anthropic"
    result = never.run_sync("Go.")
    assert (result.status, result.turns) == ("failed", 4)
    assert "no usable answer" in result.error


def test_an_answer_that_cannot_be_read_is_asked_for_again():
    """A garbled body is no answer, and says so when it stays."""
    from windowsill.agent.models import Answer  # noqa: PLC0415 - not the server's answer

    garbled = Answer(body=b'{"choices": 7}')
    assert engine(Scripted([garbled, "fine"], format="openai")).run_sync("Go.").text == "fine"
    result = engine(Scripted([garbled] * 4, format="openai")).run_sync("Go.")
    assert result.status == "failed"
    assert "malformed" in result.error


def test_a_damaged_state_goes_back_to_the_last_checkpoint_that_can_be_read(tmp_path):
    """The conversation goes back with it; what was left stays on its branch."""
    store = SQLiteStore(tmp_path / "sessions.db")
    session = opened(store, budget=60_000)
    shop = Shop()

    def damage(request):
        del request
        id = session.state.put("memory.short_term.variables", {"name": "x", "value": 1})
        with sqlite3.connect(tmp_path / "sessions.db") as database:
            damaged = "UPDATE body SET data = x'c1' WHERE key IN (SELECT (session << 32) | seq FROM entry WHERE id = ?)"
            database.execute(damaged, (id,))
        # As a process that is started again: it has to read what is stored.
        session.state._now = type(session.state._now)()
        return Call("put", {"path": "late"})

    model = Scripted([Call("put", {"path": "early"}), damage, "fine"], format="anthropic")
    running = engine(model, session=session, shop=shop)
    result = running.run_sync("Go.")
    assert (result.status, result.text, shop.did) == ("completed", "fine", ["put early"])
    assert results(session) == [("put", WENT_BACK, True)]
    assert any("is damaged" in note and "went back to checkpoint" in note for note in result.notes)
    assert len(session.branches) > 1
    store.close()


def test_a_disk_that_fails_ends_the_run_and_loses_nothing(tmp_path):
    """What was acknowledged is there; the run goes on when the disk does."""
    store = SQLiteStore(tmp_path / "sessions.db")
    session = opened(store, budget=60_000)
    real, left = store.append, [6]

    def append(*arguments, **named):
        left[0] -= 1
        if left[0] < 0:
            raise StoreError("the disk is full", remedy="make room")
        return real(*arguments, **named)

    store.append = append
    shop = Shop()
    script = [Call("put", {"path": "a"}), Call("put", {"path": "b"}), "fine"]
    running = engine(script, session=session, shop=shop)
    result = running.run_sync("Go.")
    assert result.status == "failed"
    assert "the disk is full" in result.error
    assert any("was not recorded" in note for note in result.notes)
    store.append = real
    again = engine(["fine"], session=opened(store, budget=60_000), shop=shop)
    assert again.run_sync("Go.").status == "completed"
    assert len(shop.did) == len(set(shop.did))
    assert again.session.verify() == []
    store.close()


def test_new_words_while_calls_are_open_say_that_they_were_not_run():
    """Nothing is run that nobody waits for any more."""
    session = opened(budget=60_000)
    shop = Shop()
    model = Scripted([Call("put", {"path": "a"}), ModelError("refused", "no")], format="anthropic")
    running = engine(model, session=session, shop=shop)
    running.run_sync("Go.")
    session.add(
        providers.get("anthropic")
        .read_reply(
            b'{"type": "message", "role": "assistant", "content": [{"type": "tool_use", "id": "t9", "name": "put",'
            b' "input": {"path": "z"}}]}'
        )
        .message
    )
    result = engine(["As you like."], session=session, shop=shop).run_sync("Stop that.")
    assert result.text == "As you like."
    assert shop.did == ["put a"]
    assert "was not run, because the user said something first" in results(session)[-1][1]


KINDS = ["ok", "overflow", "server", "rate-limited", "partial", "malformed-arguments", "unknown-tool", "repeat"]


@settings(max_examples=examples(0.3))
@given(
    schedule=st.lists(st.sampled_from(KINDS), max_size=14),
    format=st.sampled_from(["anthropic", "openai", "gemini", "responses"]),
)
def test_whatever_the_model_does_the_run_ends_with_a_result_and_a_sound_session(schedule, format):
    """Every call has a result, every request fits and is valid, side effects come once for each call."""
    store = MemoryStore()
    shop = Shop()
    script = [Call("look", {"path": "a"}), Call("put", {"path": "b"}), "done"]
    model = Chaos(inner=Scripted(script, format=format, then="done"), schedule=schedule)
    session = Session.open("s", model="claude-sonnet-4-5", budget=20_000, store=store)
    running = Engine(session, model=model, tools=shop.tools, phases=("executing",), sleep=at_once, max_turns=30)
    result = running.run_sync("Go.")
    assert result.status in ("completed", "failed", "stuck", "limit")
    assert bool(result.error) is (result.status != "completed")
    assert open_calls(session.journal) == []
    assert session.verify() == []
    assert all(call.tokens <= 20_000 for call in session.calls)
    for call in session.calls:
        assert providers.validate(msgspec.json.decode(session.request(call.id)), format) == []
    ran = [words for name, words, is_error in results(session) if name == "put" and not is_error]
    assert len(ran) == shop.did.count("put b")
    assert Session.open("s", store=store).state.value == session.state.value


def test_a_task_with_an_id_is_begun_once():
    """A second call with the id of a task that ended returns how it ended, and asks nobody; another id begins anew."""
    session = Session.open("s", model="gpt-4o", store=":memory:")
    model = Scripted(["First.", Call("finish", {"done": True, "result": "Second."})])
    engine = Engine(session, model=model, phases=("executing",))
    first = engine.run_sync("Do it.", id="run-1")
    again = engine.run_sync("Do it.", id="run-1")
    assert [(each.status, each.text) for each in (first, again)] == [("completed", "First.")] * 2
    assert (again.turns, len(model.requests)) == (0, 1)
    assert engine.run_sync("Do it.", id="run-2").text == "Second."
    assert engine.run_sync("Do it.", id="run-2").text == "Second."
    assert sum(message.text == "Do it." for message in session.messages()) == 2
