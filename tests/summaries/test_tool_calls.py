"""What a call did, by the shape of its arguments."""

import pytest

from windowsill.shell import TouchedFile
from windowsill.summaries.digest import Task
from windowsill.summaries.tool_calls import Edit, recognise

pytestmark = pytest.mark.unit

PATCH = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** Add File: b.md\n+z\n*** End Patch"


def test_a_path_alone_is_a_read():
    """Whatever the tool is called."""
    assert recognise({"target_file": "src/a.py"}).kind == "read"
    assert recognise({"notebook_path": "n.ipynb"}).touched == (TouchedFile(path="n.ipynb", changed=False),)


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ({"file_path": "a.py", "offset": 10, "limit": 5}, (10, 14)),
        ({"path": "a.py", "start_line": 3, "end_line": 9}, (3, 9)),
        ({"path": "a.py", "command": "view", "view_range": [2, 8]}, (2, 8)),
        ({"path": "a.py", "limit": 50}, (1, 50)),
        ({"path": "a.py"}, (1, 0)),
    ],
)
def test_the_lines_of_a_read_are_known(arguments, lines):
    """Offsets and limits, first and last lines, and pairs all name a range."""
    assert recognise(arguments).touched == (TouchedFile(path="a.py", changed=False, range=lines),)


@pytest.mark.parametrize(
    ("arguments", "edit"),
    [
        ({"file_path": "a.py", "old_string": "x", "new_string": "y"}, Edit(path="a.py", old="x", new="y")),
        (
            {"path": "a.py", "command": "str_replace", "old_str": "x", "new_str": "y"},
            Edit(path="a.py", old="x", new="y"),
        ),
        ({"path": "a.py", "content": "all"}, Edit(path="a.py", old="", new="all")),
        ({"path": "a.py", "old_string": "x", "new_string": ""}, Edit(path="a.py", old="x", new="")),
        ({"notebook_path": "n.ipynb", "new_source": ["a\n", "b"]}, Edit(path="n.ipynb", old="", new="a\nb")),
    ],
)
def test_a_path_with_new_words_is_a_change(arguments, edit):
    """Replacements, whole files, editor commands and notebook cells."""
    action = recognise(arguments)
    assert (action.kind, action.edits) == ("change", (edit,))


def test_several_edits_in_one_call_are_all_taken():
    """A list of replacements is a change with each of them."""
    action = recognise({"path": "a.py", "edits": [{"oldText": "x", "newText": "y"}, {"oldText": "p", "newText": "q"}]})
    assert action.edits == (Edit(path="a.py", old="x", new="y"), Edit(path="a.py", old="p", new="q"))


@pytest.mark.parametrize("arguments", [{"input": PATCH}, {"patch": PATCH}, {"_text": PATCH}])
def test_a_patch_changes_the_files_it_names(arguments):
    """The text of a patch says which files it changes, wherever it stands."""
    assert recognise(arguments).touched == (
        TouchedFile(path="src/a.py", changed=True),
        TouchedFile(path="b.md", changed=True),
    )


def test_a_unified_diff_changes_the_files_it_names():
    """Headers of a diff count as well."""
    assert recognise({"diff": "--- a/x.c\n+++ b/x.c\n@@ -1 +1 @@"}).touched == (TouchedFile(path="x.c", changed=True),)


@pytest.mark.parametrize(
    "arguments", [{"command": "go test ./..."}, {"cmd": "go test ./..."}, {"command": ["bash", "-lc", "go test ./..."]}]
)
def test_a_command_is_known_by_its_argument(arguments):
    """As a text, or as a list with a script at its end."""
    assert recognise(arguments).command == "go test ./..."


def test_a_command_list_without_a_script_is_joined():
    """Words of a command are one command."""
    assert recognise({"command": ["git", "status"]}).command == "git status"


def test_a_pattern_is_a_search():
    """Even when a path says where."""
    assert recognise({"pattern": "def main", "path": "src/app"}).kind == "search"


def test_a_list_with_states_is_a_whole_plan():
    """Plans of any tool: words and a status each."""
    action = recognise({"plan": [{"step": "read", "status": "completed"}, {"step": "write", "status": "in_progress"}]})
    assert action.replaces
    assert action.tasks == (Task(text="read", status="completed"), Task(text="write", status="in_progress"))


def test_one_task_can_be_made_and_updated():
    """A task has a subject when it is made, and an id when it changes."""
    assert recognise({"subject": "Write it"}).tasks == (Task(text="Write it", status="pending"),)
    assert recognise({"taskId": "4", "status": "completed"}).tasks == (Task(text="", status="completed", key="4"),)


@pytest.mark.parametrize(
    "arguments", [{}, {"id": "ENT-1"}, {"url": "https://x.y/z"}, {"path": "https://x.y/z"}, {"n": 3}]
)
def test_other_calls_are_left_as_they_are(arguments):
    """Nothing is made up about a call that shows no known shape."""
    assert recognise(arguments).kind == "other"


@pytest.mark.parametrize("lines", [[-5, 2**70], [2**40, 2**41]])
def test_numbers_that_are_no_lines_are_none(lines):
    """They could not be stored."""
    assert recognise({"path": "a.py", "view_range": lines}).touched[0].range == (1, 0)


def test_entries_of_a_plan_are_cut():
    """A digest does not grow with what a tool is given."""
    entry = {"content": "w" * 9_000, "status": "s" * 900, "id": "i" * 900, "note": "n" * 9_000}
    task = recognise({"todos": [entry] * 900}).tasks[-1]
    assert [len(task.text), len(task.status), len(task.key), len(task.note)] == [1_000, 80, 80, 1_000]
