"""Branches and checkpoints as a tree, the difference of two moments, state and tools, and what can be changed."""

import msgspec
import pytest

from support.inspected import CHANGES, open_session, opened, page, work
from windowsill.inspector import history, overview
from windowsill.inspector.history import parent_of
from windowsill.state.changes import Put, Set
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.unit


@pytest.fixture
def store():
    return MemoryStore()


@pytest.fixture
def session(store):
    with open_session(store) as made:
        work(made, 3)
        yield made


def do(store, **body):
    with page(store) as client:
        return client.post("/api/do?session=work", json=body, headers=CHANGES)


def test_tree_has_forks_checkpoints_and_ends(store, session):
    """Every branch hangs on the moment where it left another, and checkpoints lie on their branch."""
    named = session.checkpoint("before the detour")
    work(session, 1, first=10)
    left = session.journal.entry(session.journal.version).id
    session.restore("before the detour")
    work(session, 1, first=20)
    with opened(store) as each:
        found = history.history(each)
    assert [(end["id"], end["current"]) for end in found["branches"]][1:] == [(left, False)]
    nodes = {node["id"]: node for node in found["tree"]}
    assert nodes["e0"]["parent"] is None
    assert all(node["parent"] in nodes for node in found["tree"][1:])
    assert nodes[named.id]["label"] == "before the detour"
    assert [checkpoint["name"] for checkpoint in found["checkpoints"] if checkpoint["name"]] == ["before the detour"]
    ends = [node for node in found["tree"] if node["kind"] == "end"]
    assert [node["current"] for node in ends] == [False, True]
    assert {node["parent"] for node in ends} != {"e0"}


def test_diff_names_what_left_and_what_came(store, session):
    """Between a moment and now: new messages are added, folded ones are removed by their fold."""
    moment = list(session.messages())[-1].id
    messages = list(session.messages())
    session.add("Something new.")
    fold = session.fold(messages[1].id, messages[3].id, text="a stand-in")
    with opened(store) as each:
        found = history.diff(each, moment, "now")
    assert [item["text"] for item in found["added"]] == ["a stand-in", "Something new."]
    assert {item["why"] for item in found["removed"]} == {f"folded by {fold}"}
    assert found["same"] > 0
    with opened(store) as each:
        assert history.diff(each, "now", "now")["added"] == []


def test_state_tools_and_policies_are_told(store, session):
    """The layers that are stated, the tools of the last request, and the changes, the newest first."""
    session.state.patch(Set("task.goal", "Read all files."), reason="the user said so")
    session.state.patch(Put("system.policies", {"id": "p1", "rule": "Never delete."}))
    with opened(store) as each:
        found = overview.state(each)
    assert found["empty"] is False
    assert found["state"]["task"]["goal"] == "Read all files."
    assert "success_criteria" not in found["state"]["task"]
    assert found["policies"][0]["rule"] == "Never delete."
    assert [tool["name"] for tool in found["tools"]["offered"]] == ["read_file"]
    assert found["tools"]["offered"][0]["calls"] == 3
    assert [change["text"] for change in found["changes"]] == [
        "changed system.policies",
        "changed task.goal: the user said so",
    ]


def test_sub_agents_hang_on_their_main_agent():
    """The session of a sub-agent behind the proxy belongs to that of the main agent of the same owner."""
    assert parent_of("claude-1-agent-a~owner") == "claude-1~owner"
    assert parent_of("claude-1~owner") is None
    assert parent_of("my session") is None


def test_threads_are_listed():
    """A conversation lists its main agent and its sub-agents, and no other owner's."""
    store = MemoryStore()
    for id in ("claude-1~me", "claude-1-agent-a~me", "claude-1~you", "other"):
        open_session(store, id).close()
    with opened(store, "claude-1~me") as each:
        assert {thread["id"]: thread["relation"] for thread in history.threads(each)} == {
            "claude-1~me": "self",
            "claude-1-agent-a~me": "child",
        }
    with opened(store, "other") as each:
        assert history.threads(each) == []


