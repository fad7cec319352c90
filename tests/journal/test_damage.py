"""Damage to what was derived from the entries: it is passed over and made again, and never spreads."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill import DamagedError, Session
from windowsill.history.head import Head, call_meta
from windowsill.messages import Message, Text
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.unit


def seen(session: Session) -> tuple:
    items = [(item.id, item.role, session.view.read(item).text) for item in session.view.items]
    head = session.journal.head
    return items, session.view.tokens(), head.sent, head.prompt_hash, session.view.edits_of_past, session.view.restored


def reduced(store: MemoryStore) -> tuple:
    """Fill a session that was folded, unfolded and rewound; return what it shows."""
    with Session.open("s", model="claude-sonnet-4-5", window=4_000, store=store, clock=lambda: 1.0) as session:
        for number in range(40):
            session.add({"role": "user", "content": f"then {number} " + "text " * 30})
            session.add({"role": "assistant", "content": f"step {number} " + "word " * 30})
            session.compose_sync(system="Be brief.")
        session.unfold(session.folds[-1].id, fit=True)
        session.rewind(session.view.items[-2].id)
        session.add("again")
        session.compose_sync(system="Be brief.")
        session.journal.flush()
        return seen(session)


STORE = MemoryStore()
BEFORE = reduced(STORE)
AT, DATA = STORE.snapshot("s", 10_000)


def with_snapshot(data) -> MemoryStore:
    store, info = MemoryStore(), STORE.info("s")
    store.create("s", at=info.created, settings=info.settings)
    store.append("s", 0, STORE.read("s", 1, info.version), snapshots=[(AT, data)])
    return store


@given(place=st.integers(0, len(DATA) - 1), change=st.integers(1, 255))
def test_a_damaged_view_is_passed_over(place, change):
    """Whatever byte of it was changed, the session opens and shows what its entries say."""
    data = DATA[:place] + bytes([DATA[place] ^ change]) + DATA[place + 1 :]
    assert seen(Session.open("s", store=with_snapshot(data), clock=lambda: 1.0)) == BEFORE


@pytest.mark.parametrize("data", [b"", DATA[:10], DATA[:-1], DATA[16:], "text", None, 7])
def test_a_view_of_any_other_kind_is_passed_over(data):
    """One that is cut, without a checksum as of an earlier version, or no longer bytes."""
    assert seen(Session.open("s", store=with_snapshot(data), clock=lambda: 1.0)) == BEFORE


def test_a_view_of_another_moment_is_passed_over():
    """A whole one that stands at another entry is not believed."""
    early = STORE.snapshot("s", AT - 1)
    assert seen(Session.open("s", store=with_snapshot(early[1]), clock=lambda: 1.0)) == BEFORE


def test_a_whole_view_is_used(monkeypatch):
    """So that a session opens without reading its past."""
    used = []
    taken = Head.from_snapshot
    monkeypatch.setattr(Head, "from_snapshot", lambda *given: used.append(taken(*given)) or used[-1])
    assert seen(Session.open("s", store=with_snapshot(DATA), clock=lambda: 1.0)) == BEFORE
    assert used[0] is not None


def test_the_next_write_stores_a_whole_view_again():
    """A long session does not read its past at each opening because of one damaged view."""
    store = with_snapshot(b"damaged")
    with Session.open("s", store=store) as session:
        session.add("more")
        shown = seen(session)
    assert store.snapshot("s", 10_000)[0] == store.info("s").version
    assert seen(Session.open("s", store=store)) == shown


def test_a_rebuilt_head_knows_the_prompt_of_the_last_request():
    """What is signed under a prompt is judged the same, whether or not a view was stored."""
    last = [entry for entry in STORE.read("s", 1, 10_000) if entry.kind == "call"][-1]
    session = Session.open("s", store=with_snapshot(b""))
    assert session.journal.head.prompt_hash == call_meta(last.meta).prompt_hash


LONG = "\n".join(f"line {number}: the port is {8_000 + number}" for number in range(100))


def turn(session: Session, number: int) -> str:
    call = {"type": "tool_use", "id": f"t{number}", "name": "read", "input": {}}
    session.add({"role": "assistant", "content": [call]})
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": LONG}
    return session.add({"role": "user", "content": [result]})


@given(st.one_of(st.binary(max_size=20), st.tuples(st.integers(-9, 9), st.integers(-99, 999), st.integers(-9, 9_999))))
def test_a_damaged_note_about_an_output_spoils_no_later_message(note):
    """An output is left out of a message only if its very bytes stand where the note says; the note is made again."""
    store = MemoryStore()
    with Session.open("s", model="claude-sonnet-4-5", store=store) as session:
        turn(session, 1)
        (name,) = store.blob_ids("s", "same/")
        right = store.blob("s", name)
        store.drop_blobs("s", [name])
        store.put_blobs("s", [(name, note if isinstance(note, bytes) else msgspec.msgpack.encode(note))])
        ids = [turn(session, number) for number in (2, 3)]
    with Session.open("s", store=store) as again:
        assert [again.message(id).results[0].content[0].text for id in ids] == [LONG, LONG]
    assert len(store.blob("s", name)) <= len(right) + 4
    assert len(store.read("s", 6, 6)[0].body) < len(LONG)


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"[" * 5_000, b'{"role": 7}', b"null"])
@pytest.mark.parametrize("format", ["anthropic", "neutral"])
def test_a_message_that_cannot_be_read_is_named(body, format):
    """It is damage, not a mistake of whoever reads it."""
    store = MemoryStore()
    with Session.open("s", model="claude-sonnet-4-5", store=store) as session:
        session.add("hello" if format == "anthropic" else Message(role="user", blocks=(Text(text="hello"),)))
        entry = store.read("s", 1, 1)[0]
        with pytest.raises(DamagedError, match=r"message 'm1' of session 's' is damaged: .*; `windowsill sessions ver"):
            session.journal.decode(msgspec.structs.replace(entry, body=body))
