"""A snapshot as bytes: what was packed comes back, and no change of them goes unseen."""

import hashlib
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill import DamagedError
from windowsill.session.snapshots import About, Snapshot, pack, unpack

pytestmark = pytest.mark.unit

RAW = b'{"role": "user",  "content": "1e400 and 1.0", "n": 123456789012345678901234567890, "e": 1e400}'
SHOT = Snapshot(
    timestamp=12.5,
    token_count=7,
    messages=(msgspec.Raw(RAW),),
    summary="what was said",
    session="s/1",
    entry="m1",
    format="anthropic",
    model="claude-sonnet-4-5",
    phase="planning",
    state=msgspec.Raw(b'{"task":{}}'),
    about=(About(id="mine", at=3.0, marks=("pinned",)),),
)


def sealed(fields):
    """A file with any fields and the right checksum."""
    body = json.dumps(fields, separators=(",", ":")).encode()
    return body[:-1] + b',"checksum":"' + hashlib.sha256(body).hexdigest().encode() + b'"}'


def test_what_was_packed_comes_back():
    """Every field, and the bytes of each message as they were."""
    assert unpack(pack(SHOT)) == SHOT
    assert bytes(unpack(pack(SHOT)).messages[0]) == RAW


def test_it_is_a_json_document_with_the_agreed_fields():
    """C1: any program can read it."""
    value = json.loads(pack(SHOT))
    assert (value["version"], value["timestamp"], value["token_count"]) == ("1.0", 12.5, 7)
    assert (value["summary"], value["session"], value["entry"]) == ("what was said", "s/1", "m1")
    assert (value["model"], value["phase"], value["state"]) == ("claude-sonnet-4-5", "planning", {"task": {}})
    assert value["messages"][0]["role"] == "user"


def test_the_checksum_is_taken_over_the_bytes_before_it():
    """So that any program can check it."""
    data = pack(SHOT)
    body = data[: data.rindex(b',"checksum"')] + b"}"
    assert json.loads(data)["checksum"] == hashlib.sha256(body).hexdigest()


def test_the_same_snapshot_is_the_same_bytes():
    """Nothing in it depends on the moment of packing."""
    assert pack(SHOT) == pack(msgspec.structs.replace(SHOT))


@given(st.integers(0, len(pack(SHOT)) - 1), st.integers(1, 255))
def test_any_changed_byte_is_seen(place, change):
    """Wherever it stands, the checksum itself included."""
    data = bytearray(pack(SHOT))
    data[place] ^= change
    with pytest.raises(DamagedError):
        unpack(bytes(data))


@given(st.integers(0, len(pack(SHOT)) - 1))
def test_any_missing_end_is_seen(length):
    """A file that was cut anywhere is not a snapshot."""
    with pytest.raises(DamagedError):
        unpack(pack(SHOT)[:length])


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "it is empty"),
        (b"hello", "does not end with a checksum"),
        (b"\0" * 5_000, "does not end with a checksum"),
        (sealed({"version": "2.0"}), "it has version '2.0', and this Windowsill reads '1.0'"),
        (sealed({"version": 1}), "not a snapshot"),
        (sealed({"version": "1.0", "messages": 3}), "not a snapshot"),
    ],
)
def test_what_is_no_snapshot_is_told(data, why):
    """The error says what is wrong with it."""
    with pytest.raises(DamagedError, match=why):
        unpack(data)
