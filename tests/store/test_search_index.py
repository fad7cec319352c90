"""What the search index of every store does, whatever it is kept in."""

import struct
from pathlib import Path

import msgspec
import pytest

from support.stores import STORES
from windowsill.store import SearchIndex, Store
from windowsill.store.postgres import PostgresStore
from windowsill.store.search_index import APART, Filters, Passage, PassageFacts

pytestmark = pytest.mark.contract

ANY = Filters()


@pytest.fixture(params=STORES)
def store(request, tmp_path: Path):
    made = STORES[request.param](tmp_path)
    made.create("s", at=1.0)
    yield made
    made.close()


def passage(text: str, seq: int | None = 1, **fields) -> Passage:
    source = "message" if seq else "stored"
    made = Passage(seq, "m", "user", source, None, None, 5.0, 1, 1, None, text)
    return msgspec.structs.replace(made, **fields)


def add(index: SearchIndex, *passages: Passage):
    (before,) = index.sessions(["s"])
    after = index.add(before, before.seq + 1, passages, [each.text for each in passages])
    assert after is not None
    return after


def found(store: Store, *terms: str, filters: Filters = ANY) -> list[str]:
    index = store.search_index()
    keys = [key for key, _ in index.match(terms, index.sessions(["s"]), filters, 10)]
    return [index.passages([key])[key].text for key in keys]


def test_a_session_is_known_from_its_creation_on(store: Store):
    """A session is in the index before anything of it was indexed; one that does not exist is not."""
    store.create("late", at=2.0)
    index = store.search_index()
    store.create("later", at=3.0)
    known = {each.id: (each.created, each.seq, each.rows) for each in index.sessions(["s", "late", "later", "none"])}
    assert known == {"s": (1.0, 0, 0), "late": (2.0, 0, 0), "later": (3.0, 0, 0)}


def test_terms_are_words_phrases_and_beginnings(store: Store):
    """Any of the terms is enough; words are stemmed, and a star stands for the rest of a word."""
    add(store.search_index(), passage("she runs git status"), passage("status of git"), passage("東京 京"))
    assert found(store, "git status") == ["she runs git status"]
    assert found(store, "running") == ["she runs git status"]
    assert found(store, "東*") == ["東京 京"]
    assert sorted(found(store, "git", "東京")) == sorted(["she runs git status", "status of git", "東京 京"])


def test_filters_leave_out_what_they_do_not_allow(store: Store):
    """Role, tool, time and entries of the journal limit what is found."""
    index = store.search_index()
    add(index, passage("fig one", 1), passage("fig two", 2, role="tool", tool="grep", at=9.0))
    for filters in (
        Filters(roles=["tool"]),
        Filters(tools=["grep"]),
        Filters(after=6.0),
        Filters(within=[(2, 1 << 40)]),
    ):
        assert found(store, "fig", filters=filters) == ["fig two"]
    assert found(store, "fig", filters=Filters(before=6.0)) == ["fig one"]
    (session,) = index.sessions(["s"])
    assert index.allowed(session, Filters(before=6.0)) == [session.first_key + 1]


def test_work_on_an_old_state_is_refused(store: Store):
    """Of two that index the same entries, the second writes nothing."""
    index = store.search_index()
    (before,) = index.sessions(["s"])
    add(index, passage("once"))
    assert index.add(before, 1, [passage("once")], ["once"]) is None
    assert found(store, "once") == ["once"]


def test_what_is_stored_under_an_id_is_replaced(store: Store):
    """Passages that no journal holds stand apart from the others."""
    index = store.search_index()
    assert index.put("s", [passage("old plan", None)], ["old plan"])
    assert index.put("s", [passage("new plan", None)], ["new plan"])
    assert found(store, "plan") == ["new plan"]
    (session,) = index.sessions(["s"])
    assert index.facts([session.first_key + APART + 2]) == {
        session.first_key + APART + 2: PassageFacts(5.0, "user", None, None, None)
    }
    assert not index.put("none", [passage("x", None)], ["x"])


def test_starting_again_keeps_what_was_stored_by_hand(store: Store):
    """The words of what is kept are made anew; the session is indexed from its beginning."""
    index = store.search_index()
    add(index, passage("from the journal"))
    index.put("s", [passage("by hand", None)], ["by hand"])
    index.restart("s", lambda text: f"{text} walnut")
    assert found(store, "journal", "hand") == ["by hand"]
    assert found(store, "walnut") == ["by hand"]
    (session,) = index.sessions(["s"])
    assert (session.seq, session.rows, session.epoch) == (0, 0, 1)


def test_forgetting_removes_everything(store: Store):
    """Nothing is left, and indexing goes on behind what was forgotten."""
    index = store.search_index()
    add(index, passage("from the journal"))
    index.put("s", [passage("by hand", None)], ["by hand"])
    index.forget("s", seq=7)
    assert found(store, "journal", "hand") == []
    assert index.sessions(["s"])[0].seq == 7


def test_a_deleted_session_leaves_nothing(store: Store):
    """Passages and vectors go with their session, also when its name is given again."""
    index = store.search_index()
    session = add(index, passage("secret"))
    index.put_vectors("model", [(session.first_key + 1, b"vv")])
    store.delete("s")
    assert index.sessions(["s"]) == []
    store.create("s", at=2.0)
    assert found(store, "secret") == []
    assert index.vectors(0, 1 << 62, "model") == []


def test_text_is_found_letter_for_letter(store: Store):
    """What has no words is found as it is written, the newest first."""
    index = store.search_index()
    session = add(index, passage("a => b"), passage("a = b"), passage("c => d"))
    keys = [session.first_key + place for place in (1, 2, 3)]
    assert index.literal("=>", [session], ANY, 10) == [keys[2], keys[0]]
    assert index.verbatim(keys[:2], "=>") == {keys[0]}


def test_vectors_are_made_once(store: Store):
    """Passages without a vector of a model are named until they have one; a passage that is gone gets none."""
    index = store.search_index()
    session = add(index, passage("one"), passage("two"))
    first, last = session.first_key, session.last_key
    assert index.without_vector(first, last, "m", 10) == [(first + 1, "one"), (first + 2, "two")]
    index.put_vectors("m", [(first + 1, b"11"), (first + 2, b"22"), (first + 9, b"99")])
    assert index.without_vector(first, last, "m", 10) == []
    assert index.vectors(first, last, "m") == [(first + 1, b"11"), (first + 2, b"22")]
    assert index.newest(session) == 5.0


def test_the_nearest_vectors_are_found_where_the_store_compares_them(store: Store):
    """By their product, largest first, among what the filters allow; a store that compares none leaves it to others."""
    index = store.search_index()
    session = add(index, passage("one"), passage("two", at=9.0), passage("three"))
    first = session.first_key
    vectors = {first + 1: (1.0, 0.0), first + 2: (0.6, 0.8), first + 3: (0.0, 1.0)}
    index.put_vectors("m", [(key, struct.pack("<2e", *vector)) for key, vector in vectors.items()])
    found = index.nearest("m", struct.pack("<2e", 1.0, 0.0), [session], ANY, 2)
    if not isinstance(store, PostgresStore):
        assert found is None
        return
    assert [(key, round(score, 3)) for key, score in found] == [(first + 1, 1.0), (first + 2, 0.6)]
    assert index.nearest("m", struct.pack("<2e", 1.0, 0.0), [session], Filters(after=6.0), 2)[0][0] == first + 2
    assert index.nearest("other", struct.pack("<2e", 1.0, 0.0), [session], ANY, 2) == []
