"""Tool definitions a session is given: read one by one, and sent as they came."""

from __future__ import annotations

import msgspec
import pytest

from support.sessions import opened
from windowsill import providers
from windowsill.compose.payload import read_parts

pytestmark = pytest.mark.unit

SCHEMA = {"type": "OBJECT", "properties": {"path": {"type": "STRING", "description": "of the file to read"}}}
TWO = {"functionDeclarations": [{"name": "read", "parameters": SCHEMA}, {"name": "write", "parameters": SCHEMA}]}
ENTRIES = [{"googleSearch": {}}, TWO, {"functionDeclarations": [{"name": "run"}], "codeExecution": {}}]


def composed(format, **given):
    session = opened(budget=5_000, format=format)
    session.add({"role": "user", "parts": [{"text": "hi"}]})
    return session.compose_sync(**given)


def test_entries_of_gemini_are_read_one_by_one():
    """Each declaration is a tool of its own, with its schema."""
    tools = providers.read_tools([TWO])
    assert [tool.name for tool in tools] == ["read", "write"]
    assert tools[0].schema["properties"]["path"]["type"] == "string"


def test_entries_of_gemini_are_sent_as_they_came():
    """Several entries, tools of Google's beside declarations included."""
    assert composed("gemini", tools=ENTRIES).to()["tools"] == ENTRIES
    assert composed("gemini", tools=[TWO]).to()["tools"] == [TWO]


@pytest.mark.parametrize("target", ["anthropic", "openai", "responses"])
def test_entries_of_gemini_cross_one_by_one(target):
    """Another provider gets each function by itself."""
    listed = composed("gemini", tools=[TWO]).to(target)["tools"]
    assert [providers.read_tool(tool).name for tool in listed] == ["read", "write"]


def test_entry_weighs_what_its_declarations_weigh():
    """Two functions in one entry are counted as two functions."""
    together = composed("gemini", tools=[TWO])
    alone = composed("gemini", tools=TWO["functionDeclarations"])
    none = composed("gemini")
    assert together.tokens == alone.tokens > none.tokens + 20


def test_tools_of_another_provider_leave_no_layout():
    """Only entries of Gemini's own are sent as they came."""
    scale = opened(format="gemini").composer.context.scale
    own = {"name": "read", "input_schema": {"type": "object"}}
    parts = read_parts(None, [own], {"labels": {"a": "b"}}, providers.get("gemini"), scale)
    assert {name: msgspec.json.decode(value) for name, value in parts.rest.items()} == {"labels": {"a": "b"}}
