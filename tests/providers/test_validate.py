"""The validators: each rule by its name, with the place."""

from __future__ import annotations

import pytest
from hypothesis import given

from support.conversations import call, result, sound_anthropic, sound_openai, text_block, thinking, tool, use
from windowsill import providers

pytestmark = pytest.mark.unit

HI = {"role": "user", "content": "hi"}
OK = {"role": "assistant", "content": "ok"}


def user(*content):
    return {"role": "user", "content": list(content)}


def assistant(*content):
    return {"role": "assistant", "content": list(content)}


def asks(*calls):
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def picture(media_type):
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": "AA=="}}


ANTHROPIC = [
    ("no-messages", "", []),
    ("role", "[0]", [{"role": "tool", "content": "x"}, HI]),
    ("first-message-is-user", "[0]", [OK, HI]),
    ("empty-content", "[0]", [user()]),
    ("empty-text", "[0]", [{"role": "user", "content": ""}]),
    ("blank-text", "[0].content[0]", [user(text_block(" \n"))]),
    ("call-has-result", "[1].content[0]", [HI, assistant(use("a")), HI]),
    ("call-has-result", "[1].content[0]", [HI, assistant(use("a"))]),
    ("tool-result-follows-call", "[0].content[0]", [user(result("a"))]),
    ("results-first", "[2].content[1]", [HI, assistant(use("a")), user(text_block("x"), result("a"))]),
    ("one-result", "[2].content[1]", [HI, assistant(use("a")), user(result("a"), result("a"))]),
    ("unique-ids", "[3].content[0]", [HI, *[assistant(use("a")), user(result("a"))] * 2]),
    ("tool-id", "[1].content[0]", [HI, assistant(use("a.b")), user(result("a.b"))]),
    ("tool-name", "[1].content[0]", [HI, assistant(use("a", "no spaces")), user(result("a"))]),
    ("tool-input", "[1].content[0]", [HI, assistant({**use("a"), "input": "x"}), user(result("a"))]),
    ("thinking-is-not-last", "[1]", [HI, assistant(text_block("x"), thinking())]),
    (
        "thinking-has-signature",
        "[1].content[0]",
        [HI, assistant({"type": "thinking", "thinking": "x"}, text_block("x"))],
    ),
    ("blocks-by-role", "[1].content[0]", [HI, assistant(picture("image/png"))]),
    ("image-type", "[0].content[0]", [user(picture("image/bmp"))]),
    ("error-has-content", "[2].content[0]", [HI, assistant(use("a")), user(result("a", "", is_error=True))]),
    ("max-tokens", "max_tokens", {"model": "m", "messages": [HI]}),
    ("model", "model", {"max_tokens": 1, "messages": [HI]}),
    (
        "tool-schema",
        "tools[0]",
        {"model": "m", "max_tokens": 1, "messages": [HI], "tools": [{"name": "t", "input_schema": {"type": "string"}}]},
    ),
    (
        "cache-markers",
        "",
        {
            "model": "m",
            "max_tokens": 1,
            "messages": [user(*[{**text_block("x"), "cache_control": {"type": "ephemeral"}}] * 5)],
        },
    ),
]

OPENAI = [
    ("no-messages", "", []),
    ("role", "[0]", [{"role": "robot", "content": "x"}]),
    ("empty-content", "[1]", [HI, {"role": "assistant", "content": None}]),
    ("empty-content", "[0]", [{"role": "user", "content": []}]),
    ("call-has-result", "[1].tool_calls[0]", [HI, asks(call("a")), HI, tool("a")]),
    ("tool-follows-call", "[0]", [tool("a")]),
    ("one-result", "[3]", [HI, asks(call("a")), tool("a"), tool("a")]),
    ("result-has-id", "[2]", [HI, OK, {"role": "tool", "content": "x"}]),
    ("unique-ids", "[1].tool_calls[1]", [HI, asks(call("a"), call("a")), tool("a")]),
    ("tool-name", "[1].tool_calls[0]", [HI, asks(call("a", "no spaces")), tool("a")]),
    ("arguments", "[1].tool_calls[0]", [HI, asks(call("a", "read", {"x": 1})), tool("a")]),
    (
        "parts-by-role",
        "[1].content[0]",
        [HI, {"role": "assistant", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}],
    ),
    ("model", "model", {"messages": [HI]}),
    (
        "tool-schema",
        "tools[0]",
        {
            "model": "m",
            "messages": [HI],
            "tools": [{"type": "function", "function": {"name": "t", "parameters": {"type": "string"}}}],
        },
    ),
]


@pytest.mark.parametrize(
    ("format", "rule", "where", "request_"),
    [("anthropic", *case) for case in ANTHROPIC] + [("openai", *case) for case in OPENAI],
)
def test_broken_rule_is_named_with_its_place(format, rule, where, request_):
    """The first problem is the rule that was broken, at its place, with a remedy."""
    problem = providers.validate(request_, format=format)[0]
    assert (problem.rule, problem.where) == (f"{format}.{rule}", where)
    assert problem.remedy


@pytest.mark.parametrize(
    "messages",
    [
        [HI, HI, OK, OK],
        [HI, assistant({"type": "hologram"})],
        [HI, assistant(use("a")), user(result("a", "")), HI],
        [HI, assistant(use("a")), user(result("a")), user(text_block("x"))],
    ],
)
def test_what_anthropic_accepts_is_no_problem(messages):
    """Roles in a row, unknown blocks and empty results pass."""
    assert providers.validate(messages, format="anthropic") == []


@given(sound_anthropic())
def test_sound_anthropic_conversations_pass(messages):
    """Nothing is found in a sound conversation."""
    assert providers.validate(messages, format="anthropic") == []


@given(sound_openai())
def test_sound_openai_conversations_pass(messages):
    """Nothing is found in a sound conversation."""
    assert providers.validate(messages, format="openai") == []
