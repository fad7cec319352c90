"""Bad input: a clear error that names the place and the remedy."""

from __future__ import annotations

import pytest

from windowsill import formats
from windowsill.errors import FormatError

pytestmark = pytest.mark.unit


def body(text: bytes) -> bytes:
    return b'{"messages":[{"role":"user","content":"' + text + b'"}]}'


@pytest.mark.parametrize(
    ("source", "what"),
    [
        (b"hello", "not JSON at byte 0"),
        (b"", "not JSON at byte 0: it ends too early"),
        (b'{"messages": [', "not JSON at byte 14: it ends too early"),
        (b'{"messages": []} {}', "not JSON at byte 17: trailing characters"),
        (body(b"a\x00b"), "not JSON at byte 40: invalid character"),
        (body(b"\\ud800"), "half a surrogate pair"),
        (body(b"\\ud800 and more text"), "half a surrogate pair"),
        (body(b"\\udc00"), "half a surrogate pair"),
        (body(b"\\ud800\\u0041"), "half a surrogate pair"),
        (body(b"\xff"), "not UTF-8 at byte 39"),
        ('"\ud800"', "half a surrogate pair"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"model": "m"}', "neither a request, a message nor a reply"),
        (b"[1, 2]", "Expected object, got int"),
        (b"7", "Expected object, got int"),
    ],
)
def test_bad_input_is_refused_in_one_short_line(source, what):
    """Whatever comes in, the error says what is wrong and what to do, however large the input is."""
    with pytest.raises(FormatError) as raised:
        formats.read_request(source)
    assert what in str(raised.value)
    assert raised.value.remedy
    assert len(str(raised.value)) < 250


def test_place_of_text_that_cannot_be_encoded_is_named():
    """In a dictionary, too, half a surrogate pair is found where it stands."""
    messages = [{"role": "user", "content": "fine"}, {"role": "user", "content": [{"type": "text", "text": "\udfff"}]}]
    with pytest.raises(FormatError) as raised:
        formats.read_request({"messages": messages})
    assert raised.value.where == "messages[1].content[0].text"


def test_value_that_contains_itself_is_refused():
    """A loop in what was passed in is an error, not a crash."""
    message = {"role": "user"}
    message["content"] = [message]
    with pytest.raises(FormatError, match="nested too deeply"):
        formats.read_request([message])


def test_objects_that_are_no_json_are_refused():
    """A value that cannot be written is named by its type."""
    with pytest.raises(FormatError, match="object of type object"):
        formats.read_request([{"role": "user", "content": object()}])


@pytest.mark.parametrize("text", [b"\\u0000", b"\\\\ud800", b"\\ud83d\\ude00", "日本語".encode()])
def test_odd_but_legal_text_is_kept(text):
    """NUL as an escape, a backslash before a u, a whole surrogate pair: all legal, all sent as they came."""
    source = body(text)
    assert formats.render_request(formats.read_request(source)) == source


def test_very_long_line_is_read():
    """Twenty megabytes in one string are just a message."""
    source = body(b"x" * 20_000_000)
    assert len(formats.read_request(source).messages[0].text) == 20_000_000


def test_byte_order_mark_is_passed_over():
    """Files that some editors write begin with a mark."""
    assert formats.read_request(b"\xef\xbb\xbf" + body(b"hi")).messages[0].text == "hi"


def test_error_in_a_long_list_names_its_message():
    """The place is the index in the list."""
    with pytest.raises(FormatError) as raised:
        formats.read_request([{"role": "user", "content": "a"}, {"role": "robot", "content": "b"}], format="anthropic")
    assert raised.value.where == "[1].role"
