from __future__ import annotations

import json

import msgspec
import pytest

from support.cli_calls import anthropic_turns
from windowsill.replay.recordings import parse
from windowsill.replay.walk import ReplayOptions, Walk
from windowsill.session.toolbox import TOOLS

pytestmark = pytest.mark.unit


def walk(**fields):
    recording = {"id": "s", "model": "claude-opus-4-6", "messages": anthropic_turns(5), **fields}
    return Walk(parse(json.dumps(recording).encode(), "x"), ReplayOptions(window=9_000, tokenizer="o200k_base"))


def test_unreduced_request_weighs_what_everything_weighs():
    """Where nothing was folded, the request is the unreduced one."""
    assert all(call.everything == call.report.tokens for call in walk().calls())


def test_stable_part_is_the_request_before():
    """Without folds each request begins with the whole one before, up to framing."""
    turns = list(walk().calls())
    assert turns[0].report.stable == 0
    assert [each.report.stable for each in turns[1:]] == [each.report.tokens for each in turns[:-1]]


def test_time_of_a_call_is_that_of_its_answer():
    """Pauses between calls are those between the recorded answers."""
    turns = walk(times=[10.0 * number for number in range(12)]).calls()
    assert [turn.at for turn in turns] == [10.0, 30.0, 50.0, 70.0, 90.0, 110.0]


def test_nothing_is_lost():
    """After a walk every message can be read back as it was added."""
    made = walk()
    list(made.calls())
    assert made.lost() == 0


def test_changed_message_counts_as_lost():
    """A message that does not come back byte for byte is lost."""
    made = walk()
    list(made.calls())
    entries = made.session.journal.store._journals["s"].entries
    place = next(place for place, entry in enumerate(entries) if entry.kind == "message")
    entries[place] = msgspec.structs.replace(entries[place], body=b'{"role":"user","content":"other"}')
    assert made.lost() == 1


def test_a_tool_that_was_recorded_is_not_offered_twice():
    """An agent that had the tools is replayed with them once: providers refuse a name that comes twice."""
    mine = {"name": "history_read", "description": "mine", "input_schema": {"type": "object"}}
    recording = {"model": "claude-opus-4-6", "max_tokens": 9, "tools": [mine], "messages": anthropic_turns(2)}
    made = Walk(parse(json.dumps(recording).encode(), "x"), ReplayOptions(window=9_000, tools=True))
    body = json.loads(next(iter(made.calls())).body)
    names = [tool["name"] for tool in body["tools"]]
    assert sorted(names) == sorted(TOOLS)
    assert body["tools"][0] == mine


def test_a_session_in_which_nothing_is_folded_is_sent_as_it_was():
    """A stated overhead is part of both sides: what is sent weighs what everything weighs."""
    messages = [
        {"role": role, "content": f"{role} {number} " + "word " * 40}
        for number in range(6)
        for role in ("user", "assistant")
    ]
    document = json.dumps({"id": "s", "format": "anthropic", "model": "claude-sonnet-4-5", "messages": messages})
    options = ReplayOptions(window=60_000, tokenizer="o200k_base", overhead=18_000)
    calls = list(Walk(parse(document.encode(), "s"), options).calls())
    assert [call.everything for call in calls] == [call.report.tokens for call in calls]
    assert all(call.report.parts["framing"] >= 18_000 for call in calls)
