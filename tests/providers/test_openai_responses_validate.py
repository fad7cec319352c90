"""The validator of OpenAI Responses: each rule by its name, with the place."""

from __future__ import annotations

import pytest

from support.response_items import (
    COMPUTER,
    FLAT,
    FORMAT,
    HI,
    OK,
    PATCH,
    SCREEN,
    SEARCH,
    custom,
    function,
    input_text,
    output,
    reasoned,
    said,
    written,
)

pytestmark = pytest.mark.unit


RULES = [
    ("no-input", "", []),
    ("no-input", "input", {"model": "m", "input": ""}),
    ("item", "[0]", [{"content": "x"}]),
    ("item", "[0]", ["x"]),
    ("role", "[0]", [{"role": "tool", "content": "x"}]),
    ("role", "[0]", [{"type": "message", "content": "x"}]),
    ("empty-content", "[0]", [{"role": "user", "content": []}]),
    ("empty-content", "[0]", [{"role": "user", "content": None}]),
    ("part", "[0].content[0]", [said({"text": "x"})]),
    ("part", "[0].content[0]", [said({"type": "input_text"})]),
    ("part", "[0].content[0]", [said({"type": "input_image", "detail": "low"})]),
    ("parts-by-role", "[0].content[0]", [said({"type": "output_text", "text": "x", "annotations": []})]),
    ("parts-by-role", "[1].content[0]", [HI, {"role": "assistant", "content": [input_text("x")]}]),
    ("parts-by-role", "[2].output[0]", [HI, function("a"), output("a", [{"type": "refusal", "refusal": "x"}])]),
    ("call-has-output", "[1]", [HI, function("a")]),
    ("call-has-output", "[1]", [HI, function("a"), HI]),
    ("output-follows-call", "[0]", [output("a"), function("a"), output("a")]),
    ("output-fits-call", "[2]", [HI, custom("a"), output("a")]),
    ("one-output", "[3]", [HI, function("a"), output("a"), output("a")]),
    ("unique-ids", "[3]", [HI, *[function("a"), output("a")] * 2]),
    ("output-has-id", "[1]", [HI, {"type": "function_call_output", "id": "fco_1", "output": "x"}]),
    ("call-id", "[1]", [HI, function("")]),
    ("call-id", "[1]", [HI, function("x" * 65)]),
    ("tool-name", "[1]", [HI, function("a", "no spaces"), output("a")]),
    ("arguments", "[1]", [HI, function("a", "read", {"x": 1}), output("a")]),
    ("output", "[2]", [HI, function("a"), output("a", None)]),
    ("output", "[2]", [HI, COMPUTER, {**SCREEN, "output": None}]),
    ("reasoning-is-followed", "[1]", [HI, reasoned()]),
    ("reasoning-is-followed", "[1]", [HI, reasoned(), HI]),
    ("reasoning-is-followed", "[3]", [HI, function("a"), output("a"), reasoned(), HI]),
    ("reasoning", "[1]", [HI, {"type": "reasoning", "id": "rs_1"}, OK]),
    ("model", "model", {"input": [HI]}),
    ("instructions", "instructions", {"model": "m", "instructions": [HI], "input": [HI]}),
    ("tool", "tools[0]", {"model": "m", "input": [HI], "tools": [{"name": "read"}]}),
    ("tool-name", "tools[0]", {"model": "m", "input": [HI], "tools": [{"type": "function", "function": FLAT}]}),
    ("tool-schema", "tools[0]", {"model": "m", "input": [HI], "tools": [{**FLAT, "parameters": {"type": "string"}}]}),
    ("body", "", 7),
]


@pytest.mark.parametrize(("rule", "where", "request_"), RULES)
def test_broken_rule_is_named_with_its_place(rule, where, request_):
    """The first problem is the rule that was broken, at its place, with a remedy."""
    problem = FORMAT.validate(request_)[0]
    assert (problem.rule, problem.where) == (f"responses.{rule}", where)
    assert problem.remedy


def test_id_used_twice_is_one_problem():
    """The outputs of both calls are no problem of their own."""
    assert len(FORMAT.validate([HI, *[function("a"), output("a")] * 2])) == 1


@pytest.mark.parametrize(
    "request_",
    [
        {"model": "m", "input": "hi"},
        {"prompt": {"id": "pmpt_1"}},
        {"model": "m", "previous_response_id": "resp_1", "input": [output("a")]},
        [{"type": "item_reference", "id": "fc_1"}, output("a")],
        [HI, function("a"), HI, output("a"), OK],
        [HI, function("a", **{"async": True}), OK],
        [HI, reasoned(1, encrypted_content=None), SEARCH, reasoned(2), written("x")],
        [HI, PATCH, {"type": "apply_patch_call_output", "call_id": "c0", "status": "completed"}],
        [HI, {"type": "hologram"}, said({"type": "input_smell"})],
        {"model": "m", "store": False, "input": [HI], "tools": [{**FLAT, "strict": False}, {"type": "web_search"}]},
    ],
)
def test_what_is_accepted_is_no_problem(request_):
    """Calls known from elsewhere, outputs that come later, unknown items and parts pass."""
    assert FORMAT.validate(request_) == []
