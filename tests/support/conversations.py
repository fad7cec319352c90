"""Conversations for tests: native messages of both providers, sound and broken in every way that was seen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from hypothesis import strategies as st

from windowsill.messages import Block

PNG = "iVBORw0KGgo="

words = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "Zs")), min_size=1, max_size=12)
spoken = words.filter(lambda text: bool(text.strip()))
any_text = st.one_of(spoken, st.sampled_from(["", " ", "\n", "\x00"]))
ids = st.sampled_from(["c0", "c1", "c2", "c3"])
names = st.sampled_from(["read", "write_file", "Bash"])


def bare(blocks: Iterable[Block]) -> list[Block]:
    """Return blocks without the bytes that they were read from."""
    return [msgspec.structs.replace(block, raw=None) for block in blocks]


def text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def use(id: str, name: str = "read") -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": {"path": "a.py"}}


def result(id: str, content: Any = "done", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": content, **more}


def thinking(text: str = "hm", **more: Any) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": "sig", **more}


def call(id: str, name: str = "read", arguments: str = '{"path": "a.py"}') -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def tool(id: str, content: Any = "done") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": content}


image = st.just({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}})
document = st.just({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "page"}})
unknown = st.just({"type": "hologram", "depth": 3, "data": {"x": 1}})
result_content = st.one_of(any_text, st.lists(st.one_of(st.builds(text_block, any_text), image), max_size=2), st.none())
results = st.builds(result, ids, result_content, is_error=st.booleans())
reasoning = st.one_of(
    st.builds(thinking, spoken),
    st.just({"type": "thinking", "thinking": "unsigned"}),
    st.just({"type": "redacted_thinking", "data": "opaque"}),
)
anthropic_block = st.one_of(
    st.builds(text_block, any_text), st.builds(use, ids, names), results, image, document, unknown, reasoning
)
anthropic_user = st.lists(st.one_of(st.builds(text_block, any_text), results, results, image, unknown), max_size=4)
anthropic_assistant = st.lists(
    st.one_of(
        st.builds(text_block, any_text), st.builds(use, ids, names), st.builds(use, ids, names), reasoning, unknown
    ),
    max_size=4,
)


def _said(role: str, content: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return content.map(lambda value: {"role": role, "content": value})


anthropic_message = st.one_of(
    _said("user", anthropic_user),
    _said("assistant", anthropic_assistant),
    _said("user", any_text),
    _said("assistant", any_text),
    _said("user", st.lists(anthropic_block, max_size=3)),
    _said("assistant", st.lists(anthropic_block, max_size=3)),
    _said("system", spoken),
)
broken_anthropic = st.lists(anthropic_message, min_size=1, max_size=10)
"""Message lists of Anthropic's format: orphans, late and double results, empty content, wrong order, anything."""

openai_part = st.one_of(
    st.builds(text_block, any_text),
    st.just({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "low"}}),
    st.just({"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}),
    st.just({"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}),
    st.just({"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AA=="}}),
)
calls = st.lists(
    st.builds(call, ids, names, st.sampled_from(['{"path": "a.py"}', "", "not json", "[1]"])), min_size=1, max_size=3
)


@st.composite
def _assistant(draw: st.DrawFn) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": draw(st.one_of(st.none(), any_text))}
    if draw(st.booleans()):
        message["tool_calls"] = draw(calls)
    if draw(st.integers(0, 5)) == 0:
        message |= draw(st.sampled_from([{"reasoning_content": "hm"}, {"refusal": "no"}, {"name": "bot"}, {"x": [1]}]))
    return message


openai_message = st.one_of(
    _said("user", any_text),
    _said("user", st.lists(openai_part, max_size=3)),
    _assistant(),
    _assistant(),
    st.builds(tool, ids, st.one_of(any_text, st.lists(st.builds(text_block, any_text), max_size=2))),
    st.builds(tool, ids),
    _said("system", any_text),
    _said("developer", spoken),
)
broken_openai = st.lists(openai_message, min_size=1, max_size=10)
"""Message lists of OpenAI's format, broken in the same ways."""


@st.composite
def sound_anthropic(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A conversation Anthropic accepts: task, then turns of parallel calls with their results, then a reply."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": draw(spoken)}]
    for turn in range(draw(st.integers(0, 4))):
        batch = [f"t{turn}_{number}" for number in range(draw(st.integers(1, 3)))]
        before = draw(st.lists(st.one_of(st.builds(thinking, spoken), st.builds(text_block, spoken)), max_size=2))
        messages.append({"role": "assistant", "content": [*before, *(use(id) for id in batch)]})
        after = draw(st.lists(st.one_of(st.builds(text_block, spoken), image, document, unknown), max_size=2))
        messages.append({"role": "user", "content": [*(result(id, draw(spoken)) for id in batch), *after]})
    last = spoken.map(str.rstrip)  # Anthropic refuses a last answer that ends in white space
    messages.append({"role": "assistant", "content": draw(st.one_of(last, last.map(lambda text: [text_block(text)])))})
    return messages


@st.composite
def sound_openai(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A conversation OpenAI accepts."""
    messages: list[dict[str, Any]] = draw(st.lists(_said("system", spoken), max_size=1))
    messages.append({"role": "user", "content": draw(st.one_of(spoken, st.lists(openai_part, min_size=1, max_size=3)))})
    for turn in range(draw(st.integers(0, 4))):
        batch = [f"t{turn}_{number}" for number in range(draw(st.integers(1, 3)))]
        content = draw(st.one_of(st.none(), st.just(""), spoken))
        messages.append({"role": "assistant", "content": content, "tool_calls": [call(id) for id in batch]})
        messages += [tool(id, draw(any_text)) for id in batch]
    messages.append({"role": "assistant", "content": draw(spoken)})
    return messages
