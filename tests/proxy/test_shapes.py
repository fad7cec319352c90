"""The requests of Claude Code, Codex and Gemini CLI in the shapes that they really have, with invented words."""

import json

import pytest

from support.proxies import LONG, MODEL, post, proxied
from windowsill import Session
from windowsill.testing import Answer, Server

pytestmark = pytest.mark.integration

HOUR = {"type": "ephemeral", "ttl": "1h"}
CLAUDE = {
    "x_claude_code_session_id": "11111111-2222",
    "anthropic_beta": "claude-code-20250219,oauth-2025-04-20,extended-cache-ttl-2025-04-11",
    "x_app": "cli",
}
GEMINI = "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"


@pytest.fixture
def provider():
    with Server(window=8_000) as made:
        yield made


@pytest.fixture
def proxy(tmp_path, provider):
    with proxied(tmp_path, provider.url, options={"window": 8_000}) as made:
        yield made


def text(words, **fields):
    return {"type": "text", "text": words, **fields}


def claude(messages):
    system = [
        text("x-anthropic-billing-header: cc_version=2.1.325.abc; cc_entrypoint=sdk-cli;"),
        text("You are an agent.", cache_control=HOUR),
        text("Work with care.", cache_control=HOUR),
    ]
    user = {"user_id": json.dumps({"device_id": "d", "account_uuid": "", "session_id": "11111111-2222"})}
    return {"model": MODEL, "max_tokens": 500, "system": system, "metadata": user, "messages": messages,
            "stream": False}  # fmt: skip


def test_claude_code(proxy, provider):
    """Reminders, system messages between turns that lose their mark, marks of one hour: one session, all marks kept."""
    provider.respond = lambda request: Answer(text=f"answer {len(request['messages'])}")
    messages = []
    for number in range(16):
        words = [text("<system-reminder>Be brief.</system-reminder>"), text(f"Question {number}: {LONG}")]
        messages.append({"role": "user", "content": words})
        left = f"<total_tokens>{1_000_000 - number} tokens left</total_tokens>"
        last = {"role": "system", "content": [text(left, cache_control=HOUR)]}
        answer = post(proxy, claude([*messages, last]), "/v1/messages?beta=true", **CLAUDE)
        assert answer.status_code == 200, answer.text
        # The same message comes as a bare text from now on.
        messages += [
            {"role": "system", "content": f"{left}\n"},
            {"role": "assistant", "content": answer.json()["content"]},
        ]
    assert provider.refused == []
    sent = json.loads(provider.seen[-1].raw)
    assert sent["system"] == claude([])["system"]
    marks = json.dumps(sent).count('"cache_control"')
    assert 3 <= marks <= 4
    assert json.dumps(sent).count('"ttl": "1h"') == marks
    (name,) = proxy.sessions
    with Session.open(name, store=proxy.store) as session:
        assert any(fold.active for fold in session.folds)
        assert len(session.branches) == 1
        assert sum(1 for message in session.messages() if message.text.startswith("<total_tokens>")) == 16


def test_codex(proxy, provider):
    """Tools as an item, odd fields in items, encrypted reasoning, a socket's header: one session, nothing refused."""
    provider.respond = lambda _: Answer(text=LONG, reasoning="because")
    tools = {"type": "additional_tools", "id": "at_1", "role": "developer", "tools": []}
    note = {"internal_chat_message_metadata_passthrough": {"turn_id": "t", "create_time": 1}}
    brief = [{"type": "input_text", "text": "Be brief."}]
    items = [tools, {"type": "message", "id": "msg_1", "role": "developer", "content": brief, **note}]
    told = {"thread_id": "0199-aa", "request_kind": "turn", "window_number": 0, "agent_name": "/root"}
    named = {"user_agent": "codex_exec/0.166.0", "x_codex_turn_metadata": json.dumps(told), "session_id": "0199-aa"}
    for number in range(14):
        words = [{"type": "input_text", "text": f"Question {number}: {LONG}"}]
        items.append({"type": "message", "id": f"msg_u{number}", "role": "user", "content": words, **note})
        asked = {"model": "gpt-5", "input": items, "store": False, "include": ["reasoning.encrypted_content"]}
        asked |= {"prompt_cache_key": "0199-aa", "reasoning": {"effort": "low", "context": "all_turns"}}
        answer = post(proxy, asked, "/v1/responses", **named)
        assert answer.status_code == 200, answer.text
        items += answer.json()["output"]
    assert provider.refused == []
    (name,) = proxy.sessions
    assert name.startswith("codex-0199-aa~")
    with Session.open(name, store=proxy.store) as session:
        assert any(fold.active for fold in session.folds)
        assert sum("Question" in message.text for message in session.messages()) == 14


def test_gemini_cli(proxy, provider):
    """A call to a small model, then the conversation, which nothing names: it is one session, each call another."""
    provider.respond = lambda _: Answer(text=LONG)
    contents = []
    for number in range(14):
        contents.append({"role": "user", "parts": [{"text": f"Question {number}: {LONG}"}]})
        router = {"contents": [{"role": "user", "parts": [{"text": f"Which model for question {number}?"}]}],
                  "generationConfig": {"responseMimeType": "application/json", "maxOutputTokens": 1024}}  # fmt: skip
        assert post(proxy, router, "/v1beta/models/gemini-2.5-flash-lite:generateContent").status_code == 200
        asked = {"contents": contents, "systemInstruction": {"role": "user", "parts": [{"text": "Be brief."}]}}
        answer = post(proxy, asked, GEMINI, x_goog_api_key="g")
        assert answer.status_code == 200, answer.text
        parts = [part for line in answer.text.splitlines() if line.startswith("data: ")
                 for part in json.loads(line[6:])["candidates"][0]["content"].get("parts", [])]  # fmt: skip
        contents.append({"role": "model", "parts": parts})
    assert provider.refused == []
    found = []
    for name in proxy.sessions:
        with Session.open(name, store=proxy.store) as session:
            found.append(sum(1 for message in session.messages() if message.text.startswith("Question")))
    assert sorted(found)[-2:] == [0, 14]
