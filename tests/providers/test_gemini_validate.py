"""Gemini's validator: each rule by its name, with the place."""

from __future__ import annotations

import pytest

from support.gemini_contents import HI, HOLOGRAM, OK, PICTURE, SIGNATURE, answer, call, model, text, user
from windowsill import providers
from windowsill.providers.gemini import PLACEHOLDER

pytestmark = pytest.mark.unit

SIGNED = call(signature=SIGNATURE)


def declared(*tools):
    return {"contents": [HI], "tools": [{"functionDeclarations": list(tools)}]}


BROKEN = [
    ("body", "", 7),
    ("no-contents", "", []),
    ("no-contents", "contents", {"contents": []}),
    ("role", "[1]", [HI, {"role": "assistant", "parts": [text("x")]}]),
    ("first-content-is-user", "[0]", [OK, HI]),
    ("empty-parts", "[0]", [user()]),
    ("part", "[0].parts[1]", [user(text("x"), {})]),
    ("empty-text", "[0].parts[0]", [user(text(""))]),
    ("parts-by-role", "[0].parts[0]", [user(call())]),
    ("parts-by-role", "[1].parts[0]", [HI, model(answer())]),
    ("function-name", "[1].parts[0]", [HI, model(call("no spaces")), user(answer("no spaces"))]),
    ("args", "[1].parts[0]", [HI, model({"functionCall": {"name": "read", "args": "x"}}), user(answer())]),
    (
        "response",
        "[2].parts[0]",
        [HI, model(call()), user({"functionResponse": {"name": "read", "response": "done"}})],
    ),
    ("call-has-response", "[1].parts[0]", [HI, model(call()), HI]),
    ("call-has-response", "[1].parts[1]", [HI, model(call(), call()), user(answer())]),
    ("call-has-response", "[1].parts[0]", [HI, model(call())]),
    ("response-follows-call", "[0].parts[0]", [user(answer())]),
    ("response-follows-call", "[2].parts[1]", [HI, model(call()), user(answer(), answer())]),
    ("response-follows-call", "[2].parts[0]", [HI, model(call("read")), user(answer("write"), answer("read"))]),
    ("response-follows-call", "[2].parts[0]", [HI, model(call(id="a")), user(answer(id="b"))]),
    ("call-is-signed", "[3].parts[0]", [HI, model(SIGNED), user(answer()), model(call()), user(answer())]),
    ("media", "[0].parts[0]", [user({"inlineData": {"mimeType": "image/png"}})]),
    ("media-type", "[0].parts[0]", [user({"inlineData": {"data": "AA=="}})]),
    ("system", "systemInstruction", {"contents": [HI], "systemInstruction": "be brief"}),
    ("empty-text", "systemInstruction.parts[0]", {"contents": [HI], "system_instruction": {"parts": [text("")]}}),
    ("tool-name", "tools[0].functionDeclarations[0]", declared({"name": "1st"})),
    (
        "tool-schema",
        "tools[0].functionDeclarations[1]",
        declared({"name": "a"}, {"name": "b", "parameters": {"type": "STRING"}}),
    ),
    (
        "tool-schema",
        "tools[0].functionDeclarations[0]",
        declared({"name": "a", "parameters": {"type": "OBJECT"}, "parameters_json_schema": {"type": "object"}}),
    ),
]


@pytest.mark.parametrize(("rule", "where", "request_"), BROKEN)
def test_broken_rule_is_named_with_its_place(rule, where, request_):
    """The first problem is the rule that was broken, at its place, with a remedy."""
    problem = providers.get("gemini").validate(request_)[0]
    assert (problem.rule, problem.where) == (f"gemini.{rule}", where)
    assert problem.remedy


@pytest.mark.parametrize(
    "contents",
    [
        [HI, HI, OK, OK],
        [user(PICTURE, HOLOGRAM), model(PICTURE)],
        [HI, model(text("", thoughtSignature=SIGNATURE))],
        [HI, model(call()), model(call()), user(answer(), answer())],
        [HI, model(call()), {"role": "function", "parts": [answer()]}],
        [HI, model(call(id="a")), user(answer())],
        [HI, model(call(), call("write")), user(answer("write"), answer(), text("go on"))],
        [HI, model({"function_call": {"name": "read"}}), user({"function_response": {"name": "read", "response": {}}})],
        [{"parts": [text("no role")]}],
        [HI, model(SIGNED, call()), user(answer(), answer())],
        [HI, model(SIGNED), model(call()), user(answer(), answer())],
        [HI, model(call()), user(answer()), model(SIGNED), user(answer()), HI],
        [HI, model(call()), user(answer()), HI, model(SIGNED), user(answer())],
        [HI, model(SIGNED), user(answer()), model(call(signature=PLACEHOLDER)), user(answer())],
        [HI, model(call(signature=PLACEHOLDER)), user(answer()), model(call()), user(answer())],
    ],
)
def test_what_gemini_accepts_is_no_problem(contents):
    """Roles in a row, unknown parts, either spelling, and signatures where the current turn needs them."""
    assert providers.validate(contents, format="gemini") == []
