"""Requests that tell the layered state: whole once, then what changed, always at the end."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.examples import examples
from support.sessions import TASK, opened, problems, talk, tokens_of
from windowsill import Session
from windowsill.errors import SettingError
from windowsill.state import State
from windowsill.state.layers import Observation
from windowsill.store.memory import MemoryStore
from windowsill.store.sqlite import SQLiteStore

pytestmark = pytest.mark.integration

SYSTEM = "You work on a program."


def bodies_of(body):
    """The messages of a request, as they stand in it."""
    fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    return [bytes(each) for each in msgspec.json.decode(fields["messages"], type=list[msgspec.Raw])]


def composed(session):
    payload = session.compose_sync(system=SYSTEM)
    assert problems(payload) == []
    return payload.body(cache=False)


def begun(store=None, **settings):
    """A session with a task and a goal that tells its state."""
    session = opened(store, **{"budget": 20_000, "layers": 4_000, **settings})
    session.add({"role": "user", "content": TASK})
    session.state.set_goal("Mend the login page", ["all tests pass"])
    return session


def told(session):
    """The messages that tell the state and can be seen, oldest first."""
    shown = (session.view.read(item) for item in session.view.items)
    return [message.text for message in shown if message.metadata.get("windowsill") == "state"]


def test_a_session_without_a_state_tells_nothing():
    """Neither with the setting nor with the strategy."""
    for stated in ({"layers": 4_000}, {"strategy": "layered"}):
        session = opened(budget=20_000, **stated)
        session.add({"role": "user", "content": TASK})
        assert b"<context>" not in composed(session)
        assert len(session.view.items) == 1


def test_without_the_setting_a_state_is_kept_and_not_told():
    """It is the program's own."""
    session = begun(layers=None)
    assert b"<context>" not in composed(session)
    assert session.state.value.task.goal == "Mend the login page"


def test_the_state_is_told_once_and_the_request_stays_the_same():
    """Composing again, or opening again, adds nothing."""
    store = MemoryStore()
    session = begun(store)
    first = composed(session)
    assert first.count(b"<goal>Mend the login page</goal>") == 1
    assert composed(session) == first
    assert composed(opened(store)) == first
    assert len(told(session)) == 1


def test_a_change_is_told_at_the_end_and_nothing_before_it_changes():
    """So that the provider's cache stays warm."""
    session = begun()
    first = composed(session)
    session.add({"role": "assistant", "content": "I look."})
    session.add({"role": "user", "content": "Go on."})
    session.state.add_fact("The login page is in login.py", source="m1")
    second = composed(session)
    before, after = bodies_of(first), bodies_of(second)
    # The last message of the first request is the one that told the state; messages of one role may be joined there.
    assert after[: len(before)] == before
    assert b"login.py" in after[-1]
    assert b"<context_update>" in after[-1]
    assert b"all tests pass" not in after[-1]


def test_what_no_model_is_shown_is_no_news():
    """Resources that were used, and calls that were made."""
    session = begun()
    first = composed(session)
    session.state.set("runtime.resources", {"input": 5})
    session.state.put("runtime.execution.tool_calls", {"tool": "read"})
    assert composed(session) == first


def test_what_is_done_or_dropped_is_told():
    """A model that was told a variable is told that it is gone."""
    session = begun()
    session.state.put("memory.short_term.variables", {"name": "port", "value": 8080})
    composed(session)
    session.state.drop("memory.short_term.variables", "port")
    composed(session)
    assert "<removed" in told(session)[-1]
    assert "port" in told(session)[-1]


def test_after_a_fold_hid_it_the_state_is_told_whole_again():
    """With what it is by then; nothing has to be looked up in what is hidden."""
    session = begun(budget=3_000, layers=1_000)
    composed(session)
    session.state.enter("planning")
    for number in range(60):
        talk(session, 1, start=number)
        body = composed(session)
        assert tokens_of(session, body) <= 3_000
        assert body.count(b"<goal>Mend the login page</goal>") >= 1
    assert session.folds
    last = told(session)[-1]
    assert "<context>" in last
    assert "<phase>planning</phase>" in last


def test_a_rewind_takes_back_what_was_told():
    """The state of that moment is told, and only that."""
    session = begun()
    composed(session)
    here = session.view.items[-1].id
    session.state.set_goal("Something else")
    session.add({"role": "assistant", "content": "ok"})
    session.add({"role": "user", "content": "more"})
    assert b"Something else" in composed(session)
    session.rewind(here)
    assert session.state.value.task.goal == "Mend the login page"
    assert b"Something else" not in composed(session)


