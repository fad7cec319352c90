"""The window now: its parts, its items, its folds, and what it costs to bring them back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.examples import examples
from support.inspected import answer, open_session, opened, work
from windowsill.compose.composition import PARTS
from windowsill.errors import NotFoundError
from windowsill.inspector import explanations, overview, window
from windowsill.inspector.opened import OpenSessions
from windowsill.messages import ORIGIN, Origin
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.unit


@pytest.fixture
def store():
    """A store that a test may change."""
    made = MemoryStore()
    with open_session(made) as session:
        work(session, 12)
    return made


def test_parts_fill_the_window(store):
    """The parts of the bar come in one order and add up to the window."""
    with opened(store) as each:
        found = window.window(each)
    assert [part["name"] for part in found["parts"]] == list(PARTS)
    assert sum(part["tokens"] for part in found["parts"]) == found["window"]
    sent = sum(part["tokens"] for part in found["parts"] if part["name"] not in ("free", "reserve"))
    assert sent == found["tokens"] <= found["limit"] < found["window"]
    assert all(part["tokens"] > 0 for part in found["parts"] if part["name"] in ("system", "tools", "task", "folded"))


def test_the_list_of_sessions_is_as_full_as_the_window():
    """Both leave as much room for an answer as the last request allows it."""
    store = MemoryStore()
    with open_session(store) as session:
        session.add("The task.")
        session.compose_sync(system="You read files.", params={"max_tokens": 500})
        answer(session, "Done.")
    with opened(store) as each:
        limit = window.window(each)["limit"]
    assert overview.sessions(OpenSessions(store))["sessions"][0]["figures"]["limit"] == limit


def test_marks_stand_in_order(store):
    """The low mark lies below the high one, and that below the limit."""
    with opened(store) as each:
        marks = {mark["name"]: mark["tokens"] for mark in window.window(each)["marks"]}
    assert marks["low"] < marks["high"] <= marks["limit"]


def test_pinned_and_recalled_messages_have_parts_of_their_own():
    """A pinned message and one that was brought back are told from what the user said."""
    store = MemoryStore()
    with open_session(store) as session:
        session.add("The task.")
        session.pin(session.add("Remember this."))
        session.add("Recalled.", metadata={ORIGIN: Origin.RECALLED})
        session.add("Said.")
        with opened(store) as each:
            items = window.items(each, 0)["items"]
    assert [item["part"] for item in items] == ["task", "pinned", "recalled", "user"]


@settings(max_examples=examples(0.25))
@given(st.lists(st.sampled_from(["user", "pin", "look", "unpin"]), min_size=1, max_size=12))
def test_sums_that_grow_equal_sums_made_anew(steps):
    """Whatever happens between two looks, the parts are those of a session that is opened anew."""
    store = MemoryStore()
    with open_session(store) as session:
        first = session.add("The task.")
        with opened(store) as each:
            for number, step in enumerate(steps):
                if step == "user":
                    session.add(f"Message {number}.")
                elif step in ("pin", "unpin"):
                    session.pin(first, off=step == "unpin")
                each.session.journal.refresh()
                grown = window.window(each)["parts"]
        with opened(store) as anew:
            assert window.window(anew)["parts"] == grown


def test_items_are_what_the_model_sees(store):
    """The items are those of the view, in order, in pages; folds are boxes with their reason."""
    with opened(store) as each:
        view = each.session.view
        found = window.items(each, 0)["items"]
        assert [item["id"] for item in found] == [item.id for item in view.items]
        assert [item["tokens"] for item in found] == view.each(view.items)
        hidden = [item for item in found if item["fold"]]
        assert hidden or any(item["cuts"] for item in found)
        for item in hidden:
            assert item["fold"]["reason"]
            assert item["fold"]["by"] == "windowsill"
            assert item["fold"]["before"] > item["fold"]["after"]
        with pytest.raises(NotFoundError, match="no page 7"):
            window.items(each, 7)


def test_price_is_what_unfolding_does(store):
    """The tokens that are named before a fold is undone are those by which the request grows."""
    with opened(store) as each:
        fold = next(fold for fold in explanations.folds(each)["folds"] if fold["price"])
        before = each.session.view.tokens()
        each.session.unfold(fold["id"])
        grown = each.session.view.tokens() - before
    assert abs(fold["price"]["tokens"] - grown) <= 1
    assert fold["price"]["dollars"] > fold["price"]["each_call"] > 0


def test_folds_tell_whether_they_apply(store):
    """A fold that was undone says so, and has no price any more."""
    with opened(store) as each:
        each.session.unfold(next(fold["id"] for fold in explanations.folds(each)["folds"] if fold["price"]))
        listed = explanations.folds(each)["folds"]
    assert [fold["seq"] for fold in listed] == sorted((fold["seq"] for fold in listed), reverse=True)
    undone = [fold for fold in listed if fold["state"] == "undone"]
    assert undone
    assert all(fold["price"] is None for fold in undone)


def test_fold_shows_what_it_hides(store):
    """A fold that is opened lists the messages behind it and the text in their place."""
    with opened(store) as each:
        fold = explanations.folds(each)["folds"][-1]
        found = explanations.fold(each, fold["id"])
        hidden = [window.message(each, message["id"]) for message in found["hidden"]]
    assert found["parts"][0]["first"] == hidden[0]["id"]
    assert all(message["blocks"] for message in hidden)


def test_place_finds_what_is_hidden(store):
    """A link to a message that is hidden leads to the fold that covers it; one to a fold leads to its box."""
    with opened(store) as each:
        box = next(item for item in window.items(each, 0)["items"] if item["fold"])
        found = window.place(each, box["fold"]["first"])
        assert found["item"] == box["id"]
        assert found["visible"] is False
        assert window.place(each, box["fold"]["id"])["index"] == box["index"]
        assert window.place(each, each.session.view.items[-1].id)["visible"] is True


def test_words_are_explained(store):
    """Words that are out of the window say by which fold, and what it costs to have them back."""
    with opened(store) as each:
        found = explanations.explain(each, "secret number 0")["found"]
        states = {place["state"] for place in found}
        out = next(place for place in found if place["state"] in ("hidden", "cut"))
        seen = next(
            place for place in explanations.explain(each, "secret number 11")["found"] if place["state"] == "visible"
        )
    assert states & {"hidden", "cut"}
    assert out["fold"] in out["why"]
    assert out["price"]["tokens"] > 0
    assert seen["price"] is None


def test_long_texts_come_in_slices():
    """A text of a megabyte is cut in lists, and read whole in slices."""
    store = MemoryStore()
    text = "x" * 1_000_000
    with open_session(store, window=2_000_000) as session:
        id = session.add(text)
        with opened(store) as each:
            (block,) = window.items(each, 0)["items"][0]["blocks"]
            assert (len(block["text"]), block["cut"], block["length"]) == (4_000, True, 1_000_000)
            read, offset = "", 0
            while offset is not None:
                piece = window.text(each, id, 0, offset, shown=False)
                read, offset = read + piece["text"], piece["next"]
            assert read == text
            assert window.text(each, id, 0, 999_990, shown=True)["text"] == "x" * 10
