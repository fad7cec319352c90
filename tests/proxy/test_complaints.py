"""What people complain about in proxies before a model, each as a test that it does not happen here.

That a dead proxy means a dead client is looked at in `test_launch.py`.
"""

import itertools
import json
import subprocess
import sys

import pytest
from websockets.sync.client import connect

from support.proxies import LONG, MODEL, body, health, post, proxied, say, talk, upstream
from windowsill import Session
from windowsill.proxy.launch import AGENTS
from windowsill.testing import Answer, Call, Server

pytestmark = pytest.mark.integration

SUMMARY = "This session is being continued from a previous conversation that ran out of context. Summary: questions."
COMPACT = "CRITICAL: Respond with TEXT ONLY. Write a summary."
TOOLS = [
    {"name": "ToolSearch", "description": "Find tools", "input_schema": {"type": "object"}},
    {
        "name": "DeferredToolPlaceholder",
        "description": "Later",
        "input_schema": {"type": "object"},
        "defer_loading": True,
    },
]


def messages_of(seen):
    return [json.loads(each.raw)["messages"] for each in seen]


def plain(messages):
    """The words of a list alone: marks for the cache may move from one request to the next."""
    return [(each["role"], json.dumps(each["content"]).replace(', "cache_control": {"type": "ephemeral"}', ""))
            for each in messages]  # fmt: skip


def test_the_cache_of_the_provider_stays_warm(proxy, provider):
    """Complaint: the bill goes up. A request only grows at its end but where it folds, which is seldom."""
    talk(proxy, 40, x_claude_code_session_id="s")
    lists = [plain(each) for each in messages_of(provider.seen)]
    breaks = sum(1 for one, other in itertools.pairwise(lists) if other[: len(one)] != one)
    assert breaks == health(proxy)["counts"]["folds"]
    assert 1 <= breaks <= 8
    assert all(each.tokens > 3_000 for each, one, other in zip(provider.seen, lists, lists[1:], strict=False)
               if other[: len(one)] != one)  # fmt: skip


@pytest.mark.parametrize("model", [MODEL, "claude-fable-5-1"], ids=["own block", "whole prefix"])
def test_signed_thinking_is_never_refused(tmp_path, model):
    """Complaint: invalid signatures. Through many folds, with signatures that bind a block or all before it."""
    think = {"thinking": {"type": "enabled", "budget_tokens": 1_024}, "max_tokens": 2_048, "model": model}
    thinking = Server(lambda _: Answer(text="ok", reasoning="because " * 30), window=6_000,
                      binds_reasoning=model != MODEL)  # fmt: skip
    with thinking as provider, proxied(tmp_path, provider.url) as proxy:
        messages = []
        for number in range(25):
            messages.append({"role": "user", "content": f"Question {number}: {LONG}"})
            answer = post(proxy, {**body(), **think, "messages": messages})
            assert answer.status_code == 200, answer.text
            messages.append({"role": "assistant", "content": answer.json()["content"]})
        assert health(proxy)["counts"]["folds"] > 0
        assert provider.refused == []


def test_conversations_with_the_same_beginning_are_not_mixed_up(proxy, provider):
    """Complaint: one conversation answers another. A long preamble in common says nothing; the whole list does."""
    preamble = f"<system-reminder>{LONG}</system-reminder>"
    provider.respond = lambda request: Answer(text=f"answer {len(request['messages'])} {hash(str(request)) % 9973}")
    one, other = [f"{preamble} apples"], [f"{preamble} pears"]
    for _ in range(3):
        for texts, word in ((one, "pears"), (other, "apples")):
            texts.append(post(proxy, body(*texts)).json()["content"][0]["text"])
            texts.append("go on")
            assert word not in provider.seen[-1].raw.decode()
    # Nor does a first question that was asked before, word for word.
    post(proxy, body(one[0]))
    assert len(proxy.sessions) == 3


def test_tool_search_stays_on_behind_the_proxy(proxy, provider, tmp_path):
    """Complaint: all tools are loaded at once. Deferred tools pass through folds, and the client is told it may."""
    talk(proxy, 4)
    for number in range(12):
        post(proxy, body(*[f"{each} {LONG}" for each in range(2 * number + 1)], tools=TOOLS))
    assert health(proxy)["counts"]["folds"] > 0
    assert json.loads(provider.seen[-1].raw)["tools"] == TOOLS
    assert AGENTS["claude"].environment(["windowsill"], "http://x", tmp_path)["ENABLE_TOOL_SEARCH"] == "true"


