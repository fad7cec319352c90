"""The real Claude Code and Codex behind the proxy, against a strict local provider: `make soak-agents`.

They are installed from npm into a temporary folder; where that is impossible, the tests say so.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import urllib.request
from contextlib import closing

import pytest

from windowsill import Session, open_store
from windowsill.testing import Answer, Server
from windowsill.testing.protocols.base import Call

FILES = 25
PACKAGES = ("@anthropic-ai/claude-code", "@openai/codex")


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    place = tmp_path_factory.mktemp("agents")
    done = subprocess.run(
        ["npm", "install", "--silent", *PACKAGES], cwd=place, capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"npm cannot install {', '.join(PACKAGES)} here: {done.stderr[-300:]}")
    return place / "node_modules" / ".bin"


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    for number in range(FILES):
        (folder / f"f{number}.txt").write_text((f"line of file {number} " + "word " * 60 + "\n") * 40)
    return folder


class Reader:
    """A model that reads one file after the other, then ends."""

    def __init__(self, work):
        self.work = work
        self.asked = 0
        self.midway = threading.Event()

    def __call__(self, request):
        if not any(tool.get("name") == "Read" for tool in request.get("tools", [])):
            return Answer(text="A title")
        self.asked += 1
        if self.asked == FILES // 2:
            self.midway.set()
        if self.asked > FILES:
            return Answer(text="I have read everything.")
        return Answer(calls=(Call(name="Read", input={"file_path": str(self.work / f"f{self.asked - 1}.txt")}),))


def start(installed, work, url, *command, window=100_000):
    home = work.parent / "home"
    home.mkdir(exist_ok=True)
    upstreams = [part for name in ("anthropic", "openai") for part in ("--upstream", f"{name}={url}")]
    place = ["--store", str(work.parent / "kept"), "--window", str(window)]
    return subprocess.Popen(
        [sys.executable, "-m", "windowsill", "run", *place, *upstreams, *command],
        cwd=work,
        env={
            "PATH": f"{installed}:{os.environ['PATH']}",
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            "HOME": str(home),
            "ANTHROPIC_API_KEY": "sk-ant-invented",
            "OPENAI_API_KEY": "sk-invented",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


CLAUDE = ("claude", "-p", "Read all files.", "--model", "claude-sonnet-4-6", "--allowedTools", "Read")


def test_claude_code_works_through_folds(installed, work):
    """Every request is valid and fits, it ends its task, and everything it read is kept in one session."""
    with Server(Reader(work), window=100_000) as provider:
        said, told = start(installed, work, provider.url, *CLAUDE).communicate()
        assert provider.refused == []
    assert "I have read everything." in said, told
    assert "of them with older parts folded" in told
    with closing(open_store(work.parent / "kept")) as store:
        (info,) = store.sessions()
        with Session.open(info.id, store=store) as session:
            text = " ".join(block for message in session.messages() for block in [str(message)])
            assert all(f"line of file {number} " in text for number in range(FILES))
            assert any(fold.active for fold in session.folds)
            assert session.verify() == []


def test_claude_code_goes_on_when_the_proxy_is_killed(installed, work):
    """In mid-session: it is started again, and the conversation goes on in the same session."""
    reader = Reader(work)
    with Server(reader, window=100_000) as provider:
        running = start(installed, work, provider.url, *CLAUDE)
        assert reader.midway.wait(300)
        address = next(
            line.removeprefix("ANTHROPIC_BASE_URL=")
            for line in _environment_of_child(running.pid)
            if line.startswith("ANTHROPIC_BASE_URL=")
        )
        with urllib.request.urlopen(f"{address}/__windowsill/health") as answer:
            os.kill(json.load(answer)["pid"], signal.SIGKILL)
        said, told = running.communicate()
        assert provider.refused == []
    assert "I have read everything." in said, told
    assert "the proxy died" in told
    with closing(open_store(work.parent / "kept")) as store:
        assert len(store.sessions()) == 1


def _environment_of_child(pid):
    children = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=True).stdout.split()
    for child in children:
        with open(f"/proc/{child}/environ") as file:  # noqa: PTH123 - a file that is none
            yield from file.read().split("\0")


def test_codex_works_behind_the_proxy(installed, work):
    """Its socket is refused, it goes on with requests, and its thread is one session."""
    with Server(lambda _: Answer(text="Hello from here."), window=200_000) as provider:
        command = ("codex", "exec", "--skip-git-repo-check", "Say hello.")
        said, told = start(installed, work, provider.url, *command, window=200_000).communicate()
        assert provider.refused == []
    assert "Hello from here." in said, told
    with closing(open_store(work.parent / "kept")) as store:
        assert [info.id.startswith("codex-") for info in store.sessions()] == [True]
