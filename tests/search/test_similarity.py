import sqlite3

import numpy as np
import pytest

from support.archives import Synonyms, said
from windowsill.errors import WindowsillError
from windowsill.search import Archive, Ranking, WordLlama
from windowsill.search.similarity import normalize
from windowsill.store.sqlite import SQLiteStore

pytestmark = pytest.mark.contract


PETS = ("dog", "puppy", "hound")


def found(archive: Archive, question: str, k: int = 1, **options: object) -> list[str]:
    return [each.text for each in archive.retrieve(question, k, **options)]


def test_meaning_finds_what_words_do_not(store):
    """A question is answered by a passage that shares no word with it."""
    said("we met a hound", "and a cat", store=store)
    with Archive(store, "s", embedder=Synonyms(PETS)) as archive:
        assert found(archive, "puppy") == ["we met a hound"]


def test_words_weigh_more_than_meaning(store):
    """The very word comes before one that means the same."""
    said("we met a hound", "ok", "fine", "good", "yes", "no", "we met a puppy", store=store)
    with Archive(store, "s", embedder=Synonyms(PETS)) as archive:
        assert found(archive, "puppy") == ["we met a puppy"]


def test_what_was_added_since_is_embedded_once(store):
    """A vector is made once for each passage, and once for each question."""
    embedder = Synonyms(PETS)
    said("a hound", "a cat", store=store)
    with Archive(store, "s", embedder=embedder) as archive:
        found(archive, "puppy")
        found(archive, "puppy")
        assert embedder.embedded == 4
        said("one dog more", store=store, at=9_000.0)
        archive.store(["stored dog"])
        assert set(found(archive, "puppy", 3)) == {"a hound", "one dog more", "stored dog"}
        assert embedder.embedded == 7


def test_filters_hold_for_meaning_too(store):
    """What a filter leaves out is not found by its meaning either."""
    said("a hound", "my dog", store=store)
    with Archive(store, "s", embedder=Synonyms(PETS), ranking=Ranking(candidates=1)) as archive:
        assert found(archive, "puppy", 5, roles=["assistant"]) == ["my dog"]


def test_two_embedders_do_not_disturb_each_other(store):
    """Vectors of another model are not compared with this one's."""
    said("a hound", "a lorry", store=store)
    other = Synonyms(("truck", "lorry"), PETS)
    other.name = "other"
    with Archive(store, "s", embedder=Synonyms(PETS)) as one, Archive(store, "s", embedder=other) as two:
        assert found(one, "puppy") == ["a hound"]
        assert found(two, "truck") == ["a lorry"]


def test_an_index_made_anew_is_embedded_anew(store):
    """Numbers that were given again mean what they mean now."""
    said("a hound", "a cat", store=store)
    with Archive(store, "s", embedder=Synonyms(PETS)) as archive:
        found(archive, "puppy")
        archive.forget()
        assert found(archive, "puppy") == []
        said("nothing", "the dog", store=store, at=9_000.0)
        assert found(archive, "puppy") == ["the dog"]


def test_a_deleted_session_has_no_vectors(tmp_path):
    """Vectors say much of what was embedded, and go with it."""
    store = SQLiteStore(tmp_path / "sessions.db")
    said("a hound", store=store)
    with Archive(store, "s", embedder=Synonyms(PETS)) as archive:
        found(archive, "puppy")
    db = sqlite3.connect(store.path)
    assert db.execute("SELECT count(*) FROM passage_vector").fetchone() == (1,)
    store.delete("s")
    assert db.execute("SELECT count(*) FROM passage_vector").fetchone() == (0,)
    db.close()
    store.close()


def test_the_offline_embedder_knows_words_that_go_together(store):
    """The shipped model finds a passage by its meaning, without a network."""
    said("The physician examined the child.", "ok", "We painted the fence.", "fine", "The train was late.", store=store)
    with Archive(store, "s", embedder=WordLlama()) as archive:
        assert found(archive, "doctor") == ["The physician examined the child."]


def test_an_embedder_that_is_not_installed_says_what_to_do(monkeypatch):
    """The remedy is the extra to install."""
    monkeypatch.setitem(__import__("sys").modules, "wordllama", None)
    with pytest.raises(WindowsillError, match=r"pip install '\.\[embeddings\]'"):
        WordLlama().embed(["x"])


def test_what_has_no_direction_stays_zero():
    """An empty text is similar to nothing."""
    assert normalize(np.array([[3.0, 4.0], [0.0, 0.0]], np.float32)).tolist() == [
        [pytest.approx(0.6), pytest.approx(0.8)],
        [0, 0],
    ]
