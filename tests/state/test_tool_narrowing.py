"""Rules that narrow a tool: what its definition becomes, and what its calls may say."""

from __future__ import annotations

import copy

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.offered_tools import COMMANDS, TEXT, letters, state, tool
from windowsill import providers
from windowsill.errors import InputError
from windowsill.messages import Tool
from windowsill.state.tools import Narrow, Projection

pytestmark = pytest.mark.unit

PRODUCTION = state(environment="prod")


def narrowed(one, *rules, at=PRODUCTION):
    projection = Projection([one], count=letters, rules=rules, budget=None)
    return projection.project(at)


def schema(found):
    return found.tools[0].schema


def execute(**command):
    return tool("execute", command={**TEXT, **command}, timeout={"type": "integer"}, shell={"type": "boolean"})


def test_an_allow_list_becomes_an_enum():
    """The description says so, and what no rule speaks of stays as it was."""
    found = narrowed(execute(description="Command"), Narrow(tool="execute", parameter="command", allow=COMMANDS))
    assert schema(found) == {
        "type": "object",
        "properties": {
            "command": {"type": "string", "description": "Command (prod: only the listed values)", "enum": [*COMMANDS]},
            "timeout": {"type": "integer"},
            "shell": {"type": "boolean"},
        },
        "additionalProperties": False,
        "required": ["command"],
    }


def test_a_value_off_the_list_is_refused():
    """The refusal names the parameter and what is allowed, on one line."""
    found = narrowed(execute(), Narrow(tool="execute", parameter="command", allow=("npm test", "make")))
    refusal = found.allows("execute", {"command": "rm -rf /\n"})
    assert (refusal.rule, refusal.parameter) == ("narrowed", "command")
    assert str(refusal) == (
        '"execute" was refused (narrowed): "rm -rf /\\n" is not allowed for the parameter \'command\' in prod; '
        'give one of "npm test", "make"'
    )
    assert found.allows("execute", {"command": "make"}) is None


def test_a_list_in_place_of_a_value_is_refused():
    """Whatever a lenient tool would make of it."""
    found = narrowed(tool("execute", command={}), Narrow(tool="execute", parameter="command", allow=("make",)))
    assert found.allows("execute", {"command": ["make"]}).rule == "narrowed"


def test_elsewhere_a_tool_is_as_it_was():
    """A rule holds in production unless it names other environments."""
    rule = Narrow(tool="execute", parameter="command", allow=COMMANDS)
    one = execute()
    assert narrowed(one, rule, at=state(environment="staging")).tools == (one,)
    everywhere = msgspec.structs.replace(rule, environments=("staging",))
    assert schema(narrowed(one, everywhere, at=state(environment="staging"))) != one.schema
    assert narrowed(one, everywhere).tools == (one,)


def test_definitions_are_never_changed_in_place():
    """The tool that was offered stays what it was, deep down."""
    mode = {**TEXT, "default": "a"}
    one = tool("edit", options={"type": "object", "properties": {"mode": mode, "force": {"type": "boolean"}}})
    before = copy.deepcopy(one)
    rule = Narrow(
        tool="edit", parameter="options.mode", allow=("a",), remove=("options.force",), environments=("prod", "dev")
    )
    assert schema(narrowed(one, rule)) != before.schema
    assert one == before


def test_an_enum_is_intersected():
    """Only values that both the tool and the rule take are left, in the rule's order."""
    one = execute(enum=["a", "b", "c"])
    found = narrowed(one, Narrow(tool="execute", parameter="command", allow=("c", "x", "b")))
    assert schema(found)["properties"]["command"]["enum"] == ["c", "b"]
    assert found.allows("execute", {"command": "x"}).remedy == 'give one of "c", "b"'


def test_two_rules_are_intersected():
    """Each takes away."""
    rules = [Narrow(tool="execute", parameter="command", allow=allow) for allow in (("a", "b"), ("b", "c"))]
    assert schema(narrowed(execute(), *rules))["properties"]["command"]["enum"] == ["b"]


def test_an_optional_parameter_with_a_list_must_be_given():
    """Left out, the tool would take a default that nobody checked; a stated default on the list is fine."""
    rule = Narrow(tool="execute", parameter="command", allow=("a", "b"))
    assert narrowed(execute(), rule).allows("execute", {}).parameter == "command"
    assert narrowed(execute(default="b"), rule).allows("execute", {}) is None
    assert "default" not in schema(narrowed(execute(default="rm"), rule))["properties"]["command"]
    assert narrowed(execute(default="rm"), rule).allows("execute", {}).parameter == "command"


