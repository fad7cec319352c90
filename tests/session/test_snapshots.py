"""Snapshot files of a session (C1): what the model saw, and an agent that goes on from it when the database is lost."""

import json
import logging

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as run

from support.conversations import sound_anthropic, sound_openai
from support.examples import examples
from support.sessions import opened, problems, shown, talk
from windowsill import DamagedError, InputError, NotFoundError, Session, StoreError, UnknownModelError, providers
from windowsill.messages import READ_TOOL
from windowsill.session.checkpoints import Automatic
from windowsill.session.snapshots import load_snapshot, save_snapshot, snapshot_of
from windowsill.store.memory import MemoryStore
from windowsill.strategies.sliding_window import SlidingWindow

pytestmark = pytest.mark.integration

FORCED = {"rule": Automatic(), "force": True}


def snapshot(session):
    """Return what a snapshot file of the session would hold now."""
    return snapshot_of(session.journal, providers.get(session.composer.format), session.settings, session.state.value)


def content(path):
    return json.loads(path.read_bytes())


def body(session, **options):
    return session.compose_sync(system="You mend.", **options).body(cache=False)


def begun(place, **options):
    return Session.from_snapshot(place, **{"store": MemoryStore(), **options})


@pytest.fixture
def session(tmp_path):
    """A session that was folded, with a mark, an id of its own and a state."""
    with opened(tmp_path / "store") as made:
        made.add({"role": "user", "content": "Mend the login page."}, id="the-task")
        talk(made, 30)
        made.pin(made.view.items[4].id)
        made.state.set_goal("Mend the login page")
        made.state.enter("planning")
        made.compose_sync(system="You mend.")
        assert made.folds
        yield made


def test_it_holds_what_the_model_sees_in_the_sessions_format(session):
    """And not the history: messages, tokens, model, phase, the entry it stood at."""
    value = content(session.write_snapshot())
    seen = [(item.fold, session.view.read(item)) for item in session.view.items]
    said = dict(zip(range(len(seen)), value["messages"], strict=True))
    stand_ins = [said.pop(place) for place, (fold, _) in enumerate(seen) if fold]
    assert list(said.values()) == [json.loads(message.raw) for fold, message in seen if not fold]
    assert {each["content"][0]["text"][:16] for each in stand_ins} == {"[Memory Summary]"}
    assert (value["version"], value["token_count"], value["session"]) == ("1.0", session.view.tokens(), "s")
    assert (value["format"], value["model"], value["phase"]) == ("anthropic", "claude-sonnet-4-5", "planning")
    assert value["state"]["task"]["goal"] == "Mend the login page"
    assert value["entry"] == session.folds[-1].id
    assert len(value["messages"]) < 61


def test_it_stands_beside_the_database(session, tmp_path):
    """In a folder of its session, numbered."""
    path = session.write_snapshot()
    assert path.parent.parent == tmp_path / "store" / "snapshots"
    assert (path.name, session.write_snapshot().name) == ("0001.json", "0002.json")


@pytest.mark.parametrize("id", ["../../etc/passwd", "/", "日本語", "x" * 500])
def test_a_session_with_an_awkward_name_writes_nowhere_else(tmp_path, id):
    """Whatever its name holds."""
    with opened(tmp_path / "store", id) as made:
        made.add("Hello.")
        path = made.write_snapshot()
    assert path.resolve().parent.parent == (tmp_path / "store" / "snapshots").resolve()
    assert load_snapshot(path).snapshot.session == id


def test_the_last_five_are_kept(session):
    """However often it is written."""
    paths = [session.write_snapshot() for _ in range(8)]
    assert [path.exists() for path in paths] == [False] * 3 + [True] * 5


def test_a_session_in_memory_needs_a_folder(tmp_path):
    """The error says so; with one, two sessions do not touch each other's files."""
    one, other = opened(id="one"), opened(id="other")
    one.add("Hello.")
    other.add("Hello.")
    with pytest.raises(InputError, match="session 'one' is kept in no folder; give the folder"):
        one.write_snapshot()
    with pytest.raises(InputError, match="kept in no folder"):
        one.checkpoints.make_if_due(**FORCED, snapshots=True)
    assert one.checkpoints() == []
    first = one.write_snapshot(tmp_path, keep=1)
    other.write_snapshot(tmp_path, keep=1)
    assert first.exists()


def test_the_newest_summary_stands_by_itself():
    """Of several that the model sees, the one that was made last; without one there is none."""
    session = opened(budget=100_000)
    talk(session, 10)
    assert snapshot(session).summary is None
    ids = [item.id for item in session.view.items]
    session.fold(ids[9], ids[10], text="what came later")
    session.fold(ids[1], ids[2], text="what came first")
    assert snapshot(session).summary == "what came first"
    session.fold(ids[5], ids[6], kind="truncate")
    assert snapshot(session).summary == "what came first"


