"""What the digest says of messages."""

import json

import pytest

from windowsill.history.proposals import frame
from windowsill.messages import Image, Message, Text, ToolResult, ToolUse, text_message
from windowsill.summaries.collect import Failures, Outcome, collect, is_fault, is_refused, read_outcome
from windowsill.summaries.digest import CAPS, Command, Digest, Failure, File, Quote, Task, merge

pytestmark = pytest.mark.unit


def step(number, arguments, output, *, name="tool", is_error=False):
    """A call and its result."""
    use = ToolUse(id=f"c{number}", name=name, arguments=json.dumps(arguments))
    answer = ToolResult(tool_use_id=f"c{number}", content=(Text(text=output),), is_error=is_error)
    return [
        Message(role="assistant", blocks=(use,), id=f"a{number}"),
        Message(role="user", blocks=(answer,), id=f"r{number}"),
    ]


def collected(*messages, before=None):
    return collect([one for group in messages for one in group], before or Digest())


def said(text, role="assistant", id="m1"):
    return [text_message(role, text, id=id)]


def test_requests_are_quoted_with_their_message():
    """What the user asked for, and only what the user typed."""
    digest = collected(
        said("Mend the import.", "user", "m1"), said("<system-reminder>x</system-reminder>", "user", "m2")
    )
    assert digest.requests == [Quote(text="Mend the import.", id="m1")]


def test_a_request_has_the_address_of_its_picture():
    """The picture is gone with its message; under its address it can be looked at again."""
    picture = Image(url="https://x.test/cat.png")
    digest = collected([Message(role="user", blocks=(Text(text="Like this."), picture), id="m1")])
    assert digest.requests == [Quote(text="Like this. [a picture: https://x.test/cat.png]", id="m1")]


def test_files_are_listed_with_ranges_and_changes():
    """Reads with their lines, changes with their number, by any tool."""
    digest = collected(
        step(1, {"path": "a.py", "offset": 1, "limit": 20}, "1\tx"),
        step(2, {"path": "a.py", "offset": 15, "limit": 20}, "15\tx"),
        step(3, {"path": "a.py", "old_string": "x", "new_string": "y"}, "done"),
        step(4, {"command": "sed -n '3,9p' b.c"}, "int x;"),
    )
    assert digest.files == [
        File(path="a.py", read=((1, 34),), changes=1, id="r3"),
        File(path="b.c", read=((3, 9),), id="r4"),
    ]


def test_a_change_that_failed_is_an_error_and_no_change():
    """A refused edit did not happen."""
    digest = collected(
        step(1, {"path": "a.py", "old_string": "x", "new_string": "y"}, "String not found", is_error=True)
    )
    assert digest.files == []
    assert digest.errors == [Failure(text="String not found", source="a.py", id="r1")]


def test_commands_have_their_outcome():
    """What was run, how it ended, what it was for, and what it said."""
    digest = collected(step(1, {"command": "make test", "description": "Run the tests"}, "3 passed\n"))
    assert digest.commands == [
        Command(command="make test", failed=False, said="3 passed", about="Run the tests", id="r1")
    ]


def test_a_command_without_a_result_is_told_as_such():
    """A call that was cut off did not succeed."""
    assert collected(step(1, {"command": "make"}, "")[:1]).commands == [Command(command="make", failed=None, id="c1")]


def test_an_error_is_fixed_by_an_edit_of_the_file_it_names():
    """The change that followed is told with the error."""
    digest = collected(
        step(1, {"command": "make"}, "src/a.c:3:5: error: no"),
        step(2, {"path": "src/a.c", "old_string": "x", "new_string": "y"}, "done"),
    )
    assert [failure.fix for failure in digest.errors] == ["changed src/a.c"]


def test_an_error_is_fixed_when_the_same_command_passes():
    """Even when its output is trimmed in another way."""
    digest = collected(
        step(1, {"command": "make test 2>&1 | tail -5"}, "error: broken"),
        step(2, {"path": "b.py", "content": "x"}, "written"),
        step(3, {"command": "make test"}, "ok"),
    )
    assert [failure.fix for failure in digest.errors] == ["passed later"]


def test_an_error_of_a_tool_ends_when_the_same_tool_passes():
    """A booking that went through later is not open, nor a file that was found under another name."""
    digest = collected(
        step(1, {"flight": "HAT1"}, "Error: payment does not add up", name="book"),
        step(2, {"path": "src/conf.yml"}, "File does not exist", name="Read", is_error=True),
        step(3, {"path": "src/other.yml"}, "File does not exist", name="View", is_error=True),
        step(4, {"flight": "HAT1"}, '{"booked": true}', name="book"),
        step(5, {"path": "src/conf.yaml"}, "version: 2", name="Read"),
    )
    assert [error.fix for error in digest.errors] == ["passed later", "read src/conf.yaml", ""]


