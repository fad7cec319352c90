"""Signed reasoning that is bound to its past is left out where that past was edited."""

import itertools

import anthropic
import pytest

import windowsill
from support.conversations import result, text_block, thinking, use
from support.sessions import opened
from windowsill.messages import Reasoning
from windowsill.strategies.registry import BUILT_IN
from windowsill.testing import Answer, Call, Server

pytestmark = pytest.mark.unit

BOUND, FREE = "claude-sonnet-5", "claude-sonnet-4-5"


def reasoned(session, turns, start=0):
    """Turns that each begin with signed reasoning."""
    if not session.view.items:
        session.add({"role": "user", "content": "the task"})
    for turn in range(start, start + turns):
        content = [thinking(f"thought {turn}", signature="c2ln"), text_block("so"), use(f"t{turn}")]
        session.add({"role": "assistant", "content": content})
        session.add({"role": "user", "content": [result(f"t{turn}", "word " * 60)]})


def thoughts(payload):
    return [block["thinking"] for message in payload.messages for block in message["content"] if "thinking" in block]


def test_reasoning_stays_while_nothing_before_it_was_edited():
    """Every signature goes back as it came."""
    session = opened(model=BOUND, budget=100_000)
    reasoned(session, 3)
    assert thoughts(session.compose_sync()) == ["thought 0", "thought 1", "thought 2"]


def test_a_fold_takes_the_reasoning_that_was_written_after_another_past():
    """On a model that binds it; what is written after the fold stays."""
    session = opened(model=BOUND, budget=100_000)
    reasoned(session, 4)
    session.fold("m2", "m3", text="short")
    reasoned(session, 1, start=4)
    payload = session.compose_sync()
    assert thoughts(payload) == ["thought 4"]
    assert windowsill.validate({"max_tokens": 5, **payload.to()}) == []


def test_what_stands_before_the_edit_keeps_its_reasoning():
    """Its past is what it was."""
    session = opened(model=BOUND, budget=100_000)
    reasoned(session, 4)
    session.fold("m6", "m7", text="short")
    assert thoughts(session.compose_sync()) == ["thought 0", "thought 1"]


def test_removing_the_fold_gives_the_past_back_and_edits_that_of_what_came_since():
    """What was written before the fold is whole again; what was written while it applied is not."""
    session = opened(model=BOUND, budget=100_000)
    reasoned(session, 3)
    fold = session.fold("m2", "m3", text="short")
    reasoned(session, 1, start=3)
    session.unfold(fold)
    assert thoughts(session.compose_sync()) == ["thought 0", "thought 1", "thought 2"]


def test_other_models_keep_all_of_it():
    """Their signatures hold for the block alone."""
    session = opened(model=FREE, budget=100_000)
    reasoned(session, 4)
    session.fold("m2", "m3", text="short")
    assert thoughts(session.compose_sync()) == ["thought 1", "thought 2", "thought 3"]


def test_a_rewind_before_the_fold_brings_the_reasoning_back():
    """On that branch the past was never edited."""
    session = opened(model=BOUND, budget=100_000)
    reasoned(session, 4)
    session.fold("m2", "m3", text="short")
    session.rewind("m7")
    assert thoughts(session.compose_sync()) == ["thought 0", "thought 1", "thought 2"]


def test_what_is_left_out_of_a_request_is_in_the_history_and_not_in_the_count():
    """The tokens told are those of the bytes sent, also after opening the session again."""
    session = opened(model=BOUND, budget=1_500)
    reasoned(session, 30)
    payload = session.compose_sync()
    assert payload.report.folds
    assert thoughts(payload) == []
    kept = [block for message in session.messages() for block in message.blocks if isinstance(block, Reasoning)]
    assert len(kept) == 30
    call = session.calls[-1]
    assert session.request(call.id) == payload.body()
    again = opened(session.journal.store, model=BOUND, budget=1_500)
    assert thoughts(again.compose_sync()) == []


def test_other_instructions_take_the_reasoning_written_under_those_before():
    """The system prompt and the tools stand before everything; with the old ones back, it is good again."""
    session = opened(model=BOUND, budget=100_000)
    session.add({"role": "user", "content": "the task"})
    session.compose_sync(system="It is nine.")
    reasoned(session, 1)
    assert thoughts(session.compose_sync(system="It is nine.")) == ["thought 0"]
    assert thoughts(session.compose_sync(system="It is ten.")) == []
    assert thoughts(session.compose_sync(system="It is nine.", tools=TOOLS)) == []
    reasoned(session, 1, start=1)
    assert thoughts(session.compose_sync(system="It is nine.", tools=TOOLS)) == ["thought 1"]
    assert thoughts(session.compose_sync(system="It is nine.")) == ["thought 0"]


