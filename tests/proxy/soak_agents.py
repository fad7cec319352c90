"""The real Claude Code, Codex, Gemini CLI, OpenCode and aider behind the proxy, against a strict local provider.

`make soak-agents` installs them from npm and PyPI into a temporary folder, or into SOAK_AGENTS, where they stay; where
that is impossible, the tests say so.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import urllib.request
import uuid
import venv
from contextlib import closing
from pathlib import Path

import pytest

from windowsill import Session, open_store
from windowsill.testing import Answer, Server
from windowsill.testing.protocols.base import Call

FILES = 25
PACKAGES = {
    "claude": "@anthropic-ai/claude-code",
    "codex": "@openai/codex",
    "gemini": "@google/gemini-cli",
    "opencode": "opencode-ai",
}
LONG = "a long remark " * 400


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    return Path(os.environ.get("SOAK_AGENTS") or tmp_path_factory.mktemp("agents"))


@pytest.fixture(scope="session")
def installed(place):
    found = place / "node_modules" / ".bin"
    missing = [package for name, package in PACKAGES.items() if not (found / name).exists()]
    if missing:
        install("npm", "install", "--silent", *missing, cwd=place)
    return found


@pytest.fixture(scope="session")
def aider(place):
    made = place / "aider"
    if not (made / "bin" / "aider").exists():
        venv.create(made, with_pip=True)
        install(made / "bin" / "pip", "install", "--quiet", "aider-chat", cwd=place)
    return made / "bin"


def install(*command, cwd):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{' '.join(map(str, command))} does not work here: {done.stderr[-300:]}")


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
        name = next((each["name"] for each in functions if each.get("name") in ("Read", "read_file", "read")), None)
        if name is None:
            return Answer(text="A title")
        self.asked += 1
        if self.asked == FILES // 2:
            self.midway.set()
        if self.asked > FILES:
            return Answer(text="I have read everything.")
        path = str(self.work / f"f{self.asked - 1}.txt")
        return Answer(calls=(Call(name=name, input={"filePath" if name == "read" else "file_path": path}),))


def start(installed, work, url, *command, window=100_000, stdin=subprocess.DEVNULL, **more):
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
            **more,
        },
        stdin=stdin,
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
    """It names no conversation: its list does. Root gets the tools that read folds, others the way to them."""
    with Server(Reader(work), window=60_000) as provider:
        command = ("gemini", "-p", "Read all files.", "--yolo", "--skip-trust", "-m", "gemini-2.5-pro")
        said, told = start(installed, work, provider.url, *command, window=60_000).communicate()
        assert provider.refused == []
        offered = json.dumps([seen.body.get("tools") for seen in provider.seen])
    assert "I have read everything." in said, told
    assert ("windowsill_history_search" in offered) == (os.geteuid() == 0)
    assert ("gemini mcp add" in told) == (os.geteuid() != 0)
    assert "windowsill" not in (work.parent / "home" / ".gemini" / "settings.json").read_text()
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


OPENCODE = ("opencode", "run", "-m", "anthropic/claude-sonnet-4-5", "Read all files.")


def test_opencode_works_through_folds(installed, work):
    """Its title has no session, the conversation has one, and the tools that read what was folded are offered."""
    with Server(Reader(work), window=100_000) as provider:
        said, told = start(installed, work, provider.url, *OPENCODE).communicate()
        assert provider.refused == []
        offered = {tool["name"] for seen in provider.seen for tool in seen.body.get("tools", ())}
    assert "I have read everything." in said, told
    assert "windowsill_history_search" in offered
    ((messages, folds),) = kept(work).values()
    assert all(f"line of file {number} " in " ".join(messages) for number in range(FILES))
    assert any(fold.active for fold in folds)


def test_opencodes_own_compaction_is_a_fold_that_keeps_everything(installed, work):
    """It takes its window for a small one: what it replaced stays in the same session, which goes on."""
    models = {"claude-sonnet-4-5": {"limit": {"context": 60_000, "output": 4_000}}}
    config = json.dumps({"provider": {"anthropic": {"models": models}}})
    with Server(Reader(work), window=200_000) as provider:
        running = start(installed, work, provider.url, *OPENCODE, window=200_000, OPENCODE_CONFIG_CONTENT=config)
        said, told = running.communicate()
        assert provider.refused == []
    assert "I have read everything." in said, told
    ((messages, folds),) = kept(work).values()
    assert {fold.strategy for fold in folds} == {"client"}
    assert all(f"line of file {number} " in " ".join(messages) for number in range(FILES))


@pytest.mark.parametrize("model", ["anthropic/claude-sonnet-4-5", "openai/gpt-4.1", "gemini/gemini-2.5-pro"])
def test_aider_works_through_folds(aider, work, model):
    """It names no conversation, and takes its reminders back from one list to the next: one session all the same."""
    asked = 0

    def answer(_):
        nonlocal asked
        asked += 1
        return Answer(text=f"remark {asked:03} {LONG}")

    off = "git pretty fancy-input check-update show-model-warnings auto-lint gitignore show-release-notes"
    options = ["--yes-always", "--analytics-disable", "--map-tokens", "0", "--max-chat-history-tokens", "1000000"]
    with Server(answer, window=100_000) as provider:
        command = ("aider", "--model", model, *(f"--no-{each}" for each in off.split()), *options)
        running = start(aider, work, provider.url, *command, window=12_000, stdin=subprocess.PIPE)
        said, told = running.communicate("".join(f"Question {number}\n" for number in range(12)))
        assert provider.refused == []
    assert "remark 012 " in said, told
    ((messages, folds),) = kept(work).values()
    assert all(f"remark {number:03} " in " ".join(messages) for number in range(1, 13))
    assert any(fold.active for fold in folds)
