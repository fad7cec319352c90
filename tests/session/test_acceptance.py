"""What an import refuses although its hashes hold: entries that no session could be opened with."""

import msgspec
import pytest

from windowsill import DamagedError, Session
from windowsill.history.entries import ROOT_HASH, seal
from windowsill.history.folds import pack_stand_ins
from windowsill.history.view import fold_meta, message_meta
from windowsill.session.export import export_session, import_session
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.unit


def sealed(change) -> list[bytes]:
    """Export a session with a fold, of which `change` has altered the entries, as anybody could seal them."""
    store = MemoryStore()
    with Session.open("s", model="claude-sonnet-4-5", store=store, clock=lambda: 1.0) as session:
        for number in range(6):
            session.add({"role": ("user", "assistant")[number % 2], "content": f"message {number}"})
        session.fold("m2", "m3", text="short")
        session.pin("m1")
    forged, before = MemoryStore(), ROOT_HASH
    forged.create("s", at=1.0, settings=store.info("s").settings)
    for entry in map(change, store.read("s", 1, 99)):
        fields = {name: getattr(entry, name) for name in ("seq", "parent", "kind", "id", "at", "meta", "body")}
        made = seal(parent_hash=before, **fields)
        forged.append("s", entry.seq - 1, [made])
        before = made.hash
    return list(export_session(forged, "s", secrets=True))


def altered(which, **fields):
    """Return a change of the last entry of a kind; functions are given the entry."""

    def change(entry):
        if entry.seq != {"message": 6, "fold": 7, "mark": 8}[which]:
            return entry
        new = {name: value(entry) if callable(value) else value for name, value in fields.items()}
        return msgspec.structs.replace(entry, **new)

    return change


def meta(read, **fields):
    return lambda entry: msgspec.msgpack.encode(msgspec.structs.replace(read(entry.meta), **fields))


@pytest.mark.parametrize(
    ("change", "line", "why"),
    [
        (altered("message", body=b"{"), 7, "not JSON"),
        (altered("message", meta=b"\xc1"), 7, "damaged"),
        (altered("message", at=1e300), 7, "its time is none that a calendar has"),
        (altered("message", meta=meta(message_meta, role="system")), 7, "filed under another role"),
        (altered("message", meta=meta(message_meta, calls=("c",))), 7, "filed with other calls"),
        (altered("message", meta=meta(message_meta, format="no")), 7, "'no'"),
        (altered("fold", body=pack_stand_ins(())), 8, "different numbers of runs"),
        (altered("fold", meta=meta(fold_meta, spans=())), 8, "different numbers of runs"),
        (altered("fold", kind="unfold"), 8, "damaged"),
        (altered("mark", kind="usage"), 9, "damaged"),
        (altered("mark", meta=msgspec.msgpack.encode((7, "f7", ["pinned"], []))), 9, "marks what is no message"),
        (altered("mark", meta=msgspec.msgpack.encode((99, "m99", [], []))), 9, "it refers to entry 99"),
    ],
)
def test_an_entry_without_sense_is_refused_with_its_line(change, line, why):
    """Nothing of the file is taken then."""
    store = MemoryStore()
    with pytest.raises(DamagedError, match=f"^line {line}: entry .*{why}.*; export the session again"):
        import_session(store, sealed(change))
    assert store.sessions() == []


def test_entries_that_make_sense_are_taken():
    """The same file without a change opens as it was."""
    store = MemoryStore()
    import_session(store, sealed(lambda entry: entry))
    with Session.open("s", store=store) as session:
        assert ([fold.id for fold in session.folds], session.view.items[0].pinned) == (["f7"], True)
