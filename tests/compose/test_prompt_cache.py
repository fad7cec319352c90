"""Cache breakpoints: stated where they pay, never on top of somebody's own, and never changing what is said."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.conversations import result, text_block, thinking
from support.sessions import TASK, opened, talk
from windowsill.compose.render import LOOK_BACK, MARK, Breakpoints, mark_message

pytestmark = pytest.mark.unit

SYSTEM = b'"You help."'


def message(content, role="user"):
    return json.dumps({"role": role, "content": content}).encode()


def chunks_of(count):
    return [message(f"m{number}", role=("user", "assistant")[number % 2]) for number in range(count)]


def placed(breakpoints, chunks=None, system=SYSTEM, tools=(), rest=None, tokens=None):
    chunks = chunks_of(6) if chunks is None else chunks
    found = breakpoints.place(system, chunks, tools, rest or {}, tokens or [100] * len(chunks))
    system, chunks, rest = found
    return (
        json.loads(system) if system else None,
        [json.loads(chunk) for chunk in chunks],
        {name: json.loads(bytes(value)) for name, value in rest.items()},
    )


def marked(chunks):
    """The places of the messages that carry a breakpoint."""
    return [place for place, chunk in enumerate(chunks) if "cache_control" in json.dumps(chunk)]


def test_a_short_request_has_no_breakpoints():
    """Below what a cache takes they would only cost."""
    system, chunks, rest = placed(Breakpoints(minimum=1_024, system=100, head=1))
    assert (system, marked(chunks), rest) == ("You help.", [], {})


def test_a_long_system_prompt_carries_one():
    """On its last block."""
    system, _, _ = placed(Breakpoints(minimum=100, system=100))
    assert system == [{"type": "text", "text": "You help.", "cache_control": MARK}]


def test_of_a_system_prompt_in_blocks_the_last_is_marked():
    """The others stay as they are."""
    blocks = json.dumps([text_block("a"), text_block("b")]).encode()
    system, _, _ = placed(Breakpoints(minimum=100, system=100), system=blocks)
    assert ["cache_control" in block for block in system] == [False, True]


def test_an_empty_system_prompt_is_left_alone():
    """There is nothing to mark."""
    system, _, _ = placed(Breakpoints(minimum=0, system=0), system=b"[]")
    assert system == []


def test_what_survives_the_next_fold_carries_one():
    """Up to the task: the fold after it then reads it from the cache."""
    _, chunks, _ = placed(Breakpoints(minimum=250, system=100, head=2))
    assert marked(chunks) == [1]


@pytest.mark.parametrize("head", [0, 6, 7])
def test_a_head_that_is_nothing_or_everything_carries_none(head):
    """The automatic one at the end covers the whole."""
    _, chunks, _ = placed(Breakpoints(minimum=10, system=100, head=head))
    assert marked(chunks) == []


def test_the_head_is_marked_only_where_it_is_long_enough():
    """Counted with the system prompt before it."""
    assert marked(placed(Breakpoints(minimum=301, system=100, head=2))[1]) == []
    assert marked(placed(Breakpoints(minimum=300, system=100, head=2))[1]) == [1]


def test_of_a_task_with_a_marker_joined_only_the_tasks_own_blocks_are_marked():
    """What the marker says changes with the next fold."""
    task = message([text_block("the task"), text_block("a marker")])
    _, chunks, _ = placed(Breakpoints(minimum=1, head=1, head_blocks=1), [task, *chunks_of(3)])
    assert ["cache_control" in block for block in chunks[0]["content"]] == [True, False]


def test_the_end_is_marked_automatically():
    """No message has to change for it, turn after turn."""
    _, chunks, rest = placed(Breakpoints(minimum=600, system=0))
    assert rest == {"cache_control": MARK}
    assert marked(chunks) == []


def test_where_the_request_before_ended_is_marked_after_a_long_step():
    """A provider looks back only so far, and would miss what it has."""
    long_step = message([result(f"t{number}") for number in range(LOOK_BACK + 1)])
    chunks = [*chunks_of(4), long_step]
    assert marked(placed(Breakpoints(minimum=1, head=1, previous=4), chunks)[1]) == [0, 3]
    assert marked(placed(Breakpoints(minimum=1, head=1, previous=4), chunks_of(6))[1]) == [0]


@pytest.mark.parametrize("where", ["system", "tool", "message", "rest"])
def test_whoever_states_their_own_keeps_them(where):
    """None are added, and nothing else changes."""
    own = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    block = msgspec.json.encode([{**text_block("a"), **own}])
    given = {
        "system": block if where == "system" else SYSTEM,
        "tools": [msgspec.json.encode({"name": "read", **own})] if where == "tool" else [],
        "chunks": [*chunks_of(3), *([b'{"role":"user","content":%s}' % block] if where == "message" else chunks_of(1))],
        "rest": {"cache_control": msgspec.Raw(b'{"type":"ephemeral"}')} if where == "rest" else {},
    }
    tokens = [1_000] * 4
    found = Breakpoints(minimum=1, system=1_000, head=1).place(**given, tokens=tokens)
    assert found == (given["system"], given["chunks"], given["rest"])


def test_words_about_markers_are_not_markers():
    """A conversation about prompt caches, with the field's name in its text, is cached like any other."""
    code = message('use {"cache_control": {"type": "ephemeral"}} on the last block')
    _, _, rest = placed(Breakpoints(minimum=1), [code, *chunks_of(2)])
    assert rest == {"cache_control": MARK}


def test_reasoning_cannot_be_marked():
    """The provider refuses it: the message comes back as it is."""
    chunk = message([thinking()], role="assistant")
    assert mark_message(chunk) == chunk


def test_a_message_without_content_cannot_be_marked():
    """There is no block to carry it."""
    assert mark_message(message([])) == message([])


blocks = st.lists(st.sampled_from([text_block("a"), result("t"), thinking()]), min_size=1, max_size=4)


@given(blocks, st.integers(0, 6))
def test_a_mark_changes_nothing_else(content, number):
    """Without the mark, the message is what it was."""
    after = json.loads(mark_message(message(content), number))
    found = [block.pop("cache_control", None) for block in after["content"]]
    assert after == {"role": "user", "content": content}
    assert found.count(MARK) <= 1


def test_a_session_states_breakpoints_that_hold_over_a_fold():
    """The task's own block carries one, and the request has no more than the four a provider takes."""
    session = opened(budget=6_000)
    session.add({"role": "user", "content": TASK + " word" * 1_100})
    talk(session, 60, words=60)
    payload = session.compose_sync(system="rule " * 1_100)
    body = payload.to()
    assert payload.report.folds
    task, stand_in = (message["content"] for message in body["messages"][:2])
    assert [["cache_control" in block for block in blocks] for blocks in (task, stand_in)] == [[True], [False]]
    assert "[Memory Summary]" in stand_in[0]["text"]
    assert payload.body().count(b'"cache_control":') == 3


def test_breakpoints_are_left_out_on_request_and_for_other_providers():
    """They are a field of one provider's format."""
    session = opened(budget=6_000)
    talk(session, 60)
    payload = session.compose_sync(system="rule " * 1_100)
    assert b"cache_control" in payload.body()
    assert b"cache_control" not in payload.body(cache=False)
    assert b"cache_control" not in payload.body("openai")
