"""Who asks, in which conversation, and what for: read from what clients really send (names and words invented)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.proxy.callers import MARK, caller_of, owner_of, safe_name

pytestmark = pytest.mark.unit

KEY = b"k" * 32
LIST = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}


def caller(headers=None, body=None, name="", query=None):
    return caller_of(headers or {}, query or {}, json.dumps(LIST if body is None else body).encode(), KEY, name)


@pytest.mark.parametrize(
    ("headers", "thread"),
    [
        ({"x-windowsill-session": "mine", "x-claude-code-session-id": "s1"}, "mine"),
        ({"x-claude-code-session-id": "s1"}, "claude-s1"),
        ({"x-claude-code-session-id": "s1", "x-claude-code-agent-id": "a7"}, "claude-s1-agent-a7"),
        (
            {
                "x-claude-code-session-id": "s1",
                "x-claude-code-agent-id": "a8",
                "x-claude-code-parent-agent-id": "a7",
            },
            "claude-s1-agent-a7-agent-a8",
        ),
        ({"x-codex-turn-metadata": '{"thread_id":"t1","request_kind":"turn"}'}, "codex-t1"),
        ({"user-agent": "codex_cli_rs/0.166.0", "session-id": "t2"}, "codex-t2"),
        ({"user-agent": "something", "session-id": "t2"}, None),
        ({"x-session-id": "open-code"}, "open-code"),
        ({"x-session-id": "ses_2", "x-parent-session-id": "ses_1"}, "ses_1-agent-ses_2"),
        ({"x-other-session-id": "12345678"}, "12345678"),
        ({"x-other-session-id": "7"}, None),
        ({"x-codex-turn-metadata": "not json"}, None),
    ],
)
def test_a_conversation_is_named_by_the_header_of_its_client(headers, thread):
    """Known headers first; a bare counter that several clients may share is no name."""
    assert caller(headers).thread == thread


@pytest.mark.parametrize(
    ("fields", "thread"),
    [
        ({"metadata": {"user_id": '{"device_id":"d","session_id":"s-12345678"}'}}, "s-12345678"),
        ({"metadata": {"user_id": "user_abc_account__session_11111111-2222"}}, "11111111-2222"),
        ({"metadata": {"user_id": "somebody"}}, None),
        ({"metadata": "odd"}, None),
        ({"prompt_cache_key": "0199-thread-uuid"}, "0199-thread-uuid"),
    ],
)
def test_a_conversation_is_named_in_the_body_where_no_header_does(fields, thread):
    """Both forms of Anthropic's user id, and OpenAI's cache key."""
    assert caller(body={**LIST, **fields}).thread == thread


def test_two_credentials_never_have_a_session_in_common():
    """Whatever they say: the owner is part of the id, and cannot be said by a client."""
    other = owner_of({"x-api-key": "key-b"}, {}, KEY)
    one = caller({"x-api-key": "key-a", "x-windowsill-session": f"x{MARK}{other}"})
    two = caller({"x-api-key": "key-b", "x-windowsill-session": "x"})
    assert one.session != two.session
    assert one.session.count(MARK) == 1


@given(st.dictionaries(st.sampled_from(["authorization", "x-api-key", "api-key"]), st.text(max_size=20)))
def test_an_owner_says_nothing_of_the_credential(headers):
    """It is a hash with a key of this machine."""
    owner = owner_of(headers, {}, KEY)
    assert len(owner) == 12
    assert owner != owner_of(headers, {}, b"another machine")


@given(st.text(min_size=1))
def test_any_name_from_outside_becomes_a_plain_one(text):
    """A header cannot make an id that nothing can type, or that looks like another owner's."""
    name = safe_name(text)
    assert 1 <= len(name) <= 200
    assert MARK not in name
    assert name.isascii()


@pytest.mark.parametrize(
    ("headers", "purpose"),
    [
        ({"x-claude-code-request-class": "main"}, "conversation"),
        ({"x-claude-code-request-class": "subagent"}, "conversation"),
        ({"x-claude-code-request-class": "auxiliary"}, "other"),
        ({"x-claude-code-request-class": "compaction"}, "compaction"),
        ({"x-claude-code-request-class": "a new one"}, "conversation"),
        ({"x-codex-turn-metadata": '{"request_kind":"prewarm"}'}, "other"),
        ({"x-codex-turn-metadata": '{"request_kind":"compaction"}'}, "compaction"),
    ],
)
def test_a_client_says_what_a_request_is_for(headers, purpose):
    """Hints of Claude Code and Codex are believed; an unknown one is a conversation."""
    assert caller(headers).purpose == purpose


def test_opencodes_titles_and_summaries_are_no_conversation():
    """They come in its name, but without tools."""
    headers = {"user-agent": "opencode/1.18.33 ai-sdk", "x-session-id": "ses_12345678"}
    assert caller(headers).purpose == "other"
    assert caller(headers, {**LIST, "tools": []}).purpose == "other"
    assert caller(headers, {**LIST, "tools": [{"name": "read"}]}).purpose == "conversation"
    assert caller({"user-agent": "another", "x-session-id": "ses_12345678"}).purpose == "conversation"


@pytest.mark.parametrize(
    "body",
    [
        {
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "CRITICAL: Respond with TEXT ONLY. Sum up."}]}
            ]
        },
        {"messages": [{"role": "user", "content": "CRITICAL: Respond with TEXT ONLY. Sum up."}]},
        {"input": [{"role": "user", "content": "x"}, {"type": "compaction_trigger"}]},
    ],
)
def test_a_compaction_without_a_hint_is_told_by_its_words(body):
    """An older client sends no header for it."""
    assert caller(body=body).purpose == "compaction"


@given(st.binary(max_size=200))
def test_any_body_has_a_caller(body):
    """What cannot be read has no name, and is a conversation."""
    assert caller_of({}, {}, body, KEY).thread is None
