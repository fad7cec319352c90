"""Hostile and careless histories against the tool output cache: nothing is lost, nothing of others is touched."""

import re

import pytest

from support.conversations import PNG, result, text_block, use
from support.sessions import TASK, opened, problems
from support.tool_outputs import LONG, sent, working
from windowsill import Session
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.unit

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}


@pytest.mark.parametrize("content", [[IMAGE, IMAGE, text_block(LONG)], [text_block("a"), IMAGE, text_block(LONG)]])
def test_reading_on_begins_where_the_view_ends(content):
    """Pictures before a text do not shift the line that the view tells to read on at."""
    session = working(content, strategy="outputs:view=start")
    (text,) = sent(session)
    *_, last, note = text.splitlines()
    offset = int(re.search(r"offset=(\d+)", note)[1])
    assert session.tools.tool_output_cache("o3", offset=offset - 1, limit=1).splitlines()[0].endswith(f"\t{last}")


def test_limits_hold_in_a_window_that_an_output_would_fill():
    """What had to be cut before the strategy was asked is cut to its limits, and says how to read on."""
    session = working(LONG, strategy="outputs:bytes=1024,line=200", window=12_000)
    (text,) = sent(session)
    assert len(text) <= 1_024
    assert 'tool_output_cache(ref_id="o3"' in text
    assert sent(session) == [text]


def test_words_that_look_like_refs_are_left_alone():
    """Only what the cache itself wrote about an output is taken back where the tool is not offered."""
    said = (
        'Look at ref=o3; ref=o3] and tool_output_cache(ref_id="o3", offset=1) reads on\n[lines 1-3 as in o3 lines 1-3]'
    )
    session = working(said, LONG)
    session.add({"role": "assistant", "content": said})
    session.add({"role": "user", "content": said})
    payload = session.compose_sync()
    whole = [block.get("text", block.get("content")) for m in payload.messages[2:] for block in _blocks(m)]
    assert whole.count(said) == 3


def _blocks(message):
    content = message["content"]
    return [{"text": content}] if isinstance(content, str) else content


@pytest.mark.parametrize(
    ("model", "format", "messages"),
    [
        (
            "gpt-4o",
            "openai",
            [
                {"role": "user", "content": "hi"},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}}],
                },
                {"role": "tool", "tool_call_id": "a", "content": [text_block(LONG), text_block("end")]},
            ],
        ),
        (
            "gpt-5",
            "responses",
            [
                {"role": "user", "content": "hi"},
                {"type": "function_call", "call_id": "a", "name": "read", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "a", "output": LONG},
            ],
        ),
        (
            "gemini-2.5-pro",
            "gemini",
            [
                {"role": "user", "parts": [{"text": "hi"}]},
                {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {}}}]},
                {
                    "role": "user",
                    "parts": [{"functionResponse": {"name": "read", "response": {"rows": LONG.split("\n")}}}],
                },
            ],
        ),
    ],
)
def test_every_format_shows_the_ref_of_what_it_cuts(model, format, messages):
    """Chat, Responses and Gemini: the request is valid, small, and its ref reads the whole."""
    session = Session.open("s", model=model, store=MemoryStore(), strategy="outputs", format=format)
    for message in messages:
        session.add(message)
    payload = session.compose_sync(tools=session.tools.tools)
    body = payload.body().decode()
    assert problems(payload, format) == []
    assert len(body) < 70_000
    assert re.search(r'tool_output_cache\(ref_id=\\?"o3\\?"', body)
    assert "line 4000 of the listing" in session.tools.tool_output_cache_grep("o3", "line 4000 of the listing")


def test_a_request_is_the_same_after_reopening():
    """Cut and trimmed the same way by whoever opens the session next."""
    store = MemoryStore()
    settings = {"strategy": "outputs:budget=3000,bytes=4000,keep=1,repeats=true", "budget": 40_000}
    for turn in range(8):
        session = opened(store, **settings)
        session.add({"role": "user", "content": TASK})
        session.add({"role": "assistant", "content": [use(f"t{turn}")]})
        session.add({"role": "user", "content": [result(f"t{turn}", LONG[: 2_000 * turn])]})
        first = session.compose_sync(tools=session.tools.tools).messages
        again = opened(store, **settings).compose_sync(tools=session.tools.tools).messages
        assert _unmarked(again) == _unmarked(first)


def _unmarked(value):
    """Without the breakpoints, which follow from the request before."""
    if isinstance(value, dict):
        return {key: _unmarked(inner) for key, inner in value.items() if key != "cache_control"}
    return [_unmarked(inner) for inner in value] if isinstance(value, list) else value


def test_a_pinned_output_can_be_shown_whole_again():
    """Pinned and unfolded, it is not cut again."""
    session = working(LONG)
    assert sent(session) != [LONG]
    session.pin("m3")
    session.unfold(session.folds[-1].id)
    assert sent(session) == [LONG]
