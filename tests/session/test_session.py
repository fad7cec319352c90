"""The session as a user holds it."""

import gc
import inspect
import itertools
import json
import re

import anthropic.types
import openai.types.chat
import pytest

import windowsill
from support.conversations import result, text_block, use
from windowsill import BudgetError, InputError, NotFoundError, Session, Tool
from windowsill.messages import Message, text_message
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.unit

TOOLS = [{"name": "read", "description": "Read\na file", "input_schema": {"type": "object", "properties": {}}}]


def opened(store=None, **settings):
    ticks = itertools.count(1)
    return Session.open(
        "s",
        store=store or MemoryStore(),
        clock=lambda: float(next(ticks)),
        **{"model": "claude-sonnet-4-5", "budget": 1_500, "tokenizer": "o200k_base", **settings},
    )


def talk(session, turns, start=0):
    if not session.view.items:
        session.add({"role": "user", "content": "the task"})
    for turn in range(start, start + turns):
        session.add({"role": "assistant", "content": [text_block("looking"), use(f"t{turn}")]})
        session.add({"role": "user", "content": [result(f"t{turn}", f"line {turn} " + "word " * 30)]})


def test_a_reply_of_the_anthropic_sdk_is_added_with_its_usage():
    """The object itself, as the client returns it."""
    session = opened(tokenizer=None, budget=None)
    talk(session, 10)
    payload = session.compose_sync()
    reply = anthropic.types.Message.model_validate(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": [{"type": "text", "text": "done"}, use("z")],
            "stop_reason": "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": payload.tokens, "output_tokens": 7},
        }
    )
    session.add(reply)
    added = list(session.messages())[-1]
    assert (added.role, added.text, [call.id for call in added.calls]) == ("assistant", "done", ["z"])
    assert session.composer.context.describe()["observations"] == 1
    session.add({"role": "user", "content": [result("z")]})
    assert windowsill.validate({"max_tokens": 5, **session.compose_sync().to()}) == []


def test_a_reply_of_the_openai_sdk_is_added_with_its_usage():
    """The object itself, as the client returns it."""
    session = opened(model="gpt-5", tokenizer=None, budget=None)
    session.add({"role": "user", "content": "plain words " * 100})
    payload = session.compose_sync()
    call = {"id": "z", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    reply = openai.types.chat.ChatCompletion.model_validate(
        {
            "id": "c",
            "object": "chat.completion",
            "created": 1,
            "model": "gpt-5",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "tool_calls",
                    "message": {"role": "assistant", "content": None, "tool_calls": [call]},
                }
            ],
            "usage": {"prompt_tokens": payload.tokens, "completion_tokens": 7, "total_tokens": payload.tokens + 7},
        }
    )
    session.add(reply)
    assert [each.id for each in list(session.messages())[-1].calls] == ["z"]
    assert session.composer.context.describe()["observations"] == 1
    session.add({"role": "tool", "tool_call_id": "z", "content": "ok"})
    assert windowsill.validate(session.compose_sync().to(), "openai") == []


def test_every_past_request_is_rebuilt_byte_for_byte(tmp_path):
    """V5: after more turns, folds, other system prompts and tools, and after opening again."""
    session = opened(tmp_path)
    sent = []
    for turn in range(40):
        talk(session, 1, start=turn)
        payload = session.compose_sync(
            system=["a", [text_block("b")], None][turn % 3], tools=TOOLS * (turn % 2), params={"max_tokens": turn + 1}
        )
        sent.append(payload.body())
    calls = [call.id for call in session.calls]
    assert any(call.folds for call in session.calls)
    assert [session.request(id) for id in calls] == sent
    session.close()
    with opened(tmp_path) as again:
        assert [again.request(id) for id in calls] == sent


@pytest.mark.parametrize(
    ("system", "tools"),
    [
        (text_message("system", "mend it"), ()),
        (None, [Tool(name="read", description="Read", schema={"type": "object"})]),
        (None, [b'{"name": "read",\n "input_schema": {"type": "object"}}']),
        (None, [json.dumps(TOOLS[0], indent=2)]),
    ],
    ids=["our own system message", "our own tool", "a tool as bytes with line breaks", "a tool as indented text"],
)
def test_a_request_of_any_parts_is_rebuilt(system, tools):
    """V5: whatever form the system prompt and the tools were given in."""
    session = opened()
    session.add("hi")
    body = session.compose_sync(system=system, tools=tools).body()
    assert session.request(session.calls[-1].id) == body


