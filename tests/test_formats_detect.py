"""Which format it is, told from the content."""

from __future__ import annotations

import msgspec
import pytest

from conversations import call, result, text_block, tool, use
from windowsill import formats
from windowsill.errors import FormatError, NotFoundError

pytestmark = pytest.mark.unit

PLAIN = {"role": "user", "content": "hi"}
SCHEMA = {"type": "object"}


@pytest.mark.parametrize(
    ("value", "format"),
    [
        ([PLAIN], "openai"),
        ([PLAIN, {"role": "assistant", "content": [use("c0")]}], "anthropic"),
        ([PLAIN, {"role": "user", "content": [result("c0")]}], "anthropic"),
        ([PLAIN, {"role": "assistant", "content": None, "tool_calls": [call("c0")]}], "openai"),
        ([PLAIN, tool("c0")], "openai"),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}], "openai"),
        ({"messages": [PLAIN], "system": "be brief"}, "anthropic"),
        ({"messages": [PLAIN], "model": "claude-sonnet-5", "max_tokens": 1}, "anthropic"),
        ({"messages": [PLAIN], "model": "gpt-5"}, "openai"),
        ({"messages": [PLAIN], "tools": [{"name": "t", "input_schema": SCHEMA}]}, "anthropic"),
        ({"messages": [PLAIN], "tools": [{"type": "function", "function": {"name": "t"}}]}, "openai"),
        ({"messages": [PLAIN], "max_completion_tokens": 1}, "openai"),
        ({"messages": [PLAIN], "format": "anthropic"}, "anthropic"),
        ({"type": "message", "role": "assistant", "content": [text_block("hi")]}, "anthropic"),
        ({"choices": []}, "openai"),
        (tool("c0"), "openai"),
        (PLAIN, "openai"),
    ],
)
def test_format_is_told(value, format):
    """Decoded or as bytes, the same answer."""
    assert formats.detect(value) == format
    if isinstance(value, list) or "messages" in value:
        assert formats.read_request(msgspec.json.encode(value)).format == format


@pytest.mark.parametrize("value", [7, "hi", None, {"a": 1}, [1]])
def test_what_cannot_be_told_is_refused(value):
    """The error says how to name the format or what to pass."""
    with pytest.raises(FormatError) as raised:
        formats.detect(value)
    assert "pass " in raised.value.remedy


def test_formats_are_found_by_name_and_alias():
    """An unknown name is answered with the known ones."""
    assert formats.get("chat") is formats.get("openai-chat") is formats.get("openai")
    with pytest.raises(NotFoundError, match="anthropic, gemini, openai, responses"):
        formats.get("smoke-signals")
