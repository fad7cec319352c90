"""Which format it is, told from the content."""

from __future__ import annotations

import msgspec
import pytest

from support.conversations import call, result, text_block, tool, use
from windowsill import providers
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
        ({"messages": [PLAIN], "thinking": {"type": "enabled", "budget_tokens": 9}}, "anthropic"),
        ({"messages": [PLAIN], "model": "deepseek-v4-pro", "thinking": {"type": "enabled"}}, "deepseek"),
        ({"messages": [PLAIN, tool("c0")], "model": "moonshotai/kimi-k2.5"}, "deepseek"),
        ({"messages": [PLAIN], "model": "deepseek-chat"}, "openai"),
        ({"messages": [PLAIN], "model": "glm-4.7", "thinking": {"type": "enabled"}}, "openai"),
        ({"messages": [PLAIN, {"role": "assistant", "reasoning": "hm"}]}, "openai"),
        ([PLAIN, {"role": "assistant", "content": [{"type": "compaction", "content": "so far"}]}], "anthropic"),
        ({"choices": [], "model": "deepseek-reasoner"}, "deepseek"),
        ([PLAIN, {"role": "assistant", "content": "a", "reasoning_content": "hm"}], "deepseek"),
        ([{"role": "assistant", "content": "a", "reasoning_content": each} for each in ("hm", None)], "openai"),
        ({"messages": [{"role": "assistant", "reasoning_content": "hm"}], "model": "my-own"}, "openai"),
        ({"messages": [PLAIN], "format": "deepseek"}, "deepseek"),
        ([{"role": "assistant", "content": [{"type": "thinking", "thinking": [text_block("hm")]}]}], "openai"),
        ({"type": "message", "role": "assistant", "content": [text_block("hi")]}, "anthropic"),
        ({"choices": []}, "openai"),
        (tool("c0"), "openai"),
        (PLAIN, "openai"),
    ],
)
def test_format_is_told(value, format):
    """Decoded or as bytes, the same answer."""
    assert providers.detect(value) == format
    if isinstance(value, list) or "messages" in value:
        assert providers.read_request(msgspec.json.encode(value)).format == format


@pytest.mark.parametrize(
    ("value", "default", "format"),
    [
        (tool("c0"), "deepseek", "deepseek"),
        (PLAIN, "deepseek", "deepseek"),
        ({"choices": [], "model": "gpt-5"}, "deepseek", "deepseek"),
        ({"role": "assistant", "reasoning_content": "hm"}, "openai", "openai"),
        (tool("c0"), "anthropic", "openai"),
        ({"role": "user", "content": [result("c0")]}, "deepseek", "anthropic"),
    ],
)
def test_dialect_is_the_one_expected(value, default, format):
    """What any OpenAI-like server could have written is of the dialect that the caller speaks."""
    assert providers.detect(value, default) == format


@pytest.mark.parametrize("value", [7, "hi", None, {"a": 1}, [1]])
def test_what_cannot_be_told_is_refused(value):
    """The error says how to name the format or what to pass."""
    with pytest.raises(FormatError) as raised:
        providers.detect(value)
    assert "pass " in raised.value.remedy


def test_formats_are_found_by_name_and_alias():
    """An unknown name is answered with the known ones."""
    assert providers.get("chat") is providers.get("openai-chat") is providers.get("openai")
    with pytest.raises(NotFoundError, match="anthropic, deepseek, gemini, openai, responses"):
        providers.get("smoke-signals")
