"""Gemini's tools: entries that hold several declarations, and tools that only Google runs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st

from support.gemini_contents import HI
from windowsill import providers
from windowsill.messages import Tool
from windowsill.providers.gemini.messages import Gemini

pytestmark = pytest.mark.unit

FORMAT = Gemini()
dumps = msgspec.json.encode

declarations = st.builds(
    lambda name, more: {"name": name, **more},
    st.sampled_from(["read", "write_file", "Bash", "mcp__a"]),
    st.sampled_from([{}, {"description": "does", "parameters": {"type": "OBJECT"}}, {"behavior": "BLOCKING", "x": 1}]),
)
entries = st.builds(
    lambda key, declared, more: {**({key: declared} if declared is not None else {}), **more},
    st.sampled_from(["functionDeclarations", "function_declarations"]),
    st.one_of(st.none(), st.lists(declarations, max_size=3)),
    st.sampled_from([{}, {"googleSearch": {}}, {"codeExecution": {}}, {"telescope": {"zoom": [1, None]}}]),
).filter(bool)


def value(listed: list[Any], indent: int) -> bytes:
    return msgspec.json.format(dumps(listed), indent=indent)


def declared(listed: list[Any]) -> list[str]:
    names = ("functionDeclarations", "function_declarations")
    return [tool["name"] for entry in listed for name in names for tool in entry.get(name, ())]


def beside(listed: list[Any]) -> list[Any]:
    """The entries without their declarations."""
    kept = [{key: each for key, each in entry.items() if "eclarations" not in key} for entry in listed]
    return [entry for entry in kept if entry]


@given(st.lists(entries, max_size=4), st.sampled_from([-1, 0, 2]))
def test_body_goes_out_with_its_tools_as_they_came(listed, indent):
    """Read one by one, however they stood: the request that was not changed has the same bytes."""
    body = b'{"tools":' + value(listed, indent) + b',"newField":[1],"contents":[' + dumps(HI) + b"]}"
    request = providers.read_request(body, format="gemini")
    assert [tool.name for tool in request.tools] == declared(listed)
    assert providers.render_request(request) == body


@pytest.mark.parametrize("target", ["anthropic", "openai", "responses"])
@given(listed=st.lists(entries, max_size=4))
def test_each_declaration_crosses_as_one_definition(target, listed):
    """Other providers get a definition for each declaration, and none for what only Google runs."""
    request = providers.read_request({"contents": [HI], "tools": listed}, format="gemini")
    over = msgspec.json.decode(providers.render_request(request, format=target))
    assert [providers.read_tool(tool).name for tool in over.get("tools", [])] == declared(listed)
    given_by_hand = msgspec.structs.replace(request, tools=providers.read_tools(listed))
    assert msgspec.json.decode(providers.render_request(given_by_hand, format=target)) == over


@given(st.lists(entries, max_size=4))
def test_tools_given_by_hand_are_read_one_by_one(listed):
    """An entry gives a tool for each declaration and one for what else it holds; together they say the same."""
    tools = providers.read_tools(listed)
    assert [tool.name for tool in tools if providers.crosses(tool, "openai")] == declared(listed)
    rendered = [FORMAT.render_tool(tool) for tool in tools]
    body = msgspec.json.decode(FORMAT.render_body(messages=[], system=None, tools=rendered, model=None, rest={}))
    assert declared(body.get("tools", [])) == declared(listed)
    assert beside(body.get("tools", [])) == beside(listed)


def test_changed_tools_keep_what_only_google_runs():
    """A declaration left out or added is so in the request, and the search stays."""
    listed = [{"googleSearch": {}}, {"functionDeclarations": [{"name": "a"}, {"name": "b"}], "codeExecution": {}}]
    request = providers.read_request({"contents": [HI], "tools": listed}, format="gemini")
    fewer = msgspec.structs.replace(request, tools=(request.tools[1], Tool(name="c")))
    body = msgspec.json.decode(providers.render_request(fewer))
    added = {"name": "c", "parametersJsonSchema": {"type": "object"}}
    assert body["tools"] == [
        {"functionDeclarations": [{"name": "b"}, added]},
        {"googleSearch": {}},
        {"codeExecution": {}},
    ]
    for entry in body["tools"]:
        types.Tool.model_validate(entry)
    none = msgspec.structs.replace(request, tools=())
    assert msgspec.json.decode(providers.render_request(none))["tools"] == [{"googleSearch": {}}, {"codeExecution": {}}]


def test_objects_of_the_sdk_are_read_one_by_one():
    """Google's own classes are the same as what they stand for."""
    tool = types.Tool(
        function_declarations=[types.FunctionDeclaration(name="a"), types.FunctionDeclaration(name="b")],
        google_search=types.GoogleSearch(),
    )
    assert [each.name for each in providers.read_tools([tool])] == ["a", "b", "googleSearch"]


def test_layout_is_kept_only_where_it_says_more():
    """One entry of declarations goes out so by itself; bare declarations and other providers' tools have no layout."""
    one = {"functionDeclarations": [{"name": "a"}, {"name": "b"}]}
    assert providers.tool_layout([one], "gemini") is None
    assert bytes(providers.tool_layout([one, one], "gemini")) == dumps([one, one])
    assert providers.tool_layout([one, one], "openai") is None
    assert providers.tool_layout([one, {"name": "c", "parameters": {}}], "gemini") is None
    assert providers.tool_layout([one, {"name": "c", "input_schema": {}}], "gemini") is None


def test_what_only_google_runs_is_stated_once():
    """Given among the tools and in the layout of a request whose tools were changed, it stands there once."""
    listed = [{"googleSearch": {}}, {"functionDeclarations": [{"name": "a"}]}]
    search, _ = (FORMAT.render_tool(tool) for tool in providers.read_tools(listed))
    rest = {"tools": msgspec.Raw(dumps(listed))}
    body = FORMAT.render_body(messages=[], system=None, tools=[b'{"name":"b"}', search], model=None, rest=rest)
    assert msgspec.json.decode(body)["tools"] == [{"functionDeclarations": [{"name": "b"}]}, {"googleSearch": {}}]