def test_system_and_tools_that_do_not_fit_are_an_error_with_both_sizes():
    """B1: nothing is cut, both are named, and what to do."""
    session = opened(budget=500)
    session.add("hi")
    tools = [{"name": "read", "description": "word " * 400, "input_schema": {"type": "object"}}]
    with pytest.raises(BudgetError, match=r"system prompt [\d,]+ tokens, tool definitions [\d,]+ tokens") as caught:
        session.compose_sync(system="rule " * 300, tools=tools)
    assert caught.value.parts["system prompt"] > 250
    assert caught.value.parts["tool definitions"] > 350
    assert caught.value.wanted > caught.value.available == 500


def test_between_the_marks_nothing_is_folded():
    """B9: the request only grows at its end, for many turns."""
    session = opened(budget=4_000)
    folding, before = 0, b""
    for turn in range(120):
        talk(session, 1, start=turn)
        payload = session.compose_sync(system="mend it")
        body = payload.body(cache=False)
        if payload.report.folds:
            folding += 1
        elif before:
            assert body.startswith(before[:-2])
        before = body
    assert 2 <= folding <= 8


def test_context_for_a_step_stands_at_the_end():
    """Recorded once, where it leaves the cached prefix whole."""
    session = opened()
    talk(session, 2)
    before = session.compose_sync().body(cache=False)
    payload = session.compose_sync(dynamic="The goal: green tests.")
    assert payload.messages[-1]["content"][-1]["text"] == "The goal: green tests."
    assert session.compose_sync(dynamic="The goal: green tests.").body() == payload.body()
    session.add({"role": "assistant", "content": "on it"})
    assert session.compose_sync().body(cache=False).startswith(before[:-4])


def test_context_for_a_step_is_not_the_users_word():
    """A fold must not quote retrieved text as what the user wrote."""
    session = opened()
    session.add({"role": "user", "content": "the task"})
    for turn in range(30):
        session.compose_sync(dynamic=f"RETRIEVED page {turn}")
        session.add({"role": "assistant", "content": "reply " * 40})
        session.add({"role": "user", "content": f"question {turn}"})
    payload = session.compose_sync()
    marker = next(item for item in session.view.items if item.fold)
    words = session.view.read(marker).text
    assert "question 0" in words
    assert "RETRIEVED" not in words
    assert payload.tokens <= 1_500


def test_context_for_a_step_is_not_the_task():
    """Also when it comes before anything else."""
    session = opened()
    session.compose_sync(dynamic="The goal: green tests.")
    session.add({"role": "user", "content": "the task"})
    assert session.view.read(session.view.items[session.view.task()]).text == "the task"


def test_adding_costs_the_same_however_long_the_history_is():
    """T3: how many messages are read again does not grow with their number."""
    session = opened(budget=1_000_000)
    reader, read = session.view.read, []
    reads = []
    for number in range(400):
        if number in (100, 399):
            read.clear()
            session.view.read = lambda item: read.append(item.id) or reader(item)
        session.add(f"plain words {number}")
        if number in (100, 399):
            reads.append(len(read))
    assert reads[0] == reads[1]


def test_an_id_may_be_given_once():
    """Ids are unique in their session, on every branch."""
    session = opened()
    session.add("hi", id="mine")
    with pytest.raises(InputError, match="'mine' already"):
        session.add("again", id="mine")
    assert [message.text for message in session.messages()] == ["hi"]


def test_several_messages_are_not_one():
    """`add` takes one message; `extend` takes a list, all or nothing."""
    session = opened()
    with pytest.raises(InputError, match="extend"):
        session.add([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])
    with pytest.raises(InputError):
        session.extend([{"role": "user", "content": "a"}, {"content": "no role"}])
    assert list(session.messages()) == []


def test_what_is_pinned_stays_until_it_is_unpinned():
    """H8: no default strategy hides it."""
    session = opened()
    talk(session, 3)
    session.pin("m3")
    talk(session, 40, start=10)
    session.compose_sync()
    assert "m3" in [item.id for item in session.view.items]
    session.pin("m3", off=True)
    for start in range(60, 260, 20):
        talk(session, 20, start=start)
        session.compose_sync()
    assert "m3" not in [item.id for item in session.view.items]


