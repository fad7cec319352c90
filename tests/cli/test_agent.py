"""`windowsill agent` as a user runs it: on a folder, with a server that speaks as providers do.

What ends a process, reads from a pipe or needs a terminal runs in a process of its own; the rest in this one.
"""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Event

import pytest

from support import mcp_server
from support.agents import results
from support.cli_calls import Done
from support.cli_calls import call as call_cli
from windowsill import Session, open_store
from windowsill.testing import Answer, Call, Server

pytestmark = pytest.mark.end_to_end

AGENT = [sys.executable, "-m", "windowsill", "agent"]
MCP = f"{sys.executable} {Path(mcp_server.__file__)}"
TASK = "Make it say good morning."
PLANNED = [
    Answer(calls=(Call("update_plan", {"steps": [{"description": "greet", "status": "completed"}]}),)),
    Answer(text="I have a plan."),
]
"""How each task begins."""


class Agent:
    """A folder with one file, a model that plays a script, and the command that lets it work there."""

    def __init__(self, tmp_path, format="anthropic"):
        self.folder = tmp_path / "work"
        self.folder.mkdir()
        (self.folder / "app.py").write_text("print('hello')\n")
        self.store = tmp_path / "store"
        self.format = format
        self.script = iter(())
        self.server = Server(self.respond)

    def respond(self, _):
        said = next(self.script)
        return said() if callable(said) else said

    def arguments(self, *options):
        models = {"anthropic": "claude-sonnet-5@{}", "openai": "gpt-5@{}/v1"}
        spec = f"{self.format}:{models[self.format].format(self.server.url)}"
        places = ["--session", "s", "--store", str(self.store)]
        return [TASK, "--folder", str(self.folder), "--model", spec, *places, *options]

    def command(self, *options):
        return [*AGENT, *self.arguments(*options)]

    def begins(self, *answers):
        self.script = iter([*PLANNED, *answers])

    def run(self, *options, input=""):
        """Run the command inside this process."""
        return call_cli("agent", *self.arguments(*options), input=input.encode())

    def run_process(self, *options, **settings):
        done = subprocess.run(
            self.command(*options), capture_output=True, text=True, check=False, timeout=180, **settings
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def start(self, *options, **settings):
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        return subprocess.Popen(self.command(*options), text=True, **streams, **settings)

    def resume(self, *options):
        """Go on by the name of the session alone."""
        return call_cli("agent", "--session", "s", "--store", self.store, "--folder", self.folder, *options)

    def session(self):
        return Session.open("s", store=self.store)


@pytest.fixture
def agent(tmp_path):
    made = Agent(tmp_path)
    with made.server:
        yield made


def call(name, /, **arguments):
    return Call(name, arguments)


def waited_for(condition):
    """Return what it gives when it is no longer false."""
    end = time.monotonic() + 180
    while not (found := condition()):
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)
    return found