@pytest.mark.parametrize(
    ("output", "told"),
    [
        (
            "The user doesn't want to proceed with this tool use. To proceed, the user said:\nuse rebase",
            "rejected by the user: use rebase",
        ),
        ("The user doesn't want to proceed with this tool use. STOP what you are doing.", "rejected by the user"),
        ("Exit code 1\nAuto-merging a.go\n", "Auto-merging a.go"),
        ("Exit code 2", "Exit code 2"),
        ("The request was not valid:\n  amount is missing\n", "The request was not valid: amount is missing"),
    ],
)
def test_the_line_that_is_kept_of_a_failure_says_what_failed(output, told):
    """Not the exit code alone, nor a sentence that ends where the reason begins; words of the user are kept."""
    digest = collected(step(1, {"command": "git merge main"}, output, name="Bash", is_error=True))
    assert digest.errors[0].text == told


def test_a_failure_is_told_by_a_line_that_says_what_failed():
    """A bare FAIL is kept only where nothing better stands there."""
    digest = collected(
        step(1, {"command": "go test"}, "FAIL\n--- FAIL: TestLock (0.36s)\nFAIL", is_error=True),
        step(2, {"command": "go vet"}, "FAIL", is_error=True),
        step(3, {"path": "a.go"}, "<tool_use_error>File has not been read yet.</tool_use_error>", is_error=True),
    )
    assert [error.text for error in digest.errors] == [
        "--- FAIL: TestLock (0.36s)",
        "FAIL",
        "File has not been read yet.",
    ]


def test_sentences_of_an_answer_in_json_are_its_values():
    """What a model says as an object is told without keys and quotation signs."""
    digest = collected(said(json.dumps({"status": "ok", "message": "We decided to exchange the lamp in order #W1."})))
    assert [one.text for one in digest.decisions] == ["We decided to exchange the lamp in order #W1."]


def test_a_new_plan_takes_the_place_of_the_old_one_in_another_digest():
    """A plan that was written again as a whole ends what an earlier digest had planned; what was said stays open."""
    old = Digest(tasks=[Task(text="Phase 1", status="pending"), Task(text="Docs are missing.", status="said")])
    new = collected(step(1, {"todos": [{"content": "Add the lock", "status": "in_progress"}]}, "ok"))
    assert [task.text for task in merge(old, new).tasks] == ["Docs are missing.", "Add the lock"]
    assert [task.text for task in merge(merge(old, new), Digest()).tasks] == ["Docs are missing.", "Add the lock"]


def test_an_error_that_was_not_fixed_stays_open():
    """Another command's success says nothing about it."""
    digest = collected(step(1, {"command": "make"}, "error: broken"), step(2, {"command": "ls"}, "a"))
    assert [failure.fix for failure in digest.errors] == [""]


def test_a_plan_is_what_its_latest_call_says():
    """A list replaces the list before; an update changes one entry."""
    digest = collected(
        step(1, {"todos": [{"content": "old", "status": "pending"}]}, "ok"),
        step(2, {"todos": [{"content": "new", "status": "in_progress", "activeForm": "Doing new"}]}, "ok"),
    )
    assert digest.tasks == [Task(text="new", status="in_progress", note="Doing new")]


def test_a_task_goes_by_the_number_its_tool_gave_it():
    """An update names nothing but the number."""
    digest = collected(
        step(1, {"subject": "Write it"}, "Task #7 created successfully: Write it"),
        step(2, {"taskId": "7", "status": "completed"}, "Updated task #7"),
    )
    assert digest.tasks == [Task(text="Write it", status="completed", key="7")]


def test_a_thousand_errors_are_not_kept():
    """The latest are; and a success ends only those of its own command."""
    digest = collected(*(step(number, {"command": f"make {number}"}, "error: no") for number in range(1_000)))
    assert [failure.source for failure in digest.errors][-1] == "make 999"
    assert len(digest.errors) == CAPS["errors"]


def test_checkboxes_and_next_steps_are_tasks():
    """Whatever is written as open in a text."""
    digest = collected(said("- [x] read it\n- [ ] write it\nNext I will write the tests."))
    assert [(task.text, task.status) for task in digest.tasks] == [
        ("read it", "completed"),
        ("write it", "pending"),
        ("Next I will write the tests.", "said"),
    ]


