"""What becomes of a call."""

from __future__ import annotations

import pytest

from support.offered_tools import ALL, TEXT, projected, state, tool
from windowsill.errors import InputError
from windowsill.messages import Tool, ToolUse

pytestmark = pytest.mark.unit

NUMBER = {"type": "integer", "minimum": 1}
OPTIONS = {"type": "object", "properties": {"mode": {"enum": ["a", "b"]}}, "additionalProperties": False}
LINES = {"type": "array", "items": {"type": "object", "properties": {"at": NUMBER}, "required": ["at"]}}
READ = tool("read", required=["path"], path=TEXT, limit=NUMBER, options=OPTIONS, lines=LINES, kind={"const": "x"})


def refused(arguments, one=READ):
    return projected([one]).allows(one.name, arguments)


def test_a_call_that_fits_is_allowed():
    """The schema is fulfilled."""
    assert refused({"path": "a", "limit": 3, "options": {"mode": "b"}, "lines": [{"at": 1}]}) is None


@pytest.mark.parametrize(
    ("arguments", "parameter", "said"),
    [
        ({}, "path", "the parameter 'path' is missing; give path"),
        ({"path": 3}, "path", "the parameter 'path' is 3, which is not of type string; give a value of type string"),
        ({"path": "a", "pth": 1}, "pth", "the call takes no pth; it takes path, limit, options, lines, kind"),
        ({"path": "a", "limit": 0}, "limit", "the parameter 'limit': 0 is less than the minimum of 1"),
        ({"path": "a", "options": {"mode": "c"}}, "options.mode", "'options.mode'; give one of \"a\", \"b\""),
        ({"path": "a", "options": {"x": 1}}, "options.x", "the parameter 'options' takes no x; it takes mode"),
        ({"path": "a", "lines": [{"at": 1}, {}]}, "lines[1].at", "'at' is missing in 'lines[1]'; give at"),
        ({"path": "a", "kind": "y"}, "kind", '"y" is not allowed for the parameter \'kind\'; give "x"'),
    ],
)  # fmt: skip
def test_a_call_that_breaks_the_schema_is_refused(arguments, parameter, said):
    """The refusal names the parameter, what is wrong with it, and what to write."""
    refusal = refused(arguments)
    assert (refusal.rule, refusal.parameter) == ("schema", parameter)
    assert said in str(refusal)


@pytest.mark.parametrize("arguments", [None, [], "text", ToolUse(id="1", name="read", arguments="{broken").input])
def test_arguments_that_are_no_object_are_refused(arguments):
    """Also as `ToolUse.input` hands on what was no JSON."""
    assert refused(arguments).why == "its arguments are not a JSON object"


def test_a_free_form_tool_takes_text():
    """A tool without parameters is not held to any."""
    assert refused({"_text": "anything"}, Tool(name="read_all")) is None


def test_a_parameter_may_be_called_like_what_is_no_json():
    """Then it is a parameter like any other, and may be left out."""
    assert refused({}, tool("read_all", _text=TEXT)) is None
    assert refused({"_text": "a"}, tool("read_all", _text=TEXT)) is None


def test_a_value_that_is_quoted_is_short():
    """The model knows what it wrote."""
    assert len(str(refused({"path": "a", "limit": "x" * 5_000}))) < 250


def test_a_broken_schema_is_told():
    """A call that cannot be checked is not run."""
    refusal = refused({"a": 1}, Tool(name="read_x", schema={"type": "object", "properties": {"a": {"type": 7}}}))
    assert "cannot be checked" in refusal.why


def test_nothing_is_fetched_for_a_schema():
    """What refers to another place cannot be checked."""
    one = Tool(name="read_x", schema={"properties": {"a": {"$ref": "http://127.0.0.1:9/schema.json"}}})
    assert "cannot be checked" in refused({"a": 1}, one).why


@pytest.mark.parametrize("mode", ["remove", "mask"])
@pytest.mark.parametrize(
    ("name", "rule", "said"),
    [
        (
            "writeFile",
            "phase",
            "tools of the category write are for executing, and the task is planning; go on with the",
        ),
        ("nothing", "unknown", "there is no such tool; the tools are search, readFile"),
    ],
)
def test_a_tool_that_is_not_shown_cannot_be_called(mode, name, rule, said):
    """Removed or masked, the refusal names the rule."""
    refusal = projected(at=state("planning"), mode=mode).allows(name, {})
    assert refusal.rule == rule
    assert said in str(refusal)
    assert "\n" not in str(refusal)


def test_a_missing_permission_is_named():
    """So that the model can ask for it."""
    assert str(projected(at=state("executing")).allows("deploy", {})) == (
        '"deploy" was refused (permission): it needs the permission deploy, which this task does not have; '
        "do without it, or ask the user to grant the permission"
    )


def test_a_name_with_a_line_break_stays_on_the_line():
    """Models write what they like."""
    assert "\n" not in str(projected(ALL).allows("a\nb", {}))


def test_arguments_of_an_unknown_tool_are_an_error():
    """Who runs calls asks first."""
    with pytest.raises(InputError, match="ask `allows`"):
        projected(ALL).arguments("nothing", {})


def test_arguments_without_rules_are_as_given():
    """And a copy."""
    given = {"path": "a"}
    assert projected(ALL).arguments("readFile", given) == given
    assert projected(ALL).arguments("readFile", given) is not given