def is_gone(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("format", ["anthropic", "openai"])
def test_it_reads_edits_runs_and_reports(tmp_path, format):
    """The files are changed, what happens is shown, the session has it all, and no request is refused."""
    agent = Agent(tmp_path, format)
    agent.begins(
        Answer(text="I look.", calls=(call("list_files"), call("search", pattern="h.llo", regex=True))),
        Answer(calls=(call("read_file", path="app.py", first=1, last=1),)),
        Answer(calls=(call("edit_file", path="app.py", old="hello", new="good morning"),)),
        Answer(calls=(call("write_file", path="docs/notes.txt", text="greets\n"),)),
        Answer(calls=(call("run_shell", command=f"{sys.executable} app.py; exit 3"),)),
        Answer(text="It says good morning now."),
    )
    with agent.server as server:
        ran = (agent.run_process if format == "anthropic" else agent.run)("--yes")
    assert (ran.code, ran.err, server.refused) == (0, "", [])
    assert (agent.folder / "app.py").read_text() == "print('good morning')\n"
    assert (agent.folder / "docs" / "notes.txt").read_text() == "greets\n"
    for line in ("== planning", "== executing", "* checkpoint", "> edit_file path='app.py'", "It says good morning"):
        assert line in ran.out
    assert "-- 8 turns, 6 tool calls" in ran.out
    assert "% cached)" in ran.out
    with agent.session() as session:
        assert results(session)[1:] == [
            ("list_files", "       15  app.py", False),
            ("search", "app.py:1: print('hello')", False),
            ("read_file", "     1  print('hello')", False),
            ("edit_file", "edited line 1 of app.py", False),
            ("write_file", "wrote 7 characters to docs/notes.txt", False),
            ("run_shell", "[exit code 3]\ngood morning\n", False),
        ]
        assert session.state.value.runtime.phase == "completed"
        assert session.verify() == []


def test_an_interrupted_task_goes_on_and_repeats_nothing(agent):
    """Ctrl-C ends a slow command and what it started; the same command again is told so, and completes the task."""
    agent.begins(
        Answer(calls=(call("run_shell", command="echo once >> log; sleep 300 & echo $! > child; wait"),)),
        Answer(calls=(call("read_file", path="log"),)),
        Answer(text="I think it was begun once."),
        Answer(text="It was begun once."),
    )
    process = agent.start("--yes")
    written = agent.folder / "child"
    child = int(waited_for(lambda: written.exists() and written.read_text()))
    process.send_signal(signal.SIGINT)
    shown, _ = process.communicate(timeout=180)
    assert process.returncode == 130
    assert "goes on where this was" in shown
    assert "-- 3 turns" in shown
    assert waited_for(lambda: is_gone(child))
    ran = agent.run("--yes")
    assert (ran.code, agent.server.refused) == (0, [])
    assert "It was begun once." in ran.out
    assert "-- 6 turns" in ran.out
    assert (agent.folder / "log").read_text() == "once\n"
    with agent.session() as session:
        assert [(name, said) for name, said, _ in results(session)[1:]] == [
            ("run_shell", "Error: this was cancelled while it ran. It may have taken effect, in part or whole."),
            ("read_file", "     1  once"),
        ]
        assert sum(message.text == TASK for message in session.messages()) == 1


def test_an_interrupted_answer_is_asked_for_again(agent):
    """Ctrl-C while the model is thinking loses nothing: the same request is made by the same command."""
    thinking, interrupted = Event(), Event()

    def slow():
        thinking.set()
        interrupted.wait(180)
        return Answer(text="never heard")

    agent.begins(slow, Answer(text="Good morning."))
    process = agent.start()
    assert thinking.wait(180)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=180)
    assert process.returncode == 130
    interrupted.set()
    assert agent.run().code == 0
    with agent.session() as session:
        said = [message.text for message in session.messages()]
    assert (said.count(TASK), said.count("never heard"), said[-1]) == (1, 0, "Good morning.")


def test_no_path_leads_out_of_the_folder(agent, tmp_path):
    """Neither dots nor links nor an absolute path, whatever the tool; the model reads why."""
    (tmp_path / "secret").write_text("key")
    (agent.folder / "link").symlink_to(tmp_path / "secret")
    (agent.folder / "away").symlink_to(tmp_path)
    refused = (
        call("read_file", path="../secret"),
        call("read_file", path="link"),
        call("write_file", path="away/new", text="x"),
        call("edit_file", path="../secret", old="key", new="x"),
        call("delete_file", path="../secret"),
        call("search", pattern="key", path=".."),
        call("list_files", path="/"),
    )
    agent.begins(Answer(calls=refused), Answer(text="I cannot."), Answer(text="Really not."))
    assert agent.run("--yes").code == 0
    assert (tmp_path / "secret").read_text() == "key"
    assert not (tmp_path / "new").exists()
    with agent.session() as session:
        why = "is outside of the folder: give a path below it, such as src/main.py"
        assert results(session)[1:] == [(each.name, f"{each.input['path']} {why}", True) for each in refused]


