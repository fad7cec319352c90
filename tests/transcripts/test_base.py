from __future__ import annotations

import json

import pytest

from support.transcript_lines import (
    CODEX_HEAD,
    CODEX_MODEL,
    GEMINI_HEAD,
    SESSION,
    claude,
    codex,
    codex_says,
    codex_used,
    gemini,
    item,
    jsonl,
    read_transcript,
)
from windowsill.messages import Usage
from windowsill.transcripts.base import charge

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            {"input_tokens": 4, "cache_creation_input_tokens": 30, "cache_read_input_tokens": 200, "output_tokens": 9},
            Usage(input=4, cache_write=30, cache_read=200, output=9),
        ),
        (
            {"prompt_tokens": 100, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 60}},
            Usage(input=40, cache_read=60, output=9),
        ),
        (
            {"input_tokens": 100, "output_tokens": 9, "input_tokens_details": {"cached_tokens": 60}},
            Usage(input=40, cache_read=60, output=9),
        ),
    ],
    ids=["anthropic", "chat", "responses"],
)
def test_usage_in_the_words_of_each_provider(words, expected):
    """Cached tokens are apart from the input, whatever the provider includes in it."""
    found = charge(words, model="m", message=3, key="k")
    assert found is not None
    assert (found.usage, found.model, found.message, found.key) == (expected, "m", 3, "k")


@pytest.mark.parametrize("words", [None, [], "many", {}, {"input_tokens": 0}, {"input_tokens": "x"}, {"a": {"b": []}}])
def test_what_says_nothing_is_no_charge(words):
    """Usage that is missing, empty, zero or broken is left out and breaks nothing."""
    assert charge(words) is None


def test_tokens_cached_for_an_hour_are_told_apart():
    """They cost more; never more of them than were written."""
    words = {"input_tokens": 1, "cache_creation_input_tokens": 50, "cache_creation": {"ephemeral_1h_input_tokens": 40}}
    assert charge(words).long_cache_write == 40
    assert charge({**words, "cache_creation_input_tokens": 30}).long_cache_write == 30


def used(output):
    return {"input_tokens": 3, "cache_read_input_tokens": 100, "output_tokens": output}


def test_claude_answer_on_several_lines_is_charged_once():
    """Each line of an answer repeats its usage; the last has the final figures, and the id tells the call."""
    lines = [claude("a", None, "user", "Look.")]
    lines += [
        claude(uuid, parent, "assistant", [{"type": "text", "text": uuid}], message={"id": "msg_1", "usage": used(n)})
        for uuid, parent, n in [("b", "a", 1), ("c", "b", 8)]
    ]
    (session,) = read_transcript(jsonl(*lines)).sessions
    (paid,) = session.charges
    assert (paid.usage.output, paid.message, paid.key, paid.model) == (8, 1, "msg_1", "claude-opus-4-6")


def test_claude_branch_repeats_the_keys_of_what_it_shares():
    """So that a call counts once, though both sessions tell of it; without an id the line tells it."""
    lines = [claude("a", None, "user", "one")]
    lines += [claude("b", "a", "assistant", "two", message={"usage": used(1)}), claude("c", "b", "user", "three")]
    lines += [claude("d", "c", "assistant", "old", message={"id": "msg_d", "usage": used(2)})]
    lines += [claude("e", "b", "user", "again"), claude("f", "e", "assistant", "new", message={"usage": used(3)})]
    main, other = read_transcript(jsonl(*lines)).sessions
    assert [each.key for each in main.charges] == [f"{SESSION}/2", f"{SESSION}/6"]
    assert [each.key for each in other.charges] == [f"{SESSION}/2", "msg_d"]


def counted(total, last):
    return codex("event_msg", {"type": "token_count", "info": {"total_token_usage": total, "last_token_usage": last}})


def tokens(input, output):
    return {"input_tokens": input, "cached_input_tokens": 0, "output_tokens": output, "total_tokens": input + output}


