"""Rules that depend on the model, the end of a conversation, or the other tools."""

from __future__ import annotations

import pytest

from support.sessions import opened
from windowsill import providers

pytestmark = pytest.mark.unit

HI = {"role": "user", "content": "hi"}
CALL = {"type": "tool_use", "id": "c1", "name": "f", "input": {}}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "sig"}
RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "ok"}]}


def anthropic(*messages: dict, **fields: object) -> dict:
    return {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": list(messages), **fields}


def rules(body: object, format: str, **options: str) -> list[str]:
    return [problem.rule for problem in providers.validate(body, format, **options)]


@pytest.mark.parametrize("content", ["So: ", [{"type": "text", "text": "So:\n"}]])
def test_white_space_at_the_end_of_a_prefill_is_refused(content):
    """Anthropic takes it in any message but the last, which the model goes on from."""
    said = {"role": "assistant", "content": content}
    assert rules(anthropic(HI, said), "anthropic") == ["anthropic.trailing-space"]
    assert rules(anthropic(HI, said, HI), "anthropic") == []


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([HI, {"role": "assistant", "content": [CALL]}, RESULT], ["anthropic.thinking-begins-turn"]),
        ([HI, {"role": "assistant", "content": [THOUGHT, CALL]}, RESULT], []),
        ([HI, {"role": "assistant", "content": [CALL]}, RESULT, HI], []),
        ([HI, {"role": "assistant", "content": [{"type": "text", "text": "hi"}]}, HI], []),
    ],
    ids=["without", "with", "an-earlier-turn", "no-calls"],
)
def test_running_turn_with_calls_begins_with_thinking_where_it_is_on(messages, expected):
    """Only the turn that is still running has to."""
    thinking = {"type": "enabled", "budget_tokens": 1024}
    assert rules(anthropic(*messages, thinking=thinking), "anthropic") == expected
    assert rules(anthropic(*messages), "anthropic") == []


def test_thinking_with_an_empty_signature_is_not_signed():
    """A stream that broke off leaves an empty signature: it is refused, and mended by leaving the thinking out."""
    messages = [HI, {"role": "assistant", "content": [{**THOUGHT, "signature": ""}, {"type": "text", "text": "a"}]}, HI]
    assert rules(messages, "anthropic") == ["anthropic.thinking-has-signature"]
    mended = providers.repair(messages, "anthropic").messages
    assert [block["type"] for block in mended[1]["content"]] == ["text"]


LONG = "word " * 300_000


@pytest.mark.parametrize(
    ("format", "body"),
    [
        ("anthropic", anthropic({"role": "user", "content": LONG})),
        ("openai", {"model": "gpt-4o", "messages": [{"role": "user", "content": LONG}]}),
        ("responses", {"model": "gpt-4o", "input": LONG}),
    ],
    ids=["anthropic", "openai", "responses"],
)
def test_request_longer_than_the_window_is_refused(format, body):
    """The model in the body tells how much it takes."""
    assert rules(body, format) == [f"{format}.too-long"]
    assert rules({**body, "model": "some-local-model"}, format) == []


def test_model_may_be_named_beside_the_body():
    """Gemini's bodies name none, and a list of messages neither."""
    contents = {"contents": [{"role": "user", "parts": [{"text": "word " * 1_300_000}]}]}
    assert rules(contents, "gemini") == []
    assert rules(contents, "gemini", model="gemini-2.5-pro") == ["gemini.too-long"]
    assert rules([{"role": "user", "content": LONG}], "openai", model="gpt-4o") == ["openai.too-long"]


@pytest.mark.parametrize(
    ("format", "body"),
    [
        ("openai", {"model": "m", "messages": [{"role": "user", "content": [CALL]}]}),
        ("openai", {"model": "m", "messages": [{"role": "user", "content": [{"type": "input_text", "text": "a"}]}]}),
        ("responses", {"model": "m", "input": [{"role": "user", "content": [{"type": "text", "text": "a"}]}]}),
        ("anthropic", anthropic({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]})),
    ],
)
def test_part_of_another_format_is_refused(format, body):
    """A part that only another provider has is a problem, not an unknown kind."""
    assert len(rules(body, format)) == 1


