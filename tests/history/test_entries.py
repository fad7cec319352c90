"""Entries of the journal: each is bound to all that came before it."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.history.entries import ROOT_HASH, chain_hash, is_whole, seal

pytestmark = pytest.mark.unit


def sealed(**fields):
    given = {
        "seq": 3,
        "parent": 2,
        "parent_hash": ROOT_HASH,
        "kind": "message",
        "id": "m3",
        "at": 5.25,
        "meta": b"meta",
        "body": b"body",
    }
    return seal(**{**given, **fields})


def test_an_entry_is_whole_as_it_was_sealed():
    """With its body, and without it: the chain can be checked without reading every body."""
    entry = sealed()
    assert is_whole(entry, ROOT_HASH)
    assert is_whole(msgspec.structs.replace(entry, body=None), ROOT_HASH)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("parent", 1),
        ("kind", "fold"),
        ("id", "m4"),
        ("at", 5.5),
        ("meta", b"Meta"),
        ("body", b"Body"),
        ("body", b""),
        ("hash", b"\1" * 32),
        ("body_hash", b"\1" * 32),
    ],
)
@pytest.mark.parametrize("with_body", [True, False])
def test_every_changed_field_is_detected(field, value, with_body):
    """H7: nothing of an entry can be edited unseen."""
    changed = msgspec.structs.replace(sealed(), **{field: value})
    if not with_body and field != "body":
        changed = msgspec.structs.replace(changed, body=None)
    assert not is_whole(changed, ROOT_HASH)


def test_an_entry_on_another_parent_is_detected():
    """H7: an entry cannot be moved to another place of the history."""
    assert not is_whole(sealed(), sealed().hash)


def test_an_entry_without_a_body_has_an_empty_one():
    """So that leaving it out and it being lost are told apart."""
    entry = sealed(body=b"")
    assert is_whole(entry, ROOT_HASH)
    assert not is_whole(msgspec.structs.replace(entry, body=b"x"), ROOT_HASH)


texts = st.text(alphabet="ab:1", max_size=6)
parts = st.tuples(st.integers(0, 12), texts, st.floats(0, 20), texts.map(str.encode), texts.map(str.encode))


@given(parts, parts)
def test_no_two_different_entries_have_one_hash(one, other):
    """Also where ids and contents hold the signs that separate the fields."""
    hashes = [
        sealed(parent=parent, id=id, at=at, meta=meta, body=body).hash for parent, id, at, meta, body in (one, other)
    ]
    assert (hashes[0] == hashes[1]) is (one == other)


def test_the_hash_of_an_entry_stays_what_it_is():
    """Stored histories are checked by later versions: what is hashed may never change."""
    found = chain_hash(ROOT_HASH, 0, "message", "m1", 1.5, b"meta", b"\0" * 32)
    assert found.hex() == "394787f265fcce9ad29bc1efee60d236da743d71291f9b822fd0e342ff35fb8e"