def test_what_lies_behind_a_link_is_neither_listed_nor_searched(agent, tmp_path):
    """Nor are hidden files."""
    (tmp_path / "secret").write_text("hello")
    (agent.folder / "link").symlink_to(tmp_path / "secret")
    (agent.folder / "away").symlink_to(tmp_path)
    (agent.folder / ".env").write_text("hello")
    agent.begins(Answer(calls=(call("list_files"), call("search", pattern="hello"))), Answer(text="Done."))
    assert agent.run().code == 0
    with agent.session() as session:
        assert [said for _, said, _ in results(session)[1:]] == ["       15  app.py", "app.py:1: print('hello')"]


@pytest.mark.parametrize(("answers", "happens"), [("y\nyes\n", True), ("n\nsure\n", False), ("", False)])
def test_commands_and_deletions_are_asked_about(agent, answers, happens):
    """Only a yes lets them happen; without anybody to answer they do not."""
    asked = (call("run_shell", command="echo hi > said"), call("delete_file", path="app.py"))
    agent.begins(Answer(calls=asked), Answer(text="Done."), Answer(text="Really."))
    ran = agent.run(input=answers)
    assert (ran.code, ran.out.count("may it? (")) == (0, 2)
    assert ((agent.folder / "said").exists(), (agent.folder / "app.py").exists()) == (happens, not happens)


def test_what_is_asked_about_is_shown_whole(agent):
    """However long a command is, nobody has to agree to an end that is not shown."""
    command = "echo " + "harmless " * 60 + "> said"
    agent.begins(Answer(calls=(call("run_shell", command=command),)), Answer(text="Done."), Answer(text="Really."))
    assert command in agent.run_process(input="y\n").out
    assert (agent.folder / "said").exists()


def test_nobody_can_answer_where_standard_input_is_closed(agent):
    """That is a no, for the same reason as everywhere, and no fault."""
    agent.begins(
        Answer(calls=(call("run_shell", command="echo hi > said"),)), Answer(text="Done."), Answer(text="Really.")
    )
    command = ["sh", "-c", 'exec "$@" <&-', "sh", *agent.command()]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)
    assert (ran.returncode, (agent.folder / "said").exists()) == (0, False)
    with agent.session() as session:
        assert "approval was denied" in results(session)[1][1]


def test_nothing_that_is_shown_steers_the_terminal(agent):
    """Words of the model and outputs of tools are shown without control characters."""
    (agent.folder / "app.py").write_text("\x1b]0;title\x07")
    agent.begins(Answer(calls=(call("read_file", path="app.py"),)), Answer(text="It\x1b[2J says\thello\nthere."))
    shown = agent.run().out
    assert ("\x1b" in shown, "\x07" in shown) == (False, False)
    assert " says\thello\nthere." in shown


def test_an_edit_needs_a_text_that_stands_there_once(agent):
    """Anything else is told, and the file stays as it is; line ends and the mode stay too."""
    file = agent.folder / "two.txt"
    file.write_bytes(b"one\r\none\r\ntwo\r\n")
    file.chmod(0o750)
    edits = [("one", "1"), ("three", "3"), ("", "0"), ("two", "2")]
    agent.begins(
        *(Answer(calls=(call("edit_file", path="two.txt", old=old, new=new),)) for old, new in edits),
        Answer(text="Done."),
        Answer(text="Really."),
    )
    assert agent.run().code == 0
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"one\r\none\r\n2\r\n", 0o750)
    with agent.session() as session:
        told = [said.partition(" in ")[0] for _, said, _ in results(session)[1:]]
    assert told == [
        "the old text stands 2 times",
        "the old text stands 0 times",
        "the old text stands 0 times",
        "edited line 3 of two.txt",
    ]
    assert sorted(each.name for each in agent.folder.iterdir()) == ["app.py", "two.txt"]


def test_a_command_that_takes_too_long_is_stopped_and_what_it_said_is_kept(agent):
    """All of it, however much, and the window does not overflow."""
    agent.begins(
        Answer(calls=(call("run_shell", command="seq 60000; sleep 300", seconds=3),)),
        Answer(text="It is slow."),
    )
    ran = agent.run("--yes")
    assert (ran.code, agent.server.refused) == (0, [])
    assert "* folded" in ran.out
    with agent.session() as session:
        said = results(session)[1][1]
    assert said.startswith("[stopped after 3 seconds]\n1\n2\n")
    assert said.endswith("\n60000\n")
    assert max(seen.tokens for seen in agent.server.seen) < 100_000


