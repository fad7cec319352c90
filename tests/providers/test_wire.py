"""Bad input: a clear error that names the place and the remedy."""

from __future__ import annotations

import pytest

from windowsill import providers
from windowsill.errors import FormatError
from windowsill.providers.wire import take_out

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
        (body(b"\xff"), "not UTF-8 at byte 39"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"model": "m"}', "neither a request, a message nor a reply"),
        (b"[1, 2]", "[0]: not a message; pass format="),
        (b"7", "neither a request body nor a message list; pass one of them"),
    ],
)
def test_bad_input_is_refused_in_one_short_line(source, what):
    """Whatever comes in, the error says what is wrong and what to do, however large the input is."""
    with pytest.raises(FormatError) as raised:
        providers.read_request(source)
    assert what in str(raised.value)
    assert raised.value.remedy
    assert len(str(raised.value)) < 250


@pytest.mark.parametrize("text", [b"\\ud800", b"\\ud800 and more text", b"\\udc00", b"\\ud800\\u0041"])
def test_half_a_surrogate_pair_is_found_by_the_validator(text):
    """A provider may refuse a body with it; the place is named."""
    with pytest.raises(FormatError, match="half a surrogate pair"):
        providers.validate(body(text))


def test_value_that_contains_itself_is_refused():
    """A loop in what was passed in is an error, not a crash."""
    message = {"role": "user"}
    message["content"] = [message]
    with pytest.raises(FormatError, match="nested too deeply"):
        providers.read_request([message])


def test_objects_that_are_no_json_are_refused():
    """A value that cannot be written is named by its type."""
    with pytest.raises(FormatError, match="object of type object"):
        providers.read_request([{"role": "user", "content": object()}])


@pytest.mark.parametrize("text", [b"\\u0000", b"\\\\ud800", b"\\ud83d\\ude00", "日本語".encode()])
def test_odd_but_legal_text_is_kept(text):
    """NUL as an escape, a backslash before a u, a whole surrogate pair: all legal, all sent as they came."""
    source = body(text)
    assert providers.render_request(providers.read_request(source)) == source


def test_very_long_line_is_read():
    """Twenty megabytes in one string are just a message."""
    source = body(b"x" * 20_000_000)
    assert len(providers.read_request(source).messages[0].text) == 20_000_000


def test_byte_order_mark_is_passed_over():
    """Files that some editors write begin with a mark."""
    assert providers.read_request(b"\xef\xbb\xbf" + body(b"hi")).messages[0].text == "hi"


def test_error_in_a_long_list_names_its_message():
    """The place is the index in the list."""
    with pytest.raises(FormatError) as raised:
        providers.read_request(
            [{"role": "user", "content": "a"}, {"role": "robot", "content": "b"}], format="anthropic"
        )
    assert raised.value.where == "[1].role"


ONE = b'{"role":"user"}'


@pytest.mark.parametrize(
    "source",
    [
        b'{"model":"m","messages":[%b],"n":1}',
        b'{"model":"m","messages": [ %b ] ,"n":1}',
        b'{"model":"m","messages":[%b ],"n":1}',
        b'{"model":"m", "messages":[%b], "n":1}',
        b'{"model":"m","messages":[{"role":"tool"}],"messages":[%b],"n":1}',
        b'{"model":"m","\\u006dessages":[%b],"n":1}',
    ],
    ids=["compact", "spaces-inside", "space-at-its-end", "spaces-outside", "twice", "escaped"],
)
def test_long_list_is_taken_out_of_a_body(source):
    """However the body is spelled, the items come as they stand in it and the other fields stay, in their order."""
    fields, items = take_out(source % ONE, "messages")
    assert items == [ONE]
    assert [(key, bytes(value)) for key, value in fields.items()] == [("model", b'"m"'), ("n", b"1")]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("metadata", b'{"messages":[{"role":"user"}]}'),
        ("metadata", b'{"messages":[]}'),
        ("system", b'"{\\"messages\\":[{\\"role\\":\\"user\\"}]"'),
        ('a,"messages', b'[{"role":"user"}]'),
    ],
    ids=["inside-the-same", "inside-another", "in-text", "in-a-key"],
)
def test_same_key_elsewhere_is_not_the_list(key, value):
    """Only the list of the body itself is taken out; what looks like it stays as it came."""
    source = b"{" + providers.encode(key) + b":" + value + b',"messages":[' + ONE + b"]}"
    fields, items = take_out(source, "messages")
    assert items == [ONE]
    assert {name: bytes(each) for name, each in fields.items()} == {key: value}


def test_spaces_that_hide_where_the_list_ends():
    """A bracket where a list without spaces would end is not taken for its end."""
    fields, items = take_out(b'{"messages":[  {"a":[]}],"n":1}', "messages")
    assert items == [b'{"a":[]}']
    assert list(fields) == ["n"]


def test_what_is_no_list_stays():
    """Text in place of the list is for the format to read."""
    fields, items = take_out(b'{"input":"hello"}', "input")
    assert items is None
    assert bytes(fields["input"]) == b'"hello"'
