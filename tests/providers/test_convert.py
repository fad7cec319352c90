"""What another provider is told of a block it cannot take."""

from __future__ import annotations

import msgspec
import pytest

from windowsill import providers
from windowsill.providers.convert import words

pytestmark = pytest.mark.unit

TOLD = [
    ({"type": "refusal", "refusal": "I will not"}, "I will not"),
    ({"type": "audio", "id": "a", "data": "AA==", "transcript": "hello"}, "hello"),
    (
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "cats"}},
        '(server_tool_use web_search {"query":"cats"})',
    ),
    (
        {
            "type": "web_search_tool_result",
            "tool_use_id": "s",
            "content": [
                {"type": "web_search_result", "title": "Cats", "url": "https://c.at", "encrypted_content": "b3BhcXVl"}
            ],
        },
        "(web_search_tool_result)\nCats\nhttps://c.at",
    ),
    (
        {
            "type": "web_fetch_tool_result",
            "tool_use_id": "s",
            "content": {
                "type": "web_fetch_result",
                "url": "https://c.at",
                "content": {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "purr"}},
            },
        },
        "(web_fetch_tool_result)\nhttps://c.at\npurr",
    ),
    (
        {
            "type": "bash_code_execution_tool_result",
            "tool_use_id": "s",
            "content": {"type": "bash_code_execution_result", "stdout": "out", "stderr": "err", "return_code": 0},
        },
        "(bash_code_execution_tool_result)\nout\nerr",
    ),
    (
        {"type": "mcp_tool_use", "id": "m", "server_name": "git", "name": "log", "input": {"n": 1}},
        '(mcp_tool_use git log {"n":1})',
    ),
    (
        {"type": "mcp_tool_result", "tool_use_id": "m", "content": [{"type": "text", "text": "c1"}]},
        "(mcp_tool_result)\nc1",
    ),
    ({"type": "compaction", "content": "so far"}, "(compaction)\nso far"),
    ({"type": "container_upload", "file_id": "file_1"}, "(container_upload)\nfile_1"),
    ({"type": "tool_reference", "tool_name": "grep"}, "(tool_reference grep)"),
    (
        {
            "type": "search_result",
            "source": "https://c.at",
            "title": "Cats",
            "content": [{"type": "text", "text": "purr"}],
        },
        "(search_result)\nhttps://c.at\nCats\npurr",
    ),
    (
        {"type": "code_interpreter_call", "id": "c", "code": "print(1)", "outputs": [{"type": "logs", "logs": "1"}]},
        "(code_interpreter_call print(1))\n1",
    ),
    (
        {"type": "mcp_call", "id": "m", "server_label": "git", "name": "log", "arguments": "{}", "output": "c1"},
        "(mcp_call git log {})\nc1",
    ),
    (
        {"type": "image_generation_call", "id": "i", "result": "AAAA", "revised_prompt": "a cat"},
        "(image_generation_call a cat)",
    ),
    (
        {"type": "web_search_call", "id": "w", "action": {"type": "open_page", "url": "https://c.at"}},
        '(web_search_call {"type":"open_page","url":"https://c.at"})',
    ),
    ({"type": "compaction", "encrypted_content": "b3BhcXVl"}, ""),
    ({"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}, ""),
]


@pytest.mark.parametrize(("block", "expected"), TOLD, ids=[str(block["type"]) for block, _ in TOLD])
def test_words_of_a_block(block, expected):
    """What was asked, found and said is told; what is encrypted or a picture is not."""
    assert words(block["type"], msgspec.json.encode(block)) == expected


@pytest.mark.parametrize("raw", [b"[", b"7", b"[1]", b'""', b"{}"])
def test_what_says_nothing_has_no_words(raw):
    """Neither broken nor empty JSON is an error."""
    assert words("hologram", raw) == ""


@pytest.mark.parametrize("target", [name for name in providers.names() if name != "anthropic"])
def test_search_of_a_provider_crosses_in_one_message(target):
    """What the provider searched by itself is told in order, as words of the assistant and not as a call."""
    searched = [TOLD[2][0], TOLD[3][0], {"type": "text", "text": "Cats purr."}]
    message = {"role": "assistant", "content": searched}
    request = providers.read_request([{"role": "user", "content": "cats?"}, message], format="anthropic")
    assert request.messages[1].calls == ()
    (told,) = [chunk.decode() for chunk in providers.get(target).render_message(request.messages[1])]
    places = [told.index(each) for each in ("server_tool_use web_search", "https://c.at", "Cats purr.")]
    assert places == sorted(places)


@pytest.mark.parametrize("target", [name for name in providers.names() if name != "openai"])
def test_refusal_crosses_in_its_own_words(target):
    """Beside the content or a part of it, a refusal is told as it was said."""
    beside = {"role": "assistant", "content": None, "refusal": "I will not"}
    inside = {"role": "assistant", "content": [{"type": "refusal", "refusal": "I will not"}]}
    for message in (beside, inside):
        read = providers.get("openai").read_message(msgspec.json.encode(message), "")
        told = b"".join(providers.get(target).render_message(read)).decode()
        assert "I will not" in told
        assert target == "deepseek" or "refusal" not in told