def test_short_arguments_are_kept_with_their_tool_and_key():
    """A later call may need the same ones."""
    digest = collected(step(1, {"pattern": "def main", "path": "src/app"}, "none", name="mcp__files__search"))
    assert [(value.tool, value.key, value.text) for value in digest.values] == [
        ("mcp__files__search", "pattern", "def main"),
        ("mcp__files__search", "path", "src/app"),
    ]


def test_identifiers_of_outputs_are_kept_with_their_message():
    """What only a tool output has shown."""
    digest = collected(step(1, {"query": "open"}, '{"identifier": "ENT-98"}'))
    assert ("ENT-98", "r1") in [(name.text, name.id) for name in digest.names]


def test_an_excerpt_follows_the_edits():
    """A line that a later edit may quote stands as it is in the file now."""
    digest = collected(
        step(1, {"path": "a.py"}, "1\tdef f():\n2\t    return 1\n"),
        step(2, {"path": "a.py", "old_string": "    return 1", "new_string": "    return 2"}, "done"),
    )
    assert [one.text for one in digest.excerpts] == ["def f():\n    return 2"]


def test_an_earlier_digest_is_updated_not_nested():
    """The text of an earlier summary is not read again; its digest goes on."""
    before = Digest(messages=7, rules=[Quote(text="Never push.", id="m0")])
    old = text_message("user", frame("- you must never nest"), id="s1", metadata={"windowsill": "summary"})
    digest = collected([old], said("Always test.", "user", "m9"), before=before)
    assert [rule.text for rule in digest.rules] == ["Never push.", "Always test."]
    assert digest.messages == 8


def test_of_a_models_summary_the_telling_sentences_stay():
    """What a model wrote is in no digest; the most telling of it goes on."""
    text = frame("The root cause was a stale lock in store.py.", source="anthropic:m")
    digest = collected([text_message("user", text, id="s1", metadata={"windowsill": "summary"})])
    assert [one.text for one in digest.sentences] == ["The root cause was a stale lock in store.py."]


def test_the_quotations_of_a_marker_are_taken_over():
    """A marker without a digest still holds what the user asked for."""
    text = "[Memory Summary] 3 earlier messages\n  > (m3) first line\n  > second line\n  > (m5) another\n(End)"
    digest = collected([text_message("user", text, metadata={"windowsill": "marker"})])
    assert digest.requests == [Quote(text="first line\nsecond line", id="m3"), Quote(text="another", id="m5")]


def test_a_long_command_that_passes_later_ends_its_error():
    """What is kept of a command is compared, not all of it."""
    command = "make " + "target " * 200
    digest = collected(step(1, {"command": command}, "error: broken"), step(2, {"command": command}, "all good"))
    assert [one.fix for one in digest.errors] == ["passed later"]


def test_names_of_tools_and_arguments_are_cut():
    """A digest does not grow with what a tool is called."""
    digest = collected(step(1, {"k" * 9_000: "some value"}, "done", name="t" * 9_000))
    assert [(len(one.key), len(one.tool)) for one in digest.values] == [(120, 120)]


@pytest.mark.parametrize("gap", [" ", "\n", "\t", "\r\n", " \n"])
def test_long_gaps_are_passed_over(gap):
    """Half a million blanks in words, a command or an output: expressions that look back at each would take hours."""
    wide = gap * (500_000 // len(gap))
    words = f"- [ ] first task\n{wide}- [x] second"
    digest = collected(
        said(words, role="user"), said(words), step(1, {"command": f"make a{wide}b"}, f"exit{wide}"), said("done")
    )
    assert digest.tasks[0].text == "first task"


TRACE = 'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    g()\nValueError: no such thing: 3\n'


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (TRACE, "ValueError: no such thing: 3"),
        ("building\nerror: cannot find crate `x`\nmore", "error: cannot find crate `x`"),
        ("src/a.c:3:5: error: expected ';'", "src/a.c:3:5: error: expected ';'"),
        ("bash: foo: command not found", "bash: foo: command not found"),
        ("=== RUN TestX\n--- FAIL: TestX (0.00s)", "--- FAIL: TestX (0.00s)"),
        ("fatal: not a git repository", "fatal: not a git repository"),
        ("[lint] ERROR task failed", "[lint] ERROR task failed"),
        ("エラー: ファイルがありません", "エラー: ファイルがありません"),
    ],
)
def test_a_failure_is_seen_and_its_line_kept(text, line):
    """Tracebacks, compilers, shells and test runners, English and Japanese."""
    assert read_outcome(text, is_error=False, shows_files=False) == Outcome(failed=True, exit=None, said=line)