def test_a_window_of_a_million_stays_one(tmp_path):
    """Complaint: 1M becomes 200k behind a base URL. Without a setting the window is the model's own."""
    raw = json.dumps({**body("word " * 300_000), "model": "claude-sonnet-5"}).encode()
    with (
        upstream(lambda handler, _: say(handler, 200, b"{}")) as (url, got),
        proxied(tmp_path, url, options={}) as proxy,
    ):
        post(proxy, raw, anthropic_beta="context-1m-2025-08-07")
    assert got[0][2] == raw
    assert got[0][1]["anthropic-beta"] == "context-1m-2025-08-07"


@pytest.mark.parametrize("form", ["stream", "one body", "nothing", "no end"])
def test_an_answer_has_the_form_that_the_provider_gave_it(tmp_path, form):
    """Complaint: empty or malformed answers with status 200. Whatever comes passes with its bytes and headers."""
    event = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
    data = {"stream": event * 3, "one body": b'{"type":"message"}', "nothing": b"", "no end": event[:-1]}[form]
    kind = "application/json" if form == "one body" else "text/event-stream; charset=utf-8"
    with (
        upstream(lambda handler, _: say(handler, 200, data, Request_Id="r7", **{"Content-Type": kind})) as (url, _),
        proxied(tmp_path, url) as proxy,
    ):
        answer = post(proxy, body("Hello", stream=True))
    assert (answer.status_code, answer.content) == (200, data)
    assert (answer.headers["content-type"], answer.headers["request-id"]) == (kind, "r7")