def test_a_fold_stands_once_in_the_history(store, session):
    """The page draws folds from their own list, with reason and price: the tree has only what they stand between."""
    messages = list(session.messages())
    session.fold(messages[1].id, messages[3].id)
    session.add("Something new.")
    with opened(store) as each:
        assert {node["kind"] for node in history.history(each)["tree"]} == {"start", "end"}


def test_unfold_by_hand(store, session):
    """Unfolding brings everything back, and says so in the history."""
    messages = list(session.messages())
    fold = session.fold(messages[1].id, messages[3].id)
    before = session.view.tokens()
    answer = do(store, do="unfold", fold=fold)
    assert answer.status_code == 200, answer.text
    session.journal.refresh()
    assert "in the inspector" in session.audit[-1].what
    assert session.view.tokens() > before
    assert do(store, do="unfold", fold=fold).json()["error"]["kind"] == "conflict"


def test_unfold_what_fits(store, session):
    """As much as the budget allows comes back; the rest stays behind a marker."""
    messages = list(session.messages())
    fold = session.fold(messages[1].id, messages[-1].id, text="all of it")
    answer = do(store, do="unfold", fold=fold, fit=True)
    assert answer.status_code == 200, answer.text
    assert do(store, do="unfold", fold=fold, span="x").status_code == 400


def test_rewind_and_back(store, session):
    """Going back leaves a branch, whose id is in the answer; switching to it brings everything back."""
    messages = list(session.messages())
    answer = do(store, do="rewind", message=messages[0].id).json()
    session.journal.refresh()
    assert len(list(session.messages())) == 1
    assert do(store, do="switch", to=answer["left"]).status_code == 200
    session.journal.refresh()
    assert list(session.messages()) == messages


def test_checkpoint_and_restore(store, session):
    """A moment that was named can be returned to; an unknown one is told."""
    made = do(store, do="checkpoint", name="here").json()
    session.add("later")
    assert do(store, do="restore", checkpoint="here", what="conversation").status_code == 200
    session.journal.refresh()
    assert "later" not in [message.text for message in session.messages()]
    assert made["text"] == "made the checkpoint here"
    assert do(store, do="restore", checkpoint="nowhere").status_code == 404
    assert do(store, do="restore", checkpoint="here", what="everything").status_code == 400
    assert do(store, do="restore").status_code == 400


def test_pin_and_unpin(store, session):
    """A message can be kept from being hidden, and let go."""
    first = next(session.messages()).id
    assert do(store, do="pin", message=first).status_code == 200
    session.journal.refresh()
    assert session.view.items[0].pinned
    do(store, do="unpin", message=first)
    session.journal.refresh()
    assert not session.view.items[0].pinned


def test_engines_tell_what_they_do(store, session):
    """A session with a state is listed with its phase and what it has used."""
    session.state.patch(Set("task.goal", "Read all files."))
    with page(store) as client:
        (engine,) = client.get("/api/metrics").json()["engines"]
    assert engine["session"] == "work"
    assert engine["goal"] == "Read all files."
    assert engine["running"] is False


def test_comparisons_are_read_from_a_folder(tmp_path):
    """A record of evaluations is a table; other files of the folder are passed over."""
    run = {"name": "a", "kind": "task", "success": True, "calls": 3, "tokens": 100}
    made = {"at": 1.0, "configurations": {"plain": {}}, "runs": {"plain": [run]}}
    (tmp_path / "windowsill-evaluations.jsonl").write_bytes(msgspec.json.encode(made) + b"\n")
    (tmp_path / "package.json").write_text('{"name": "other"}')
    (tmp_path / "broken.json").write_bytes(b"\xff{")
    (found,) = overview.comparisons(tmp_path)["files"]
    assert found["kind"] == "evaluate"
    assert dict(zip(found["columns"], found["rows"][0], strict=True))["calls"] == 3
    assert overview.comparisons(None)["files"] == []
