from __future__ import annotations

import pytest

import windowsill
from support.transcript_lines import SESSION, claude, jsonl, messages, read_transcript, result, texts, use

pytestmark = pytest.mark.unit


def says(uuid, parent, text, **fields):
    return claude(uuid, parent, "assistant", [{"type": "text", "text": text}], message={"id": f"m-{uuid}"}, **fields)


def queued(prompt, **fields):
    attachment = {"type": "queued_command", "prompt": prompt, "commandMode": "prompt"}
    return {"type": "attachment", "attachment": attachment, "sessionId": SESSION, "isSidechain": False, **fields}


CALLED = [
    claude("a", None, "user", "Look."),
    claude("b", "a", "assistant", [use("t1")], message={"id": "m1"}),
    claude("c", "b", "user", [result("t1")], toolUseResult={"stdout": "ok", "isImage": False}),
]


@pytest.mark.parametrize("chained", [True, False])
def test_prompt_typed_while_the_model_worked_is_part_of_the_conversation(chained):
    """It is only written as an attachment, with a place in the chain or without one, and often several times."""
    line = queued("And the tests?", **({"uuid": "q", "parentUuid": "c"} if chained else {}))
    found = read_transcript(jsonl(*CALLED, line, line, line, says("d", "q" if chained else "c", "Both fine.")))
    (session,) = found.sessions
    assert texts(session) == ["Look.", "tool_use", "tool_result", "And the tests?", "Both fine."]
    assert found.skipped == {"repeated": 2}
    assert windowsill.validate(messages(session), format="anthropic") == []


def test_queued_prompt_with_a_picture():
    """Its blocks are kept as they are."""
    blocks = [{"type": "text", "text": "This:"}, {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}}]
    (session,) = read_transcript(
        jsonl(*CALLED, queued(blocks, uuid="q", parentUuid="c"), says("d", "q", "I see."))
    ).sessions
    assert messages(session)[3] == {"role": "user", "content": blocks}


def test_queued_prompt_between_a_call_and_its_result_is_counted():
    """Without a place in the chain it would tear them apart."""
    found = read_transcript(jsonl(*CALLED[:2], queued("Wait!"), CALLED[2], says("d", "c", "Done.")))
    assert [texts(each) for each in found.sessions] == [["Look.", "tool_use", "tool_result", "Done."]]
    assert found.skipped == {"queued_command": 1}


@pytest.mark.parametrize(
    "attachment",
    [{"type": "hook", "prompt": "x"}, {"type": "queued_command"}, {"type": "queued_command", "prompt": 7}, {}, 5],
)
def test_other_attachments_are_counted(attachment):
    """Reminders, hooks and what nobody knows yet are no part of the conversation, and what follows stays in place."""
    line = {"type": "attachment", "uuid": "x", "parentUuid": "c", "sessionId": SESSION, "attachment": attachment}
    found = read_transcript(jsonl(*CALLED, line, says("d", "x", "Done.")))
    assert [texts(each) for each in found.sessions] == [["Look.", "tool_use", "tool_result", "Done."]]
    assert found.skipped == {"attachment": 1}


def test_records_of_newer_versions_are_counted():
    """Whatever has no message is told by its type."""
    kinds = ["file-history-snapshot", "queue-operation", "ai-title", "permission-mode", "last-prompt", "made-up"]
    found = read_transcript(jsonl(*({"type": kind, "sessionId": SESSION} for kind in kinds), *CALLED, {"odd": True}))
    assert found.skipped == dict.fromkeys(sorted([*kinds, "untyped"]), 1)
    assert found.troubles == ()


def test_meta_messages_are_what_the_model_saw():
    """A caveat or the output of a command was sent, though no person wrote it."""
    meta = claude("m", None, "user", "<local-command-caveat>x</local-command-caveat>", isMeta=True)
    (session,) = read_transcript(jsonl(meta, claude("a", "m", "user", "Hi"), says("b", "a", "Hello"))).sessions
    assert texts(session)[0].startswith("<local-command-caveat>")


def test_message_without_a_role_is_of_the_type_of_its_line():
    """Some versions leave it out."""
    line = claude("a", None, "user", "Hi")
    del line["message"]["role"]
    (session,) = read_transcript(jsonl(line, says("b", "a", "Hello"))).sessions
    assert messages(session)[0] == {"role": "user", "content": "Hi"}


LONG = [
    claude("a", None, "user", "one"),
    says("b", "a", "two"),
    claude("c", "b", "user", "three"),
    says("d", "c", "four"),
]