STREAM = {"Content-Type": "text/event-stream"}
ITEMS = [
    {"type": "additional_tools", "role": "developer", "tools": []},
    {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "You are an agent."}]},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Never touch main.py. Fix it."}]},
]
CALLED = [
    {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "shell", "arguments": '{"command":"make test"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "2 failed"},
]


def codex(*items, **fields):
    return {"model": "gpt-5", "input": list(items), "store": False, "stream": True, **fields}


def turn(kind="turn", thread="t1"):
    told = json.dumps({"thread_id": thread, "request_kind": kind})
    return {"user_agent": "codex_cli_rs/0.166.0", "x_codex_turn_metadata": told}


def events_of(answer):
    return [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]


def test_codex_speaks_over_a_socket_and_nothing_is_lost(proxy, provider):
    """Complaint: no websockets. Frames that say only what is new become whole requests, and one session."""
    provider.respond = lambda request: Answer(text=f"answer {len(request['input'])}")
    head = {"authorization": "Bearer k", "user-agent": "codex_cli_rs/0.166.0", "openai-beta": "responses_websockets=1"}
    told = {"x-codex-turn-metadata": turn()["x_codex_turn_metadata"], "ws_request_header_x_lite": "true"}
    with connect(f"ws{proxy.url[4:]}/v1/responses", additional_headers=head) as socket:

        def ask(*items, **fields):
            frame = {"type": "response.create", **codex(*items, client_metadata=told), **fields}
            socket.send(json.dumps(frame))
            while True:
                event = json.loads(socket.recv(timeout=60))
                if event["type"] in ("response.completed", "error"):
                    return event

        before = ask(generate=False)["response"]["id"]
        for number in range(4):
            message = {"type": "message", "role": "user", "content": f"Question {number}: {LONG}"}
            answer = ask(*(ITEMS if not number else []), message, previous_response_id=before)
            before = answer["response"]["id"]
        assert ask(previous_response_id="resp_of_another_socket")["error"]["code"] == "previous_response_not_found"
    assert provider.refused == []
    inputs = [json.loads(each.raw)["input"] for each in provider.seen]
    assert [len(each) for each in inputs] == [4, 6, 8, 10]
    assert {each.headers.get("x-lite") for each in provider.seen} == {"true"}
    assert not any("openai-beta" in each.headers or "previous_response_id" in each.body for each in provider.seen)
    (name,) = proxy.sessions
    assert name.startswith("codex-t1")
    with Session.open(name, store=proxy.store) as session:
        assert "answer 10" in str(list(session.messages())[-1])


def test_codex_compacts_before_a_provider_that_knows_no_compaction(tmp_path, provider):
    """Complaint: Codex cannot compact. It gets its one item, which comes back as words, and the fold can be undone."""
    provider.respond = lambda _: Answer(text="I see.")

    def strict(handler, sent):
        value = json.loads(sent)
        if any(item["type"] in ("compaction_trigger", "compaction") for item in value["input"]):
            say(handler, 400, b'{"error":{"message":"unknown item type"}}')
            return
        status, events = provider.answer("/v1/responses", sent, {})
        say(handler, status, b"".join(events), **STREAM)

    with upstream(strict) as (url, got), proxied(tmp_path, url, options={}) as proxy:
        assert post(proxy, codex(*ITEMS), "/v1/responses", **turn()).status_code == 200
        said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I see."}]}
        before = [*ITEMS, said, *CALLED]
        answer = post(proxy, codex(*before, {"type": "compaction_trigger"}), "/v1/responses", **turn("compaction"))
        assert answer.headers["content-type"].startswith("text/event-stream")
        done = [each["item"] for each in events_of(answer) if each["type"] == "response.output_item.done"]
        assert [each["type"] for each in done] == ["compaction"]
        assert done[0]["id"].startswith("cmp")
        assert events_of(answer)[-1]["type"] == "response.completed"
        again = post(proxy, codex(*ITEMS, done[0]), "/v1/responses", **turn())
        assert again.status_code == 200, again.text
        words = json.loads(got[-1][2])["input"][-1]
        assert words["role"] == "user"
        assert "make test" in words["content"][0]["text"]
        (name,) = proxy.sessions
        with Session.open(name, store=proxy.store) as session:
            fold = next(each for each in session.folds if each.strategy == "client")
            assert sum(1 for item in session.view.items if not item.is_empty) == len(ITEMS) + 2
            session.unfold(fold.id)
            assert any("2 failed" in str(session.view.read(item)) for item in session.view.items)
            assert session.verify() == []


def test_a_compaction_of_a_provider_that_knows_it_is_its_own(tmp_path):
    """Complaint: compactions rewritten by the proxy. The item of the provider passes, and comes back as it was."""
    item = {"type": "compaction", "id": "cmp_7", "encrypted_content": "sealed"}
    event = {"type": "response.output_item.done", "output_index": 0, "item": item}
    data = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()

    def answer(handler, sent):
        say(handler, 200, data if b"compaction_trigger" in sent else b"", **STREAM)

    with upstream(answer) as (url, got), proxied(tmp_path, url, options={}) as proxy:
        post(proxy, codex(*ITEMS), "/v1/responses", **turn())
        asked = json.dumps(codex(*ITEMS, {"type": "compaction_trigger"})).encode()
        answer = post(proxy, asked, "/v1/responses", **turn("compaction"))
        assert (answer.content, got[-1][2]) == (data, asked)
        after = json.dumps(codex(*ITEMS, item)).encode()
        post(proxy, after, "/v1/responses", **turn())
        assert got[-1][2] == after
        assert len(proxy.sessions) == 1


def test_headers_and_fields_that_nobody_knows_pass(tmp_path):
    """Complaint: beta headers are stripped. They pass, and so do the fields that go with them, through folds too."""
    odd = {"type": "tool_reference_of_2031", "names": [{"a": 1}]}
    fields = {"context_management": {"edits": []}, "output_config": {"effort": "high"}, "new_field": {"a": [1]}}
    with upstream(lambda handler, _: say(handler, 200, b"{}")) as (url, got), proxied(tmp_path, url) as proxy:
        asked = {**body(*[f"{number} {LONG}" for number in range(31)]), **fields}
        asked["messages"][-1]["content"] = [{"type": "text", "text": "Go on."}, odd]
        post(proxy, asked, anthropic_beta="one-2030-01-01,two-2031-01-01", x_new_header="kept")
    _, headers, sent = got[0]
    assert len(json.loads(sent)["messages"]) < 31
    assert odd in json.loads(sent)["messages"][-1]["content"]
    assert {name: json.loads(sent)[name] for name in fields} == fields
    assert headers["anthropic-beta"].split(",")[:2] == ["one-2030-01-01", "two-2031-01-01"]
    assert headers["x-new-header"] == "kept"


def test_counts_are_those_of_what_is_sent(proxy, provider):
    """Complaint: wrong token counts. A count is that of the folded request; usage passes as the provider said it."""
    texts = talk(proxy, 20, x_claude_code_session_id="s")
    counted = post(proxy, body(*texts, "?"), "/v1/messages/count_tokens", x_claude_code_session_id="s").json()
    answer = post(proxy, body(*texts, "?"), x_claude_code_session_id="s").json()
    assert abs(counted["input_tokens"] - provider.seen[-1].tokens) <= 0.05 * provider.seen[-1].tokens
    usage = answer["usage"]
    assert sum(usage.get(name) or 0 for name in ("input_tokens", "cache_read_input_tokens",
               "cache_creation_input_tokens")) == provider.seen[-1].tokens  # fmt: skip


def test_what_is_said_to_be_saved_is_what_was_not_sent(proxy, provider):
    """Complaint: claimed savings are no net savings. What is put in the place of folded parts is counted against."""
    asked = 0
    texts = []
    for number in range(25):
        texts.append(f"Question {number}: {LONG}")
        asked += len(json.dumps(body(*texts)))
        texts.append(post(proxy, body(*texts)).json()["content"][0]["text"])
    counts = health(proxy)["counts"]
    assert counts["bytes of clients"] == asked
    assert counts["bytes not sent"] == asked - sum(len(each.raw) for each in provider.seen) > 0


def test_the_compactions_of_client_and_proxy_do_not_fight(proxy, provider):
    """Complaint: each compacts what the other has compacted. One that failed changes nothing, one that came is kept."""
    texts = talk(proxy, 5, x_claude_code_session_id="s")
    named = {"x_claude_code_session_id": "s", "x_claude_code_request_class": "compaction"}
    provider.fail(529)
    raw = json.dumps(body(*texts, COMPACT)).encode()
    assert post(proxy, raw, **named).status_code == 529
    assert provider.seen[-1].raw == raw
    before = health(proxy)["counts"]["folds"]
    texts = talk(proxy, 1, texts, x_claude_code_session_id="s")
    assert plain(messages_of(provider.seen)[-1])[0] == plain(body(*texts)["messages"])[0]
    assert post(proxy, raw, **named).status_code == 200
    talk(proxy, 4, [SUMMARY, "I see."], x_claude_code_session_id="s")
    assert messages_of(provider.seen)[-1][0]["content"] == SUMMARY
    assert health(proxy)["counts"]["folds"] == before
    with Session.open(proxy.sessions[0], store=proxy.store) as session:
        assert [each.strategy for each in session.folds if each.strategy == "client"] == ["client"]


def test_leaving_the_proxy_does_not_end_a_session(proxy, provider, tmp_path):
    """Complaint: without the proxy the session is dead. The client's list is its own, and a handoff tells the rest."""
    provider.respond = lambda _: Answer(calls=(Call(name="run", input={"command": "make test"}),))
    tools = [{"name": "run", "description": "Run", "input_schema": {"type": "object"}}]
    messages = [{"role": "user", "content": "Please mend the parser. Never touch main.py."}]
    for number in range(12):
        answer = post(proxy, {**body(), "messages": messages, "tools": tools}, x_claude_code_session_id="s").json()
        messages.append({"role": "assistant", "content": answer["content"]})
        calls = [each["id"] for each in answer["content"] if each["type"] == "tool_use"]
        done = [{"type": "tool_result", "tool_use_id": each, "content": f"run {number} {3 * LONG}"} for each in calls]
        messages.append({"role": "user", "content": done})
    assert health(proxy)["counts"]["folds"] > 0
    provider.window = 60_000
    direct = post(proxy, {**body(), "messages": messages, "tools": tools}, base=provider.url)
    assert direct.status_code == 200, direct.text
    (name,) = proxy.sessions
    told = subprocess.run(
        [sys.executable, "-m", "windowsill", "sessions", "export", name, "--handoff", "--store", str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for words in ("Please mend the parser", "Never touch main.py", "make test", "more than the window of 6,000"):
        assert words in told


def test_a_subscription_is_passed_on_and_every_step_can_be_looked_at(tmp_path, provider):
    """Complaint: is my account safe, and what did it do? A token is passed and kept nowhere; each change is told."""
    secret = "sk-ant-oat01-a-subscription-never-to-be-kept"
    with upstream(lambda handler, sent: say(handler, *answered(provider, sent))) as (url, got):
        with proxied(tmp_path, url) as proxy:
            talk(proxy, 20, authorization=f"Bearer {secret}", cookie=f"sid={secret}")
            assert secret not in json.dumps(health(proxy))
            with Session.open(proxy.sessions[0], store=proxy.store) as session:
                assert all(each.reason for each in session.folds)
                assert session.folds
                assert session.calls
        assert {each[1]["authorization"] for each in got} == {f"Bearer {secret}"}
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert kept
    assert not any(secret.encode() in path.read_bytes() for path in kept)


def answered(provider, sent):
    status, answer = provider.answer("/v1/messages", sent, {})
    return status, json.dumps(answer).encode()
