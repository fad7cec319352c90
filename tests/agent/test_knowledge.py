"""Criteria of the task text, preferences, skills and templates of files, and what the audit settings keep."""

import pytest

from support.agents import Shop, engine
from support.sessions import opened
from windowsill import Session
from windowsill.agent.knowledge import find_criteria
from windowsill.errors import InputError
from windowsill.session.audit import tool_decisions
from windowsill.session.snapshots import snapshot_folder
from windowsill.testing import Call

pytestmark = pytest.mark.integration

TASK = """Mend the kiln.

## Acceptance criteria
- the kiln reaches 900 degrees
* [ ] all tests pass.

The rest is up to you:
- take your time
"""


@pytest.mark.parametrize(
    ("task", "found"),
    [
        (TASK, ["the kiln reaches 900 degrees", "all tests pass"]),
        ("Fix it. \nDone when: the build is green.", ["the build is green"]),
        ("直してください。\n完了条件:\n・テストが通る\n・文書がある", ["テストが通る", "文書がある"]),
        ("Success criteria:\n1. one\n\n2. two\n2) two", ["one", "two"]),
        ("You must hurry. Requirements:\n- python", []),
        ("Acceptance criteria are in docs/criteria.md\n- x", []),
        ("What are the success criteria of a project?", []),
        ("", []),
    ],
)
def test_criteria_are_those_that_a_task_lists_under_their_heading(task, found):
    """Bullets, numbers or the rest of the line; other lists and sentences are no criteria."""
    assert [each.description for each in find_criteria(task)] == found


def test_the_criteria_of_a_task_are_verified():
    """As if they had been given; those that are given win."""
    running = engine(["Done."], validators={"all tests pass": lambda _: True})
    running.run_sync(TASK)
    found = running.session.state.value.task.success_criteria
    assert [each.description for each in found] == ["the kiln reaches 900 degrees", "all tests pass"]
    other = engine(["Done."])
    other.run_sync(TASK, criteria=["it is warm"])
    assert [each.description for each in other.session.state.value.task.success_criteria] == ["it is warm"]


@pytest.fixture
def folder(tmp_path):
    """Make the files of a user."""
    (tmp_path / "preferences.toml").write_text('[style]\nindent = "tabs"\nwidth = 100\n', "utf-8")
    (tmp_path / "skills" / "glaze").mkdir(parents=True)
    skill = "---\nname: glazing\ndescription: Glaze a pot in the kiln\n---\n# How\n1. heat the kiln\n2. wait\n"
    (tmp_path / "skills" / "glaze" / "SKILL.md").write_text(skill, "utf-8")
    (tmp_path / "skills" / "invoices.md").write_text("Write the sum first.\n\nThen the date.\n", "utf-8")
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "letter.md").write_text("Dear {name}", "utf-8")
    return tmp_path


def test_preferences_skills_and_templates_come_from_files(folder):
    """The model is told them; a second run changes nothing."""
    running = engine(["Done.", "Done."], knowledge=folder)
    running.run_sync("Glaze the pot.")
    memory = running.session.state.value.memory
    assert {(each.name, each.value) for each in memory.semantic.preferences} == {("indent", "tabs"), ("width", 100)}
    assert [(each.name, each.steps) for each in memory.procedural.skills] == [
        ("glazing", ("heat the kiln", "wait")),
        ("invoices", ("Write the sum first.", "Then the date.")),
    ]
    assert [each.content for each in memory.procedural.templates] == ["Dear {name}"]
    told = str(running.model.requests[0]["messages"])
    assert "tabs" in told
    assert "heat the kiln" in told
    assert "Then the date" not in told
    running.run_sync("Once more.")
    assert running.session.state.value.memory.procedural == memory.procedural


def test_a_file_that_cannot_be_read_is_named(folder):
    """With what to do, before anything is asked."""
    (folder / "preferences.toml").write_text("indent = 'tabs'\n", "utf-8")
    with pytest.raises(InputError, match=r"preferences.toml: 'indent' stands in no table"):
        engine(["Done."], knowledge=folder).run_sync("Go.")


def test_the_users_own_folder_is_read_and_that_of_a_project_is_not(folder, monkeypatch, tmp_path_factory):
    """A folder `.windowsill` may have come with somebody else's project."""
    project = tmp_path_factory.mktemp("project")
    folder.rename(project / ".windowsill")
    monkeypatch.chdir(project)
    monkeypatch.delenv("WINDOWSILL_HOME", raising=False)
    running = engine(["Done."])
    running.run_sync("Go.")
    assert running.session.state.value.memory.semantic.preferences == ()
    monkeypatch.setenv("WINDOWSILL_HOME", str(project / ".windowsill"))
    running = engine(["Done."])
    running.run_sync("Go.")
    assert len(running.session.state.value.memory.semantic.preferences) == 2


def test_the_audit_settings_decide_what_is_kept():
    """Without a log the state lists no ended calls and records no decision; the messages are there all the same."""
    session = opened(budget=60_000)
    session.state.set("system.audit", {"log_tool_calls": False, "log_decisions": False})
    running = engine([Call("put", {"path": "a.py"}), Call("look", {"path": "a.py"}), "Done."], session=session)
    assert running.run_sync("Go.").ok
    assert session.state.value.runtime.execution.tool_calls == ()
    assert tool_decisions(session.journal) == []
    plain = engine([Call("put", {"path": "a.py"}), "Done."])
    plain.run_sync("Go.")
    assert len(plain.session.state.value.runtime.execution.tool_calls) == 1
    assert tool_decisions(plain.session.journal)


def test_what_happened_leaves_the_state_after_its_days():
    """90 by default; the history has it for ever."""
    now = [1_000_000_000.0]
    session = Session.open("s", model="claude-sonnet-4-5", store=":memory:", config=False, clock=lambda: now[0])
    session.state.put("runtime.execution.errors", {"message": "old"})
    now[0] += 89 * 86_400
    session.state.put("runtime.execution.errors", {"message": "newer"})
    now[0] += 2 * 86_400
    engine(["Done."], session=session).run_sync("Go.")
    assert [each.message for each in session.state.value.runtime.execution.errors] == ["newer"]
    assert any("execution.errors" in str(event) for event in session.state.history)


def test_snapshots_are_written_where_there_is_a_folder(tmp_path):
    """Without being asked for; a session in memory has none."""
    session = opened(tmp_path / "sessions.db", budget=60_000)
    engine(
        [Call("look", {"path": "a"}), "Done."], session=session, shop=Shop(), phases=("planning", "executing")
    ).run_sync("Go.")
    assert list(snapshot_folder(session.journal.store, session.id).glob("*"))
    assert engine(["Done."]).run_sync("Go.").notes == ()


def test_condense_keeps_ten_messages_in_an_engine():
    """Unless the user states another number; outside of the run it is that of the profile."""
    for strategy, keep in (("condense", 10), ("condense:keep=4", 4), ("mask+condense", 10)):
        session = opened(budget=60_000, strategy=strategy)
        before, seen = session.composer.strategy, []
        engine(["Done."], session=session, listen=lambda _, s=session, k=seen: k.append(s.composer.strategy)).run_sync(
            "Go."
        )
        stages = getattr(seen[0], "stages", (seen[0],))
        assert stages[-1].keep == keep
        assert session.composer.strategy is before
