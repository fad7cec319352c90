"""Calls over time, and the exact request of one beside the one before."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.inspected import answer, ask, open_session, opened, work
from windowsill.errors import NotFoundError
from windowsill.inspector import calls, ledger
from windowsill.inspector.ledger import Ledger
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.unit


def test_calls_split_what_was_sent(store):
    """Each call tells what a cache served, what was written and what was new; that is all it sent."""
    with opened(store) as each:
        found = calls.calls(each)
    assert len(found["calls"]) == 24
    for call in found["calls"]:
        assert call["reported"]
        assert call["tokens"] == call["cached"] + call["written"] + call["new"]
    totals = found["totals"]
    assert totals["input"] == sum(call["tokens"] for call in found["calls"])
    assert totals["cost"] == pytest.approx(sum(call["cost"] for call in found["calls"]))
    assert totals["cache_share"] == pytest.approx(totals["cached"] / totals["input"], abs=1e-4)
    assert {event["kind"] for event in found["events"]} >= {"fold"}
    assert totals["folds"] == sum(event["kind"] == "fold" for event in found["events"])


def test_a_call_is_found_by_its_number(store):
    """Counted from the first of the session, as the chart counts them."""
    with opened(store) as each:
        listed = [call["id"] for call in calls.calls(each)["calls"]]
        found = calls.call(each, "7")
        assert (found["id"], found["number"], found["calls"]) == (listed[6], 7, len(listed))
        assert calls.call(each, listed[-1])["number"] == len(listed)
        for number in ("0", "25", "9" * 5_000):
            with pytest.raises(NotFoundError, match=f"there is no call {number}; the session has 24"):
                calls.call(each, number)


@pytest.mark.parametrize("chunk", [1, 3, 7, 1_000])
def test_pieces_add_up_to_the_whole(store, monkeypatch, chunk):
    """However small the pieces in which the past is read, calls and sums are the same."""
    monkeypatch.setattr(ledger, "CHUNK", chunk)
    version = store.info("work").version
    made, whole = Ledger(store, "work", "claude-sonnet-5"), Ledger(store, "work", "claude-sonnet-5")
    for seq in range(version // 2, version + 1):
        made.catch_up(seq)
    made.reach(calls=10_000)
    whole.catch_up(version)
    whole.reach(calls=10_000)
    assert made.calls == whole.calls
    assert made.events == whole.events
    assert made.totals.calls == whole.totals.calls == 24
    assert made.totals.cost == pytest.approx(whole.totals.cost)
    assert made.complete


def test_older_calls_are_paged(store, monkeypatch):
    """Following the older pages gives every call once, and every event once."""
    monkeypatch.setattr(calls, "MOST_CALLS", 5)
    with opened(store) as each:
        seen, events, before = [], [], None
        while True:
            page = calls.calls(each, before)
            seen = [call["id"] for call in page["calls"]] + seen
            events = [event["id"] for event in page["events"]] + events
            if page["older"] is None:
                break
            before = int(page["older"].rpartition("=")[2])
        assert seen == [call.id for call in each.session.calls]
        assert events == [event.id for event in each.ledger.events]


def test_answer_without_request_is_a_call():
    """An answer that was added without a request of ours is listed with its usage."""
    store = MemoryStore()
    with open_session(store) as session:
        session.add("Hello")
        answer(session, "Hi", cached=0)
        with opened(store) as each:
            (call,) = calls.calls(each)["calls"]
    assert call["id"] is None
    assert call["output"] == 20


def test_left_branches_stay_paid(store):
    """A call on a branch that was left is marked and still counts."""
    store = MemoryStore()
    with open_session(store) as session:
        work(session, 1)
        session.rewind(next(session.messages()).id)
        work(session, 1, first=5)
        with opened(store) as each:
            found = calls.calls(each)
    assert [call["left"] for call in found["calls"]] == [True, True, False, False]
    assert found["totals"]["calls"] == 4
    assert "rewind" in {event["kind"] for event in found["events"]}


def test_strip_shows_what_only_grew():
    """A request that only grew begins with the one before, up to the byte where its list went on."""
    store = MemoryStore()
    with open_session(store, window=100_000) as session:
        work(session, 2)
        with opened(store) as each:
            listed = [call["id"] for call in calls.calls(each)["calls"]]
            first, last = calls.call(each, listed[0]), calls.call(each, listed[-1])
            body = each.body(listed[-1])
    assert first["before"] is None
    assert first["strip"] is None
    assert last["before"] == listed[-2]
    strip = last["strip"]
    assert strip["grew_only"]
    assert strip["same"] + strip["tail"] == strip["before_total"]
    assert strip["total"] == len(body.replace(b',"cache_control":{"type":"ephemeral"}', b""))
    assert last["bytes"] == len(body) > strip["total"]
    assert strip["where"].startswith("messages[")
    assert {section["name"]: section["state"] for section in last["sections"]}["system"] == "same"
    assert last["cache"]["why"] == "as expected"


def test_changed_prompt_is_found():
    """Another system prompt is named as the place of the first difference."""
    store = MemoryStore()
    with open_session(store) as session:
        session.add("Hello")
        ask(session, system="It is noon.")
        answer(session, "Hi")
        session.add("Again")
        ask(session, system="It is midnight.")
        answer(session, "Hi", cached=0)
        with opened(store) as each:
            found = calls.call(each, calls.calls(each)["calls"][-1]["id"])
    assert found["strip"]["where"].startswith("system")
    assert "noon" in found["strip"]["then"]
    assert "midnight" in found["strip"]["now"]
    assert found["cache"]["reported"] == 0


@given(st.binary(max_size=60), st.binary(max_size=60), st.binary(max_size=60), st.binary(max_size=60))
def test_strips_never_overlap(start, middle, other, end):
    """What is the same at the start and at the end never counts a byte twice, and is the same."""
    then, now = start + middle + end, start + other + end
    strip = calls.compare(then, now)
    same, tail = strip["same"], strip["tail"]
    assert same + tail <= min(len(then), len(now))
    assert then[:same] == now[:same]
    assert then[len(then) - tail :] == now[len(now) - tail :]
    if same < min(len(then), len(now)):
        assert then[same] != now[same]


@given(st.recursive(st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3), max_leaves=8))
def test_paths_lead_to_the_value(value):
    """The path of a byte of a JSON text leads into the value that it belongs to."""
    data = json.dumps({"a": 1, "deep": {"list": value}}, separators=(",", ":")).encode()
    place = data.index(b'"list":') + len(b'"list":')
    assert calls.path_at(data, place).startswith("deep.list")
    assert calls.path_at(data, data.index(b"1")) == "a"


def test_messages_of_a_request_say_what_is_new():
    """The messages that the call before had are the same; the others are new."""
    store = MemoryStore()
    with open_session(store, window=100_000) as session:
        work(session, 2)
        with opened(store) as each:
            id = calls.calls(each)["calls"][-1]["id"]
            found = calls.call_messages(each, id, 0)["messages"]
            sent = json.loads(each.session.request(id))["messages"]
    assert [json.loads(message["json"]) for message in found] == sent
    states = [message["state"] for message in found]
    assert states[0] == "same"
    assert states[-1] == "new"
