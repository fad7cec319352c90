from __future__ import annotations

import base64
import json

import pytest

from transcript_lines import jsonl, messages, texts, told
from windowsill.formats import transcripts

pytestmark = pytest.mark.unit

ASK = {"role": "user", "content": "hi"}
SAY = {"role": "assistant", "content": [{"type": "text", "text": "hello"}]}
MORE = {"role": "user", "content": "more"}
BODY = {"model": "claude-opus-4-6", "max_tokens": 9, "messages": [ASK]}
REPLY = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-opus-4-6-20260205",
    "content": SAY["content"],
    "usage": {"input_tokens": 5, "output_tokens": 2},
}
EVENTS = [
    {"type": "message_start", "message": {**REPLY, "content": [], "usage": {"input_tokens": 5, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hello"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
]
STREAM = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in EVENTS)


def har(body, text, **content):
    """An entry of a HAR file, as browsers and proxies write it."""
    return {
        "startedDateTime": "2026-05-01T10:00:00.000Z",
        "time": 812.4,
        "request": {"method": "POST", "url": "https://api.anthropic.com/v1/messages", "postData": _posted(body)},
        "response": {"status": 200, "content": {"size": len(text), "text": text, **content}},
    }


def _posted(body):
    return {"mimeType": "application/json", "text": json.dumps(body)}


WRAPPINGS = {
    "pair": {"request": BODY, "response": REPLY},
    "with headers": {"request": {"headers": {}, "body": BODY}, "response": {"status_code": 200, "body": REPLY}},
    "text": {"request": json.dumps(BODY), "response": json.dumps(REPLY)},
    "request_body": {"request_body": BODY, "response_body": json.dumps(REPLY)},
    "stream": {"request": {**BODY, "stream": True}, "response": STREAM},
    "har": har(BODY, json.dumps(REPLY)),
    "har stream": har(BODY, STREAM, mimeType="text/event-stream"),
    "har base64": har(BODY, base64.b64encode(STREAM.encode()).decode(), encoding="base64"),
}


@pytest.mark.parametrize("line", WRAPPINGS.values(), ids=WRAPPINGS)
def test_request_and_response_however_they_are_wrapped(line):
    """The answer is added, and its usage, model and id are those of the response."""
    (session,) = told(jsonl(line)).sessions
    assert messages(session) == [ASK, SAY]
    (paid,) = session.charges
    assert (paid.usage.prompt, paid.usage.output, paid.message, paid.key) == (5, 2, 1, "msg_1")
    assert paid.model == "claude-opus-4-6-20260205"


def test_har_file_is_a_log():
    """A whole HAR document is read; requests that are none to a model are left out."""
    asked_again = {**BODY, "messages": [ASK, SAY, MORE]}
    page = {"request": {"method": "GET", "url": "https://x"}, "response": {"content": {"text": "<html>"}}}
    document = {"log": {"version": "1.2", "entries": [page, har(BODY, STREAM), page, har(asked_again, "")]}}
    found = told(json.dumps(document, indent=1).encode(), "talk")
    (session,) = found.sessions
    assert (found.agent, session.id, texts(session)) == ("requests", "talk:1", ["hi", "hello", "more"])
    assert session.times == (1777629600.0,) * 3
    assert transcripts.read(json.dumps({"log": {"entries": [page]}}).encode(), "x") is None


@pytest.mark.parametrize("response", [None, "", "oops", 5, [], {}, {"error": {"type": "overloaded_error"}}, "data: x"])
def test_response_that_says_nothing_is_no_answer(response):
    """A call that failed leaves the request as it was."""
    (session,) = told(jsonl({"request": BODY, "response": response})).sessions
    assert (messages(session), session.charges) == ([ASK], ())


def item(kind, **fields):
    return {"type": kind, **fields}


CALL = item("function_call", id="fc_1", call_id="c1", name="ls", arguments="{}", status="completed")
OUTPUT = item("function_call_output", call_id="c1", output="a.py")
THOUGHT = item("reasoning", id="rs_1", summary=[], encrypted_content="gAAAA")
DONE = item("message", role="assistant", content=[{"type": "output_text", "text": "One."}])


def response(id, *output):
    used = {"input_tokens": 100, "output_tokens": 20, "input_tokens_details": {"cached_tokens": 60}}
    return {"id": id, "object": "response", "model": "gpt-5", "output": list(output), "usage": used}


@pytest.mark.parametrize("kept", [False, True], ids=["sent again", "kept by the provider"])
def test_conversations_of_the_responses_api(kept):
    """Items are joined whether a request repeats what was said or names the response it follows."""
    first = {"model": "gpt-5", "instructions": "Be brief.", "input": "List"}
    sent_back = {key: value for key, value in CALL.items() if key not in {"id", "status"}}
    asked = {"role": "user", "content": "List"}
    second = {**first, "input": [OUTPUT], "previous_response_id": "resp_1"}
    if not kept:
        second = {**first, "input": [asked, THOUGHT, sent_back, OUTPUT]}
    lines = [
        {"request": first, "response": response("resp_1", THOUGHT, CALL)},
        {"request": second, "response": response("resp_2", DONE)},
    ]
    (session,) = told(jsonl(*lines)).sessions
    assert [each.get("type", "user") for each in messages(session)] == [
        "user",
        "reasoning",
        "function_call",
        "function_call_output",
        "message",
    ]
    assert [(each.message, each.usage.prompt, each.usage.cache_read) for each in session.charges] == [
        (1, 100, 60),
        (4, 100, 60),
    ]
    body = json.loads(session.document())
    assert (body["instructions"], body["format"], "previous_response_id" in body) == ("Be brief.", "responses", False)
    assert "messages" not in body


def test_embeddings_are_no_conversation():
    """Text alone under `input` is no request to a model that talks."""
    assert transcripts.read(jsonl(*[{"model": "text-embedding-3-small", "input": "hi"}] * 2), "x") is None
    assert transcripts.read(jsonl(*[{"model": "text-embedding-3-small", "input": ["hi"]}] * 2), "x") is None


def test_request_continues_the_one_whose_answer_it_repeats():
    """Of two requests that are the same, the one that got this answer, then the one of the same model, goes on."""
    other = {**REPLY, "id": "msg_2", "content": [{"type": "text", "text": "Greeting"}]}
    going_on = {"request": {**BODY, "messages": [ASK, SAY, MORE]}}
    small = {**BODY, "model": "claude-haiku-4-5"}
    first, second = {"request": BODY, "response": REPLY}, {"request": small, "response": other}
    for lines in ([first, second], [second, first]):
        found = {texts(each)[-1]: len(each.messages) for each in told(jsonl(*lines, going_on)).sessions}
        assert found == {"more": 3, "Greeting": 2}
    unanswered = told(jsonl({"request": BODY}, {"request": small}, going_on)).sessions
    assert [(len(each.messages), json.loads(each.document())["model"]) for each in unanswered] == [
        (3, "claude-opus-4-6"),
        (1, "claude-haiku-4-5"),
    ]


def test_answer_is_known_without_what_only_an_answer_has():
    """Clients send an item back without its id and status, and text as a part or as it is."""
    body = {"model": "gpt-5", "input": [{"role": "user", "content": "List"}]}
    other = response("resp_2", DONE)
    asked = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "List"}]}
    sent_back = {key: value for key, value in CALL.items() if key not in {"id", "status"}}
    lines = [{"request": body, "response": response("resp_1", CALL)}, {"request": body, "response": other}]
    found = told(jsonl(*lines, {"request": {**body, "input": [asked, sent_back, OUTPUT]}}))
    assert [len(each.messages) for each in found.sessions] == [3, 2]


def test_text_and_the_block_it_is_short_for_are_the_same():
    """Clients turn text into a block to mark it for the cache, and back."""
    marked = {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]}
    lines = [{"request": {**BODY, "messages": [marked]}}, {"request": {**BODY, "messages": [ASK, SAY, MORE]}}]
    assert [texts(each) for each in told(jsonl(*lines)).sessions] == [["hi", "hello", "more"]]


def test_deep_nesting_breaks_one_line_only():
    """A line that cannot be walked through is told, the others are read."""
    deep = b'{"request": {"model": "m", "messages": [{"role": "user", "content": ' + b"[" * 800 + b"]" * 800 + b"}]}}"
    found = told(jsonl({"request": BODY}, deep, {"request": {**BODY, "messages": [ASK, SAY, MORE]}}))
    assert [texts(each) for each in found.sessions][:1] == [["hi", "hello", "more"]]
    assert [each.line for each in found.troubles] == [2]