def test_nothing_is_told_between_a_call_and_its_result():
    """Only a step that is asked for is told anything."""
    session = begun()
    composed(session)
    session.add({"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "look", "input": {}}]})
    session.state.add_fact("The login page is blue", source="m1")
    composed(session)
    assert len(told(session)) == 1
    session.add({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "seen"}]})
    composed(session)
    assert len(told(session)) == 2


def test_a_goal_larger_than_its_share_is_told_all_the_same():
    """The task is never cut."""
    session = begun(layers=50)
    session.state.set_goal("Mend " + "every single page " * 50)
    body = composed(session)
    assert b"every single page " * 50 in body


def test_two_who_work_on_one_session_tell_a_change_once(tmp_path):
    """What one has told the other does not tell again."""
    store = SQLiteStore(tmp_path / "sessions.db")
    one, two = begun(store), opened(store)
    composed(one)
    one.state.add_fact("The login page is blue", source="x")
    first = composed(two)
    assert composed(one) == first
    assert len(told(one)) == 2
    store.close()


def test_the_strategy_layered_tells_the_state_by_itself():
    """Within its own share, in a pipeline too."""
    for strategy in ("layered", "mask+layered"):
        session = begun(layers=None, strategy=strategy)
        assert b"<goal>Mend the login page</goal>" in composed(session)


TEXTS = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=30)


@settings(max_examples=examples(0.15))
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("fact"), TEXTS),
            st.tuples(st.just("variable"), TEXTS),
            st.tuples(st.just("turn"), st.integers(5, 60)),
            st.tuples(st.just("reopen"), st.none()),
        ),
        max_size=25,
    )
)
def test_whatever_changes_requests_fit_are_valid_and_grow_at_their_end(steps):
    """Between two folds; and the model always sees the goal."""
    store = MemoryStore()
    session = begun(store, budget=2_500, layers=900)
    before, folds = None, 0
    for number, (what, value) in enumerate(steps):
        if what == "fact":
            session.state.put("memory.semantic.facts", {"content": f"login {value}", "source": "s"})
        elif what == "variable":
            session.state.put("memory.short_term.variables", {"name": "x", "value": value})
        elif what == "turn":
            talk(session, 1, start=number, words=value)
        else:
            session = opened(store)
        body = composed(session)
        assert tokens_of(session, body) <= 2_500
        assert b"<goal>Mend the login page</goal>" in body
        messages = bodies_of(body)
        if before is not None and len(session.folds) == folds:
            assert messages[: len(before) - 1] == before[:-1]
            assert messages[len(before) - 1].startswith(before[-1][:-3])
        before, folds = messages, len(session.folds)
    assert session.verify() == []
    assert Session.open("s", store=store).state.value == session.state.value != State()


def test_a_goal_that_grows_beyond_its_share_is_told_whole_in_an_update_too():
    """A turn does not fail for it."""
    session = begun(layers=150)
    composed(session)
    session.state.set_goal("Mend " + "every single page " * 80)
    body = composed(session)
    assert b"every single page " * 80 in body
    assert len(told(session)) == 2
    assert composed(session) == body


def test_when_the_first_telling_is_hidden_everything_is_told_again():
    """Changes that can still be seen are no use without what they change."""
    session = begun()
    composed(session)
    first = session.view.items[-1].id
    session.add({"role": "assistant", "content": "ok"})
    session.add({"role": "user", "content": "Go on."})
    session.state.add_fact("The login page is blue", source="x")
    composed(session)
    session.fold(first, text="hidden")
    body = composed(session)
    assert b"<goal>Mend the login page</goal>" in body
    assert "<context>" in told(session)[-1]


def test_what_was_taken_back_is_told_again_when_it_returns():
    """With the very same value as before."""
    session = begun()
    session.state.put("memory.short_term.variables", {"name": "port", "value": 8080})
    composed(session)
    session.state.drop("memory.short_term.variables", "port")
    composed(session)
    session.state.put("memory.short_term.variables", {"name": "port", "value": 8080})
    composed(session)
    assert "8080" in told(session)[-1]
    assert "<removed" not in told(session)[-1]


LONG_GOAL = "Please look through all services, find why invoices are late, and mend it before the end of the week."