@pytest.mark.parametrize(
    ("format", "body", "tool"),
    [
        ("anthropic", anthropic(HI), {"name": "f", "input_schema": {"type": "object"}}),
        ("openai", {"model": "m", "messages": [HI]}, {"type": "function", "function": {"name": "f"}}),
        ("responses", {"model": "m", "input": "hi"}, {"type": "function", "name": "f"}),
    ],
)
def test_two_tools_of_one_name_are_refused(format, body, tool):
    """The second one is named."""
    (problem,) = providers.validate({**body, "tools": [tool, tool]}, format)
    assert (problem.rule, problem.where) == (f"{format}.unique-tools", "tools[1]")


STRICT = {
    "type": "object",
    "properties": {"a": {"type": "string"}, "b": {"type": ["string", "null"]}},
    "required": ["a", "b"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("change", "count"),
    [
        ({}, 0),
        ({"additionalProperties": True}, 1),
        ({"required": ["a"]}, 1),
        ({"properties": {"a": {"type": "array", "items": {"type": "object"}}}, "required": ["a"]}, 1),
    ],
    ids=["sound", "open", "optional", "inside"],
)
def test_schema_of_a_strict_tool_is_checked(change, count):
    """OpenAI refuses a strict schema in which a field is optional or another may come, at any depth."""
    function = {"name": "f", "strict": True, "parameters": {**STRICT, **change}}
    chat = {"model": "m", "messages": [HI], "tools": [{"type": "function", "function": function}]}
    flat = {"model": "m", "input": "hi", "tools": [{"type": "function", **function}]}
    assert rules(chat, "openai") == ["openai.strict-schema"] * count
    assert rules(flat, "responses") == ["responses.strict-schema"] * count
    assert rules({**chat, "tools": [{"type": "function", "function": {**function, "strict": False}}]}, "openai") == []


def test_white_space_at_the_end_is_mended():
    """Composing and repairing take it off the last message; the history keeps it."""
    session = opened()
    session.add("hi")
    id = session.add({"role": "assistant", "content": "So: "})
    payload = session.compose_sync()
    assert payload.to("anthropic")["messages"][-1]["content"] == [{"type": "text", "text": "So:"}]
    assert [each.kind for each in payload.report.repairs] == ["end_trimmed"]
    assert session.message(id).text == "So: "
    session.add("go on")
    assert session.compose_sync().to("anthropic")["messages"][1]["content"] == "So: "


def test_thinking_is_left_out_while_the_running_turn_has_none():
    """A request that would be refused goes out without thinking; the next turn has it again."""
    session = opened()
    fields = {"max_tokens": 2_048, "thinking": {"type": "enabled", "budget_tokens": 1_024}}
    session.extend([HI, {"role": "assistant", "content": [CALL]}, RESULT])
    body = session.compose_sync(params=fields).to("anthropic")
    assert "thinking" not in body
    assert rules(body, "anthropic") == []
    session.extend([{"role": "assistant", "content": "done"}, HI])
    assert session.compose_sync(params=fields).to("anthropic")["thinking"] == fields["thinking"]


PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}


def test_pictures_are_kept_from_models_that_cannot_see():
    """Words stand in their place, also inside a result; the history keeps them, and another model sees them."""
    session = opened(model="deepseek-chat", budget=50_000)
    answer = {"type": "tool_result", "tool_use_id": "c1", "content": [PICTURE]}
    session.add({"role": "user", "content": [{"type": "text", "text": "look"}, PICTURE]}, format="anthropic")
    session.add({"role": "assistant", "content": [CALL]}, format="anthropic")
    id = session.add({"role": "user", "content": [answer]}, format="anthropic")
    payload = session.compose_sync()
    body = payload.body("deepseek")
    assert [repair.kind for repair in payload.report.repairs] == ["image_told", "image_told"]
    assert payload.tokens < 150
    assert session.view.tokens() < 150
    assert b"image_url" not in body
    assert body.count(b"(image image/png) is not shown: this model takes no pictures") == 2
    assert session.message(id).results[0].content[0].data == "aGk="
    assert isinstance(payload.to("openai")["messages"][0]["content"], str)


@pytest.mark.parametrize("format", ["anthropic", "openai"])
def test_problem_with_a_block_names_it_and_the_role(format):
    """In words that fit every kind and role."""
    block = {"anthropic": {"type": "image", "source": {"type": "url", "url": "https://x.test/a.png"}},
             "openai": {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}}}[format]  # fmt: skip
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    body["messages"].append({"role": "assistant", "content": [block]})
    found = [each.what for each in providers.validate(body, format) if each.rule.endswith("-by-role")]
    assert [each.split(" ", 2)[2] for each in found] == [f"{block['type']} in the assistant's message"]
