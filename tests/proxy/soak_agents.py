"""The real Claude Code, Codex and Gemini CLI behind the proxy, against a strict local provider: `make soak-agents`.

They are installed from npm into a temporary folder; where that is impossible, the tests say so.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import urllib.request
import uuid
from contextlib import closing

import pytest

from windowsill import Session, open_store
from windowsill.testing import Answer, Server
from windowsill.testing.protocols.base import Call

FILES = 25
PACKAGES = ("@anthropic-ai/claude-code", "@openai/codex", "@google/gemini-cli")
LONG = "a long remark " * 400


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
        functions = [
            each for tool in request.get("tools", []) for each in (tool, *tool.get("functionDeclarations", ()))
        ]
        name = next((each["name"] for each in functions if each.get("name") in ("Read", "read_file")), None)
        if name is None:
            return Answer(text="A title")
        self.asked += 1
        if self.asked == FILES // 2:
            self.midway.set()
        if self.asked > FILES:
            return Answer(text="I have read everything.")
        return Answer(calls=(Call(name=name, input={"file_path": str(self.work / f"f{self.asked - 1}.txt")}),))


def start(installed, work, url, *command, window=100_000):
    home = work.parent / "home"
    home.mkdir(exist_ok=True)
    (home / ".gemini").mkdir(exist_ok=True)
    chosen = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    (home / ".gemini" / "settings.json").write_text(json.dumps(chosen))
    upstreams = [part for name in ("anthropic", "openai", "gemini") for part in ("--upstream", f"{name}={url}")]
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
            "GEMINI_API_KEY": "invented",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


CLAUDE = ("claude", "-p", "Read all files.", "--model", "claude-sonnet-4-6", "--allowedTools", "Read")


def kept(work):
    """The sessions that the proxy kept, by their ids; each is sound."""
    found = {}
    with closing(open_store(work.parent / "kept")) as store:
        for info in store.sessions():
            with Session.open(info.id, store=store) as session:
                assert session.verify() == []
                found[info.id] = ([str(message) for message in session.messages()], session.folds)
    return found


def test_claude_code_works_through_folds(installed, work):
    """Every request is valid and fits, it ends its task, and everything it read is kept in one session."""
    with Server(Reader(work), window=100_000) as provider:
        said, told = start(installed, work, provider.url, *CLAUDE).communicate()
        assert provider.refused == []
    assert "I have read everything." in said, told
    assert "read from the cache" in told
    ((messages, folds),) = kept(work).values()
    assert all(f"line of file {number} " in " ".join(messages) for number in range(FILES))
    assert any(fold.active for fold in folds)


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


def test_claude_code_goes_on_after_a_stream_that_broke_off(installed, work):
    """The client asks again by itself; nothing is refused, and the conversation stays one."""
    reader = Reader(work)
    with Server(reader, window=100_000) as provider:

        def tear(request):
            provider.break_off_after = 4 if reader.asked == FILES // 2 and provider.break_off_after is None else None
            return reader(request)

        provider.respond = tear
        said, told = start(installed, work, provider.url, *CLAUDE).communicate()
        assert provider.refused == []
    assert "I have read everything." in said, told
    assert len(kept(work)) == 1


def test_claude_codes_own_compaction_is_a_fold_that_keeps_everything(installed, work):
    """`/compact` in the middle: what it replaced stays in the same session, which goes on with the summary."""
    session = str(uuid.uuid4())
    steps = iter([*[Answer(calls=(Call(name="Read", input={"file_path": str(work / f"f{number}.txt")}),))
                    for number in range(2)], Answer(text="Two are read."), Answer(text="Going on.")])  # fmt: skip

    def model(request):
        if "TEXT ONLY" in json.dumps(request["messages"][-1]):
            return Answer(text="<analysis>-</analysis><summary>Two files were read.</summary>")
        return next(steps) if request.get("tools") else Answer(text="A title")

    with Server(model, window=100_000) as provider:
        for words in (("Read two files.", "--session-id"), ("/compact", "--resume"), ("Go on.", "--resume")):
            command = ("claude", "-p", *words, session, "--model", "claude-sonnet-4-6", "--allowedTools", "Read")
            said, told = start(installed, work, provider.url, *command).communicate()
        assert provider.refused == []
    assert "Going on." in said, told
    ((messages, folds),) = kept(work).values()
    assert [fold.strategy for fold in folds] == ["client"]
    assert all(f"line of file {number} " in " ".join(messages) for number in range(2))


def test_sub_agents_of_claude_code_have_sessions_of_their_own(installed, work):
    """The main conversation and the sub-agent's are kept apart, and found by their ids."""
    task = {"description": "look", "prompt": "Look around.", "subagent_type": "general-purpose"}
    steps = iter([Answer(calls=(Call(name="Agent", input=task),)), Answer(text="It has reported.")])

    def model(request):
        if not request.get("tools"):
            return Answer(text="A title")
        is_sub = "cc_is_subagent=true" in json.dumps(request.get("system", ""))
        return Answer(text="Nothing to see.") if is_sub else next(steps)

    with Server(model, window=100_000) as provider:
        command = ("claude", "-p", "Send somebody.", "--model", "claude-sonnet-4-6", "--allowedTools", "Agent")
        said, told = start(installed, work, provider.url, *command).communicate()
        assert provider.refused == []
    assert "It has reported." in said, told
    assert sorted("-agent-" in name for name in kept(work)) == [False, True]


def test_gemini_cli_works_through_folds(installed, work):
    """It names no conversation: its list does."""
    with Server(Reader(work), window=60_000) as provider:
        command = ("gemini", "-p", "Read all files.", "--yolo", "--skip-trust", "-m", "gemini-2.5-pro")
        said, told = start(installed, work, provider.url, *command, window=60_000).communicate()
        assert provider.refused == []
    assert "I have read everything." in said, told
    ((messages, folds),) = kept(work).values()
    assert all(f"line of file {number} " in " ".join(messages) for number in range(FILES))
    assert any(fold.active for fold in folds)


def test_codex_works_over_its_socket_and_compacts(installed, work):
    """Frames that say only what is new, folds, and compactions that this provider does not know: one session."""
    asked = 0

    def model(request):
        nonlocal asked
        if request["input"][-1].get("type") == "compaction_trigger":
            return Answer(text="I do not know what you mean.")
        asked += 1
        if asked > FILES:
            return Answer(text="Hello from here.")
        return Answer(text=f"remark {asked:03} {LONG}", calls=(Call(name="shell", input={"command": "true"}),))

    with Server(model, window=60_000) as provider:
        limit = ("-c", "model_auto_compact_token_limit=25000")
        command = ("codex", "exec", "--skip-git-repo-check", *limit, "Say hello.")
        running = start(installed, work, provider.url, *command, window=60_000)
        said, told = running.communicate()
        assert provider.refused == []
    assert "Hello from here." in said, told
    ((name, (messages, folds)),) = kept(work).items()
    assert name.startswith("codex-")
    assert {"client"} <= {fold.strategy for fold in folds}
    assert all(f"remark {number:03} " in " ".join(messages) for number in range(1, FILES + 1))
