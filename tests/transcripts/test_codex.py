from __future__ import annotations

import pytest

import windowsill
from support.transcript_lines import (
    CODEX_HEAD,
    CODEX_MODEL,
    PIXEL,
    codex,
    codex_says,
    codex_used,
    item,
    jsonl,
    messages,
    read_transcript,
    texts,
)

pytestmark = pytest.mark.unit

SHELL = {"name": "shell", "arguments": '{"command":["ls"]}'}


def test_items_become_chat_messages():
    """Text and calls of one response are one message with its usage; reasoning is counted and left out."""
    found = read_transcript(
        jsonl(
            CODEX_HEAD,
            CODEX_MODEL,
            codex_says("developer", "Be careful."),
            codex_says("user", "List the files."),
            item("reasoning", summary=[], encrypted_content="gAAAA"),
            codex_says("assistant", "Looking."),
            item("function_call", call_id="c1", **SHELL),
            item("custom_tool_call", call_id="c2", name="apply_patch", input="*** Begin"),
            codex_used(120, 30, 100),
            item("function_call_output", call_id="c1", output="a.py"),
            item("custom_tool_call_output", call_id="c2", output="Done!"),
            codex_used(999, 9, 9),
            codex_says("assistant", "One file."),
        )
    )
    (session,) = found.sessions
    assert (found.agent, session.id, session.format, session.model) == ("codex", "c0dec", "openai", "gpt-5.2-codex")
    said = messages(session)
    assert [each["role"] for each in said] == ["system", "user", "assistant", "tool", "tool", "assistant"]
    assert said[2]["content"] == "Looking."
    assert [each["function"]["arguments"] for each in said[2]["tool_calls"]] == [
        '{"command":["ls"]}',
        '{"input":"*** Begin"}',
    ]
    assert (said[3]["tool_call_id"], said[3]["content"]) == ("c1", "a.py")
    assert [(each.message, each.usage.cache_read) for each in session.charges] == [(2, 100)]
    assert session.times[1] == 1772359200.0
    assert found.skipped == {"reasoning": 1}
    assert windowsill.validate(said, format="openai") == []


def test_base_instructions_are_the_system_prompt():
    """What the rollout says of the system prompt is sent with every part."""
    head = codex("session_meta", {"id": "c", "base_instructions": {"text": "You are Codex."}})
    compacted = codex("compacted", {"message": "Summary: all well."})
    lines = [head, codex_says("user", "a"), codex_says("assistant", "b"), compacted, codex_says("assistant", "c")]
    first, second = read_transcript(jsonl(*lines)).sessions
    assert (first.id, texts(first)) == ("c", ["You are Codex.", "a", "b"])
    assert (second.id, texts(second)) == ("c-part-2", ["You are Codex.", "Summary: all well.", "c"])


def test_replacement_history_is_what_a_new_part_begins_with():
    """Where the rollout says what the compaction left, that is taken."""
    left = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "kept"}]}]
    compacted = codex("compacted", {"message": "", "replacement_history": left})
    lines = [CODEX_HEAD, codex_says("user", "a"), codex_says("assistant", "b"), compacted, codex_says("assistant", "c")]
    assert [texts(each) for each in read_transcript(jsonl(*lines)).sessions] == [["a", "b"], ["kept", "c"]]


def test_rolled_back_turns_are_a_session_of_their_own():
    """Going back counts what a person wrote, not what the agent wrote in their name."""
    lines = [CODEX_HEAD, codex_says("user", "a"), codex_says("assistant", "b"), codex_says("user", "c")]
    lines += [codex_says("user", "<environment_context>x"), codex_says("assistant", "d")]
    lines += [codex("event_msg", {"type": "thread_rolled_back", "num_turns": 1})]
    lines += [codex_says("user", "e"), codex_says("assistant", "f")]
    main, other = read_transcript(jsonl(*lines)).sessions
    assert (main.id, texts(main)) == ("c0dec", ["a", "b", "e", "f"])
    assert (other.id, texts(other)) == ("c0dec-branch-1", ["a", "b", "c", "<environment_context>x", "d"])


def test_pictures_of_messages_and_results():
    """A picture in a result follows after all results, where OpenAI takes it."""
    image = {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"}
    lines = [CODEX_HEAD, item("message", role="user", content=[{"type": "input_text", "text": "Look"}, image])]
    lines += [item("function_call", call_id=id, **SHELL) for id in ("c1", "c2")]
    lines += [
        item("function_call_output", call_id="c1", output=[image]),
        item("function_call_output", call_id="c2", output="x"),
    ]
    (session,) = read_transcript(jsonl(*lines)).sessions
    said = messages(session)
    assert said[0]["content"][1]["image_url"]["url"] == image["image_url"]
    assert [each["role"] for each in said] == ["user", "assistant", "tool", "tool", "user"]
    assert said[4]["content"][1]["image_url"]["url"] == image["image_url"]


def test_broken_lines_and_orphans():
    """Broken lines are told; a result without its call stays for the repair to mend."""
    lines = [CODEX_HEAD, b"{", codex_says("user", "a"), item("function_call_output", call_id="gone", output="x")]
    lines += [item("function_call", name="shell", arguments="{}"), codex_says("assistant", "b"), b'{"timestamp": "2026']
    found = read_transcript(jsonl(*lines))
    assert [each.line for each in found.troubles] == [2, 5, 7]
    assert [each["role"] for each in messages(found.sessions[0])] == ["user", "tool", "assistant"]


def test_rollouts_of_the_first_versions():
    """Items that stand in the line itself are read too."""
    head = {"id": "old", "timestamp": "2025-07-01T00:00:00Z", "instructions": None}
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
    shell = {"type": "local_shell_call", "call_id": "c", "status": "completed", "action": {"command": ["ls"]}}
    found = read_transcript(jsonl(head, {"record_type": "state"}, said, shell))
    assert (found.sessions[0].id, found.skipped) == ("old", {"state": 1})
    assert messages(found.sessions[0])[1]["tool_calls"][0]["function"] == {
        "name": "local_shell",
        "arguments": '{"command":["ls"]}',
    }