def test_a_snapshot_does_not_grow_with_the_history():
    """It is bounded by the window."""
    session = opened()
    sizes: list[int] = []
    for number in range(0, 400, 100):
        talk(session, 100, start=number)
        session.compose_sync()
        sizes.append(len(msgspec.json.encode(snapshot(session))))
    assert max(sizes[1:]) < 1.5 * sizes[0]


def test_an_agent_goes_on_where_it_was(session):
    """C1: what it sends next is what it would have sent, and it fits, is valid, and can be folded on."""
    path = session.write_snapshot()
    with begun(path) as copy:
        assert [message for _, message in shown(copy)] != []
        assert body(copy) == body(session)
        assert (copy.id, copy.model.name, copy.settings) == ("s", session.model.name, session.settings)
        assert copy.state.value == session.state.value
        for each in (session, copy):
            talk(each, 40, start=30)
        payload = copy.compose_sync(system="You mend.")
        assert (payload.tokens <= 1_500, problems(payload)) == (True, [])
        assert copy.verify() == []


def test_ids_marks_times_and_notes_come_along(session):
    """Ids that the user gave; those that the journal gave are given anew."""
    session.add("context", metadata={"windowsill": "dynamic", "from": "me"}, at=77.5)
    with begun(session.write_snapshot()) as copy:
        assert copy.message("the-task").at == session.message("the-task").at
        assert [item.pinned for item in copy.view.items] == [item.pinned for item in session.view.items]
        last = list(copy.messages())[-1]
        assert (last.at, last.metadata) == (77.5, {"windowsill": "dynamic", "from": "me"})
        assert copy.view.task() == session.view.task() == 0
        ids = [message.id for message in copy.messages()]
        assert ids[1:] == [f"m{number}" for number in range(2, len(ids) + 1)]


def test_what_stood_in_for_hidden_messages_is_not_the_users_own():
    """A summary that became a message is still told apart from what the user said."""
    session = opened(budget=100_000)
    talk(session, 6)
    ids = [item.id for item in session.view.items]
    session.fold(ids[1], ids[4], text="Look at every file twice.")
    copy = Session.from_snapshot(_saved(session), store=MemoryStore())
    assert [item.own for item in copy.view.items[:2]] == [True, False]


def _saved(session):
    import tempfile  # noqa: PLC0415 - one test has no folder of its own

    return session.write_snapshot(tempfile.mkdtemp())


@run(max_examples=examples(0.25))
@given(sound_anthropic())
def test_any_conversation_with_anthropic_is_sent_the_same(messages):
    """Tools in parallel, reasoning, pictures and blocks that nobody knows."""
    assert_same(messages, "anthropic", "claude-sonnet-4-5")


@run(max_examples=examples(0.25))
@given(sound_openai())
def test_any_conversation_with_openai_is_sent_the_same(messages):
    """System messages inside, tools in parallel."""
    assert_same(messages, "openai", "gpt-5")


def assert_same(messages, format, model):
    session = opened(budget=100_000, model=model, format=format)
    session.extend(messages)
    copy = Session.from_snapshot(_saved(session), store=MemoryStore())
    assert body(copy) == body(session)
    assert copy.view.tokens() == session.view.tokens()


@pytest.mark.parametrize("format", ["openai", "responses", "gemini", "deepseek"])
def test_a_session_in_any_format_comes_back(format, tmp_path):
    """Also one whose messages came in another format than it has."""
    session = opened(budget=100_000, format=format, model="gpt-5")
    talk_openai(session)
    copy = begun(session.write_snapshot(tmp_path))
    assert copy.composer.format == format
    assert copy.compose_sync().messages == session.compose_sync().messages


def talk_openai(session):
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path":"a"}'}}
    session.add({"role": "user", "content": "Read a."}, format="openai")
    session.add({"role": "assistant", "content": None, "tool_calls": [call]}, format="openai")
    session.add({"role": "tool", "tool_call_id": "c1", "content": "done"}, format="openai")
    session.add({"role": "assistant", "content": "It is read."}, format="openai")


def test_refs_of_outputs_are_left_out(tmp_path):
    """What they lead to is lost with the database."""
    session = opened(budget=3_000, strategy="outputs")
    talk(session, 6, words=400)
    tool = {"name": READ_TOOL, "input_schema": {"type": "object"}}
    assert b"ref=o3" in session.compose_sync(tools=[tool]).body()
    data = session.write_snapshot(tmp_path).read_bytes()
    assert (b"ref=" in data, b"[tool output trimmed" in data) == (False, True)


def test_an_empty_session_and_one_without_a_state_come_back(tmp_path):
    """There is little to write, and nothing to fail at."""
    empty = opened(id="empty")
    assert content(empty.write_snapshot(tmp_path))["state"] is None
    empty.state.set_goal("Begin")
    with begun(empty.write_snapshot(tmp_path)) as copy:
        assert (copy.view.items, copy.state.value.task.goal) == ([], "Begin")


