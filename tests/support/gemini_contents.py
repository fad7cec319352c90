"""Conversations in Gemini's format for tests: the parts, and whole lists of contents, sound and broken."""

from __future__ import annotations

from typing import Any

import msgspec
from google.genai import types
from hypothesis import strategies as st

from support.conversations import PNG, any_text, spoken
from windowsill.messages import Message
from windowsill.providers.gemini.messages import Gemini

SIGNATURE = "c2lnbmF0dXJl"
ARGUMENTS = '{"path":"a.py"}'
FORMAT = Gemini()


def read(content: dict[str, Any]) -> Message:
    """Read one content."""
    return FORMAT.read_message(msgspec.json.encode(content), "contents[0]")


def render(message: Message, format: Gemini = FORMAT) -> dict[str, Any]:
    """Render a message as one content that the official types take."""
    (rendered,) = format.render_message(message)
    content: dict[str, Any] = msgspec.json.decode(rendered)
    types.Content.model_validate(content)
    return content


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"text": words, **more}


def user(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "parts": list(parts)}


def model(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": "model", "parts": list(parts)}


def call(name: str = "read", id: str | None = None, signature: str | None = None) -> dict[str, Any]:
    inner = {"name": name, "args": {"path": "a.py"}}
    part: dict[str, Any] = {"functionCall": inner if id is None else {"id": id, **inner}}
    return part if signature is None else {**part, "thoughtSignature": signature}


def answer(name: str = "read", id: str | None = None, **response: Any) -> dict[str, Any]:
    inner = {"name": name, "response": response or {"output": "done"}}
    return {"functionResponse": inner if id is None else {"id": id, **inner}}


HI = user(text("hi"))
OK = model(text("ok"))
PICTURE = {"inlineData": {"mimeType": "image/png", "data": PNG}}
HOLOGRAM = {"hologram": {"depth": 3}, "thoughtSignature": SIGNATURE}

names = st.sampled_from(["read", "write_file", "Bash"])
ids = st.sampled_from([None, None, "c0", "c1"])
responses = st.one_of(
    st.builds(answer, names, ids),
    st.builds(lambda name, own, words: answer(name, own, output=words), names, ids, any_text),
    st.builds(lambda name, words: answer(name, error=words), names, any_text),
    st.builds(lambda name: answer(name, rows=[1, {"a": None}]), names),
)
words = st.builds(text, any_text)
media = st.sampled_from(
    [PICTURE, {"fileData": {"mimeType": "application/pdf", "fileUri": "https://example.com/a.pdf"}}]
)
thoughts = st.one_of(
    st.builds(lambda words: text(words, thought=True), any_text),
    st.builds(lambda words: text(words, thought=True, thoughtSignature=SIGNATURE), spoken),
    st.just(text("", thoughtSignature=SIGNATURE)),
)
empty = st.sampled_from([{}, {"text": None}])


def _content(role: str, part: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.lists(part, max_size=4).map(lambda parts: {"role": role, "parts": parts})


@st.composite
def broken_gemini(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Lists of contents broken in every way: orphans, late and double responses, empty parts, wrong order."""
    signature = draw(st.sampled_from([None, SIGNATURE]))
    calls = st.builds(call, names, ids, st.just(signature))
    said = st.one_of(words, calls, calls, thoughts, empty, st.just(HOLOGRAM), st.just(PICTURE))
    heard = st.one_of(words, responses, responses, media, empty, st.just(HOLOGRAM))
    content = st.one_of(
        _content("user", heard),
        _content("model", said),
        _content("function", responses),
        _content("user", st.one_of(said, heard)),
        _content("model", st.one_of(said, heard)),
        st.builds(lambda words: {"parts": [text(words)]}, spoken),
        st.just({"role": "model"}),
    )
    return draw(st.lists(content, min_size=1, max_size=10))


@st.composite
def sound_gemini(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A conversation Gemini accepts: task, then turns of parallel calls with their responses, then a reply."""
    contents = [user(text(draw(spoken)), *draw(st.lists(media, max_size=1)))]
    signature = draw(st.sampled_from([None, SIGNATURE]))
    with_ids = draw(st.booleans())
    for turn in range(draw(st.integers(0, 4))):
        batch = [(draw(names), f"t{turn}_{number}" if with_ids else None) for number in range(draw(st.integers(1, 3)))]
        before = draw(
            st.lists(st.one_of(st.builds(text, spoken), thoughts.filter(lambda part: part["text"])), max_size=2)
        )
        contents.append(model(*before, *(call(name, id, signature) for name, id in batch)))
        contents.append(user(*(answer(name, id, output=draw(spoken)) for name, id in batch)))
    contents.append(model(text(draw(spoken))))
    return contents