def test_a_removed_parameter_is_neither_shown_nor_taken():
    """Not even by a tool that takes anything."""
    one = Tool(name="run", schema={"type": "object", "properties": {"a": TEXT, "b": TEXT}, "required": ["a", "b"]})
    found = narrowed(one, Narrow(tool="run", remove=("b",)))
    assert schema(found) == {"type": "object", "properties": {"a": TEXT}, "required": ["a"]}
    assert found.allows("run", {"a": "x"}) is None
    assert str(found.allows("run", {"a": "x", "b": "y"})) == (
        "\"run\" was refused (narrowed): the parameter 'b' is not available in prod; leave it out"
    )


def test_nothing_demands_what_was_removed():
    """Neither `required` nor a dependency."""
    one = Tool(
        name="run",
        schema={
            "properties": {"a": TEXT, "b": TEXT},
            "required": ["b"],
            "dependentRequired": {"a": ["b"], "b": ["a"]},
        },
    )
    found = narrowed(one, Narrow(tool="run", remove=("b",)))
    assert schema(found) == {"properties": {"a": TEXT}, "dependentRequired": {"a": []}}
    assert found.allows("run", {"a": "x"}) is None


def test_a_fixed_value_is_filled_in():
    """Left out it is put in, stated it is fine, and another one is refused."""
    one = tool("deploy", required=["dry_run"], dry_run={"type": "boolean", "default": False}, to=TEXT)
    found = narrowed(one, Narrow(tool="deploy", force={"dry_run": True}))
    assert schema(found)["properties"]["dry_run"] == {
        "type": "boolean",
        "const": True,
        "description": "(prod: always true)",
    }
    assert found.arguments("deploy", {"to": "x"}) == {"to": "x", "dry_run": True}
    assert found.allows("deploy", {"to": "x"}) is None
    assert found.allows("deploy", {"dry_run": True}) is None
    refusal = found.allows("deploy", {"dry_run": False})
    assert (refusal.rule, refusal.parameter, refusal.remedy) == ("narrowed", "dry_run", "give true or leave it out")


def test_a_fixed_value_stands_whatever_was_written():
    """Also for one who does not ask whether the call is allowed; the given arguments stay as they are."""
    one = tool("deploy", options={"type": "object", "properties": {"dry_run": {"type": "boolean"}}})
    found = narrowed(one, Narrow(tool="deploy", force={"options.dry_run": True}))
    given_arguments = {"options": {"dry_run": False, "x": 1}}
    assert found.arguments("deploy", given_arguments) == {"options": {"dry_run": True, "x": 1}}
    assert given_arguments == {"options": {"dry_run": False, "x": 1}}
    assert found.arguments("deploy", {}) == {"options": {"dry_run": True}}


def test_true_is_not_one():
    """JSON tells them apart, so a rule does."""
    one = tool("deploy", level={"type": ["integer", "boolean"]})
    assert narrowed(one, Narrow(tool="deploy", force={"level": 1})).allows("deploy", {"level": True}) is not None
    assert (
        narrowed(one, Narrow(tool="deploy", parameter="level", allow=(True,))).allows("deploy", {"level": 1})
        is not None
    )


ENTRY = {"type": "object", "properties": {"path": TEXT, "mode": TEXT}}
EDITS = tool("edit", edits={"type": "array", "items": ENTRY}, tags={"type": "array", "items": TEXT})


def test_entries_of_lists_are_narrowed():
    """Every entry of a list, and parameters inside entries."""
    rules = (
        Narrow(tool="edit", parameter="edits[].path", allow=("a.py",), force={"edits[].mode": "safe"}),
        Narrow(tool="edit", parameter="tags[]", allow=("x", "y")),
    )
    found = narrowed(EDITS, *rules)
    inner = schema(found)["properties"]["edits"]["items"]
    assert (inner["properties"]["path"]["enum"], inner["required"]) == (["a.py"], ["path"])
    assert schema(found)["properties"]["tags"]["items"]["enum"] == ["x", "y"]
    assert found.allows("edit", {"edits": [{"path": "a.py"}, {"path": "b.py"}]}).parameter == "edits[].path"
    assert found.allows("edit", {"tags": ["x", "z"]}).parameter == "tags[]"
    assert found.allows("edit", {"tags": "z"}).parameter == "tags[]"
    assert found.arguments("edit", {"edits": [{"path": "a.py"}]}) == {"edits": [{"path": "a.py", "mode": "safe"}]}
    assert found.arguments("edit", {}) == {}


