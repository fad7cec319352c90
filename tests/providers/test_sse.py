"""Server-sent events, torn anywhere."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.errors import FormatError
from windowsill.providers.sse import Event, Parser

pytestmark = pytest.mark.unit

values = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=8)
lines = st.one_of(
    st.builds("data: {}".format, values),
    st.builds("data:{}".format, values),
    st.builds("event: {}".format, values),
    st.builds(": {}".format, values),
    st.builds("id: {}".format, values),
    st.sampled_from(["", "", "", "data", "retry: 5", "nonsense", "data: [DONE]", ":"]),
)
ends = st.sampled_from(["\n", "\r\n", "\r"])


def fed(*chunks: bytes) -> list[Event]:
    parser = Parser()
    return [event for chunk in chunks for event in parser.feed(chunk)]


@given(st.lists(st.tuples(lines, ends)), st.booleans(), st.lists(st.integers(0, 300)))
def test_tears_change_nothing(written, marked, cuts):
    """However the bytes are cut (inside a character, between CR and LF, inside the mark), the events are the same."""
    whole = (("\ufeff" if marked else "") + "".join(line + end for line, end in written)).encode()
    places = sorted({0, *(cut for cut in cuts if cut < len(whole)), len(whole)})
    torn = [whole[start:stop] for start, stop in itertools.pairwise(places)]
    assert fed(*torn) == fed(whole)


@given(st.lists(st.tuples(values, st.lists(values, min_size=1, max_size=3))), ends)
def test_what_was_written_is_read(written, end):
    """Names and data of one or more lines come back as they were written, with each kind of line end."""
    text = "".join(
        f"event: {name}{end}" + "".join(f"data: {line}{end}" for line in data) + end for name, data in written
    )
    assert [(event.event, event.data.decode()) for event in fed(text.encode())] == [
        (name, "\n".join(data)) for name, data in written
    ]


def test_one_byte_at_a_time():
    """The finest tear there is."""
    whole = "\ufeffdata: up\n\n: ping\r\n\r\nevent: greet\r\ndata: grüß\r\ndata:  dich\r\rid: 7\ndata:x\n\n".encode()
    expected = [Event("", b"up"), Event("greet", "grüß\n dich".encode()), Event("", b"x", "7")]
    assert fed(*(bytes([byte]) for byte in whole)) == expected


def test_keep_alives_and_empty_events_say_nothing():
    """Comments, blank lines and an event without data give no event."""
    assert fed(b": ping\n\n\n\nevent: lonely\n\n:\n\ndata: a\n\n") == [Event("", b"a")]


def test_an_id_stays_until_the_next():
    """The last id counts for all events after it; one with a NUL is none."""
    assert [event.id for event in fed(b"id: 1\ndata: a\n\ndata: b\n\nid: 2\0\ndata: c\n\n")] == ["1", "1", "1"]


def test_an_end_is_known_at_its_carriage_return():
    """An event is given at once, without waiting for a line feed that may belong to its end."""
    parser = Parser()
    assert parser.feed(b"data: a\r\n\r") == [Event("", b"a")]
    assert parser.feed(b"\ndata: b\r\n\r\n") == [Event("", b"b")]


def test_close_gives_what_lacks_its_blank_line():
    """A server that hangs up right after its last line is heard; once."""
    parser = Parser()
    assert parser.feed(b"data: a\n\ndata: [DONE]") == [Event("", b"a")]
    assert parser.close() == [Event("", b"[DONE]")]
    assert parser.close() == []


@pytest.mark.parametrize(
    "chunks", [[b"data: 12345678"], [b"data: 1234\n", b"data: 5678\n"], [b"data: 12345678\n\n"], [b"x" * 20]]
)
def test_an_event_above_the_limit_is_an_error(chunks):
    """Memory stays bounded, whichever way the event grows."""
    parser = Parser(limit=12)
    with pytest.raises(FormatError, match="more than 12 bytes"):
        [parser.feed(chunk) for chunk in chunks]


@pytest.mark.parametrize("rest", [b"data: 12345678", b"data: 12345678\n\n", b"data: 12345678\n\ndata: 2\n\n"])
def test_events_before_one_too_large_are_given(rest):
    """What was whole in the same chunk is not lost."""
    parser = Parser(limit=12)
    assert parser.feed(b"data: 1\n\n" + rest) == [Event("", b"1")]
    with pytest.raises(FormatError, match="raise the limit"):
        parser.feed(b"")


def test_a_long_event_in_small_pieces_is_joined_once():
    """A line of many pieces comes out whole."""
    parser = Parser()
    parser.feed(b"data: ")
    for _ in range(5000):
        assert parser.feed(b"ab") == []
    assert parser.feed(b"\n\n") == [Event("", b"ab" * 5000)]


@pytest.mark.parametrize(
    ("begun", "expected"),
    [
        (b"", ("", b"b")),
        (b"data: a\n", ("", b"a\nb")),
        (b"data: a", ("", b"adata: b")),
        (b"event: n\n", ("n", b"b")),
        (b"data: a\rdata: ", ("", b"a\ndata: b")),
        (b"data: a\r", ("", b"a\nb")),
    ],
)
def test_event_in_a_chunk_of_its_own_is_what_it_is_after_what_has_begun(begun, expected):
    """A chunk that looks like one whole event is one only where none has begun."""
    parser = Parser()
    parser.feed(b"data: first\n\n")
    assert parser.feed(begun) == []
    (event,) = parser.feed(b"data: b\n\n")
    assert (event.event, event.data) == expected


def test_lines_that_end_in_cr_within_one_chunk():
    """A CR alone ends a line, also where the chunk ends like one event."""
    parser = Parser()
    parser.feed(b"data: first\n\n")
    assert [event.data for event in parser.feed(b"data: a\rdata: b\n\n")] == [b"a\nb"]


def test_event_above_the_limit_in_a_chunk_of_its_own():
    """It is refused however it comes."""
    parser = Parser(limit=20)
    parser.feed(b"data: first\n\n")
    with pytest.raises(FormatError, match="20 bytes"):
        parser.feed(b"data: " + b"x" * 30 + b"\n\n")