def test_codex_count_that_is_written_again_is_no_call():
    """The agent repeats the count when it refreshes its limits; a count without figures says nothing."""
    first, second = (tokens(100, 10), tokens(100, 10)), (tokens(220, 30), tokens(120, 20))
    lines = [CODEX_HEAD, CODEX_MODEL, codex("event_msg", {"type": "token_count", "info": None})]
    lines += [codex_says("user", "a"), codex_says("assistant", "b"), counted(*first), counted(*first)]
    lines += [codex_says("user", "c"), item("function_call", call_id="x", name="ls", arguments="{}"), counted(*first)]
    lines += [codex_says("assistant", "d"), counted(*second), counted(*second)]
    (session,) = read_transcript(jsonl(*lines)).sessions
    assert [(each.message, each.usage.prompt, each.usage.output) for each in session.charges] == [
        (1, 100, 10),
        (3, 120, 20),
    ]


def test_codex_count_without_a_total_closes_one_answer():
    """Nothing tells then whether a second one is new: it is not counted."""
    lines = [CODEX_HEAD, codex_says("user", "a"), codex_says("assistant", "b"), codex_used(50, 5), codex_used(50, 5)]
    (session,) = read_transcript(jsonl(*lines)).sessions
    assert [(each.message, each.usage.prompt, each.key) for each in session.charges] == [(1, 50, None)]


def test_codex_call_without_a_message_is_charged_too():
    """A response that only searched, or the call for a summary, was paid for."""
    lines = [CODEX_HEAD, CODEX_MODEL, codex_says("user", "a"), item("web_search_call", action={"query": "q"})]
    lines += [counted(tokens(5, 1), tokens(5, 1)), codex_says("assistant", "b")]
    found = read_transcript(jsonl(*lines, counted(tokens(12, 3), tokens(7, 2))))
    (session,) = found.sessions
    assert [(each.message, each.usage.prompt, each.model) for each in session.charges] == [
        (None, 5, "gpt-5.2-codex"),
        (1, 7, "gpt-5.2-codex"),
    ]
    assert len(session.messages) == 2
    assert found.skipped == {"web_search_call": 1}


def test_codex_fork_has_the_keys_of_the_session_it_came_from():
    """A fork writes the calls of its parents again, with new times, before its own."""
    said = [codex_says("user", "a"), codex_says("assistant", "b"), counted(tokens(9, 1), tokens(9, 1))]
    root = [codex("session_meta", {"id": "root"}), *said]
    child = [codex("session_meta", {"id": "child", "forked_from_id": "root"}), *root]
    grandchild = [codex("session_meta", {"id": "grandchild", "forked_from_id": "child"}), *child]
    grandchild += [codex_says("user", "c"), codex_says("assistant", "d"), counted(tokens(20, 2), tokens(11, 1))]
    stranger = [codex("session_meta", {"id": "stranger"}), *said]
    sessions = [read_transcript(jsonl(*lines)).sessions[0] for lines in (root, child, grandchild, stranger)]
    keys = [[each.key for each in session.charges] for session in sessions]
    assert [session.id for session in sessions] == ["root", "child", "grandchild", "stranger"]
    assert keys[0] == keys[1] == keys[2][:1]
    assert len({*keys[2], *keys[3]}) == 3


def test_gemini_tokens_of_tools_and_thoughts_are_paid_for():
    """What tools brought in is input, thoughts are output; an answer that is only thought was paid for too."""
    counts = {"input": 1000, "output": 30, "cached": 200, "thoughts": 12, "tool": 50, "total": 1092}
    said = [gemini("u", "user", "Hi"), gemini("g", "gemini", "Hello", tokens=counts, model="gemini-2.5-pro")]
    said += [gemini("h", "gemini", "", tokens={**counts, "tool": 0}, model="gemini-2.5-pro")]
    (session,) = read_transcript(json.dumps({**GEMINI_HEAD, "messages": said}).encode()).sessions
    assert [(each.message, each.key) for each in session.charges] == [(1, "gem/g"), (None, "gem/h")]
    assert session.charges[0].usage == Usage(input=850, cache_read=200, output=42)
    assert len(session.messages) == 2