@pytest.mark.parametrize(
    ("text", "code"), [("oops\nExit code: 2", 2), ('{"exit_code": 1}', 1), ("Process exited with code 127", 127)]
)
def test_exit_codes_are_read(text, code):
    """An exit code is kept as a number."""
    end = read_outcome(text, is_error=False, shows_files=False)
    assert (end.failed, end.exit) == (True, code)


def test_an_exit_code_of_nothing_is_success_whatever_the_words():
    """The program's own word counts more than what it printed."""
    end = read_outcome("error: ignored\nexit code: 0", is_error=False, shows_files=False)
    assert (end.failed, end.exit) == (False, 0)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("....\n12 passed in 0.3s\n", "12 passed in 0.3s"),
        ("[main 1a2b3c4] Mend it\n 1 file changed", "[main 1a2b3c4] Mend it"),
        ("a\nb\nlast", "last"),
        ("0 errors found", "0 errors found"),
    ],
)
def test_of_a_success_the_telling_line_is_kept(text, line):
    """Test counts and commits, else the last line."""
    assert read_outcome(text, is_error=False, shows_files=False) == Outcome(failed=False, exit=None, said=line)


def test_words_in_a_file_are_no_error():
    """A file may well be about errors."""
    assert not read_outcome("error: this is documentation", is_error=False, shows_files=True).failed


def test_what_the_provider_marks_as_an_error_is_one():
    """Even when the text does not look like it."""
    assert read_outcome("User said no.", is_error=True, shows_files=True) == Outcome(failed=True, said="User said no.")


def test_a_refusal_is_seen_in_a_short_answer_only():
    """The contents of a long file are not searched for it."""
    assert is_refused("<tool_use_error>File has not been read</tool_use_error>")
    assert not is_refused("was rejected " + "x" * 10_000)


@pytest.mark.parametrize(
    ("text", "code"), [("exit code -1", -1), ("exit code: 4294967295", 4294967295), ("終了コード: 2", 2)]
)
def test_exit_codes_of_other_systems_are_read(text, code):
    """Signs, Windows' large numbers and Japanese."""
    assert read_outcome(text, is_error=False, shows_files=False) == Outcome(failed=True, exit=code, said=text)


@pytest.mark.parametrize(
    "line",
    [
        "make: *** [Makefile:3: all] Error 2",
        "npm ERR! code ELIFECYCLE",
        "test result: FAILED. 1 passed",
        "1 failed, 3 passed",
    ],
)
def test_failures_of_builds_and_test_runs_are_seen(line):
    """Where no exit code is shown, the line that reports the failure tells."""
    assert read_outcome(f"start\n{line}", is_error=False, shows_files=False) == Outcome(failed=True, said=line)


def test_a_run_without_failures_is_none():
    """A count of nothing is no failure."""
    assert not read_outcome("5 passed, 0 failed\ntest result: ok. 0 failed", is_error=False, shows_files=False).failed


def test_only_the_latest_errors_are_held():
    """Each success is checked against a few errors, however many there were."""
    failures = Failures([])
    for number in range(1_000):
        failures.add(Failure(text="no", source=f"make {number}"))
    assert [one.source for one in failures.all()][:: CAPS["errors"] - 1] == ["make 960", "make 999"]


def test_a_change_and_a_later_success_are_both_told():
    """What was changed, and that it helped."""
    failures = Failures([Failure(text="a.py:3: error: no", source="make test")])
    failures.note_success("", ["src/a.py"])
    failures.note_success("make test | tail -3", [])
    assert [one.fix for one in failures.all()] == ["changed src/a.py; passed later"]


def test_an_error_that_comes_back_is_open_again():
    """A fix that did not last is none."""
    failures = Failures([Failure(text="no", source="make", fix="passed later")])
    failures.add(Failure(text="no", source="make"))
    assert [one.fix for one in failures.all()] == [""]


@pytest.mark.parametrize(
    "answer",
    [
        "Error: gift card balance is not enough",
        '{"error": "no such order"}',
        '{"success": false, "reason": "late"}',
        "HTTP 500 from the invoice service",
        "エラー: 在庫がありません",
    ],
)
def test_a_failure_of_any_tool_is_noted(answer):
    """Not only shells fail, and few tools say so with a flag."""
    assert is_fault(answer)


@pytest.mark.parametrize("answer", ['{"error": null, "id": 7}', "3 orders found", "No errors were found in the log."])
def test_an_answer_that_only_speaks_of_errors_is_none(answer):
    """What a tool found is no failure of the tool."""
    assert not is_fault(answer)