def test_what_a_program_records_is_told_under_a_long_goal():
    """Facts, wishes, definitions and checklists that share no word with the task."""
    session = begun()
    state = session.state
    state.set_goal(LONG_GOAL)
    state.add_fact("The billing daemon listens on port 8080", source="ops")
    state.put("memory.semantic.preferences", {"category": "style", "name": "indent", "value": "tabs"})
    state.put("memory.semantic.definitions", {"term": "kiln", "definition": "the oven"})
    state.put("memory.procedural.checklists", {"name": "release", "items": [{"description": "tag it"}]})
    composed(session)
    assert all(word in told(session)[-1] for word in ("8080", "tabs", "kiln", "tag it"))


def test_an_embedder_of_the_session_chooses_what_is_told():
    """Of more facts than are picked, the one that means the same as the goal is there."""
    session = begun(embedder="wordllama", state={"picks": {"facts": 1}})
    session.state.set_goal("repair the automobile")
    for words in ("Paint is green", "The car's engine does not start", "Lunch is at noon"):
        session.state.add_fact(words, source="s")
    composed(session)
    assert "engine" in told(session)[-1]
    assert "Paint" not in told(session)[-1]


def test_what_is_not_told_is_in_the_report():
    """How many of each list were not picked or had no room, and a text that was shortened."""
    session = begun(layers=1_600)
    for place in range(12):
        session.state.add_fact(f"Fact {place} " + "word " * 200, source="s")
    session.state.set("work.scratchpad", "I looked at src/kiln.py. " * 600)
    notes = session.compose_sync(system=SYSTEM).report.notes
    assert any("no room for" in note and "memory.semantic.facts" in note for note in notes)
    assert any("not picked 2 of memory.semantic.facts" in note for note in notes)
    session = begun(layers=1_600)
    session.state.set("work.scratchpad", "I looked at src/kiln.py. " * 600)
    notes = session.compose_sync(system=SYSTEM).report.notes
    assert any(note.startswith("layers: work.scratchpad shortened from") for note in notes)
    assert "shortened_from_tokens" in told(session)[-1]


def test_the_look_of_the_state_is_a_setting():
    """Markdown instead of XML; a wrong setting is refused when the session is opened."""
    session = begun(state={"format": "markdown", "shares": {"shared": 95}})
    composed(session)
    assert "- goal: Mend the login page" in told(session)[-1]
    for wrong in ({"format": "yaml"}, {"picks": {"fact": 3}}, {"shares": {"base": {"x": 1}}}, {"picks": {"facts": -1}}):
        with pytest.raises(SettingError, match="state"):
            begun(state=wrong)


def test_what_was_taken_from_a_message_is_told_only_when_that_is_hidden():
    """While the message stands in the request, it would be there twice."""
    session = begun(budget=3_000, layers=1_000)
    talk(session, 4)
    message = session.add({"role": "assistant", "content": "The port is 8080."})
    entry = session.journal.seq_of(message)
    session.state.put("memory.semantic.facts", {"content": "The port is 8080", "source": message, "entry": entry})
    session.add({"role": "user", "content": "Go on."})
    composed(session)
    assert not any("8080" in text for text in told(session))
    talk(session, 60)
    composed(session)
    assert session.view.position(entry) is None
    assert "8080" in told(session)[-1]


def test_a_summary_is_told_when_nothing_stands_in_its_place():
    """While the fold that wrote it, or a later one that took it up, stands in the request, that says the same."""
    session = begun(budget=3_000, layers=1_000, strategy="condense")
    talk(session, 60)
    composed(session)
    folded = next(item for item in session.view.items if item.fold)
    session.state.put("memory.episodic.summaries", {"id": "other", "text": "the kiln was lit", "entry": folded.first})
    session.add({"role": "user", "content": "Go on."})
    composed(session)
    assert not any("kiln" in text for text in told(session))
    session.state.put("memory.episodic.summaries", {"id": "own", "text": "the oven was lit"})
    composed(session)
    assert "oven" in told(session)[-1]


def test_what_a_message_of_the_request_shows_is_not_missing_from_the_state():
    """Then the state is told whole, and nothing of it is reported as left out."""
    session = opened(layers=4_000)
    session.add("The login page is broken.")
    seen = Observation(result="it is broken " * 20, entry=session.view.items[-1].last)
    session.state.put("evidence.observations", seen)
    (note,) = session.compose_sync().report.notes
    assert "100% of what it holds" in note
