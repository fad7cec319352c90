"""Hostile transcripts, damage, other processes: the page gets an answer that it can show, and nothing runs."""

import json
import sqlite3
import subprocess
import sys
import textwrap

import pytest

from support.inspected import CHANGES, open_session, opened, page, work
from support.stores import child_env
from windowsill.inspector import window
from windowsill.inspector.server import encode
from windowsill.store import open_store
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.integration

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "NUL \0 inside",
    "right \u202e to left \u2066 and \u2028 line",
    "\x1b[31mred\x1b[0m",
    "a" * 1_000_000,
    "\n" * 5_000,
    "emoji 👩‍👩‍👧‍👦 and \U0010ffff",
    "]]><!--",
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts_arrive_as_they_are(text):
    """Whatever a transcript says arrives as data, letter for letter."""
    store = MemoryStore()
    with open_session(store, window=2_000_000) as session:
        id = session.add(text)
        session.checkpoint("</script>")
    with page(store) as client:
        for path in ("window", "items", "calls", "folds", "history", "state", f"message?id={id}"):
            name, _, rest = path.partition("?")
            answer = client.get(f"/api/{name}?session=work&{rest}")
            assert answer.status_code == 200, (path, answer.text[:200])
        shown = client.get(f"/api/message?session=work&id={id}").json()["blocks"][0]["text"]
    assert shown == text[:4_000]


def test_halves_of_surrogate_pairs_arrive():
    """A text with half a surrogate pair, which has no bytes, is sent as an escape."""
    body = b'{"role": "user", "content": "half \\ud800 of it"}'
    store = MemoryStore()
    with open_session(store) as session:
        session.add(json.loads(body), format="anthropic")
    with page(store) as client:
        answer = client.get("/api/items?session=work&page=0")
    assert answer.status_code == 200, answer.text
    assert "half" in answer.json()["items"][0]["blocks"][0]["text"]
    assert json.loads(encode({"text": "\ud800"})) == {"text": "\ud800"}


def test_odd_names_of_sessions_work():
    """A session may be named like a path, a script or a question."""
    for id in ("a/b?c=d&e#f", "<script>", "..", "日本 語", "%2e%2e"):
        store = MemoryStore()
        with open_session(store, id) as session:
            session.add("Hello")
        with page(store) as client:
            answer = client.get("/api/window", params={"session": id})
            assert answer.json()["session"] == id
            assert client.get("/api/sessions").json()["sessions"][0]["id"] == id


def test_damaged_session_says_so(tmp_path):
    """A session whose entries were overwritten is an error with a remedy; the others are still shown."""
    store = open_store(tmp_path)
    for id in ("broken", "sound"):
        with open_session(store, id) as session:
            work(session, 2)
    store.close()
    with sqlite3.connect(tmp_path / "sessions.db") as db:
        db.execute("UPDATE entry SET meta = x'00ff' WHERE session = (SELECT key FROM session WHERE id = 'broken')")
    store = open_store(tmp_path)
    with page(store) as client:
        for path in ("window", "items", "calls", "history"):
            answer = client.get(f"/api/{path}?session=broken")
            assert answer.status_code == 500, path
            assert answer.json()["error"]["kind"] == "damaged", path
            assert answer.json()["error"]["remedy"], path
        listed = {each["id"]: each for each in client.get("/api/sessions").json()["sessions"]}
        assert listed["broken"]["damaged"]
        assert listed["sound"]["damaged"] is None
        assert client.get("/api/window?session=sound").status_code == 200
    store.close()


def test_damaged_request_says_so(tmp_path):
    """A call whose parts are gone is an error with a remedy, and the window is still shown."""
    store = open_store(tmp_path)
    with open_session(store) as session:
        work(session, 2)
        call = session.calls[-1].id
    store.close()
    with sqlite3.connect(tmp_path / "sessions.db") as db:
        db.execute("DELETE FROM blob")
    store = open_store(tmp_path)
    with page(store) as client:
        answer = client.get(f"/api/call?session=work&id={call}")
        assert (answer.status_code, answer.json()["error"]["kind"]) == (500, "damaged")
        assert client.get("/api/items?session=work&page=0").status_code == 200
        assert "missing" in client.get("/api/window?session=work").json()["notes"][0]
    store.close()


def test_agent_in_another_process_is_followed(tmp_path):
    """What another process writes is in the next answer, folds and rewinds too."""
    store = open_store(tmp_path)
    with open_session(store) as session:
        work(session, 1)
    agent = textwrap.dedent(
        """
        import sys
        from support.inspected import open_session, work
        with open_session(sys.argv[1]) as session:
            work(session, 12, first=5)
            session.rewind(list(session.messages())[-3].id)
        """
    )
    with page(store) as client:
        before = client.get("/api/window?session=work").json()
        subprocess.run([sys.executable, "-c", agent, str(tmp_path)], check=True, env=child_env())
        after = client.get("/api/window?session=work").json()
        items = client.get("/api/items?session=work&page=0").json()["items"]
        calls = client.get("/api/calls?session=work").json()
    with opened(store) as each:
        assert after["tokens"] == window.window(each)["tokens"]
        assert [item["id"] for item in items] == [item.id for item in each.session.view.items]
    assert after["version"] > before["version"]
    assert len(calls["calls"]) == 26
    assert {"fold", "rewind"} <= {event["kind"] for event in calls["events"]}
    store.close()


def test_server_that_starts_again_answers_the_same(tmp_path):
    """A page that asks a new server with the tag of the old one is told that nothing changed."""
    store = open_store(tmp_path)
    with open_session(store) as session:
        work(session, 2)
    with page(store) as client:
        tag = client.get("/api/window?session=work").headers["etag"]
    store.close()
    store = open_store(tmp_path)
    with page(store) as client:
        assert client.get("/api/window?session=work", headers={"if-none-match": tag}).status_code == 304
    store.close()


def test_deleted_session_is_gone():
    """A session that was deleted while it was looked at is told as not found, and one of its name is another."""
    store = MemoryStore()
    with open_session(store) as session:
        session.add("one")
        session.add("two")
    with page(store) as client:
        assert client.get("/api/window?session=work").json()["items"] == 2
        store.delete("work")
        assert client.get("/api/window?session=work").status_code == 404
        assert client.post("/api/do?session=work", json={"do": "checkpoint"}, headers=CHANGES).status_code == 404
        with open_session(store) as session:
            session.add("another")
        assert client.get("/api/window?session=work").json()["items"] == 1


def test_session_begun_again_under_its_name_is_another():
    """Nothing of a session that was deleted is shown of one that has its name, however far that one came."""
    store = MemoryStore()
    with open_session(store) as session:
        work(session, 2)
    with page(store) as client:
        assert len(client.get("/api/calls?session=work").json()["calls"]) == 4
        store.delete("work")
        with open_session(store) as session:
            work(session, 3)
        assert len(client.get("/api/calls?session=work").json()["calls"]) == 6
        assert client.get("/api/sessions").json()["sessions"][0]["figures"]["calls"] == 6