def test_ctrl_c_at_the_question_ends_it_too(agent):
    """No thread waits on for an answer; what was not agreed to is asked about again."""
    agent.begins(Answer(calls=(call("run_shell", command="echo hi >> said"),)), Answer(text="Done."))
    terminal, theirs = pty.openpty()
    process = agent.start(stdin=theirs)
    shown = ""
    while "may it?" not in shown:
        shown += process.stdout.read(1)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=180)
    assert process.returncode == 130
    os.close(terminal)
    os.close(theirs)
    assert agent.run(input="y\n").code == 0
    assert (agent.folder / "said").read_text() == "hi\n"


def test_a_mistake_in_the_call_is_one_line(agent):
    """A model that nobody knows needs its window."""
    agent.format = "openai"
    ran = agent.run("--model", f"openai:unheard-of@{agent.server.url}/v1")
    assert ran.code == 2
    assert ran.err.startswith("windowsill: no window is known for the model 'unheard-of'")
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--detach",), "--detach needs --queue"),
        (("--max-cost", "0"), "'--max-cost'"),
        (("--max-seconds", "-1"), "'--max-seconds'"),
    ],
)
def test_an_option_that_cannot_be_is_refused(agent, options, words):
    """Before anything is begun."""
    ran = agent.run(*options)
    assert (ran.code, words in ran.err, ran.err.count("\n")) == (2, True, 1)
    assert agent.server.seen == []


def test_the_folder_of_a_queued_run_is_one_of_the_workers_machine(agent):
    """Only who works there can tell whether it exists."""
    assert "'/nowhere' does not exist" in agent.run("--folder", "/nowhere").err
    assert "share a PostgreSQL database" in agent.run("--folder", "/nowhere", "--queue").err


def test_a_limit_is_named_as_the_option_that_raises_it(agent):
    """A pause says how to go on; a run without a call has cost nothing."""
    agent.begins(Answer(calls=(call("list_files"), call("list_files", path="."))))
    ran = agent.run("--max-tool-calls", "1")
    assert (ran.code, "or raise --max-tool-calls=" in ran.err) == (1, True)
    agent.script = iter(())
    agent.server.fail(401, "invalid x-api-key")
    ran = agent.run("--session", "other")
    assert (ran.code, "-- 0 turns" in ran.out, "$0.0000" in ran.out) == (1, True, True)


def test_a_killed_agent_goes_on_by_the_name_of_its_session(agent):
    """`kill -9` in the middle of a command: it is not run again, the model is told, and no task need be typed."""
    agent.begins(
        Answer(calls=(call("run_shell", command="echo once >> log; sleep 300"),)),
        Answer(text="I looked."),
        Answer(text="It was begun once."),
    )
    process = agent.start("--yes")
    waited_for((agent.folder / "log").exists)
    process.kill()
    process.communicate()
    ran = agent.resume("--yes")
    assert (ran.code, ran.err, agent.server.refused) == (0, "", [])
    assert (agent.folder / "log").read_text() == "once\n"
    with agent.session() as session:
        assert "the program was interrupted while this ran" in results(session)[1][1]
        assert sum(message.text == TASK for message in session.messages()) == 1
        assert session.verify() == []


def test_events_and_the_result_are_lines_of_json(agent):
    """For programs; what is asked about goes to standard error."""
    agent.begins(Answer(calls=(call("read_file", path="app.py"),)), Answer(text="It says hello."))
    ran = agent.run("--json")
    lines = [json.loads(line) for line in ran.out.splitlines()]
    kinds = [line["kind"] for line in lines]
    assert {"phase", "request", "text", "answer", "tool_started", "tool_finished", "ended"} <= set(kinds)
    assert kinds[-1] == "result"
    assert (lines[-1]["status"], lines[-1]["text"], lines[-1]["session"]) == ("completed", "It says hello.", "s")