def test_an_unknown_mark_is_refused():
    """Before anything is written."""
    session = opened()
    session.add("hi")
    with pytest.raises(NotFoundError, match="no mark"):
        session.mark("m1", add=("sparkling",))


@pytest.mark.parametrize("marks", [{}, {"add": "important"}])
def test_marks_are_a_list(marks):
    """Without any nothing would happen, and the letters of one are none."""
    session = opened()
    session.add("Keep this.")
    with pytest.raises(InputError, match="a list of marks"):
        session.mark("m1", **marks)


def test_the_class_is_not_called_by_itself():
    """Whoever tries reads how a session is opened."""
    with pytest.raises(InputError, match=r"Session\.open\(id, model=\.\.\.\)"):
        Session("demo", model="gpt-5")


def test_a_name_is_text():
    """What is no text, such as an id that was not set, is refused in words."""
    with pytest.raises(InputError, match="the session's name is a NoneType; give 1 to 500 characters of text"):
        Session.open(None, model="gpt-5", store=":memory:")


def test_errors_in_code_name_what_code_can_look_at():
    """A message that is not there is not answered with a command line."""
    session = Session.open("s", model="gpt-5", store=":memory:")
    with pytest.raises(NotFoundError, match=r"has no message 'm9'; `session.messages\(\)` lists what it has"):
        session.message("m9")


def test_a_name_has_a_length():
    """Nothing, or too much, is no name."""
    for name in ("", "x" * 501):
        with pytest.raises(InputError, match="name"):
            Session.open(name, budget=5_000, store=MemoryStore())


@pytest.mark.parametrize("format", ["anthropic", "openai"])
def test_the_format_is_that_of_the_conversation(format):
    """Told from the first message that has one, or from the model."""
    session = opened(model={"anthropic": "claude-sonnet-4-5", "openai": "gpt-5"}[format])
    session.add("plain words")
    assert session.composer.format == format
    assert windowsill.validate({"max_tokens": 5, **session.compose_sync().to()}, format) == []


def test_every_public_name_stands_in_a_group():
    """The docstring of the class is what a user learns it from."""
    names = set(re.findall(r"`(\w+)`", Session.__doc__)) - {"Session"}
    session = opened()
    public = {name for name in dir(session) if not name.startswith("_")}
    assert public == names


@pytest.mark.parametrize(("name", "states"), [("compose", "dynamic"), ("compact", "wish"), ("reduce", "to")])
def test_the_form_for_an_event_loop_has_its_name_and_signature(name, states):
    """An editor and `help` show what may be stated."""
    form = getattr(Session, name)
    assert (form.__name__, form.__qualname__) == (name, f"Session.{name}")
    assert states in inspect.signature(form).parameters
    assert inspect.iscoroutinefunction(form)


@pytest.mark.growth
def test_a_closed_session_holds_no_messages():
    """They are free at once, and not when the next full collection comes."""
    gc.disable()
    try:
        with Session.open("s", store=MemoryStore(), model="claude-sonnet-5") as session:
            session.add({"role": "user", "content": "a word that stands nowhere else"})
        del session
        assert not [each for each in gc.get_objects() if isinstance(each, Message) and "nowhere else" in each.text]
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda: Session.open("s", store=":memory:"), "no model is stated; give model="),
        (lambda: windowsill.open_store(5), "an int is no address of a store"),
        (lambda: windowsill.fit({"messages": 5}, model="gpt-5"), "messages"),
        (lambda: windowsill.fit([{"role": "user", "content": "x"}], model="gpt-5", max_output="x"), "'max_output' is"),
        (lambda: windowsill.Engine("s", model="anthropic:claude-sonnet-5"), "a str is no session"),
    ],
)
def test_what_is_wrong_is_told_in_our_words(wrong, told):
    """Errors name what was given, and what may be."""
    with pytest.raises(windowsill.WindowsillError, match=re.escape(told)):
        wrong()


@pytest.mark.parametrize("value", ["abc", b"abc", {"role": "user", "content": "abc"}])
def test_one_message_is_not_a_list_of_messages(value):
    """The letters of a text, or the keys of a message, are no messages."""
    session = opened()
    with pytest.raises(InputError, match="`extend` takes a list of messages; use `add` for one"):
        session.extend(value)
    assert list(session.messages()) == []