def test_messages_that_another_program_wrote_will_do(tmp_path):
    """With nothing beside them."""
    session = opened()
    session.add("Hello.")
    shot = msgspec.structs.replace(snapshot(session), about=())
    assert [message.text for message in begun(save_snapshot(tmp_path, shot)).messages()] == ["Hello."]


def test_another_name_and_other_settings_may_be_stated(session, tmp_path):
    """They win over those of the snapshot, and are kept with the new session."""
    path = session.write_snapshot()
    with Session.from_snapshot(path, store=tmp_path / "new", id="t", budget=9_000) as copy:
        assert (copy.id, copy.settings.budget, copy.settings.model) == ("t", 9_000, "claude-sonnet-4-5")
    with Session.open("t", store=tmp_path / "new") as again:
        assert (again.settings.budget, len(again.view.items)) == (9_000, len(session.view.items))


def test_a_session_that_exists_is_never_touched(session):
    """The error says to give another name."""
    path, version, settings = session.write_snapshot(), session.journal.version, session.settings
    with pytest.raises(InputError, match="there is a session 's' already; give another id"):
        Session.from_snapshot(path, store=session.journal.store, budget=9)
    session.journal.refresh()
    assert session.journal.version == version
    assert Session.open("s", store=session.journal.store).settings == settings


def test_one_that_cannot_be_begun_leaves_nothing_behind(session, tmp_path):
    """A model that is not known, or a state of another time."""
    store = MemoryStore()
    with pytest.raises(UnknownModelError):
        begun(session.write_snapshot(), store=store, model="no-such-model", budget=0.5)
    shot = msgspec.structs.replace(snapshot(session), state=msgspec.Raw(b'{"no": 1}'))
    with pytest.raises(InputError, match="not a state"):
        begun(save_snapshot(tmp_path / "x", shot), store=store)
    shot = msgspec.structs.replace(snapshot(session), settings=msgspec.Raw(b'{"no": 1}'))
    with pytest.raises(DamagedError, match="settings of session 's' are damaged"):
        begun(save_snapshot(tmp_path / "y", shot), store=store)
    assert store.sessions() == []


def test_the_one_before_a_damaged_one_is_used_and_that_is_logged(session, caplog):
    """C1: found by its folder."""
    good, bad = session.write_snapshot(), session.write_snapshot()
    bad.write_bytes(bad.read_bytes()[:-100])
    with caplog.at_level(logging.WARNING, logger="windowsill"):
        copy = begun(good.parent)
    assert len(copy.view.items) == len(session.view.items)
    assert f"snapshot {bad} is damaged" in caplog.text


def test_a_place_without_snapshots_is_told(tmp_path):
    """And nothing is begun."""
    with pytest.raises(NotFoundError, match="there is no snapshot"):
        Session.from_snapshot(tmp_path, store=tmp_path / "store")
    assert not (tmp_path / "store").exists()


def test_an_automatic_checkpoint_may_write_one_too(session, tmp_path):
    """Off unless asked for; beside the database, or where it is said."""
    assert session.checkpoints.make_if_due(**FORCED).reason == "forced"
    assert not (tmp_path / "store" / "snapshots").exists()
    made = session.checkpoints.make_if_due(**FORCED, snapshots=True)
    assert load_snapshot(tmp_path / "store" / "snapshots").snapshot.entry == made.id
    session.checkpoints.make_if_due(**FORCED, snapshots=tmp_path / "else")
    assert load_snapshot(tmp_path / "else").snapshot.session == "s"
    never = Automatic(seconds=None, messages=None, tokens=None, on_phase=False)
    assert session.checkpoints.make_if_due(never, snapshots=tmp_path / "never") is None
    assert not (tmp_path / "never").exists()


def test_a_snapshot_that_cannot_be_written_costs_no_turn(session, tmp_path, caplog):
    """The checkpoint is made, and the trouble is logged; asked for by hand it is an error."""
    (tmp_path / "file").write_text("")
    with caplog.at_level(logging.WARNING, logger="windowsill"):
        assert session.checkpoints.make_if_due(**FORCED, snapshots=tmp_path / "file").reason == "forced"
    assert "no snapshot can be written" in caplog.text
    with pytest.raises(StoreError, match="no snapshot can be written"):
        session.write_snapshot(tmp_path / "file")


def test_a_session_from_a_snapshot_takes_a_strategy_and_a_writer(session):
    """Objects too, as `Session.open` does."""

    async def mine(_):
        return "text"

    copy = Session.from_snapshot(_saved(session), store=MemoryStore(), strategy=SlidingWindow(keep=3), writer=mine)
    assert (copy.composer.strategy, copy.composer.summaries.source) == (SlidingWindow(keep=3), mine)