def test_on_a_model_that_does_not_bind_other_instructions_change_nothing():
    """Nothing is left out without need."""
    session = opened(model=FREE, budget=100_000)
    session.add({"role": "user", "content": "the task"})
    session.compose_sync(system="It is nine.")
    reasoned(session, 1)
    assert thoughts(session.compose_sync(system="It is ten.")) == ["thought 0"]


def test_the_request_of_a_past_call_has_the_reasoning_it_had():
    """Built again from the journal, also after other instructions."""
    session = opened(model=BOUND, budget=100_000)
    session.add({"role": "user", "content": "the task"})
    session.compose_sync(system="It is nine.")
    reasoned(session, 1)
    bodies = [session.compose_sync(system=f"It is {hour}.").body() for hour in ("nine", "ten", "nine")]
    assert [session.request(call.id) for call in session.calls[-3:]] == bodies


TOOLS = [{"name": "read", "description": "Read a file", "input_schema": {"type": "object", "properties": {}}}]


THINK = {"type": "enabled", "budget_tokens": 1_024}


@pytest.mark.parametrize(
    ("model", "changing", "more"),
    [
        (BOUND, False, {}),
        (BOUND, True, {}),
        (BOUND, False, {"thinking": THINK}),
        ("claude-sonnet-4-6", True, {"thinking": THINK}),
    ],
    ids=["bound", "bound, with a clock in the system prompt", "bound, thinking demanded", "thinking demanded"],
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_provider_that_checks_reasoning_refuses_nothing(model, changing, more, stream):
    """A long loop with folds, against a server that looks at every signature, and at what stands before it."""
    turns = itertools.count()

    def respond(_):
        return Answer(reasoning=f"thought {next(turns)}", text="so", calls=(Call("read", {"path": "a.py"}),))

    session = opened(model=model, budget=2_000)
    server = Server(respond, binds_reasoning=model == BOUND)
    with server, anthropic.Anthropic(base_url=server.url, api_key="n") as one:
        client = windowsill.wrap(one, session)
        messages = [{"role": "user", "content": "Read everything."}]
        for turn in range(40):
            fields = {"model": model, "max_tokens": 2_048, "tools": TOOLS, "messages": messages, **more}
            fields["system"] = f"It is {turn} o'clock." if changing and turn % 5 == 0 else "You read files."
            if stream:
                with client.messages.stream(**fields) as events:
                    reply = events.get_final_message()
            else:
                reply = client.messages.create(**fields)
            calls = [block for block in reply.content if block.type == "tool_use"]
            messages += [
                {"role": "assistant", "content": reply.content},
                {"role": "user", "content": [result(call.id, "word " * 40) for call in calls]},
            ]
    assert server.refused == []
    assert session.folds
    assert any("thinking" in str(each.body) for each in server.seen)


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_a_demand_to_think_survives_a_fold_in_every_strategy(name):
    """Where the running loop lost its thinking, the model may think, but need not begin with what it lost."""
    session = opened(model=BOUND, budget=2_000, strategy=name)
    reasoned(session, 1)
    kinds = set()
    for turn in range(1, 40):
        payload = session.compose_sync(params={"max_tokens": 2_048, "thinking": THINK})
        body = payload.to()
        assert windowsill.validate(body) == []
        told = any("thinking is left to the model" in note for note in payload.report.notes)
        assert body["thinking"] == ({"type": "adaptive"} if told else THINK)
        assert session.request(session.calls[-1].id) == payload.body()
        kinds.add(body["thinking"]["type"])
        reasoned(session, 1, start=turn)
    assert kinds == {"enabled", "adaptive"}


def test_a_model_that_cannot_choose_to_think_does_not():
    """A loop that another model began without thinking is refused by a demand to think, and taken without it."""
    session = opened(model=FREE, budget=100_000)
    session.add({"role": "user", "content": "the task"})
    session.add({"role": "assistant", "content": [use("t")]})
    session.add({"role": "user", "content": [result("t", "ok")]})
    assert "thinking" not in session.compose_sync(params={"max_tokens": 2_048, "thinking": THINK}).to()
    session.add({"role": "assistant", "content": "done"})
    session.add({"role": "user", "content": "go on"})
    assert session.compose_sync(params={"max_tokens": 2_048, "thinking": THINK}).to()["thinking"] == THINK
