from __future__ import annotations

import json

import pytest

import windowsill
from support.transcript_lines import GEMINI_HEAD, PIXEL, gemini, jsonl, messages, read_transcript, texts

pytestmark = pytest.mark.unit

CALL = {
    "id": "read-1",
    "name": "read_file",
    "args": {"path": "a.c"},
    "result": [{"functionResponse": {"id": "read-1", "name": "read_file", "response": {"output": "int main"}}}],
    "status": "success",
    "timestamp": "2026-04-01T08:00:05.000Z",
}
TOKENS = {"input": 1000, "output": 30, "cached": 200, "thoughts": 12, "tool": 0, "total": 1042}
ASKED = gemini("u", "user", "Fix it")
CALLED = gemini(
    "g", "gemini", "Reading.", toolCalls=[CALL], thoughts=[{"subject": "Plan"}], tokens=TOKENS, model="gemini-3-pro"
)


def test_chat_becomes_chat_messages():
    """Calls and their results follow what was said, with usage; thoughts and notices are counted."""
    chat = {
        **GEMINI_HEAD,
        "messages": [ASKED, gemini("i", "info", "Logged in"), CALLED, gemini("h", "gemini", "Done.")],
    }
    found = read_transcript(json.dumps(chat, indent=2).encode())
    (session,) = found.sessions
    assert (found.agent, session.id, session.format, session.model) == ("gemini-cli", "gem", "openai", "gemini-3-pro")
    said = messages(session)
    assert [each["role"] for each in said] == ["user", "assistant", "tool", "assistant"]
    assert said[1]["tool_calls"][0]["function"] == {"name": "read_file", "arguments": '{"path":"a.c"}'}
    assert (said[2]["tool_call_id"], said[2]["content"]) == ("read-1", "int main")
    assert [(each.message, each.usage.prompt, each.usage.output) for each in session.charges] == [(1, 1000, 42)]
    assert session.times[2] - session.times[1] == 5.0
    assert found.skipped == {"info": 1, "thought": 1}
    assert windowsill.validate(said, format="openai") == []


def test_lines_of_changes():
    """A message that is written again replaces itself; going back leaves a session of its own."""
    lines = [GEMINI_HEAD, ASKED, gemini("g", "gemini", ""), CALLED, {"$set": {"summary": "x"}}]
    lines += [gemini("v", "user", "no"), gemini("w", "gemini", "old"), {"$rewindTo": "v"}]
    lines += [gemini("x", "user", "yes"), b"{torn", gemini("y", "gemini", "new"), {"odd": 1}]
    found = read_transcript(jsonl(*lines))
    main, other = found.sessions
    assert (main.id, texts(main)) == ("gem", ["Fix it", "Reading.", "int main", "yes", "new"])
    assert (other.id, texts(other)) == ("gem-branch-1", ["Fix it", "Reading.", "int main", "no", "old"])
    assert [each.line for each in found.troubles] == [10, 12]


def test_messages_that_are_set_anew_start_a_new_part():
    """A compression replaces the messages; setting the same and more does not."""
    grown = {"$set": {"messages": [ASKED, gemini("g", "gemini", "one")]}}
    compressed = {"$set": {"messages": [gemini("s", "user", "summary")]}}
    found = read_transcript(jsonl(GEMINI_HEAD, ASKED, grown, compressed, gemini("h", "gemini", "two")))
    assert {each.id: texts(each) for each in found.sessions} == {
        "gem": ["Fix it", "one"],
        "gem-part-2": ["summary", "two"],
    }


@pytest.mark.parametrize("wrapped", [False, True])
def test_checkpoints(wrapped):
    """A list of contents is read; results answer the calls of their name, in order."""
    image = {"inlineData": {"mimeType": "image/png", "data": PIXEL}}
    calls = [{"functionCall": {"name": "ls", "args": {"n": n}}} for n in (1, 2)]
    results = [{"functionResponse": {"name": "ls", "response": {"error": "no"}}} for _ in (1, 2)]
    contents = [
        {"role": "user", "parts": [{"text": "Look"}, image]},
        {"role": "model", "parts": [{"text": "hm", "thought": True}, *calls]},
        {"role": "user", "parts": results},
        {"role": "model", "parts": [{"text": "Nothing."}]},
    ]
    found = read_transcript(json.dumps({"history": contents, "authType": "x"} if wrapped else contents).encode())
    said = messages(found.sessions[0])
    assert said[0]["content"][1]["image_url"]["url"].endswith(PIXEL)
    assert [each.get("tool_call_id") for each in said[2:4]] == [each["id"] for each in said[1]["tool_calls"]]
    assert said[2]["content"] == "[error] no"
    assert found.skipped == {"thought": 1}
    assert windowsill.validate(said, format="openai") == []
