from __future__ import annotations

import msgspec
import pytest

from support.secret_keys import drawn
from windowsill.messages import Document, Image, Message, Reasoning, Text, ToolResult, ToolUse, Unknown
from windowsill.secrets.documents import redact_for_export, redact_for_reading

pytestmark = pytest.mark.unit

TOKEN = "gh" + "p_" + drawn(3, 36)
SIGN = "[secret: github-token]"


@pytest.mark.parametrize(
    "block",
    [
        Text(text=f"use {TOKEN}", raw=f'{{"type":"text","text":"use {TOKEN}"}}'.encode()),
        Reasoning(text=f"it is {TOKEN}", signature="sig"),
        ToolUse(id="t1", name="bash", arguments=f'{{"command":"curl -H {TOKEN}"}}'),
        ToolResult(tool_use_id="t1", content=(Text(text=TOKEN), Unknown(type="x", raw=f'"{TOKEN}"'.encode()))),
        Image(url=f"https://example.org/?key={TOKEN}"),
        Document(text=f"# {TOKEN}", title=TOKEN, url=None),
        Unknown(type="new", raw=f'{{"deep":["{TOKEN}"]}}'.encode()),
    ],
)
@pytest.mark.parametrize("clean", [redact_for_reading, redact_for_export])
def test_no_block_keeps_a_secret(block, clean):
    """Whatever kind of block it stands in; nothing else of the message changes."""
    message = Message(role="user", blocks=(block, Text(text="stays")), id="m1", at=5.0)
    new = clean(message)
    assert TOKEN.encode() not in msgspec.msgpack.encode(new)
    assert SIGN.encode() in msgspec.msgpack.encode(new)
    assert (new.id, new.at, new.blocks[1]) == ("m1", 5.0, Text(text="stays"))


@pytest.mark.parametrize("clean", [redact_for_reading, redact_for_export])
def test_message_without_secrets_is_the_same_object(clean):
    """Nothing is copied."""
    message = Message(role="user", blocks=(Text(text="hello", raw=b'{"text":"hello"}'),), raw=b"{}")
    assert clean(message) is message


def test_stored_message_keeps_its_bytes_without_the_secret():
    """The bytes it came as, and its metadata."""
    message = Message(role="user", raw=f'{{"x":1,"c":"{TOKEN}"}}'.encode(), metadata={"note": TOKEN})
    new = redact_for_export(message)
    assert (new.raw, new.metadata) == (f'{{"x":1,"c":"{SIGN}"}}'.encode(), {"note": SIGN})
