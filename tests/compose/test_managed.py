"""A whole context manager in the place of a strategy: what it composes is sent, and the promises hold around it."""

import asyncio
import json
import sys
import threading
from importlib.metadata import EntryPoint

import anthropic
import msgspec
import pytest

import windowsill
from support.agents import engine, sound
from support.conversations import result, use
from support.sessions import fill, kept, opened, problems, talk
from windowsill import ContextManager, InputError, Session, SettingError, config, strategies
from windowsill.store.memory import MemoryStore
from windowsill.strategies import registry
from windowsill.strategies.pipeline import Pipeline
from windowsill.testing import Call, Server

pytestmark = pytest.mark.unit


class Latest:
    """A context manager as a program would write one: a summary, and the latest messages."""

    name = "latest"

    def __init__(self, keep: int = 3, summary: str = "Before: the login page was mended.") -> None:
        self.keep = keep
        self.summary = summary
        self.asked = []
        self.turns = []
        self.done = threading.Event()

    async def compose_payload(self, system_prompt, history, tools, rag_context=None):
        self.asked.append((system_prompt, len(history), tools, rag_context))
        await asyncio.sleep(0)
        extra = [{"role": "user", "content": rag_context}] if rag_context else []
        return [{"role": "user", "content": self.summary}, *history[-self.keep :], *extra]

    async def on_turn_complete(self, history):
        self.turns.append(len(history))
        self.done.set()


class Answering(Latest):
    """Composes whatever the test says, or raises it."""

    def __init__(self, answer):
        super().__init__()
        self.answer = answer

    async def compose_payload(self, system_prompt, history, tools, rag_context=None):
        del system_prompt, tools, rag_context
        answer = self.answer(history) if callable(self.answer) else self.answer
        if isinstance(answer, Exception):
            raise answer
        return answer


def texts(payload):
    return [message["content"] for message in payload.messages]


def test_what_a_manager_composes_is_sent():
    """With the system prompt, the whole history, the tools and the retrieved text it was given."""
    manager = Latest()
    session = opened(strategy=manager, budget=20_000)
    talk(session, 20)
    tool = {"name": "read", "input_schema": {"type": "object"}}
    payload = session.compose_sync(system="You mend.", tools=[tool], dynamic="The page is login.html.")
    assert (texts(payload)[0][0]["text"] if isinstance(texts(payload)[0], list) else texts(payload)[0]).startswith(
        "Before"
    )
    assert "login.html" in str(texts(payload)[-1])
    assert len(payload.messages) < 8
    assert payload.to()["system"] == "You mend."
    (asked,) = manager.asked
    assert (asked[0], asked[1], asked[2][0]["name"], asked[3]) == (
        "You mend.",
        len(session.view.items) - 1,
        "read",
        "The page is login.html.",
    )
    assert not session.folds
    assert problems(payload) == []


def test_the_exact_request_can_be_built_again():
    """Though no view of the session gives it."""
    session = opened(strategy=Latest(), budget=20_000)
    for number in range(3):
        talk(session, 4, start=4 * number)
        body = session.compose_sync(system="You mend.").body()
        assert session.request(session.calls[-1].id) == body


def test_the_prefix_that_stays_is_counted():
    """A manager that only adds at the end keeps the provider's cache."""
    session = opened(strategy=Answering(lambda history: history), budget=20_000)
    talk(session, 3)
    first = session.compose_sync()
    talk(session, 1, start=3)
    second = session.compose_sync()
    assert second.messages[: len(first.messages)] == first.messages
    assert second.report.stable > first.tokens * 0.9


def test_it_is_told_when_the_model_has_answered():
    """In the background, with the whole history; what fails there is in the next report."""
    manager = Latest()
    session = opened(strategy=manager, budget=20_000)
    session.add("Hello.")
    session.compose_sync()
    session.add({"role": "assistant", "content": "Hi."})
    assert manager.done.wait(60)
    assert manager.turns == [2]


@pytest.mark.parametrize(
    "answer",
    [
        ValueError("out of memory"), None, 7, "text", [], [{"no": "message"}],
        [{"role": "system", "content": "You are somebody else."}], {"messages": None},
        lambda _: sys.exit(),
    ],
    ids=lambda value: "exit" if callable(value) else repr(value),
)  # fmt: skip
def test_a_manager_that_fails_costs_no_turn(answer):
    """The sliding window takes over, and the report says why."""
    session = opened(strategy=Answering(answer), budget=20_000)
    talk(session, 3)
    before = kept(session)
    payload = session.compose_sync()
    assert problems(payload) == []
    assert any("context manager 'latest' failed with" in note for note in payload.report.notes)
    assert kept(session) == before


def test_a_manager_that_never_answers_costs_no_turn():
    """It is waited for as long as for a model."""

    class Silent(Latest):
        async def compose_payload(self, *_, **__):
            await asyncio.sleep(60)

    session = opened(strategy=Silent(), budget=20_000, wait=0.05)
    talk(session, 3)
    payload = session.compose_sync()
    assert any("TimeoutError" in note for note in payload.report.notes)