def compacted(kept, next_parent):
    """The four messages, a compaction that kept some of them, and what came after."""
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "x", "parentUuid": None, "sessionId": SESSION}
    boundary |= {"logicalParentUuid": "d", "compactMetadata": {"trigger": "auto", **kept}}
    summary = claude("s", "x", "user", "Summary", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    lines = [*LONG, boundary, summary, claude("e", next_parent, "user", "five"), says("f", "e", "six")]
    return {each.id.removeprefix(SESSION): texts(each) for each in read_transcript(jsonl(*lines)).sessions}


@pytest.mark.parametrize("next_parent", ["d", "s"])
@pytest.mark.parametrize(
    "kept",
    [
        {"preservedMessages": {"anchorUuid": "s", "uuids": ["c", "d"]}},
        {"preservedSegment": {"headUuid": "c", "anchorUuid": "s", "tailUuid": "d"}},
    ],
    ids=["each", "first and last"],
)
def test_compaction_that_kept_messages_shows_them_after_the_summary(kept, next_parent):
    """What follows may hang on the last of them, which stands before the compaction: it does not go on there."""
    assert compacted(kept, next_parent) == {
        "": ["one", "two", "three", "four"],
        "-part-2": ["Summary", "three", "four", "five", "six"],
    }


@pytest.mark.parametrize(
    ("kept", "shown"),
    [
        ({}, []),
        ({"preservedMessages": {"uuids": ["gone"]}}, []),
        ({"preservedMessages": 5, "preservedSegment": {"headUuid": 1}}, []),
        ({"preservedSegment": {"headUuid": "c", "tailUuid": "gone"}}, []),
        ({"preservedSegment": {"headUuid": "gone", "tailUuid": "d"}}, ["four"]),
    ],
)
def test_compaction_that_says_little_of_what_it_kept(kept, shown):
    """The summary is where the new part begins, with as much as is known, and nothing breaks."""
    assert compacted(kept, "s") == {
        "": ["one", "two", "three", "four"],
        "-part-2": ["Summary", *shown, "five", "six"],
    }


def test_second_boundary_that_says_nothing_does_not_forget_what_the_first_kept():
    """What was kept waits for the summary."""
    first = {"type": "system", "subtype": "compact_boundary", "uuid": "x", "parentUuid": None, "sessionId": SESSION}
    first |= {"logicalParentUuid": "d", "compactMetadata": {"preservedMessages": {"uuids": ["c", "d"]}}}
    second = {"type": "system", "subtype": "compact_boundary", "uuid": "y", "parentUuid": "x", "sessionId": SESSION}
    summary = claude("s", "y", "user", "Summary", isCompactSummary=True)
    found = read_transcript(jsonl(*LONG, first, second, summary, says("e", "s", "five"))).sessions
    assert texts(found[-1]) == ["Summary", "three", "four", "five"]


TANGLES = {
    "its own parent": [claude("a", "a", "user", "one"), says("b", "a", "two")],
    "a circle": [claude("a", "b", "user", "one"), says("b", "a", "two")],
    "a parent that was never written": [claude("a", "gone", "user", "one"), says("b", "also gone", "two")],
    "a parent that comes later": [says("b", "a", "two"), claude("a", None, "user", "one")],
    "one uuid for two lines": [claude("a", None, "user", "one"), says("b", "a", "two"), says("b", "a", "three")],
}


@pytest.mark.parametrize("lines", TANGLES.values(), ids=TANGLES)
def test_tangled_parents_lose_no_message(lines):
    """Each line is placed after one that was there before it, so nothing can go round in circles."""
    found = read_transcript(jsonl(*lines))
    assert {text for each in found.sessions for text in texts(each)} >= {"one", "two"}
    assert found.troubles == ()


def printed(kind, content, id=None, agent=None):
    """A line of what Claude Code prints for a program (`--output-format stream-json`)."""
    message = {"role": kind, "content": content, **({"id": id, "model": "claude-opus-4-6"} if id else {})}
    line = {"type": kind, "message": message, "parent_tool_use_id": agent, "session_id": "print", "uuid": f"{content}"}
    return line | ({} if kind == "user" else {"request_id": "r"})


def test_what_is_printed_for_a_program_is_a_session_too():
    """Its lines follow each other without naming parents; a sub-agent is known by the call that started it."""
    start = {"type": "system", "subtype": "init", "session_id": "print", "uuid": "i", "tools": ["Task"]}
    text = [{"type": "text", "text": "On it."}]
    lines = [start, printed("user", "Go."), printed("assistant", text, "m1"), printed("assistant", [use("t1")], "m1")]
    lines += [printed("user", "Search.", agent="t1")]
    lines += [printed("assistant", [{"type": "text", "text": "Found."}], "m2", agent="t1")]
    lines += [printed("user", [result("t1")]), printed("assistant", [{"type": "text", "text": "Done."}], "m3")]
    found = read_transcript(jsonl(*lines, {"type": "result", "subtype": "success", "session_id": "print", "uuid": "z"}))
    assert {each.id: texts(each) for each in found.sessions} == {
        "print": ["Go.", "On it. tool_use", "tool_result", "Done."],
        "print-agent-t1": ["Search.", "Found."],
    }
    assert found.skipped == {"result": 1, "system": 1}
