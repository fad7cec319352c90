from __future__ import annotations

import json

import pytest

from support.transcript_lines import jsonl, messages, read_transcript, texts
from windowsill import transcripts

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
    found = read_transcript(jsonl(*lines), "log")
    first, second = found.sessions
    assert (found.agent, first.id, second.id) == ("requests", "log:1", "log:2")
    assert texts(first) == ["hi", "hello", "more", "bye"]
    assert first.times == (10.0, 10.0, 12.0, 12.0)
    assert [(each.message, each.usage.prompt, each.usage.output) for each in first.charges] == [(1, 9, 2)]


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
        {"body": {**body, "messages": [bare, SAY, MORE]}, "response": reply},
    ]
    (session,) = read_transcript(jsonl(*lines)).sessions
    assert texts(session) == ["hi", "hello", "more", "bye"]
    assert json.loads(session.document())["system"] == "Be brief."
    assert messages(session)[3]["content"] == reply["content"]


def test_bare_bodies_and_broken_lines():
    """A log may hold nothing but bodies; what is none is told."""
    lines = [{"model": "m", "messages": [ASK]}, b"{oops", {"model": "m", "messages": 5}, {"x": 1}]
    found = read_transcript(jsonl(*lines, {"model": "m", "messages": [ASK, SAY, MORE]}))
    assert [texts(each) for each in found.sessions] == [["hi", "hello", "more"]]
    assert [each.line for each in found.troubles] == [2, 3, 4]


def test_the_same_request_again_is_another_session():
    """Only a request that goes on belongs to the one before."""
    assert len(read_transcript(jsonl(*[{"model": "m", "messages": [ASK]}] * 2)).sessions) == 2


def test_recorded_sessions_are_no_log():
    """Lines with an id stay what they are."""
    assert (
        transcripts.read(jsonl({"id": "a", "model": "m", "messages": [ASK]}, {"id": "b", "messages": [ASK]}), "x")
        is None
    )


def test_messages_line_by_line_are_one_session():
    """A plain list may be written one message to a line; broken lines are told."""
    found = read_transcript(jsonl(ASK, SAY, b"}", {"role": "narrator", "content": "x"}, MORE), "talk")
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


REPLY = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-opus-4-6-20260205",
    "content": [{"type": "text", "text": "hello"}],
    "usage": {"input_tokens": 5, "output_tokens": 2},
}


@pytest.mark.parametrize("wrapper", ["request", "body", "params"])
def test_response_is_added_with_what_it_cost(wrapper):
    """The answer is added, and its usage, model and id are those of the response."""
    body = {"model": "claude-opus-4-6", "max_tokens": 9, "messages": [ASK]}
    (session,) = read_transcript(jsonl({wrapper: body, "response": REPLY})).sessions
    assert messages(session) == [ASK, {"role": "assistant", "content": REPLY["content"]}]
    (paid,) = session.charges
    assert (paid.usage.prompt, paid.usage.output, paid.message, paid.key) == (5, 2, 1, "msg_1")
    assert paid.model == "claude-opus-4-6-20260205"


@pytest.mark.parametrize("response", [None, "", "oops", 5, [], {}, {"error": {"type": "overloaded_error"}}])
def test_response_that_says_nothing_is_no_answer(response):
    """A call that failed leaves the request as it was."""
    (session,) = read_transcript(jsonl({"request": {"model": "m", "messages": [ASK]}, "response": response})).sessions
    assert (messages(session), session.charges) == ([ASK], ())


def test_conversations_of_the_responses_api():
    """Items are joined, and the other fields of the body stay with them."""
    call = {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c1", "output": "a.py"}
    done = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "One."}]}
    used = {"input_tokens": 100, "output_tokens": 20, "input_tokens_details": {"cached_tokens": 60}}
    first = {"model": "gpt-5", "instructions": "Be brief.", "input": [ASK]}
    lines = [
        {"request": first, "response": {"id": "resp_1", "model": "gpt-5", "output": [call], "usage": used}},
        {"request": {**first, "input": [ASK, call, output]}, "response": {"id": "resp_2", "output": [done]}},
    ]
    (session,) = read_transcript(jsonl(*lines)).sessions
    assert messages(session) == [ASK, call, output, done]
    assert [(each.message, each.usage.prompt, each.usage.cache_read) for each in session.charges] == [(1, 100, 60)]
    body = json.loads(session.document())
    assert (body["instructions"], body["format"], "messages" in body) == ("Be brief.", "responses", False)


@pytest.mark.parametrize("input", ["hi", ["hi"]])
def test_embeddings_are_no_conversation(input):
    """Text alone under `input` is no request to a model that talks."""
    assert transcripts.read(jsonl(*[{"model": "text-embedding-3-small", "input": input}] * 2), "x") is None


def test_text_and_the_block_it_is_short_for_are_the_same():
    """Clients turn text into a block to mark it for the cache, and back."""
    marked = {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]}
    lines = [{"request": {"model": "m", "messages": each}} for each in ([marked], [ASK, SAY, MORE])]
    assert [texts(each) for each in read_transcript(jsonl(*lines)).sessions] == [["hi", "hello", "more"]]


def test_deep_nesting_breaks_one_line_only():
    """A line that cannot be walked through is told, the others are read."""
    nested = b"[" * 100_000 + b"]" * 100_000
    deep = b'{"request": {"model": "m", "messages": [{"role": "user", "content": ' + nested + b"}]}}"
    body = {"model": "m", "messages": [ASK]}
    found = read_transcript(jsonl({"request": body}, deep, {"request": {**body, "messages": [ASK, SAY, MORE]}}))
    assert [texts(each) for each in found.sessions][:1] == [["hi", "hello", "more"]]
    assert [each.line for each in found.troubles] == [2]