def test_what_holds_an_allow_list_must_be_given_too():
    """Left out, it would take the parameter with it, and the tool what nobody checked; unless that has a default."""
    inner = {"type": "object", "properties": {"mode": TEXT, "size": {"type": "integer", "default": 1}}}
    one = Tool(
        name="run", schema={"type": "object", "properties": {"options": {"$ref": "#/$defs/O"}}, "$defs": {"O": inner}}
    )
    found = narrowed(one, Narrow(tool="run", parameter="options.mode", allow=("safe",)))
    assert found.allows("run", {}).parameter == "options"
    assert found.allows("run", {"options": {}}).parameter == "options.mode"
    assert found.allows("run", {"options": {"mode": "safe"}}) is None
    assert schema(found)["required"] == ["options"]
    assert narrowed(one, Narrow(tool="run", parameter="options.size", allow=(1, 2))).allows("run", {}) is None


def test_a_form_without_the_parameter_stays_a_form():
    """A tool that takes a path or an address may still be given the address."""
    forms = [{"properties": {"path": TEXT}, "required": ["path"]}, {"properties": {"url": TEXT}, "required": ["url"]}]
    one = Tool(name="get", schema={"type": "object", "properties": {"what": {"type": "object", "oneOf": forms}}})
    found = narrowed(one, Narrow(tool="get", parameter="what.path", allow=("a",)))
    assert found.allows("get", {"what": {"url": "u"}}) is None
    assert found.allows("get", {}) is None
    assert found.allows("get", {"what": {"path": "b"}}).parameter == "what.path"


def test_a_forced_value_is_put_in_where_null_was_given():
    """`null` says as little as nothing at all, and must not be a way around the rule."""
    options = {"anyOf": [{"type": "object", "properties": {"safe": {"type": "boolean"}}}, {"type": "null"}]}
    one = Tool(name="run", schema={"type": "object", "properties": {"options": options}})
    found = narrowed(one, Narrow(tool="run", force={"options.safe": True}))
    assert found.allows("run", {"options": None}) is None
    assert found.arguments("run", {"options": None}) == {"options": {"safe": True}}


def test_references_are_followed_and_left_to_others():
    """A definition that two parameters share is narrowed for one of them only."""
    place = {"$ref": "#/$defs/Place"}
    one = Tool(
        name="copy",
        schema={
            "type": "object",
            "properties": {"to": place, "from": place, "by": {"$ref": "#/$defs/By"}},
            "$defs": {
                "Place": {"type": "object", "properties": {"host": {"$ref": "#/$defs/Host"}}},
                "Host": TEXT,
                "By": {"anyOf": [place, {"type": "null"}]},
            },
        },
    )
    rules = [Narrow(tool="copy", parameter=name, allow=("a",)) for name in ("to.host", "by.host")]
    found = narrowed(one, *rules)
    assert found.allows("copy", {"to": {"host": "b"}}).parameter == "to.host"
    assert found.allows("copy", {"to": {"host": "a"}, "by": {"host": "b"}}).parameter == "by.host"
    assert found.allows("copy", {"to": {"host": "a"}, "from": {"host": "b"}, "by": None}) is None
    assert schema(found)["properties"]["by"]["anyOf"][0]["properties"]["host"]["enum"] == ["a"]
    assert schema(found)["$defs"] == one.schema["$defs"]


def test_a_name_with_a_dot_is_one_name():
    """Where the tool has such a parameter."""
    found = narrowed(tool("set", **{"a.b": TEXT}), Narrow(tool="set", parameter="a.b", allow=("x",)))
    assert found.allows("set", {"a.b": "y"}).parameter == "a.b"


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (
            {"parameter": "cmd", "allow": ("x",)},
            "'cmd', which 'execute' has not in prod; it has command, timeout, shell",
        ),
        ({"parameter": "command.x", "allow": ("x",)}, "'command.x', which 'execute' has not"),
        ({"remove": ("shel",)}, "'shel', which"),
        ({"remove": ("command[]",)}, "remove the list itself"),
        ({"force": {"shel": 1}}, "'shel', which"),
        ({"parameter": "timeout", "allow": ("x",)}, "'timeout' takes none of \"x\""),
        ({"force": {"timeout": "x"}}, "'timeout' takes none of \"x\""),
        ({"remove": ("command",), "parameter": "command", "allow": ("x",)}, "it has timeout, shell"),
        ({"parameter": "command"}, "give both"),
        ({"allow": ("x",)}, "give both"),
        ({"parameter": "command", "allow": ()}, "allows no value"),
        ({"parameter": "command", "allow": "make"}, "give a list"),
        ({}, "narrows nothing"),
        ({"remove": ("shell",), "environments": ("live",)}, "no environment 'live'; use dev, staging, prod"),
    ],
)
def test_a_rule_that_cannot_hold_is_told_at_once(rule, said):
    """When the projection is set up, not when production meets it."""
    with pytest.raises(InputError, match=said.replace("[", r"\[")):
        Projection([execute()], count=letters, rules=[Narrow(tool="execute", **rule)])