def test_a_criterion_is_proven_by_a_tool_or_the_exit_code_says_no(agent):
    """What was checked by what stands at the end."""
    claim = {"criterion": "1", "met": True, "evidence": "print('hello')"}
    agent.begins(
        Answer(calls=(call("read_file", path="app.py"),)),
        Answer(calls=(call("finish", done=True, result="It greets.", criteria=[claim]),)),
    )
    ran = agent.run("--criterion", "it says hello")
    assert (ran.code, "-- met: it says hello (read_file: print('hello'))" in ran.out) == (0, True)
    agent.begins(*[Answer(text="It does.")] * 3)
    ran = agent.run("--criterion", "it says hello")
    assert (ran.code, "unverified" in ran.err) == (1, True)


@pytest.mark.parametrize(("answer", "ran"), [("y\ny\n", True), ("n\nn\n", False)])
def test_tools_of_an_mcp_server_are_used_by_their_annotations(agent, answer, ran):
    """A real server over stdio: what reads is there while planning; what destroys or says nothing is asked about."""
    agent.script = iter(
        [
            Answer(calls=(call("peek", name="x"),)),
            Answer(text="I see."),
            Answer(calls=(call("wipe", name="y"), call("anything", name="z"), call("put", name="p"))),
            *[Answer(text="Done.")] * 3,
        ]
    )
    (agent.folder / "log").write_text("")
    done = agent.run("--tools", "", "--mcp", f"{MCP} {agent.folder / 'log'}", input=answer)
    assert (done.code, done.out.count("may it? (")) == (0, 2)
    expected = ["peek x", "wipe y", "anything z", "put p"] if ran else ["peek x", "put p"]
    assert (agent.folder / "log").read_text().splitlines() == expected
    with agent.session() as session:
        assert results(session)[0] == ("peek", "saw x", False)


def test_a_tool_of_a_server_whose_name_is_taken_gets_that_of_its_server(agent):
    """Two servers and the agent itself may all have a tool of one name."""
    agent.script = iter(
        [Answer(calls=(call("peek", name="x"), call("notes_peek", name="y"))), *[Answer(text="Ok.")] * 3]
    )
    for name in ("one", "two"):
        (agent.folder / name).write_text("")
    servers = [f"{MCP} {agent.folder / name} read_file" for name in ("one", "two")]
    ran = agent.run("--mcp", servers[0], "--mcp", servers[1])
    assert (ran.code, ran.err) == (0, "")
    assert [(agent.folder / name).read_text() for name in ("one", "two")] == ["peek x\n", "peek y\n"]
    names = [each["name"] for each in agent.server.seen[0].body["tools"]]
    assert [each for each in names if "read_file" in each] == ["read_file", "notes_read_file", "mcp2_read_file"]


def test_a_mistake_beside_a_server_is_one_line(agent):
    """What goes wrong while a server is connected is told as it is told without one."""
    (agent.folder / "log").write_text("")
    Session.open("s", model="claude-sonnet-5", store=agent.store).close()
    ran = agent.resume("--model", "anthropic:claude-sonnet-5", "--mcp", f"{MCP} {agent.folder / 'log'}")
    assert ran.err == "windowsill: there is no task to go on with; give one\n"


def test_a_name_that_was_mistyped_leaves_no_session_behind(agent):
    """Without a task there has to be a session to go on with."""
    Session.open("other", model="claude-sonnet-5", store=agent.store).close()
    ran = agent.resume("--model", "anthropic:claude-sonnet-5")
    assert (ran.code, ran.err.partition(";")[0]) == (1, "windowsill: there is no session 's'")
    assert [info.id for info in open_store(agent.store).sessions()] == ["other"]


def test_a_server_or_a_kit_that_is_not_there_is_one_line(agent):
    """Nothing is begun."""
    for options, words in (
        (("--mcp", "no-such-program-here"), "the MCP server 'no-such-program-here' does not answer"),
        (("--tools", "files,knives"), "there are no tools 'knives'; use files, shell, fetch"),
    ):
        ran = agent.run(*options)
        assert ran.code in (1, 2)
        assert words in ran.err
        assert ran.err.count("\n") == 1
    assert agent.server.seen == []