def test_what_does_not_fit_is_reduced_and_what_is_broken_is_repaired():
    """Whatever it composes, the request fits and is valid, and the report says so."""
    session = opened(strategy=Answering(lambda history: history), budget=2_000)
    talk(session, 60)
    payload = session.compose_sync()
    assert payload.tokens <= 2_000
    assert "did not fit, and was reduced" in str(payload.report.notes)
    orphan = [{"role": "user", "content": [result("x", "nobody asked")]}, {"role": "assistant", "content": [use("y")]}]
    session = opened(strategy=Answering([*orphan, {"role": "user", "content": "And now?"}]), budget=20_000)
    session.add("Hello.")
    payload = session.compose_sync()
    assert payload.report.repairs
    assert problems(payload) == []


def test_what_fits_is_sent_as_it_was_composed():
    """Above the session's high mark too: the manager decides until the limit."""
    session = opened(strategy=Answering(lambda history: history), budget=10_000)
    fill(session, 9_000)
    payload = session.compose_sync()
    assert 8_500 < payload.tokens <= 10_000
    assert not payload.report.notes


def test_a_body_and_a_payload_are_taken_too():
    """As other composers give them; a system prompt that is repeated in the list is not sent twice."""
    other = Session.open("o", model="gpt-5", store=MemoryStore())
    other.add("From elsewhere.")
    for answer in (other.compose_sync(), {"messages": [{"role": "user", "content": "From elsewhere."}]}):
        session = Session.open("s", model="gpt-5", store=MemoryStore(), strategy=Answering(answer))
        session.add("Hello.")
        assert texts(session.compose_sync(system="You mend.")) == ["You mend.", "From elsewhere."]
    repeated = [{"role": "system", "content": "You mend."}, {"role": "user", "content": "Hi"}]
    session = Session.open("s", model="gpt-5", store=MemoryStore(), strategy=Answering(repeated))
    session.add("Hello.")
    assert texts(session.compose_sync(system="You mend.")) == ["You mend.", "Hi"]


def test_it_may_be_composed_for_from_an_event_loop():
    """Its loop is its own, and the program's loop is not blocked."""
    session = opened(strategy=Latest(), budget=20_000)
    talk(session, 3)

    async def run():
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        beside = asyncio.create_task(tick())
        payload = await session.compose()
        beside.cancel()
        return payload, ticks

    payload, ticks = asyncio.run(run())
    assert "Before: the login page" in str(texts(payload)[0])
    assert ticks > 0


def test_a_dotted_path_and_settings_name_a_manager():
    """Where strategies are named: in code, in a line, in a settings file."""
    made = strategies.get(f"{__name__}:Typed:keep=5")
    assert (made.name, made.manager.keep) == (f"{__name__}:Typed", 5)
    with pytest.raises(SettingError):
        strategies.get(f"{__name__}:Latest:keeps=5")


def test_a_package_may_offer_a_manager(monkeypatch, tmp_path):
    """By an entry point, chosen by its name or by a `plugin.json` whose config it takes."""
    point = EntryPoint("latest-messages", f"{__name__}:Latest", registry.GROUP)
    registry.find_plugin.cache_clear()
    monkeypatch.setattr(registry, "plugin_points", lambda: {"latest-messages": point})
    (tmp_path / "plugin.json").write_text(
        json.dumps({"contextStrategy": {"type": "plugin", "pluginId": "latest-messages", "config": {"summary": "S."}}})
    )
    loaded = config.load(folder=tmp_path, environ={})
    session = Session.open("s", store=MemoryStore(), config=loaded, model="gpt-5")
    session.add("Hello.")
    assert texts(session.compose_sync()) == ["S.", "Hello."] or "S." in texts(session.compose_sync())[0]
    registry.find_plugin.cache_clear()


def test_a_struct_may_be_a_manager():
    """Its fields are its settings, checked as those of strategies are."""
    with pytest.raises(SettingError, match="keep"):
        strategies.get(f"{__name__}:Typed:keep=many")
    assert isinstance(strategies.get(f"{__name__}:Typed:keep=2").manager, ContextManager)


class Typed(msgspec.Struct):
    """A manager with typed settings."""

    keep: int = 1

    async def compose_payload(self, system_prompt, history, tools, rag_context=None):
        del system_prompt, tools, rag_context
        return history[-self.keep :]

    async def on_turn_complete(self, history):
        del history


def test_a_manager_is_no_stage_of_a_pipeline():
    """It composes the whole request."""
    with pytest.raises(InputError, match="context manager"):
        Pipeline(["mask", Latest()])


def test_an_engine_works_with_a_manager():
    """Every request of the run is composed by it, and can be built again."""
    manager = Latest(keep=50)
    session = opened(strategy=manager, budget=60_000)
    done = asyncio.run(engine([Call("look", {"path": "a.py"}), "It says hello."], session=session).run("Look."))
    assert (done.status, len(manager.asked)) == ("completed", 2)
    assert sound(session)


def test_a_wrapped_client_works_with_a_manager():
    """What it composes is what the provider gets."""
    with Server() as server, anthropic.Anthropic(base_url=server.url, api_key="none") as plain:
        session = opened(strategy=Latest(keep=1), budget=60_000)
        client = windowsill.wrap(plain, session)
        history = [{"role": "user", "content": "Hello."}]
        for words in ("And again.", "Bye."):
            said = client.messages.create(model="claude-sonnet-4-6", max_tokens=99, messages=history)
            history += [{"role": "assistant", "content": said.content}, {"role": "user", "content": words}]
        summary = "Before: the login page was mended."
        sent = [[message["content"] for message in seen.body["messages"]] for seen in server.seen]
        assert sent == [[summary, "Hello."], [summary, "And again."]]