def test_a_schema_that_refers_to_itself_is_told():
    """Narrowing ends."""
    one = Tool(
        name="x",
        schema={"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}]}}},
    )
    with pytest.raises(InputError, match="refers to itself"):
        narrowed(one, Narrow(tool="x", parameter="a.b", allow=(1,)))


FIELDS = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "deep": {"type": "boolean"}},
    "required": ["path"],
}
CAPITALS = {"type": "OBJECT", "properties": {"path": {"type": "STRING"}, "deep": {"type": "BOOLEAN"}}}
WIRES = [
    {"name": "read", "description": "Reads", "input_schema": FIELDS, "cache_control": {"type": "ephemeral"}},
    {"type": "function", "function": {"name": "read", "description": "Reads", "parameters": FIELDS, "strict": False}},
    {"type": "function", "name": "read", "description": "Reads", "parameters": FIELDS, "strict": False},
    {"name": "read", "description": "Reads", "parametersJsonSchema": FIELDS, "behavior": "BLOCKING"},
    {"name": "read", "parameters": CAPITALS},
]


@pytest.mark.parametrize("wire", WIRES, ids=["anthropic", "openai", "responses", "gemini", "gemini-own"])
def test_a_provider_s_definition_keeps_its_other_fields(wire):
    """What is sent has the narrowed schema, in its place, and everything else as it came."""
    one = providers.read_tool(wire)
    found = narrowed(one, Narrow(tool="read", parameter="path", allow=("a",), remove=("deep",))).tools[0]
    assert providers.read_tool(found.raw) == found
    assert found.schema["properties"] == {
        "path": {"type": "string", "enum": ["a"], "description": "(prod: only the listed values)"}
    }
    sent, before = msgspec.json.decode(found.raw), copy.deepcopy(wire)
    assert len(_schemas(sent)) == 1
    assert _without_schema(sent) == _without_schema(before)


def _schemas(wire):
    return wire.get("function", wire).keys() & {"input_schema", "parameters", "parametersJsonSchema"}


def _without_schema(wire):
    for key in _schemas(wire):
        del wire.get("function", wire)[key]
    return wire


PARTS = st.sampled_from(["a", "b", "c"])


@given(
    properties=st.dictionaries(
        PARTS, st.sampled_from([TEXT, {}, {"enum": ["x", "y"]}, {"type": "string", "default": "z"}])
    ),
    required=st.lists(PARTS, unique=True),
    closed=st.booleans(),
    allow=st.lists(st.sampled_from(["x", "y", "z"]), unique=True),
    fixed=st.sampled_from(["x", "y"]),
    call=st.dictionaries(PARTS, st.sampled_from(["x", "y", "z", 1])),
)
def test_a_narrowed_schema_is_valid_and_only_narrows(properties, required, closed, allow, fixed, call):
    """Whatever passes it also passed the schema it came from, without what was removed."""
    given_schema = {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": not closed,
    }
    rules = [
        *([Narrow(tool="t", parameter="a", allow=("x", *allow))] if {"a"} <= properties.keys() else []),
        *([Narrow(tool="t", force={"b": fixed})] if {"b"} <= properties.keys() else []),
        *([Narrow(tool="t", remove=("c",))] if {"c"} <= properties.keys() else []),
    ]
    found = narrowed(Tool(name="t", schema=given_schema), *rules)
    jsonschema.Draft202012Validator.check_schema(schema(found))
    assert schema(found).get("additionalProperties") is (not closed)
    passes = found.allows("t", call) is None
    filled = found.arguments("t", call)
    free = {**given_schema, "required": [name for name in required if name != "c" or "c" not in properties]}
    assert not passes or jsonschema.Draft202012Validator(free).is_valid(filled)
    assert not passes or "a" not in properties or filled.get("a", "z") in {"x", *allow, "z"}
