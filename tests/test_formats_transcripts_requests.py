from __future__ import annotations

import json

import pytest

from transcript_lines import jsonl, messages, texts, told
from windowsill.formats import transcripts

pytestmark = pytest.mark.unit

ASK = {"role": "user", "content": "hi"}
SAY = {"role": "assistant", "content": "hello"}
MORE = {"role": "user", "content": "more"}


def test_requests_of_one_conversation_are_one_session():
    """A request that continues an earlier one is not a second session; the last answer is added."""
    usage = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
    lines = [
        {"timestamp": 10, "request": {"model": "gpt-5", "messages": [ASK]}, "response": _reply("hello", usage)},
        {"timestamp": 11, "request": {"model": "gpt-5", "messages": [{"role": "user", "content": "other"}]}},
        {"timestamp": 12, "request": {"model": "gpt-5", "messages": [ASK, SAY, MORE]}, "response": _reply("bye")},
    ]
    found = told(jsonl(*lines), "log")
    first, second = found.sessions
    assert (found.agent, first.id, second.id) == ("requests", "log:1", "log:2")
    assert texts(first) == ["hi", "hello", "more", "bye"]
    assert first.times == (10.0, 10.0, 12.0, 12.0)
    assert json.loads(first.usage[1]) == usage


def _reply(text, usage=None):
    return {"choices": [{"message": {"role": "assistant", "content": text}}], "usage": usage}


def test_cache_marks_that_move_do_not_split_a_conversation():
    """Anthropic's breakpoints are no part of what was said; system and tools of the body are kept."""
    marked = {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]}
    bare = {"role": "user", "content": [{"type": "text", "text": "hi"}]}
    reply = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "bye"}]}
    body = {"model": "claude-opus-4-6", "system": "Be brief."}
    lines = [
        {"body": {**body, "messages": [marked]}},
        {"body": {**body, "messages": [bare, SAY, MORE]}, "response": {"body": reply}},
    ]
    (session,) = told(jsonl(*lines)).sessions
    assert texts(session) == ["hi", "hello", "more", "bye"]
    assert json.loads(session.document())["system"] == "Be brief."
    assert messages(session)[3]["content"] == reply["content"]


def test_bare_bodies_and_broken_lines():
    """A log may hold nothing but bodies; what is none is told."""
    lines = [{"model": "m", "messages": [ASK]}, b"{oops", {"model": "m", "messages": 5}, {"x": 1}]
    found = told(jsonl(*lines, {"model": "m", "messages": [ASK, SAY, MORE]}))
    assert [texts(each) for each in found.sessions] == [["hi", "hello", "more"]]
    assert [each.line for each in found.troubles] == [2, 3, 4]


def test_the_same_request_again_is_another_session():
    """Only a request that goes on belongs to the one before."""
    assert len(told(jsonl(*[{"model": "m", "messages": [ASK]}] * 2)).sessions) == 2


def test_recorded_sessions_are_no_log():
    """Lines with an id stay what they are."""
    assert (
        transcripts.read(jsonl({"id": "a", "model": "m", "messages": [ASK]}, {"id": "b", "messages": [ASK]}), "x")
        is None
    )


def test_messages_line_by_line_are_one_session():
    """A plain list may be written one message to a line; broken lines are told."""
    found = told(jsonl(ASK, SAY, b"}", {"role": "narrator", "content": "x"}, MORE), "talk")
    (session,) = found.sessions
    assert (found.agent, session.id, session.named, texts(session)) == (
        "messages",
        "talk",
        False,
        ["hi", "hello", "more"],
    )
    assert [each.line for each in found.troubles] == [3, 4]


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"not json", b'{"a": 1}\n{"b": 2}', b"[1, 2]", b"\xff\xfe"])
def test_what_is_no_transcript(data):
    """Other files are not taken for one."""
    assert transcripts.read(data, "x") is None
