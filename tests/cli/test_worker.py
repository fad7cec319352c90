"""`windowsill agent --queue` and `windowsill worker` as a user runs them, over a real PostgreSQL."""

import json
import subprocess
import sys

import pytest

from support import postgres
from windowsill import Session
from windowsill.testing import Answer, Call, Server

pytestmark = pytest.mark.end_to_end

PROGRAM = [sys.executable, "-m", "windowsill"]
TASK = "Write a greeting."
ANSWERS = [
    Answer(calls=(Call("update_plan", {"steps": [{"description": "greet", "status": "completed"}]}),)),
    Answer(text="I have a plan."),
    Answer(calls=(Call("write_file", {"path": "hello.txt", "text": "good morning"}),)),
    Answer(text="It is written."),
]


@pytest.fixture
def url():
    return postgres.server().url()


@pytest.fixture
def model():
    script = iter(ANSWERS)
    with Server(lambda _: next(script)) as server:
        yield f"anthropic:claude-sonnet-5@{server.url}"


def run(*arguments):
    return subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True, check=False, timeout=90)


def test_a_worker_does_what_agent_hands_over(url, model, tmp_path):
    """Handed over without watching, done by a worker until nothing is left, on the folder that was named."""
    options = ["--model", model, "--folder", str(tmp_path), "--session", "s", "--store", url]
    handed = run("agent", TASK, *options, "--queue", "--detach")
    assert (handed.returncode, handed.stderr) == (0, "")
    assert handed.stdout.strip().isdecimal()
    worked = run("worker", "--drain", "--store", url)
    assert worked.returncode == 0, worked.stderr
    assert "'s' ended: completed" in worked.stderr
    assert (tmp_path / "hello.txt").read_text() == "good morning"
    with Session.open("s", store=url) as session:
        assert session.verify() == []


def test_agent_shows_what_its_worker_does(url, model, tmp_path):
    """The same lines as if it were done here, and the same exit code."""
    options = ["--model", model, "--folder", str(tmp_path), "--session", "s", "--store", url]
    with subprocess.Popen([*PROGRAM, "worker", "--store", url], stderr=subprocess.PIPE, text=True) as worker:
        try:
            watched = run("agent", TASK, *options, "--queue", "--json")
        finally:
            worker.terminate()
            worker.communicate()
    assert watched.returncode == 0, watched.stderr
    events = [json.loads(line) for line in watched.stdout.splitlines()]
    assert [each["text"] for each in events if each["kind"] == "tool_started"] == ["write_file"]
    assert (events[-1]["kind"], events[-1]["status"], events[-1]["text"]) == ("result", "completed", "It is written.")
    assert worker.returncode == 0


def test_a_queue_wants_a_server(tmp_path):
    """A file cannot be shared by machines: both commands say so."""
    place = ["--store", str(tmp_path)]
    for command in (["worker"], ["agent", TASK, "--queue", "--model", "openai:gpt-5"]):
        done = run(*command, *place)
        assert done.returncode == 2
        assert "workers share a PostgreSQL database; give the store as postgresql://" in done.stderr
